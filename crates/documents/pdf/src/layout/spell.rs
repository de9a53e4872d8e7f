//! The text of a word: its glyphs in logical order, ligatures taken apart.

use unicode_normalization::UnicodeNormalization;

use super::{Area, Placed, bbox};
use crate::marks::Marks;
use crate::text::{Word, is_leftward_letter};
use crate::words::Piece;

/// Stands for a letter that nobody can read, so that no one takes the rest of its word for the whole.
pub(crate) const UNKNOWN: &str = "\u{fffd}";

/// Makes a word of its pieces; nothing if none of its glyphs can be read.
pub(crate) fn spell(pieces: &[Piece], marks: &Marks) -> Option<Placed> {
    let first = pieces.first()?;
    let turn = first.turn;
    let mut letters: Vec<Letter<'_>> = pieces
        .iter()
        .flat_map(|piece| &piece.glyphs)
        .map(|index| {
            let glyph = &marks.glyphs[*index as usize];
            let (start, end) = (turn.place(glyph.start).0, turn.place(glyph.end).0);
            let text = Some(marks.text_of(glyph)).filter(|text| !text.is_empty()).unwrap_or(UNKNOWN);
            Letter { index: *index, text, from: start.min(end), to: start.max(end) }
        })
        .collect();
    if letters.iter().all(|letter| letter.text == UNKNOWN) {
        return None;
    }
    let is_rtl = is_rtl(letters.iter().flat_map(|letter| letter.text.chars()));
    if is_rtl {
        turn_around(&mut letters);
    }
    let (text, edges) = write(&letters, is_rtl);
    let area = pieces.iter().fold(Area::NONE, |area, piece| {
        area.with(Area { from: piece.from, to: piece.to, top: piece.top, bottom: piece.bottom })
    });
    let largest = pieces.iter().max_by(|a, b| a.size.total_cmp(&b.size))?;
    let glyphs = || pieces.iter().flat_map(|piece| &piece.glyphs).map(|index| &marks.glyphs[*index as usize]);
    let bold = glyphs().filter(|glyph| glyph.is_bold).count();
    let word = Word {
        text,
        bbox: bbox(area, turn),
        edges,
        font_size: largest.size,
        is_bold: bold * 2 > glyphs().count(),
        rotation: turn.degrees(),
        is_invisible: glyphs().all(|glyph| glyph.is_invisible),
        confidence: glyphs()
            .filter_map(|glyph| glyph.percent)
            .min()
            .map(|percent| f32::from(percent) / 100.0),
    };
    let glyphs = letters.iter().map(|letter| letter.index).collect();
    Some(Placed { word, area, base: largest.base, glyphs })
}

struct Letter<'m> {
    index: u32,
    text: &'m str,
    from: f32,
    to: f32,
}

fn write(letters: &[Letter<'_>], is_rtl: bool) -> (String, Vec<f32>) {
    let mut text = String::new();
    let mut edges = Vec::new();
    for letter in letters {
        let written = text.len();
        push_letter(&mut text, letter.text);
        let count = text[written..].chars().count();
        for index in 0..count {
            let share = index as f32 / count as f32;
            let at = if is_rtl {
                letter.to - (letter.to - letter.from) * share
            } else {
                letter.from + (letter.to - letter.from) * share
            };
            edges.push(at);
        }
    }
    if let Some(last) = letters.last() {
        edges.push(if is_rtl { last.from } else { last.to });
    }
    (text, edges)
}

/// Appends a glyph's text, presentation forms as the plain letters they present. No glyph stands for alef and lam in this
/// order: it is the ligature of lam and alef, which some programs spell as it is seen.
pub(crate) fn push_letter(text: &mut String, letter: &str) {
    let mut characters = letter.chars();
    if let (Some(alef @ ('ا' | 'أ' | 'إ' | 'آ')), Some('ل'), None) =
        (characters.next(), characters.next(), characters.next())
    {
        text.extend(['ل', alef]);
        return;
    }
    for character in letter.chars() {
        if is_presentation_form(character) {
            text.extend(character.nfkc());
        } else {
            text.push(character);
        }
    }
}

fn is_presentation_form(character: char) -> bool {
    matches!(character, '\u{fb00}'..='\u{fdff}' | '\u{fe70}'..='\u{fefc}')
}

/// Whether text runs from right to left, by the majority of its letters.
fn is_rtl(characters: impl Iterator<Item = char>) -> bool {
    let (mut rtl, mut ltr) = (0, 0);
    for character in characters {
        if is_leftward_letter(character) {
            rtl += 1;
        } else if character.is_alphabetic() {
            ltr += 1;
        }
    }
    rtl > ltr
}

/// Turns letters seen from left to right into the order of reading: numbers keep theirs.
fn turn_around(letters: &mut [Letter<'_>]) {
    letters.sort_by(|a, b| b.from.total_cmp(&a.from));
    let is_number = |letter: &Letter<'_>| {
        letter.text.chars().all(|character| character.is_numeric() || ".,:/".contains(character))
    };
    for run in letters.chunk_by_mut(|a, b| is_number(a) == is_number(b)) {
        if is_number(&run[0]) {
            run.reverse();
        }
    }
}

/// Puts the words of a row that runs from right to left into the order of reading; tells whether it does.
pub(crate) fn order_words(words: &mut [Placed]) -> bool {
    if !is_rtl(words.iter().flat_map(|placed| placed.word.text.chars())) {
        return false;
    }
    let is_ltr = |placed: &Placed| !placed.word.text.chars().any(is_leftward_letter);
    words.reverse();
    for run in words.chunk_by_mut(|a, b| is_ltr(a) == is_ltr(b)) {
        if is_ltr(&run[0]) {
            run.reverse();
        }
    }
    true
}
