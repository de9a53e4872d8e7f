//! What the gateway counts, and how it tells Prometheus.

use super::Shadow;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Upper ends of the histogram's buckets, in seconds: from a warm one-page invoice to the longest that may be.
const BUCKETS: [f64; 10] = [0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 15.0, 60.0];

/// Counts since the start.
#[derive(Debug, Default)]
pub(super) struct Metrics {
    counts: Mutex<Counts>,
}

#[derive(Debug, Default)]
struct Counts {
    by_code: BTreeMap<&'static str, u64>,
    by_bucket: [u64; BUCKETS.len()],
    count: u64,
    seconds: f64,
    shadows: BTreeMap<String, ShadowCounts>,
}

/// Mappings whose shadow runs are counted, and fields of each: more would be too much for those who collect.
const SERIES_MAX: usize = 200;

#[derive(Debug, Default)]
struct ShadowCounts {
    same: u64,
    different: u64,
    by_field: BTreeMap<String, u64>,
}

/// What is so right now.
#[derive(Debug, Clone, Copy)]
pub(super) struct Gauges {
    pub(super) in_flight: usize,
    pub(super) mappings: usize,
    pub(super) mistakes: usize,
}

impl Metrics {
    /// Counts a request that never got as far as a conversion.
    pub(super) fn refused(&self, code: &'static str) {
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        *counts.by_code.entry(code).or_default() += 1;
    }

    /// Counts a request that was answered, and how long it took.
    pub(super) fn answered(&self, code: &'static str, took: Duration) {
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        let seconds = took.as_secs_f64();
        *counts.by_code.entry(code).or_default() += 1;
        for (bucket, end) in counts.by_bucket.iter_mut().zip(BUCKETS) {
            *bucket += u64::from(seconds <= end);
        }
        counts.count += 1;
        counts.seconds += seconds;
    }

    /// Counts how versions of a mapping that ran beside it came out.
    pub(super) fn shadowed(&self, shadows: &[Shadow]) {
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        for shadow in shadows {
            let is_full = counts.shadows.len() >= SERIES_MAX;
            if is_full && !counts.shadows.contains_key(&shadow.mapping) {
                continue;
            }
            let counts = counts.shadows.entry(shadow.mapping.clone()).or_default();
            let outcome = if shadow.different.is_empty() { &mut counts.same } else { &mut counts.different };
            *outcome += 1;
            for field in shadow.different.iter().map(|path| column(path)) {
                if counts.by_field.len() < SERIES_MAX || counts.by_field.contains_key(&field) {
                    *counts.by_field.entry(field).or_default() += 1;
                }
            }
        }
    }

    /// Everything, in Prometheus' text format.
    pub(super) fn text(&self, gauges: Gauges) -> String {
        let counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        let mut text = String::new();
        head(&mut text, "conversions_total", "counter", "Requests to convert, by outcome.");
        for (code, count) in &counts.by_code {
            let _ = writeln!(text, "ode_gateway_conversions_total{{code=\"{code}\"}} {count}");
        }
        for (name, value, help) in [
            ("in_flight", gauges.in_flight, "Requests to convert that are under way."),
            ("mappings", gauges.mappings, "Mappings in use."),
            ("mapping_mistakes", gauges.mistakes, "Mistakes that keep newer mapping files from being used."),
        ] {
            head(&mut text, name, "gauge", help);
            let _ = writeln!(text, "ode_gateway_{name} {value}");
        }
        counts.write_shadows(&mut text);
        head(&mut text, "seconds", "histogram", "From the first byte of a request to its answer.");
        for (count, end) in counts.by_bucket.iter().zip(BUCKETS) {
            let _ = writeln!(text, "ode_gateway_seconds_bucket{{le=\"{end}\"}} {count}");
        }
        let (count, seconds) = (counts.count, counts.seconds);
        let _ = writeln!(text, "ode_gateway_seconds_bucket{{le=\"+Inf\"}} {count}");
        let _ = writeln!(text, "ode_gateway_seconds_sum {seconds}\node_gateway_seconds_count {count}");
        text
    }
}

/// Writing to a string cannot fail.
fn head(text: &mut String, name: &str, kind: &str, help: &str) {
    let _ = writeln!(text, "# HELP ode_gateway_{name} {help}\n# TYPE ode_gateway_{name} {kind}");
}

/// A cell's path without the number of its row: `lines.total`.
fn column(path: &str) -> String {
    let is_name = |part: &&str| !part.bytes().all(|byte| byte.is_ascii_digit());
    path.split('.').filter(is_name).collect::<Vec<_>>().join(".")
}

impl Counts {
    fn write_shadows(&self, text: &mut String) {
        let runs = "Documents that a draft or canary mapping read beside the live one, by how it came out.";
        head(text, "shadow_runs_total", "counter", runs);
        for (mapping, counts) in &self.shadows {
            for (outcome, count) in [("same", counts.same), ("different", counts.different)] {
                let _ = writeln!(
                    text,
                    "ode_gateway_shadow_runs_total{{mapping=\"{mapping}\",outcome=\"{outcome}\"}} {count}"
                );
            }
        }
        let fields = "Values that a draft or canary mapping read differently, by field or column.";
        head(text, "shadow_differences_total", "counter", fields);
        for (mapping, counts) in &self.shadows {
            for (field, count) in &counts.by_field {
                let _ = writeln!(
                    text,
                    "ode_gateway_shadow_differences_total{{mapping=\"{mapping}\",field=\"{field}\"}} {count}"
                );
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_request_is_in_its_code_and_in_each_bucket_above_it() {
        let metrics = Metrics::default();
        metrics.answered("OK", Duration::from_millis(30));
        metrics.answered("OK", Duration::from_secs(100));
        metrics.refused("BUSY");
        let shadow = |different: &[&str]| Shadow {
            mapping: "acme_v2".into(),
            different: different.iter().map(|field| (*field).to_owned()).collect(),
        };
        metrics.shadowed(&[shadow(&[])]);
        metrics.shadowed(&[shadow(&["due_date", "lines.0.total", "lines.11.total"])]);
        let text = metrics.text(Gauges { in_flight: 3, mappings: 16, mistakes: 0 });
        for line in [
            "ode_gateway_conversions_total{code=\"BUSY\"} 1",
            "ode_gateway_conversions_total{code=\"OK\"} 2",
            "ode_gateway_shadow_runs_total{mapping=\"acme_v2\",outcome=\"same\"} 1",
            "ode_gateway_shadow_runs_total{mapping=\"acme_v2\",outcome=\"different\"} 1",
            "ode_gateway_shadow_differences_total{mapping=\"acme_v2\",field=\"due_date\"} 1",
            "ode_gateway_shadow_differences_total{mapping=\"acme_v2\",field=\"lines.total\"} 2",
            "ode_gateway_in_flight 3",
            "ode_gateway_mappings 16",
            "ode_gateway_seconds_bucket{le=\"0.025\"} 0",
            "ode_gateway_seconds_bucket{le=\"0.05\"} 1",
            "ode_gateway_seconds_bucket{le=\"60\"} 1",
            "ode_gateway_seconds_bucket{le=\"+Inf\"} 2",
            "ode_gateway_seconds_sum 100.03",
            "ode_gateway_seconds_count 2",
        ] {
            assert!(text.lines().any(|found| found == line), "{line} is not in:\n{text}");
        }
    }
}
