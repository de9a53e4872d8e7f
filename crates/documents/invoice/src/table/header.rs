//! Where a table's headings stand on a page.

use std::ops::Range;

use ode_pdf::Rect;

use super::Heads;
use crate::field::Context;
use crate::label::Hit;
use crate::mapping::{ColumnRule, TableRule};
use crate::sheet::TextRow;
use crate::values::{self, Kind, Locale};

/// Headings take at most this many lines; more is text that happens to hold the words.
const HEADER_ROWS_MAX: usize = 12;
/// Rows of a page at which headings may begin: past this the words of headings are all over the page.
const STARTS_MAX: usize = 1_000;
/// Headings of several lines are at most this high, in points.
const HEADER_HEIGHT_MAX: f32 = 60.0;

/// Headings on one page.
#[derive(Clone, Debug)]
pub(super) struct Header {
    pub rows: Range<usize>,
    pub heads: Heads,
    pub count: usize,
}

/// The rows of a page that hold most headings; among equals the fewest rows, then the first.
pub(super) fn find_header(rule: &TableRule, context: Context<'_>, page: usize) -> Option<Header> {
    let rows = &context.sheet.pages[page].rows;
    let hits: Vec<Vec<Hit>> = rule
        .columns
        .iter()
        .map(|c| context.hits.of(&c.heads).into_iter().filter(|h| h.page == page).collect())
        .collect();
    let hits = without_strays(hits, rows);
    let mut starts: Vec<usize> = hits.iter().flatten().map(|h| h.row).collect();
    starts.sort_unstable();
    starts.dedup();
    starts.truncate(STARTS_MAX);
    let mut best: Option<Header> = None;
    for start in starts {
        for end in start + 1..=rows.len().min(start + HEADER_ROWS_MAX) {
            let is_high = rows[end - 1].bbox.y1 - rows[start].bbox.y0 > HEADER_HEIGHT_MAX;
            if is_high || has_money(&rows[end - 1], context.locale) {
                break;
            }
            let header = header_in(rule, &hits, rows, start..end);
            let lacks = |(c, head): (&ColumnRule, &Option<Rect>)| {
                c.is_required && !c.heads.is_empty() && head.is_none()
            };
            if rule.columns.iter().zip(&header.heads).any(lacks) {
                continue;
            }
            let height = |h: &Header| h.rows.len();
            let is_better = |b: &Header| {
                (header.count, height(b)) > (b.count, height(&header)) && header.count >= b.count
            };
            if header.count >= rule.min_columns && best.as_ref().is_none_or(is_better) {
                best = Some(header);
            }
        }
    }
    best
}

/// Headings stand beside others or at the start of a piece of text. One alone behind other words is a word of a sentence or
/// a name: "Padaria Pão Quente ME".
fn without_strays(mut hits: Vec<Vec<Hit>>, rows: &[TextRow]) -> Vec<Vec<Hit>> {
    let mut places: Vec<Place> = hits.iter().flatten().map(place).collect();
    places.sort_unstable();
    places.dedup();
    let is_alone = |hit: &Hit| {
        let first = places.partition_point(|(row, _)| *row < hit.row);
        places.get(first + 1).is_none_or(|(row, _)| *row != hit.row)
    };
    let begins = |hit: &Hit| rows[hit.row].pieces.iter().any(|piece| piece.chars.start == hit.chars.start);
    hits.iter_mut().for_each(|column| column.retain(|hit| begins(hit) || !is_alone(hit)));
    hits
}

/// Whether a row holds an amount with decimals: then it is a row of the table, not of its headings.
fn has_money(row: &TextRow, locale: &Locale) -> bool {
    values::read_all(Kind::Amount, &row.text, locale).iter().any(|r| r.is_sure)
}

/// Headings within some rows, each place used once. A word that may head several columns ("Jumlah" is a quantity or an
/// amount) is left to one that no row can do without, where that has no other.
fn header_in(rule: &TableRule, hits: &[Vec<Hit>], rows: &[TextRow], window: Range<usize>) -> Header {
    let here: Vec<&[Hit]> = hits.iter().map(|column| within(column, &window)).collect();
    let mut used: Vec<Place> = Vec::new();
    let mut heads = Vec::new();
    for (at, column) in here.iter().enumerate() {
        let is_free = |hit: &&Hit| !used.contains(&place(hit));
        let is_only = |hit: &Hit, other: usize| {
            let mut free = here[other].iter().filter(is_free).map(place);
            free.next() == Some(place(hit)) && free.next().is_none()
        };
        let later = (at + 1..here.len()).filter(|other| is_vital(rule, *other));
        let found = column.iter().find(|hit| is_free(hit) && !later.clone().any(|other| is_only(hit, other)));
        heads.push(found.and_then(|hit| rows[hit.row].rect(&hit.chars)));
        used.extend(found.map(place));
    }
    let count = heads.iter().flatten().count();
    Header { rows: window, heads, count }
}

/// Row and first character of a heading.
type Place = (usize, usize);

fn place(hit: &Hit) -> Place {
    (hit.row, hit.chars.start)
}

/// The hits, which are in reading order, in some rows.
fn within<'a>(hits: &'a [Hit], window: &Range<usize>) -> &'a [Hit] {
    let first = hits.partition_point(|hit| hit.row < window.start);
    let end = hits.partition_point(|hit| hit.row < window.end);
    &hits[first..end]
}

/// Whether there is no row without this column.
fn is_vital(rule: &TableRule, column: usize) -> bool {
    column == rule.starts || rule.columns[column].is_required
}
