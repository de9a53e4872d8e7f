//! What an attempt costs, stage by stage.

use super::converter::Cost;
use super::request::TELEMETRY;
use ode_worker::Context;
use serde_json::{Map, Value};
use std::time::{Duration, Instant};

/// What an attempt has cost so far. A result tells it; where there is none, because the attempt failed, took too long or
/// was stopped, it stands with the event that ends the attempt.
pub(super) struct Telemetry<'a> {
    context: &'a Context<'a>,
    began: Instant,
    /// The stage under way, and since when.
    stage: (&'static str, Instant),
    stages: Map<String, Value>,
    told: Map<String, Value>,
    has_result: bool,
}

impl<'a> Telemetry<'a> {
    /// Begins with this stage.
    pub(super) fn begin(context: &'a Context<'a>, stage: &'static str) -> Self {
        let now = Instant::now();
        let (stages, told) = Default::default();
        Telemetry { context, began: now, stage: (stage, now), stages, told, has_result: false }
    }

    /// Goes on to this stage.
    pub(super) fn stage(&mut self, stage: &'static str) {
        let (last, since) = std::mem::replace(&mut self.stage, (stage, Instant::now()));
        self.stages.insert(last.to_owned(), millis(since.elapsed()).into());
    }

    pub(super) fn tell(&mut self, name: &str, value: impl Into<Value>) {
        self.told.insert(name.to_owned(), value.into());
    }

    pub(super) fn tell_cost(&mut self, cost: Cost) {
        self.tell("cpu_ms", millis(cost.cpu));
        self.tell("peak_memory_bytes", cost.peak_memory_bytes);
    }

    /// How long it took until now.
    pub(super) fn duration_ms(&self) -> u64 {
        millis(self.began.elapsed())
    }

    /// Everything, for the result.
    pub(super) fn finish(mut self) -> Value {
        self.has_result = true;
        self.whole()
    }

    fn whole(&mut self) -> Value {
        self.stage("");
        self.tell("duration_ms", self.duration_ms());
        let stages = std::mem::take(&mut self.stages);
        self.tell("stages_ms", stages);
        Value::Object(std::mem::take(&mut self.told))
    }
}

impl Drop for Telemetry<'_> {
    fn drop(&mut self) {
        if !self.has_result {
            let whole = self.whole();
            self.context.note(TELEMETRY, whole);
        }
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
