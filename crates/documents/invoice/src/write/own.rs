//! Our own XML: the record as it is, for any kind of document. `docs/output.md` describes it.
//!
//! The root is named for the kind of document, each value for its field, each table holds rows. Nothing is worked
//! out here: what is not in the record is not in the file.

use std::borrow::Cow;

use super::Provenance;
use super::element::{Attributed, Element, demanded, demanded_group};
use crate::facts::{Facts, plain};
use crate::record::{Field, Finding, Record, Severity, Table};
use crate::terms;

/// Namespace of our own XML. A change that a reader could notice gets a new number.
pub const NAMESPACE: &str = "urn:ode:document:1";

/// The document in our own XML.
pub(super) fn document(record: &Record, provenance: Provenance) -> Vec<u8> {
    let kind = if record.kind.is_empty() { "document" } else { &record.kind };
    let mut children: Vec<Element> =
        in_order(&record.fields, terms::HEADER).map(|(name, field)| value(name, field, provenance)).collect();
    children.extend(tables_in_order(record).map(|(name, table)| table_element(name, table, provenance)));
    if !record.findings.is_empty() {
        let findings = record.findings.iter().map(|finding| Some(finding_element(finding)));
        children.push(demanded_group("findings", findings));
    }
    demanded_group(element_name(kind), children.into_iter().map(Some))
        .with("xmlns", Some(NAMESPACE))
        .with("source", Some(&record.source).filter(|source| !source.is_empty()).cloned())
        .document()
}

/// Known names first, in the order of the terms, then the others by name.
fn in_order<'a>(
    facts: &'a Facts,
    known: &'static [terms::Term],
) -> impl Iterator<Item = (&'a str, &'a Field)> {
    let first = known.iter().filter_map(|term| Some((term.name, facts.get(term.name)?)));
    let others = facts.iter().filter(|(name, _)| known.iter().all(|term| term.name != name.as_str()));
    first.chain(others.map(|(name, field)| (name.as_str(), field)))
}

fn tables_in_order(record: &Record) -> impl Iterator<Item = (&str, &Table)> {
    let first = terms::TABLES.iter().filter_map(|table| Some((table.name, record.tables.get(table.name)?)));
    let others = record.tables.iter().filter(|(name, _)| terms::table(name).is_none());
    first.chain(others.map(|(name, table)| (name.as_str(), table)))
}

fn table_element(name: &str, table: &Table, provenance: Provenance) -> Element {
    let known = terms::table(name).map_or(&[][..], |table| table.columns);
    let rows = table.rows.iter().map(|row| {
        Some(demanded_group(
            "row",
            in_order(row, known).map(|(name, cell)| Some(value(name, cell, provenance))),
        ))
    });
    demanded_group(element_name(name), rows).with("term", table.term.clone())
}

fn value(name: &str, field: &Field, provenance: Provenance) -> Element {
    let element = demanded(element_name(name), Some(plain(&field.value.typed)));
    let element = element.unwrap_or_else(|| demanded_group(element_name(name), []));
    let element = element.with("term", field.term.clone());
    if provenance == Provenance::Left {
        return element;
    }
    let at = field.value.place.map(|place| {
        let rect = place.bbox;
        (place.page.to_string(), format!("{:.1} {:.1} {:.1} {:.1}", rect.x0, rect.y0, rect.x1, rect.y1))
    });
    let (page, bbox) = at.unzip();
    element
        .with("page", page)
        .with("box", bbox)
        .with("printed", Some(&field.value.printed).filter(|printed| !printed.is_empty()).cloned())
        .with("rule", Some(&field.value.rule).filter(|rule| !rule.is_empty()).cloned())
        .with("confidence", Some(format!("{:.2}", field.value.confidence)))
}

fn finding_element(finding: &Finding) -> Element {
    let element =
        demanded("finding", Some(&finding.message)).unwrap_or_else(|| demanded_group("finding", []));
    element
        .with("severity", Some(severity_name(finding.severity)))
        .with("code", Some(finding.code.as_str()))
        .with("field", finding.field.clone())
}

/// The word for a severity, in XML and JSON.
pub(super) fn severity_name(severity: Severity) -> &'static str {
    match severity {
        Severity::Info => "info",
        Severity::Review => "review",
        Severity::Error => "error",
    }
}

/// A name that XML allows: other characters become `_`, and so does a start that XML keeps for itself.
fn element_name(name: &str) -> Cow<'static, str> {
    let mut safe: String = name
        .chars()
        .map(|letter| {
            if letter.is_alphanumeric() && letter.is_ascii() || matches!(letter, '_' | '-' | '.') {
                letter
            } else {
                '_'
            }
        })
        .collect();
    let starts_well = safe.starts_with(|letter: char| letter.is_ascii_alphabetic() || letter == '_');
    if !starts_well || safe.to_ascii_lowercase().starts_with("xml") {
        safe.insert(0, '_');
    }
    Cow::Owned(safe)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_name_becomes_one_that_xml_allows() {
        for (name, expected) in [
            ("net_total", "net_total"),
            ("Nr. 1", "Nr._1"),
            ("1st", "_1st"),
            ("xmlfoo", "_xmlfoo"),
            ("", "_"),
            ("ü<", "__"),
        ] {
            assert_eq!(element_name(name), expected, "{name}");
        }
    }
}
