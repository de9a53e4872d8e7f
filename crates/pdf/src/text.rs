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

/// One page.
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
}

/// A run of letters without space between.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Word {
    /// Unicode in logical order, ligatures taken apart.
    pub text: String,
    /// Where it stands.
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
}

/// Words that stand on one base line without a wide gap.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Line {
    /// Its words, as a range of the page's.
    pub words: Range<usize>,
    /// Where it stands.
    pub bbox: Rect,
}

/// Lines that belong together.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Block {
    /// Its lines, as a range of the page's.
    pub lines: Range<usize>,
    /// Where it stands.
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
    /// Its bytes.
    pub bytes: Vec<u8>,
}
