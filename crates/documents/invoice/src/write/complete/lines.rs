//! Lines: each gets a number, a name, a quantity, a unit, a price and a total; an invoice without lines gets one
//! for each tax rate, since both standards demand at least one.

use rust_decimal::Decimal;

use super::{Invoice, set_cell, set_code};
use crate::facts::{Ask, counts, unprinted};
use crate::finding::FindingCode;
use crate::record::{Row, Severity, Typed};
use crate::subtotals::subtotals;
use crate::write::amount::{round, sum};
use crate::write::codes;

/// Decimals of a price that is worked out from a total; enough to come back to the cent for any real quantity.
const PRICE_DECIMALS: u32 = 6;
/// One, in UN/ECE Recommendation 20.
const ONE: &str = "C62";

pub(super) fn complete(invoice: &mut Invoice) {
    // Neither standard has lines of lines; the parts are what is charged.
    invoice.lines.retain(counts);
    drop_subtotals(invoice);
    if invoice.lines.is_empty() {
        invoice.lines = from_totals(invoice);
        let message = "The document lists no lines; one was written for each tax rate.".to_owned();
        invoice.tell(Severity::Info, FindingCode::Derived, Some("lines"), message);
    }
    for index in 0..invoice.lines.len() {
        let mut line = std::mem::take(&mut invoice.lines[index]);
        name(&mut line, index);
        let extra = adjustments(invoice, &line);
        count(&mut line, extra);
        measure(&mut line, invoice.is_embedded);
        identify(&mut line);
        invoice.lines[index] = line;
    }
}

/// Subtotals that were read as lines are dropped where the lines add up without them, and only then.
fn drop_subtotals(invoice: &mut Invoice) {
    let totals: Option<Vec<Decimal>> = invoice.lines.iter().map(|line| line.number("total")).collect();
    let stated = ["line_total", "net_total"].iter().find_map(|name| invoice.header.number(name));
    let (Some(totals), Some(stated)) = (totals, stated) else { return };
    if sum(totals.iter().copied()) == stated {
        return;
    }
    if let Some(repeated) = subtotals(&totals, |rest| rest == stated) {
        let mut at = 0..;
        invoice.lines.retain(|_| at.next().is_none_or(|at| !repeated.contains(&at)));
    }
}

/// One line for each tax rate, or one for all.
fn from_totals(invoice: &Invoice) -> Vec<Row> {
    let named = |total: Decimal, rate: Option<Decimal>| {
        let mut line = Row::new();
        set_cell(&mut line, "lines", "total", Typed::Number(total));
        let text = match rate {
            Some(rate) => format!("Total of this document at {} %", rate.normalize()),
            None => "Total of this document".to_owned(),
        };
        set_cell(&mut line, "lines", "name", Typed::Text(text));
        if let Some(rate) = rate {
            set_cell(&mut line, "lines", "tax_rate", Typed::Number(rate));
        }
        line
    };
    let rows: Vec<(Decimal, Option<Decimal>)> =
        invoice.vat.iter().filter_map(|row| Some((row.number("basis")?, row.number("rate")))).collect();
    // With allowances the taxable amounts are not the sum of the lines, and no one can tell what the lines were.
    let total = invoice.header.number("line_total");
    if rows.len() > 1 && total.is_none_or(|total| total == sum(rows.iter().map(|row| row.0))) {
        return rows.into_iter().map(|(basis, rate)| named(basis, rate)).collect();
    }
    let all = total.or_else(|| before_allowances(invoice)).or_else(|| rows.first().map(|row| row.0));
    let all =
        all.or_else(|| invoice.header.number("gross_total")).or_else(|| invoice.header.number("payable"));
    vec![named(all.unwrap_or_default(), rows.first().and_then(|row| row.1))]
}

fn before_allowances(invoice: &Invoice) -> Option<Decimal> {
    let of = |rows: &[Row]| sum(rows.iter().filter_map(|row| row.number("amount")));
    let net = invoice.header.number("net_total").or_else(|| {
        Some(invoice.header.number("gross_total")?.saturating_sub(invoice.header.number("tax_total")?))
    })?;
    Some(net.saturating_add(of(&invoice.allowances)).saturating_sub(of(&invoice.charges)))
}

fn name(line: &mut Row, index: usize) {
    if !line.has("id") {
        let id = (index + 1).to_string();
        line.insert("id".to_owned(), unprinted(Some("BT-126"), Typed::Text(id), "worked out"));
    }
    if !line.has("name") {
        let other = line.text("description").or_else(|| line.text("item_id"));
        let text = other.unwrap_or_else(|| format!("Line {}", line.text("id").unwrap_or_default()));
        set_cell(line, "lines", "name", Typed::Text(text));
    }
}

/// Charges less allowances of one line.
fn adjustments(invoice: &Invoice, line: &Row) -> Decimal {
    let of = |rows: &[Row]| sum(rows.iter().filter_map(|row| row.number("amount")));
    of(invoice.charges_of(line)).saturating_sub(of(invoice.allowances_of(line)))
}

/// Quantity, price and total, where at least one is known. Total = quantity × price / base quantity + extra.
fn count(line: &mut Row, extra: Decimal) {
    let base = line.number("base_quantity").filter(|base| !base.is_zero()).unwrap_or(Decimal::ONE);
    let total = line.number("total");
    let of_goods = total.map(|total| total.saturating_sub(extra));
    let (mut quantity, mut price) = (line.number("quantity"), line.number("unit_price"));
    if quantity.is_none() {
        let exact =
            of_goods.zip(price).and_then(|(goods, price)| goods.saturating_mul(base).checked_div(price));
        quantity = Some(exact.filter(|exact| exact.normalize().scale() <= 3).unwrap_or(Decimal::ONE));
    }
    let pieces = quantity.unwrap_or(Decimal::ONE);
    if price.is_none() {
        let exact = of_goods.and_then(|goods| goods.saturating_mul(base).checked_div(pieces));
        price = Some(round(exact.unwrap_or_default(), PRICE_DECIMALS));
    }
    let each = price.unwrap_or_default();
    if total.is_none() {
        let goods = pieces.saturating_mul(each).checked_div(base).unwrap_or_default();
        set_cell(line, "lines", "total", Typed::Number(round(goods.saturating_add(extra), 2)));
    }
    // EN 16931 has no negative prices: what is taken back is a negative quantity.
    let (pieces, each) =
        if each.is_sign_negative() && !each.is_zero() { (-pieces, -each) } else { (pieces, each) };
    for (name, number) in [("quantity", pieces), ("unit_price", each)] {
        if line.number(name) != Some(number) {
            set_cell(line, "lines", name, Typed::Number(number));
        }
    }
}

/// Units as codes. A word that stands for no code we know is left to the page: the code for "one" says nothing
/// wrong.
fn measure(line: &mut Row, is_embedded: bool) {
    for (name, is_demanded) in [("unit", true), ("base_unit", false)] {
        let Some(word) = line.text(name) else {
            if is_demanded {
                set_cell(line, "lines", name, Typed::Code(ONE.to_owned()));
            }
            continue;
        };
        // Some codes are also words with another meaning: `ST` is a sheet in XML and a piece on a German page.
        let is_code = matches!(line.get(name).map(|cell| &cell.value.typed), Some(Typed::Code(_)));
        let kept = (is_code && codes::is_unit_code(&word)).then_some(word.as_str());
        let known = codes::unit_code(&word);
        let code = if is_embedded { kept.or(known) } else { known.or(kept) };
        set_code(line, name, code.unwrap_or(ONE));
    }
}

/// A standard item number needs its scheme; one that is printed without is the number under a bar code, if it has the
/// form of one.
fn identify(line: &mut Row) {
    let Some(number) = line.text("standard_item_id") else { return };
    if !line.has("standard_item_id_scheme") && codes::is_trade_item_number(&number) {
        set_cell(line, "lines", "standard_item_id_scheme", Typed::Code(codes::TRADE_ITEM_NUMBER.to_owned()));
    }
}
