//! The seam between the engine and what it runs: a handler serves a lane, a registry knows the handlers.

use crate::{Artifact, Claimed, Failure, Lane, LogLevel, Progress, RetryPolicy};
use async_trait::async_trait;
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

    /// Makes one attempt. Dropping the future must abandon the attempt and everything it started.
    async fn run(&self, job: &Claimed, context: &dyn Context) -> Result<Value, Failure>;
}

/// What an attempt may tell the engine while it runs. Progress and files are fenced: once the lease is lost they
/// do not reach the job. A log line names the attempt that wrote it, and is kept whatever became of that.
#[async_trait]
pub trait Context: Send + Sync {
    /// How far it is. Coalesced; the last word wins.
    fn progress(&self, progress: Progress);

    /// A line for the job's log.
    fn log(&self, level: LogLevel, message: &str);

    /// Stores a file of the job. It becomes visible when the attempt succeeds.
    async fn keep(&self, file: File) -> Result<Artifact, Failure>;
}

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
    pub content: Vec<u8>,
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
