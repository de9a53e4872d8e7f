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
    /// What fields and notes say which have no appearance.
    pub(crate) written: Written,
    /// The gap that ends a word on this page, in sizes.
    pub(crate) word_gap: f32,
    /// Whether a bound was met and the rest of the page was left out.
    pub(crate) is_cut: bool,
}

/// What fields and notes say which have no appearance, as the instructions that write it in the space of the page.
#[derive(Clone, Debug, Default)]
pub struct Written {
    /// What is written in fonts of the document.
    pub in_own_fonts: String,
    /// What is written in a font that stands in for one that is not there, or lacks letters.
    pub in_a_stand_in: String,
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
    /// How much wider than high its square is drawn.
    pub(crate) stretch: f32,
    /// Which character of which font it is.
    pub(crate) origin: Origin,
}

/// Where a glyph comes from.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Origin {
    /// Its code in its font; nothing when it was not drawn but told, as a replacement text is.
    pub(crate) code: Option<u32>,
    /// Its font, by number.
    pub(crate) font: u32,
    /// Whether that counts its glyphs but is not in the document.
    pub(crate) is_substitute: bool,
    /// Whether it is written downwards, letter below letter.
    pub(crate) is_vertical: bool,
    /// The marked content that it belongs to.
    pub(crate) content: Content,
}

/// The marked content that a glyph belongs to, as the structure of a tagged document names it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Content {
    /// None that the structure could name.
    #[default]
    Unmarked,
    /// Not part of the document proper: running heads, page numbers, decoration.
    Artifact,
    /// What a form field shows: its value.
    Field,
    /// What somebody wrote on the page with a viewer.
    Note,
    /// The content with this number; of a form where one is named by its object number, else of the page.
    Marked {
        /// The content's number.
        number: i32,
        /// The form's object number.
        form: Option<u32>,
    },
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
