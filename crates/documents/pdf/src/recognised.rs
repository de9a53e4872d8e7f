//! What OCR read off the picture of a page, put where the document's own text would be.

use crate::marks::{Content, Glyph, Marks, Origin, Point};
use crate::text::Rect;
use crate::words::Turn;

/// From the top of its highest to the bottom of its lowest letters, a font has this share of its size.
const LETTERS_SHARE: f32 = 0.925;
/// Words of one page that are taken over: a page with more is not one that a person reads.
const WORDS_MAX: usize = 20_000;

/// One page as OCR read it. All lengths are in dots of its picture.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Recognised {
    /// Which page, from 1.
    pub page: u32,
    pub width: f32,
    pub height: f32,
    pub lines: Vec<RecognisedLine>,
}

/// A line of writing.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RecognisedLine {
    /// Direction of the writing in degrees, clockwise: 0, 90, 180 or 270.
    pub rotation: u16,
    /// From the top of its highest to the bottom of its lowest letters, whether or not it has such.
    pub height: f32,
    /// How much of that lies below the base line.
    pub below: f32,
    /// How far the base line lies above the bottom of the line's box at its beginning, and how much more at each dot
    /// along it.
    pub base: (f32, f32),
    pub bbox: Rect,
    /// Its words, in the order of writing.
    pub words: Vec<RecognisedWord>,
}

/// A word of such a line.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RecognisedWord {
    pub text: String,
    pub bbox: Rect,
    /// How sure OCR is of it, in percent.
    pub percent: u8,
}

/// Adds what was read to a page's marks, in points. Letters that the document itself does not tell give way to it, those
/// that it tells come first.
pub(crate) fn add(marks: &mut Marks, read: &Recognised, width: f32) {
    let told = std::mem::take(&mut marks.glyphs);
    marks.glyphs = told.into_iter().filter(|glyph| glyph.text.0 < glyph.text.1).collect();
    let known = marks.glyphs.len();
    let points = width / read.width.max(1.0);
    let mut left = WORDS_MAX;
    for line in &read.lines {
        let line = Placed::new(line, points);
        for word in line.line.words.iter().take(left) {
            let is_told =
                marks.glyphs[..known].iter().any(|glyph| stands_in(glyph, scaled(word.bbox, points)));
            if !is_told {
                line.write(word, marks);
            }
        }
        left = left.saturating_sub(line.line.words.len());
    }
}

/// Whether the middle of a letter is within a box.
fn stands_in(glyph: &Glyph, area: Rect) -> bool {
    let (x, y) = ((glyph.start.x + glyph.end.x) / 2.0, (glyph.start.y + glyph.end.y) / 2.0);
    let (sin, cos) = glyph.angle.to_radians().sin_cos();
    let up = (glyph.ascent - glyph.descent) / 2.0 * glyph.size;
    let (x, y) = (x + up * sin, y - up * cos);
    (area.x0..=area.x1).contains(&x) && (area.y0..=area.y1).contains(&y)
}

fn scaled(area: Rect, by: f32) -> Rect {
    Rect { x0: area.x0 * by, y0: area.y0 * by, x1: area.x1 * by, y1: area.y1 * by }
}

/// A line on the page, in points.
struct Placed<'r> {
    line: &'r RecognisedLine,
    points: f32,
    turn: Turn,
    size: f32,
    /// Where its box begins along the writing, and ends across it.
    start: f32,
    bottom: f32,
}

impl<'r> Placed<'r> {
    fn new(line: &'r RecognisedLine, points: f32) -> Self {
        let turn = Turn::of(f32::from(line.rotation));
        let (start, _, _, bottom) = extent(turn, scaled(line.bbox, points));
        Self { line, points, turn, size: line.height * points / LETTERS_SHARE, start, bottom }
    }

    fn base_at(&self, along: f32) -> f32 {
        let (up, slope) = self.line.base;
        self.bottom - up * self.points - slope * (along - self.start)
    }

    /// Writes a word letter by letter, all of them equally wide, and a space after it.
    fn write(&self, word: &RecognisedWord, marks: &mut Marks) {
        let (from, to, ..) = extent(self.turn, scaled(word.bbox, self.points));
        let count = word.text.chars().count().max(1) as f32;
        let below = self.line.below * self.points / self.size;
        for (index, character) in word.text.chars().chain([' ']).enumerate() {
            let along = |letters: f32| from + (to - from) * (letters / count).min(1.0);
            let (start, end) = (along(index as f32), along(index as f32 + 1.0));
            let at = |along: f32| -> Point { self.turn.point((along, self.base_at(along))) };
            let text = marks.keep(character.encode_utf8(&mut [0; 4]));
            marks.glyphs.push(Glyph {
                text,
                start: at(start),
                end: at(end),
                angle: f32::from(self.turn.degrees()),
                size: self.size,
                ascent: LETTERS_SHARE - below,
                descent: below,
                is_bold: false,
                is_invisible: false,
                letter_space: 0.0,
                stretch: 1.0,
                origin: Origin {
                    code: None,
                    font: 0,
                    is_substitute: false,
                    is_vertical: false,
                    content: Content::Unmarked,
                },
                percent: Some(word.percent.min(100)),
            });
        }
    }
}

/// Where a box begins and ends along the writing, and across it.
fn extent(turn: Turn, area: Rect) -> (f32, f32, f32, f32) {
    let one = turn.place(Point { x: area.x0, y: area.y0 });
    let other = turn.place(Point { x: area.x1, y: area.y1 });
    (one.0.min(other.0), one.0.max(other.0), one.1.min(other.1), one.1.max(other.1))
}
