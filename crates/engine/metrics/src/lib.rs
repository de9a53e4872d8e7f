//! What is counted, and how it is told to Prometheus: counters, histograms and gauges in the text format.
//!
//! A crate that counts has its families as constants of its own and lists them; whoever serves `/metrics` writes the
//! lists. Labels are names of few values, such as a pipeline or a code, and never ids: each set of labels is kept for
//! as long as the process lives.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// The media type of the text.
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4";

/// Sets of labels that one family keeps; further ones are not counted. More would be too much for those who collect.
const SERIES_MAX: usize = 2_000;

/// Values of labels, in the order of their names.
pub type Labels<const N: usize> = [Cow<'static, str>; N];

/// Something that can be written for Prometheus.
pub trait Family: Sync {
    /// Adds its lines to the text.
    fn write(&self, text: &mut String);
}

/// Counts that only grow.
#[derive(Debug)]
pub struct Counter<const N: usize> {
    name: &'static str,
    help: &'static str,
    labels: [&'static str; N],
    counts: Mutex<BTreeMap<Labels<N>, u64>>,
}

impl<const N: usize> Counter<N> {
    /// One of which nothing was counted yet.
    #[must_use]
    pub const fn new(name: &'static str, help: &'static str, labels: [&'static str; N]) -> Self {
        Counter { name, help, labels, counts: Mutex::new(BTreeMap::new()) }
    }

    /// Counts so many more.
    pub fn add(&self, labels: Labels<N>, count: u64) {
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        if counts.len() < SERIES_MAX || counts.contains_key(&labels) {
            *counts.entry(labels).or_default() += count;
        }
    }
}

impl<const N: usize> Family for Counter<N> {
    fn write(&self, text: &mut String) {
        head(text, self.name, "counter", self.help);
        let counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        for (values, count) in counts.iter() {
            line(text, self.name, pairs(&self.labels, values), count);
        }
    }
}

/// How long things took, sorted into buckets.
#[derive(Debug)]
pub struct Histogram<const N: usize> {
    name: &'static str,
    help: &'static str,
    labels: [&'static str; N],
    /// Upper ends of the buckets in seconds, ascending.
    ends: &'static [f64],
    series: Mutex<BTreeMap<Labels<N>, Buckets>>,
}

#[derive(Debug, Clone)]
struct Buckets {
    /// Each counts what is in those below it too.
    counts: Vec<u64>,
    count: u64,
    seconds: f64,
}

impl<const N: usize> Histogram<N> {
    /// One into which nothing was sorted yet. The buckets end at `ends` seconds, ascending.
    #[must_use]
    pub const fn new(
        name: &'static str,
        help: &'static str,
        labels: [&'static str; N],
        ends: &'static [f64],
    ) -> Self {
        Histogram { name, help, labels, ends, series: Mutex::new(BTreeMap::new()) }
    }

    /// Sorts in what took so long: many at once, where they come in batches.
    pub fn observe(&self, labels: Labels<N>, took: impl IntoIterator<Item = Duration>) {
        let mut series = self.series.lock().unwrap_or_else(PoisonError::into_inner);
        if series.len() >= SERIES_MAX && !series.contains_key(&labels) {
            return;
        }
        let empty = || Buckets { counts: vec![0; self.ends.len()], count: 0, seconds: 0.0 };
        let buckets = series.entry(labels).or_insert_with(empty);
        for took in took {
            let seconds = took.as_secs_f64();
            for (count, end) in buckets.counts.iter_mut().zip(self.ends).rev() {
                if seconds > *end {
                    break;
                }
                *count += 1;
            }
            buckets.count += 1;
            buckets.seconds += seconds;
        }
    }
}

impl<const N: usize> Family for Histogram<N> {
    fn write(&self, text: &mut String) {
        head(text, self.name, "histogram", self.help);
        let series = self.series.lock().unwrap_or_else(PoisonError::into_inner);
        for (values, buckets) in series.iter() {
            let name = format!("{}_bucket", self.name);
            for (count, end) in buckets.counts.iter().zip(self.ends) {
                let end = end.to_string();
                line(text, &name, pairs(&self.labels, values).chain([("le", end.as_str())]), count);
            }
            line(text, &name, pairs(&self.labels, values).chain([("le", "+Inf")]), buckets.count);
            line(text, &format!("{}_sum", self.name), pairs(&self.labels, values), buckets.seconds);
            line(text, &format!("{}_count", self.name), pairs(&self.labels, values), buckets.count);
        }
    }
}

/// Writes what is so at this moment: one line for each set of labels.
pub fn gauge<'a, V: std::fmt::Display>(
    text: &mut String,
    name: &str,
    help: &str,
    values: impl IntoIterator<Item = (&'a [(&'a str, &'a str)], V)>,
) {
    head(text, name, "gauge", help);
    for (labels, value) in values {
        line(text, name, labels.iter().copied(), value);
    }
}

/// Writing to a string cannot fail.
fn head(text: &mut String, name: &str, kind: &str, help: &str) {
    let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}");
}

fn pairs<'a, const N: usize>(
    names: &'a [&'static str; N],
    values: &'a Labels<N>,
) -> impl Iterator<Item = (&'a str, &'a str)> {
    names.iter().copied().zip(values.iter().map(AsRef::as_ref))
}

fn line<'a>(
    text: &mut String,
    name: &str,
    labels: impl Iterator<Item = (&'a str, &'a str)>,
    value: impl std::fmt::Display,
) {
    text.push_str(name);
    let mut before = '{';
    for (label, value) in labels {
        let _ = write!(text, "{before}{label}=\"{}\"", escaped(value));
        before = ',';
    }
    if before == ',' {
        text.push('}');
    }
    let _ = writeln!(text, " {value}");
}

/// A value as it may stand between quotes.
fn escaped(value: &str) -> Cow<'_, str> {
    if !value.contains(['\\', '"', '\n']) {
        return Cow::Borrowed(value);
    }
    Cow::Owned(value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(family: &dyn Family) -> String {
        let mut text = String::new();
        family.write(&mut text);
        text
    }

    #[test]
    fn a_counter_tells_each_set_of_labels() {
        let counter = Counter::new("ode_things_total", "Things.", ["kind", "code"]);
        assert_eq!(written(&counter), "# HELP ode_things_total Things.\n# TYPE ode_things_total counter\n");
        counter.add(["a".into(), "x".into()], 1);
        counter.add(["a".into(), "x".into()], 2);
        counter.add(["say \"hi\"\\\n".into(), "".into()], 1);
        let text = written(&counter);
        assert!(text.contains("\node_things_total{kind=\"a\",code=\"x\"} 3\n"), "{text}");
        assert!(text.contains("\node_things_total{kind=\"say \\\"hi\\\"\\\\\\n\",code=\"\"} 1\n"), "{text}");
    }

    #[test]
    fn labels_from_outside_cannot_fill_the_memory() {
        let counter = Counter::new("ode_things_total", "Things.", ["kind"]);
        for kind in 0..SERIES_MAX + 10 {
            counter.add([kind.to_string().into()], 1);
        }
        counter.add(["0".into()], 1);
        let text = written(&counter);
        assert_eq!(text.lines().count(), SERIES_MAX + 2);
        assert!(text.contains("ode_things_total{kind=\"0\"} 2"));
    }

    #[test]
    fn what_took_some_time_is_in_each_bucket_above_it() {
        let histogram = Histogram::new("ode_wait_seconds", "Waits.", ["kind"], &[0.5, 1.0]);
        histogram.observe(["a".into()], [Duration::from_millis(750), Duration::from_secs(3)]);
        let text = written(&histogram);
        for line in [
            "# TYPE ode_wait_seconds histogram",
            "ode_wait_seconds_bucket{kind=\"a\",le=\"0.5\"} 0",
            "ode_wait_seconds_bucket{kind=\"a\",le=\"1\"} 1",
            "ode_wait_seconds_bucket{kind=\"a\",le=\"+Inf\"} 2",
            "ode_wait_seconds_sum{kind=\"a\"} 3.75",
            "ode_wait_seconds_count{kind=\"a\"} 2",
        ] {
            assert!(text.lines().any(|found| found == line), "{line} is not in:\n{text}");
        }
    }

    #[test]
    fn a_gauge_without_labels_is_a_name_and_a_value() {
        let mut text = String::new();
        gauge(&mut text, "ode_workers_alive", "Workers.", [(&[] as &[(&str, &str)], 2)]);
        assert!(text.ends_with("\node_workers_alive 2\n"), "{text}");
    }
}
