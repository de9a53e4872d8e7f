//! What a pipeline gets when a process starts, and what it gives back.

use clap::{ArgMatches, FromArgMatches};
use futures_util::future::BoxFuture;
use ode_child::Sandbox;
use ode_cli::Settings;
use ode_job::{BreakerPolicy, Lane, RetryPolicy};
use ode_store::{Blobs, Store};
use ode_worker::{Chore, Handler};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;

/// The commands that an option is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// Every command.
    All,
    /// `ode web`, which serves the site alone.
    Web,
    /// `ode worker`, which only works.
    Worker,
    /// `ode serve`, which does both.
    Serve,
}

impl Scope {
    /// Whether such a command serves the site.
    pub fn has_site(self) -> bool {
        matches!(self, Scope::Web | Scope::Serve)
    }

    /// Whether such a command runs jobs.
    pub fn has_worker(self) -> bool {
        matches!(self, Scope::Worker | Scope::Serve)
    }
}

/// A worker that is about to start.
#[derive(Debug)]
pub struct WorkSetup<'a> {
    /// The command that starts it.
    pub scope: Scope,
    /// The settings of the program.
    pub settings: &'a Settings,
    /// Everything that was typed for the command.
    pub typed: &'a ArgMatches,
    /// The address that the pipeline has taken.
    pub listener: Option<TcpListener>,
    pub store: &'a Store,
    pub blobs: &'a Blobs,
    /// When failed jobs are tried again.
    pub retry: RetryPolicy,
    /// When something outside counts as away.
    pub breaker: BreakerPolicy,
    /// Whether children lock themselves in.
    pub sandbox: Sandbox,
    /// Time that running work gets to end when the process stops.
    pub grace: Duration,
}

impl WorkSetup<'_> {
    /// The pipeline's own options.
    pub fn options<T: FromArgMatches>(&self) -> anyhow::Result<T> {
        crate::read_options(self.typed)
    }
}

/// A site that is about to start.
#[derive(Debug, Clone, Copy)]
pub struct SiteSetup<'a> {
    /// The settings of the program.
    pub settings: &'a Settings,
    /// Everything that was typed for the command.
    pub typed: &'a ArgMatches,
    pub store: &'a Store,
}

impl SiteSetup<'_> {
    /// The pipeline's own options.
    pub fn options<T: FromArgMatches>(&self) -> anyhow::Result<T> {
        crate::read_options(self.typed)
    }
}

/// What a worker runs for a pipeline.
#[derive(Default)]
pub struct Work {
    /// The handler of each lane.
    pub lanes: Vec<(Lane, Arc<dyn Handler>)>,
    /// Recurring work, done by one process at a time.
    pub chores: Vec<Arc<dyn Chore>>,
    /// Whatever else runs in this process beside the jobs.
    pub services: Vec<Service>,
}

impl Work {
    /// One lane and nothing else.
    pub fn lane(lane: Lane, handler: impl Handler + 'static) -> Self {
        Work::default().with_lane(lane, handler)
    }

    #[must_use]
    pub fn with_lane(mut self, lane: Lane, handler: impl Handler + 'static) -> Self {
        self.lanes.push((lane, Arc::new(handler)));
        self
    }

    #[must_use]
    pub fn with_chore(mut self, chore: impl Chore + 'static) -> Self {
        self.chores.push(Arc::new(chore));
        self
    }
}

impl fmt::Debug for Work {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lanes: Vec<_> = self.lanes.iter().map(|(lane, _)| lane).collect();
        f.debug_struct("Work").field("lanes", &lanes).finish_non_exhaustive()
    }
}

/// Something that runs until the process stops, such as a listener.
pub struct Service {
    /// The line about it that the process prints when it has started.
    pub announcement: String,
    /// Ends it within the grace period.
    pub stop: BoxFuture<'static, anyhow::Result<()>>,
}
