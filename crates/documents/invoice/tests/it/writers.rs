//! What the writers write: the whole of each output for one record, and what they do with odd ones.

use crate::sample;
use ode_invoice::write::{Format, NAMESPACE, Provenance, provenance, write};
use ode_invoice::{Field, Record, Table, Typed, Value};
use quick_xml::events::Event;

fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).expect("the writers write UTF-8")
}

fn written(record: &Record, format: Format) -> String {
    text(write(record, format, Provenance::Left).bytes)
}

fn plain(value: &str) -> Field {
    let typed = Typed::Text(value.to_owned());
    Field {
        term: None,
        value: Value { typed, printed: value.to_owned(), place: None, rule: String::new(), confidence: 1.0 },
    }
}

/// Fails with the document unless it is well-formed.
#[track_caller]
fn expect_xml(document: &str) {
    let mut reader = quick_xml::Reader::from_str(document);
    loop {
        match reader.read_event() {
            Ok(Event::Eof) => break,
            Ok(_) => {}
            Err(error) => panic!("{error}\n{document}"),
        }
    }
}

#[test]
fn own_xml_carries_the_record_as_it_is() {
    insta::assert_snapshot!("own", written(&sample::invoice(), Format::Own));
}

#[test]
fn own_xml_with_provenance_says_where_each_value_stood() {
    let mut record = sample::invoice();
    record.tables.clear();
    record.fields.retain(|name, _| name == "invoice_number" || name == "gross_total");
    insta::assert_snapshot!("own_provenance", text(write(&record, Format::Own, Provenance::Shown).bytes));
}

#[test]
fn ubl_is_written_in_the_order_of_the_schema() {
    insta::assert_snapshot!("ubl", written(&sample::invoice(), Format::Ubl));
}

#[test]
fn cii_is_written_in_the_order_of_the_schema() {
    insta::assert_snapshot!("cii", written(&sample::invoice(), Format::Cii));
}

#[test]
fn json_is_flat_and_keeps_numbers_exact() {
    insta::assert_snapshot!("json", written(&sample::invoice(), Format::Json));
}

#[test]
fn provenance_is_keyed_by_field_and_by_path_of_the_cell() {
    let mut record = sample::invoice();
    record.fields.retain(|name, _| name == "invoice_number");
    record.tables.retain(|name, _| name == "allowances");
    insta::assert_snapshot!("provenance", text(provenance(&record)));
}

#[test]
fn what_was_worked_out_is_told() {
    let findings = write(&sample::invoice(), Format::Ubl, Provenance::Left).findings;
    let told: Vec<&str> = findings.iter().map(|finding| finding.message.as_str()).collect();
    insta::assert_snapshot!("derived", told.join("\n"));
}

#[test]
fn a_credit_note_becomes_a_ubl_credit_note() {
    let mut record = sample::invoice();
    record.fields.insert("type_code".to_owned(), plain("381"));
    let document = written(&record, Format::Ubl);
    assert!(
        document.contains("<CreditNote xmlns=\"urn:oasis:names:specification:ubl:schema:xsd:CreditNote-2\"")
    );
    assert!(document.contains("<cbc:PaymentDueDate>2026-04-04</cbc:PaymentDueDate>"), "{document}");
    assert!(
        document.contains("<cbc:CreditedQuantity unitCode=\"HUR\">2</cbc:CreditedQuantity>"),
        "{document}"
    );
}

#[test]
fn an_empty_record_still_makes_documents_with_all_that_the_schemas_demand() {
    let record = Record { kind: "invoice".to_owned(), ..Record::default() };
    insta::assert_snapshot!("empty_ubl", written(&record, Format::Ubl));
    insta::assert_snapshot!("empty_cii", written(&record, Format::Cii));
}

#[test]
fn nasty_text_stays_text_in_every_format() {
    let long = "x".repeat(200_000);
    for nasty in [
        "]]>",
        "<a>&amp;",
        "\u{0}\u{8}\u{b}\u{ffff}",
        "\u{202e}\u{5e9}\u{5dc}",
        "\"'\t\r\n",
        "&#0;",
        long.as_str(),
        "💶",
    ] {
        let mut record = sample::invoice();
        record.source = nasty.to_owned();
        record.findings[0].message = nasty.to_owned();
        for name in ["seller_name", "invoice_number", "currency", "iban", "payment_terms", "note"] {
            record.fields.insert(name.to_owned(), plain(nasty));
        }
        for row in record.tables.values_mut().flat_map(|table| &mut table.rows) {
            row.insert("name".to_owned(), plain(nasty));
            row.insert("unit".to_owned(), plain(nasty));
        }
        for format in [Format::Own, Format::Ubl, Format::Cii] {
            expect_xml(&written(&record, format));
        }
        serde_json::from_str::<serde_json::Value>(&written(&record, Format::Json)).unwrap();
    }
}

#[test]
fn a_document_of_another_kind_is_written_in_our_own_xml() {
    let mut record = Record { kind: "delivery note".to_owned(), ..Record::default() };
    record.fields.insert("Truck 7".to_owned(), plain("B-XY 1"));
    record.tables.insert(
        "pallets".to_owned(),
        Table { term: None, rows: vec![[("no".to_owned(), plain("1"))].into()] },
    );
    let expected = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<delivery_note xmlns=\"{NAMESPACE}\">\n  \
         <Truck_7>B-XY 1</Truck_7>\n  <pallets>\n    <row>\n      <no>1</no>\n    </row>\n  </pallets>\n\
         </delivery_note>\n"
    );
    assert_eq!(written(&record, Format::Own), expected);
}

#[test]
fn the_example_in_the_documentation_is_what_is_written() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../docs/output.md");
    let page = std::fs::read_to_string(path).expect("docs/output.md describes the output");
    let example = page.split("```xml\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap_or_default();
    let mut record = sample::invoice();
    let kept = ["invoice_number", "issue_date", "currency", "seller_name", "gross_total"];
    record.fields.retain(|name, _| kept.contains(&name.as_str()));
    record.tables.retain(|name, _| name == "lines");
    let cells = ["id", "name", "quantity", "total"];
    for row in record.tables.values_mut().flat_map(|table| &mut table.rows) {
        row.retain(|name, _| cells.contains(&name.as_str()));
    }
    assert_eq!(example, written(&record, Format::Own));
}
