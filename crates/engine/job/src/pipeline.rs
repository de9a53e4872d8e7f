//! The seam between the engine and what it runs: a handler serves a lane, a registry knows the handlers.

use crate::breaker::Standing;
use crate::order::Effects;
use crate::script::ScriptRecord;
use crate::{Artifact, Check, Claimed, Failure, Lane, LogLevel, Progress, RetryPolicy};
use async_trait::async_trait;
use bytes::Bytes;
use jiff::Timestamp;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// What bounds a lane.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Attempts at a time in one worker process.
    pub concurrency: usize,
    /// How long one attempt may take.
    pub attempt_timeout: Duration,
    /// When to try again.
    pub retry: RetryPolicy,
}

impl Default for Limits {
    fn default() -> Self {
        Limits { concurrency: 3, attempt_timeout: Duration::from_secs(300), retry: RetryPolicy::default() }
    }
}

/// Turns one claimed job into a result. It sees neither the store nor HTTP.
#[async_trait]
pub trait Handler: Send + Sync {
    /// Its bounds.
    fn limits(&self) -> Limits {
        Limits::default()
    }

    /// How much longer than its limit, or than somebody wants it to, an attempt may take, to end what it started and to
    /// say what it saw of it. One that still runs then is dropped.
    fn end_within(&self) -> Duration {
        Duration::ZERO
    }

    /// Whether what it depends on is there. Asked before jobs are claimed for it; asking commits it to nothing.
    fn readiness(&self, _now: Timestamp) -> Readiness {
        Readiness::Ready
    }

    /// Where the breakers of what it depends on stand, for those who watch.
    fn breakers(&self, _now: Timestamp) -> Vec<Standing> {
        Vec::new()
    }

    /// Makes one attempt. Dropping the future must abandon the attempt and everything it started.
    async fn run(&self, job: &Claimed, context: &dyn Context) -> Result<Value, Failure>;
}

/// Whether a handler can be given jobs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Readiness {
    /// As many as it has slots for.
    Ready,
    /// One, to see whether what was away is back.
    Probe {
        /// Since when it cannot work.
        since: Timestamp,
    },
    /// None before then: they wait in line, and no try of theirs is used up.
    Away {
        /// When to ask again.
        until: Timestamp,
        /// Since when it cannot work.
        since: Timestamp,
    },
}

impl Readiness {
    /// Since when it cannot work, unless it can.
    #[must_use]
    pub fn away_since(self) -> Option<Timestamp> {
        match self {
            Readiness::Ready => None,
            Readiness::Probe { since } | Readiness::Away { since, .. } => Some(since),
        }
    }
}

/// What an attempt may ask of the engine and tell it while it runs. Everything is fenced: once the lease is lost, the
/// document is not given out, and progress, files, notes and checks do not reach the job. A log line names the
/// attempt that wrote it, and is kept whatever became of that.
#[async_trait]
pub trait Context: Send + Sync {
    /// The document that was stored with the job.
    async fn source(&self) -> Result<Source, Failure>;

    /// The frozen map that a print job prints, as its canonical JSON.
    async fn printable_map(&self) -> Result<Bytes, Failure>;

    /// A document that lies at a place of the caller's, if it is one that is open to them.
    async fn fetch(&self, address: &str, bytes_max: u64) -> Result<Bytes, Failure>;

    /// How far it is. Coalesced; the last word wins.
    fn progress(&self, progress: Progress);

    /// A line for the job's log. Whoever hears that the attempt is over finds them all.
    fn log(&self, level: LogLevel, message: &str);

    /// A particular for the history: it stands with the event that ends this attempt, however it ends.
    fn note(&self, name: &'static str, value: Value);

    /// Something that was found out about the result. It is kept when the attempt succeeds.
    fn check(&self, check: Check);

    /// Stores files of the job. They become visible when the attempt succeeds; a screenshot or a log when it fails, too.
    async fn keep(&self, files: Vec<File>) -> Result<Vec<Artifact>, Failure>;

    /// Puts files at a place of the caller's, the page to open first. There they appear together or not at all.
    async fn publish(&self, address: &str, files: &[File]) -> Result<(), Failure>;

    /// Takes away what attempts before this one left at a place of the caller's, unless that is a whole result. Where it
    /// cannot be done now, [`Context::publish`] puts it right.
    async fn clear(&self, _address: &str) {}

    /// Ready once the attempt is to end early. It has [`Handler::end_within`] for that; without any, it is just dropped.
    async fn asked_to_end(&self) {
        std::future::pending().await
    }

    /// The record of what the job does to the outside world that must happen once, where it does such a thing.
    fn effects(&self) -> Option<&dyn Effects> {
        None
    }

    /// What a script is given and records, where the job is one.
    fn script(&self) -> Option<&dyn ScriptRecord> {
        None
    }
}

/// A document that was stored with a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    /// What its owner calls it. Never part of a path.
    pub name: String,
    /// The content.
    pub content: Bytes,
}

/// Files that are kept of an attempt that failed, too: they show why.
pub const SHOWS_WHY: [&str; 2] = ["screenshot", "log"];

/// A file an attempt made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct File {
    /// What it is to the job.
    pub role: String,
    /// Its name within the job.
    pub name: String,
    /// Media type.
    pub content_type: String,
    /// The content.
    pub content: Bytes,
}

/// Which handler serves which lane.
#[derive(Clone, Default)]
pub struct Registry {
    handlers: BTreeMap<Lane, Arc<dyn Handler>>,
}

impl Registry {
    /// An empty one.
    pub fn new() -> Self {
        Registry::default()
    }

    /// The same registry, with `handler` serving `lane`.
    pub fn with(mut self, lane: Lane, handler: impl Handler + 'static) -> Self {
        self.handlers.insert(lane, Arc::new(handler));
        self
    }

    /// The handler of a lane.
    pub fn get(&self, lane: Lane) -> Option<&Arc<dyn Handler>> {
        self.handlers.get(&lane)
    }

    /// The lanes that are served.
    pub fn lanes(&self) -> impl Iterator<Item = Lane> + '_ {
        self.handlers.keys().copied()
    }
}
