//! Taxes that are printed one row for each rate, outside of any table: "VAT 20% 200.00", "7 % MwSt. auf 298,00 20,86".

use std::ops::Range;

use rust_decimal::Decimal;

use crate::facts::Ask;
use crate::field::Context;
use crate::label::{Hit, LabelId};
use crate::mapping::FieldRule;
use crate::record::{Cell, Field, Place, Row, Table, Typed, Value};
use crate::sheet::Span;
use crate::terms;
use crate::values::number::{amounts, leading_rate};
use crate::values::{Locale, currency};

/// Labels of tax that are looked at; more of them are no totals.
const HITS_MAX: usize = 200;
/// How sure a cell is by its label and its row.
const CONFIDENCE: f32 = 0.9;
/// Rates of a basis are rounded to cents, or to whole money.
const SLACK: Decimal = Decimal::from_parts(2, 0, 0, false, 2);
/// Lines of a table and labels of a total share a row when they are this near, in points.
const ROW_SLACK: f32 = 3.0;

/// Rate and amount of each tax that a label of the rule names with its rate, and what is taxed where the row says it.
/// Rows of the lines hold rates too; they are not meant.
pub(crate) fn rows(rule: &FieldRule, context: Context<'_>, lines: Option<&Table>) -> Vec<Row> {
    let mut found: Vec<Row> = Vec::new();
    let labels: Vec<LabelId> =
        std::iter::once(rule).chain(&rule.or).flat_map(|way| way.anchors.clone()).collect();
    for hit in context.hits.of(&labels).into_iter().take(HITS_MAX) {
        let Some(row) = tax_row(&hit, context) else { continue };
        // Several labels may meet in one row, and a copy may follow on another page. Taxes of two authorities have one rate.
        let place = |row: &Row| row.get("amount").and_then(|cell| cell.value.place);
        let said = |row: &Row| row.get("rate").map(|cell| cell.value.rule.clone());
        let key = |row: &Row| (row.number("rate"), row.number("amount"), said(row));
        let is_known = |known: &Row| place(known) == place(&row) || key(known) == key(&row);
        if !is_of_lines(&row, lines) && !found.iter().any(is_known) {
            found.push(row);
        }
    }
    found
}

/// Whether an amount stands at one of these taxes.
pub(crate) fn holds(rows: &[Row], place: Option<Place>) -> bool {
    rows.iter().any(|row| row.get("amount").is_some_and(|cell| cell.value.place == place))
}

/// The tax of all rates together.
pub(crate) fn whole(rows: &[Row]) -> Decimal {
    crate::write::amount::sum(rows.iter().filter_map(|row| row.number("amount")))
}

fn is_of_lines(tax: &Row, lines: Option<&Table>) -> bool {
    let place = |row: &Row, name: &str| row.get(name).and_then(|cell| cell.value.place);
    let Some(own) = place(tax, "amount") else { return true };
    let totals = lines.into_iter().flat_map(|table| &table.rows).filter_map(|line| place(line, "total"));
    totals.into_iter().any(|line| line.page == own.page && (line.bbox.y1 - own.bbox.y1).abs() < ROW_SLACK)
}

fn tax_row(hit: &Hit, context: Context<'_>) -> Option<Row> {
    let row = context.sheet.row(hit.page, hit.row);
    let page = context.sheet.pages[hit.page].page.number;
    let piece = &row.pieces[row.piece_at(hit.chars.start)?];
    let labels = context.hits.anchors_in(hit.page, hit.row).iter().map(|label| label.start);
    let end = labels.filter(|start| *start >= hit.chars.end).min().unwrap_or(row.chars.len());
    let read = |chars: Range<usize>| leading_rate(&row.slice(&chars), context.locale);
    let before = piece.chars.start..hit.chars.start;
    // The rate stands before the label, behind it, or is part of it.
    let (rate, from) = if before.is_empty() {
        let within = row.slice(&hit.chars).chars().take_while(|c| c.is_alphabetic()).count();
        let (rate, taken) = read(hit.chars.end..end)
            .or_else(|| Some((read(hit.chars.start + within..hit.chars.end)?.0, 0)))?;
        (rate, hit.chars.end + taken)
    } else {
        let (rate, taken) = read(before.clone())?;
        (taken + 1 >= before.len()).then_some((rate, hit.chars.end))?
    };
    let Typed::Number(percent) = rate.typed else { return None };
    if percent.is_sign_negative() || percent >= Decimal::ONE_HUNDRED {
        return None;
    }
    let (basis, amount) = parts(&row.span(page, &(from.min(end)..end)), percent, context.locale)?;
    let how = format!("right of “{}”", row.slice(&hit.chars));
    let cells = [("rate", Some((percent, None))), ("basis", basis), ("amount", Some(amount))];
    let cells = cells.into_iter().filter_map(|(name, part)| Some((name, part?)));
    Some(cells.map(|(name, part)| (name.to_owned(), cell(name, part, &how))).collect())
}

/// A number and where it stands.
type Part = (Decimal, Option<(String, Place)>);

/// Basis and tax: the one amount there is, or the two of which one is the rate of the other.
fn parts(rest: &Span, percent: Decimal, locale: &Locale) -> Option<(Option<Part>, Part)> {
    let found: Vec<Part> = amounts(&rest.text, locale)
        .into_iter()
        .filter_map(|reading| {
            let Typed::Number(number) = reading.typed else { return None };
            let place = Place { page: rest.page, bbox: rest.rect(&reading.chars)? };
            Some((number, Some((rest.part(&reading.chars).text, place))))
        })
        .collect();
    if let [only] = found.as_slice() {
        let mut words = rest.text.split(|c: char| !c.is_alphabetic()).filter(|word| word.chars().count() > 2);
        return words.all(currency::is_mark).then(|| (None, only.clone()));
    }
    let is_tax = |basis: Decimal, tax: Decimal| {
        let expected = basis.saturating_mul(percent).checked_div(Decimal::ONE_HUNDRED);
        let slack = if tax.scale() == 0 { Decimal::ONE } else { SLACK };
        expected.is_some_and(|expected| expected.saturating_sub(tax).abs() <= slack) && !tax.is_zero()
    };
    let pairs = found.iter().flat_map(|basis| found.iter().map(move |tax| (basis, tax)));
    let (basis, tax) = pairs.into_iter().find(|(basis, tax)| is_tax(basis.0, tax.0))?;
    Some((Some(basis.clone()), tax.clone()))
}

fn cell(name: &str, (number, place): Part, how: &str) -> Cell {
    let term = terms::column("vat", name).map(|term| term.number.to_owned());
    let (printed, place) = place.unzip();
    let printed = printed.unwrap_or_else(|| number.to_string());
    let value =
        Value { typed: Typed::Number(number), printed, place, rule: how.to_owned(), confidence: CONFIDENCE };
    Field { term, value }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::{Choice, Registry, extract};
    use crate::sheet::tests::page;

    /// Rates, bases and amounts of a page with these rows under a line.
    fn taxes(rows: &[(&str, &str)]) -> Vec<[Option<Decimal>; 3]> {
        let mut texts = vec![("Invoice No: 7", 50.0, 20.0), ("Date: 2026-03-05", 50.0, 40.0)];
        for (at, (label, amount)) in rows.iter().enumerate() {
            let y = 300.0 + 20.0 * at as f32;
            texts.extend([(*label, 300.0, y), (*amount, 480.0, y)]);
        }
        let document = page(&texts);
        let found = extract(&document, &Registry::shipped(), Choice::Named("generic_invoice_v1")).unwrap();
        let table = found.record.tables.get("vat").map(|table| table.rows.clone()).unwrap_or_default();
        table.iter().map(|row| ["rate", "basis", "amount"].map(|name| row.number(name))).collect()
    }

    fn some(number: &str) -> Option<Decimal> {
        Some(number.parse().unwrap())
    }

    #[test]
    fn a_label_with_its_rate_is_read_as_tax_of_that_rate() {
        assert_eq!(taxes(&[("VAT 20%", "GBP 200.00")]), [[some("20"), None, some("200.00")]]);
        assert_eq!(taxes(&[("Sales Tax (9.25%)", "$276.29")]), [[some("9.25"), None, some("276.29")]]);
        assert_eq!(
            taxes(&[("7 % MwSt. auf 298.00", "20.86"), ("19 % MwSt. auf 100.00", "19.00")]),
            [[some("7"), some("298.00"), some("20.86")], [some("19"), some("100.00"), some("19.00")]]
        );
    }

    #[test]
    fn what_only_mentions_a_rate_is_no_tax() {
        assert!(taxes(&[("VAT 20% included in", "120.00")]).is_empty());
        assert!(taxes(&[("VAT", "200.00")]).is_empty());
        assert!(taxes(&[("VAT 20%", "not charged")]).is_empty());
        assert!(taxes(&[("All prices with VAT 20%", "200.00")]).is_empty());
    }
}
