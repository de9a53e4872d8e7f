//! Cells: from words in a column's band to typed values.

use ode_pdf::Rect;

use super::{Bands, BodyRow, band_of, cell_span};
use crate::field::{coded, take};
use crate::mapping::{ColumnRule, TableRule};
use crate::pattern::Pattern;
use crate::record::{Cell, Field, Place, Row, Typed, Value};
use crate::sheet::Span;
use crate::values::{self, Kind, Locale, number};

/// How sure a cell is by its place alone.
const CELL_CONFIDENCE: f32 = 0.88;

pub(super) fn read_row(
    rule: &TableRule,
    bands: &Bands,
    lines: &[BodyRow<'_>],
    start: usize,
    locale: &Locale,
) -> Option<Row> {
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
pub(super) fn counted(column: &ColumnRule, number: usize) -> Cell {
    let typed = Typed::Text(number.to_string());
    let rule = "counted".into();
    let value = Value { typed, printed: String::new(), place: None, rule, confidence: CELL_CONFIDENCE };
    Field { term: column.to.clone(), value }
}

pub(super) fn constant(column: &ColumnRule, value: &str) -> (Cell, Option<Cell>) {
    let typed = values::constant(column.kind, value);
    let rule = "a constant of the mapping".into();
    let value = Value { typed, printed: String::new(), place: None, rule, confidence: CELL_CONFIDENCE };
    (Field { term: column.to.clone(), value }, None)
}

/// Searches the pattern in the text of the whole row.
fn find_in_row(
    column: &ColumnRule,
    pattern: &Pattern,
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
        let index = if line > 0 {
            line.unsigned_abs() as usize - 1
        } else {
            spans.len().checked_sub(line.unsigned_abs() as usize)?
        };
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
    (2..=20).contains(&head.chars().count())
        && head.chars().all(|c| c.is_alphabetic() || matches!(c, ' ' | '.' | '-'))
}

pub(super) fn typed_cell(column: &ColumnRule, span: &Span, locale: &Locale) -> Option<(Cell, Option<Cell>)> {
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
    let unit =
        (column.kind == Kind::Quantity).then(|| number::unit_beside(&span.text, &reading.chars)).flatten();
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
