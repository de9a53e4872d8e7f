//! Tax: a breakdown by rate, a category for each rate, and a rate for each line, allowance and charge.

use rust_decimal::Decimal;

use super::{Invoice, set_cell};
use crate::facts::Ask;
use crate::finding::FindingCode;
use crate::record::{Row, Severity, Typed};
use crate::write::amount::{round, share, sum};

/// Written as the reason where no tax is stated at all.
const NO_TAX: &str = "No tax stated.";

/// How many assignments of lines to rates are tried; their number grows by the power of the lines.
const ASSIGN_STEPS_MAX: u32 = 20_000;
/// How many lines are tried at all, since each is a call inside the one before.
const ASSIGN_LINES_MAX: usize = 64;
/// No country has more rates than this; a document that does is not worth the time that grows with their square.
const RATES_MAX: usize = 100;

pub(super) fn complete(invoice: &mut Invoice) {
    // An amount alone belongs to no rate; it was something else that stood under the table.
    invoice.vat.retain(|row| row.number("rate").is_some() || row.number("basis").is_some());
    join_taxes(invoice);
    rates_of_lines(invoice);
    assign_rates(invoice);
    if invoice.vat.is_empty() {
        invoice.vat = break_down(invoice);
        let message =
            "The document has no table of tax by rate; it was worked out from lines and totals.".to_owned();
        invoice.tell(Severity::Info, FindingCode::Derived, Some("vat"), message);
    }
    fill_rows(invoice);
    categories(invoice);
    merge_rows(invoice);
    explain_difference(invoice);
    follow_lines(invoice);
}

/// How far a tax may be off its rate of the net total by rounding.
const TAX_SLACK: Decimal = Decimal::from_parts(2, 0, 0, false, 2);

/// Taxes of several authorities that are each taken of the whole net total, such as CGST and SGST, are one to the standard.
fn join_taxes(invoice: &mut Invoice) {
    let Some(net) = invoice.header.number("net_total") else { return };
    let taxes: Option<Vec<(Decimal, Decimal)>> =
        invoice.vat.iter().map(|row| Some((row.number("rate")?, row.number("amount")?))).collect();
    let Some(taxes) = taxes.filter(|taxes| taxes.len() > 1) else { return };
    let is_of_net = |(rate, tax): &(Decimal, Decimal)| {
        share(net, *rate).saturating_sub(*tax).abs() <= TAX_SLACK && !rate.is_zero()
    };
    let is_stated = invoice.vat.iter().any(|row| row.number("basis").is_some());
    if !is_stated && taxes.iter().all(is_of_net) {
        let (rates, amounts): (Vec<Decimal>, Vec<Decimal>) = taxes.into_iter().unzip();
        invoice.vat = vec![tax_row(sum(rates), net, sum(amounts))];
    }
}

/// A line without a rate has the only rate there is.
fn rates_of_lines(invoice: &mut Invoice) {
    let Some(only) = only_rate(invoice) else { return };
    for line in &mut invoice.lines {
        if line.number("tax_rate").is_none() && line.text("tax_category").as_deref() != Some("O") {
            set_cell(line, "lines", "tax_rate", Typed::Number(only));
        }
    }
}

fn only_rate(invoice: &Invoice) -> Option<Decimal> {
    match invoice.vat.as_slice() {
        [] => {}
        [row] => return row.number("rate").or_else(|| rate_of(row.number("basis")?, row.number("amount")?)),
        _ => return None,
    }
    let mut rates = invoice.lines.iter().filter_map(|line| line.number("tax_rate"));
    if let Some(first) = rates.next() {
        return rates.all(|rate| rate == first).then_some(first);
    }
    rate_of(invoice.header.number("net_total")?, invoice.header.number("tax_total")?)
}

/// Lines without rates in a document with several: the first way, if there is one, in which they add up to the
/// taxable amounts.
fn assign_rates(invoice: &mut Invoice) {
    let rows: Option<Vec<(Decimal, Decimal)>> =
        invoice.vat.iter().map(|row| Some((row.number("rate")?, row.number("basis")?))).collect();
    let Some(rows) = rows.filter(|rows| rows.len() > 1) else { return };
    let mut left: Vec<Decimal> = rows.iter().map(|row| row.1).collect();
    let mut open = Vec::new();
    for (at, line) in invoice.lines.iter().enumerate() {
        let Some(total) = line.number("total") else { return };
        match line.number("tax_rate") {
            None => open.push((at, total)),
            Some(rate) => {
                let Some(row) = rows.iter().position(|row| row.0 == rate) else { return };
                left[row] = left[row].saturating_sub(total);
            }
        }
    }
    let mut steps = ASSIGN_STEPS_MAX;
    let mut chosen = Vec::new();
    if (1..=ASSIGN_LINES_MAX).contains(&open.len()) && fit(&open, &mut left, &mut chosen, &mut steps) {
        for ((line, _), row) in open.iter().zip(chosen) {
            set_cell(&mut invoice.lines[*line], "lines", "tax_rate", Typed::Number(rows[row].0));
        }
    }
}

/// Tries each line at each rate, depth first, until what is left of every taxable amount is nothing.
fn fit(open: &[(usize, Decimal)], left: &mut [Decimal], chosen: &mut Vec<usize>, steps: &mut u32) -> bool {
    let Some((_, total)) = open.get(chosen.len()) else { return left.iter().all(Decimal::is_zero) };
    for row in 0..left.len() {
        if *steps == 0 {
            return false;
        }
        *steps -= 1;
        left[row] = left[row].saturating_sub(*total);
        chosen.push(row);
        if fit(open, left, chosen, steps) {
            return true;
        }
        chosen.pop();
        left[row] = left[row].saturating_add(*total);
    }
    false
}

/// The rate that leads from a basis to its tax, with as few decimals as will do.
fn rate_of(basis: Decimal, amount: Decimal) -> Option<Decimal> {
    let exact = amount.saturating_mul(Decimal::ONE_HUNDRED).checked_div(basis)?;
    let fits = |decimals: &u32| share(basis, round(exact, *decimals)) == round(amount, 2);
    let decimals = (0..=4).find(fits).unwrap_or(4);
    Some(round(exact, decimals).normalize())
}

/// Tax by rate from the lines, allowances and charges; from the totals where lines have no rates.
fn break_down(invoice: &Invoice) -> Vec<Row> {
    let tax = invoice.header.number("tax_total").unwrap_or_default();
    let net = invoice.header.number("net_total").unwrap_or_default();
    match bases_by_rate(invoice).as_slice() {
        [] => vec![tax_row(rate_of(net, tax).unwrap_or_default(), net, tax)],
        [(rate, _)] => vec![tax_row(*rate, net, tax)],
        parts => parts.iter().map(|&(rate, basis)| tax_row(rate, basis, share(basis, rate))).collect(),
    }
}

/// Rates, and what is taxed at each of them.
fn bases_by_rate(invoice: &Invoice) -> Vec<(Decimal, Decimal)> {
    let mut parts: Vec<(Decimal, Decimal)> = Vec::new();
    let signed = invoice.lines.iter().map(|row| (row, "total", Decimal::ONE));
    let signed = signed.chain(invoice.charges.iter().map(|row| (row, "amount", Decimal::ONE)));
    let signed = signed.chain(invoice.allowances.iter().map(|row| (row, "amount", Decimal::NEGATIVE_ONE)));
    for (row, column, sign) in signed {
        let Some(rate) = row.number("tax_rate") else { continue };
        let amount = row.number(column).unwrap_or_default().saturating_mul(sign);
        match parts.iter().position(|part| part.0 == rate) {
            Some(at) => parts[at].1 = parts[at].1.saturating_add(amount),
            None if parts.len() < RATES_MAX => parts.push((rate, amount)),
            None => {}
        }
    }
    parts
}

/// The tax that follows from the lines, if each of them has a rate.
pub(super) fn of_lines(invoice: &Invoice) -> Option<Decimal> {
    let have_rates = invoice.lines.iter().all(|line| line.number("tax_rate").is_some());
    have_rates.then(|| sum(bases_by_rate(invoice).into_iter().map(|(rate, basis)| share(basis, rate))))
}

fn tax_row(rate: Decimal, basis: Decimal, amount: Decimal) -> Row {
    let mut row = Row::new();
    for (name, number) in [("rate", rate), ("basis", basis), ("amount", amount)] {
        set_cell(&mut row, "vat", name, Typed::Number(number));
    }
    row
}

/// Rate, basis and amount of each row, where two are known or the totals tell.
fn fill_rows(invoice: &mut Invoice) {
    let only = invoice.vat.len() == 1;
    let total = |name: &str| if only { invoice.header.number(name) } else { None };
    let (net, tax) = (total("net_total"), total("tax_total"));
    for row in &mut invoice.vat {
        let (rate, basis, amount) = (row.number("rate"), row.number("basis"), row.number("amount"));
        let from_rate = || {
            rate.zip(amount).and_then(|(rate, amount)| {
                amount.saturating_mul(Decimal::ONE_HUNDRED).checked_div(rate).map(|basis| round(basis, 2))
            })
        };
        let basis = basis.or(net).or_else(from_rate).unwrap_or_default();
        let from_basis = || rate.map(|rate| share(basis, rate));
        let amount = amount.or(tax).or_else(from_basis).unwrap_or_default();
        let is_outside = row.text("category").as_deref() == Some("O");
        let rate = rate.or_else(|| (!is_outside).then(|| rate_of(basis, amount).unwrap_or_default()));
        for (name, number) in [("basis", Some(basis)), ("amount", Some(amount)), ("rate", rate)] {
            if let (None, Some(number)) = (row.number(name), number) {
                set_cell(row, "vat", name, Typed::Number(number));
            }
        }
    }
}

/// `S` where tax is charged. Without tax: `E` with a reason where one is stated or nothing at all is said about
/// tax, `O` where in addition nobody has a tax number, `Z` for an explicit rate of zero.
fn categories(invoice: &mut Invoice) {
    let header = &invoice.header;
    let ids = ["seller_vat_id", "tax_representative_vat_id", "buyer_vat_id", "seller_tax_number"];
    let has_number = ids.iter().any(|name| header.has(name));
    let is_stated = |row: &Row| row.get("rate").is_some_and(|cell| cell.value.rule != "worked out");
    for row in &mut invoice.vat {
        if let Some(category) = row.text("category") {
            give_reason(row, &category);
            continue;
        }
        let is_taxed = row.number("rate").is_some_and(|rate| !rate.is_zero());
        let has_reason = row.has("exemption_reason") || row.has("exemption_code");
        let category = match (is_taxed, has_reason, is_stated(row), has_number) {
            (true, ..) => "S",
            (false, true, ..) => "E",
            (false, false, true, _) => "Z",
            (false, false, false, true) => "E",
            (false, false, false, false) => "O",
        };
        set_cell(row, "vat", "category", Typed::Code(category.to_owned()));
        give_reason(row, category);
        if category == "O" {
            row.remove("rate");
        }
    }
}

/// What the category itself says, where the document gives no reason of its own.
fn give_reason(row: &mut Row, category: &str) {
    let reason = match category {
        "K" => "Intra-community supply",
        "G" => "Export outside the EU",
        "AE" => "Reverse charge",
        "E" | "O" => NO_TAX,
        _ => return,
    };
    if !row.has("exemption_reason") && !row.has("exemption_code") {
        set_cell(row, "vat", "exemption_reason", Typed::Text(reason.to_owned()));
    }
}

/// The standard wants one row for each category and rate.
fn merge_rows(invoice: &mut Invoice) {
    let mut merged: Vec<Row> = Vec::new();
    for row in std::mem::take(&mut invoice.vat) {
        let key = |row: &Row| (row.text("category"), row.number("rate"));
        let Some(same) = merged.iter_mut().find(|same| key(same) == key(&row)) else {
            merged.push(row);
            continue;
        };
        for name in ["basis", "amount"] {
            let both = sum([same, &row].iter().filter_map(|row| row.number(name)));
            set_cell(same, "vat", name, Typed::Number(both));
        }
    }
    invoice.vat = merged;
}

/// Allowances and charges of which only the totals are known, and those that must exist because the sum of the lines
/// and the net total are both stated, differ, and the net total adds up with the tax.
fn explain_difference(invoice: &mut Invoice) {
    if !invoice.allowances.is_empty() || !invoice.charges.is_empty() {
        return;
    }
    let of = |name: &str| invoice.header.number(name);
    let (Some(lines), Some(net), Some(gross)) = (of("line_total"), of("net_total"), of("gross_total")) else {
        return;
    };
    let whole = lines.saturating_sub(net);
    let stated = match (of("allowance_total"), of("charge_total")) {
        (None, None) => None,
        (allowances, charges) => Some((allowances.unwrap_or_default(), charges.unwrap_or_default())),
    };
    let adds_up = net.saturating_add(of("tax_total").unwrap_or_default()) == gross;
    let has_lines =
        invoice.header.get("line_total").is_some_and(|field| !field.value.rule.starts_with("it is"));
    if stated.is_none() && !(adds_up && has_lines) {
        return;
    }
    for part in split(invoice, whole, stated) {
        add_entry(invoice, part);
    }
    invoice.add_up_allowances();
}

/// An allowance or a charge to write at one row of the tax table.
struct Part {
    row: usize,
    is_charge: bool,
    amount: Decimal,
}

/// Allowances and charges with the stated totals. Each rate needs the difference between its lines and its taxable
/// amount; where the totals say that there was more of both, it goes to the first rate.
fn split(invoice: &Invoice, whole: Decimal, stated: Option<(Decimal, Decimal)>) -> Vec<Part> {
    let by_sign = |(row, difference): (usize, Decimal)| Part {
        row,
        is_charge: difference < Decimal::ZERO,
        amount: difference.abs(),
    };
    let mut differences = differences_by_rate(invoice, whole);
    let Some((allowances, charges)) = stated else { return differences.into_iter().map(by_sign).collect() };
    if whole != allowances.saturating_sub(charges) {
        differences.clear();
    }
    let taken_off = sum(differences.iter().map(|part| part.1).filter(|part| *part > Decimal::ZERO));
    let more = allowances.saturating_sub(taken_off);
    let first = |is_charge: bool, amount: Decimal| Part { row: 0, is_charge, amount };
    let mut parts: Vec<Part> = match (differences.is_empty(), allowances.is_zero(), charges.is_zero()) {
        (true, ..) => vec![first(false, allowances), first(true, charges)],
        // Only one of the two exists, so the sign is the document's: a credit note takes off less than nothing.
        (false, _, true) => {
            differences.into_iter().map(|(row, amount)| Part { row, is_charge: false, amount }).collect()
        }
        (false, true, false) => differences
            .into_iter()
            .map(|(row, amount)| Part { row, is_charge: true, amount: -amount })
            .collect(),
        (false, false, false) if more < Decimal::ZERO => vec![first(false, allowances), first(true, charges)],
        (false, false, false) => {
            differences.into_iter().map(by_sign).chain([first(false, more), first(true, more)]).collect()
        }
    };
    parts.retain(|part| !part.amount.is_zero());
    parts
}

fn add_entry(invoice: &mut Invoice, part: Part) {
    let (table, text) = if part.is_charge { ("charges", "Charge") } else { ("allowances", "Allowance") };
    let mut entry = Row::new();
    set_cell(&mut entry, table, "amount", Typed::Number(part.amount));
    set_cell(&mut entry, table, "reason", Typed::Text(text.to_owned()));
    let tax = invoice.vat.get(part.row);
    if let Some(rate) = tax.and_then(|tax| tax.number("rate")) {
        set_cell(&mut entry, table, "tax_rate", Typed::Number(rate));
    }
    if let Some(category) = tax.and_then(|tax| tax.text("category")) {
        set_cell(&mut entry, table, "tax_category", Typed::Code(category));
    }
    if part.is_charge { invoice.charges.push(entry) } else { invoice.allowances.push(entry) }
}

/// How much more the lines of each rate are than its taxable amount; all of it at the first rate where that does
/// not add up to the whole difference.
fn differences_by_rate(invoice: &Invoice, whole: Decimal) -> Vec<(usize, Decimal)> {
    let by_rate: Vec<(usize, Decimal)> = invoice
        .vat
        .iter()
        .enumerate()
        .map(|(at, row)| {
            let rate = row.number("rate");
            let lines = invoice.lines.iter().filter(|line| line.number("tax_rate") == rate);
            let of_lines = sum(lines.filter_map(|line| line.number("total")));
            (at, of_lines.saturating_sub(row.number("basis").unwrap_or_default()))
        })
        .collect();
    if sum(by_rate.iter().map(|part| part.1)) == whole {
        by_rate.into_iter().filter(|part| !part.1.is_zero()).collect()
    } else {
        vec![(0, whole)]
    }
}

/// Lines, allowances and charges take the category of their rate, and where they have none, the first row's.
fn follow_lines(invoice: &mut Invoice) {
    let known: Vec<(Option<Decimal>, Option<String>)> =
        invoice.vat.iter().map(|row| (row.number("rate"), row.text("category"))).collect();
    let tables = [
        ("lines", &mut invoice.lines),
        ("allowances", &mut invoice.allowances),
        ("charges", &mut invoice.charges),
    ];
    for (table, rows) in tables {
        for row in rows {
            let rate = row.number("tax_rate");
            let category = row.text("tax_category");
            let same = known.iter().find(|(known_rate, known_category)| {
                (category.is_none() || *known_category == category) && (rate.is_none() || *known_rate == rate)
            });
            // A rate that was only worked out follows the one row there is, which may be outside of tax.
            let is_free = category.is_none() && (rate.is_none() || known.len() == 1);
            let first = same.or(if is_free { known.first() } else { None });
            let (first_rate, first_category) = first.cloned().unwrap_or_default();
            let by_rate = if rate.is_some_and(|rate| !rate.is_zero()) { "S" } else { "Z" };
            let category = category.or(first_category).unwrap_or_else(|| by_rate.to_owned());
            if let (None, Some(rate)) = (rate, first_rate) {
                set_cell(row, table, "tax_rate", Typed::Number(rate));
            }
            if category == "O" {
                row.remove("tax_rate");
            }
            if !row.has("tax_category") {
                set_cell(row, table, "tax_category", Typed::Code(category));
            }
        }
    }
}
