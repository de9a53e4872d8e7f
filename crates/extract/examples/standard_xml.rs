//! Writes records as UBL and CII, for checks by tools that are not ours.
//!
//! `standard_xml OUT FILE…`: each FILE is a truth file (`NAME.truth.json`: fields, lines and vat with a `value`
//! each) or an embedded invoice (`NAME.xml`); `OUT/NAME.ubl.xml` and `OUT/NAME.cii.xml` are written from its record,
//! and what the rules found is printed.

use std::collections::BTreeMap;
use std::error::Error;
use std::path::Path;
use std::str::FromStr;
use std::{env, fs};

use ode_extract::terms::{self, Term, TermType};
use ode_extract::write::{Format, Provenance, write};
use ode_extract::{Field, Record, Row, Table, Typed, Value};
use rust_decimal::Decimal;
use serde_json::Value as Json;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = env::args().skip(1);
    let out = arguments.next().ok_or("usage: standard_xml OUT FILE…")?;
    for path in arguments {
        let name = Path::new(&path).file_name().and_then(|name| name.to_str()).ok_or("a file has a name")?;
        let bytes = fs::read(&path)?;
        let (name, record) = match name.strip_suffix(".truth.json") {
            Some(name) => (name, from_truth(&serde_json::from_slice(&bytes)?)),
            None => match ode_extract::embedded::read(name, &bytes) {
                Ok(embedded) => (name.trim_end_matches(".xml"), embedded.record),
                Err(unreadable) => {
                    println!("{name}: {}", unreadable.finding(name).message);
                    continue;
                }
            },
        };
        for finding in ode_extract::rules::check(&record) {
            println!("{name}: {:?} {}: {}", finding.severity, finding.code, finding.message);
        }
        for (format, suffix) in [(Format::Ubl, "ubl"), (Format::Cii, "cii")] {
            let written = write(&record, format, Provenance::Left);
            fs::write(Path::new(&out).join(format!("{name}.{suffix}.xml")), written.bytes)?;
        }
    }
    Ok(())
}

fn from_truth(truth: &Json) -> Record {
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
