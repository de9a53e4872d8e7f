//! What people do with mappings besides using them: check a file, run its tests, compare two of them over documents.
//! Everything is returned as plain data; commands and pages show it.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use ode_pdf::{Document, Limits};

use crate::engine;
use crate::error::MappingError;
use crate::mapping::file::{FieldFile, MappingFile};
use crate::mapping::{self, Mapping};
use crate::record::Record;
use crate::registry::{Registry, compare, texts};
use crate::sheet::Sheet;
use crate::terms;

/// Something about a mapping file that works but is probably not meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remark {
    /// Field, table or column.
    pub about: String,
    pub message: String,
}

/// How one test of a mapping went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TestOutcome {
    pub file: String,
    /// Why it could not be read.
    pub refusal: Option<String>,
    /// Fields with another value: expected and found.
    pub differences: BTreeMap<String, (String, Option<String>)>,
}

impl TestOutcome {
    /// Whether everything was as expected.
    #[must_use]
    pub fn passed(&self) -> bool {
        self.refusal.is_none() && self.differences.is_empty()
    }
}

/// Where two mappings read a document differently: field to both values.
pub type Differences = BTreeMap<String, (Option<String>, Option<String>)>;

/// Checks a file: what is wrong is an error, what is odd a remark.
pub fn lint(source: &str, text: &str, registry: &Registry) -> Result<Vec<Remark>, MappingError> {
    let loaded = registry.current();
    let base = |id: &str| loaded.get(id).ok().cloned();
    let mapping = mapping::parse(source, text, &base)?;
    let own: MappingFile = toml::from_str(text).expect("it was parsed a moment ago");
    let mut remarks = Vec::new();
    let mut remark = |about: &str, message: String| {
        remarks.push(Remark { about: about.to_owned(), message });
    };
    if own.r#match.all.is_empty() && own.r#match.any.is_empty() {
        remark("match", "has no terms, so it is used only when asked for by name".into());
    }
    if own.tests.is_empty() {
        remark("tests", "there are none; `learn` writes one, and a change can then be checked".into());
    }
    for (name, field) in &own.fields {
        for message in field_remarks(name, field, &mapping.kind) {
            remark(name, message);
        }
    }
    for (label, names) in shared_anchors(&own) {
        remark(
            &names.join(", "),
            format!("share the label “{label}”; only arithmetic or `within` can tell them apart"),
        );
    }
    Ok(remarks)
}

fn field_remarks(name: &str, field: &FieldFile, kind: &str) -> Vec<String> {
    let mut messages = Vec::new();
    if let Some(term) = terms::header(name).filter(|_| kind == "invoice") {
        match &field.to {
            Some(to) if to != term.number => {
                messages.push(format!("says to = \"{to}\", but this name stands for {}", term.number));
            }
            Some(_) => {}
            None => messages.push(format!("has no `to`; this name stands for {}", term.number)),
        }
    }
    let unknown = |to: &&String| kind == "invoice" && !terms::is_known(to);
    for to in std::iter::once(field).chain(&field.or).filter_map(|way| way.to.as_ref()).filter(unknown) {
        messages.push(format!("says to = \"{to}\", which is no term of EN 16931 that we write"));
    }
    let ways = std::iter::once(field).chain(&field.or);
    for way in ways {
        if way.zone.is_some()
            && way.line.is_none()
            && way.take.is_none()
            && way.kind == crate::values::Kind::Text
        {
            messages.push("takes any text in its zone; `line` or `take` would say which".into());
        }
    }
    messages
}

/// Labels that lead to several fields.
fn shared_anchors(file: &MappingFile) -> BTreeMap<String, Vec<String>> {
    let mut by_label: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (name, field) in file.fields.iter().filter(|(_, f)| f.within.is_none()) {
        for label in &field.anchor.0 {
            by_label.entry(label.clone()).or_default().push(name.clone());
        }
    }
    by_label.retain(|_, names| names.len() > 1);
    by_label
}

/// Runs a mapping's own tests; paths are taken from `folder`.
#[must_use]
pub fn test(mapping: &Mapping, folder: &Path) -> Vec<TestOutcome> {
    mapping
        .tests()
        .iter()
        .map(|test| {
            let outcome =
                |refusal, differences| TestOutcome { file: test.file.clone(), refusal, differences };
            let document = match read(&folder.join(&test.file)) {
                Ok(document) => document,
                Err(refusal) => return outcome(Some(refusal), BTreeMap::new()),
            };
            let record = engine::run(mapping, &Sheet::new(&document)).record;
            let expected = test.expect.iter().map(|(name, expected)| (name.as_str(), expected.0.as_str()));
            let differences = misses(&record, expected);
            outcome(None, differences)
        })
        .collect()
}

/// What is expected of a record and is not there: by field, by path such as `lines.0.total`, or by a table's name the
/// count of its rows.
pub fn misses<'a>(
    record: &Record,
    expected: impl Iterator<Item = (&'a str, &'a str)>,
) -> BTreeMap<String, (String, Option<String>)> {
    let found = texts(record);
    let value = |name: &str| match record.tables.get(name) {
        Some(table) => Some(table.rows.len().to_string()),
        None => found.get(name).cloned(),
    };
    expected
        .map(|(name, expected)| (name.to_owned(), (expected.to_owned(), value(name))))
        .filter(|(_, (expected, found))| found.as_ref().is_none_or(|found| !is_same(expected, found)))
        .collect()
}

/// Numbers by value, everything else without case and space.
fn is_same(expected: &str, found: &str) -> bool {
    let number = |text: &str| text.trim().parse::<rust_decimal::Decimal>().ok();
    let squeeze = |text: &str| text.split_whitespace().collect::<String>().to_lowercase();
    match (number(expected), number(found)) {
        (Some(a), Some(b)) => a == b,
        _ => squeeze(expected) == squeeze(found),
    }
}

fn read(path: &Path) -> Result<Document, String> {
    let bytes: Arc<[u8]> = std::fs::read(path).map_err(|e| format!("cannot be read: {e}"))?.into();
    ode_pdf::read(bytes, &Limits::default()).map_err(|e| e.to_string())
}

/// What changes when `new` is used instead of `old`, document by document; those that read the same are left out.
pub fn diff<'a>(
    old: &Mapping,
    new: &Mapping,
    documents: impl Iterator<Item = (&'a str, &'a Document)>,
) -> BTreeMap<String, Differences> {
    documents
        .filter_map(|(name, document)| {
            let sheet = Sheet::new(document);
            let report = compare(&engine::run(old, &sheet), &engine::run(new, &sheet));
            (!report.differences.is_empty()).then(|| (name.to_owned(), report.differences))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::is_same;

    #[test]
    fn values_are_compared_by_meaning() {
        fn check(expected: &str, found: &str, same: bool) {
            assert_eq!(is_same(expected, found), same, "{expected} {found}");
        }
        check("10", "10.00", true);
        check("10", "10.01", false);
        check("PT Maju Jaya", "pt maju  jaya", true);
        check("2026-03-05", "2026-03-06", false);
        check("", "x", false);
    }
}
