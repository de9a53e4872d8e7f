//! Tables by geometry: headings give the columns, white gutters and drawn rules their bounds, one column that is
//! filled once per row tells the rows apart. Cells may wrap, numbers may stand right-aligned, and the table may go
//! on over pages with or without its headings.

use std::ops::Range;

use ode_pdf::Rect;

use crate::field::{Context, coded, take};
use crate::label::Hit;
use crate::mapping::{ColumnRule, TableRule};
use crate::record::{Cell, Field, Place, Row, Typed, Value};
use crate::sheet::{SheetPage, Span, TextRow, union};
use crate::values::{self, Kind, Locale, number};

/// More rows than this are not an invoice's lines.
const ROWS_MAX: usize = 5_000;
/// Headings of several lines are at most this high, in points.
const HEADER_HEIGHT_MAX: f32 = 60.0;
/// A rule parts rows when it covers this share of the table's width.
const RULE_SHARE: f32 = 0.3;
/// How sure a cell is by its place alone.
const CELL_CONFIDENCE: f32 = 0.88;

/// Headings on one page.
#[derive(Clone, Debug)]
struct Header {
    rows: Range<usize>,
    heads: Vec<Option<Rect>>,
    count: usize,
}

/// Where each column begins and ends; none for columns without a heading.
type Bands = Vec<Option<Range<f32>>>;

/// A text row of the table's body.
#[derive(Clone, Copy)]
struct BodyRow<'a> {
    page: &'a SheetPage<'a>,
    row: &'a TextRow,
}

/// Reads all rows of a table.
pub(crate) fn rows(rule: &TableRule, context: Context<'_>) -> Vec<Row> {
    let mut found = Vec::new();
    let mut bands: Option<Bands> = None;
    for (at, page) in context.sheet.pages.iter().enumerate() {
        let header = find_header(rule, context, at);
        let first = match (&header, &bands) {
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
        if let Some(header) = &header {
            bands = Some(cut_columns(rule, header, page, &body, context.locale));
        }
        if let Some(bands) = &bands {
            let top = header.as_ref().map_or(0.0, |h| page.rows[h.rows.end - 1].bbox.y1);
            found.extend(page_rows(rule, bands, &body, top, context.locale));
        }
        if last < page.rows.len() {
            bands = None;
        }
        if found.len() > ROWS_MAX {
            break;
        }
    }
    found.truncate(ROWS_MAX);
    found
}

/// The first row that begins with a label of `until`, or the page's end.
fn end_of_body(rule: &TableRule, context: Context<'_>, page: usize, first: usize) -> usize {
    let rows = &context.sheet.pages[page].rows;
    let begins = |hit: &Hit| {
        let row = &rows[hit.row];
        row.piece_at(hit.chars.start).is_some_and(|at| row.pieces[at].chars.start == hit.chars.start)
    };
    let ends = context.hits.of(&rule.until);
    ends.iter().filter(|h| h.page == page && h.row >= first && begins(h)).map(|h| h.row).min().unwrap_or(rows.len())
}

/// The rows of a page that hold most headings. Growing is allowed only where it brings a further heading.
fn find_header(rule: &TableRule, context: Context<'_>, page: usize) -> Option<Header> {
    let rows = &context.sheet.pages[page].rows;
    let hits: Vec<Vec<Hit>> = rule
        .columns
        .iter()
        .map(|c| context.hits.of(&c.heads).into_iter().filter(|h| h.page == page).collect())
        .collect();
    let mut starts: Vec<usize> = hits.iter().flatten().map(|h| h.row).collect();
    starts.sort_unstable();
    starts.dedup();
    let mut best: Option<Header> = None;
    for start in starts {
        for end in start + 1..=rows.len() {
            if rows[end - 1].bbox.y1 - rows[start].bbox.y0 > HEADER_HEIGHT_MAX {
                break;
            }
            let header = header_in(&hits, rows, start..end);
            if header.count >= rule.min_columns && best.as_ref().is_none_or(|b| header.count > b.count) {
                best = Some(header);
            }
        }
    }
    best
}

/// Headings within some rows, each place used once.
fn header_in(hits: &[Vec<Hit>], rows: &[TextRow], window: Range<usize>) -> Header {
    let mut used: Vec<(usize, usize)> = Vec::new();
    let mut heads = Vec::new();
    for column in hits {
        let free = column.iter().find(|h| window.contains(&h.row) && !used.contains(&(h.row, h.chars.start)));
        heads.push(free.and_then(|hit| {
            used.push((hit.row, hit.chars.start));
            rows[hit.row].rect(&hit.chars)
        }));
    }
    let count = heads.iter().flatten().count();
    Header { rows: window, heads, count }
}

/// Bounds between columns: a drawn rule where there is one, else the widest white gutter.
fn cut_columns(
    rule: &TableRule,
    header: &Header,
    page: &SheetPage<'_>,
    body: &[BodyRow<'_>],
    locale: &Locale,
) -> Bands {
    let mut order: Vec<(usize, Rect)> =
        header.heads.iter().enumerate().filter_map(|(at, r)| r.map(|r| (at, r))).collect();
    order.sort_by(|a, b| mid_x(a.1).total_cmp(&mid_x(b.1)));
    let words = weighed_words(rule, &order, body, locale);
    let y = header.rows.clone().map(|r| page.rows[r].y_mid()).fold(0.0, f32::max);
    let mut bands: Bands = vec![None; rule.columns.len()];
    let mut left = 0.0;
    for (at, (column, head)) in order.iter().enumerate() {
        let right = order.get(at + 1).map_or(page.page.width, |(_, next)| boundary(*head, *next, page, y, &words));
        bands[*column] = Some(left..right);
        left = right;
    }
    bands
}

fn mid_x(rect: Rect) -> f32 {
    f32::midpoint(rect.x0, rect.x1)
}

/// How much a gutter minds being crossed by the figures and headings of the table; notes between its rows may reach
/// over every gutter and count once.
const MAIN_WEIGHT: i32 = 1000;

/// The table's words with their weights.
fn weighed_words(
    rule: &TableRule,
    order: &[(usize, Rect)],
    body: &[BodyRow<'_>],
    locale: &Locale,
) -> Vec<(Rect, i32)> {
    let at = order.iter().position(|(column, _)| *column == rule.starts);
    let left = at.and_then(|at| at.checked_sub(1)).map_or(0.0, |before| mid_x(order[before].1));
    let right = at.and_then(|at| order.get(at + 1)).map_or(f32::MAX, |(_, r)| mid_x(*r));
    let kind = rule.columns[rule.starts].kind;
    let mut words: Vec<(Rect, i32)> = order.iter().map(|(_, head)| (*head, MAIN_WEIGHT)).collect();
    for part in body {
        let cell = cell_span(part, &(left..right));
        let is_main = cell.is_some_and(|c| !values::read_all(kind, &c.text, locale).is_empty());
        let weight = if is_main { MAIN_WEIGHT } else { 1 };
        words.extend(words_of(part.row).into_iter().map(|w| (w.1, weight)));
    }
    words
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

/// Where one column ends and the next begins.
fn boundary(left: Rect, right: Rect, page: &SheetPage<'_>, y: f32, words: &[(Rect, i32)]) -> f32 {
    let (from, to) = (mid_x(left), mid_x(right));
    let drawn = page.uprights.iter().filter(|(x, top, bottom)| from < *x && *x < to && *top <= y && y <= *bottom);
    if let Some((x, _, _)) = drawn.max_by(|a, b| a.0.total_cmp(&b.0)) {
        return *x;
    }
    let mut edges: Vec<(f32, i32)> = Vec::new();
    for (word, weight) in words.iter().filter(|(w, _)| w.x1 > from && w.x0 < to) {
        edges.push((word.x0.max(from), *weight));
        edges.push((word.x1.min(to), -weight));
    }
    edges.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    let mut best = (i32::MAX, 0.0, f32::midpoint(left.x1, right.x0));
    let (mut depth, mut at) = (0, from);
    for (x, step) in edges.into_iter().chain([(to, 0)]) {
        let width = x - at;
        if width > 0.1 && (depth < best.0 || (depth == best.0 && width > best.1)) {
            best = (depth, width, f32::midpoint(at, x));
        }
        depth += step;
        at = x;
    }
    best.2
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
                whole.text.push(' ');
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

/// Rows on one page.
fn page_rows(rule: &TableRule, bands: &Bands, body: &[BodyRow<'_>], top: f32, locale: &Locale) -> Vec<Row> {
    let starts: Vec<usize> = (0..body.len()).filter(|at| is_start(rule, bands, &body[*at], locale)).collect();
    let mut rows = Vec::new();
    let mut upper = starts.first().map_or(0, |first| first_of(rule, body, None, *first, top));
    for (at, start) in starts.iter().enumerate() {
        let lower = starts.get(at + 1).map_or(body.len(), |next| first_of(rule, body, Some(*start), *next, top));
        let row = read_row(rule, bands, &body[upper..lower.max(start + 1)], start - upper, locale);
        rows.extend(row);
        upper = lower;
    }
    rows
}

/// A row starts where its column is filled and something else stands beside it.
fn is_start(rule: &TableRule, bands: &Bands, part: &BodyRow<'_>, locale: &Locale) -> bool {
    let Some(band) = band_of(rule, bands, rule.starts) else { return false };
    let column = &rule.columns[rule.starts];
    let cell = cell_span(part, &band).and_then(|span| take(&span, column.take.as_ref()));
    let is_filled = cell.is_some_and(|span| !values::read_all(column.kind, &span.text, locale).is_empty());
    let beside = bands.iter().flatten().filter(|b| cell_span(part, b).is_some()).count();
    is_filled && beside >= bands.iter().flatten().count().min(2)
}

/// The first body row that belongs to the row starting at `start`: below the last rule drawn across, or the rows
/// that the mapping allows above.
fn first_of(rule: &TableRule, body: &[BodyRow<'_>], previous: Option<usize>, start: usize, top: f32) -> usize {
    let own = &body[start];
    let floor = previous.map_or(top, |p| body[p].row.bbox.y1);
    let width = own.page.rows.iter().map(|r| r.bbox).reduce(union).map_or(0.0, |b| b.x1 - b.x0);
    let limit = own.row.y_mid();
    let is_across = |l: &&(f32, f32, f32)| l.2 - l.1 >= width * RULE_SHARE && floor - 1.0 <= l.0 && l.0 <= limit;
    let drawn = own.page.levels.iter().filter(is_across).map(|l| l.0).fold(f32::MIN, f32::max);
    let lowest = previous.map_or(0, |p| p + 1);
    if drawn > f32::MIN {
        return (lowest..=start).find(|at| body[*at].row.y_mid() > drawn).unwrap_or(start);
    }
    start.saturating_sub(rule.above).max(lowest)
}

fn read_row(rule: &TableRule, bands: &Bands, lines: &[BodyRow<'_>], start: usize, locale: &Locale) -> Option<Row> {
    let mut row = Row::new();
    for (at, column) in rule.columns.iter().enumerate() {
        let spans: Vec<(usize, Span)> = match band_of(rule, bands, at) {
            Some(band) => {
                lines.iter().enumerate().filter_map(|(i, part)| Some((i, cell_span(part, &band)?))).collect()
            }
            None => Vec::new(),
        };
        let cell = match (&column.find, &column.value) {
            (Some(pattern), _) => find_in_row(column, pattern, lines, locale),
            (None, Some(value)) => Some(constant(column, value)),
            (None, None) => read_cell(rule, at, spans, start, locale),
        };
        match cell {
            Some((cell, unit)) => {
                if let Some(unit) = unit.filter(|_| !rule.columns.iter().any(|c| c.name == "unit")) {
                    row.insert("unit".into(), unit);
                }
                row.insert(column.name.clone(), cell);
            }
            None if column.is_required => return None,
            None => {}
        }
    }
    (!row.is_empty()).then_some(row)
}

fn constant(column: &ColumnRule, value: &str) -> (Cell, Option<Cell>) {
    let typed = Typed::Text(value.to_owned());
    let rule = "a constant of the mapping".into();
    let value = Value { typed, printed: String::new(), place: None, rule, confidence: CELL_CONFIDENCE };
    (Field { term: column.to.clone(), value }, None)
}

/// Searches the pattern in the text of the whole row.
fn find_in_row(
    column: &ColumnRule,
    pattern: &regex::Regex,
    lines: &[BodyRow<'_>],
    locale: &Locale,
) -> Option<(Cell, Option<Cell>)> {
    let mut whole = Span::default();
    for part in lines {
        whole.push_line(&part.row.span(part.page.page.number, &(0..part.row.chars.len())));
    }
    let cut = take(&whole, Some(pattern))?;
    typed_cell(column, &cut, locale)
}

/// A column's value in one row.
fn read_cell(
    rule: &TableRule,
    at: usize,
    mut spans: Vec<(usize, Span)>,
    start: usize,
    locale: &Locale,
) -> Option<(Cell, Option<Cell>)> {
    let column = &rule.columns[at];
    if let Some(line) = column.line {
        let index = if line > 0 { line.unsigned_abs() as usize - 1 } else { spans.len().checked_sub(line.unsigned_abs() as usize)? };
        return typed_cell(column, &cut(column, &spans.get(index)?.1)?, locale);
    }
    if rule.joins.contains(&at) {
        return typed_cell(column, &cut(column, &join_lines(&spans))?, locale);
    }
    if column.kind != Kind::Text || column.take.is_some() {
        // The row's own line first: notes under it may hold figures too.
        spans.sort_by_key(|(line, _)| if *line == start { 0 } else { line + 1 });
    }
    spans.iter().find_map(|(_, span)| typed_cell(column, &cut(column, span)?, locale))
}

fn cut(column: &ColumnRule, span: &Span) -> Option<Span> {
    take(span, column.take.as_ref())
}

/// The first line and those that go on directly under it in the same type.
fn join_lines(spans: &[(usize, Span)]) -> Span {
    let mut joined = Span::default();
    let mut last: Option<Rect> = None;
    for (_, span) in spans {
        let Some(rect) = span.rect(&(0..span.chars.len())) else { continue };
        if let Some(last) = last {
            let height = last.y1 - last.y0;
            let is_next = rect.y0 - last.y1 < height * 0.6 && (rect.x0 - last.x0).abs() < 4.0;
            let is_same = (span.font_size - joined.font_size).abs() < 0.6 && span.is_bold == joined.is_bold;
            if !is_next || !is_same {
                break;
            }
        }
        joined.push_line(span);
        last = Some(rect);
    }
    joined
}

fn typed_cell(column: &ColumnRule, span: &Span, locale: &Locale) -> Option<(Cell, Option<Cell>)> {
    let kind = if column.codes.is_empty() { column.kind } else { Kind::Text };
    let reading = values::read_all(kind, &span.text, locale).into_iter().next()?;
    let typed = match reading.typed {
        Typed::Text(_) => Typed::Text(unwrap_lines(&span.part(&reading.chars).text)),
        other => other,
    };
    let make = |typed: Typed, printed: String| -> Option<Cell> {
        let bbox = span.rect(&reading.chars)?;
        let rule = format!("column {}", column.name);
        let place = Some(Place { page: span.page, bbox });
        Some(Field { term: None, value: Value { typed, printed, place, rule, confidence: CELL_CONFIDENCE } })
    };
    let printed = values::tidy(&span.part(&reading.chars).text);
    let mut cell = make(coded(typed, &column.codes)?, printed)?;
    cell.term = column.to.clone();
    let unit = (column.kind == Kind::Quantity).then(|| number::unit_beside(&span.text, &reading.chars)).flatten();
    let unit = unit.and_then(|code| {
        let printed = span.text.chars().skip(reading.chars.end).collect::<String>();
        make(Typed::Code(code), values::tidy(&printed))
    });
    Some((cell, unit))
}

/// Lines of a wrapped text as one. A hyphen at a line's end stays before a capital ("Beamer-Halterung") and goes
/// before a small letter, where it only broke the word.
fn unwrap_lines(text: &str) -> String {
    let mut joined = String::new();
    for line in text.split('\n').map(str::trim).filter(|l| !l.is_empty()) {
        let is_broken = joined.ends_with('-') && !joined.ends_with(" -");
        let next = line.chars().next().unwrap_or(' ');
        if is_broken && next.is_lowercase() {
            joined.pop();
        } else if !joined.is_empty() && !is_broken && !joined.ends_with('/') {
            joined.push(' ');
        }
        joined.push_str(line);
    }
    values::tidy(&joined)
}
