//! Printed text to meaning: money, dates, codes and identifiers. Nothing here knows where a text stood or which
//! field it is for; a text either reads as the asked type or it does not.

pub mod currency;
pub mod date;
pub mod ident;
pub mod number;
pub mod unit;

use serde::Deserialize;

use crate::record::Typed;
use currency::Currencies;
use date::DateStyle;
use number::NumberStyle;

/// What kind of value a field or column holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Words, as printed, with spaces tidied.
    #[default]
    Text,
    /// An identifier: one run of letters, digits and marks.
    Id,
    Amount,
    /// A number without money's marks.
    Number,
    /// A number with a unit beside it.
    Quantity,
    /// A unit of measure; the word becomes its UN/ECE code.
    Unit,
    Int,
    /// A rate in percent.
    Percent,
    Date,
    /// A currency code, or a mark that stands for one.
    Currency,
    /// An international bank account number with sound check digits.
    Iban,
    /// A bank identifier code.
    Bic,
    /// A value added tax number (or an Indonesian NPWP).
    VatId,
    /// A national tax number.
    TaxNumber,
}

/// How this document writes numbers, dates and currencies.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Locale {
    /// Which mark separates decimals.
    pub numbers: NumberStyle,
    /// In which order day, month and year stand.
    pub dates: DateStyle,
    /// Which marks stand for which currency.
    pub currencies: Currencies,
}

/// A text that reads as the asked kind.
#[derive(Clone, Debug, PartialEq)]
pub struct Reading {
    pub typed: Typed,
    /// Which characters of the text it was read from.
    pub chars: std::ops::Range<usize>,
    /// Whether a check digit or a full form vouches for it.
    pub is_sure: bool,
}

/// Every value of the kind in the text, from left to right.
pub fn read_all(kind: Kind, text: &str, locale: &Locale) -> Vec<Reading> {
    match kind {
        Kind::Text => whole(text).into_iter().collect(),
        Kind::Id => ident::identifiers(text),
        Kind::Amount | Kind::Number => number::amounts(text, locale),
        Kind::Quantity => number::quantities(text, locale),
        Kind::Unit => whole(text).into_iter().map(unit::reading).collect(),
        Kind::Int => number::amounts(text, locale).into_iter().filter(is_whole).collect(),
        Kind::Percent => number::percents(text, locale),
        Kind::Date => date::dates(text, &locale.dates),
        Kind::Currency => currency::currencies(text, &locale.currencies),
        Kind::Iban => ident::ibans(text),
        Kind::Bic => ident::bics(text),
        Kind::VatId => ident::vat_ids(text),
        Kind::TaxNumber => ident::tax_numbers(text),
    }
}

fn is_whole(reading: &Reading) -> bool {
    matches!(&reading.typed, Typed::Number(n) if n.fract().is_zero())
}

/// The text without the marks that only lead to it or trail off from it.
fn whole(text: &str) -> Option<Reading> {
    let chars: Vec<char> = text.chars().collect();
    let is_edge = |c: &char| c.is_whitespace() || matches!(c, ':' | ';' | ',' | '|' | '•' | '●' | '=');
    let start = chars.iter().position(|c| !is_edge(c))?;
    let end = chars.iter().rposition(|c| !is_edge(c))? + 1;
    let tidy = tidy(&chars[start..end].iter().collect::<String>());
    let is_words = tidy.chars().any(char::is_alphanumeric);
    is_words.then_some(Reading { typed: Typed::Text(tidy), chars: start..end, is_sure: false })
}

/// A value that a mapping states itself; numbers with a point, dates as ISO 8601.
pub(crate) fn constant(kind: Kind, text: &str) -> Typed {
    let locale = Locale { numbers: NumberStyle::Point, ..Locale::default() };
    let reading = read_all(kind, text, &locale).into_iter().next();
    reading.map_or_else(|| Typed::Text(text.to_owned()), |reading| reading.typed)
}

/// Runs of space become one space.
pub fn tidy(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_loses_the_marks_around_it_and_keeps_those_inside() {
        let reading = whole(" : Musterbetrieb  Kaffee AG, ").unwrap();
        assert_eq!(reading.typed, Typed::Text("Musterbetrieb Kaffee AG".into()));
        assert_eq!(whole(" : - "), None);
    }
}
