//! Words to lines, blocks and reading order.

mod corridors;
mod order;
mod rows;
pub(crate) mod spell;

use crate::marks::Marks;
use crate::text::{Block, Line, Page, Rect, Word};
use crate::words::{Turn, pieces, word_gap};

/// A word with its place along and across the direction of writing.
#[derive(Clone, Debug)]
pub(crate) struct Placed {
    pub(crate) word: Word,
    pub(crate) area: Area,
    pub(crate) base: f32,
    /// Its glyphs in the order of reading, as indexes into the marks'.
    pub(crate) glyphs: Vec<u32>,
}

/// An extent along and across the direction of writing.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Area {
    pub(crate) from: f32,
    pub(crate) to: f32,
    pub(crate) top: f32,
    pub(crate) bottom: f32,
}

impl Area {
    pub(crate) const NONE: Self = Self { from: f32::MAX, to: f32::MIN, top: f32::MAX, bottom: f32::MIN };

    pub(crate) fn with(self, other: Self) -> Self {
        Self {
            from: self.from.min(other.from),
            to: self.to.max(other.to),
            top: self.top.min(other.top),
            bottom: self.bottom.max(other.bottom),
        }
    }
}

/// A line before it has found its place in the page.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    pub(crate) words: Vec<Placed>,
    pub(crate) area: Area,
    pub(crate) base: f32,
    pub(crate) size: f32,
    pub(crate) is_rtl: bool,
}

/// Fills the page's words, lines, blocks and rules; answers each word's glyphs in the order of reading.
pub(crate) fn lay_out(marks: &mut Marks, page: &mut Page) -> Vec<Vec<u32>> {
    page.rules = std::mem::take(&mut marks.rules);
    page.shapes = marks.shapes;
    page.unknown_glyphs = marks.glyphs.iter().filter(|glyph| marks.text_of(glyph).is_empty()).count();
    marks.word_gap = word_gap(marks);
    let marks = &*marks;
    let mut glyphs = Vec::new();
    let mut by_turn: [Vec<_>; 4] = Default::default();
    for piece in pieces(marks) {
        by_turn[usize::from(piece.turn.0)].push(piece);
    }
    // The direction that most of the page is written in is read first.
    let mut turns: Vec<u8> = (0..4).collect();
    turns.sort_by_key(|turn| {
        std::cmp::Reverse(by_turn[usize::from(*turn)].iter().map(|piece| piece.glyphs.len()).sum::<usize>())
    });
    for turn in turns {
        let pieces = std::mem::take(&mut by_turn[usize::from(turn)]);
        for block in order::blocks(rows::rows(pieces, marks)) {
            push_block(page, block, Turn(turn), &mut glyphs);
        }
    }
    glyphs
}

fn push_block(page: &mut Page, rows: Vec<Row>, turn: Turn, glyphs: &mut Vec<Vec<u32>>) {
    let first_line = page.lines.len();
    let mut block = Area::NONE;
    for row in rows {
        let first_word = page.words.len();
        for placed in row.words {
            page.words.push(placed.word);
            glyphs.push(placed.glyphs);
        }
        page.lines.push(Line { words: first_word..page.words.len(), bbox: bbox(row.area, turn) });
        block = block.with(row.area);
    }
    page.blocks.push(Block { lines: first_line..page.lines.len(), bbox: bbox(block, turn) });
}

/// The box of an extent, on the page.
pub(crate) fn bbox(area: Area, turn: Turn) -> Rect {
    let (one, other) = (turn.point((area.from, area.top)), turn.point((area.to, area.bottom)));
    Rect { x0: one.x.min(other.x), y0: one.y.min(other.y), x1: one.x.max(other.x), y1: one.y.max(other.y) }
}
