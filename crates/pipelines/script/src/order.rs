//! What is asked of a run, what is told while it goes on, and how it ends.

use crate::payload::Secrets;
use crate::script::Script;
pub use ode_child::{Level, LogLine, Record, Source};
use ode_child::{Step, StepState};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// What one attempt is to do.
#[derive(Debug, Clone)]
pub struct Order {
    /// The job's id, as the script sees it.
    pub job: String,
    /// Which attempt this is, from 1.
    pub attempt: u32,
    /// What to run.
    pub script: Arc<Script>,
    /// The payload without its secrets, as [`Script::split`] left it.
    pub input: Value,
    /// The secrets of the payload.
    pub secrets: Secrets,
    /// What earlier attempts have finished, so that this one can skip it.
    pub checkpoints: BTreeMap<String, Value>,
    /// How long it may take; the manifest's time if none is given, and never more than that.
    pub timeout: Option<Duration>,
    /// The site that scripts work on unless their payload names another.
    pub site: Option<String>,
    /// Whether it is to go through everything and change nothing.
    pub dry_run: bool,
    /// The trace that this belongs to, as the W3C writes it.
    pub traceparent: Option<String>,
}

impl Order {
    /// The first attempt of a job, with everything else as usual.
    pub fn new(job: impl Into<String>, script: Arc<Script>, input: Value, secrets: Secrets) -> Self {
        Self {
            job: job.into(),
            attempt: 1,
            script,
            input,
            secrets,
            checkpoints: BTreeMap::new(),
            timeout: None,
            site: None,
            dry_run: false,
            traceparent: None,
        }
    }
}

/// What is told while a script runs. No secret of it is in there.
#[derive(Debug, Clone, PartialEq)]
pub enum News {
    /// It runs; by this its processes can be found again after a crash of ours.
    Started(Record),
    /// The steps it is going to take, in place of those in its manifest.
    Plan(Vec<Step>),
    /// A step has begun or ended.
    Step {
        /// Which, as its plan calls it.
        id: String,
        /// What became of it.
        state: StepState,
    },
    /// How far it is; at most four times a second.
    Progress(Progress),
    /// A line of its log.
    Log(LogLine),
    /// Something is done that another attempt need not do again.
    Checkpoint {
        key: String,
        /// What the script wants to know about it then.
        data: Value,
    },
}

/// How far a script is.
#[derive(Debug, Clone, PartialEq)]
pub struct Progress {
    /// 0 to 100.
    pub percent: f32,
    /// What it is doing.
    pub message: Option<String>,
    /// In which step it is, from 1; 0 before the first.
    pub step: u32,
    /// How many steps there are.
    pub steps: u32,
}

/// Everything about a run that has ended.
#[derive(Debug)]
pub struct Report {
    pub outcome: Outcome,
    /// The files that it made: those that hold no secret.
    pub artifacts: Vec<Artifact>,
    /// How long it took.
    pub duration: Duration,
    /// How many bytes of its log were dropped because there were too many.
    pub log_bytes_dropped: u64,
    /// Whether a spare ran it.
    pub was_spare: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// It did what it was asked to do, or a part of it.
    Done(Done),
    /// It did not.
    Failed(Failed),
    /// It took too long and was ended.
    TimedOut,
    /// It was stopped because the caller wished it.
    Stopped,
}

/// A result.
#[derive(Debug, Clone, PartialEq)]
pub struct Done {
    /// Whether only a part was done.
    pub partial: bool,
    /// What was done, for people.
    pub message: String,
    /// What was done, for programs, with the names of secrets in place of the secrets.
    pub data: Value,
    /// The secrets of the result.
    pub secrets: Secrets,
}

/// How long something may take, as people write it: `500 ms`, `1.5 s`, `300 s`.
pub fn in_words(time: Duration) -> String {
    match time.as_millis() {
        ms @ 0..1000 => format!("{ms} ms"),
        ms if ms % 1000 == 0 => format!("{} s", ms / 1000),
        _ => format!("{} s", time.as_secs_f64()),
    }
}

/// A failure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failed {
    /// A short word for programs: the script's own, or one of [`code`].
    pub code: String,
    /// A sentence for people.
    pub message: String,
    /// Whether trying again could help.
    pub retryable: bool,
    /// Where in the script it was, or the last it wrote to stderr.
    pub stack: Option<String>,
}

/// The codes of failures that scripts do not tell themselves.
pub mod code {
    /// It ended well and gave no result.
    pub const NO_RESULT: &str = "no_result";
    /// It ended without a result, by a signal or with an error.
    pub const CRASHED: &str = "crashed";
    /// It used more memory than its manifest allows.
    pub const OUT_OF_MEMORY: &str = "out_of_memory";
    /// It broke the protocol.
    pub const PROTOCOL: &str = "protocol";
    /// Its result is not what its manifest promises.
    pub const BAD_RESULT: &str = "bad_result";
    /// It was given, masked or gave more secrets than can be hidden.
    pub const MANY_SECRETS: &str = "many_secrets";
    /// Its program, or one that it needs, is not there.
    pub const NOT_INSTALLED: &str = "not_installed";
}

/// A file that a script made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Artifact {
    /// What it is called: data, never to be used as a path.
    pub name: String,
    /// What it is, in the script's word: `screenshot`, `page`, `log`, `trace`, `file`.
    pub kind: String,
    /// What is in it.
    pub contents: Vec<u8>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_told_as_they_are() {
        for (ms, expected) in
            [(1, "1 ms"), (999, "999 ms"), (1000, "1 s"), (1500, "1.5 s"), (300_000, "300 s")]
        {
            assert_eq!(in_words(Duration::from_millis(ms)), expected);
        }
    }
}
