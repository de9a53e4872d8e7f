//! The rules over the truth of the corpus: what is wrong is found, what is right is left alone.

use crate::truth;
use std::path::{Path, PathBuf};

use ode_invoice::{Finding, Record, Severity, Typed, rules};
use rust_decimal::Decimal;
use serde_json::Value as Json;

/// Truth files, by name; none where the corpus is not at hand.
fn truths() -> Vec<(PathBuf, Json)> {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../../shared/corpus/invoices");
    let Ok(entries) = std::fs::read_dir(&corpus) else {
        eprintln!("SKIPPED: there is no corpus of invoices at {}", corpus.display());
        return Vec::new();
    };
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.retain(|path| path.to_string_lossy().ends_with(".truth.json"));
    paths.sort();
    let read = |path: &PathBuf| {
        let bytes = std::fs::read(path).expect("a truth file can be read");
        serde_json::from_slice(&bytes).expect("a truth file is JSON")
    };
    paths.into_iter().map(|path| (path.clone(), read(&path))).collect()
}

/// Findings about sums that somebody should look at.
fn wrong_sums(record: &Record) -> Vec<Finding> {
    let findings = rules::check(record).into_iter();
    findings
        .filter(|finding| {
            finding.severity >= Severity::Review && finding.code.as_str().ends_with("_MISMATCH")
        })
        .collect()
}

/// At most this many of a hundred right documents may be flagged.
const FALSE_FLAGS_PERCENT_MAX: usize = 2;

#[test]
fn every_wrong_total_is_flagged_and_hardly_a_right_one() {
    let (mut right, mut flagged) = (0, Vec::new());
    for (path, truth) in truths() {
        let findings = wrong_sums(&truth::from_truth(&truth));
        if truth["consistent"] == Json::Bool(false) {
            assert!(!findings.is_empty(), "{} prints totals that do not add up", path.display());
            continue;
        }
        right += 1;
        flagged
            .extend(findings.into_iter().map(|finding| format!("{}: {}", path.display(), finding.message)));
    }
    assert!(flagged.len() * 100 <= right * FALSE_FLAGS_PERCENT_MAX, "{right} right documents, {flagged:#?}");
}

#[test]
fn a_total_that_is_changed_is_flagged_in_every_document() {
    for (path, truth) in truths() {
        let record = truth::from_truth(&truth);
        let has = |name: &str| record.fields.contains_key(name);
        if !(has("net_total") && has("tax_total") && has("gross_total")) {
            continue;
        }
        for name in ["net_total", "tax_total", "gross_total"] {
            for factor in [Decimal::new(9, 1), Decimal::new(1001, 3), Decimal::TEN] {
                let mut changed = record.clone();
                let Some(Typed::Number(number)) =
                    changed.fields.get_mut(name).map(|field| &mut field.value.typed)
                else {
                    continue;
                };
                let was = *number;
                *number = (*number * factor + Decimal::ONE).round_dp(2);
                if (was - *number).abs() < Decimal::ONE {
                    continue;
                }
                assert!(!wrong_sums(&changed).is_empty(), "{} with {name} × {factor}", path.display());
            }
        }
    }
}
