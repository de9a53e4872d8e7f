//! From a label to what it labels: behind it, under it, over it, in its cell or in the block below.

use std::ops::Range;

use ode_pdf::Rect;

use super::lines::{is_inside, select_lines};
use super::{Context, Source};
use crate::label::Hit;
use crate::mapping::FieldRule;
use crate::mapping::file::Where;
use crate::sheet::{Piece, SheetPage, Span, TextRow};
use crate::values::{self, Kind, Locale, number};

/// The same for the second and further directions from one label.
const DIRECTION_FACTOR: f32 = 0.93;

/// Lines of a block, unless the rule says otherwise.
const BLOCK_LINES: f32 = 8.0;

/// What stands in each direction from a label.
pub(super) fn anchored(rule: &FieldRule, hit: &Hit, context: Context<'_>, sources: &mut Vec<Source>) {
    let row = context.sheet.row(hit.page, hit.row);
    let label = values::tidy(&row.slice(&hit.chars));
    let base = label_score(rule.kind, row, hit, context.locale);
    let mut factor = 1.0;
    for direction in &rule.wheres {
        let (name, lines) = match direction {
            Where::Right => {
                let label = Label { hit, text: &label, score: base * factor };
                right(rule, label, context, sources);
                factor *= DIRECTION_FACTOR;
                continue;
            }
            Where::Left => ("left of", left(hit, context)),
            Where::Below => ("below", below(rule, hit, context)),
            Where::Above => ("above", above(hit, context)),
            Where::Block => ("in the block under", block(rule, hit, context)),
            Where::SameCell => ("in the cell of", same_cell(hit, context)),
        };
        let how = format!("{name} “{label}”");
        let heads = *direction != Where::Block || is_heading(row, hit);
        let score = if heads { base * factor } else { base * factor * NO_HEADING_FACTOR };
        select_lines(rule, lines, score, &how, sources);
        factor *= DIRECTION_FACTOR;
    }
}

/// A label that is a whole piece, or stands before a colon, is surely a label; one inside a sentence may be a word. The
/// label of an amount may have its rate on either side: "VAT 20%", "7 % MwSt.".
fn label_score(kind: Kind, row: &TextRow, hit: &Hit, locale: &Locale) -> f32 {
    let Some(piece) = row.piece_at(hit.chars.start).map(|at| &row.pieces[at]) else { return 0.5 };
    let rate = |chars: Range<usize>| {
        number::leading_rate(&row.slice(&chars), locale).filter(|_| kind == Kind::Amount).map(|(_, end)| end)
    };
    let before = piece.chars.start..hit.chars.start;
    let starts = before.is_empty() || rate(before.clone()).is_some_and(|end| end + 1 >= before.len());
    let next = row.text.chars().nth(hit.chars.end);
    let behind = hit.chars.end..piece.chars.end.max(hit.chars.end);
    let ends = next.is_none_or(|c| c == '\t' || c == ':') || rate(behind).is_some();
    match (starts, ends) {
        (true, true) => 1.0,
        (true, false) => 0.96,
        (false, true) => 0.9,
        (false, false) => 0.8,
    }
}

/// Pieces behind a label that may hold its value.
const PIECES_MAX: usize = 20;
/// See `right`.
const UNPARTED_FACTOR: f32 = 0.75;

/// A label on the page, and how surely it is one.
#[derive(Clone, Copy)]
struct Label<'a> {
    hit: &'a Hit,
    text: &'a str,
    score: f32,
}

/// A label that goes on with other words on its line heads no block.
const NO_HEADING_FACTOR: f32 = 0.7;

/// Whether nothing but a colon follows the label in its piece.
fn is_heading(row: &TextRow, hit: &Hit) -> bool {
    let end = row.piece_at(hit.chars.end - 1).map_or(hit.chars.end, |at| row.pieces[at].chars.end);
    let starts =
        row.piece_at(hit.chars.start).is_some_and(|at| row.pieces[at].chars.start == hit.chars.start);
    starts && !row.slice(&(hit.chars.end..end)).chars().any(char::is_alphanumeric)
}

/// The rest of the label's own piece, then the pieces behind it, up to the next label.
fn right(rule: &FieldRule, label: Label<'_>, context: Context<'_>, sources: &mut Vec<Source>) {
    let Label { hit, text, score } = label;
    let row = context.sheet.row(hit.page, hit.row);
    let page = context.sheet.pages[hit.page].page.number;
    let Some(at) = row.piece_at(hit.chars.end - 1) else { return };
    let labels = context.hits.anchors_in(hit.page, hit.row);
    let next_label = |from: usize, to: usize| {
        labels.iter().map(|l| l.start).filter(|s| *s >= from && *s < to).min().unwrap_or(to)
    };
    let how = format!("right of “{text}”");
    let rest = hit.chars.end..next_label(hit.chars.end, row.pieces[at].chars.end);
    let mut push = |chars: Range<usize>, score: f32, is_label_end: bool| -> bool {
        let has_words = row.slice(&chars).chars().any(char::is_alphanumeric);
        if has_words {
            let source = Source::new(row.span(page, &chars), score, how.clone());
            sources.push(Source { is_label_end, ..source });
        }
        has_words
    };
    let is_wordy = matches!(rule.kind, Kind::Text) && rule.take.is_none();
    // Words that follow without a colon or a gap may be the label's own: "Lieferant GmbH" is a name.
    let is_parted = row.slice(&rest).trim_start().starts_with([':', '#', '-', '=']);
    let starts = row.pieces[at].chars.start == hit.chars.start;
    let score = if is_wordy && !starts { score * UNPARTED_FACTOR } else { score };
    let own = if is_wordy && !is_parted { score * UNPARTED_FACTOR } else { score };
    if push(rest, own, true) && is_wordy {
        return;
    }
    let mut factor = 0.98;
    if at + 1 == row.pieces.len() {
        // In tall cells label and value may stand on base lines of their own.
        let beside = beside(context, hit, row.pieces[at].bbox);
        let score = score * factor;
        sources.extend(beside.into_iter().map(|span| Source::new(span, score, how.clone())));
        return;
    }
    for piece in row.pieces[at + 1..].iter().take(PIECES_MAX) {
        let end = next_label(piece.chars.start, piece.chars.end);
        if end == piece.chars.start {
            break;
        }
        if rule.wraps {
            let span = wrapped(context, hit, piece);
            sources.push(Source::new(span, score * factor, how));
            return;
        }
        if push(piece.chars.start..end, score * factor, false) && is_wordy {
            break;
        }
        factor *= 0.95;
    }
}

/// Pieces right of a label on rows of other base lines that share at least half of its height, nearest first.
fn beside(context: Context<'_>, hit: &Hit, label: Rect) -> Vec<Span> {
    let page = &context.sheet.pages[hit.page];
    let near = hit.row.saturating_sub(2)..(hit.row + 3).min(page.rows.len());
    let mut found: Vec<(f32, Span)> = Vec::new();
    for at in near.filter(|at| *at != hit.row) {
        let row = &page.rows[at];
        let Some(piece) = row.pieces.iter().find(|p| p.bbox.x0 >= label.x1) else { continue };
        let shared = piece.bbox.y1.min(label.y1) - piece.bbox.y0.max(label.y0);
        let height = (piece.bbox.y1 - piece.bbox.y0).min(label.y1 - label.y0);
        if shared >= height * 0.5 && !is_label(context, hit.page, at, piece) {
            found.push((piece.bbox.x0, row.span(page.page.number, &piece.chars)));
        }
    }
    found.sort_by(|a, b| a.0.total_cmp(&b.0));
    found.into_iter().map(|(_, span)| span).collect()
}

/// A piece with the lines set tightly over and under it in the same column, where no other label stands beside.
pub(super) fn wrapped(context: Context<'_>, hit: &Hit, piece: &Piece) -> Span {
    let page = &context.sheet.pages[hit.page];
    let goes_on = |row: &TextRow, near: Rect| {
        let own = row.pieces.first().filter(|p| (p.bbox.x0 - near.x0).abs() < 3.0)?;
        let gap = (own.bbox.y0 - near.y1).max(near.y0 - own.bbox.y1);
        (gap < (near.y1 - near.y0) * 0.35).then(|| own.clone())
    };
    let mut lines = vec![page.rows[hit.row].span(page.page.number, &piece.chars)];
    let mut near = piece.bbox;
    for row in page.rows[..hit.row].iter().rev() {
        let Some(own) = goes_on(row, near) else { break };
        lines.insert(0, row.span(page.page.number, &own.chars));
        near = own.bbox;
    }
    near = piece.bbox;
    for row in &page.rows[hit.row + 1..] {
        let Some(own) = goes_on(row, near) else { break };
        lines.push(row.span(page.page.number, &own.chars));
        near = own.bbox;
    }
    let mut joined = Span::default();
    for line in &lines {
        joined.push_line(line);
    }
    joined
}

fn left(hit: &Hit, context: Context<'_>) -> Vec<Span> {
    let row = context.sheet.row(hit.page, hit.row);
    let page = context.sheet.pages[hit.page].page.number;
    let before = row.pieces.iter().rev().find(|p| p.chars.end <= hit.chars.start);
    before.map(|piece| row.span(page, &piece.chars)).into_iter().collect()
}

fn overlaps(a: Rect, b: Rect) -> bool {
    a.x0 < b.x1 + 2.0 && b.x0 < a.x1 + 2.0
}

/// Whether a piece begins with a label of another field.
fn is_label(context: Context<'_>, page: usize, row: usize, piece: &Piece) -> bool {
    context.hits.anchors_in(page, row).iter().any(|l| l.start == piece.chars.start)
}

/// The first piece under the label, within reach; for anything but words also the pieces under that.
fn below(rule: &FieldRule, hit: &Hit, context: Context<'_>) -> Vec<Span> {
    let page = &context.sheet.pages[hit.page];
    let own = &page.rows[hit.row];
    let Some(label) = own.rect(&hit.chars) else { return Vec::new() };
    let height = (label.y1 - label.y0).max(4.0);
    let mut found = Vec::new();
    for (at, row) in page.rows.iter().enumerate().skip(hit.row + 1) {
        if row.bbox.y0 - label.y1 > height * rule.reach {
            break;
        }
        let Some(piece) = row.pieces.iter().find(|p| overlaps(p.bbox, label)) else { continue };
        if is_label(context, hit.page, at, piece) {
            break;
        }
        found.push(row.span(page.page.number, &piece.chars));
        if rule.kind == Kind::Text && rule.line.is_none() && rule.lines == 1 {
            break;
        }
    }
    found
}

fn above(hit: &Hit, context: Context<'_>) -> Vec<Span> {
    let page = &context.sheet.pages[hit.page];
    let Some(label) = page.rows[hit.row].rect(&hit.chars) else { return Vec::new() };
    let reach = (label.y1 - label.y0).max(4.0) * 2.0;
    let near = page.rows[..hit.row].iter().rev().take_while(|row| label.y0 - row.bbox.y1 <= reach);
    near.flat_map(|row| row.pieces.iter().map(move |p| (row, p)))
        .find(|(_, piece)| overlaps(piece.bbox, label))
        .map(|(row, piece)| row.span(page.page.number, &piece.chars))
        .into_iter()
        .collect()
}

/// The lines that stand under the label as one block: aligned with it, without a wide gap or a rule between.
fn block(rule: &FieldRule, hit: &Hit, context: Context<'_>) -> Vec<Span> {
    let page = &context.sheet.pages[hit.page];
    let own = &page.rows[hit.row];
    let Some(label) = own.rect(&hit.chars) else { return Vec::new() };
    let reach = rule.reach.max(BLOCK_LINES) as usize;
    let mut last = label;
    let mut lines = Vec::new();
    for row in page.rows.iter().skip(hit.row + 1) {
        let height = (row.bbox.y1 - row.bbox.y0).max(4.0);
        let slack = page.page.width * 0.05;
        let near = |p: &&Piece| overlaps(p.bbox, label) || (p.bbox.x0 - label.x0).abs() < slack;
        let Some(piece) = row.pieces.iter().find(near) else { continue };
        let gap = piece.bbox.y0 - last.y1;
        let limit = if lines.is_empty() { 2.5 } else { 1.2 };
        if gap > height * limit
            || lines.len() >= reach
            || is_ruled_off(page, &last, &piece.bbox, lines.is_empty())
        {
            break;
        }
        lines.push(row.span(page.page.number, &piece.chars));
        last = piece.bbox;
    }
    lines
}

/// Whether a rule lies between two lines; the one right under a heading does not count.
fn is_ruled_off(page: &SheetPage<'_>, upper: &Rect, lower: &Rect, is_first: bool) -> bool {
    let x = f32::midpoint(lower.x0, lower.x1);
    let between = |(y, left, right): &(f32, f32, f32)| {
        *left <= x && x <= *right && upper.y1 - 1.0 <= *y && *y <= lower.y0 + 1.0
    };
    !is_first && page.levels.iter().any(between)
}

/// Everything in the cell that drawn rules make around the label, but for the label itself.
fn same_cell(hit: &Hit, context: Context<'_>) -> Vec<Span> {
    let page = &context.sheet.pages[hit.page];
    let Some(label) = page.rows[hit.row].rect(&hit.chars) else { return Vec::new() };
    let (x, y) = (f32::midpoint(label.x0, label.x1), f32::midpoint(label.y0, label.y1));
    let spans_y = |u: &&(f32, f32, f32)| u.1 <= y + 1.0 && y - 1.0 <= u.2;
    let spans_x = |l: &&(f32, f32, f32)| l.1 <= x + 1.0 && x - 1.0 <= l.2;
    let x0 = page.uprights.iter().filter(spans_y).map(|u| u.0).filter(|v| *v <= x).fold(0.0, f32::max);
    let x1 =
        page.uprights.iter().filter(spans_y).map(|u| u.0).filter(|v| *v > x).fold(page.page.width, f32::min);
    let y0 = page.levels.iter().filter(spans_x).map(|l| l.0).filter(|v| *v <= y).fold(0.0, f32::max);
    let y1 =
        page.levels.iter().filter(spans_x).map(|l| l.0).filter(|v| *v > y).fold(page.page.height, f32::min);
    let cell = Rect { x0, y0, x1, y1 };
    let mut lines = Vec::new();
    for (at, row) in page.rows.iter().enumerate() {
        for piece in row.pieces.iter().filter(|p| is_inside(p.bbox, cell)) {
            let holds_label = at == hit.row && piece.chars.contains(&hit.chars.start);
            let start = if holds_label { hit.chars.end } else { piece.chars.start };
            if start < piece.chars.end {
                lines.push(row.span(page.page.number, &(start..piece.chars.end)));
            }
        }
    }
    lines.retain(|line| line.text.chars().any(char::is_alphanumeric));
    lines
}
