//! The values of a result, as its page lists them to be looked at and corrected.

use crate::sql::Revised;
use crate::values::{Place, ResultValues};

/// Lines of a value that are seen at once.
const LINES_MAX: usize = 6;
/// Values on one page.
const VALUES_MAX: usize = 400;

/// A value, and what became of it.
#[derive(Debug, PartialEq)]
pub(super) struct Value {
    /// Its name or path.
    pub(super) field: String,
    /// The same as people read it.
    pub(super) label: String,
    /// What was read.
    pub(super) text: String,
    /// The same as people read it.
    pub(super) shown: String,
    /// How many lines that has.
    pub(super) lines: usize,
    /// What somebody says it should be; empty where there should be none.
    pub(super) corrected: Option<String>,
    pub(super) page: Option<u32>,
    /// Left, top, right and bottom, as a form carries them.
    pub(super) area: String,
}

/// The values of a result with what people said about them.
pub(super) fn listed(ResultValues { values, places }: ResultValues, revised: &[Revised]) -> Vec<Value> {
    let value = |(field, text): (String, String)| {
        let last = revised.iter().rev().find(|revised| revised.revision.field == field);
        let place = places.get(&field);
        let area = |place: &Place| place.bbox.map(|side| format!("{side:.1}")).join(" ");
        Value {
            label: label(&field),
            corrected: last.map(|revised| revised.revision.after.clone().unwrap_or_default()),
            page: place.map(|place| place.page),
            area: place.map(area).unwrap_or_default(),
            lines: text.lines().count().clamp(1, LINES_MAX),
            shown: if is_amount(&field) { grouped(&text) } else { text.clone() },
            field,
            text,
        }
    };
    values.into_iter().take(VALUES_MAX).map(value).collect()
}

/// `lines.0.unit_price` as one would say it.
pub(super) fn label(field: &str) -> String {
    let words = field.replace('_', " ");
    let mut parts = words.split('.');
    match (parts.next(), parts.next().and_then(|row| row.parse::<usize>().ok()), parts.next()) {
        (Some(table), Some(row), Some(column)) => {
            format!("{} {}: {column}", table.strip_suffix('s').unwrap_or(table), row + 1)
        }
        _ => words,
    }
}

/// Whether a field holds money, by the word its name ends in.
fn is_amount(field: &str) -> bool {
    const WORDS: [&str; 6] = ["total", "price", "amount", "base", "paid", "due"];
    field.rsplit(['.', '_']).next().is_some_and(|word| WORDS.contains(&word))
}

/// `-15722500.5` as `-15 722 500.5`, with spaces that do not break; what is no number stays as it is.
fn grouped(text: &str) -> String {
    const NARROW_SPACE: char = '\u{202f}';
    let (whole, rest) = text.split_at(text.find('.').unwrap_or(text.len()));
    let digits = whole.strip_prefix('-').unwrap_or(whole);
    let is_number = |digits: &str| !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    if !is_number(digits) || rest.strip_prefix('.').is_some_and(|rest| !is_number(rest)) {
        return text.to_owned();
    }
    let mut shown = whole[..whole.len() - digits.len()].to_owned();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at) % 3 == 0 {
            shown.push(NARROW_SPACE);
        }
        shown.push(digit);
    }
    shown + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_named_as_people_say_them() {
        assert_eq!(label("invoice_number"), "invoice number");
        assert_eq!(label("lines.0.unit_price"), "line 1: unit price");
    }

    #[test]
    fn amounts_are_grouped_and_nothing_else_is() {
        fn check(text: &str, expected: &str) {
            assert_eq!(grouped(text).replace('\u{202f}', " "), expected);
        }
        check("16950000", "16 950 000");
        check("-1234.50", "-1 234.50");
        check("630.00", "630.00");
        check("1234 EUR", "1234 EUR");
        check("1234.", "1234.");
        check("", "");
        assert!(is_amount("gross_total") && is_amount("lines.0.unit_price"));
        assert!(!is_amount("invoice_number") && !is_amount("due_date"));
    }
}
