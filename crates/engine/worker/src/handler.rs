//! The seam between the worker and what it runs: a handler serves a lane, a registry knows the handlers.

use crate::Context;
use async_trait::async_trait;
use jiff::Timestamp;
use ode_job::breaker::Standing;
use ode_job::{Claimed, Failure, Lane, RetryPolicy};
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
    async fn run(&self, job: &Claimed, context: &Context<'_>) -> Result<Value, Failure>;
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

    /// The same registry, with a handler that is shared serving `lane`.
    pub fn with_shared(mut self, lane: Lane, handler: Arc<dyn Handler>) -> Self {
        self.handlers.insert(lane, handler);
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
