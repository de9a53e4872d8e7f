//! A page's glyphs beside the words made of them, for whoever draws the page again and wants its text to be text.

use std::sync::Arc;

use hayro_syntax::Pdf;
use hayro_syntax::page::Resources;

use crate::engine;
use crate::layout::spell::push_letter;
use crate::limits::Limits;
use crate::marks::Marks;
pub use crate::marks::{Content, Written};
use crate::refusal::Refusal;
use crate::text::Page;

/// A document that was opened and found readable.
pub struct Source {
    pdf: Pdf,
    limits: Limits,
}

impl std::fmt::Debug for Source {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Source").field("pages", &self.pdf.pages().len()).finish_non_exhaustive()
    }
}

/// A page with its glyphs.
#[derive(Clone, Debug)]
pub struct Traced {
    /// The page's text model.
    pub page: Page,
    /// Every glyph in the order in which it was drawn.
    pub glyphs: Vec<TracedGlyph>,
    /// For each word of the page its glyphs, as indexes into `glyphs`, in the order of reading.
    pub words: Vec<Vec<u32>>,
    /// What fields and notes say which have no appearance; it goes with [`Source::form_resources`].
    pub written: Written,
    /// Whether a bound was met and the rest of the page was left out.
    pub is_cut: bool,
}

/// One glyph where it was drawn. Lengths are in points from the top-left corner of the page as shown.
#[derive(Clone, Debug)]
pub struct TracedGlyph {
    /// Its Unicode, presentation forms as the letters they present; empty when nobody knows it.
    pub text: String,
    /// Its code in its font; nothing when it was not drawn but told, as a replacement text is.
    pub code: Option<u32>,
    /// Its font: fonts are numbered over the whole document.
    pub font: u32,
    /// Where the pen stood before it.
    pub start: (f32, f32),
    /// Where the pen stood after it, without any spacing that was asked for.
    pub end: (f32, f32),
    /// Angle of the writing in degrees, clockwise from left to right.
    pub angle: f32,
    pub size: f32,
    /// Whether the font says it is bold.
    pub is_bold: bool,
    /// Whether its font counts its glyphs but is not in the document, so that only the letters tell what it looks like.
    pub is_substitute: bool,
    /// Whether it is written downwards, letter below letter: then it starts in the middle of its top edge.
    pub is_vertical: bool,
    /// Drawn invisibly, as under a scan that was read before.
    pub is_invisible: bool,
    /// Spacing between letters that was asked for.
    pub letter_space: f32,
    /// How much wider than high its square is drawn: 1 but for stretched type.
    pub stretch: f32,
    /// The marked content that it belongs to.
    pub content: Content,
}

/// Reads a text string as PDF writes them outside of pages: titles, addresses, alternative texts.
pub fn text_string(bytes: &[u8]) -> String {
    engine::strings::text_string(bytes)
}

impl Source {
    pub fn open(bytes: impl Into<Arc<[u8]>>, limits: &Limits) -> Result<Self, Refusal> {
        Ok(Self { pdf: engine::open(bytes.into(), limits)?, limits: limits.clone() })
    }

    /// The document as the parser sees it.
    pub fn pdf(&self) -> &Pdf {
        &self.pdf
    }

    /// What the document's forms are written with: its own fonts, and one that stands in for others.
    pub fn form_resources(&self) -> [Resources<'_>; 2] {
        engine::form_resources(&self.pdf)
    }

    /// Reads the wanted pages, counted from nought, and shows each. They share one set of budgets.
    pub fn trace(&self, is_wanted: impl Fn(usize) -> bool, mut show: impl FnMut(Traced)) {
        engine::read_pages(&self.pdf, &self.limits, &[], is_wanted, |page, is_cut, marks, words| {
            let glyphs = glyphs(&marks);
            show(Traced { page, glyphs, words, written: marks.written, is_cut });
        });
    }
}

fn glyphs(marks: &Marks) -> Vec<TracedGlyph> {
    let plain = |letter: &str| {
        let mut text = String::with_capacity(letter.len());
        push_letter(&mut text, letter);
        text
    };
    let traced = marks.glyphs.iter().map(|glyph| TracedGlyph {
        text: plain(marks.text_of(glyph)),
        code: glyph.origin.code,
        font: glyph.origin.font,
        start: (glyph.start.x, glyph.start.y),
        end: (glyph.end.x, glyph.end.y),
        angle: glyph.angle,
        size: glyph.size,
        is_bold: glyph.is_bold,
        is_substitute: glyph.origin.is_substitute,
        is_vertical: glyph.origin.is_vertical,
        is_invisible: glyph.is_invisible,
        letter_space: glyph.letter_space,
        stretch: glyph.stretch,
        content: glyph.origin.content,
    });
    traced.collect()
}
