//! Lines of writing as outlines, in the bundled fonts, so that a map looks the same on every machine.
//!
//! Latin, Greek and Cyrillic are set from left to right with kerning. There is no shaping: scripts that need it, and
//! letters that the fonts do not have, are left out and reported.

use crate::draw::{Path, Pixel};
use crate::spec::Font;
use skrifa::charmap::Charmap;
use skrifa::instance::{LocationRef, Size};
use skrifa::metrics::GlyphMetrics;
use skrifa::outline::{DrawSettings, OutlineGlyphCollection, OutlinePen};
use skrifa::raw::TableProvider as _;
use skrifa::raw::tables::kern::{Subtable0, SubtableKind};
use skrifa::{FontRef, GlyphId, MetadataProvider as _};
use std::collections::BTreeSet;
use unicode_normalization::UnicodeNormalization as _;
use unicode_normalization::char::is_combining_mark;

const SANS: &[u8] = include_bytes!("../fonts/sans-regular.otf");
const SANS_STRONG: &[u8] = include_bytes!("../fonts/sans-semibold.otf");
const SERIF: &[u8] = include_bytes!("../fonts/serif-regular.otf");
const SERIF_ITALIC: &[u8] = include_bytes!("../fonts/serif-italic.otf");

/// Straight pieces of one curve of a letter, at most.
const CURVE_PIECES_MAX: f32 = 24.0;

/// A way of writing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Face {
    /// For most things.
    Plain(Font),
    /// For titles and what must be seen first.
    Strong(Font),
    /// For water.
    Slanted,
}

/// How a line is written.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Hand {
    pub(crate) face: Face,
    /// The size of type in pixels.
    pub(crate) size: f32,
    /// Room between letters, in sizes of type.
    pub(crate) spacing: f32,
}

/// A line of letters with where each stands.
#[derive(Debug)]
pub(crate) struct Line {
    hand: Hand,
    glyphs: Vec<(GlyphId, f32)>,
    pub(crate) width: f32,
}

/// The bundled fonts.
pub(crate) struct Lettering {
    sans: Typeface,
    sans_strong: Typeface,
    serif: Typeface,
    serif_italic: Typeface,
    /// Letters that no font had.
    pub(crate) missing: BTreeSet<char>,
}

struct Typeface {
    charmap: Charmap<'static>,
    metrics: GlyphMetrics<'static>,
    outlines: OutlineGlyphCollection<'static>,
    kerning: Option<Subtable0<'static>>,
    units: f32,
}

impl Typeface {
    fn new(bytes: &'static [u8]) -> Self {
        let font = FontRef::new(bytes).expect("the bundled fonts are whole");
        let kern = font.kern().ok();
        let tables = kern.iter().flat_map(|kern| kern.subtables()).flatten();
        let kerning = tables.filter_map(|table| table.kind().ok()).find_map(|kind| match kind {
            SubtableKind::Format0(pairs) => Some(pairs),
            _ => None,
        });
        let location = LocationRef::default();
        Self {
            charmap: font.charmap(),
            metrics: font.glyph_metrics(Size::unscaled(), location),
            outlines: font.outline_glyphs(),
            kerning,
            units: f32::from(font.metrics(Size::unscaled(), location).units_per_em),
        }
    }
}

impl Lettering {
    pub(crate) fn new() -> Self {
        Self {
            sans: Typeface::new(SANS),
            sans_strong: Typeface::new(SANS_STRONG),
            serif: Typeface::new(SERIF),
            serif_italic: Typeface::new(SERIF_ITALIC),
            missing: BTreeSet::new(),
        }
    }

    fn typeface(&self, face: Face) -> &Typeface {
        match face {
            Face::Plain(Font::Sans) => &self.sans,
            Face::Strong(Font::Sans) => &self.sans_strong,
            Face::Plain(Font::Serif) | Face::Strong(Font::Serif) => &self.serif,
            Face::Slanted => &self.serif_italic,
        }
    }

    /// Sets a line.
    pub(crate) fn set(&mut self, text: &str, hand: Hand) -> Line {
        let text = self.writable(text, hand.face);
        let typeface = self.typeface(hand.face);
        let scale = hand.size / typeface.units;
        let mut glyphs: Vec<(GlyphId, f32)> = Vec::new();
        let mut x = 0.0;
        for glyph in text.chars().filter_map(|letter| typeface.charmap.map(letter)) {
            if let (Some((last, _)), Some(pairs)) = (glyphs.last(), &typeface.kerning) {
                x += pairs.kerning(*last, glyph).unwrap_or(0) as f32 * scale;
            }
            glyphs.push((glyph, x));
            x += typeface.metrics.advance_width(glyph).unwrap_or(0.0) * scale + hand.spacing * hand.size;
        }
        let width = if glyphs.is_empty() { 0.0 } else { x - hand.spacing * hand.size };
        Line { hand, glyphs, width }
    }

    /// A text without the letters that a face does not have, which are noted, and without the blanks that they leave: a
    /// line is centred by what can be read of it.
    fn writable(&mut self, text: &str, face: Face) -> String {
        let charmap = &self.typeface(face).charmap;
        let letters = text.nfc().filter(|letter| !is_unseen(*letter));
        // An accent that is in no letter would stand beside its own.
        let (known, missing): (Vec<char>, Vec<char>) =
            letters.partition(|letter| charmap.map(*letter).is_some() && !is_combining_mark(*letter));
        let known = String::from_iter(known);
        if missing.is_empty() {
            return known.trim().to_owned();
        }
        self.missing.extend(missing);
        known.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    /// Sets a line that is at most `width` pixels wide, in smaller type if need be.
    pub(crate) fn set_within(&mut self, text: &str, hand: Hand, width: f32) -> Line {
        let line = self.set(text, hand);
        if line.width <= width || line.width == 0.0 {
            return line;
        }
        self.set(text, Hand { size: hand.size * width / line.width, ..hand })
    }

    /// Adds the outlines of a line that begins at `start`, on the line that letters stand on.
    pub(crate) fn draw(&self, line: &Line, start: Pixel, path: &mut Path) {
        let typeface = self.typeface(line.hand.face);
        let size = Size::new(line.hand.size);
        for (glyph, x) in &line.glyphs {
            let Some(outline) = typeface.outlines.get(*glyph) else { continue };
            let mut pen = Pen { start: [start[0] + x, start[1]], points: Vec::new(), path };
            // A glyph that cannot be drawn is a gap, which is what a reader of the map would make of it too.
            let _ = outline.draw(DrawSettings::unhinted(size, LocationRef::default()), &mut pen);
        }
    }
}

/// Whether a character only says how others are to be written.
fn is_unseen(letter: char) -> bool {
    letter.is_control()
        || matches!(letter, '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
}

/// A text in capitals, which in Greek carry no accents.
pub(crate) fn capitals(text: &str) -> String {
    let plain = |letter: char| match letter {
        'Ά' => 'Α',
        'Έ' => 'Ε',
        'Ή' => 'Η',
        'Ί' => 'Ι',
        'Ό' => 'Ο',
        'Ύ' => 'Υ',
        'Ώ' => 'Ω',
        other => other,
    };
    text.to_uppercase().chars().map(plain).collect()
}

/// Turns the curves of letters into straight pieces.
struct Pen<'a> {
    start: Pixel,
    points: Vec<Pixel>,
    path: &'a mut Path,
}

impl Pen<'_> {
    fn at(&self, x: f32, y: f32) -> Pixel {
        [self.start[0] + x, self.start[1] - y]
    }

    fn curve(&mut self, controls: [Pixel; 2], to: Pixel) {
        let from = self.points.last().copied().unwrap_or(to);
        let [a, b] = controls;
        let length = |p: Pixel, q: Pixel| (p[0] - q[0]).abs() + (p[1] - q[1]).abs();
        let way = length(from, a) + length(a, b) + length(b, to);
        let pieces = way.sqrt().ceil().clamp(2.0, CURVE_PIECES_MAX);
        for piece in 1..=pieces as usize {
            let t = piece as f32 / pieces;
            let u = 1.0 - t;
            let weights = [u * u * u, 3.0 * u * u * t, 3.0 * u * t * t, t * t * t];
            let mix =
                |i: usize| weights[0] * from[i] + weights[1] * a[i] + weights[2] * b[i] + weights[3] * to[i];
            self.points.push([mix(0), mix(1)]);
        }
    }
}

impl OutlinePen for Pen<'_> {
    fn move_to(&mut self, x: f32, y: f32) {
        self.points.clear();
        self.points.push(self.at(x, y));
    }

    fn line_to(&mut self, x: f32, y: f32) {
        self.points.push(self.at(x, y));
    }

    fn quad_to(&mut self, cx: f32, cy: f32, x: f32, y: f32) {
        let (control, to) = (self.at(cx, cy), self.at(x, y));
        let from = self.points.last().copied().unwrap_or(to);
        let towards = |end: Pixel| {
            [end[0] + (control[0] - end[0]) * 2.0 / 3.0, end[1] + (control[1] - end[1]) * 2.0 / 3.0]
        };
        self.curve([towards(from), towards(to)], to);
    }

    fn curve_to(&mut self, ax: f32, ay: f32, bx: f32, by: f32, x: f32, y: f32) {
        self.curve([self.at(ax, ay), self.at(bx, by)], self.at(x, y));
    }

    fn close(&mut self) {
        self.path.add(self.points.drain(..), true);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_that_are_left_out_leave_no_room_behind() {
        let mut lettering = Lettering::new();
        let hand = Hand { face: Face::Strong(Font::Serif), size: 10.0, spacing: 0.1 };
        let plain = lettering.set("Tokyo by day", hand).width;
        for text in ["東京 Tokyo by day", "Tokyo by 東京 day", " Tokyo by day 東京 ", " Tokyo by day "]
        {
            assert_eq!(lettering.set(text, hand).width, plain, "{text:?}");
        }
        assert_eq!(lettering.set("東京", hand).width, 0.0);
        assert_eq!(String::from_iter(&lettering.missing), "京東");
        let plain = lettering.set("Café", hand).width;
        assert_eq!(lettering.set("Cafe\u{301}", hand).width, plain, "an accent that was written apart");
        assert_eq!(lettering.set("\u{202e}Café\u{200b}", hand).width, plain);
        assert_eq!(lettering.missing.len(), 2);
    }
}
