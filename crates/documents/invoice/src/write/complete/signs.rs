//! Signs. Pages print what is taken off with a minus or without one, and the tax of a credit note as they like; the
//! standards fix the sign of each. It is turned only where the sums hold after that, and did not before.

use rust_decimal::Decimal;

use super::Invoice;
use crate::facts::Ask;
use crate::record::Typed;
use crate::write::amount::sum;

pub(super) fn complete(invoice: &mut Invoice) {
    let number = |name: &str| invoice.header.number(name);
    let of = |name: &str| number(name).unwrap_or_default();
    let net = number("net_total");
    let lines = number("line_total").or_else(|| lines_total(invoice));
    if let (Some(lines), Some(net), Some(allowances)) = (lines, net, number("allowance_total")) {
        let without = lines.saturating_add(of("charge_total"));
        turn(
            invoice,
            "allowance_total",
            [without.saturating_sub(allowances), without.saturating_add(allowances)],
            net,
        );
    }
    let number = |name: &str| invoice.header.number(name);
    let (gross, payable) = (number("gross_total"), number("payable"));
    if let (Some(gross), Some(payable), Some(paid)) = (gross, payable, number("prepaid")) {
        let without = gross.saturating_add(number("rounding").unwrap_or_default());
        turn(invoice, "prepaid", [without.saturating_sub(paid), without.saturating_add(paid)], payable);
    }
    if let (Some(net), Some(gross), Some(tax)) = (net, gross, invoice.header.number("tax_total")) {
        turn(invoice, "tax_total", [net.saturating_add(tax), net.saturating_sub(tax)], gross);
    }
    turn_allowances(invoice);
}

fn lines_total(invoice: &Invoice) -> Option<Decimal> {
    invoice.lines.iter().map(|line| line.number("total")).collect::<Option<Vec<_>>>().map(sum)
}

/// Turns a header amount if that makes the sum right.
fn turn(invoice: &mut Invoice, name: &str, [as_it_is, turned]: [Decimal; 2], wanted: Decimal) {
    if as_it_is == wanted || turned != wanted {
        return;
    }
    if let Some(Typed::Number(number)) = invoice.header.get_mut(name).map(|field| &mut field.value.typed) {
        *number = -*number;
    }
}

/// Listed allowances, where their sum with the other sign is the stated total, or leads from the lines to the net
/// total.
fn turn_allowances(invoice: &mut Invoice) {
    let listed = sum(invoice.allowances.iter().filter_map(|row| row.number("amount")));
    let of = |name: &str| invoice.header.number(name);
    let charges = sum(invoice.charges.iter().filter_map(|row| row.number("amount")));
    let lines = of("line_total").or_else(|| lines_total(invoice)).unwrap_or_default().saturating_add(charges);
    let is_right = match (of("allowance_total"), of("net_total")) {
        (Some(total), _) => listed != total && -listed == total,
        (None, Some(net)) => lines.saturating_sub(listed) != net && lines.saturating_add(listed) == net,
        (None, None) => false,
    };
    if !is_right {
        return;
    }
    for row in &mut invoice.allowances {
        if let Some(Typed::Number(number)) = row.get_mut("amount").map(|cell| &mut cell.value.typed) {
            *number = -*number;
        }
    }
}
