//! The official JSON-Schema-Test-Suite (draft 2020-12): every schema that is read decides as the suite says, and every
//! other one is refused for a keyword in a list. Needs a copy of the suite, which `ODE_TEST_JSON_SCHEMA_SUITE` names.

use super::*;
use std::collections::BTreeSet;
use std::path::Path;

/// Where a checkout of <https://github.com/json-schema-org/JSON-Schema-Test-Suite> is.
const VARIABLE: &str = "ODE_TEST_JSON_SCHEMA_SUITE";

/// Keywords for which schemas of the suite may be refused.
const REFUSED: [&str; 12] = [
    "$dynamicAnchor",
    "$dynamicRef",
    "$id",
    "$ref",
    "$schema",
    "contentSchema",
    "dependentSchemas",
    "format",
    "maxContains",
    "minContains",
    "unevaluatedItems",
    "unevaluatedProperties",
];

/// Formats that are checked here, which the specification leaves open: the mandatory part of the suite expects that
/// nobody checks them.
const FORMATS: [&str; 5] = ["date", "date-time", "email", "uri", "uuid"];

#[derive(serde::Deserialize)]
struct Group {
    description: String,
    schema: Value,
    tests: Vec<Case>,
}

#[derive(serde::Deserialize)]
struct Case {
    description: String,
    data: Value,
    valid: bool,
}

#[derive(Default)]
struct Outcome {
    decided: usize,
    refused: BTreeSet<String>,
    refused_count: usize,
    wrong: Vec<String>,
}

impl Outcome {
    fn file(&mut self, path: &Path) {
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        let text = std::fs::read_to_string(path).unwrap();
        for group in serde_json::from_str::<Vec<Group>>(&text).unwrap() {
            self.group(&name, group);
        }
    }

    fn group(&mut self, file: &str, group: Group) {
        let is_checked = |format: &Value| FORMATS.iter().any(|checked| format == checked);
        if file == "format" && group.schema.get("format").is_some_and(is_checked) {
            return;
        }
        let about = format!("{file}: {}", group.description);
        match Schema::read(group.schema) {
            Ok(schema) => {
                for case in group.tests {
                    self.decided += 1;
                    if schema.check(&case.data).is_ok() != case.valid {
                        let expected = if case.valid { "valid" } else { "invalid" };
                        self.wrong
                            .push(format!("{about}: {} is {expected}: {}", case.description, case.data));
                    }
                }
            }
            Err(error) => {
                let keyword = error.place.rsplit('/').next().unwrap().to_owned();
                if !REFUSED.contains(&keyword.as_str()) {
                    self.wrong.push(format!("{about}: {error}"));
                }
                self.refused.insert(keyword);
                self.refused_count += 1;
            }
        }
    }
}

#[test]
fn the_official_test_suite_agrees() {
    let Ok(suite) = std::env::var(VARIABLE) else {
        eprintln!("SKIPPED: {VARIABLE} names no copy of the JSON-Schema-Test-Suite");
        return;
    };
    let draft = Path::new(&suite).join("tests/draft2020-12");
    let mut outcome = Outcome::default();
    let files = std::fs::read_dir(&draft).unwrap().map(|file| file.unwrap().path());
    for file in files.filter(|file| file.is_file()) {
        outcome.file(&file);
    }
    for format in FORMATS {
        outcome.file(&draft.join(format!("optional/format/{format}.json")));
    }
    assert!(outcome.wrong.is_empty(), "{}", outcome.wrong.join("\n"));
    assert!(outcome.decided > 900, "only {} cases were decided", outcome.decided);
    println!("{} cases decided, {} schemas refused", outcome.decided, outcome.refused_count);
    let expected: BTreeSet<_> = REFUSED.map(str::to_owned).into();
    assert_eq!(outcome.refused, expected, "a keyword that is no longer refused leaves the list");
}
