//! Which lines of a table's body make one row.

use super::cells::read_row;
use super::{Bands, BodyRow, band_of, cell_span, distinct};
use crate::field::take;
use crate::mapping::TableRule;
use crate::record::Row;
use crate::sheet::Stroke;
use crate::values::{self, Locale};

/// A rule parts rows when it covers this share of the page's width.
const RULE_SHARE: f32 = 0.25;

/// Rows on one page.
pub(super) fn page_rows(
    rule: &TableRule,
    bands: &Bands,
    body: &[BodyRow<'_>],
    top: f32,
    locale: &Locale,
) -> Vec<Row> {
    let mut starts: Vec<usize> =
        (0..body.len()).filter_map(|at| start_at(rule, bands, body, at, locale)).collect();
    starts.dedup();
    let mut rows = Vec::new();
    let is_ruled = is_ruled(body, &starts);
    let first = |previous: Option<usize>, start: usize| {
        let floor = previous.map_or(top, |p| body[p].row.bbox.y1);
        let drawn = rule_between(&body[start], floor).filter(|_| is_ruled);
        first_of(rule, body, previous, start, drawn)
    };
    let mut upper = starts.first().map_or(0, |start| first(None, *start));
    for (at, start) in starts.iter().enumerate() {
        let lower = starts.get(at + 1).map_or(body.len(), |next| first(Some(*start), *next));
        let row = read_row(rule, bands, &body[upper..lower.max(start + 1)], start - upper, locale);
        rows.extend(row);
        upper = lower;
    }
    rows
}

/// The row that starts where this line fills the starting column and something else stands beside it. A figure
/// alone may hang a little lower than the line it belongs to.
fn start_at(
    rule: &TableRule,
    bands: &Bands,
    body: &[BodyRow<'_>],
    at: usize,
    locale: &Locale,
) -> Option<usize> {
    let band = band_of(rule, bands, rule.starts)?;
    let column = &rule.columns[rule.starts];
    let is_filled = |part: &BodyRow<'_>| {
        let cell = cell_span(part, &band).and_then(|span| take(&span, column.take.as_ref()));
        cell.is_some_and(|span| !values::read_all(column.kind, &span.text, locale).is_empty())
    };
    let cells = |part: &BodyRow<'_>| distinct(bands).filter(|b| cell_span(part, b).is_some()).count();
    let part = &body[at];
    if !is_filled(part) {
        return None;
    }
    if cells(part) >= distinct(bands).count().min(2) {
        return Some(at);
    }
    let upper = at.checked_sub(1).map(|upper| (upper, &body[upper]))?;
    let height = part.row.bbox.y1 - part.row.bbox.y0;
    let hangs = part.row.bbox.y0 - upper.1.row.bbox.y0 < height * 1.3;
    (hangs && !is_filled(upper.1) && cells(upper.1) >= 2).then_some(upper.0)
}

/// The lowest rule drawn across the table between a height and a row.
fn rule_between(part: &BodyRow<'_>, floor: f32) -> Option<f32> {
    let width = part.page.page.width * RULE_SHARE;
    let limit = part.row.y_mid();
    let is_across = |l: &&Stroke| l.2 - l.1 >= width && floor - 1.0 <= l.0 && l.0 <= limit;
    part.page.levels.iter().filter(is_across).map(|l| l.0).max_by(f32::total_cmp)
}

/// Whether rules part the rows: between most of them, or, for a single row, as the walls of its cells.
fn is_ruled(body: &[BodyRow<'_>], starts: &[usize]) -> bool {
    let pairs = starts.windows(2);
    let count = pairs.len();
    let ruled = pairs.filter(|w| rule_between(&body[w[1]], body[w[0]].row.bbox.y1).is_some()).count();
    match starts {
        [only] => {
            let part = &body[*only];
            let y = part.row.y_mid();
            part.page.uprights.iter().filter(|(_, top, bottom)| *top <= y && y <= *bottom).count() >= 3
        }
        _ => count > 0 && ruled * 2 >= count,
    }
}

/// The first body row that belongs to the row starting at `start`: below the rule drawn above it, or the rows that
/// the mapping allows.
fn first_of(
    rule: &TableRule,
    body: &[BodyRow<'_>],
    previous: Option<usize>,
    start: usize,
    drawn: Option<f32>,
) -> usize {
    let lowest = previous.map_or(0, |p| p + 1);
    match drawn {
        Some(y) => (lowest..=start).find(|at| body[*at].row.y_mid() > y).unwrap_or(start),
        None => start.saturating_sub(rule.above).max(lowest),
    }
}
