//! What a standard demands and a record may lack, worked out where arithmetic or convention allows it.
//!
//! A value that the record has is never changed, except that words become codes (units, countries) and signs
//! stand where EN 16931 wants them: a negative price hands its sign to the quantity, and a deduction that is printed
//! with a minus is a positive amount that is taken off. Each thing worked out is told as a finding.
//! What can be neither worked out nor left out is written empty, so that a check of the rules names it.

mod lines;
mod signs;
mod tax;

use std::collections::BTreeMap;

use jiff::civil::Date;
use rust_decimal::Decimal;

use super::amount::sum;
use super::codes;
use crate::facts::{Ask, Facts, unprinted};
use crate::finding::FindingCode;
use crate::record::{Finding, Record, Row, Severity, Typed};
use crate::terms;

/// Written for a day that the schema demands and the record lacks: no invoice was issued on it.
pub(crate) const NO_DATE: Date = Date::constant(1, 1, 1);
/// ISO 4217 for "no currency".
const NO_CURRENCY: &str = "XXX";
/// Commercial invoice, in UNTDID 1001.
const COMMERCIAL_INVOICE: &str = "380";
/// Header values without which no invoice conforms.
const DEMANDED: &[&str] =
    &["invoice_number", "issue_date", "seller_name", "seller_country", "buyer_name", "buyer_country"];
/// Of these the standard wants one.
const SELLER_IDENTIFIERS: &[&str] = &["seller_id", "seller_registration", "seller_vat_id"];
/// Type codes of UNTDID 1001 that are credit notes.
const CREDIT_NOTES: &[&str] =
    &["81", "83", "261", "262", "296", "308", "381", "396", "420", "458", "502", "503", "532"];
/// Tax categories of UNTDID 5305 that EN 16931 takes.
const TAX_CATEGORIES: &[&str] = &["S", "Z", "E", "AE", "K", "G", "O", "L", "M", "B"];
/// Reasons for allowances in UNTDID 5189, as far as EN 16931 takes them.
const ALLOWANCE_REASONS: &[&str] = &[
    "41", "42", "60", "62", "63", "64", "65", "66", "67", "68", "70", "71", "88", "95", "100", "102", "103",
    "104", "105",
];

/// What belongs to lines, by the number of the line.
type ByLine = BTreeMap<String, Vec<Row>>;

/// An invoice with all that can be known about it.
#[derive(Debug)]
pub(crate) struct Invoice {
    pub(crate) header: Facts,
    pub(crate) lines: Vec<Row>,
    pub(crate) vat: Vec<Row>,
    pub(crate) allowances: Vec<Row>,
    pub(crate) charges: Vec<Row>,
    pub(crate) notes: Vec<Row>,
    pub(crate) documents: Vec<Row>,
    /// Whether codes come from XML, where they are codes already, or from words on a page.
    is_embedded: bool,
    line_allowances: ByLine,
    line_charges: ByLine,
    line_attributes: ByLine,
    /// What was worked out.
    pub(crate) findings: Vec<Finding>,
}

impl Invoice {
    /// Takes a record over and works out what it lacks.
    pub(crate) fn complete(record: &Record) -> Self {
        let rows = |name: &str| record.tables.get(name).map(|table| table.rows.clone()).unwrap_or_default();
        let mut invoice = Self {
            header: record.fields.clone(),
            lines: rows("lines"),
            vat: rows("vat"),
            allowances: rows("allowances"),
            charges: rows("charges"),
            notes: rows("notes"),
            documents: rows("documents"),
            is_embedded: record.source.starts_with("embedded:"),
            line_allowances: by_line(rows("line_allowances")),
            line_charges: by_line(rows("line_charges")),
            line_attributes: by_line(rows("line_attributes")),
            findings: Vec::new(),
        };
        invoice.identify();
        invoice.correct_codes();
        lines::complete(&mut invoice);
        signs::complete(&mut invoice);
        invoice.part_subtotal();
        invoice.add_up();
        tax::complete(&mut invoice);
        invoice.locate_parties();
        invoice.settle();
        invoice.tell_gaps();
        invoice
    }

    /// Currency of the amounts.
    pub(crate) fn currency(&self) -> String {
        self.header.text("currency").unwrap_or_else(|| NO_CURRENCY.to_owned())
    }

    /// Whether the type code is one of a credit note.
    pub(crate) fn is_credit_note(&self) -> bool {
        self.header.text("type_code").is_some_and(|code| CREDIT_NOTES.contains(&code.as_str()))
    }

    pub(crate) fn allowances_of(&self, line: &Row) -> &[Row] {
        of_line(&self.line_allowances, line)
    }

    pub(crate) fn charges_of(&self, line: &Row) -> &[Row] {
        of_line(&self.line_charges, line)
    }

    /// Attributes of one line's item.
    pub(crate) fn attributes_of(&self, line: &Row) -> &[Row] {
        of_line(&self.line_attributes, line)
    }

    /// Sets a header value that was worked out, and says so.
    fn derive(&mut self, name: &str, typed: Typed, because: &str) {
        let Some(term) = terms::header(name) else { return };
        let field = unprinted(Some(term.number), typed, because);
        let message = format!("The {} was written as {}: {because}.", term.label, field.value.printed);
        self.header.insert(name.to_owned(), field);
        self.tell(Severity::Info, FindingCode::Derived, Some(name), message);
    }

    fn tell(&mut self, severity: Severity, code: FindingCode, field: Option<&str>, message: String) {
        let field = field.map(str::to_owned);
        self.findings.push(Finding { severity, code, field, message });
    }

    /// Type, currency and day of issue.
    fn identify(&mut self) {
        let code = self.header.text("type_code").unwrap_or_default();
        let is_code = (1..=3).contains(&code.len()) && code.bytes().all(|byte| byte.is_ascii_digit());
        if !is_code {
            let code = Typed::Code(COMMERCIAL_INVOICE.to_owned());
            self.derive("type_code", code, "no type is stated, so it is an ordinary invoice");
        }
        match self.header.text("currency") {
            None => {
                let code = Typed::Code(NO_CURRENCY.to_owned());
                self.derive("currency", code, "no currency is stated");
            }
            Some(code) => set_code(&mut self.header, "currency", &code.to_uppercase()),
        }
    }

    /// What the standard demands and nobody can know, and what is printed in another form than it demands.
    fn tell_gaps(&mut self) {
        for name in DEMANDED {
            let is_known =
                if *name == "issue_date" { self.header.date(name).is_some() } else { self.header.has(name) };
            if let (false, Some(term)) = (is_known, terms::header(name)) {
                let message = format!(
                    "The document states no {} ({}), which the standard demands.",
                    term.label, term.number
                );
                self.tell(Severity::Review, FindingCode::DemandedTermMissing, Some(name), message);
            }
        }
        let is_identified = SELLER_IDENTIFIERS.iter().any(|name| self.header.has(name));
        if !is_identified {
            let message = "The document states no identifier of the seller (BT-29, BT-30 or BT-31), of which the standard \
                           demands one.";
            let code = FindingCode::DemandedTermMissing;
            self.tell(Severity::Review, code, Some("seller_vat_id"), message.to_owned());
        }
        for name in ["seller_vat_id", "buyer_vat_id", "tax_representative_vat_id"] {
            let number = self.header.text(name);
            let is_bare = number.is_some_and(|number| codes::country_of_identifier(&number).is_none());
            if let (true, Some(term)) = (is_bare, terms::header(name)) {
                let message = format!(
                    "The {} ({}) is printed without a country before it, which the standard demands. It was written as \
                     printed.",
                    term.label, term.number
                );
                self.tell(Severity::Info, FindingCode::TermNotConformant, Some(name), message);
            }
        }
    }

    /// Codes that the lists of EN 16931 do not have, or no longer.
    fn correct_codes(&mut self) {
        for name in ["seller_electronic_address_scheme", "buyer_electronic_address_scheme"] {
            // The German routing number moved from the one list to the other.
            if self.header.text(name).as_deref() == Some("9958") {
                set_code(&mut self.header, name, "0204");
            }
        }
        let of_lines = self.line_allowances.values_mut().flatten().map(|row| ("line_allowances", row));
        let of_document = self.allowances.iter_mut().map(|row| ("allowances", row));
        for (table, row) in of_document.chain(of_lines) {
            let code = row.text("reason_code").filter(|code| !ALLOWANCE_REASONS.contains(&code.as_str()));
            let Some(code) = code else { continue };
            row.remove("reason_code");
            if !row.has("reason") {
                set_cell(row, table, "reason", Typed::Text(code));
            }
        }
        let tables = [("category", &mut self.vat), ("tax_category", &mut self.lines)].into_iter();
        let tables =
            tables.chain([("tax_category", &mut self.allowances), ("tax_category", &mut self.charges)]);
        for (name, row) in tables.flat_map(|(name, rows)| rows.iter_mut().map(move |row| (name, row))) {
            correct_category(row, name);
        }
        // A payee is somebody else than the seller.
        if self.header.text("payee_name") == self.header.text("seller_name") {
            for name in ["payee_name", "payee_id", "payee_registration"] {
                self.header.remove(name);
            }
        }
    }

    /// A subtotal before allowances and charges is the sum of the lines: in the standard the net total comes after them. Those
    /// that a page only mentions, beside sums that hold without them, are not written.
    fn part_subtotal(&mut self) {
        let of = |name: &str| self.header.number(name);
        let (Some(net), Some(gross)) = (of("net_total"), of("gross_total")) else { return };
        let tax = of("tax_total").unwrap_or_default();
        let (allowances, charges) = (of("allowance_total"), of("charge_total").unwrap_or_default());
        let taken_off = allowances.unwrap_or_default().abs();
        let after = net.saturating_sub(taken_off).saturating_add(charges);
        let adds_up = |net: Decimal| net.saturating_add(tax) == gross;
        let of_lines = sum(self.lines.iter().filter_map(|line| line.number("total")));
        if !self.is_embedded && adds_up(net) && of("line_total").unwrap_or(of_lines) == net {
            self.header.retain(|name, _| !matches!(name.as_str(), "allowance_total" | "charge_total"));
        }
        if self.is_embedded || adds_up(net) || !adds_up(after) {
            return;
        }
        let term = |name: &str| terms::header(name).map(|term| term.number.to_owned());
        if let Some(mut subtotal) = self.header.remove("net_total") {
            subtotal.term = term("line_total");
            self.header.entry("line_total".to_owned()).or_insert(subtotal);
        }
        if let Some(field) = self.header.get_mut("allowance_total") {
            field.value.typed = Typed::Number(taken_off);
        }
    }

    /// The totals that follow from others. What the document states stays, even when it does not add up.
    fn add_up(&mut self) {
        let of_lines = sum(self.lines.iter().filter_map(|line| line.number("total")));
        let taxes = |column: &str| -> Option<Decimal> {
            let values: Option<Vec<Decimal>> = self.vat.iter().map(|row| row.number(column)).collect();
            values.filter(|values| !values.is_empty()).map(sum)
        };
        let (basis, tax) = (taxes("basis"), taxes("amount"));

        self.total("line_total", Some(of_lines), "it is the sum of the lines");
        self.add_up_allowances();
        let stated = |invoice: &Self, name: &str| invoice.header.number(name);
        let of = |invoice: &Self, name: &str| stated(invoice, name).unwrap_or_default();
        let paid = of(self, "prepaid").saturating_sub(of(self, "rounding"));
        let payable = stated(self, "payable").map(|payable| payable.saturating_add(paid));
        let (net, gross) = (stated(self, "net_total"), stated(self, "gross_total").or(payable));

        self.total("tax_total", tax, "it is the sum of the tax by rate");
        let difference = gross.zip(net).map(|(gross, net)| gross.saturating_sub(net));
        self.total("tax_total", difference, "it is the gross total less the net total");
        self.total("tax_total", tax::of_lines(self), "it follows from the rates of the lines");
        let tax = stated(self, "tax_total");
        self.total("net_total", basis, "it is the sum of the taxable amounts");
        let net = gross.zip(tax).map(|(gross, tax)| gross.saturating_sub(tax));
        self.total("net_total", net, "it is the gross total less the tax");
        let after = self.after_allowances();
        self.total("net_total", Some(after), "it is the sum of the lines, allowances and charges");
        let net = stated(self, "net_total");
        let sum = net.zip(tax).map(|(net, tax)| net.saturating_add(tax));
        self.total("gross_total", sum, "it is the net total and the tax");
        self.total("gross_total", gross, "it is the amount to pay and what was paid already");
        self.total("gross_total", net, "no tax is stated");
        let gross = of(self, "gross_total");
        self.total("payable", Some(gross.saturating_sub(paid)), "nothing else is stated");
        self.explain_payable();
    }

    /// Sets a total that the document does not state.
    fn total(&mut self, name: &str, amount: Option<Decimal>, because: &str) {
        if let (None, Some(amount)) = (self.header.number(name), amount) {
            self.derive(name, Typed::Number(amount), because);
        }
    }

    /// Totals of the allowances and charges that are listed.
    fn add_up_allowances(&mut self) {
        let amounts = |rows: &[Row]| {
            (!rows.is_empty()).then(|| sum(rows.iter().filter_map(|row| row.number("amount"))))
        };
        let (allowances, charges) = (amounts(&self.allowances), amounts(&self.charges));
        self.total("allowance_total", allowances, "it is the sum of those listed");
        self.total("charge_total", charges, "it is the sum of those listed");
    }

    fn after_allowances(&self) -> Decimal {
        let of = |name: &str| self.header.number(name).unwrap_or_default();
        of("line_total").saturating_sub(of("allowance_total")).saturating_add(of("charge_total"))
    }

    /// Gross total and amount to pay differ by what was paid already, or by rounding when it is less than one.
    fn explain_payable(&mut self) {
        let (Some(gross), Some(payable)) = (self.header.number("gross_total"), self.header.number("payable"))
        else {
            return;
        };
        if self.header.has("prepaid") || self.header.has("rounding") || gross == payable {
            return;
        }
        let difference = gross.saturating_sub(payable);
        if difference.abs() < Decimal::ONE {
            self.derive(
                "rounding",
                Typed::Number(-difference),
                "the amount to pay differs this much from the total",
            );
        } else {
            self.derive(
                "prepaid",
                Typed::Number(difference),
                "the amount to pay is this much less than the total",
            );
        }
    }

    /// Countries of the parties: every address needs one.
    fn locate_parties(&mut self) {
        for party in ["seller", "buyer", "tax_representative", "delivery"] {
            let name = format!("{party}_country");
            if let Some(code) = self.header.text(&name).and_then(|text| codes::country_code(&text)) {
                set_code(&mut self.header, &name, code);
            }
        }
        for (name, identifiers) in [
            ("seller_country", &["seller_vat_id", "iban"][..]),
            ("buyer_country", &["buyer_vat_id"]),
            ("tax_representative_country", &["tax_representative_vat_id"]),
        ] {
            let of_identifier = |identifier: &&str| {
                self.header.text(identifier).as_deref().and_then(codes::country_of_identifier)
            };
            let country = identifiers.iter().find_map(of_identifier);
            if let (false, Some(country)) = (self.header.has(name), country) {
                self.derive(name, Typed::Code(country.to_owned()), "a number of that party begins with it");
            }
        }
        if let (false, Some(country)) =
            (self.header.has("seller_country"), codes::country_of_currency(&self.currency()))
        {
            self.derive("seller_country", Typed::Code(country.to_owned()), "the currency is that country's");
        }
        // Letters name the country when it is another one. Categories for supplies across a border say that it is.
        let is_abroad = |row: &Row| matches!(row.text("category").as_deref(), Some("K" | "G" | "AE"));
        let is_abroad = self.vat.iter().any(is_abroad);
        let seller =
            self.header.text("seller_country").filter(|_| !is_abroad && !self.header.has("buyer_country"));
        if let Some(country) = seller {
            self.derive(
                "buyer_country",
                Typed::Code(country),
                "no other country than the seller's is stated",
            );
        }
    }

    /// How and by when to pay.
    fn settle(&mut self) {
        let has = |name: &str| self.header.has(name);
        if !has("payment_means_code") {
            let code = match () {
                () if has("debited_iban") || has("mandate_reference") => Some("59"),
                () if has("iban") && self.currency() == "EUR" => Some("58"),
                () if has("iban") => Some("30"),
                () if has("card_number") => Some("48"),
                () if has("payment_reference") || has("payment_means_text") => Some("1"),
                () => None,
            };
            if let Some(code) = code {
                self.derive(
                    "payment_means_code",
                    Typed::Code(code.to_owned()),
                    "the details given are of that kind",
                );
            }
        }
        let is_owed = self.header.number("payable").is_some_and(|payable| payable > Decimal::ZERO);
        if is_owed && !self.header.has("due_date") && !self.header.has("payment_terms") {
            let terms = Typed::Text("No payment terms stated.".to_owned());
            self.derive("payment_terms", terms, "neither terms nor a due date are stated");
        }
        // The standard wants one of three identifiers of the seller; a tax number is one that everybody knows.
        let is_identified = SELLER_IDENTIFIERS.iter().any(|name| self.header.has(name));
        if let (false, Some(number)) = (is_identified, self.header.text("seller_tax_number")) {
            self.derive("seller_id", Typed::Text(number), "the tax number identifies the seller");
        }
    }
}

fn by_line(rows: Vec<Row>) -> ByLine {
    let mut by_line = ByLine::new();
    for row in rows {
        by_line.entry(row.text("line").unwrap_or_default()).or_default().push(row);
    }
    by_line
}

fn of_line<'a>(rows: &'a ByLine, line: &Row) -> &'a [Row] {
    line.text("id").and_then(|id| rows.get(&id)).map_or(&[], Vec::as_slice)
}

/// A category out of the list, also where other words stand around it; what holds none of them is dropped, and
/// the rate will decide.
fn correct_category(row: &mut Row, name: &str) {
    let Some(text) = row.text(name) else { return };
    let mut codes = text.split_whitespace().filter(|word| TAX_CATEGORIES.contains(word));
    match (codes.next(), codes.next()) {
        (Some(code), None) => set_code(row, name, code),
        _ => drop(row.remove(name)),
    }
}

/// Puts a code in the place of a word, keeping where it was printed.
fn set_code(facts: &mut Facts, name: &str, code: &str) {
    if let Some(field) = facts.get_mut(name) {
        field.value.typed = Typed::Code(code.to_owned());
    }
}

/// Sets a cell that was worked out.
fn set_cell(row: &mut Row, table: &str, name: &str, typed: Typed) {
    let number = terms::column(table, name).map(|term| term.number);
    row.insert(name.to_owned(), unprinted(number, typed, "worked out"));
}
