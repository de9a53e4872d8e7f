//! What the writers work out for the standards, read back from the UBL that they write.

use crate::truth;
use ode_invoice::write::{Format, Provenance, write};
use ode_invoice::{Record, Row, Typed, embedded};
use serde_json::{Value as Json, json};

/// The UBL of a record, read back. Values are given as in a truth file, without the `value` around them.
fn written(fields: Json, lines: Json, vat: Json) -> Record {
    let wrap = |row: &Json| -> Json {
        let cells = row.as_object().into_iter().flatten();
        cells
            .map(|(name, text)| (name.clone(), json!({ "value": text })))
            .collect::<serde_json::Map<_, _>>()
            .into()
    };
    let rows = |rows: &Json| -> Json { rows.as_array().into_iter().flatten().map(wrap).collect() };
    let record =
        truth::from_truth(&json!({ "fields": wrap(&fields), "lines": rows(&lines), "vat": rows(&vat) }));
    let bytes = write(&record, Format::Ubl, Provenance::Left).bytes;
    embedded::read("x.xml", &bytes).expect("we read what we write").record
}

fn of(row: &Row, name: &str) -> Option<String> {
    row.get(name).map(|field| match &field.value.typed {
        Typed::Number(number) => number.normalize().to_string(),
        Typed::Date(date) => date.to_string(),
        Typed::Text(text) | Typed::Code(text) => text.clone(),
    })
}

/// Asserts some cells of each row of a table.
#[track_caller]
fn expect(record: &Record, table: &str, names: &[&str], expected: &[&[&str]]) {
    let rows = record.tables.get(table).map_or(&[][..], |table| &table.rows);
    let found: Vec<Vec<String>> =
        rows.iter().map(|row| names.iter().map(|name| of(row, name).unwrap_or_default()).collect()).collect();
    assert_eq!(found, expected, "{table}");
}

#[track_caller]
fn expect_header(record: &Record, expected: &[(&str, &str)]) {
    for (name, text) in expected {
        assert_eq!(of(&record.fields, name).as_deref(), Some(*text), "{name}");
    }
}

#[test]
fn totals_follow_from_lines_and_rates() {
    let lines = json!([
        { "quantity": "2", "unit_price": "50", "tax_rate": "19" },
        { "quantity": "1", "total": "20", "tax_rate": "7" },
        { "total": "10", "unit_price": "2.5", "tax_rate": "7" },
    ]);
    let record = written(json!({ "currency": "EUR" }), lines, json!([]));
    expect(
        &record,
        "lines",
        &["id", "quantity", "unit_price", "total"],
        &[&["1", "2", "50", "100"], &["2", "1", "20", "20"], &["3", "4", "2.5", "10"]],
    );
    expect(
        &record,
        "vat",
        &["rate", "basis", "amount", "category"],
        &[&["19", "100", "19", "S"], &["7", "30", "2.1", "S"]],
    );
    expect_header(&record, &[("line_total", "130"), ("net_total", "130"), ("tax_total", "21.1")]);
    expect_header(&record, &[("gross_total", "151.1"), ("payable", "151.1"), ("type_code", "380")]);
}

#[test]
fn totals_alone_make_a_line_a_tax_row_and_a_rate() {
    let fields =
        json!({ "currency": "IDR", "net_total": "1000000", "tax_total": "110000", "gross_total": "1110000" });
    let record = written(fields, json!([]), json!([]));
    expect(&record, "vat", &["rate", "basis", "amount", "category"], &[&["11", "1000000", "110000", "S"]]);
    expect(&record, "lines", &["quantity", "unit", "total", "tax_rate"], &[&["1", "C62", "1000000", "11"]]);
    expect_header(&record, &[("payable", "1110000"), ("seller_country", "ID"), ("buyer_country", "ID")]);
}

#[test]
fn an_amount_to_pay_does_for_a_gross_total() {
    let fields = json!({ "currency": "EUR", "net_total": "100", "payable": "69", "prepaid": "50" });
    let record = written(fields, json!([]), json!([]));
    expect_header(&record, &[("gross_total", "119"), ("tax_total", "19"), ("payable", "69")]);
    expect(&record, "vat", &["rate", "basis", "amount"], &[&["19", "100", "19"]]);
}

#[test]
fn without_any_tax_the_category_says_so() {
    let fields = json!({ "currency": "USD", "gross_total": "4.11" });
    let record = written(fields, json!([]), json!([]));
    expect(
        &record,
        "vat",
        &["rate", "basis", "category", "exemption_reason"],
        &[&["", "4.11", "O", "No tax stated."]],
    );
    let fields = json!({ "currency": "EUR", "gross_total": "4.11", "seller_vat_id": "DE136695976" });
    let record = written(fields, json!([]), json!([]));
    expect(&record, "vat", &["rate", "category"], &[&["0", "E"]]);
}

#[test]
fn allowances_known_only_by_their_totals_are_spread_over_the_rates() {
    let fields = json!({
        "currency": "EUR", "line_total": "200", "allowance_total": "-30", "charge_total": "5", "net_total": "175",
        "tax_total": "27.25", "gross_total": "202.25",
    });
    let lines = json!([{ "total": "100", "tax_rate": "19" }, { "total": "100", "tax_rate": "10" }]);
    let vat = json!([
        { "rate": "19", "basis": "105", "amount": "19.95" },
        { "rate": "10", "basis": "70", "amount": "7" },
    ]);
    let record = written(fields, lines, vat);
    expect(&record, "allowances", &["amount", "tax_rate"], &[&["30", "10"]]);
    expect(&record, "charges", &["amount", "tax_rate"], &[&["5", "19"]]);
    expect_header(&record, &[("allowance_total", "30"), ("charge_total", "5")]);
}

#[test]
fn a_stated_difference_between_lines_and_net_is_an_allowance() {
    let fields = json!({ "currency": "EUR", "line_total": "110", "net_total": "100", "tax_total": "19", "gross_total": "119" });
    let vat = json!([{ "rate": "19", "basis": "100", "amount": "19" }]);
    let record = written(fields, json!([{ "total": "110" }]), vat.clone());
    expect(&record, "allowances", &["amount", "tax_rate", "tax_category"], &[&["10", "19", "S"]]);
    // Lines that merely do not add up to the net total are not explained away.
    let fields = json!({ "currency": "EUR", "net_total": "100", "tax_total": "19", "gross_total": "119" });
    let record = written(fields, json!([{ "total": "110" }]), vat);
    expect(&record, "allowances", &["amount"], &[]);
}

#[test]
fn what_was_paid_and_what_was_rounded_follow_from_the_amount_to_pay() {
    let total = |payable: &str, more: Json| {
        let mut fields = json!({ "currency": "EUR", "net_total": "100", "tax_total": "19.02", "gross_total": "119.02", "payable": payable });
        fields.as_object_mut().expect("an object").extend(more.as_object().cloned().unwrap_or_default());
        written(fields, json!([]), json!([]))
    };
    expect_header(&total("19.02", json!({})), &[("prepaid", "100")]);
    expect_header(&total("119", json!({})), &[("rounding", "-0.02")]);
    expect_header(&total("19.02", json!({ "prepaid": "-100" })), &[("prepaid", "100"), ("payable", "19.02")]);
}

#[test]
fn lines_without_rates_get_those_with_which_they_add_up() {
    let vat = json!([
        { "rate": "19", "basis": "60", "amount": "11.4" },
        { "rate": "7", "basis": "45", "amount": "3.15" },
    ]);
    let lines = json!([{ "total": "20" }, { "total": "45" }, { "total": "40" }]);
    let record = written(json!({ "currency": "EUR", "net_total": "105" }), lines, vat);
    expect(&record, "lines", &["total", "tax_rate"], &[&["20", "19"], &["45", "7"], &["40", "19"]]);
}

#[test]
fn a_negative_price_hands_its_sign_to_the_quantity() {
    let lines = json!([{ "quantity": "3", "unit_price": "-10", "total": "-30" }]);
    let record = written(json!({ "currency": "EUR" }), lines, json!([]));
    expect(&record, "lines", &["quantity", "unit_price", "total"], &[&["-3", "10", "-30"]]);
}

#[test]
fn subtotals_among_the_lines_are_dropped_only_where_the_rest_adds_up() {
    let lines = json!([{ "total": "10" }, { "total": "20" }, { "total": "30" }, { "total": "5" }]);
    let record = written(json!({ "currency": "EUR", "net_total": "35" }), lines.clone(), json!([]));
    expect(&record, "lines", &["total"], &[&["10"], &["20"], &["5"]]);
    let record = written(json!({ "currency": "EUR", "net_total": "64" }), lines, json!([]));
    expect(&record, "lines", &["total"], &[&["10"], &["20"], &["30"], &["5"]]);
}

#[test]
fn totals_that_do_not_add_up_are_written_as_they_stand() {
    let fields = json!({ "currency": "IDR", "net_total": "630527000", "tax_total": "69357970", "gross_total": "699928970" });
    let record = written(fields, json!([]), json!([]));
    expect_header(
        &record,
        &[("net_total", "630527000"), ("tax_total", "69357970"), ("gross_total", "699928970")],
    );
}

#[test]
fn a_subtotal_before_a_discount_is_the_sum_of_the_lines() {
    let lines = json!([{ "name": "Leaflets", "quantity": "1000", "unit_price": "1", "total": "1000" }]);
    let fields = json!({ "currency": "USD", "net_total": "1000", "allowance_total": "-100", "tax_total": "72",
                         "gross_total": "972" });
    let record = written(fields, lines.clone(), json!([]));
    expect_header(&record, &[("line_total", "1000"), ("allowance_total", "100"), ("net_total", "900")]);
    expect_header(&record, &[("tax_total", "72"), ("gross_total", "972"), ("payable", "972")]);

    let fields = json!({ "currency": "USD", "net_total": "1000", "allowance_total": "100", "tax_total": "72",
                         "gross_total": "1072" });
    let record = written(fields, lines, json!([]));
    assert_eq!(of(&record.fields, "allowance_total"), None, "it is part of the price already");
}

#[test]
fn taxes_that_two_authorities_take_of_the_same_are_one() {
    let fields = json!({ "currency": "INR", "net_total": "1000", "tax_total": "50", "gross_total": "1050" });
    let vat = json!([{ "rate": "2.5", "amount": "25" }, { "rate": "2.5", "amount": "25" }]);
    let record = written(fields, json!([]), vat);
    expect(&record, "vat", &["rate", "basis", "amount"], &[&["5", "1000", "50"]]);
}
