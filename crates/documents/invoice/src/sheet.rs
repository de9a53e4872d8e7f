//! A document's words laid out for searching: rows of text from top to bottom, each cut into pieces where a wide
//! gap or a drawn rule parts them, every character knowing its place.

use std::borrow::Cow;
use std::ops::Range;

use ode_pdf::text::is_leftward_letter;
use ode_pdf::{Document, Page, Rect, Rule, Word};
use unicode_normalization::char::{decompose_canonical, is_combining_mark};

/// Words further apart than this many font sizes belong to different pieces. A space is a quarter of a font size,
/// in type of equal widths six tenths.
const PIECE_GAP_EMS: f32 = 1.0;
/// Base lines nearer than this share of a font size are one row.
const ROW_SLACK_EMS: f32 = 0.3;
/// Pages past this are not searched: totals of longer documents stand on the first or on the last pages, and
/// nobody maps a book.
pub const PAGES_MAX: usize = 400;

#[derive(Clone, Debug, Default)]
pub struct Sheet<'a> {
    /// Pages in order.
    pub pages: Vec<SheetPage<'a>>,
}

/// A drawn line: where it lies, and from where to where it reaches.
pub type Stroke = (f32, f32, f32);

#[derive(Clone, Debug)]
pub struct SheetPage<'a> {
    /// As the reader gave it; one whose writing is shown sideways is turned upright.
    pub page: Cow<'a, Page>,
    /// How far its writing is turned, in degrees as in [`Word::rotation`].
    turn: u16,
    /// Rows from top to bottom.
    pub rows: Vec<TextRow>,
    /// Drawn lines that stand upright, as (x, top, bottom).
    pub uprights: Vec<Stroke>,
    /// Drawn lines that lie, as (y, left, right).
    pub levels: Vec<Stroke>,
    /// Whether it is read from right to left. Rows and lines are then as in a mirror, so that behind a label and in the next
    /// column mean what they mean to its reader; [`SheetPage::shown`] leads back to the page.
    pub is_mirrored: bool,
}

/// Words on one base line.
#[derive(Clone, Debug, Default)]
pub struct TextRow {
    /// Words joined by a space, pieces by a tab.
    pub text: String,
    /// The same, folded: as many characters, without case and accents.
    pub folded: String,
    /// Where each character of `text` stands; none for spaces and tabs.
    pub chars: Vec<Option<Rect>>,
    /// Pieces as ranges of characters.
    pub pieces: Vec<Piece>,
    /// Extent of the row.
    pub bbox: Rect,
}

/// A run of words without a wide gap.
#[derive(Clone, Debug)]
pub struct Piece {
    /// Its characters in the row.
    pub chars: Range<usize>,
    pub bbox: Rect,
    /// Size of its first word.
    pub font_size: f32,
    /// Whether its first word is bold.
    pub is_bold: bool,
}

/// A stretch of text with the place of every character: the unit that rules read values from.
#[derive(Clone, Debug, Default)]
pub struct Span {
    /// The text; lines are parted by a line feed.
    pub text: String,
    /// Place of each character; none for spaces.
    pub chars: Vec<Option<Rect>>,
    /// Page, from 1.
    pub page: u32,
    /// Size of its first word, for "the largest".
    pub font_size: f32,
    /// Whether its first word is bold.
    pub is_bold: bool,
}

impl<'a> Sheet<'a> {
    /// Lays out a document.
    pub fn new(document: &'a Document) -> Self {
        Self { pages: document.pages.iter().take(PAGES_MAX).map(SheetPage::new).collect() }
    }

    /// Every row with the index of its page and its own.
    pub fn rows(&self) -> impl Iterator<Item = (usize, usize, &TextRow)> {
        self.pages
            .iter()
            .enumerate()
            .flat_map(|(p, page)| page.rows.iter().enumerate().map(move |(r, row)| (p, r, row)))
    }

    pub fn row(&self, page: usize, row: usize) -> &TextRow {
        &self.pages[page].rows[row]
    }

    /// Whether there is any text at all.
    pub fn is_empty(&self) -> bool {
        self.pages.iter().all(|p| p.rows.is_empty())
    }
}

impl<'a> SheetPage<'a> {
    fn new(page: &'a Page) -> Self {
        let turn = turn_of(page);
        let page = if turn == 0 { Cow::Borrowed(page) } else { Cow::Owned(upright(page, turn)) };
        let is_mirrored = is_read_leftwards(&page);
        let turned: Vec<Word> = match is_mirrored {
            true => page.words.iter().map(|word| mirror_word(word, page.width)).collect(),
            false => Vec::new(),
        };
        let (uprights, levels) = drawn_lines(&page, is_mirrored);
        let mut words: Vec<&Word> = if is_mirrored { &turned } else { &page.words }
            .iter()
            .filter(|w| w.rotation == 0 && !w.text.trim().is_empty())
            .collect();
        words.sort_by(|a, b| a.bbox.y1.total_cmp(&b.bbox.y1));
        let mut groups: Vec<Vec<&Word>> = Vec::new();
        for word in words {
            match groups.last_mut() {
                Some(group) if shares_row(group, word) => group.push(word),
                _ => groups.push(vec![word]),
            }
        }
        let rows = groups.into_iter().map(|group| TextRow::new(group, &uprights, is_mirrored)).collect();
        Self { page, turn, rows, uprights, levels, is_mirrored }
    }

    /// Where a place of a row stands on the page as it is shown.
    pub fn shown(&self, place: Rect) -> Rect {
        let back = (360 - self.turn) % 360;
        turned(self.mirrored(place), self.page.width, self.page.height, back)
    }

    /// A place of the upright page as the rows see it, and the other way round.
    pub fn mirrored(&self, place: Rect) -> Rect {
        if self.is_mirrored { mirror(place, self.page.width) } else { place }
    }

    /// Whether an upright rule crosses the gap between two places at a height.
    pub fn has_upright(&self, between: Range<f32>, y: f32) -> bool {
        crosses(&self.uprights, &between, y)
    }
}

fn crosses(uprights: &[Stroke], between: &Range<f32>, y: f32) -> bool {
    uprights.iter().any(|(x, top, bottom)| between.contains(x) && *top <= y && y <= *bottom)
}

/// How most letters of a page are turned.
fn turn_of(page: &Page) -> u16 {
    let letters = |turn: u16| -> usize {
        page.words.iter().filter(|word| word.rotation == turn).map(|word| word.text.chars().count()).sum()
    };
    let most = |best: u16, turn: u16| if letters(turn) > letters(best) { turn } else { best };
    if page.words.iter().all(|word| word.rotation == 0) {
        0
    } else {
        [90, 180, 270].into_iter().fold(0, most)
    }
}

/// A place of a page of this size, seen by somebody who turned the page so that writing turned this far is upright.
fn turned(place: Rect, width: f32, height: f32, turn: u16) -> Rect {
    let Rect { x0, y0, x1, y1 } = place;
    match turn {
        90 => Rect { x0: y0, x1: y1, y0: width - x1, y1: width - x0 },
        180 => Rect { x0: width - x1, x1: width - x0, y0: height - y1, y1: height - y0 },
        270 => Rect { x0: height - y1, x1: height - y0, y0: x0, y1: x1 },
        _ => place,
    }
}

/// The page, turned so that writing of this direction is upright. What was upright is not any more.
fn upright(page: &Page, turn: u16) -> Page {
    let place = |bbox: Rect| turned(bbox, page.width, page.height, turn);
    let (width, height) = if turn == 180 { (page.width, page.height) } else { (page.height, page.width) };
    let words = page.words.iter().map(|word| {
        let bbox = place(word.bbox);
        // Edges are told along the writing, from wherever that begins.
        let first = word.edges.iter().copied().fold(f32::INFINITY, f32::min);
        let edges = word.edges.iter().map(|edge| edge - first + bbox.x0).collect();
        Word { bbox, edges, rotation: (word.rotation + 360 - turn) % 360, ..word.clone() }
    });
    let rules = page.rules.iter().map(|rule| Rule { bbox: place(rule.bbox) });
    Page { width, height, words: words.collect(), rules: rules.collect(), ..page.clone() }
}

fn mirror(place: Rect, width: f32) -> Rect {
    Rect { x0: width - place.x1, x1: width - place.x0, ..place }
}

fn mirror_word(word: &Word, width: f32) -> Word {
    let edges = word.edges.iter().map(|edge| width - edge).collect();
    Word { bbox: mirror(word.bbox, width), edges, ..word.clone() }
}

/// Whether most words of a page are of a script that runs from right to left.
fn is_read_leftwards(page: &Page) -> bool {
    let lettered = page.words.iter().filter(|word| word.text.chars().any(char::is_alphabetic));
    let (count, leftwards) = lettered
        .fold((0, 0), |(count, leftwards), word| (count + 1, leftwards + usize::from(runs_leftwards(word))));
    leftwards * 2 > count
}

fn runs_leftwards(word: &Word) -> bool {
    !word.text.is_ascii() && word.text.chars().any(is_leftward_letter)
}

/// Puts words that run against the direction of their page into the order in which they are read. Numbers alone stay:
/// they are set in the direction of the page.
fn turn_runs(words: &mut [&Word], is_mirrored: bool) {
    for run in words.chunk_by_mut(|a, b| runs_leftwards(a) == runs_leftwards(b)) {
        let has_letters = run.iter().any(|word| word.text.chars().any(char::is_alphabetic));
        if run.len() > 1 && runs_leftwards(run[0]) != is_mirrored && has_letters {
            run.reverse();
        }
    }
}

fn drawn_lines(page: &Page, is_mirrored: bool) -> (Vec<Stroke>, Vec<Stroke>) {
    let mut uprights = Vec::new();
    let mut levels = Vec::new();
    for rule in &page.rules {
        let place = if is_mirrored { mirror(rule.bbox, page.width) } else { rule.bbox };
        let Rect { x0, y0, x1, y1 } = place;
        if x1 - x0 > y1 - y0 {
            levels.push(((y0 + y1) / 2.0, x0, x1));
        } else {
            uprights.push(((x0 + x1) / 2.0, y0, y1));
        }
    }
    (uprights, levels)
}

fn shares_row(group: &[&Word], word: &Word) -> bool {
    let base = group[0].bbox.y1;
    let size = group.iter().map(|w| w.font_size).fold(word.font_size, f32::min).max(1.0);
    (word.bbox.y1 - base).abs() <= size * ROW_SLACK_EMS
}

impl TextRow {
    fn new(mut words: Vec<&Word>, uprights: &[Stroke], is_mirrored: bool) -> Self {
        words.sort_by(|a, b| a.bbox.x0.total_cmp(&b.bbox.x0));
        let mut row = Self { bbox: words[0].bbox, ..Self::default() };
        for piece in words.chunk_by_mut(|left, right| !is_gap(left, right, uprights)) {
            turn_runs(piece, is_mirrored);
            row.push_piece(piece);
        }
        row.folded = fold(&row.text);
        row
    }

    fn push_piece(&mut self, words: &[&Word]) {
        if !self.chars.is_empty() {
            self.push_separator('\t');
        }
        let start = self.chars.len();
        let (font_size, is_bold, mut bbox) = (words[0].font_size, words[0].is_bold, words[0].bbox);
        for (at, word) in words.iter().enumerate() {
            if at > 0 {
                self.push_separator(' ');
            }
            self.push_word(word);
            bbox = union(bbox, word.bbox);
        }
        self.pieces.push(Piece { chars: start..self.chars.len(), bbox, font_size, is_bold });
        self.bbox = union(self.bbox, bbox);
    }

    fn push_separator(&mut self, separator: char) {
        self.text.push(separator);
        self.chars.push(None);
    }

    fn push_word(&mut self, word: &Word) {
        let count = word.text.chars().count().max(1);
        let has_edges = word.edges.len() == count + 1;
        let width = (word.bbox.x1 - word.bbox.x0) / count as f32;
        for (at, c) in word.text.chars().enumerate() {
            let (x0, x1) = if has_edges {
                (word.edges[at].min(word.edges[at + 1]), word.edges[at].max(word.edges[at + 1]))
            } else {
                (word.bbox.x0 + width * at as f32, word.bbox.x0 + width * (at + 1) as f32)
            };
            let c = if c.is_whitespace() { '\u{a0}' } else { c };
            self.text.push(c);
            self.chars.push(Some(Rect { x0, x1, ..word.bbox }));
        }
    }

    /// The characters of a range.
    pub fn slice(&self, chars: &Range<usize>) -> String {
        if self.text.is_ascii() {
            return self.text[chars.clone()].to_owned();
        }
        self.text.chars().skip(chars.start).take(chars.len()).collect()
    }

    /// The extent of a range; none for mere space.
    pub fn rect(&self, chars: &Range<usize>) -> Option<Rect> {
        self.chars[chars.clone()].iter().flatten().copied().reduce(union)
    }

    /// The piece that holds a character.
    pub fn piece_at(&self, at: usize) -> Option<usize> {
        self.pieces.iter().position(|p| p.chars.contains(&at))
    }

    /// A range as a span.
    pub fn span(&self, page: u32, chars: &Range<usize>) -> Span {
        let piece = self.piece_at(chars.start).map(|at| &self.pieces[at]);
        Span {
            text: self.slice(chars),
            chars: self.chars[chars.clone()].to_vec(),
            page,
            font_size: piece.map_or(0.0, |p| p.font_size),
            is_bold: piece.is_some_and(|p| p.is_bold),
        }
    }

    /// Middle of the row's height.
    pub fn y_mid(&self) -> f32 {
        f32::midpoint(self.bbox.y0, self.bbox.y1)
    }
}

fn is_gap(left: &Word, right: &Word, uprights: &[Stroke]) -> bool {
    let size = left.font_size.min(right.font_size).max(1.0);
    let y = f32::midpoint(right.bbox.y0, right.bbox.y1);
    let gap = right.bbox.x0 - left.bbox.x1;
    gap > size * PIECE_GAP_EMS || (gap > 0.0 && crosses(uprights, &(left.bbox.x1..right.bbox.x0), y))
}

impl Span {
    /// Adds another span as a further line.
    pub fn push_line(&mut self, other: &Self) {
        if self.text.is_empty() {
            *self = other.clone();
            return;
        }
        self.text.push('\n');
        self.chars.push(None);
        self.text.push_str(&other.text);
        self.chars.extend_from_slice(&other.chars);
    }

    /// The extent of a range of characters.
    pub fn rect(&self, chars: &Range<usize>) -> Option<Rect> {
        self.chars[chars.start.min(self.chars.len())..chars.end.min(self.chars.len())]
            .iter()
            .flatten()
            .copied()
            .reduce(union)
    }

    /// A part of the span.
    pub fn part(&self, chars: &Range<usize>) -> Self {
        Self {
            text: self.text.chars().skip(chars.start).take(chars.len()).collect(),
            chars: self.chars[chars.clone()].to_vec(),
            ..*self
        }
    }
}

/// The smallest box around both.
pub fn union(a: Rect, b: Rect) -> Rect {
    Rect { x0: a.x0.min(b.x0), y0: a.y0.min(b.y0), x1: a.x1.max(b.x1), y1: a.y1.max(b.y1) }
}

/// Text without case and accents, one character for one.
pub fn fold(text: &str) -> String {
    text.chars().map(fold_char).collect()
}

/// One character without case and accent.
pub fn fold_char(c: char) -> char {
    if c.is_ascii() {
        return c.to_ascii_lowercase();
    }
    let lower = c.to_lowercase().next().unwrap_or(c);
    match lower {
        'ø' => 'o',
        'ł' => 'l',
        'đ' | 'ð' => 'd',
        'ı' => 'i',
        'æ' => 'a',
        'ς' => 'σ',
        '’' | '‘' | '´' => '\'',
        '–' | '—' | '‐' | '‑' | '−' => '-',
        '“' | '”' | '„' => '"',
        'º' => '°',
        '：' => ':',
        '（' => '(',
        '）' => ')',
        '״' => '"',
        '׳' => '\'',
        '\u{a0}' | '\u{202f}' | '\u{2009}' => ' ',
        _ => base_letter(lower),
    }
}

/// A letter without its accents. A Hangul syllable comes apart into letters, of which none stands for it.
fn base_letter(letter: char) -> char {
    if matches!(letter, '\u{ac00}'..='\u{d7a3}') {
        return letter;
    }
    let mut base = letter;
    decompose_canonical(letter, |part| {
        if base == letter && !is_combining_mark(part) {
            base = part;
        }
    });
    base
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A word of equal letter widths at a place.
    pub(crate) fn word(text: &str, x: f32, y: f32) -> Word {
        let count = text.chars().count();
        let bbox = Rect { x0: x, y0: y, x1: x + 5.0 * count as f32, y1: y + 10.0 };
        let edges = (0..=count).map(|at| x + 5.0 * at as f32).collect();
        Word { text: text.to_owned(), bbox, edges, font_size: 10.0, ..Word::default() }
    }

    /// A page whose texts stand at places; each text is cut into words three points apart.
    pub(crate) fn page(texts: &[(&str, f32, f32)]) -> Document {
        let mut words = Vec::new();
        for (text, x, y) in texts {
            let mut at = *x;
            for part in text.split(' ') {
                words.push(word(part, at, *y));
                at += 5.0 * part.chars().count() as f32 + 3.0;
            }
        }
        let page = Page { number: 1, width: 600.0, height: 800.0, words, ..Page::default() };
        Document { pages: vec![page], ..Document::default() }
    }

    #[test]
    fn words_of_one_base_line_become_a_row_of_pieces() {
        let document =
            page(&[("Total Tagihan", 50.0, 100.0), ("Rp 5.000", 300.0, 101.0), ("Next", 50.0, 115.0)]);
        let sheet = Sheet::new(&document);
        let rows = &sheet.pages[0].rows;
        assert_eq!(rows.len(), 2);
        assert_eq!(rows[0].text, "Total Tagihan\tRp 5.000");
        assert_eq!(rows[0].pieces.len(), 2);
    }

    #[test]
    fn a_page_that_is_shown_sideways_is_read_in_the_direction_of_its_writing() {
        let texts = &[("Total Tagihan", 50.0, 100.0), ("Rp 5.000", 300.0, 100.0), ("Next", 50.0, 115.0)];
        for turn in [90, 180, 270] {
            let mut document = page(texts);
            let straight = document.pages[0].clone();
            // Turning a page by the rest of a circle shows its writing sideways.
            document.pages[0] = upright(&straight, 360 - turn);
            assert!(document.pages[0].words.iter().all(|word| word.rotation == turn), "{turn}");
            let sheet = Sheet::new(&document);
            let rows = &sheet.pages[0].rows;
            assert_eq!(rows[0].text, "Total Tagihan\tRp 5.000", "{turn}");
            assert_eq!(rows.len(), 2, "{turn}");
            let shown = sheet.pages[0].shown(rows[1].bbox);
            assert_eq!(shown, document.pages[0].words.last().unwrap().bbox, "{turn}");
        }
    }

    #[test]
    fn part_of_a_word_has_its_own_box() {
        let document = page(&[("Nummer:42", 50.0, 100.0)]);
        let sheet = Sheet::new(&document);
        let rect = sheet.pages[0].rows[0].rect(&(7..9)).unwrap();
        assert_eq!((rect.x0, rect.x1), (85.0, 95.0));
    }

    #[test]
    fn a_drawn_rule_parts_words_that_stand_close() {
        let mut document = page(&[("one two", 50.0, 100.0)]);
        let bbox = Rect { x0: 66.0, x1: 66.5, y0: 90.0, y1: 120.0 };
        document.pages[0].rules.push(ode_pdf::Rule { bbox });
        assert_eq!(Sheet::new(&document).pages[0].rows[0].pieces.len(), 2);
    }

    #[test]
    fn folding_keeps_the_count_of_characters() {
        for text in ["Fälligkeit", "N° TVA", "ŒUVRE – «é»"] {
            assert_eq!(fold(text).chars().count(), text.chars().count());
        }
        assert_eq!(fold("Fälligkeit"), "falligkeit");
        assert_eq!(fold("ŁÓDŹ Číslo İş Ώρα"), "lodz cislo is ωρα");
    }
}
