//! Lines of glyphs, each in its own place and direction.

use ode_pdf::text::is_leftward_letter;
use ode_pdf::trace::{Content, Traced};

use super::faces::Spot;
use super::script::Way;

/// Glyphs of a line are turned alike, in degrees; others are drawn as shapes.
const TURN_MAX: f32 = 0.5;

/// Stands for a letter that the document does not tell, so that nobody takes the rest of its word for the whole.
const UNKNOWN: &str = "\u{fffd}";

/// Lines are stretched by this much at most; letters of others bring their own width.
const STRETCHES: std::ops::RangeInclusive<f32> = 0.1..=10.0;

/// A glyph in its line. Lengths are in points.
#[derive(Clone, Debug)]
pub(crate) struct Mark {
    /// Which of the page's traced glyphs it is; nothing for letters that only continue a word.
    pub(crate) traced: Option<u32>,
    pub(crate) text: String,
    /// Whether it is shown without being part of the text: a hyphen at the end of a line, and what comes after it.
    pub(crate) is_only_shown: bool,
    /// Where it is in the fonts of the result; nothing when it is not seen as text.
    pub(crate) spot: Option<Spot>,
    /// Whether it is shown in a font of the reader's, for the document has none.
    pub(crate) is_foreign: bool,
    /// Along the line, from its start.
    pub(crate) from: f32,
    /// How far it reaches along the line.
    pub(crate) width: f32,
    /// Across the line, downwards.
    pub(crate) down: f32,
    pub(crate) size: f32,
    pub(crate) colour: [u8; 4],
    /// Whether a word begins with it, other than the first.
    pub(crate) is_after_space: bool,
    pub(crate) content: Content,
}

#[derive(Clone, Debug)]
pub(crate) struct Line {
    /// Where it starts, on its base line.
    pub(crate) start: (f32, f32),
    /// In degrees, clockwise.
    pub(crate) angle: f32,
    pub(crate) marks: Vec<Mark>,
    pub(crate) is_from_right: bool,
    /// Whether it is written downwards, letter below letter.
    pub(crate) is_vertical: bool,
    /// Whether it goes on after a space as another line.
    pub(crate) is_before_space: bool,
    /// Extent along the line.
    pub(crate) width: f32,
    /// How much wider than it is it is drawn. Lengths along the line are before that.
    pub(crate) stretch: f32,
}

impl Line {
    /// The size of its largest letter.
    pub(crate) fn size(&self) -> f32 {
        self.marks.iter().map(|mark| mark.size).fold(0.0, f32::max)
    }

    /// Whether a browser writes it downwards itself: all of its letters are in a font of the reader's.
    pub(crate) fn is_upright(&self) -> bool {
        self.is_vertical && self.stretch == 1.0 && self.marks.iter().all(|mark| mark.is_foreign)
    }

    /// The part of the line with these marks, as a line of its own.
    pub(crate) fn part(&self, marks: std::ops::Range<usize>) -> Self {
        let mut marks = self.marks[marks].to_vec();
        let from = marks.first().map_or(0.0, |mark| mark.from);
        for mark in &mut marks {
            mark.from -= from;
        }
        if let Some(first) = marks.first_mut() {
            first.is_after_space = false;
        }
        let width = marks.iter().map(|mark| mark.from + mark.width).fold(0.0, f32::max);
        let (sin, cos) = self.angle.to_radians().sin_cos();
        // From the right, a part ends where it would begin otherwise.
        let by = if self.is_from_right { self.width - from - width } else { from } * self.stretch;
        let start = (self.start.0 + by * cos, self.start.1 + by * sin);
        Self { start, marks, width, ..self.clone() }
    }
}

/// The lines of a page, block by block, and for each glyph that may be set as text how much its line is stretched.
pub(crate) fn lines(traced: &Traced) -> (Vec<Vec<Line>>, Vec<Option<f32>>) {
    let mut may_be_text = vec![None; traced.glyphs.len()];
    let mut blocks = Vec::new();
    for block in &traced.page.blocks {
        let lines = traced.page.lines[block.lines.clone()].iter();
        let mut lines: Vec<Line> =
            lines.filter_map(|line| one_line(traced, line.words.clone(), &mut may_be_text)).collect();
        join_hyphenated(&mut lines);
        if !lines.is_empty() {
            blocks.push(lines);
        }
    }
    (blocks, may_be_text)
}

/// Makes words whole that were hyphenated: the line where one begins has all of its letters, and the hyphen and the
/// rest are only shown.
fn join_hyphenated(lines: &mut [Line]) {
    for at in 1..lines.len() {
        let (before, after) = lines.split_at_mut(at);
        let (Some(first), Some(second)) = (before.last_mut(), after.first_mut()) else {
            continue;
        };
        let Some((hyphen, letters)) = first.marks.split_last_mut() else {
            continue;
        };
        let is_hyphen = matches!(hyphen.text.as_str(), "-" | "\u{ad}");
        let ends_word = letters.last().is_some_and(|mark| mark.text.ends_with(char::is_alphabetic));
        let goes_on = second.marks.first().is_some_and(|mark| mark.text.starts_with(char::is_lowercase));
        if !is_hyphen || hyphen.is_after_space || !ends_word || !goes_on {
            continue;
        }
        hyphen.is_only_shown = true;
        let end = hyphen.from + hyphen.width;
        let length = 1 + second.marks[1..].iter().take_while(|mark| !mark.is_after_space).count();
        for mark in &mut second.marks[..length] {
            first.marks.push(Mark { traced: None, from: end, width: 0.0, ..mark.clone() });
            mark.is_only_shown = true;
        }
    }
}

fn one_line(traced: &Traced, words: std::ops::Range<usize>, may_be_text: &mut [Option<f32>]) -> Option<Line> {
    let letters = || traced.words[words.clone()].iter().flat_map(|word| letters_of(traced, word));
    let from_right = letters().filter(|letter| is_leftward_letter(*letter)).count();
    let is_from_right =
        from_right * 2 > letters().filter(|letter| letter.is_alphabetic()).count() && from_right > 0;
    // A glyph that stands for several words has no place of its own in a line that goes both ways.
    let is_settled = from_right == 0 || !letters().any(char::is_whitespace);
    let mut words: Vec<&[u32]> = traced.words[words].iter().map(Vec::as_slice).collect();
    if !is_from_right && from_right > 0 {
        order_from_right(traced, &mut words);
    }
    let glyphs: Vec<(u32, bool)> = words
        .into_iter()
        .flat_map(|word| word.iter().enumerate().map(|(at, glyph)| (*glyph, at == 0)))
        .collect();
    let first = &traced.glyphs[glyphs.first()?.0 as usize];
    let (sin, cos) = first.angle.to_radians().sin_cos();
    let along = |(x, y): (f32, f32)| x * cos + y * sin;
    let across = |(x, y): (f32, f32)| y * cos - x * sin;
    let ends = || {
        glyphs.iter().flat_map(|(glyph, _)| {
            let glyph = &traced.glyphs[*glyph as usize];
            [along(glyph.start), along(glyph.end)]
        })
    };
    let (left, right) = (ends().fold(f32::MAX, f32::min), ends().fold(f32::MIN, f32::max));
    let base = across(first.start);
    // Letters before the first one belong to it still: a line starts where its leftmost letter does.
    let origin = if is_from_right { left } else { along(first.start) };
    let stretch = usual_stretch(traced, &glyphs);
    let mut marks = Vec::with_capacity(glyphs.len());
    for (order, (index, is_word_start)) in glyphs.iter().enumerate() {
        let glyph = &traced.glyphs[*index as usize];
        let (start, end) = (along(glyph.start), along(glyph.end));
        let turn = (glyph.angle - first.angle).abs();
        let is_turned = turn.min(360.0 - turn) > TURN_MAX;
        // A pen that goes back stands on the other side of a letter than a browser's.
        let is_backwards = end < start && (is_from_right || Way::of(&glyph.text) == Way::FromRight);
        let can_be_text = is_settled && !is_backwards && !is_turned && !glyph.is_invisible;
        may_be_text[*index as usize] = can_be_text.then_some(stretch);
        marks.push(Mark {
            traced: Some(*index),
            text: Some(glyph.text.clone()).filter(|text| !text.is_empty()).unwrap_or_else(|| UNKNOWN.into()),
            is_only_shown: false,
            spot: None,
            is_foreign: false,
            from: if is_from_right { right - start.max(end) } else { start - origin } / stretch,
            width: (end - start).abs() / stretch,
            down: across(glyph.start) - base,
            size: glyph.size,
            colour: [0, 0, 0, 255],
            is_after_space: *is_word_start && order > 0,
            content: glyph.content,
        });
    }
    let start = (origin * cos - base * sin, origin * sin + base * cos);
    let width = (right - left) / stretch;
    Some(Line {
        start,
        angle: first.angle,
        marks,
        is_from_right,
        is_vertical: first.is_vertical,
        is_before_space: false,
        width,
        stretch,
    })
}

fn letters_of<'t>(traced: &'t Traced, word: &'t [u32]) -> impl Iterator<Item = char> {
    word.iter().flat_map(|glyph| traced.glyphs[*glyph as usize].text.chars())
}

/// Puts neighbouring words from right to left into their order of reading, within a line from left to right.
fn order_from_right(traced: &Traced, words: &mut [&[u32]]) {
    let is_from_right = |word: &&[u32]| letters_of(traced, word).any(is_leftward_letter);
    for run in words.chunk_by_mut(|one, two| is_from_right(one) == is_from_right(two)) {
        if is_from_right(&run[0]) {
            run.reverse();
        }
    }
}

/// How much most of a line is stretched, in steps that nobody sees.
fn usual_stretch(traced: &Traced, glyphs: &[(u32, bool)]) -> f32 {
    let mut stretches: Vec<f32> =
        glyphs.iter().map(|(glyph, _)| traced.glyphs[*glyph as usize].stretch).collect();
    let middle = stretches.len() / 2;
    let usual = *stretches.select_nth_unstable_by(middle, f32::total_cmp).1;
    let usual = (usual * 2000.0).round() / 2000.0;
    if STRETCHES.contains(&usual) { usual } else { 1.0 }
}
