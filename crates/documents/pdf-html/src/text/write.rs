//! Lines as markup: real text, each letter where the document has it.
//!
//! A line is one element at its start; inside, letters follow each other by their own widths, and small empty elements
//! move the pen where the document did. All lengths are classes: no element carries a style of its own.

use std::collections::HashMap;
use std::fmt::Write as _;

use hayro_interpret::kurbo::Rect;
use html_escape::encode_double_quoted_attribute_to_string;
use unicode_normalization::char::is_combining_mark;

use super::faces::{Faces, Spot};
use super::line::{Line, Mark};
use super::runs::{Run, runs, turned};
use super::script::{is_cursive, is_mark, is_widthless};
use crate::draw::short;
use crate::font::{ASCENT, SPACE_ADVANCE, UNITS};

/// Layout units in a point: a browser rounds to parts of these.
const UNIT: f64 = 10.0;
/// A letter may stand this far from its place, in layout units, and in sizes.
const SLACK: f64 = 0.8;
const SLACK_SIZES: f64 = 0.004;
/// The width of every letter of the font that is not seen, in sizes.
const BLANK_WIDTH: f64 = 0.5;
/// The width of letters that are shown in the reader's own font: those of East Asia are as wide as high.
const FOREIGN_WIDTH: f64 = 0.55;
const EAST_ASIAN_WIDTH: f64 = 1.0;
const EAST_ASIAN: char = '\u{2e80}';
/// The angle of a line that is written downwards on a page that is not turned.
const UPRIGHT_ANGLE: f32 = 90.0;
/// Stands for the reader's own font.
const FOREIGN: u16 = u16::MAX;

/// How a run of letters looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Style {
    /// Its font; nothing for the one that is not seen.
    pub(crate) face: Option<u16>,
    /// In hundredths of a point.
    pub(crate) size: i32,
    pub(crate) colour: [u8; 4],
}

/// A property whose values are classes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Length {
    Left,
    Top,
    Move,
    WordSpace,
    LetterSpace,
    Down,
    Width,
    Height,
}

impl Length {
    const ALL: [(Length, char, &'static str); 8] = [
        (Length::Left, 'x', "left"),
        (Length::Top, 'y', "top"),
        (Length::Move, 'k', "margin-inline-start"),
        (Length::WordSpace, 'w', "word-spacing"),
        (Length::LetterSpace, 't', "letter-spacing"),
        (Length::Down, 'v', "top"),
        (Length::Width, 'm', "width"),
        (Length::Height, 'h', "height"),
    ];
}

/// All classes that the lines use, numbered as they come.
#[derive(Debug, Default)]
pub(crate) struct Styles {
    styles: HashMap<Style, usize>,
    style_list: Vec<Style>,
    lengths: HashMap<(Length, i32), usize>,
    length_list: Vec<(Length, i32)>,
    counts: [usize; 8],
    /// Turns in hundredths of a degree and stretches in ten-thousandths.
    turns: Vec<(i32, i32)>,
}

impl Styles {
    fn style(&mut self, style: Style) -> String {
        let next = self.style_list.len();
        let index = *self.styles.entry(style).or_insert(next);
        if index == next {
            self.style_list.push(style);
        }
        format!("q{}", base36(index))
    }

    fn length(&mut self, length: Length, tenths: i32) -> String {
        let (_, letter, _) = Length::ALL[length as usize];
        let count = &mut self.counts[length as usize];
        let list = &mut self.length_list;
        let index = *self.lengths.entry((length, tenths)).or_insert_with(|| {
            list.push((length, tenths));
            *count += 1;
            *count - 1
        });
        format!("{letter}{}", base36(index))
    }

    fn turn(&mut self, degrees: f32, stretch: f32) -> Option<String> {
        let turn = ((degrees * 100.0).round() as i32 % 36_000, (stretch * 10_000.0).round() as i32);
        if turn == (0, 10_000) {
            return None;
        }
        let index = self.turns.iter().position(|known| *known == turn).unwrap_or_else(|| {
            self.turns.push(turn);
            self.turns.len() - 1
        });
        Some(format!("a{}", base36(index)))
    }

    /// The classes of a place on the page, in points.
    pub(crate) fn place(&mut self, area: Rect) -> String {
        let tenths = |points: f64| (points * UNIT * 10.0).round() as i32;
        format!(
            "{} {} {} {}",
            self.length(Length::Left, tenths(area.x0)),
            self.length(Length::Top, tenths(area.y0)),
            self.length(Length::Width, tenths(area.width())),
            self.length(Length::Height, tenths(area.height()))
        )
    }

    /// The class of a size of type, in points, without a font.
    pub(crate) fn type_size(&mut self, points: f64) -> String {
        self.style(Style { face: None, size: (points * 10.0).round() as i32 * 10, colour: [0, 0, 0, 0] })
    }

    /// The rules of the style sheet.
    pub(crate) fn css(&self) -> String {
        let mut css = String::new();
        for (index, style) in self.style_list.iter().enumerate() {
            let size = short(f64::from(style.size) / 100.0 * UNIT, 1);
            let _ = write!(css, ".q{}{{font-size:{size}px", base36(index));
            let [red, green, blue, alpha] = style.colour;
            match style.face {
                Some(face) => {
                    if face == FOREIGN {
                        css.push_str(";font-family:sans-serif");
                    } else {
                        let _ = write!(css, ";font-family:f{face}");
                    }
                    if [red, green, blue, alpha] != [0, 0, 0, 255] {
                        let alpha = if alpha == 255 { String::new() } else { format!("{alpha:02x}") };
                        let _ = write!(css, ";color:#{red:02x}{green:02x}{blue:02x}{alpha}");
                    } else {
                        css.push_str(";color:#000");
                    }
                }
                None if alpha == 0 => {}
                None => css.push_str(";font-family:z"),
            }
            css.push_str("}\n");
        }
        let mut counts = [0; 8];
        for (length, tenths) in &self.length_list {
            let (_, letter, property) = Length::ALL[*length as usize];
            let count = &mut counts[*length as usize];
            let value = short(f64::from(*tenths) / 10.0, 1);
            let _ = writeln!(css, ".{letter}{}{{{property}:{value}px}}", base36(*count));
            *count += 1;
        }
        for (index, (angle, stretch)) in self.turns.iter().enumerate() {
            let _ = write!(css, ".a{}{{transform:", base36(index));
            if *angle != 0 {
                let _ = write!(css, "rotate({}deg)", short(f64::from(*angle) / 100.0, 2));
            }
            if *stretch != 10_000 {
                let _ = write!(css, "scaleX({})", short(f64::from(*stretch) / 10_000.0, 4));
            }
            css.push_str("}\n");
        }
        css
    }
}

fn base36(mut number: usize) -> String {
    const DIGITS: &[u8; 36] = b"0123456789abcdefghijklmnopqrstuvwxyz";
    let mut digits = Vec::new();
    loop {
        digits.push(DIGITS[number % 36]);
        number /= 36;
        if number == 0 {
            break;
        }
    }
    digits.reverse();
    String::from_utf8(digits).unwrap_or_default()
}

/// Text that can be nothing but text in HTML.
pub(crate) fn escape(text: &str, out: &mut String) {
    // Control characters cannot be written in HTML, and noncharacters should not be.
    let is_left_out = |letter: char| letter.is_control() || matches!(letter, '\u{fffe}' | '\u{ffff}');
    for part in text.split(is_left_out) {
        encode_double_quoted_attribute_to_string(part, out);
    }
}

fn style_of(mark: &Mark) -> Style {
    match mark.spot {
        Some(spot) => Style { face: Some(spot.face), size: hundredths(mark.size), colour: mark.colour },
        None if mark.is_foreign => {
            Style { face: Some(FOREIGN), size: hundredths(mark.size), colour: mark.colour }
        }
        None => Style { face: None, size: hundredths(mark.size), colour: [0, 0, 0, 255] },
    }
}

fn hundredths(size: f32) -> i32 {
    // Sizes are classes: those that nobody can tell apart share one.
    (size * 50.0).round() as i32 * 2
}

fn layout(points: f32) -> f64 {
    f64::from(points) * UNIT
}

/// One line being written.
struct Writer<'w> {
    out: &'w mut String,
    styles: &'w mut Styles,
    faces: &'w Faces,
    base: Style,
    is_from_right: bool,
    is_upright: bool,
    /// Whether all of the line is written from left to right.
    is_plain: bool,
    /// Where a browser's pen stands, from where the line begins.
    pen: f64,
    word_space: f64,
    /// The look that is open besides the line's own.
    open: Option<(Style, i32, i32)>,
    /// Whether letters are being written that are only shown.
    is_only_showing: bool,
    last: Option<Spot>,
}

/// Whether a line is read out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sound {
    Heard,
    /// Something else says the same.
    Silent,
}

pub(crate) fn write_line(
    line: &Line,
    sound: Sound,
    (faces, styles): (&Faces, &mut Styles),
    out: &mut String,
) {
    let Some(base) = base_style(line) else {
        return;
    };
    let word_space = usual_word_space(line, faces, base);
    let size = f64::from(hundredths(line.size())) / 100.0 * UNIT;
    // Upright letters hang from where their line starts, in the middle of their top edge.
    let (class, left, top, angle) = if line.is_upright() {
        ("l u", layout(line.start.0) - size / 2.0, layout(line.start.1), line.angle - UPRIGHT_ANGLE)
    } else {
        ("l", layout(line.start.0), layout(line.start.1) - ASCENT * size, line.angle)
    };
    let mut classes = format!(
        "{class} {} {} {}",
        styles.length(Length::Left, tenths(left)),
        styles.length(Length::Top, tenths(top)),
        styles.style(base)
    );
    if word_space != 0 {
        classes = format!("{classes} {}", styles.length(Length::WordSpace, word_space));
    }
    if let Some(turn) = styles.turn(angle, line.stretch) {
        let _ = write!(classes, " {turn}");
    }
    if line.is_from_right {
        let _ = write!(classes, " {}", styles.length(Length::Width, tenths(layout(line.width))));
    }
    let direction = if line.is_from_right { " dir=\"rtl\"" } else { "" };
    let sound = if sound == Sound::Silent { " aria-hidden=\"true\"" } else { "" };
    let _ = write!(out, "<span class=\"{classes}\"{direction}{sound}>");
    let runs = runs(line);
    let mut writer = Writer {
        out,
        styles,
        faces,
        base,
        is_from_right: line.is_from_right,
        is_upright: line.is_upright(),
        is_plain: !line.is_from_right && !runs.iter().any(|run| run.is_against),
        pen: 0.0,
        word_space: f64::from(word_space) / 10.0,
        open: None,
        is_only_showing: false,
        last: None,
    };
    for Run { marks, is_against } in runs {
        if is_against {
            writer.against(&line.marks[marks]);
        } else {
            writer.steps(&line.marks[marks]);
        }
    }
    writer.close();
    if line.is_before_space {
        out.push(' ');
    }
    out.push_str("</span>");
}

fn tenths(value: f64) -> i32 {
    (value * 10.0).round() as i32
}

/// The look of most of a line; of its largest letters when it is turned, for it is turned about their base line.
fn base_style(line: &Line) -> Option<Style> {
    let is_turned = (line.angle * 100.0).round() != 0.0;
    let largest = hundredths(line.size());
    let mut counts: Vec<(Style, usize)> = Vec::new();
    for mark in line.marks.iter().filter(|mark| !is_turned || hundredths(mark.size) == largest) {
        let style = style_of(mark);
        match counts.iter_mut().find(|(known, _)| *known == style) {
            Some((_, count)) => *count += 1,
            None => counts.push((style, 1)),
        }
    }
    counts.into_iter().max_by_key(|(_, count)| *count).map(|(style, _)| style)
}

fn space_width(base: Style) -> f64 {
    let size = f64::from(base.size) / 100.0 * UNIT;
    if base.face.is_some() { f64::from(SPACE_ADVANCE) / UNITS * size } else { BLANK_WIDTH * size }
}

/// How much wider than the font's own space those of the line are, in tenths.
fn usual_word_space(line: &Line, faces: &Faces, base: Style) -> i32 {
    let mut gaps: Vec<f64> = Vec::new();
    for pair in line.marks.windows(2) {
        if pair[1].is_after_space {
            let width = pair[0].spot.map_or(layout(pair[0].width), |spot| {
                faces.advance(spot) / UNITS * f64::from(hundredths(pair[0].size)) / 100.0 * UNIT
            });
            gaps.push(layout(pair[1].from) - layout(pair[0].from) - width - space_width(base));
        }
    }
    if gaps.is_empty() {
        return 0;
    }
    let middle = gaps.len() / 2;
    // A browser's pen does not go back over a space.
    let usual = gaps.select_nth_unstable_by(middle, f64::total_cmp).1.max(-space_width(base));
    // Even tenths: there are fewer classes, and nobody sees it.
    ((usual * 5.0).round() as i32) * 2
}

impl Writer<'_> {
    fn steps(&mut self, marks: &[Mark]) {
        let mut at = 0;
        while at < marks.len() {
            at += self.step(&marks[at..]);
        }
    }

    /// Writes marks that go against their line: a line within the line, which ends where they do.
    fn against(&mut self, marks: &[Mark]) {
        let (inner, from, width) = turned(marks);
        if marks.first().is_some_and(|mark| mark.is_after_space) {
            self.space(layout(from));
        }
        self.close();
        // Where it begins is known once it is written, and so is how wide it is.
        let before = std::mem::take(self.out);
        let pen = std::mem::take(&mut self.pen);
        self.is_from_right = !self.is_from_right;
        self.steps(&inner);
        self.close();
        let direction = if self.is_from_right { "rtl" } else { "ltr" };
        self.is_from_right = !self.is_from_right;
        let written = std::mem::replace(self.out, before);
        let steps = tenths(layout(from + width) - self.pen - pen);
        let class = self.styles.length(Length::Move, steps);
        let _ = write!(self.out, "<i class={class}><i dir={direction}>{written}</i></i>");
        self.pen += pen + f64::from(steps) / 10.0;
    }

    /// Moves the pen, and gives by how much what comes next has to move itself.
    ///
    /// Where the way of writing changes, browsers put elements without letters wherever they like.
    fn shift(&mut self, steps: i32) -> i32 {
        self.pen += f64::from(steps) / 10.0;
        if !self.is_plain {
            return steps;
        }
        let class = self.styles.length(Length::Move, steps);
        let _ = write!(self.out, "<i class={class}></i>");
        0
    }

    /// Writes the next mark, or all of a word's that are not seen; gives how many.
    fn step(&mut self, marks: &[Mark]) -> usize {
        let mark = &marks[0];
        if mark.is_after_space {
            self.space(layout(mark.from));
        }
        if mark.spot.is_none() {
            return self.unseen(marks);
        }
        self.seen(mark);
        1
    }

    fn slack(&self, size: f64) -> f64 {
        SLACK.max(SLACK_SIZES * size)
    }

    fn space(&mut self, target: f64) {
        self.close();
        let after = self.pen + space_width(self.base) + self.word_space;
        let by = target - after;
        if by.abs() <= self.slack(f64::from(self.base.size) / 100.0 * UNIT) {
            self.out.push(' ');
            self.pen = after;
        } else {
            let steps = tenths(by);
            let class = self.styles.length(Length::Move, steps);
            let _ = write!(self.out, "<i class={class}> </i>");
            self.pen = after + f64::from(steps) / 10.0;
        }
        self.last = None;
    }

    fn seen(&mut self, mark: &Mark) {
        let Some(spot) = mark.spot else {
            return;
        };
        let style = style_of(mark);
        let size = f64::from(style.size) / 100.0 * UNIT;
        let advance = self.faces.advance(spot) / UNITS * size;
        // A glyph hangs on its left end, whichever way it is written.
        let target =
            if self.is_from_right { layout(mark.from + mark.width) - advance } else { layout(mark.from) };
        let down = tenths(layout(mark.down));
        let down = if f64::from(down.abs()) / 10.0 <= self.slack(size) { 0 } else { down };
        let kern = self.last.map_or(0.0, |last| self.faces.kern(last, spot) / UNITS * size);
        let is_same_look = self.open.map_or(style == self.base && down == 0, |open| open == (style, down, 0));
        let might_join = is_same_look
            && self.last.is_some_and(|last| is_mark(&mark.text) || self.faces.might_join(last, spot));
        let kern = if is_same_look && !might_join { kern } else { 0.0 };
        let by = target - (self.pen + kern);
        let needs_move = by.abs() > self.slack(size);
        if !is_same_look {
            self.close();
        }
        if needs_move || !mark.is_only_shown {
            self.end_only_showing();
        }
        let mut lead = 0;
        if needs_move {
            // Between two letters the move also keeps the browser from kerning them.
            let steps = tenths(target - self.pen);
            if !self.is_plain {
                self.close();
            }
            if self.open.is_none() || steps != 0 {
                lead = self.shift(steps);
            }
        } else {
            self.pen += kern;
        }
        if !is_same_look || needs_move && !self.is_plain {
            self.open(style, down, 0, lead);
        }
        let might_join = might_join && !needs_move && !mark.is_only_shown;
        if mark.is_only_shown {
            if !self.is_only_showing {
                self.out.push_str("<i aria-hidden=\"true\" data-t=\"");
                self.is_only_showing = true;
            }
            escape(&mark.text, self.out);
        } else {
            if might_join {
                self.out.push_str("<i class=r>");
            }
            escape(&mark.text, self.out);
            if might_join {
                self.out.push_str("</i>");
            }
        }
        self.pen += advance;
        self.last = Some(spot);
    }

    /// Writes marks that are not seen, up to the next word or the next that is seen, as wide as they are drawn.
    fn unseen(&mut self, marks: &[Mark]) -> usize {
        let is_foreign = marks[0].is_foreign;
        let goes_on =
            |mark: &&Mark| mark.spot.is_none() && !mark.is_after_space && mark.is_foreign == is_foreign;
        let count = 1 + marks[1..].iter().take_while(goes_on).count();
        let marks = &marks[..count];
        let heard = marks.iter().filter(|mark| !mark.is_only_shown);
        let text: String = heard.map(|mark| mark.text.as_str()).collect();
        let target = layout(marks[0].from);
        let last = &marks[count - 1];
        let end = layout(last.from) + layout(last.width);
        self.last = None;
        if text.is_empty() {
            return count;
        }
        let size = marks.iter().map(|mark| mark.size).fold(0.0, f32::max);
        let style = Style { size: hundredths(size), ..style_of(&marks[0]) };
        let is_east_asian = marks[0].text.chars().any(|letter| letter >= EAST_ASIAN);
        let own_width = match (is_foreign, is_east_asian) {
            (true, true) => EAST_ASIAN_WIDTH,
            (true, false) if self.is_upright => EAST_ASIAN_WIDTH,
            (true, false) => FOREIGN_WIDTH,
            (false, _) => BLANK_WIDTH,
        };
        let letters = || text.chars().filter(|letter| !is_widthless(*letter));
        let own_width = own_width * f64::from(style.size) / 100.0 * UNIT * letters().count() as f64;
        // A glyph may stand for several words: browsers widen the spaces in it as all others of the line.
        let widened = text.matches(' ').count() as f64 * self.word_space;
        // Marks stay with their letters, and letters that join hands stay together, whatever space is asked for.
        let is_joined = text.chars().any(is_cursive);
        let spaced = letters().filter(|letter| !is_joined && !is_combining_mark(*letter)).count() as f64;
        // Even widths share more classes.
        let room = end - target - widened - own_width;
        let space = if spaced > 0.0 { tenths(room / spaced / 2.0) * 2 } else { 0 };
        self.close();
        let by = target - self.pen;
        let lead = if by.abs() > 2.0 * SLACK { self.shift(tenths(by)) } else { 0 };
        if style != self.base || space != 0 || lead != 0 {
            self.open(style, 0, space, lead);
        }
        escape(&text, self.out);
        self.pen += own_width + f64::from(space) / 10.0 * spaced + widened;
        count
    }

    /// Begins a look, after a move.
    fn open(&mut self, style: Style, down: i32, letter_space: i32, lead: i32) {
        if style == self.base && down == 0 && letter_space == 0 && lead == 0 {
            self.open = None;
            return;
        }
        let mut classes = Vec::new();
        if lead != 0 {
            classes.push(self.styles.length(Length::Move, lead));
        }
        if style != self.base {
            classes.push(self.styles.style(style));
        }
        if down != 0 {
            classes.push(self.styles.length(Length::Down, down));
        }
        if letter_space != 0 {
            classes.push(self.styles.length(Length::LetterSpace, letter_space));
        }
        let quote = if classes.len() > 1 { "\"" } else { "" };
        let _ = write!(self.out, "<i class={quote}{}{quote}>", classes.join(" "));
        self.open = Some((style, down, letter_space));
    }

    fn end_only_showing(&mut self) {
        if std::mem::take(&mut self.is_only_showing) {
            self.out.push_str("\"></i>");
        }
    }

    fn close(&mut self) {
        self.end_only_showing();
        if self.open.take().is_some() {
            self.out.push_str("</i>");
        }
        self.last = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_becomes_markup() {
        let mut out = String::new();
        escape("<script>&\"\u{1}\u{ffff}</script>", &mut out);
        assert_eq!(out, "&lt;script&gt;&amp;&quot;&lt;/script&gt;");
    }

    #[test]
    fn numbers_of_classes_are_short() {
        assert_eq!(base36(0), "0");
        assert_eq!(base36(35), "z");
        assert_eq!(base36(36), "10");
    }
}
