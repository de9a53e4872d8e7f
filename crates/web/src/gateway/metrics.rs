//! What the gateway counts, and how it tells Prometheus.

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

    /// Everything, in Prometheus' text format.
    pub(super) fn text(&self, gauges: Gauges) -> String {
        let counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        let mut text = String::new();
        // Writing to a string cannot fail.
        let head = |text: &mut String, name: &str, kind: &str, help: &str| {
            let _ = writeln!(text, "# HELP ode_gateway_{name} {help}\n# TYPE ode_gateway_{name} {kind}");
        };
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_request_is_in_its_code_and_in_each_bucket_above_it() {
        let metrics = Metrics::default();
        metrics.answered("OK", Duration::from_millis(30));
        metrics.answered("OK", Duration::from_secs(100));
        metrics.refused("BUSY");
        let text = metrics.text(Gauges { in_flight: 3, mappings: 16, mistakes: 0 });
        for line in [
            "ode_gateway_conversions_total{code=\"BUSY\"} 1",
            "ode_gateway_conversions_total{code=\"OK\"} 2",
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
