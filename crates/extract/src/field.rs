//! Header values: from a rule to candidates, each with its place and the facts that speak for it.

use std::ops::Range;

use ode_pdf::Rect;

use crate::label::{Hit, Hits};
use crate::mapping::file::{LineFile, Where, ZoneFile};
use crate::mapping::{FieldRule, Within};
use crate::record::{Place, Typed};
use crate::sheet::{Piece, Sheet, Span, TextRow};
use crate::values::{self, Kind, Locale};

/// What rules look at.
#[derive(Clone, Copy)]
pub(crate) struct Context<'a> {
    pub sheet: &'a Sheet<'a>,
    pub hits: &'a Hits,
    pub locale: &'a Locale,
    /// The type size of most words, in points.
    pub body_size: f32,
}

/// A value that may be meant.
#[derive(Clone, Debug)]
pub(crate) struct Candidate {
    pub typed: Typed,
    pub printed: String,
    pub place: Option<Place>,
    pub rule: String,
    /// 0 to 1: how well the label and the direction fit.
    pub score: f32,
    /// Whether a check digit or a full form vouches for it.
    pub is_sure: bool,
}

/// Text that a rule points at, before it is read.
struct Source {
    span: Span,
    score: f32,
    how: String,
    /// Whether it begins right behind its label.
    is_label_end: bool,
}

impl Source {
    fn new(span: Span, score: f32, how: impl Into<String>) -> Self {
        Self { span, score, how: how.into(), is_label_end: false }
    }
}

/// More candidates than this for one field say that its rule says nothing.
const CANDIDATES_MAX: usize = 40;
/// Each further way of finding a field counts a little less than the one before.
const ALTERNATIVE_FACTOR: f32 = 0.95;
/// The same for the second and further directions from one label.
const DIRECTION_FACTOR: f32 = 0.93;
/// Type smaller than this share of the body's is small print, which seldom holds what an invoice is about.
const SMALL_PRINT: f32 = 0.6;
const SMALL_PRINT_FACTOR: f32 = 0.8;
/// A value that words part from its label is less surely the label's.
const WORDS_BETWEEN_FACTOR: f32 = 0.8;
/// Money is mostly printed with its decimals; a bare number may be anything.
const BARE_NUMBER_FACTOR: f32 = 0.96;
/// Lines of a block, unless the rule says otherwise.
const BLOCK_LINES: f32 = 8.0;

/// Everything the rule and its alternatives find.
pub(crate) fn candidates(rule: &FieldRule, context: Context<'_>) -> Vec<Candidate> {
    let mut found = candidates_of(rule, context, 1.0);
    let mut factor = 1.0;
    for other in &rule.or {
        factor *= ALTERNATIVE_FACTOR;
        found.extend(candidates_of(other, context, factor));
    }
    found.truncate(CANDIDATES_MAX);
    found
}

fn candidates_of(rule: &FieldRule, context: Context<'_>, factor: f32) -> Vec<Candidate> {
    if let Some(value) = &rule.value {
        let typed = values::constant(rule.kind, value);
        let rule = "a constant of the mapping".into();
        return vec![Candidate { typed, printed: String::new(), place: None, rule, score: factor, is_sure: false }];
    }
    let mut found = Vec::new();
    for source in sources(rule, context) {
        let is_small = source.span.font_size < context.body_size * SMALL_PRINT;
        let factor = if is_small { factor * SMALL_PRINT_FACTOR } else { factor };
        for mut candidate in read(rule, &source, context.locale) {
            candidate.score *= factor;
            found.push(candidate);
        }
        if found.len() >= CANDIDATES_MAX {
            break;
        }
    }
    found
}

/// Reads a source as the rule's kind; a pattern in `take` cuts it first.
fn read(rule: &FieldRule, source: &Source, locale: &Locale) -> Vec<Candidate> {
    let Some(cut) = take(&source.span, rule.take.as_ref()) else { return Vec::new() };
    let kind = if rule.codes.is_empty() { rule.kind } else { Kind::Text };
    values::read_all(kind, &cut.text, locale)
        .into_iter()
        .filter_map(|reading| {
            let rect = cut.rect(&reading.chars)?;
            let printed = values::tidy(&cut.part(&reading.chars).text);
            if rule.not.iter().any(|pattern| pattern.is_match(&printed)) {
                return None;
            }
            let typed = coded(reading.typed, &rule.codes)?;
            let mut score = source.score;
            if kind == Kind::Currency && !reading.is_sure {
                // A code says more than a mark: "$" is several currencies.
                score *= 0.9;
            }
            if kind == Kind::Amount && !reading.is_sure {
                score *= BARE_NUMBER_FACTOR;
            }
            if source.is_label_end && has_words_before(&cut.text, reading.chars.start) {
                score *= WORDS_BETWEEN_FACTOR;
            }
            let place = Some(Place { page: cut.page, bbox: rect });
            let rule = source.how.clone();
            Some(Candidate { typed, printed, place, rule, score, is_sure: reading.is_sure })
        })
        .collect()
}

/// Whether three letters or more stand before the value, other than a currency's.
fn has_words_before(text: &str, start: usize) -> bool {
    let head: String = text.chars().take(start).collect();
    let words = head.split(|c: char| !c.is_alphabetic());
    words.filter(|w| !values::currency::is_mark(w)).any(|w| w.chars().count() >= 3)
}

/// The part that the pattern wants: its first group, or all of it.
pub(crate) fn take(span: &Span, pattern: Option<&regex::Regex>) -> Option<Span> {
    let Some(pattern) = pattern else { return Some(span.clone()) };
    let captures = pattern.captures(&span.text)?;
    let bytes = captures.get(1).or_else(|| captures.get(0))?.range();
    (!bytes.is_empty()).then(|| span.part(&crate::label::char_range(&span.text, bytes)))
}

/// Printed text to code, where the rule lists codes; what is not listed is no value.
pub(crate) fn coded(typed: Typed, codes: &std::collections::BTreeMap<String, String>) -> Option<Typed> {
    let Typed::Text(text) = &typed else { return Some(typed) };
    if codes.is_empty() {
        return Some(typed);
    }
    let code = codes.iter().find(|(printed, _)| printed.eq_ignore_ascii_case(text))?;
    Some(Typed::Code(code.1.clone()))
}

fn sources(rule: &FieldRule, context: Context<'_>) -> Vec<Source> {
    let areas = rule.within.as_ref().map(|within| areas(within, context));
    let is_allowed = |page: usize, row: usize, x: f32| {
        is_on_page(rule.page, page, context.sheet.pages.len())
            && areas.as_ref().is_none_or(|areas| areas.iter().any(|a| a.holds(page, row, x)))
    };
    let mut sources = Vec::new();
    for hit in context.hits.of(&rule.anchors) {
        let row = context.sheet.row(hit.page, hit.row);
        let x = row.rect(&hit.chars).map_or(0.0, |r| r.x0);
        if is_allowed(hit.page, hit.row, x) {
            anchored(rule, &hit, context, &mut sources);
        }
    }
    if let Some(pattern) = &rule.find {
        found(pattern, context, &is_allowed, &mut sources);
    }
    if let Some(zone) = rule.zone {
        let lines = zone_lines(zone, context.sheet);
        select_lines(rule, lines, 0.9, "in its zone of the page", &mut sources);
    }
    if rule.anchors.is_empty() && rule.find.is_none() && rule.zone.is_none() {
        for area in areas.iter().flatten() {
            let lines = area.lines(context);
            select_lines(rule, lines, 0.95, "in its section", &mut sources);
        }
    }
    sources
}

fn is_on_page(wanted: Option<i32>, page: usize, count: usize) -> bool {
    match wanted {
        None => true,
        Some(n) if n > 0 => page + 1 == n.unsigned_abs() as usize,
        Some(n) => page + n.unsigned_abs() as usize == count,
    }
}

/// Where the pattern matches; its first group is the value. A match begins in one row and may end in the next, for
/// titles that wrap.
fn found(
    pattern: &regex::Regex,
    context: Context<'_>,
    is_allowed: &dyn Fn(usize, usize, f32) -> bool,
    sources: &mut Vec<Source>,
) {
    for (page_at, page) in context.sheet.pages.iter().enumerate() {
        for (row_at, row) in page.rows.iter().enumerate() {
            let mut text = row.text.clone();
            if let Some(next) = page.rows.get(row_at + 1) {
                text.push('\n');
                text.push_str(&next.text);
            }
            for captures in pattern.captures_iter(&text) {
                let is_own = captures.get(0).is_some_and(|m| m.start() < row.text.len());
                let group = captures.get(1).or_else(|| captures.get(0)).filter(|m| is_own && !m.is_empty());
                let Some(group) = group else { continue };
                let chars = crate::label::char_range(&text, group.range());
                let mut span = row.span(page.page.number, &(0..row.chars.len()));
                if let Some(next) = page.rows.get(row_at + 1).filter(|_| chars.end > row.chars.len()) {
                    span.push_line(&next.span(page.page.number, &(0..next.chars.len())));
                }
                let span = span.part(&chars);
                let x = span.rect(&(0..span.chars.len())).map_or(0.0, |r| r.x0);
                if is_allowed(page_at, row_at, x) {
                    sources.push(Source::new(span, 1.0, "by its pattern"));
                }
            }
        }
    }
}

/// What stands in each direction from a label.
fn anchored(rule: &FieldRule, hit: &Hit, context: Context<'_>, sources: &mut Vec<Source>) {
    let row = context.sheet.row(hit.page, hit.row);
    let label = values::tidy(&row.slice(&hit.chars));
    let base = label_score(row, hit);
    let mut factor = 1.0;
    for direction in &rule.wheres {
        let (name, lines) = match direction {
            Where::Right => {
                right(rule, hit, context, base * factor, &label, sources);
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

/// A label that is a whole piece, or stands before a colon, is surely a label; one inside a sentence may be a word.
fn label_score(row: &TextRow, hit: &Hit) -> f32 {
    let Some(piece) = row.piece_at(hit.chars.start).map(|at| &row.pieces[at]) else { return 0.5 };
    let starts = piece.chars.start == hit.chars.start;
    let next = row.text.chars().nth(hit.chars.end);
    let ends = next.is_none_or(|c| c == '\t' || c == ':');
    match (starts, ends) {
        (true, true) => 1.0,
        (true, false) => 0.96,
        (false, true) => 0.9,
        (false, false) => 0.8,
    }
}

/// See `right`.
const UNPARTED_FACTOR: f32 = 0.75;
/// A label that goes on with other words on its line heads no block.
const NO_HEADING_FACTOR: f32 = 0.7;

/// Whether nothing but a colon follows the label in its piece.
fn is_heading(row: &TextRow, hit: &Hit) -> bool {
    let end = row.piece_at(hit.chars.end - 1).map_or(hit.chars.end, |at| row.pieces[at].chars.end);
    let starts = row.piece_at(hit.chars.start).is_some_and(|at| row.pieces[at].chars.start == hit.chars.start);
    starts && !row.slice(&(hit.chars.end..end)).chars().any(char::is_alphanumeric)
}

/// The rest of the label's own piece, then the pieces behind it, up to the next label.
fn right(
    rule: &FieldRule,
    hit: &Hit,
    context: Context<'_>,
    score: f32,
    label: &str,
    sources: &mut Vec<Source>,
) {
    let row = context.sheet.row(hit.page, hit.row);
    let page = context.sheet.pages[hit.page].page.number;
    let Some(at) = row.piece_at(hit.chars.end - 1) else { return };
    let labels = context.hits.anchors_in(hit.page, hit.row);
    let next_label = |from: usize, to: usize| {
        labels.iter().map(|l| l.start).filter(|s| *s >= from && *s < to).min().unwrap_or(to)
    };
    let how = format!("right of “{label}”");
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
    for piece in &row.pieces[at + 1..] {
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
fn wrapped(context: Context<'_>, hit: &Hit, piece: &Piece) -> Span {
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
        if gap > height * limit || lines.len() >= reach || is_ruled_off(page, &last, &piece.bbox, lines.is_empty()) {
            break;
        }
        lines.push(row.span(page.page.number, &piece.chars));
        last = piece.bbox;
    }
    lines
}

/// Whether a rule lies between two lines; the one right under a heading does not count.
fn is_ruled_off(page: &crate::sheet::SheetPage<'_>, upper: &Rect, lower: &Rect, is_first: bool) -> bool {
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
    let x1 = page.uprights.iter().filter(spans_y).map(|u| u.0).filter(|v| *v > x).fold(page.page.width, f32::min);
    let y0 = page.levels.iter().filter(spans_x).map(|l| l.0).filter(|v| *v <= y).fold(0.0, f32::max);
    let y1 = page.levels.iter().filter(spans_x).map(|l| l.0).filter(|v| *v > y).fold(page.page.height, f32::min);
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

fn is_inside(rect: Rect, cell: Rect) -> bool {
    let (x, y) = (f32::midpoint(rect.x0, rect.x1), f32::midpoint(rect.y0, rect.y1));
    cell.x0 <= x && x <= cell.x1 && cell.y0 <= y && y <= cell.y1
}

fn zone_lines(zone: ZoneFile, sheet: &Sheet<'_>) -> Vec<Span> {
    let Some(page) = sheet.pages.iter().enumerate().find(|(at, _)| is_on_page(Some(zone.page), *at, sheet.pages.len()))
    else {
        return Vec::new();
    };
    let page = page.1;
    let [x0, y0, x1, y1] = zone.r#box;
    let (w, h) = (page.page.width / 100.0, page.page.height / 100.0);
    let cell = Rect { x0: x0 * w, y0: y0 * h, x1: x1 * w, y1: y1 * h };
    let pieces = page.rows.iter().flat_map(|row| row.pieces.iter().map(move |p| (row, p)));
    pieces
        .filter(|(_, p)| is_inside(p.bbox, cell))
        .map(|(row, p)| row.span(page.page.number, &p.chars))
        .collect()
}

/// Keeps the line that the rule asks for; without one, all of them count, the earlier the better.
fn select_lines(rule: &FieldRule, mut lines: Vec<Span>, score: f32, how: &str, sources: &mut Vec<Source>) {
    lines.retain(|line| !rule.not.iter().any(|pattern| pattern.is_match(&line.text)));
    let first = match rule.line {
        Some(LineFile::Number(n)) if n > 0 => Some(n.unsigned_abs() as usize - 1),
        Some(LineFile::Number(n)) => lines.len().checked_sub(n.unsigned_abs() as usize),
        Some(LineFile::LargestFont) => largest(&lines),
        Some(LineFile::Bold) => lines.iter().position(|l| l.is_bold),
        Some(LineFile::Addressee) => addressee(&lines),
        Some(LineFile::Company) => lines.iter().position(|l| is_company(&l.text)),
        None if rule.lines > 1 => Some(0),
        None => {
            let mut factor = 1.0;
            for span in lines {
                sources.push(Source::new(span, score * factor, how));
                factor *= 0.97;
            }
            return;
        }
    };
    let Some(first) = first.filter(|first| *first < lines.len()) else { return };
    let mut joined = Span::default();
    let is_styled = matches!(rule.line, Some(LineFile::Bold | LineFile::LargestFont));
    let style = |line: &Span| (line.is_bold, line.font_size.round() as i32);
    let own = style(&lines[first]);
    for line in lines[first..].iter().take(rule.lines).take_while(|l| !is_styled || style(l) == own) {
        joined.push_line(line);
    }
    sources.push(Source::new(joined, score, how));
}

fn largest(lines: &[Span]) -> Option<usize> {
    let size = lines.iter().map(|l| l.font_size).fold(0.0, f32::max);
    lines.iter().position(|l| l.font_size >= size - 0.1)
}

/// The first line of the first block that reads like a postal address: two to seven lines set closely under each
/// other, one of which begins with a postal code and a town.
fn addressee(lines: &[Span]) -> Option<usize> {
    let boxes: Vec<Rect> = lines.iter().map(|l| l.rect(&(0..l.chars.len())).unwrap_or_default()).collect();
    let towns = lines.iter().enumerate().skip(1).filter(|(_, line)| is_town(&line.text)).map(|(at, _)| at);
    towns.take(8).find_map(|town| first_above(lines, &boxes, town))
}

/// The top of the lines set closely over a town, if there are any.
fn first_above(lines: &[Span], boxes: &[Rect], town: usize) -> Option<usize> {
    let mut first = town;
    for at in (0..town).rev() {
        let (upper, lower) = (boxes[at], boxes[first]);
        let is_aligned = (upper.x0 - lower.x0).abs() < 4.0;
        let gap = lower.y0 - upper.y1;
        if is_aligned && gap < (lower.y1 - lower.y0) * 2.6 && town - at < 12 && !is_town(&lines[at].text) {
            first = at;
        } else if is_aligned {
            break;
        }
    }
    (first < town).then_some(first)
}

/// "40235 Düsseldorf", "D-63571 Gelnhausen", "75018 PARIS, FR".
fn is_town(text: &str) -> bool {
    let text = text.trim();
    let bare = text.split_once(['-', ' ']).filter(|(c, _)| c.len() <= 2 && c.chars().all(char::is_alphabetic));
    let text = bare.map_or(text, |(_, rest)| rest);
    let digits = text.chars().take_while(char::is_ascii_digit).count();
    let rest = text[digits..].trim_start();
    matches!(digits, 4 | 5) && rest.len() + digits < text.len() && rest.chars().next().is_some_and(char::is_uppercase)
}

/// Legal forms, folded, as they stand behind a company's name.
const FORMS: &[&str] = &[
    "gmbh", "ag", "kg", "kgaa", "ohg", "ug", "gbr", "se", "e.k", "ek", "e.v", "ev", "eg", "mbh", "a.g", "ltd", "limited", "inc",
    "incorporated", "llc", "llp", "lp", "corp", "corporation", "plc", "company", "co", "sarl", "s.a.r.l", "sas", "s.a.s", "sa", "s.a",
    "eurl", "sasu", "snc", "bv", "b.v", "nv", "n.v", "vof", "srl", "s.r.l", "spa", "s.p.a", "sl", "s.l", "lda", "ltda", "oy", "oyj", "ab",
    "aps", "as", "a/s", "asa", "pty", "sdn", "bhd", "pte", "tbk", "kft", "zrt", "sro", "s.r.o", "doo", "d.o.o", "sp", "gesellschaft",
];
/// Legal forms that stand before the name.
const PREFIX_FORMS: &[&str] = &["pt", "pt.", "cv", "cv.", "ud", "ud.", "koperasi", "firma", "fa", "yayasan", "perum", "pd"];

/// Whether a line names a company by its legal form.
pub(crate) fn is_company(text: &str) -> bool {
    let folded = crate::sheet::fold(text);
    let words: Vec<&str> = folded.split_whitespace().collect();
    let is_form = |word: &&str| FORMS.contains(&word.trim_matches(|c: char| !c.is_alphanumeric()));
    let has_prefix = words.first().is_some_and(|w| PREFIX_FORMS.contains(w)) && words.len() > 1;
    has_prefix || words.iter().skip(1).any(is_form)
}

/// A stretch of rows between two headings.
pub(crate) struct Area {
    from: (usize, usize),
    to: (usize, usize),
    x: Range<f32>,
}

impl Area {
    pub(crate) fn holds(&self, page: usize, row: usize, x: f32) -> bool {
        let at = (page, row);
        self.from <= at && at < self.to && self.x.contains(&x)
    }

    fn lines(&self, context: Context<'_>) -> Vec<Span> {
        let mut lines = Vec::new();
        for (page, at, row) in context.sheet.rows() {
            let number = context.sheet.pages[page].page.number;
            let mut inside = row.pieces.iter().filter(|p| self.holds(page, at, p.bbox.x0));
            if let Some(first) = inside.next() {
                let end = inside.last().map_or(first.chars.end, |p| p.chars.end);
                lines.push(row.span(number, &(first.chars.start..end)));
            }
        }
        lines
    }
}

pub(crate) fn areas(within: &Within, context: Context<'_>) -> Vec<Area> {
    let ends = context.hits.of(&within.to);
    let starts = context.hits.of(&within.from).into_iter().filter(|hit| begins_piece(hit, context));
    starts
        .map(|hit| {
            let from = (hit.page, hit.row + 1);
            let x = if within.is_column { column_of(&hit, context) } else { f32::MIN..f32::MAX };
            let in_column = |end: &Hit| {
                let left = context.sheet.row(end.page, end.row).rect(&end.chars).map_or(0.0, |r| r.x0);
                x.contains(&left) && begins_piece(end, context)
            };
            let to = ends.iter().filter(|e| (e.page, e.row) >= from).find(|e| in_column(e));
            Area { from, to: to.map_or((usize::MAX, 0), |e| (e.page, e.row)), x }
        })
        .collect()
}

/// A heading begins its piece; the same word inside a sentence opens nothing.
fn begins_piece(hit: &Hit, context: Context<'_>) -> bool {
    let row = context.sheet.row(hit.page, hit.row);
    row.piece_at(hit.chars.start).is_some_and(|at| row.pieces[at].chars.start == hit.chars.start)
}

/// From the heading's left edge to the next piece beside it.
fn column_of(hit: &Hit, context: Context<'_>) -> Range<f32> {
    let row = context.sheet.row(hit.page, hit.row);
    let Some(at) = row.piece_at(hit.chars.start) else { return f32::MIN..f32::MAX };
    let slack = 8.0;
    let left = if at == 0 { f32::MIN } else { row.pieces[at].bbox.x0 - slack };
    let right = row.pieces.get(at + 1).map_or(f32::MAX, |p| p.bbox.x0 - slack);
    left..right
}
