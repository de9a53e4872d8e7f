//! Truth files of a corpus as records: `{"fields": {name: {"value": …}}, "lines": [{…}], "vat": [{…}]}`.

use std::collections::BTreeMap;
use std::str::FromStr;

use ode_invoice::terms::{self, Term, TermType};
use ode_invoice::{Field, Record, Row, Table, Typed, Value};
use rust_decimal::Decimal;
use serde_json::Value as Json;

/// The record that a truth file describes.
pub(crate) fn from_truth(truth: &Json) -> Record {
    let mut record = Record { kind: "invoice".to_owned(), source: "truth".to_owned(), ..Record::default() };
    record.fields = facts(&truth["fields"], terms::header);
    for name in ["lines", "vat"] {
        let rows = truth[name].as_array().into_iter().flatten();
        let rows: Vec<Row> = rows.map(|row| facts(row, |column| terms::column(name, column))).collect();
        if !rows.is_empty() {
            record.tables.insert(name.to_owned(), Table { term: None, rows });
        }
    }
    record
}

fn facts(values: &Json, term: impl Fn(&str) -> Option<&'static Term>) -> BTreeMap<String, Field> {
    let values = values.as_object().into_iter().flatten();
    values
        .filter_map(|(name, entry)| Some((name.clone(), field(entry["value"].as_str()?, term(name)))))
        .collect()
}

fn field(text: &str, term: Option<&Term>) -> Field {
    let typed = match term.map(|term| term.value) {
        Some(TermType::Amount | TermType::Number) => Decimal::from_str(text).ok().map(Typed::Number),
        Some(TermType::Date) => text.parse().ok().map(Typed::Date),
        Some(TermType::Code) => Some(Typed::Code(text.to_owned())),
        Some(TermType::Text | TermType::Identifier) | None => None,
    };
    let typed = typed.unwrap_or_else(|| Typed::Text(text.to_owned()));
    let value =
        Value { typed, printed: text.to_owned(), place: None, rule: "truth".to_owned(), confidence: 1.0 };
    Field { term: term.map(|term| term.number.to_owned()), value }
}
