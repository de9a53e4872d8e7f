//! The html pipeline's machine: its states, the steps between them, its lane.

use ode_job::{Edge, Event, Lane, Machine, Pipeline, Standing, State};

/// PDF to faithful, selectable HTML with its assets.
pub const HTML: Pipeline = Pipeline::new(MACHINE);

/// Pending jobs.
pub const LANE: Lane = Lane::new(MACHINE, "html");

/// Waits for a worker.
pub const PENDING: State = State::new("pending");
/// A worker converts it.
pub const PROCESSING: State = State::new("processing");
pub const COMPLETED: State = State::new("completed");
/// It did not work; the error says why.
pub const FAILED: State = State::new("failed");

const MACHINE: &Machine = &Machine {
    name: "html",
    article: "An",
    initial: PENDING,
    is_early_initial: false,
    states: &[
        Standing::ready(PENDING, "html"),
        Standing::running(PROCESSING, "html"),
        Standing::done(COMPLETED),
        Standing::failed(FAILED),
    ],
    edges: &[
        Edge::new(PENDING, Event::Started, PROCESSING),
        Edge::new(PENDING, Event::Failed, FAILED),
        Edge::new(PENDING, Event::Cancelled, FAILED),
        Edge::new(PROCESSING, Event::Succeeded, COMPLETED),
        Edge::new(PROCESSING, Event::Failed, FAILED),
        Edge::new(PROCESSING, Event::TimedOut, FAILED),
        Edge::new(PROCESSING, Event::Stopped, FAILED),
        Edge::new(PROCESSING, Event::Released, PENDING),
        Edge::new(PROCESSING, Event::Rescued, PENDING),
        Edge::new(FAILED, Event::Retried, PENDING),
    ],
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_machine_is_sound() {
        HTML.machine().check().unwrap();
    }

    #[test]
    fn a_new_job_is_born_ready() {
        assert_eq!(HTML.path_to_ready(), None);
    }
}
