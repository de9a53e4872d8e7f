//! Replacement texts: what a document says that a group of glyphs really reads.

use crate::marks::{Glyph, Marks, Origin, Point};

/// Letters that one glyph may stand for.
const LIGATURE_MAX: usize = 8;

/// Lets the glyphs from `first` on read `text`.
pub(crate) fn replace(marks: &mut Marks, first: usize, text: &str) {
    let Some(glyphs) = marks.glyphs.get(first..).filter(|glyphs| !glyphs.is_empty()) else {
        return;
    };
    let shown: String = glyphs.iter().flat_map(|glyph| marks.text_of(glyph).chars()).collect();
    if squeeze(&shown) == squeeze(text) {
        return;
    }
    let (head, tail) = (glyphs[0], glyphs[glyphs.len() - 1]);
    let count = text.chars().count();
    // Many programs say of every single glyph what it is.
    if glyphs.len() == 1 && (1..=LIGATURE_MAX).contains(&count) && !text.contains(char::is_whitespace) {
        let text = marks.keep(text);
        marks.glyphs[first].text = text;
        return;
    }
    if !is_one_line(glyphs) {
        // A text over several lines cannot be laid over its glyphs; they speak for themselves where they can.
        let is_readable = glyphs.iter().all(|glyph| glyph.text.0 < glyph.text.1);
        if is_readable {
            return;
        }
    }
    marks.glyphs.truncate(first);
    let origin = Origin { code: None, ..head.origin };
    for (index, character) in text.chars().enumerate() {
        let at = |share: f32| Point {
            x: head.start.x + (tail.end.x - head.start.x) * share,
            y: head.start.y + (tail.end.y - head.start.y) * share,
        };
        let text = marks.keep(character.encode_utf8(&mut [0; 4]));
        let (from, to) = (index as f32 / count as f32, (index + 1) as f32 / count as f32);
        marks.glyphs.push(Glyph { text, start: at(from), end: at(to), letter_space: 0.0, origin, ..head });
    }
}

fn squeeze(text: &str) -> String {
    text.chars().filter(|character| !character.is_whitespace()).collect()
}

fn is_one_line(glyphs: &[Glyph]) -> bool {
    let head = glyphs[0];
    let (sin, cos) = head.angle.to_radians().sin_cos();
    glyphs.iter().all(|glyph| {
        let (x, y) = (glyph.start.x - head.start.x, glyph.start.y - head.start.y);
        (y * cos - x * sin).abs() <= head.size * 0.5 && (glyph.angle - head.angle).abs() < 1.0
    })
}
