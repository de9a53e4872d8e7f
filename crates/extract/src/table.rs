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
fn rows_by_pattern(rule: &TableRule, pattern: &regex::Regex, context: Context<'_>) -> Vec<Row> {
    let areas = rule.within.as_ref().map(|within| crate::field::areas(within, context));
    let mut found = Vec::new();
    for (page, at, text_row) in context.sheet.rows() {
        let is_inside = areas.as_ref().is_none_or(|areas| areas.iter().any(|a| a.holds(page, at, text_row.bbox.x0)));
        let Some(captures) = pattern.captures(&text_row.text).filter(|_| is_inside) else { continue };
        let number = context.sheet.pages[page].page.number;
        let mut row = Row::new();
        for column in &rule.columns {
            let cell = match (captures.name(&column.name), &column.value) {
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

/// The rows of a page that hold most headings; among equals the fewest rows, then the first.
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
            let is_high = rows[end - 1].bbox.y1 - rows[start].bbox.y0 > HEADER_HEIGHT_MAX;
            if is_high || has_money(&rows[end - 1], context.locale) {
                break;
            }
            let header = header_in(&hits, rows, start..end);
            let lacks = |(c, head): (&ColumnRule, &Option<Rect>)| c.is_required && !c.heads.is_empty() && head.is_none();
            if rule.columns.iter().zip(&header.heads).any(lacks) {
                continue;
            }
            let height = |h: &Header| h.rows.len();
            let is_better =
                |b: &Header| (header.count, height(b)) > (b.count, height(&header)) && header.count >= b.count;
            if header.count >= rule.min_columns && best.as_ref().is_none_or(is_better) {
                best = Some(header);
            }
        }
    }
    best
}

/// Whether a row holds an amount with decimals: then it is a row of the table, not of its headings.
fn has_money(row: &TextRow, locale: &Locale) -> bool {
    values::read_all(Kind::Amount, &row.text, locale).iter().any(|r| r.is_sure)
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
    let main = main_rows(rule, &order, body, locale);
    let y = header.rows.clone().map(|r| page.rows[r].y_mid()).fold(0.0, f32::max);
    let mut bands: Bands = vec![None; rule.columns.len()];
    let mut left = 0.0;
    let mut at = 0;
    while at < order.len() {
        // Headings that stand over each other head one column, whose cells hold several lines.
        let stack = order[at..].iter().take_while(|(_, head)| is_stacked(order[at].1, *head)).count().max(1);
        let head = order[at..at + stack].iter().map(|(_, r)| *r).reduce(union).unwrap_or(order[at].1);
        let sides = |column: usize| Side::of(rule.columns[column].kind);
        let right = order.get(at + stack).map_or(page.page.width, |(next, rect)| {
            let gap = gutter(head, *rect, page, y, &main);
            cut_in(&gap, sides(order[at].0), sides(*next))
        });
        for (column, _) in &order[at..at + stack] {
            bands[*column] = Some(left..right);
        }
        left = right;
        at += stack;
    }
    bands
}

/// On which side a column's cells are aligned.
#[derive(Clone, Copy, PartialEq)]
enum Side {
    Left,
    Right,
}

impl Side {
    fn of(kind: Kind) -> Self {
        match kind {
            Kind::Amount | Kind::Number | Kind::Quantity | Kind::Int | Kind::Percent => Self::Right,
            Kind::Text
            | Kind::Id
            | Kind::Unit
            | Kind::Date
            | Kind::Currency
            | Kind::Iban
            | Kind::Bic
            | Kind::VatId
            | Kind::TaxNumber => Self::Left,
        }
    }
}

/// Where in a white gutter the bound lies: right before a column that starts there, right behind one that ends
/// there, else in the middle. Cells of other rows may be longer than those that were looked at.
fn cut_in(gap: &Range<f32>, left: Side, right: Side) -> f32 {
    let margin = ((gap.end - gap.start) * 0.25).min(1.5);
    match (left, right) {
        (_, Side::Left) => gap.end - margin,
        (Side::Right, Side::Right) => f32::midpoint(gap.start, gap.end).min(gap.start + 12.0),
        (Side::Left, Side::Right) => f32::midpoint(gap.start, gap.end),
    }
}

fn is_stacked(a: Rect, b: Rect) -> bool {
    let shared = a.x1.min(b.x1) - a.x0.max(b.x0);
    shared > 0.6 * (a.x1 - a.x0).min(b.x1 - b.x0)
}

fn mid_x(rect: Rect) -> f32 {
    f32::midpoint(rect.x0, rect.x1)
}

/// What the bounds of columns are found by: the headings and the rows that carry the table's figures. Notes between
/// them may reach over every gutter.
struct MainRows {
    words: Vec<Rect>,
    pieces: Vec<Rect>,
}

fn main_rows(rule: &TableRule, order: &[(usize, Rect)], body: &[BodyRow<'_>], locale: &Locale) -> MainRows {
    let at = order.iter().position(|(column, _)| *column == rule.starts);
    let left = at.and_then(|at| at.checked_sub(1)).map_or(0.0, |before| mid_x(order[before].1));
    let right = at.and_then(|at| order.get(at + 1)).map_or(f32::MAX, |(_, r)| mid_x(*r));
    let kind = rule.columns[rule.starts].kind;
    let heads: Vec<Rect> = order.iter().map(|(_, head)| *head).collect();
    let mut main = MainRows { words: heads.clone(), pieces: heads };
    for part in body {
        let cell = cell_span(part, &(left..right));
        if cell.is_some_and(|c| !values::read_all(kind, &c.text, locale).is_empty()) {
            main.words.extend(words_of(part.row).into_iter().map(|w| w.1));
            main.pieces.extend(part.row.pieces.iter().map(|p| p.bbox));
        }
    }
    main
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

/// The white between two columns: at a drawn rule where there is one. Else the last stretch that no piece of text
/// crosses: headings are centred or aligned like their cells, so what stands before the next one is not its own. Where
/// cells touch, the widest stretch between words.
fn gutter(left: Rect, right: Rect, page: &SheetPage<'_>, y: f32, main: &MainRows) -> Range<f32> {
    let (from, to) = (mid_x(left), mid_x(right));
    let drawn = page.uprights.iter().filter(|(x, top, bottom)| from < *x && *x < to && *top <= y && y <= *bottom);
    if let Some((x, _, _)) = drawn.max_by(|a, b| a.0.total_cmp(&b.0)) {
        return *x..*x;
    }
    let between = left.x1.min(right.x0)..right.x0.max(left.x1);
    let last = stretches(&main.pieces, from..to).into_iter().rfind(|(depth, s)| *depth == 0 && s.end - s.start > 1.5);
    let widest = || {
        let by_width = |s: &Range<f32>| s.end - s.start;
        let all = stretches(&main.words, from..to).into_iter();
        all.min_by(|(a, x), (b, y)| a.cmp(b).then(by_width(y).total_cmp(&by_width(x))))
    };
    last.or_else(widest).map_or(between, |(_, stretch)| stretch)
}

/// Stretches between the edges of boxes within a range, with how many boxes cross each.
fn stretches(boxes: &[Rect], range: Range<f32>) -> Vec<(i32, Range<f32>)> {
    let mut edges: Vec<(f32, i32)> = Vec::new();
    for rect in boxes.iter().filter(|w| w.x1 > range.start && w.x0 < range.end) {
        edges.push((rect.x0.max(range.start), 1));
        edges.push((rect.x1.min(range.end), -1));
    }
    edges.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    let mut found = Vec::new();
    let (mut depth, mut at) = (0, range.start);
    for (x, step) in edges.into_iter().chain([(range.end, 0)]) {
        if x - at > 0.1 {
            found.push((depth, at..x));
        }
        depth += step;
        at = x;
    }
    found
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
    let mut starts: Vec<usize> = (0..body.len()).filter_map(|at| start_at(rule, bands, body, at, locale)).collect();
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
fn start_at(rule: &TableRule, bands: &Bands, body: &[BodyRow<'_>], at: usize, locale: &Locale) -> Option<usize> {
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

/// The lowest rule drawn across the table between a height and a row.
fn rule_between(part: &BodyRow<'_>, floor: f32) -> Option<f32> {
    let width = part.page.rows.iter().map(|r| r.bbox).reduce(union).map_or(0.0, |b| b.x1 - b.x0);
    let limit = part.row.y_mid();
    let is_across = |l: &&(f32, f32, f32)| l.2 - l.1 >= width * RULE_SHARE && floor - 1.0 <= l.0 && l.0 <= limit;
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

fn read_row(rule: &TableRule, bands: &Bands, lines: &[BodyRow<'_>], start: usize, locale: &Locale) -> Option<Row> {
    let mut row = Row::new();
    for (at, column) in rule.columns.iter().enumerate() {
        if column.is_counted {
            continue;
        }
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

/// A row's number, where none is printed: every line of an invoice needs one.
fn counted(column: &ColumnRule, number: usize) -> Cell {
    let typed = Typed::Text(number.to_string());
    let rule = "counted".into();
    let value = Value { typed, printed: String::new(), place: None, rule, confidence: CELL_CONFIDENCE };
    Field { term: column.to.clone(), value }
}

fn constant(column: &ColumnRule, value: &str) -> (Cell, Option<Cell>) {
    let typed = values::constant(column.kind, value);
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
        return typed_cell(column, &cut(column, &join_lines(&spans, column.take.is_none()))?, locale);
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

/// The first line and those that go on directly under it in the same type; plain words also end where an attribute
/// begins.
fn join_lines(spans: &[(usize, Span)], is_plain: bool) -> Span {
    let mut joined = Span::default();
    let mut last: Option<Rect> = None;
    for (_, span) in spans {
        let Some(rect) = span.rect(&(0..span.chars.len())) else { continue };
        if let Some(last) = last {
            let height = last.y1 - last.y0;
            let is_next = rect.y0 - last.y1 < height * 0.6 && (rect.x0 - last.x0).abs() < 4.0;
            let is_same = (span.font_size - joined.font_size).abs() < 0.6 && span.is_bold == joined.is_bold;
            if !is_next || !is_same || (is_plain && is_attribute(&span.text)) {
                break;
            }
        }
        joined.push_line(span);
        last = Some(rect);
    }
    joined
}

/// "GTIN: 4012345001235": a word and a colon begin something else than the text above.
fn is_attribute(text: &str) -> bool {
    let Some((head, _)) = text.split_once(':') else { return false };
    let head = head.trim();
    (2..=20).contains(&head.chars().count()) && head.chars().all(|c| c.is_alphabetic() || matches!(c, ' ' | '.' | '-'))
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
