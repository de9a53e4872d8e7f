//! JSON: the record flat, by field name, and its provenance. Numbers are text, as in the XML: no reader can round
//! them by mistake.

use serde_json::{Map, Value as Json, json};

use super::own::severity_name;
use crate::facts::plain;
use crate::record::{Field, Record, Row};

/// `{"invoice_number": "…", …, "lines": [{…}], "vat": [{…}]}`, and `kind`, `source` and `findings` unless a field
/// has that name.
pub(super) fn document(record: &Record) -> Vec<u8> {
    let findings = record.findings.iter().map(|finding| {
        json!({
            "severity": severity_name(finding.severity),
            "code": finding.code.as_str(),
            "field": finding.field,
            "message": finding.message,
        })
    });
    let mut root = Map::new();
    root.insert("kind".to_owned(), json!(record.kind));
    root.insert("source".to_owned(), json!(record.source));
    root.insert("findings".to_owned(), findings.collect());
    for (name, table) in &record.tables {
        root.insert(name.clone(), table.rows.iter().map(values).collect());
    }
    if let Json::Object(fields) = values(&record.fields) {
        root.extend(fields);
    }
    printed(&Json::Object(root))
}

fn values(facts: &Row) -> Json {
    facts
        .iter()
        .map(|(name, field)| (name.clone(), json!(plain(&field.value.typed))))
        .collect::<Map<_, _>>()
        .into()
}

/// Field → page and box, with what was printed there and why it was believed. A cell is keyed by its path in the
/// JSON above: `lines.0.total`. Values that stand on no page are not listed.
pub(super) fn provenance(record: &Record) -> Vec<u8> {
    let mut root = Map::new();
    for (name, field) in &record.fields {
        root.extend(place(field).map(|place| (name.clone(), place)));
    }
    for (name, table) in &record.tables {
        for (index, row) in table.rows.iter().enumerate() {
            let cells = row
                .iter()
                .filter_map(|(column, cell)| Some((format!("{name}.{index}.{column}"), place(cell)?)));
            root.extend(cells);
        }
    }
    printed(&Json::Object(root))
}

fn place(field: &Field) -> Option<Json> {
    let place = field.value.place?;
    let rect = place.bbox;
    let rounded = |number: f32| (f64::from(number) * 100.0).round() / 100.0;
    Some(json!({
        "page": place.page,
        "bbox": [rounded(rect.x0), rounded(rect.y0), rounded(rect.x1), rounded(rect.y1)],
        "printed": field.value.printed,
        "rule": field.value.rule,
        "confidence": rounded(field.value.confidence),
    }))
}

fn printed(root: &Json) -> Vec<u8> {
    let mut bytes =
        serde_json::to_vec_pretty(root).expect("a map with text keys and plain values is valid JSON");
    bytes.push(b'\n');
    bytes
}
