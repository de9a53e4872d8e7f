//! Tables by geometry: headings give the columns, white gutters and drawn rules their bounds, one column that is
//! filled once per row tells the rows apart. Cells may wrap, numbers may stand right-aligned, and the table may go
//! on over pages with or without its headings.

mod body;
mod cells;
mod columns;
mod header;

use std::ops::Range;

use ode_pdf::Rect;

use crate::field::{Context, areas, begins_piece};
use crate::label::Hit;
use crate::mapping::{ColumnRule, TableRule};
use crate::pattern::Pattern;
use crate::record::Row;
use crate::sheet::{SheetPage, Span, TextRow, union};
use body::page_rows;
use cells::{constant, counted, typed_cell};
use columns::cut_columns;
use header::{Header, find_header};

/// More rows than this are not an invoice's lines.
const ROWS_MAX: usize = 5_000;

/// Where each column begins and ends; none for columns without a heading.
type Bands = Vec<Option<Range<f32>>>;

/// Where each column's heading stands; none for those that have none.
type Heads = Vec<Option<Rect>>;

/// A text row of the table's body.
#[derive(Clone, Copy)]
struct BodyRow<'a> {
    page: &'a SheetPage<'a>,
    row: &'a TextRow,
}

/// Reads all rows of a table.
pub(crate) fn rows(rule: &TableRule, context: Context<'_>) -> Vec<Row> {
    let mut found = match &rule.pattern {
        Some(pattern) => rows_by_pattern(rule, pattern, context),
        None => rows_by_headings(rule, context),
    };
    found.truncate(ROWS_MAX);
    for column in rule.columns.iter().filter(|c| c.is_counted) {
        for (at, row) in found.iter_mut().enumerate() {
            row.insert(column.name.clone(), counted(column, at + 1));
        }
    }
    found
}

/// Every line that matches is a row; the pattern's named groups are its cells.
fn rows_by_pattern(rule: &TableRule, pattern: &Pattern, context: Context<'_>) -> Vec<Row> {
    let areas = rule.within.as_ref().map(|within| areas(within, context));
    let mut found = Vec::new();
    for (page, at, text_row) in context.sheet.rows() {
        let is_inside =
            areas.as_ref().is_none_or(|areas| areas.iter().any(|a| a.holds(page, at, text_row.bbox.x0)));
        let groups = pattern.captures_iter(&text_row.text).next();
        let Some(groups) = groups.filter(|_| is_inside) else { continue };
        let number = context.sheet.pages[page].page.number;
        let mut row = Row::new();
        for column in &rule.columns {
            let cell = match (groups.get_group_by_name(&column.name), &column.value) {
                (Some(group), _) => {
                    let chars = crate::label::char_range(&text_row.text, group.range());
                    typed_cell(column, &text_row.span(number, &chars), context.locale)
                }
                (None, Some(value)) => Some(constant(column, value)),
                (None, None) => None,
            };
            row.extend(cell.map(|(cell, _)| (column.name.clone(), cell)));
        }
        let lacks = |c: &ColumnRule| c.is_required && !row.contains_key(&c.name);
        if !row.is_empty() && !rule.columns.iter().any(lacks) {
            found.push(row);
        }
    }
    found
}

fn rows_by_headings(rule: &TableRule, context: Context<'_>) -> Vec<Row> {
    let mut found = Vec::new();
    // Headings that are still in force on pages that repeat none.
    let mut heads: Option<Heads> = None;
    let pages = 0..context.sheet.pages.len();
    let headers: Vec<Option<Header>> = pages.map(|at| find_header(rule, context, at)).collect();
    let most = headers.iter().flatten().map(|h| h.count).max().unwrap_or_default();
    for ((at, page), header) in context.sheet.pages.iter().enumerate().zip(headers) {
        // A few of the words elsewhere head another table, of terms or of taxes.
        let header = header.filter(|h| h.count * 10 >= most * 7);
        let first = match (&header, &heads) {
            (Some(header), _) => header.rows.end,
            (None, Some(_)) if rule.continues => 0,
            (None, _) => continue,
        };
        let last = end_of_body(rule, context, at, first);
        let body: Vec<BodyRow<'_>> = page.rows[first..last]
            .iter()
            .filter(|row| !rule.skip.iter().any(|pattern| pattern.is_match(&row.text)))
            .map(|row| BodyRow { page, row })
            .collect();
        let top = header.as_ref().map_or(0.0, |h| page.rows[h.rows.end - 1].bbox.y1);
        heads = header.map(|h| h.heads).or(heads);
        if let Some(heads) = &heads {
            let bands = cut_columns(rule, heads, page, &body, context.locale);
            found.extend(page_rows(rule, &bands, &body, top, context.locale));
        }
        if last < page.rows.len() {
            heads = None;
        }
        if found.len() > ROWS_MAX {
            break;
        }
    }
    found
}

/// The first row that begins with a label of `until`, or the page's end.
fn end_of_body(rule: &TableRule, context: Context<'_>, page: usize, first: usize) -> usize {
    let is_after = |h: &Hit| h.page == page && h.row >= first && begins_piece(h, context);
    let end = context.hits.of(&rule.until).into_iter().find(&is_after);
    let mut totals = context.hits.of(&rule.until_totals).into_iter().filter(&is_after).take(TOTALS_MAX);
    let total = totals.find(|h| is_total(h, context));
    let rows = context.sheet.pages[page].rows.len();
    end.into_iter().chain(total).map(|h| h.row).min().unwrap_or(rows)
}

/// Labels of totals that are looked at closely on a page.
const TOTALS_MAX: usize = 200;

/// Whether a label of a total is followed by nothing but amounts and other labels: "Base 1.234,00", but not "Base
/// plate, steel".
fn is_total(label: &Hit, context: Context<'_>) -> bool {
    let row = context.sheet.row(label.page, label.row);
    let labels = context.hits.all_in(label.page, label.row);
    // A label alone may belong to headings of several lines.
    let has_amount = row.text.chars().skip(label.chars.end).any(|c| c.is_ascii_digit());
    if !has_amount && labels.len() < 2 {
        return false;
    }
    let mut word = String::new();
    for (at, c) in row.text.chars().enumerate().skip(label.chars.end).chain([(0, ' ')]) {
        let is_covered = labels.iter().any(|l| l.contains(&at)) && at > 0;
        if c.is_alphabetic() && !is_covered {
            word.push(c);
        } else {
            if word.chars().count() >= 3 && !crate::values::currency::is_mark(&word) {
                return false;
            }
            word.clear();
        }
    }
    true
}

fn mid_x(rect: Rect) -> f32 {
    f32::midpoint(rect.x0, rect.x1)
}

/// Words of a row as ranges of characters and boxes.
fn words_of(row: &TextRow) -> Vec<(Range<usize>, Rect)> {
    let mut words: Vec<(Range<usize>, Rect)> = Vec::new();
    for (at, rect) in row.chars.iter().enumerate() {
        let Some(rect) = rect else { continue };
        match words.last_mut().filter(|(chars, _)| chars.end == at) {
            Some((chars, whole)) => {
                chars.end = at + 1;
                *whole = union(*whole, *rect);
            }
            None => words.push((at..at + 1, *rect)),
        }
    }
    words
}

/// The words of a row whose middle lies in the band.
fn cell_span(part: &BodyRow<'_>, band: &Range<f32>) -> Option<Span> {
    let mut span: Option<Span> = None;
    for (chars, rect) in words_of(part.row) {
        if !band.contains(&mid_x(rect)) {
            continue;
        }
        let word = part.row.span(part.page.page.number, &chars);
        match &mut span {
            None => span = Some(word),
            Some(whole) => {
                // Far apart, "1" and "210.00" are two numbers.
                let is_apart = part.row.text.chars().nth(chars.start - 1) == Some('\t');
                whole.text.push(if is_apart { '\t' } else { ' ' });
                whole.chars.push(None);
                whole.text.push_str(&word.text);
                whole.chars.extend(word.chars);
            }
        }
    }
    span
}

/// A column's band, widened over the columns to its right that its cells reach over.
fn band_of(rule: &TableRule, bands: &Bands, column: usize) -> Option<Range<f32>> {
    let own = bands[column].clone()?;
    let mut ends: Vec<f32> = bands.iter().flatten().map(|b| b.end).filter(|e| *e > own.end).collect();
    ends.sort_by(f32::total_cmp);
    let span = rule.columns[column].span;
    let end = if span == 0 { own.end } else { ends.get(span - 1).copied().unwrap_or(own.end) };
    Some(own.start..end)
}

/// Bands without those that stacked headings share.
fn distinct(bands: &Bands) -> impl Iterator<Item = &Range<f32>> {
    let all: Vec<&Range<f32>> = bands.iter().flatten().collect();
    let mut once: Vec<&Range<f32>> = Vec::new();
    for band in all {
        if !once.contains(&band) {
            once.push(band);
        }
    }
    once.into_iter()
}
