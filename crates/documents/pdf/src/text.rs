//! The text model: what stands on each page, where, and in which order a person would read it.

use std::ops::Range;

/// A box in points from the top-left corner of the page as it is shown (after `/Rotate` and the crop box).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Rect {
    /// Left edge.
    pub x0: f32,
    /// Top edge.
    pub y0: f32,
    /// Right edge.
    pub x1: f32,
    /// Bottom edge.
    pub y1: f32,
}

/// A document's text and what it carries along.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Document {
    /// Pages in order.
    pub pages: Vec<Page>,
    /// Files embedded in the document, in the order of its name tree.
    pub attachments: Vec<Attachment>,
    /// What was damaged or left out, in plain sentences.
    pub warnings: Vec<String>,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Page {
    /// From 1.
    pub number: u32,
    /// Width in points, as shown.
    pub width: f32,
    /// Height in points, as shown.
    pub height: f32,
    /// Every word, in reading order.
    pub words: Vec<Word>,
    /// Lines as ranges of `words`.
    pub lines: Vec<Line>,
    /// Blocks (paragraphs, columns, cells that stand together) as ranges of `lines`.
    pub blocks: Vec<Block>,
    /// Straight horizontal and vertical strokes and thin fills: the rules of tables.
    pub rules: Vec<Rule>,
    /// Share of the page that pictures cover, 0 to 1.
    pub image_share: f32,
    /// Glyphs whose letters the document does not tell. Within a word each stands as U+FFFD; a word of nothing else is
    /// left out.
    pub unknown_glyphs: usize,
    /// Filled figures with curves: letters that were turned into outlines are such.
    pub shapes: usize,
}

/// A page with fewer letters has hardly any text of its own: a stamp, a page number.
const LETTERS_MIN: usize = 60;
/// The share of a page above which a picture may be a scan.
const SCAN_SHARE: f32 = 0.25;
/// A page with this many letters that the document does not tell has text that only the eye can read.
const UNKNOWN_MIN: usize = 20;
/// A page with this many figures may be text that was turned into outlines.
const SHAPES_MIN: usize = 200;

impl Page {
    /// Whether what a person reads here is most likely a picture, outlines, or letters that the document does not tell.
    /// A scan with a layer of invisible text is not: that text is used.
    pub fn is_scan(&self) -> bool {
        let letters =
            self.words.iter().flat_map(|word| word.text.chars()).filter(|letter| letter.is_alphanumeric());
        let is_drawn =
            self.image_share >= SCAN_SHARE || self.unknown_glyphs >= UNKNOWN_MIN || self.shapes >= SHAPES_MIN;
        is_drawn && letters.take(LETTERS_MIN).count() < LETTERS_MIN
    }

    /// Whether any of it was read by OCR.
    pub fn is_recognised(&self) -> bool {
        self.words.iter().any(|word| word.confidence.is_some())
    }
}

/// A run of letters without space between.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Word {
    /// Unicode in logical order, ligatures taken apart.
    pub text: String,
    pub bbox: Rect,
    /// Where each character of `text` begins along the direction of writing, and where the last one ends.
    pub edges: Vec<f32>,
    /// Size in points as shown.
    pub font_size: f32,
    /// Whether the font says it is bold.
    pub is_bold: bool,
    /// Direction of the writing in degrees, clockwise: 0, 90, 180 or 270.
    pub rotation: u16,
    /// Drawn invisibly, as under a scan that was read before.
    pub is_invisible: bool,
    /// How sure OCR is of it, 0 to 1; none for text that the document itself tells.
    pub confidence: Option<f32>,
}

/// Words that stand on one base line without a wide gap.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Line {
    /// Its words, as a range of the page's.
    pub words: Range<usize>,
    pub bbox: Rect,
}

/// Lines that belong together.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Block {
    /// Its lines, as a range of the page's.
    pub lines: Range<usize>,
    pub bbox: Rect,
}

/// A straight line drawn on the page.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Rule {
    /// Its extent: thin in one direction.
    pub bbox: Rect,
}

/// A file inside the file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Attachment {
    /// Its name as written in the document.
    pub name: String,
    /// What the document says it is, such as `text/xml`.
    pub media_type: Option<String>,
    /// How it relates to the document: `Alternative`, `Data`, `Source` …
    pub relation: Option<String>,
    pub bytes: Vec<u8>,
}

/// Whether a letter is of a script that runs from right to left.
pub fn is_leftward_letter(letter: char) -> bool {
    matches!(letter, '\u{590}'..='\u{8ff}' | '\u{fb1d}'..='\u{fdff}' | '\u{fe70}'..='\u{fefc}')
        && !letter.is_numeric()
}
