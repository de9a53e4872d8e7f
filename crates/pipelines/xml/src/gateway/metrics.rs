//! What the gateway counts, and how it tells Prometheus.

use crate::conversion::ask::Shadow;
use ode_metrics::{Counter, Family as _, Histogram, gauge};
use std::time::Duration;

/// Upper ends of the histogram's buckets, in seconds: from a warm one-page invoice to the longest that may be.
const BUCKETS: [f64; 10] = [0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 15.0, 60.0];

/// Counts since the start.
#[derive(Debug)]
pub(super) struct Metrics {
    conversions: Counter<1>,
    shadow_runs: Counter<2>,
    shadow_differences: Counter<2>,
    seconds: Histogram<0>,
}

impl Default for Metrics {
    fn default() -> Self {
        Metrics {
            conversions: Counter::new(
                "ode_gateway_conversions_total",
                "Requests to convert, by outcome.",
                ["code"],
            ),
            shadow_runs: Counter::new(
                "ode_gateway_shadow_runs_total",
                "Documents that a draft or canary mapping read beside the live one, by how it came out.",
                ["mapping", "outcome"],
            ),
            shadow_differences: Counter::new(
                "ode_gateway_shadow_differences_total",
                "Values that a draft or canary mapping read differently, by field or column.",
                ["mapping", "field"],
            ),
            seconds: Histogram::new(
                "ode_gateway_seconds",
                "From the first byte of a request to its answer.",
                [],
                &BUCKETS,
            ),
        }
    }
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
        self.conversions.add([code.into()], 1);
    }

    /// Counts a request that was answered, and how long it took.
    pub(super) fn answered(&self, code: &'static str, took: Duration) {
        self.conversions.add([code.into()], 1);
        self.seconds.observe([], [took]);
    }

    /// Counts how versions of a mapping that ran beside it came out.
    pub(super) fn shadowed(&self, shadows: &[Shadow]) {
        for shadow in shadows {
            let is_same = shadow.different.is_empty();
            let mapping = || shadow.mapping.clone().into();
            // Both are told from the first run on, so that a share can be reckoned.
            self.shadow_runs.add([mapping(), "same".into()], u64::from(is_same));
            self.shadow_runs.add([mapping(), "different".into()], u64::from(!is_same));
            for field in shadow.different.iter().map(|path| column(path)) {
                self.shadow_differences.add([mapping(), field.into()], 1);
            }
        }
    }

    /// Everything, in Prometheus' text format.
    pub(super) fn text(&self, gauges: Gauges) -> String {
        let mut text = String::new();
        self.conversions.write(&mut text);
        for (name, value, help) in [
            ("ode_gateway_in_flight", gauges.in_flight, "Requests to convert that are under way."),
            ("ode_gateway_mappings", gauges.mappings, "Mappings in use."),
            (
                "ode_gateway_mapping_mistakes",
                gauges.mistakes,
                "Mistakes that keep newer mapping files from being used.",
            ),
        ] {
            gauge(&mut text, name, help, [(&[][..], value)]);
        }
        self.shadow_runs.write(&mut text);
        self.shadow_differences.write(&mut text);
        self.seconds.write(&mut text);
        text
    }
}

/// A cell's path without the number of its row: `lines.total`.
fn column(path: &str) -> String {
    let is_name = |part: &&str| !part.bytes().all(|byte| byte.is_ascii_digit());
    path.split('.').filter(is_name).collect::<Vec<_>>().join(".")
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
