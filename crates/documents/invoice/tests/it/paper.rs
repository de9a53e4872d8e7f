//! Documents made by hand: words of equal letter widths at places, and rules between them.

use ode_invoice::{Choice, Extraction, Options, Registry, extract};
use ode_pdf::{Document, Page, Rect, Rule, Word};

/// Width of a letter and height of a line, in points.
const LETTER: f32 = 5.0;
const LINE: f32 = 10.0;

/// A page in the making.
#[derive(Default)]
pub(crate) struct Paper {
    pages: Vec<Page>,
}

impl Paper {
    pub(crate) fn new() -> Self {
        Self::default().page()
    }

    /// Begins a new page.
    pub(crate) fn page(mut self) -> Self {
        let number = self.pages.len() as u32 + 1;
        self.pages.push(Page { number, width: 600.0, height: 800.0, ..Page::default() });
        self
    }

    /// Puts a text; its words are three points apart.
    pub(crate) fn text(self, x: f32, y: f32, text: &str) -> Self {
        self.put((x, y), text, LINE, false)
    }

    /// Puts a text in bold.
    pub(crate) fn bold(self, x: f32, y: f32, text: &str) -> Self {
        self.put((x, y), text, LINE, true)
    }

    /// Puts a text that ends at a place, as figures do.
    pub(crate) fn right(self, x: f32, y: f32, text: &str) -> Self {
        let letters: usize = text.chars().filter(|c| *c != ' ').count();
        let width = letters as f32 * LETTER + text.matches(' ').count() as f32 * 3.0;
        self.text(x - width, y, text)
    }

    /// Puts a text in bold of any size.
    pub(crate) fn title(self, x: f32, y: f32, text: &str, font_size: f32) -> Self {
        self.put((x, y), text, font_size, true)
    }

    fn put(mut self, (x, y): (f32, f32), text: &str, font_size: f32, is_bold: bool) -> Self {
        let page = self.pages.last_mut().expect("there is a page");
        let mut at = x;
        for part in text.split(' ') {
            let count = part.chars().count();
            let end = at + LETTER * count as f32;
            page.words.push(Word {
                text: part.to_owned(),
                bbox: Rect { x0: at, y0: y, x1: end, y1: y + font_size },
                edges: (0..=count).map(|i| at + LETTER * i as f32).collect(),
                font_size,
                is_bold,
                ..Word::default()
            });
            at = end + 3.0;
        }
        self
    }

    /// Draws a rule.
    pub(crate) fn rule(mut self, x0: f32, y0: f32, x1: f32, y1: f32) -> Self {
        let page = self.pages.last_mut().expect("there is a page");
        page.rules.push(Rule { bbox: Rect { x0, y0, x1: x1.max(x0 + 0.5), y1: y1.max(y0 + 0.5) } });
        self
    }

    pub(crate) fn document(self) -> Document {
        Document { pages: self.pages, ..Document::default() }
    }
}

/// Reads a document with a mapping whose head is written for it.
pub(crate) fn read(rules: &str, paper: Paper) -> Extraction {
    let folder = tempfile::tempdir().expect("a folder for the mapping");
    let text =
        format!("schema = 1\nname = \"trial\"\nversion = 1\nstatus = \"draft\"\nkind = \"note\"\n{rules}");
    std::fs::write(folder.path().join("trial.toml"), text).expect("the mapping is written");
    let options = Options { folder: Some(folder.path().to_owned()), ..Options::default() };
    let registry = Registry::new(options).unwrap_or_else(|errors| panic!("{errors:#?}"));
    extract(&paper.document(), &registry, Choice::Named("trial_v1")).expect("it is read")
}

/// A field's value as text.
pub(crate) fn value(extraction: &Extraction, name: &str) -> Option<String> {
    extraction.record.fields.get(name).map(|field| ode_invoice::value_text(&field.value.typed))
}

/// A table's cells as text, row by row, in the order of `columns`.
pub(crate) fn cells(extraction: &Extraction, table: &str, columns: &[&str]) -> Vec<Vec<String>> {
    let rows = extraction.record.tables.get(table).map(|t| t.rows.clone()).unwrap_or_default();
    let cell = |row: &ode_invoice::Row, name: &str| {
        row.get(name).map(|cell| ode_invoice::value_text(&cell.value.typed)).unwrap_or_default()
    };
    rows.iter().map(|row| columns.iter().map(|name| cell(row, name)).collect()).collect()
}
