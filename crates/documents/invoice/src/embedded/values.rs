//! Texts of an XML document as typed values of a record.

use std::str::FromStr;

use jiff::civil::Date;
use rust_decimal::Decimal;

use super::tree::Node;
use crate::facts::unprinted;
use crate::finding::FindingCode;
use crate::record::{Field, Finding, Record, Row, Severity, Table, Typed};
use crate::terms::{self, Term, TermType};

/// Header values by name and path, the first that is not empty for each name.
pub(super) fn fill(record: &mut Record, node: &Node, paths: &[(&str, &str)]) {
    for (name, path) in paths {
        if record.fields.contains_key(*name) {
            continue;
        }
        if let Some(text) = node.value(path) {
            set(record, name, &text, path);
        }
    }
}

/// Sets a header value.
pub(super) fn set(record: &mut Record, name: &str, text: &str, path: &str) {
    if let Some(term) = terms::header(name) {
        record.fields.insert(name.to_owned(), field(term, text, path));
    }
}

/// One row of a table by column and path.
pub(super) fn row(table: &str, node: &Node, paths: &[(&str, &str)]) -> Row {
    let mut row = Row::new();
    for (name, path) in paths {
        if row.contains_key(*name) {
            continue;
        }
        if let Some(text) = node.value(path) {
            set_cell(&mut row, table, name, &text);
        }
    }
    row
}

/// Sets a cell.
pub(super) fn set_cell(row: &mut Row, table: &str, name: &str, text: &str) {
    if let Some(term) = terms::column(table, name) {
        row.insert(name.to_owned(), field(term, text, name));
    }
}

/// Lines, and each kind of thing that belongs to them: a telephone bill has many.
const LINES_MAX: usize = 20_000;
/// Rows of any other table; rules and writers compare each of them with each line.
const ROWS_MAX: usize = 200;

/// Adds rows that are not empty to a table, as far as it holds them.
pub(super) fn add_rows(record: &mut Record, name: &str, rows: impl IntoIterator<Item = Row>) {
    let rows_max = if name.starts_with("line") { LINES_MAX } else { ROWS_MAX };
    for row in rows.into_iter().filter(|row| !row.is_empty()) {
        let term = terms::table(name).map(|table| table.number.to_owned());
        let table = record.tables.entry(name.to_owned()).or_insert_with(|| Table { term, rows: Vec::new() });
        if table.rows.len() < rows_max {
            table.rows.push(row);
        } else if record.findings.iter().all(|finding| finding.field.as_deref() != Some(name)) {
            let message = format!("The embedded XML has more than {rows_max} {name}; the rest was left out.");
            record.findings.push(Finding {
                severity: Severity::Error,
                code: FindingCode::EmbeddedXmlCut,
                field: Some(name.to_owned()),
                message,
            });
        }
    }
}

fn field(term: &Term, text: &str, path: &str) -> Field {
    let mut field = unprinted(Some(term.number), typed(term.value, text), &format!("embedded XML, {path}"));
    field.value.printed = text.to_owned();
    field
}

/// A text that does not read as what it should be stays a text: the rules will say so.
fn typed(value: TermType, text: &str) -> Typed {
    let meant = match value {
        TermType::Amount | TermType::Number => number(text).map(Typed::Number),
        TermType::Date => date(text).map(Typed::Date),
        TermType::Code => Some(Typed::Code(text.to_owned())),
        TermType::Text | TermType::Identifier => None,
    };
    meant.unwrap_or_else(|| Typed::Text(text.to_owned()))
}

/// A decimal as XML schema writes it; also with an exponent, which some programs write.
pub(super) fn number(text: &str) -> Option<Decimal> {
    let text = text.strip_prefix('+').unwrap_or(text);
    Decimal::from_str(text).or_else(|_| Decimal::from_scientific(text)).ok()
}

/// `2014-03-05`, `20140305`, either with a time or a zone behind it.
pub(super) fn date(text: &str) -> Option<Date> {
    let digits: String = text.chars().filter(|letter| *letter != '-').take(8).collect();
    if digits.len() != 8 || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let part = |from: usize, to: usize| digits[from..to].parse::<i16>().ok();
    let (year, month, day) = (part(0, 4)?, part(4, 6)?, part(6, 8)?);
    // Writers that must write a day and have none write one of the first years.
    Date::new(year, i8::try_from(month).ok()?, i8::try_from(day).ok()?).ok().filter(|date| date.year() > 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_read_in_both_standards_and_impossible_ones_are_not() {
        for text in ["20140305", "2014-03-05", "2014-03-05T00:00:00", "2014-03-05+01:00", "20140305T0000"] {
            assert_eq!(date(text), Some(Date::constant(2014, 3, 5)), "{text}");
        }
        for text in ["20140230", "00010101", "2014", "05.03.2014", "", "abcdefgh"] {
            assert_eq!(date(text), None, "{text}");
        }
    }

    #[test]
    fn numbers_are_read_exactly() {
        for (text, expected) in [("1.10", "1.10"), ("+5", "5"), ("-0.5", "-0.5"), ("1.5E2", "150")] {
            assert_eq!(number(text), Decimal::from_str(expected).ok(), "{text}");
        }
        assert_eq!(number("1,10"), None);
    }
}
