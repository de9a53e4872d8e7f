//! A record as flat JSON: field names to values, tables to lists of rows; and where each value stood.

use std::collections::BTreeMap;

use serde_json::{Map, Value as Json, json};

use crate::record::{Record, Row, Typed, Value};

/// Field names to values, tables to rows. Numbers are texts, so that no digit is lost on the way.
pub fn to_json(record: &Record) -> Json {
    let mut map = Map::new();
    for (name, field) in &record.fields {
        map.insert(name.clone(), text_of(&field.value.typed).into());
    }
    for (name, table) in &record.tables {
        let rows: Vec<Json> = table.rows.iter().map(row_json).collect();
        map.insert(name.clone(), rows.into());
    }
    Json::Object(map)
}

fn row_json(row: &Row) -> Json {
    row.iter().map(|(name, cell)| (name.clone(), Json::from(text_of(&cell.value.typed)))).collect::<Map<_, _>>().into()
}

/// Field names to page and box (points from the top left); cells as `lines.0.total`.
pub fn provenance(record: &Record) -> Json {
    let mut map = Map::new();
    for (name, field) in &record.fields {
        insert_place(&mut map, name.clone(), &field.value);
    }
    for (table, rows) in record.tables.iter().map(|(name, t)| (name, &t.rows)) {
        for (at, row) in rows.iter().enumerate() {
            for (column, cell) in row {
                insert_place(&mut map, format!("{table}.{at}.{column}"), &cell.value);
            }
        }
    }
    Json::Object(map)
}

fn insert_place(map: &mut Map<String, Json>, name: String, value: &Value) {
    if let Some(place) = value.place {
        let b = place.bbox;
        let entry = json!({
            "page": place.page,
            "bbox": [b.x0, b.y0, b.x1, b.y1],
            "printed": value.printed,
            "rule": value.rule,
            "confidence": value.confidence,
        });
        map.insert(name, entry);
    }
}

/// A value as plain text: dates as ISO 8601, numbers with a point.
pub fn text_of(typed: &Typed) -> String {
    match typed {
        Typed::Text(text) | Typed::Code(text) => text.clone(),
        Typed::Number(number) => number.to_string(),
        Typed::Date(date) => date.to_string(),
    }
}

/// Every value of a record by its path, for comparing two of them.
pub(crate) fn texts(record: &Record) -> BTreeMap<String, String> {
    let mut all: BTreeMap<String, String> =
        record.fields.iter().map(|(name, f)| (name.clone(), text_of(&f.value.typed))).collect();
    for (table, rows) in record.tables.iter().map(|(name, t)| (name, &t.rows)) {
        for (at, row) in rows.iter().enumerate() {
            all.extend(row.iter().map(|(c, cell)| (format!("{table}.{at}.{c}"), text_of(&cell.value.typed))));
        }
    }
    all
}
