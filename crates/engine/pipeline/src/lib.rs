//! The seam between the engine and the kinds of work: what a pipeline brings, and nothing of what it does.
//!
//! A pipeline is a crate with a type that implements [`Pipeline`]. The binary lists those types in one place, and the worker,
//! the site and the command line take everything else from here.

use ode_http::Routes;
use ode_job::Lane;
use ode_metrics::Family;
use ode_worker::{Chore, Handler, Registry};
use std::sync::Arc;

/// A kind of work, ready for what this process does: a process that only serves the site has no lanes, one that only works has
/// no routes.
pub trait Pipeline: Send + Sync {
    /// Which handler serves which lane.
    fn lanes(&self) -> Vec<(Lane, Arc<dyn Handler>)> {
        Vec::new()
    }

    /// What is done by the clock, by one worker at a time.
    fn chores(&self) -> Vec<Arc<dyn Chore>> {
        Vec::new()
    }

    /// Addresses and pages.
    fn routes(&self) -> Routes {
        Routes::default()
    }

    /// What is counted.
    fn metrics(&self) -> &'static [&'static dyn Family] {
        &[]
    }
}

/// The handlers of all pipelines by their lanes.
pub fn registry(pipelines: &[Arc<dyn Pipeline>]) -> Registry {
    let lanes = pipelines.iter().flat_map(|pipeline| pipeline.lanes());
    lanes.fold(Registry::new(), |registry, (lane, handler)| registry.with_shared(lane, handler))
}
