//! The whole document: its pages one after another, then what they share.

use std::sync::Arc;

use hayro_interpret::{InterpreterCache, InterpreterSettings};
use ode_pdf::trace::Source;

use crate::config::{ConversionConfig, ZOOMS};
use crate::document::Places;
use crate::document::{Entry, Facts, Tags, outline};
use crate::draw::Store;
use crate::limits::Limits;
use crate::page::{Draft, Tools, draft};
use crate::refusal::Refusal;
use crate::text::Faces;
use crate::{Conversion, frame};

/// Everything that was found, before any of it is written.
pub(crate) struct Book {
    pub(crate) facts: Facts,
    pub(crate) outline: Vec<Entry>,
    pub(crate) tags: Tags,
    pub(crate) pages: Vec<Draft>,
    pub(crate) faces: Faces,
    pub(crate) store: Store,
    pub(crate) warnings: Vec<String>,
    pub(crate) glyphs: usize,
    pub(crate) unknown_glyphs: usize,
    missing_glyphs: usize,
}

pub(crate) fn convert(
    bytes: Arc<[u8]>,
    config: &ConversionConfig,
    limits: &Limits,
) -> Result<Conversion, Refusal> {
    if !ZOOMS.contains(&config.zoom) {
        return Err(Refusal::BadZoom(config.zoom));
    }
    let bytes_max = limits.output_bytes_max(bytes.len());
    let source = Source::open(bytes, &limits.reading)?;
    let is_wanted = |index: usize| config.pages.as_ref().is_none_or(|pages| pages.contains(index));
    let pages = source.pdf().pages().len();
    if let Some(wanted) = &config.pages
        && !(0..pages).any(is_wanted)
    {
        return Err(Refusal::NoSuchPages { pages, wanted: wanted.to_string() });
    }
    let mut book = read(&source, is_wanted, config, limits, bytes_max);
    book.faces.settle_pairs();
    frame::write(book, config, bytes_max)
}

fn read(
    source: &Source,
    is_wanted: impl Fn(usize) -> bool,
    config: &ConversionConfig,
    limits: &Limits,
    bytes_max: usize,
) -> Book {
    let sheets = source.pdf().pages();
    let pdf = source.pdf();
    let places = Places::read(pdf);
    let outline = outline(pdf, &places);
    let tools = Tools {
        cache: InterpreterCache::new(),
        settings: InterpreterSettings::default(),
        forms: source.form_resources(),
        places,
    };
    let mut book = Book {
        facts: Facts::read(pdf),
        outline,
        tags: Tags::read(pdf),
        pages: Vec::new(),
        faces: Faces::default(),
        store: Store::new(bytes_max),
        warnings: Vec::new(),
        glyphs: 0,
        unknown_glyphs: 0,
        missing_glyphs: 0,
    };
    source.trace(is_wanted, |traced| {
        let Some(sheet) = sheets.get(traced.page.number as usize - 1) else {
            return;
        };
        book.store.begin_page(limits);
        let page = draft(sheet, &traced, &tools, (&mut book.store, &mut book.faces), config);
        if traced.is_cut {
            book.warnings
                .push(format!("Page {} holds more text than is read of one page: its end is left out.", page.number));
        }
        book.glyphs += traced.glyphs.len();
        book.unknown_glyphs += page.unknown_glyphs;
        book.missing_glyphs += page.missing_glyphs;
        if page.picture.is_some() {
            book.warnings.push(format!(
                "Page {} is left as a picture: it would take more than one page may. Its text can still be copied.",
                page.number
            ));
        }
        book.pages.push(page);
    });
    book.warn_of_shortcomings();
    book
}

impl Book {
    fn warn_of_shortcomings(&mut self) {
        let sentences = [
            (
                self.unknown_glyphs,
                "letter is only drawn in this PDF, without saying which it is: it is copied as \u{fffd}.",
                "letters are only drawn in this PDF, without saying which they are: they are copied as \u{fffd}.",
            ),
            (
                self.missing_glyphs,
                "letter has no shape in this PDF: it is shown in a font of the reader's.",
                "letters have no shape in this PDF: they are shown in a font of the reader's.",
            ),
            (
                self.store.lost_pictures,
                "picture is left out: it is damaged, or there is no room for it.",
                "pictures are left out: they are damaged, or there is no room for them.",
            ),
        ];
        for (count, one, many) in sentences.into_iter().filter(|(count, ..)| *count > 0) {
            self.warnings.push(format!("{count} {}", if count == 1 { one } else { many }));
        }
    }
}
