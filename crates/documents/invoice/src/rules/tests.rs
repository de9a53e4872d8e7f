//! Each rule, with a record that breaks it and records that only look as if they did.

use std::str::FromStr;

use jiff::civil::Date;

use super::*;
use crate::facts::unprinted;
use crate::record::{Table, Typed};

/// Rows of `name value` pairs.
type Rows<'a> = &'a [&'a [(&'a str, &'a str)]];

/// A record out of `name value` pairs; a value that reads as a number is one.
fn record(fields: &[(&str, &str)], tables: &[(&str, Rows<'_>)]) -> Record {
    let row = |cells: &[(&str, &str)]| {
        cells.iter().map(|(name, text)| ((*name).to_owned(), field(text))).collect::<Row>()
    };
    let table = |rows: Rows<'_>| Table { term: None, rows: rows.iter().map(|cells| row(cells)).collect() };
    Record {
        kind: "invoice".to_owned(),
        source: "test".to_owned(),
        fields: row(&[BASE, fields].concat()),
        tables: tables.iter().map(|(name, rows)| ((*name).to_owned(), table(rows))).collect(),
        findings: Vec::new(),
    }
}

const BASE: &[(&str, &str)] =
    &[("invoice_number", "R 1"), ("issue_date", "2026-03-05"), ("currency", "EUR"), ("seller_name", "A")];

fn field(text: &str) -> crate::record::Field {
    let typed = match (Decimal::from_str(text), text.parse::<Date>()) {
        (Ok(number), _) => Typed::Number(number),
        (_, Ok(date)) => Typed::Date(date),
        _ => Typed::Text(text.to_owned()),
    };
    unprinted(None, typed, "test")
}

#[track_caller]
fn expect(record: &Record, expected: &[&str]) {
    let findings = check(record);
    let codes: Vec<&str> = findings.iter().map(|finding| finding.code.as_str()).collect();
    assert_eq!(codes, expected, "{findings:#?}");
}

const TOTALS: &[(&str, &str)] = &[("net_total", "100.00"), ("tax_total", "19.00"), ("gross_total", "119.00")];

#[test]
fn an_invoice_that_adds_up_has_no_findings() {
    let lines: Rows<'_> = &[
        &[("quantity", "2"), ("unit_price", "30.00"), ("total", "60.00")],
        &[("quantity", "3"), ("unit_price", "13.3333"), ("total", "40.00")],
    ];
    let vat: Rows<'_> = &[&[("rate", "19"), ("basis", "100.00"), ("amount", "19.00")]];
    expect(&record(TOTALS, &[("lines", lines), ("vat", vat)]), &[]);
}

#[test]
fn a_gross_total_that_is_not_net_and_tax_is_found() {
    expect(
        &record(&[("net_total", "100"), ("tax_total", "19"), ("gross_total", "120")], &[]),
        &["TOTAL_MISMATCH"],
    );
    let by_a_cent = &[("net_total", "100"), ("tax_total", "19"), ("gross_total", "119.01")];
    expect(&record(by_a_cent, &[]), &["TOTAL_MISMATCH"]);
    let findings = check(&record(&[("net_total", "100"), ("tax_total", "19"), ("gross_total", "120")], &[]));
    assert_eq!(
        findings[0].message,
        "Net 100.00 EUR and tax 19.00 EUR do not add up to the gross total 120.00 EUR."
    );
}

#[test]
fn charges_after_tax_and_rounding_explain_a_gross_total() {
    let fields = &[("net_total", "100"), ("tax_total", "19"), ("gross_total", "129")];
    expect(&record(fields, &[("charges", &[&[("amount", "10")]])]), &[]);
    let fields =
        &[("net_total", "100"), ("tax_total", "19.02"), ("rounding", "-0.02"), ("gross_total", "119")];
    expect(&record(fields, &[]), &[]);
}

#[test]
fn without_a_word_about_tax_a_gross_total_must_be_the_net_total() {
    expect(&record(&[("net_total", "100"), ("gross_total", "119")], &[]), &["FIELD_MISSING"]);
    expect(&record(&[("net_total", "100"), ("gross_total", "100")], &[]), &[]);
    let rows: Rows<'_> = &[&[("rate", "19"), ("basis", "100"), ("amount", "19")], &[("amount", "201")]];
    expect(&record(TOTALS, &[("vat", rows)]), &[]);
}

#[test]
fn a_credit_note_that_prints_its_tax_without_a_minus_adds_up_but_its_signs_are_told() {
    let credit = &[("net_total", "-100"), ("tax_total", "19"), ("gross_total", "-119")];
    expect(&record(credit, &[]), &["NEGATIVE_TOTAL", "SIGN_MISMATCH"]);
    expect(
        &record(&[&credit[..], &[("type_code", "381")]].concat(), &[]),
        &["CREDIT_NEGATIVE", "SIGN_MISMATCH"],
    );
    let fields = &[("net_total", "100"), ("tax_total", "19"), ("gross_total", "81")];
    expect(&record(fields, &[]), &["TOTAL_MISMATCH"]);
}

#[test]
fn lines_that_do_not_add_up_are_found_unless_allowances_explain_it() {
    let lines: Rows<'_> = &[&[("total", "60")], &[("total", "50")]];
    expect(&record(TOTALS, &[("lines", lines)]), &["LINES_MISMATCH"]);
    expect(&record(TOTALS, &[("lines", lines), ("allowances", &[&[("amount", "10")]])]), &[]);
    expect(
        &record(&[TOTALS, &[("line_total", "110"), ("allowance_total", "10")]].concat(), &[("lines", lines)]),
        &[],
    );
    let with_tax: Rows<'_> = &[&[("total", "69")], &[("total", "50")]];
    expect(&record(TOTALS, &[("lines", with_tax)]), &[]);
    let unknown: Rows<'_> = &[&[("total", "60")], &[("name", "x")]];
    expect(&record(TOTALS, &[("lines", unknown)]), &[]);
}

#[test]
fn groups_of_lines_are_not_counted_twice() {
    let lines: Rows<'_> = &[
        &[("total", "100"), ("status", "GROUP")],
        &[("total", "60")],
        &[("total", "40"), ("status", "DETAIL")],
    ];
    expect(&record(TOTALS, &[("lines", lines)]), &[]);
    let unmarked: Rows<'_> = &[&[("total", "60")], &[("total", "40")], &[("total", "100")]];
    expect(&record(TOTALS, &[("lines", unmarked)]), &[]);
}

#[test]
fn a_line_whose_price_does_not_lead_to_its_total_is_told() {
    let lines: Rows<'_> = &[&[("quantity", "2"), ("unit_price", "60"), ("total", "100")]];
    expect(&record(TOTALS, &[("lines", lines)]), &["LINE_MISMATCH"]);
    let per_hundred: Rows<'_> =
        &[&[("quantity", "200"), ("unit_price", "50"), ("base_quantity", "100"), ("total", "100")]];
    expect(&record(TOTALS, &[("lines", per_hundred)]), &[]);
}

#[test]
fn a_tax_table_must_agree_with_the_totals_and_with_itself() {
    let rows: Rows<'_> = &[&[("rate", "19"), ("basis", "100"), ("amount", "20")]];
    expect(&record(TOTALS, &[("vat", rows)]), &["TAX_RATE_MISMATCH", "TAX_MISMATCH"]);
    let rows: Rows<'_> = &[&[("rate", "19"), ("basis", "90"), ("amount", "17.1")]];
    expect(&record(TOTALS, &[("vat", rows)]), &["TAX_MISMATCH", "TAX_BASIS_MISMATCH"]);
}

#[test]
fn the_only_tax_is_its_rate_of_something_that_the_document_states() {
    let vat: Rows<'_> = &[&[("rate", "20"), ("amount", "150.00")]];
    let with = |more: &[(&str, &str)], net: &str, gross: &str| {
        let fields = [("net_total", net), ("tax_total", "150.00"), ("gross_total", gross)];
        record(&[&fields[..], more].concat(), &[("vat", vat)])
    };
    expect(&with(&[], "1000.00", "1150.00"), &["TAX_RATE_MISMATCH"]);
    expect(&with(&[], "750.00", "900.00"), &[]);
    expect(&with(&[("allowance_total", "-50.00")], "800.00", "900.00"), &[]);
    expect(&with(&[("charge_total", "10.00")], "740.00", "900.00"), &[]);
    // Prices that hold the tax already.
    expect(&with(&[], "900.00", "900.00"), &[]);
}

#[test]
fn twelve_percent_of_eleven_twelfths_is_right_in_rupiah_only() {
    let rows: Rows<'_> = &[&[("rate", "12"), ("basis", "1200000"), ("amount", "132000")]];
    let fields =
        &[("currency", "IDR"), ("net_total", "1200000"), ("tax_total", "132000"), ("gross_total", "1332000")];
    expect(&record(fields, &[("vat", rows)]), &[]);
    let fields = &[("net_total", "1200000"), ("tax_total", "132000"), ("gross_total", "1332000")];
    expect(&record(fields, &[("vat", rows)]), &["TAX_RATE_MISMATCH"]);
}

#[test]
fn the_amount_to_pay_follows_from_the_total() {
    let with = |more: &[(&str, &str)]| record(&[TOTALS, more].concat(), &[]);
    expect(&with(&[("payable", "119")]), &[]);
    expect(&with(&[("payable", "69"), ("prepaid", "50")]), &[]);
    expect(&with(&[("payable", "119.50"), ("rounding", "0.50")]), &[]);
    expect(&with(&[("payable", "69")]), &[]);
    expect(&with(&[("payable", "70"), ("prepaid", "50")]), &["PAYABLE_MISMATCH"]);
    expect(&with(&[("payable", "191")]), &["PAYABLE_MISMATCH"]);
    expect(&with(&[("payable", "0")]), &[]);
    expect(&with(&[("payable", "-10")]), &[]);
    expect(&with(&[("payable", "69"), ("prepaid", "-50")]), &[]);
}

#[test]
fn days_out_of_order_are_found() {
    let with = |more: &[(&str, &str)]| record(&[TOTALS, more].concat(), &[]);
    expect(&with(&[("due_date", "2026-03-04")]), &["DUE_BEFORE_ISSUE"]);
    expect(&with(&[("due_date", "2026-03-05")]), &[]);
    expect(&with(&[("period_start", "2026-02-01"), ("period_end", "2026-01-31")]), &["PERIOD_REVERSED"]);
}

#[test]
fn what_nobody_can_book_without_is_missed() {
    let empty = Record { kind: "invoice".to_owned(), ..Record::default() };
    expect(&empty, &["FIELD_MISSING"; 5]);
    let other = Record { kind: "delivery_note".to_owned(), ..Record::default() };
    expect(&other, &[]);
}

#[test]
fn absurd_numbers_do_not_stop_the_rules() {
    let huge = "79228162514264337593543950335";
    let lines: Rows<'_> = &[&[
        ("quantity", huge),
        ("unit_price", huge),
        ("total", huge),
        ("tax_rate", huge),
        ("base_quantity", "0.0001"),
    ]];
    let vat: Rows<'_> = &[&[("rate", huge), ("basis", huge), ("amount", "-1")]];
    let fields = &[("net_total", huge), ("tax_total", huge), ("gross_total", "-1"), ("payable", huge)];
    assert!(!check(&record(fields, &[("lines", lines), ("vat", vat)])).is_empty());
}
