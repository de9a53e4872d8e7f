//! What the page says against what the embedded XML says. A person reads the page and a machine books the XML: where
//! the two differ, one of them is wrong, and somebody may have meant it so.
//!
//! Only what is written differently is forgiven: case, spaces, punctuation, the sign of a credit. A value that only
//! one of the two has is no difference.

use rust_decimal::Decimal;
use unicode_normalization::UnicodeNormalization;

use crate::facts::{Ask, plain};
use crate::finding::FindingCode;
use crate::record::{Field, Finding, Record, Row, Severity, Typed};
use crate::terms::{self, Term, TermType};
use crate::write::codes;

/// Tables that are compared row by row; the others are rarely printed as the XML has them.
const TABLES: &[&str] = &["lines", "vat"];

/// Differences between a page and the XML it carries.
#[must_use]
pub fn compare(page: &Record, embedded: &Record) -> Vec<Finding> {
    let source = embedded.source.strip_prefix("embedded:").unwrap_or(&embedded.source);
    if page.findings.iter().any(|finding| finding.code == FindingCode::MappingDoubtful) {
        let message = format!(
            "The page was not compared with {source}: the mapping that was asked for does not fit it. Use auto instead."
        );
        let code = FindingCode::PageNotCompared;
        return vec![Finding { severity: Severity::Info, code, field: None, message }];
    }
    let mut findings = Vec::new();
    for term in terms::HEADER {
        if let (Some(one), Some(other)) = (page.fields.get(term.name), embedded.fields.get(term.name))
            && !is_same(term, one, other)
        {
            let message = sentence(term.label, one, other, source);
            findings.push(finding(FindingCode::PageXmlDiffer, term.name, message));
        }
    }
    for table in TABLES {
        findings.extend(compare_table(table, page, embedded, source));
    }
    findings
}

/// Gives values of embedded XML the place where the page prints the same.
pub fn locate(page: &Record, embedded: &mut Record) {
    for term in terms::HEADER {
        if let (Some(one), Some(other)) = (page.fields.get(term.name), embedded.fields.get_mut(term.name)) {
            borrow_place(term, one, other);
        }
    }
    for table in TABLES {
        let columns = terms::table(table).map_or(&[][..], |table| table.columns);
        let (Some(one), Some(other)) = (page.tables.get(*table), embedded.tables.get_mut(*table)) else {
            continue;
        };
        // Rows that do not pair up stand for something else.
        if one.rows.len() != other.rows.len() {
            continue;
        }
        for (shown, row) in one.rows.iter().zip(&mut other.rows) {
            for term in columns {
                if let (Some(shown), Some(cell)) = (shown.get(term.name), row.get_mut(term.name)) {
                    borrow_place(term, shown, cell);
                }
            }
        }
    }
}

fn borrow_place(term: &Term, page: &Field, embedded: &mut Field) {
    if embedded.value.place.is_none() && is_same(term, page, embedded) {
        embedded.value.place = page.value.place;
        embedded.value.printed.clone_from(&page.value.printed);
    }
}

fn finding(code: FindingCode, field: &str, message: String) -> Finding {
    Finding { severity: Severity::Review, code, field: Some(field.to_owned()), message }
}

fn sentence(what: &str, page: &Field, embedded: &Field, source: &str) -> String {
    let shown = |field: &Field| match field.value.printed.trim() {
        "" => plain(&field.value.typed),
        printed => printed.to_owned(),
    };
    format!("The page says {} for the {what}, and {source} says {}.", shown(page), shown(embedded))
}

fn compare_table(name: &str, page: &Record, embedded: &Record, source: &str) -> Vec<Finding> {
    let rows = |record: &Record| record.tables.get(name).map_or(&[][..], |table| &table.rows).to_vec();
    let (mut on_page, mut in_xml) = (rows(page), rows(embedded));
    if on_page.is_empty() || in_xml.is_empty() {
        return Vec::new();
    }
    // A page that prints taxes without what is taxed leaves out those of nothing.
    if name == "vat" && on_page.iter().any(|row| row.number("basis").is_none()) {
        return Vec::new();
    }
    if on_page.len() != in_xml.len() {
        let what = if name == "lines" { "lines" } else { "tax rates" };
        let (one, other) = (on_page.len(), in_xml.len());
        let message = format!("The page lists {one} {what}, and {source} lists {other}.");
        return vec![finding(FindingCode::PageXmlRowsDiffer, name, message)];
    }
    if name == "vat" {
        // The order of tax rates means nothing. A page that names none still has their amounts.
        let have_rates = on_page.iter().chain(&in_xml).all(|row| row.number("rate").is_some());
        let key = if have_rates { "rate" } else { "basis" };
        on_page.sort_by_key(|row| row.number(key));
        in_xml.sort_by_key(|row| row.number(key));
    }
    on_page
        .iter()
        .zip(&in_xml)
        .enumerate()
        .flat_map(|(at, (one, other))| compare_row(name, at, [one, other], source))
        .collect()
}

fn compare_row(table: &str, at: usize, [page, embedded]: [&Row; 2], source: &str) -> Vec<Finding> {
    let columns = terms::table(table).map_or(&[][..], |table| table.columns);
    let differing = columns.iter().filter_map(|term| {
        let (one, other) = (page.get(term.name)?, embedded.get(term.name)?);
        // Numbers of lines are often counted by whoever prints them, and a page may print the price before its
        // discount.
        let before_discount = embedded.get("gross_price").filter(|_| term.name == "unit_price");
        let is_same_before = before_discount.is_some_and(|gross| is_same(term, one, gross));
        if term.name == "id" || is_same(term, one, other) || is_same_before {
            return None;
        }
        let place = if table == "lines" { "line" } else { "tax rate" };
        let message = sentence(&format!("{} of {place} {}", term.label, at + 1), one, other, source);
        Some(finding(FindingCode::PageXmlDiffer, &format!("{table}.{at}.{}", term.name), message))
    });
    differing.collect()
}

fn is_same(term: &Term, page: &Field, embedded: &Field) -> bool {
    let (one, other) = (&page.value.typed, &embedded.value.typed);
    if let (Typed::Number(one), Typed::Number(other)) = (one, other) {
        return is_same_number(term, *one, *other);
    }
    let (one, other) = (plain(one), plain(other));
    match term.value {
        TermType::Identifier => compact(&one) == compact(&other),
        TermType::Code => compact(&one) == compact(&other) || is_same_code(term.name, &one, &other),
        TermType::Text => is_same_text(&one, &other),
        TermType::Amount | TermType::Number | TermType::Date => one == other,
    }
}

/// Credit notes print what they give back without a minus as often as with one. Prices and quantities are rounded
/// for the page.
fn is_same_number(term: &Term, page: Decimal, embedded: Decimal) -> bool {
    let (page, embedded) = (page.abs(), embedded.abs());
    let is_rounded = term.value == TermType::Number && page.scale() < embedded.scale();
    page == embedded || (is_rounded && crate::write::amount::round(embedded, page.scale()) == page)
}

fn is_same_code(name: &str, one: &str, other: &str) -> bool {
    match name {
        "unit" | "base_unit" => {
            // A page that says "piece" means either of the two codes for it.
            let code = |text: &str| match codes::unit_code(text) {
                Some("H87") => Some("C62".to_owned()),
                Some(code) => Some(code.to_owned()),
                None => None,
            };
            // A word that stands for no code we know contradicts nothing.
            match (code(one), code(other)) {
                (Some(one), Some(other)) => one == other,
                _ => true,
            }
        }
        name if name.ends_with("country") => codes::country_code(one) == codes::country_code(other),
        _ => false,
    }
}

/// Names and texts are the same when one holds the other: a page has room for less, or puts more on the line.
fn is_same_text(one: &str, other: &str) -> bool {
    let (one, other) = (compact(one), compact(other));
    one.contains(&other) || other.contains(&one)
}

/// Letters and digits only, in lower case, each letter in one form: a page may have drawn an accent by itself.
fn compact(text: &str) -> String {
    text.nfkc().filter(|letter| letter.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use std::str::FromStr;

    use super::*;
    use crate::facts::unprinted;
    use crate::record::Table;

    fn record(source: &str, fields: &[(&str, Typed)], lines: &[&[(&str, Typed)]]) -> Record {
        let row = |cells: &[(&str, Typed)]| {
            cells
                .iter()
                .map(|(name, typed)| ((*name).to_owned(), unprinted(None, typed.clone(), "")))
                .collect::<Row>()
        };
        let table = Table { term: None, rows: lines.iter().map(|cells| row(cells)).collect() };
        Record {
            kind: "invoice".to_owned(),
            source: source.to_owned(),
            fields: row(fields),
            tables: [("lines".to_owned(), table)].into(),
            findings: Vec::new(),
        }
    }

    fn text(text: &str) -> Typed {
        Typed::Text(text.to_owned())
    }

    fn number(text: &str) -> Typed {
        Typed::Number(Decimal::from_str(text).unwrap())
    }

    #[track_caller]
    fn check(name: &str, page: Typed, embedded: Typed, expected: &[&str]) {
        let page = record("m_v1", &[(name, page)], &[]);
        let embedded = record("embedded:factur-x.xml", &[(name, embedded)], &[]);
        let messages: Vec<String> =
            compare(&page, &embedded).into_iter().map(|finding| finding.message).collect();
        assert_eq!(messages, expected);
    }

    #[test]
    fn what_is_only_written_differently_is_no_difference() {
        check("iban", text("DE89 3704 0044 0532 0130 00"), text("DE89370400440532013000"), &[]);
        check("seller_name", text("LIEFERANT  GMBH"), text("Lieferant GmbH"), &[]);
        check("seller_name", text("Lieferant GmbH"), text("Lieferant GmbH, Abteilung 3"), &[]);
        check("seller_name", text("Ku\u{308}nstler"), text("K\u{fc}nstler"), &[]);
        check("gross_total", number("119.0"), number("119.00"), &[]);
        check("gross_total", number("119.00"), number("-119.00"), &[]);
        check("seller_country", Typed::Code("Deutschland".to_owned()), Typed::Code("DE".to_owned()), &[]);
    }

    #[test]
    fn a_difference_names_both_values() {
        check(
            "gross_total",
            number("119.00"),
            number("191.00"),
            &["The page says 119.00 for the gross total, and factur-x.xml says 191.00."],
        );
        check(
            "iban",
            text("DE89370400440532013000"),
            text("GB29NWBK60161331926819"),
            &[
                "The page says DE89370400440532013000 for the account number, and factur-x.xml says GB29NWBK60161331926819.",
            ],
        );
        check(
            "seller_name",
            text("A GmbH"),
            text("B GmbH"),
            &["The page says A GmbH for the seller, and factur-x.xml says B GmbH."],
        );
    }

    #[test]
    fn lines_are_compared_cell_by_cell_or_counted() {
        let one: &[(&str, Typed)] = &[("total", number("10.00")), ("unit_price", number("3.33"))];
        let same: &[(&str, Typed)] = &[("total", number("10.00")), ("unit_price", number("3.3333"))];
        let other: &[(&str, Typed)] = &[("total", number("12.00")), ("name", text("x"))];
        let discounted: &[(&str, Typed)] = &[("unit_price", number("3")), ("gross_price", number("3.33"))];
        let page = record("m_v1", &[], &[one]);
        let messages = |lines: &[&[(&str, Typed)]]| -> Vec<String> {
            let embedded = record("embedded:a.xml", &[], lines);
            compare(&page, &embedded).into_iter().map(|finding| finding.message).collect()
        };
        assert!(messages(&[same]).is_empty());
        assert!(messages(&[discounted]).is_empty());
        assert_eq!(
            messages(&[other]),
            ["The page says 10.00 for the line total of line 1, and a.xml says 12.00."]
        );
        assert_eq!(messages(&[one, other]), ["The page lists 1 lines, and a.xml lists 2."]);
    }
}
