//! Pieces of words to rows: what stands at one height, up to a wide gap.

use super::spell::spell;
use super::{Area, Placed, Row};
use crate::marks::Marks;
use crate::words::{Piece, SPACE_GAP, WORD_GAP};

/// Base lines closer than this are one, in sizes.
const BASE_STEP_MAX: f32 = 0.2;
/// A smaller letter belongs to the line whose letters it stands beside: indexes and footnote marks.
const SMALL: f32 = 0.85;
/// A gap wider than this ends a line, in sizes.
const LINE_GAP: f32 = 1.3;
/// Pieces that cover each other by this share and read the same are one, drawn twice.
const DOUBLE_SHARE: f32 = 0.7;

/// The rows of all pieces of one direction of writing.
pub(crate) fn rows(mut pieces: Vec<Piece>, marks: &Marks) -> Vec<Row> {
    pieces.sort_by(|a, b| a.base.total_cmp(&b.base).then(a.from.total_cmp(&b.from)));
    let mut rows = Vec::new();
    for mut level in levels(pieces) {
        level.sort_by(|a, b| a.from.total_cmp(&b.from));
        drop_doubles(&mut level, marks);
        split(level, marks, &mut rows);
    }
    rows
}

/// Pieces by height.
fn levels(pieces: Vec<Piece>) -> Vec<Vec<Piece>> {
    let mut levels: Vec<Vec<Piece>> = Vec::new();
    let mut base = f32::MIN;
    let mut size = 0.0_f32;
    for piece in pieces {
        let is_same = !piece.is_oblique
            && levels.last().and_then(|level| level.last()).is_some_and(|last| !last.is_oblique)
            && is_level(base, size, &piece);
        match levels.last_mut().filter(|_| is_same) {
            Some(level) => {
                if piece.size > size {
                    (base, size) = (piece.base, piece.size);
                }
                level.push(piece);
            }
            None => {
                (base, size) = (piece.base, piece.size);
                levels.push(vec![piece]);
            }
        }
    }
    levels
}

fn is_level(base: f32, size: f32, piece: &Piece) -> bool {
    let step = piece.base - base;
    let large = size.max(piece.size);
    if step.abs() <= BASE_STEP_MAX * size.min(piece.size) {
        return true;
    }
    let is_mark = size.min(piece.size) < SMALL * large;
    // Marks above the line come before it, those below after it.
    is_mark && step.abs() <= if piece.size > size { 0.5 * large } else { 0.3 * large }
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

/// Splits a level into rows at wide gaps, and each row into words.
fn split(level: Vec<Piece>, marks: &Marks, rows: &mut Vec<Row>) {
    let mut words: Vec<Vec<Piece>> = Vec::new();
    let mut end = f32::MIN;
    for piece in level {
        let size = words
            .last()
            .and_then(|word| word.last())
            .map_or(piece.size, |last| last.size.min(piece.size).max(1.0));
        let gap = piece.from - end;
        if !words.is_empty() && gap > LINE_GAP * size.max(piece.size) {
            push_row(std::mem::take(&mut words), marks, rows);
        }
        end = end.max(piece.to);
        match words.last_mut().filter(|word| !is_break(word, &piece, gap, size)) {
            Some(word) => word.push(piece),
            None => words.push(vec![piece]),
        }
    }
    push_row(words, marks, rows);
}

fn is_break(word: &[Piece], piece: &Piece, gap: f32, size: f32) -> bool {
    let is_spaced = piece.is_after_space || word.last().is_some_and(|last| last.is_before_space);
    gap > size * if is_spaced { SPACE_GAP } else { WORD_GAP } || gap < -size
}

fn push_row(words: Vec<Vec<Piece>>, marks: &Marks, rows: &mut Vec<Row>) {
    let mut placed: Vec<Placed> = words.iter().filter_map(|pieces| spell(pieces, marks)).collect();
    if placed.is_empty() {
        return;
    }
    super::spell::order_words(&mut placed);
    let area = placed.iter().fold(Area::NONE, |area, placed| area.with(placed.area));
    let largest = placed.iter().max_by(|a, b| a.word.font_size.total_cmp(&b.word.font_size));
    let (base, size) = largest.map_or((0.0, 0.0), |placed| (placed.base, placed.word.font_size));
    rows.push(Row { words: placed, area, base, size });
}
