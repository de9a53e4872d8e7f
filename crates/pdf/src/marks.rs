//! What the engine finds on a page before anybody makes words of it.

use crate::text::{Rect, Rule};

/// A point on the page, in points from its top-left corner.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Point {
    pub(crate) x: f32,
    pub(crate) y: f32,
}

/// Everything drawn on one page that matters to text.
#[derive(Debug, Default)]
pub(crate) struct Marks {
    pub(crate) glyphs: Vec<Glyph>,
    /// The glyphs' Unicode, one after another.
    pub(crate) text: String,
    pub(crate) rules: Vec<Rule>,
    /// Filled figures with curves.
    pub(crate) shapes: usize,
    /// Boxes of pictures.
    pub(crate) images: Vec<Rect>,
    /// The gap that ends a word on this page, in sizes.
    pub(crate) word_gap: f32,
    /// Whether a bound was met and the rest of the page was left out.
    pub(crate) is_cut: bool,
}

/// One glyph, placed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Glyph {
    /// Its Unicode as a range of [`Marks::text`]; empty when nobody knows it.
    pub(crate) text: (u32, u32),
    /// Where the pen stood before it.
    pub(crate) start: Point,
    /// Where the pen stood after it, without any spacing that was asked for.
    pub(crate) end: Point,
    /// Angle of the writing in degrees, clockwise from left to right: 0 to 360.
    pub(crate) angle: f32,
    /// Size in points as shown.
    pub(crate) size: f32,
    /// How far it reaches above the base line, in sizes.
    pub(crate) ascent: f32,
    /// How far it reaches below the base line, in sizes (positive).
    pub(crate) descent: f32,
    pub(crate) is_bold: bool,
    pub(crate) is_invisible: bool,
    /// Spacing between letters that was asked for here, in points.
    pub(crate) letter_space: f32,
    /// How sure OCR is of it, in percent; none where the document itself tells.
    pub(crate) percent: Option<u8>,
}

impl Marks {
    /// The glyph's Unicode.
    pub(crate) fn text_of(&self, glyph: &Glyph) -> &str {
        &self.text[glyph.text.0 as usize..glyph.text.1 as usize]
    }

    /// Keeps a text and says where.
    pub(crate) fn keep(&mut self, text: &str) -> (u32, u32) {
        let start = self.text.len();
        self.text.push_str(text);
        (start as u32, self.text.len() as u32)
    }
}
