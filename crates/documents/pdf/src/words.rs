//! Glyphs to words: what stands close enough on one base line belongs together.

use std::ops::RangeInclusive;

use crate::marks::{Glyph, Marks, Point};

/// The gap that ends a word is half of the page's usual space between words, within these, in sizes.
const WORD_GAPS: RangeInclusive<f32> = 0.1..=0.12;
/// Gaps like these are spaces between words, in sizes: closer ones are kerning, wider ones separate columns.
const USUAL_SPACES: RangeInclusive<f32> = 0.16..=0.8;
/// A gap this wide ends a word if a space was written there, in sizes.
pub(crate) const SPACE_GAP: f32 = 0.03;
/// Letters of one word may be spaced out by this much, in sizes.
pub(crate) const LETTER_SPACE_MAX: f32 = 0.5;
/// How far a letter may step back over the one before it, in sizes: kerning and accents do.
const OVERLAP_MAX: f32 = 0.5;
/// How far a letter may stand above or below the base line of its word, in sizes.
const STEP_MAX: f32 = 0.2;
/// Letters of one word are turned alike, in degrees.
pub(crate) const TURN_MAX: f32 = 3.0;
/// The same letter drawn again within this distance is a fake of bold type, in sizes.
const DOUBLE_MAX: f32 = 0.1;

/// Where a word may be broken: no letter, whatever width a document gives it.
const ZERO_WIDTH_SPACE: char = '\u{200b}';

/// The four ways of writing, as quarters of a turn clockwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Turn(pub(crate) u8);

impl Turn {
    pub(crate) fn of(angle: f32) -> Self {
        Self(((angle + 45.0) / 90.0).floor() as u8 % 4)
    }

    pub(crate) fn degrees(self) -> u16 {
        u16::from(self.0) * 90
    }

    /// A point as (along the writing, across it downwards).
    pub(crate) fn place(self, point: Point) -> (f32, f32) {
        match self.0 {
            0 => (point.x, point.y),
            1 => (point.y, -point.x),
            2 => (-point.x, -point.y),
            _ => (-point.y, point.x),
        }
    }

    /// The point at (along the writing, across it downwards).
    pub(crate) fn point(self, (along, across): (f32, f32)) -> Point {
        match self.0 {
            0 => Point { x: along, y: across },
            1 => Point { x: -across, y: along },
            2 => Point { x: -along, y: -across },
            _ => Point { x: across, y: -along },
        }
    }
}

/// Glyphs that were written one after another without a gap.
#[derive(Clone, Debug)]
pub(crate) struct Piece {
    /// Indexes into the marks' glyphs.
    pub(crate) glyphs: Vec<u32>,
    pub(crate) turn: Turn,
    /// Not turned by quarters: it keeps to itself.
    pub(crate) is_oblique: bool,
    /// Extent along the writing.
    pub(crate) from: f32,
    pub(crate) to: f32,
    /// Base line, and how far the letters reach from it, across the writing.
    pub(crate) base: f32,
    pub(crate) top: f32,
    pub(crate) bottom: f32,
    pub(crate) size: f32,
    /// Whether a space was written before and after it.
    pub(crate) is_after_space: bool,
    pub(crate) is_before_space: bool,
}

/// The gap that ends a word on this page, in sizes.
pub(crate) fn word_gap(marks: &Marks) -> f32 {
    let letters = marks.glyphs.iter().filter(|glyph| !is_space(marks.text_of(glyph)));
    let steps = letters.clone().zip(letters.skip(1)).map(|(last, next)| Step::between(last, next));
    let mut spaces: Vec<f32> = steps
        .filter(|step| step.off.abs() <= STEP_MAX * step.size && step.turn <= TURN_MAX)
        .map(|step| step.gap / step.size)
        .filter(|gap| USUAL_SPACES.contains(gap))
        .collect();
    let middle = spaces.len() / 2;
    let usual =
        if spaces.is_empty() { 0.0 } else { *spaces.select_nth_unstable_by(middle, f32::total_cmp).1 };
    (usual / 2.0).clamp(*WORD_GAPS.start(), *WORD_GAPS.end())
}

fn is_space(text: &str) -> bool {
    !text.is_empty()
        && text.chars().all(|character| character.is_whitespace() || character == ZERO_WIDTH_SPACE)
}

/// Joins a page's glyphs into pieces, in the order in which they were written.
pub(crate) fn pieces(marks: &Marks) -> Vec<Piece> {
    let mut pieces: Vec<Piece> = Vec::new();
    let mut last: Option<&Glyph> = None;
    let mut is_after_space = false;
    for (index, glyph) in marks.glyphs.iter().enumerate() {
        let text = marks.text_of(glyph);
        if is_space(text) {
            is_after_space = true;
            if let Some(piece) = pieces.last_mut() {
                piece.is_before_space = true;
            }
            continue;
        }
        let step = last.map(|last| Step::between(last, glyph));
        let continues =
            !is_after_space && step.as_ref().is_some_and(|step| step.continues(glyph, marks.word_gap));
        if let Some(piece) = pieces.last_mut().filter(|_| continues) {
            let is_double = step.is_some_and(|step| step.is_double)
                && last.is_some_and(|last| marks.text_of(last) == text);
            if !is_double {
                piece.push(index, glyph);
            }
        } else {
            pieces.push(Piece::new(index, glyph, is_after_space));
        }
        is_after_space = false;
        last = Some(glyph);
    }
    pieces
}

/// How the pen moved from one glyph to the next.
pub(crate) struct Step {
    /// Along the writing, in points.
    pub(crate) gap: f32,
    /// Across the writing, in points.
    pub(crate) off: f32,
    /// Change of direction, in degrees.
    pub(crate) turn: f32,
    pub(crate) size: f32,
    is_double: bool,
}

impl Step {
    pub(crate) fn between(last: &Glyph, next: &Glyph) -> Self {
        let (sin, cos) = last.angle.to_radians().sin_cos();
        let along = |from: Point, to: Point| (to.x - from.x) * cos + (to.y - from.y) * sin;
        let (x, y) = (next.start.x - last.end.x, next.start.y - last.end.y);
        let turn = (next.angle - last.angle).abs();
        let size = last.size.max(next.size);
        let off = y * cos - x * sin;
        Self {
            gap: along(last.end, next.start),
            off,
            turn: turn.min(360.0 - turn),
            size,
            is_double: along(last.start, next.start).abs() <= DOUBLE_MAX * size
                && off.abs() <= DOUBLE_MAX * size,
        }
    }

    fn continues(&self, next: &Glyph, word_gap: f32) -> bool {
        let spaced = if next.letter_space <= LETTER_SPACE_MAX * self.size { next.letter_space } else { 0.0 };
        let gap = if self.gap > 0.0 { (self.gap - spaced).max(0.0) } else { self.gap };
        self.is_double && self.turn <= TURN_MAX
            || gap <= word_gap * self.size
                && gap >= -OVERLAP_MAX * self.size
                && self.off.abs() <= STEP_MAX * self.size
                && self.turn <= TURN_MAX
    }
}

impl Piece {
    fn new(index: usize, glyph: &Glyph, is_after_space: bool) -> Self {
        let turn = Turn::of(glyph.angle);
        let off = (glyph.angle - f32::from(turn.degrees())).abs();
        let mut piece = Self {
            glyphs: Vec::new(),
            turn,
            is_oblique: off.min(360.0 - off) > TURN_MAX,
            from: f32::MAX,
            to: f32::MIN,
            base: turn.place(glyph.start).1,
            top: f32::MAX,
            bottom: f32::MIN,
            size: 0.0,
            is_after_space,
            is_before_space: false,
        };
        piece.push(index, glyph);
        piece
    }

    fn push(&mut self, index: usize, glyph: &Glyph) {
        let ((start, across), (end, across_end)) = (self.turn.place(glyph.start), self.turn.place(glyph.end));
        self.from = self.from.min(start.min(end));
        self.to = self.to.max(start.max(end));
        self.top = self.top.min(across.min(across_end) - glyph.ascent * glyph.size);
        self.bottom = self.bottom.max(across.max(across_end) + glyph.descent * glyph.size);
        self.size = self.size.max(glyph.size);
        self.glyphs.push(index as u32);
    }
}
