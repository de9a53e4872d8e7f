//! Pieces of words to rows: what stands at one height, up to a wide gap.

use super::corridors;
use super::spell::spell;
use super::{Area, Placed, Row};
use crate::marks::Marks;
use crate::words::{LETTER_SPACE_MAX, Piece, SPACE_GAP, Step, TURN_MAX};

/// Base lines closer than this are one, in sizes.
const BASE_STEP_MAX: f32 = 0.2;
/// A smaller letter belongs to the line whose letters it stands beside: indexes and footnote marks.
const SMALL: f32 = 0.85;
/// A letter smaller than this only lies over the other, as over a watermark.
const SMALLEST: f32 = 0.25;
/// A mark stands this close to its letters, in their size.
const MARK_GAP: f32 = 0.2;
/// A mark is short; longer text of another size is a line of its own.
const MARK_GLYPHS_MAX: usize = 12;
/// Levels above and below that are searched for a mark's letters.
const LEVELS_NEAR: usize = 4;
/// Pieces of a level that are looked at to find a mark's letters: those that begin last before it.
const PIECES_NEAR: usize = 4;
/// A gap wider than this ends a line, in sizes.
const LINE_GAP: f32 = 1.3;
/// Letters of a word that is spaced out stand at least this far apart, in sizes.
const SPACED_OUT_GAP_MIN: f32 = 0.1;
/// Their gaps differ by no more than this, in sizes.
const SPACED_OUT_SPREAD: f32 = 0.08;
/// A word that is spaced out has at least this many gaps.
const SPACED_OUT_STEPS_MIN: usize = 3;
/// Words that cover each other by more than this are two, drawn in one place, in sizes.
const OVERLAP_MAX: f32 = 0.4;
/// Pieces that cover each other by this share and read the same are one, drawn twice.
const DOUBLE_SHARE: f32 = 0.7;

/// The rows of all pieces of one direction of writing.
pub(crate) fn rows(pieces: Vec<Piece>, marks: &Marks) -> Vec<Row> {
    let (oblique, mut pieces): (Vec<_>, Vec<_>) = pieces.into_iter().partition(|piece| piece.is_oblique);
    pieces.sort_by(|a, b| a.base.total_cmp(&b.base).then(a.from.total_cmp(&b.from)));
    let mut levels = levels(pieces);
    attach_marks(&mut levels);
    for level in &mut levels {
        drop_doubles(level, marks);
    }
    let is_after_corridor = corridors::find(&levels);
    let mut rows = oblique_rows(oblique, marks);
    for (level, is_after_corridor) in levels.into_iter().zip(is_after_corridor) {
        split(level, &is_after_corridor, marks, &mut rows);
    }
    rows
}

/// Rows of slanted writing, as it was written: there is no level to find them by.
fn oblique_rows(pieces: Vec<Piece>, marks: &Marks) -> Vec<Row> {
    let glyph = |index: Option<&u32>| index.map(|index| &marks.glyphs[*index as usize]);
    let mut rows = Vec::new();
    let mut words: Vec<Vec<Piece>> = Vec::new();
    for piece in pieces {
        let last = words.last().and_then(|word| word.last()).and_then(|last| glyph(last.glyphs.last()));
        let step = last.zip(glyph(piece.glyphs.first())).map(|(last, next)| Step::between(last, next));
        let goes_on = step.is_some_and(|step| {
            step.turn <= TURN_MAX
                && step.off.abs() <= BASE_STEP_MAX * step.size
                && (-step.size..=LINE_GAP * step.size).contains(&step.gap)
        });
        if !goes_on {
            push_row(std::mem::take(&mut words), marks, &mut rows);
        }
        words.push(vec![piece]);
    }
    push_row(words, marks, &mut rows);
    rows
}

/// Pieces by height, each level from left to right.
fn levels(pieces: Vec<Piece>) -> Vec<Vec<Piece>> {
    let mut levels: Vec<Vec<Piece>> = Vec::new();
    let (mut base, mut size) = (f32::MIN, 0.0_f32);
    for piece in pieces {
        let is_same = piece.base - base <= BASE_STEP_MAX * size.min(piece.size);
        match levels.last_mut().filter(|_| is_same) {
            Some(level) => level.push(piece),
            None => {
                (base, size) = (piece.base, piece.size);
                levels.push(vec![piece]);
            }
        }
    }
    for level in &mut levels {
        level.sort_by(|a, b| a.from.total_cmp(&b.from));
    }
    levels
}

/// Moves marks (indexes, exponents, footnote numbers) to the level of the larger letters that they touch.
fn attach_marks(levels: &mut Vec<Vec<Piece>>) {
    let hosts: Vec<Vec<usize>> = levels
        .iter()
        .enumerate()
        .map(|(index, level)| {
            let runs = level.chunk_by(is_next_in_line);
            runs.flat_map(|run| hosts(levels, index, run)).collect()
        })
        .collect();
    let mut moved: Vec<Vec<Piece>> = levels.iter().map(|_| Vec::new()).collect();
    for (level, hosts) in std::mem::take(levels).into_iter().zip(hosts) {
        for (piece, host) in level.into_iter().zip(hosts) {
            moved[host].push(piece);
        }
    }
    for level in &mut moved {
        level.sort_by(|a, b| a.from.total_cmp(&b.from));
    }
    *levels = moved;
}

/// Whether two pieces of a level are words of one line.
fn is_next_in_line(one: &Piece, two: &Piece) -> bool {
    let (smaller, larger) = (one.size.min(two.size), one.size.max(two.size));
    smaller > SMALL * larger && two.from - one.to <= LINE_GAP * larger
}

/// The level that each piece of a run of words goes to. Words of a line are no marks of larger letters that they touch.
fn hosts(levels: &[Vec<Piece>], index: usize, run: &[Piece]) -> Vec<usize> {
    let is_line = run.iter().map(|piece| piece.glyphs.len()).sum::<usize>() > MARK_GLYPHS_MAX;
    let host_of = |piece: &Piece| if is_line { None } else { host(levels, index, piece) };
    run.iter().map(|piece| host_of(piece).unwrap_or(index)).collect()
}

/// The level next to `index` where a larger letter stands right beside the piece.
fn host(levels: &[Vec<Piece>], index: usize, piece: &Piece) -> Option<usize> {
    let below = levels.iter().enumerate().skip(index + 1).take(LEVELS_NEAR);
    let above = levels[..index].iter().enumerate().rev().take(LEVELS_NEAR);
    below.chain(above).find(|(_, level)| has_letters_for(level, piece)).map(|(host, _)| host)
}

/// Whether a level, ordered from left to right, has letters that the piece is a mark of.
fn has_letters_for(level: &[Piece], piece: &Piece) -> bool {
    // The letters begin before the mark ends, or a little after it.
    let after = level.partition_point(|letters| letters.from <= piece.to + MARK_GAP * letters.size);
    level[..after].iter().rev().take(PIECES_NEAR).any(|letters| is_mark_of(piece, letters))
}

fn is_mark_of(mark: &Piece, letters: &Piece) -> bool {
    let step = mark.base - letters.base;
    let gap = (mark.from - letters.to).max(letters.from - mark.to);
    (SMALLEST * letters.size..=SMALL * letters.size).contains(&mark.size)
        && (-0.6 * letters.size..=0.45 * letters.size).contains(&step)
        && (-0.5 * letters.size..=MARK_GAP * letters.size).contains(&gap)
}

fn drop_doubles(level: &mut Vec<Piece>, marks: &Marks) {
    let text = |piece: &Piece| -> String {
        piece.glyphs.iter().map(|glyph| marks.text_of(&marks.glyphs[*glyph as usize])).collect()
    };
    let mut kept: Vec<Piece> = Vec::with_capacity(level.len());
    for piece in level.drain(..) {
        let is_double = kept.iter().rev().take(4).any(|other| {
            let shared = other.to.min(piece.to) - other.from.max(piece.from);
            shared > DOUBLE_SHARE * (piece.to - piece.from).max(other.to - other.from)
                && (other.base - piece.base).abs() < 0.3 * piece.size
                && other.glyphs.len() == piece.glyphs.len()
                && text(other) == text(&piece)
        });
        if !is_double {
            kept.push(piece);
        }
    }
    *level = kept;
}

/// Splits a level into rows at wide gaps and at corridors, and each row into words.
fn split(level: Vec<Piece>, is_after_corridor: &[bool], marks: &Marks, rows: &mut Vec<Row>) {
    let is_spaced_out = spaced_out(&level, marks);
    let mut words: Vec<Vec<Piece>> = Vec::new();
    let mut end = f32::MIN;
    for (index, piece) in level.into_iter().enumerate() {
        let last = words.last().and_then(|word| word.last());
        let size = last.map_or(piece.size, |last| last.size.min(piece.size).max(1.0));
        let gap = piece.from - end;
        let is_wide = gap > LINE_GAP * size.max(piece.size) || is_after_corridor[index];
        if !words.is_empty() && is_wide {
            push_row(std::mem::take(&mut words), marks, rows);
        }
        end = end.max(piece.to);
        let goes_on = |word: &&mut Vec<Piece>| {
            is_spaced_out[index] || !is_break(word, &piece, gap, size * marks.word_gap)
        };
        match words.last_mut().filter(goes_on) {
            Some(word) => word.push(piece),
            None => words.push(vec![piece]),
        }
    }
    push_row(words, marks, rows);
}

/// For each piece, whether it continues a word whose letters are spaced out evenly.
fn spaced_out(level: &[Piece], marks: &Marks) -> Vec<bool> {
    let mut continues = vec![false; level.len()];
    let gap = |index: usize| (level[index].from - level[index - 1].to) / level[index].size.max(0.1);
    let is_letter = |piece: &Piece| {
        let [glyph] = piece.glyphs[..] else {
            return false;
        };
        marks
            .text_of(&marks.glyphs[glyph as usize])
            .chars()
            .all(|letter| letter.is_alphanumeric() || "-.:".contains(letter))
    };
    let is_step = |index: usize| {
        let (last, next) = (&level[index - 1], &level[index]);
        let is_spaced = last.is_before_space || next.is_after_space;
        let is_near = (SPACED_OUT_GAP_MIN..=LETTER_SPACE_MAX).contains(&gap(index));
        is_near && !is_spaced && is_letter(last) && is_letter(next)
    };
    let mut first = 1;
    while first < level.len() {
        let steps = (first..level.len())
            .take_while(|index| is_step(*index) && (gap(*index) - gap(first)).abs() <= SPACED_OUT_SPREAD)
            .count();
        if steps >= SPACED_OUT_STEPS_MIN {
            continues[first..first + steps].fill(true);
        }
        first += steps.max(1);
    }
    continues
}

fn is_break(word: &[Piece], piece: &Piece, gap: f32, word_gap: f32) -> bool {
    let size = word.last().map_or(piece.size, |last| last.size.min(piece.size));
    let is_spaced = piece.is_after_space || word.last().is_some_and(|last| last.is_before_space);
    gap > if is_spaced { size * SPACE_GAP } else { word_gap } || gap < -OVERLAP_MAX * size
}

fn push_row(words: Vec<Vec<Piece>>, marks: &Marks, rows: &mut Vec<Row>) {
    let mut placed: Vec<Placed> = words.iter().filter_map(|pieces| spell(pieces, marks)).collect();
    if placed.is_empty() {
        return;
    }
    let is_rtl = super::spell::order_words(&mut placed);
    let area = placed.iter().fold(Area::NONE, |area, placed| area.with(placed.area));
    let largest = placed.iter().max_by(|a, b| a.word.font_size.total_cmp(&b.word.font_size));
    let (base, size) = largest.map_or((0.0, 0.0), |placed| (placed.base, placed.word.font_size));
    rows.push(Row { words: placed, area, base, size, is_rtl });
}
