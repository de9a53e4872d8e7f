//! Whether a record holds together: its sums, its days, its numbers with check digits, and what must be there.
//!
//! The same rules look at what a page said and at what embedded XML said. They find, they change nothing. A
//! difference that the record itself explains (allowances, charges, rounding, what was paid already) is none.
//! Codes are stable; `ode explain` says what each means.

mod identifiers;

use std::collections::BTreeSet;

use rust_decimal::Decimal;

use crate::engine::missing;
use crate::facts::{Ask, counts};
use crate::finding::FindingCode;
use crate::record::{Finding, Record, Row, Severity};
use crate::subtotals::subtotals;
use crate::terms;
use crate::write::amount::{money, round, sum};
use crate::write::codes;

pub(crate) use identifiers::is_iban_shaped;

/// Without these nobody can book an invoice.
const NEEDED: &[&str] = &["invoice_number", "issue_date", "currency", "seller_name", "gross_total"];

/// Codes of documents that give money back.
const CREDITS: &[&str] = &["381", "396", "261", "262", "308", "458", "532", "81", "83", "296", "420"];

/// Since 2025 Indonesia states a rate of 12 % and takes it of eleven twelfths of the price for most goods.
const INDONESIAN_BASE: (u32, u32) = (11, 12);

/// All that the rules find in an invoice; nothing for other kinds of documents, which have no rules of ours.
#[must_use]
pub fn check(record: &Record) -> Vec<Finding> {
    if record.kind != "invoice" {
        return Vec::new();
    }
    let sums = Sums::of(record);
    let mut findings = needed(record);
    findings.extend(sums.lines());
    findings.extend(sums.each_line());
    findings.extend(sums.gross());
    findings.extend(sums.taxes());
    findings.extend(sums.payable());
    findings.extend(sums.signs());
    findings.extend(days(record));
    findings.extend(identifiers::check(record));
    findings
}

fn review(code: FindingCode, field: &str, message: String) -> Finding {
    Finding { severity: Severity::Review, code, field: Some(field.to_owned()), message }
}

fn info(code: FindingCode, field: &str, message: String) -> Finding {
    Finding { severity: Severity::Info, ..review(code, field, message) }
}

fn needed(record: &Record) -> Vec<Finding> {
    let is_missing = |name: &str| {
        // An amount to pay does for a gross total that is not printed beside it.
        let has_other = name == "gross_total" && record.fields.has("payable");
        !has_other && !record.fields.has(name)
    };
    NEEDED.iter().filter(|name| is_missing(name)).map(|name| missing(name)).collect()
}

/// The numbers of an invoice, and how far a sum may be off before it is wrong.
struct Sums<'a> {
    record: &'a Record,
    currency: String,
    /// The least amount that is printed: a cent, or a rupiah.
    least: Decimal,
    lines: Vec<&'a Row>,
    vat: Vec<&'a Row>,
    allowances: Decimal,
    charges: Decimal,
    /// Numbers of the lines with allowances or charges of their own.
    adjusted: BTreeSet<String>,
}

impl<'a> Sums<'a> {
    fn of(record: &'a Record) -> Self {
        let rows = |name: &str| record.tables.get(name).map_or(&[][..], |table| &table.rows);
        let listed = |name: &str| sum(rows(name).iter().filter_map(|row| row.number("amount")));
        let currency = record.fields.text("currency").unwrap_or_default();
        let least = if codes::decimals(&currency).0 == 0 { Decimal::ONE } else { Decimal::new(1, 2) };
        let total = |name: &str, table: &str| record.fields.number(name).unwrap_or_else(|| listed(table));
        let adjusted = rows("line_allowances").iter().chain(rows("line_charges"));
        Self {
            record,
            least,
            lines: rows("lines").iter().filter(|line| counts(line)).collect(),
            vat: rows("vat").iter().filter(|row| is_of_a_rate(row)).collect(),
            allowances: total("allowance_total", "allowances"),
            charges: total("charge_total", "charges"),
            adjusted: adjusted.filter_map(|row| row.text("line")).collect(),
            currency,
        }
    }

    fn total(&self, name: &str) -> Option<Decimal> {
        self.record.fields.number(name)
    }

    fn money(&self, amount: Decimal) -> String {
        format!("{} {}", money(amount, &self.currency), self.currency).trim_end().to_owned()
    }

    /// Whether two sums of `parts` printed amounts are the same: each part may have been rounded.
    fn same(&self, one: Decimal, other: Decimal, parts: usize) -> bool {
        let slack = self.least.saturating_mul(Decimal::from(parts.clamp(1, 100)));
        one.saturating_sub(other).abs() <= slack
    }

    /// The lines add up to their sum, or to a total that follows from it. Lines may be printed with tax.
    fn lines(&self) -> Option<Finding> {
        let totals: Option<Vec<Decimal>> = self.lines.iter().map(|line| line.number("total")).collect();
        let totals = totals.filter(|totals| !totals.is_empty())?;
        let found = sum(totals.iter().copied());
        let net = self.total("net_total");
        // Pages print what is taken off with a minus or without one.
        let before =
            |total: Decimal| total.saturating_add(self.allowances.abs()).saturating_sub(self.charges);
        let before_as_is =
            |total: Decimal| total.saturating_add(self.allowances).saturating_sub(self.charges);
        let gross = self.total("gross_total");
        let stated =
            [self.total("line_total"), net, net.map(before), net.map(before_as_is), gross, gross.map(before)];
        let nearest = stated.iter().flatten().next()?;
        let is_stated =
            |found: Decimal| stated.iter().flatten().any(|total| self.same(found, *total, totals.len()));
        if is_stated(found) || subtotals(&totals, is_stated).is_some() {
            return None;
        }
        let (sum_of_lines, total) = (self.money(found), self.money(*nearest));
        let name = if self.total("line_total").is_some() { "line_total" } else { "net_total" };
        let label = terms::header(name).map_or(name, |term| term.label);
        let message = format!("The lines add up to {sum_of_lines}, but the {label} says {total}.");
        Some(review(FindingCode::LinesMismatch, name, message))
    }

    /// Quantity times price is the total of a line, but for what its allowances and charges explain.
    fn each_line(&self) -> Vec<Finding> {
        self.lines.iter().enumerate().filter_map(|(at, line)| self.one_line(at, line)).collect()
    }

    fn one_line(&self, at: usize, line: &Row) -> Option<Finding> {
        let (quantity, price, total) =
            (line.number("quantity")?, line.number("unit_price")?, line.number("total")?);
        let id = line.text("id");
        let has_extra = id.as_ref().is_some_and(|id| self.adjusted.contains(id));
        let base = line.number("base_quantity").filter(|base| !base.is_zero()).unwrap_or(Decimal::ONE);
        let product = quantity.saturating_mul(price).checked_div(base)?;
        // The price may have been rounded where it was printed: half of its last digit, for each piece.
        let of_price =
            quantity.saturating_mul(Decimal::new(5, price.scale().saturating_add(1).min(28))).abs();
        let slack = self.least.saturating_add(of_price);
        let is_near = |total: Decimal| product.abs().saturating_sub(total.abs()).abs() <= slack;
        let with_tax = line.number("tax_rate").map(|rate| {
            let factor = Decimal::ONE_HUNDRED.saturating_add(rate);
            total.saturating_mul(Decimal::ONE_HUNDRED).checked_div(factor).unwrap_or(total)
        });
        if has_extra || is_near(total) || with_tax.is_some_and(is_near) {
            return None;
        }
        let label = id.unwrap_or_else(|| (at + 1).to_string());
        let (product, total) = (self.money(round(product, 2)), self.money(total));
        let message = format!("Line {label}: quantity times price is {product}, but the line says {total}.");
        Some(info(FindingCode::LineMismatch, "lines", message))
    }

    /// Net and tax are gross.
    fn gross(&self) -> Option<Finding> {
        let (net, gross) = (self.total("net_total")?, self.total("gross_total")?);
        let listed: Option<Vec<Decimal>> = self.vat.iter().map(|row| row.number("amount")).collect();
        let listed = listed.filter(|listed| !listed.is_empty()).map(sum);
        let Some(tax) = self.total("tax_total").or(listed) else { return self.untold_tax(net, gross) };
        let expected = net.saturating_add(tax);
        let rounding = self.total("rounding").unwrap_or_default();
        // Rounding may be part of the total, and so may a charge or an allowance that bears no tax. A credit note
        // may print its tax without the minus that its totals have.
        let of_credit = if gross.is_sign_negative() { net.saturating_sub(tax) } else { expected };
        let is_whole = !self.is_between("allowance_total", net) && !self.is_between("charge_total", net);
        let plain = [expected, expected.saturating_add(rounding), of_credit].into_iter().filter(|_| is_whole);
        // All three are printed to the last digit, so that there is nothing to round.
        let is_explained = plain.chain(self.adjusted(expected)).any(|total| total == gross);
        if is_explained || self.is_included(net, tax, gross) {
            return None;
        }
        let (net, tax, gross) = (self.money(net), self.money(tax), self.money(gross));
        let message = format!("Net {net} and tax {tax} do not add up to the gross total {gross}.");
        Some(review(FindingCode::TotalMismatch, "gross_total", message))
    }

    /// An amount after the allowances and charges of the document, of which pages print the first with a minus or without,
    /// and after what the buyer withholds.
    fn adjusted(&self, amount: Decimal) -> [Decimal; 3] {
        let charged = amount.saturating_add(self.charges);
        let less = charged.saturating_sub(self.allowances.abs());
        let withheld = self.total("withheld").unwrap_or_default().abs();
        [charged.saturating_sub(self.allowances), less, less.saturating_sub(withheld)]
    }

    /// Whether an amount is printed on the way from a net total, to which the lines add up, to the gross total: then it counts.
    fn is_between(&self, name: &str, net: Decimal) -> bool {
        let place = |name: &str| self.record.fields.get(name).and_then(|field| field.value.place);
        let (Some(upper), Some(own), Some(lower)) = (place("net_total"), place(name), place("gross_total"))
        else {
            return false;
        };
        let is_there = [upper.page, lower.page] == [own.page; 2]
            && upper.bbox.y1 < own.bbox.y0
            && own.bbox.y1 < lower.bbox.y0;
        let lines = sum(self.lines.iter().filter_map(|line| line.number("total")));
        is_there && self.same(lines, net, self.lines.len()) && self.total(name).is_some_and(|n| !n.is_zero())
    }

    /// Without a word about tax the difference is somebody's to explain: it may be that it was not read.
    fn untold_tax(&self, net: Decimal, gross: Decimal) -> Option<Finding> {
        let rounding = self.total("rounding").unwrap_or_default();
        let explained = [net, net.saturating_add(rounding)].into_iter().chain(self.adjusted(net));
        if explained.into_iter().any(|total| self.same(total, gross, 1)) {
            return None;
        }
        let (net, gross) = (self.money(net), self.money(gross));
        let message =
            format!("No tax was found that leads from the net total {net} to the gross total {gross}.");
        Some(review(FindingCode::FieldMissing, "tax_total", message))
    }

    /// Whether the tax is part of a price that is stated twice, as its one rate says.
    fn is_included(&self, net: Decimal, tax: Decimal, gross: Decimal) -> bool {
        let [rate] = self.vat.iter().map(|row| row.number("rate")).collect::<Vec<_>>()[..] else {
            return false;
        };
        let share = rate.and_then(|rate| {
            let whole = Decimal::ONE_HUNDRED.saturating_add(rate);
            gross.saturating_mul(rate).checked_div(whole)
        });
        net == gross && share.is_some_and(|share| self.same(share, tax, 1))
    }

    /// The rows of the tax table add up to its totals, and each is its rate of its basis.
    fn taxes(&self) -> Vec<Finding> {
        let mut findings: Vec<Finding> = self.vat.iter().filter_map(|row| self.tax_row(row)).collect();
        for (column, name, code) in [
            ("amount", "tax_total", FindingCode::TaxMismatch),
            ("basis", "net_total", FindingCode::TaxBasisMismatch),
        ] {
            let values: Option<Vec<Decimal>> = self.vat.iter().map(|row| row.number(column)).collect();
            let values = values.filter(|values| !values.is_empty());
            let (Some(values), Some(total)) = (values, self.total(name)) else { continue };
            let found = sum(values.iter().copied());
            if !self.same(found.abs(), total.abs(), values.len()) {
                let label = terms::header(name).map_or(name, |term| term.label);
                let (found, total) = (self.money(found), self.money(total));
                let message = format!("The tax table adds up to {found}, but the {label} says {total}.");
                findings.push(review(code, name, message));
            }
        }
        findings
    }

    fn tax_row(&self, row: &Row) -> Option<Finding> {
        let (rate, amount) = (row.number("rate")?, row.number("amount")?);
        let bases = row.number("basis").map_or_else(|| self.bases(amount), |basis| vec![basis]);
        let basis = *bases.first()?;
        if bases.into_iter().any(|basis| self.is_tax(rate, basis, amount)) {
            return None;
        }
        let (basis, amount) = (self.money(basis), self.money(amount));
        let message = format!("{} % of {basis} is not the stated tax of {amount}.", rate.normalize());
        Some(review(FindingCode::TaxRateMismatch, "vat", message))
    }

    fn is_tax(&self, rate: Decimal, basis: Decimal, amount: Decimal) -> bool {
        let Some(expected) = basis.saturating_mul(rate).checked_div(Decimal::ONE_HUNDRED) else {
            return true;
        };
        // Tax may have been rounded line by line.
        let parts = self.lines.len().saturating_add(1);
        let (of, whole) = INDONESIAN_BASE;
        let indonesian = expected.saturating_mul(of.into()).checked_div(whole.into());
        let is_indonesian =
            self.currency == "IDR" && indonesian.is_some_and(|tax| self.same(tax, amount, parts));
        self.same(expected.abs(), amount.abs(), parts) || is_indonesian
    }

    /// What the only tax of a document may be taken of where its row does not say: the net total, before or after allowances
    /// and charges, what is left of the gross total, and all lines but one or one alone where others are free of tax.
    fn bases(&self, tax: Decimal) -> Vec<Decimal> {
        let (Some(net), [_]) = (self.total("net_total"), self.vat.as_slice()) else { return Vec::new() };
        let mut bases =
            vec![net, net.saturating_add(self.charges), net.saturating_sub(self.allowances.abs())];
        bases.extend(self.adjusted(net));
        bases.extend(self.total("gross_total").map(|gross| gross.saturating_sub(tax)));
        let lines = self.lines.iter().filter_map(|line| line.number("total"));
        bases.extend(lines.flat_map(|line| [line, net.saturating_sub(line)]));
        bases
    }

    /// What is to be paid is the gross total less what was paid. Without a word about payments, a smaller amount,
    /// or one to be paid back, may have its reason; a larger one has none.
    fn payable(&self) -> Option<Finding> {
        let (gross, payable) = (self.total("gross_total")?, self.total("payable")?);
        let (prepaid, rounding) = (self.total("prepaid"), self.total("rounding").unwrap_or_default());
        let rounded = gross.saturating_add(rounding);
        let paid = prepaid.unwrap_or_default();
        let expected = rounded.saturating_sub(paid);
        // Pages print what was paid with a minus or without one.
        let turned = rounded.saturating_add(paid);
        let is_turned = payable.is_sign_negative() != gross.is_sign_negative();
        let is_less = prepaid.is_none() && (payable.abs() < gross.abs() || is_turned);
        let follows = self.same(expected, payable, 1) || self.same(turned, payable, 1);
        if follows || is_less || payable.is_zero() {
            return None;
        }
        let (gross, payable) = (self.money(gross), self.money(payable));
        let paid = prepaid.map(|paid| format!(" and {} paid already", self.money(paid))).unwrap_or_default();
        let message =
            format!("The amount to pay is {payable}, which does not follow from the total {gross}{paid}.");
        Some(review(FindingCode::PayableMismatch, "payable", message))
    }

    /// A credit note gives back positive amounts, an invoice asks for them, and tax has the sign of what it is taken of.
    fn signs(&self) -> Vec<Finding> {
        let gross = self.total("gross_total").or_else(|| self.total("payable"));
        let is_below = |amount: Decimal| amount < Decimal::ZERO;
        let is_credit =
            self.record.fields.text("type_code").is_some_and(|code| CREDITS.contains(&code.as_str()));
        let mut findings = Vec::new();
        if let Some(gross) = gross.filter(|gross| is_below(*gross)) {
            let amount = self.money(gross);
            findings.push(if is_credit {
                let message = format!(
                    "The credit note states {amount}; credit notes give back amounts without a minus."
                );
                info(FindingCode::CreditNegative, "gross_total", message)
            } else {
                let message =
                    format!("The total is {amount}, but the document does not call itself a credit note.");
                review(FindingCode::NegativeTotal, "gross_total", message)
            });
        }
        if let (Some(net), Some(tax)) = (self.total("net_total"), self.total("tax_total"))
            && !net.is_zero()
            && !tax.is_zero()
            && is_below(net) != is_below(tax)
        {
            let (net, tax) = (self.money(net), self.money(tax));
            let message = format!("Net {net} and tax {tax} have different signs.");
            findings.push(review(FindingCode::SignMismatch, "tax_total", message));
        }
        findings
    }
}

/// An amount alone belongs to no rate; it was something else that stood under the table.
fn is_of_a_rate(row: &Row) -> bool {
    row.number("rate").is_some() || row.number("basis").is_some()
}

fn days(record: &Record) -> Vec<Finding> {
    let day = |name: &str| record.fields.date(name);
    let mut findings = Vec::new();
    if let (Some(issued), Some(due)) = (day("issue_date"), day("due_date"))
        && due < issued
    {
        let message = format!("The invoice of {issued} was due on {due}, before it was issued.");
        findings.push(review(FindingCode::DueBeforeIssue, "due_date", message));
    }
    if let (Some(start), Some(end)) = (day("period_start"), day("period_end"))
        && end < start
    {
        let message = format!("The period ends on {end}, before it starts on {start}.");
        findings.push(review(FindingCode::PeriodReversed, "period_end", message));
    }
    findings
}

#[cfg(test)]
mod tests;
