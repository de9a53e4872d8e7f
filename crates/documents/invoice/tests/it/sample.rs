//! A record with a bit of everything, as a mapping would give it, for the tests of the writers.

use std::str::FromStr;

use ode_invoice::terms::{self, TermType};
use ode_invoice::{Field, Finding, FindingCode, Place, Record, Row, Severity, Table, Typed, Value};
use ode_pdf::Rect;
use rust_decimal::Decimal;

/// An invoice with allowances, two tax rates, part of it paid.
pub(crate) fn invoice() -> Record {
    let fields = [
        ("invoice_number", "RE-2026/0815"),
        ("issue_date", "2026-03-05"),
        ("due_date", "2026-04-04"),
        ("delivery_date", "2026-03-01"),
        ("currency", "EUR"),
        ("order_reference", "PO-77"),
        ("buyer_reference", "04011000-12345-35"),
        ("seller_name", "Müller & Söhne <GmbH>"),
        ("seller_vat_id", "DE136695976"),
        ("seller_street", "Hauptstraße 1"),
        ("seller_postcode", "10115"),
        ("seller_city", "Berlin"),
        ("seller_country", "Deutschland"),
        ("seller_email", "rechnung@example.org"),
        ("buyer_name", "Kundin AG"),
        ("iban", "DE89370400440532013000"),
        ("bic", "COBADEFFXXX"),
        ("line_total", "120.00"),
        ("net_total", "110.00"),
        ("tax_total", "18.50"),
        ("gross_total", "128.50"),
        ("prepaid", "28.50"),
        ("payable", "100.00"),
    ];
    let lines: &[&[(&str, &str)]] = &[
        &[
            ("id", "1"),
            ("name", "Beratung"),
            ("quantity", "2"),
            ("unit", "Std."),
            ("unit_price", "50.00"),
            ("total", "100.00"),
            ("tax_rate", "19"),
        ],
        &[
            ("id", "2"),
            ("name", "Buch"),
            ("item_id", "B-9"),
            ("quantity", "1"),
            ("unit", "Stück"),
            ("unit_price", "20.00"),
            ("total", "20.00"),
            ("tax_rate", "7"),
        ],
    ];
    let vat: &[&[(&str, &str)]] = &[
        &[("rate", "19"), ("basis", "90.00"), ("amount", "17.10")],
        &[("rate", "7"), ("basis", "20.00"), ("amount", "1.40")],
    ];
    let allowances: &[&[(&str, &str)]] =
        &[&[("amount", "10.00"), ("reason", "Treuerabatt"), ("tax_rate", "19")]];
    let finding = Finding {
        severity: Severity::Info,
        code: FindingCode::Derived,
        field: Some("iban".to_owned()),
        message: "This is an example.".to_owned(),
    };
    Record {
        kind: "invoice".to_owned(),
        source: "example_v1".to_owned(),
        fields: row(&fields, terms::header),
        tables: [("lines", lines), ("vat", vat), ("allowances", allowances)]
            .into_iter()
            .map(|(name, rows)| (name.to_owned(), table(name, rows)))
            .collect(),
        findings: vec![finding],
    }
}

fn table(name: &str, rows: &[&[(&str, &str)]]) -> Table {
    let rows = rows.iter().map(|cells| row(cells, |column| terms::column(name, column))).collect();
    Table { term: terms::table(name).map(|table| table.number.to_owned()), rows }
}

fn row(cells: &[(&str, &str)], term: impl Fn(&str) -> Option<&'static terms::Term>) -> Row {
    cells
        .iter()
        .enumerate()
        .map(|(at, (name, text))| ((*name).to_owned(), field(at, text, term(name))))
        .collect()
}

fn field(at: usize, text: &str, term: Option<&terms::Term>) -> Field {
    let typed = match term.map(|term| term.value) {
        Some(TermType::Amount | TermType::Number) => {
            Typed::Number(Decimal::from_str(text).expect("a number"))
        }
        Some(TermType::Date) => Typed::Date(text.parse().expect("a day")),
        Some(TermType::Code | TermType::Text | TermType::Identifier) | None => Typed::Text(text.to_owned()),
    };
    let top = 20.0 + 12.0 * f32::from(u8::try_from(at).expect("few fields"));
    let place = Place { page: 1, bbox: Rect { x0: 50.0, y0: top, x1: 150.5, y1: top + 10.0 } };
    let rule = "right of its label".to_owned();
    let value = Value { typed, printed: text.to_owned(), place: Some(place), rule, confidence: 0.975 };
    Field { term: term.map(|term| term.number.to_owned()), value }
}
