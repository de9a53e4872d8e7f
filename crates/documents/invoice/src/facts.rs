//! Asking a header or a row for a value of the type that the asker needs.

use std::collections::BTreeMap;
use std::str::FromStr;

use jiff::civil::Date;
use rust_decimal::Decimal;

use crate::record::{Field, Typed, Value};

/// Values by name: the header of a record, or one row of a table.
pub(crate) type Facts = BTreeMap<String, Field>;

/// Typed answers; a text that is empty, or holds nothing that XML allows, counts as no answer.
pub(crate) trait Ask {
    /// The value as text: ISO for days, plain digits for numbers.
    fn text(&self, name: &str) -> Option<String>;
    /// The value as a number, also when it was kept as text that reads like one.
    fn number(&self, name: &str) -> Option<Decimal>;
    /// The value as a day, also when it was kept as ISO text.
    fn date(&self, name: &str) -> Option<Date>;
    /// Whether there is a value.
    fn has(&self, name: &str) -> bool {
        self.text(name).is_some()
    }
}

impl Ask for Facts {
    fn text(&self, name: &str) -> Option<String> {
        let text = allowed(&plain(&self.get(name)?.value.typed));
        let text = text.trim();
        (!text.is_empty()).then(|| text.to_owned())
    }

    fn number(&self, name: &str) -> Option<Decimal> {
        match &self.get(name)?.value.typed {
            Typed::Number(number) => Some(*number),
            Typed::Text(text) | Typed::Code(text) => Decimal::from_str(text.trim()).ok(),
            Typed::Date(_) => None,
        }
    }

    fn date(&self, name: &str) -> Option<Date> {
        let date = match &self.get(name)?.value.typed {
            Typed::Date(date) => Some(*date),
            Typed::Text(text) | Typed::Code(text) => text.trim().parse().ok(),
            Typed::Number(_) => None,
        };
        // XML knows no day before the year 1, and neither does any invoice.
        date.filter(|date| date.year() > 0)
    }
}

/// The text without the characters that no XML 1.0 document may hold, not even as references.
pub(crate) fn allowed(text: &str) -> String {
    text.chars()
        .filter(|&letter| {
            matches!(letter, '\t' | '\n' | '\r' | ' '..='\u{D7FF}' | '\u{E000}'..='\u{FFFD}' | '\u{10000}'..)
        })
        .collect()
}

/// A value's meaning as text that a machine reads: ISO days, decimal points, no grouping.
pub fn plain(typed: &Typed) -> String {
    match typed {
        Typed::Text(text) | Typed::Code(text) => text.clone(),
        Typed::Number(number) => number.to_string(),
        Typed::Date(date) => date.to_string(),
    }
}

/// A value that no page shows: worked out, or read from XML.
pub(crate) fn unprinted(term: Option<&str>, typed: Typed, rule: &str) -> Field {
    let printed = plain(&typed);
    Field {
        term: term.map(str::to_owned),
        value: Value { typed, printed, place: None, rule: rule.to_owned(), confidence: 1.0 },
    }
}

/// Whether a line's total is part of the document's: a group repeats what its parts say, and a line for
/// information costs nothing.
pub(crate) fn counts(line: &Facts) -> bool {
    !matches!(line.text("status").as_deref(), Some("GROUP" | "INFORMATION"))
}
