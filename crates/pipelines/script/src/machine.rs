//! The script pipeline's machine: its states, the steps between them, its lane.

use ode_job::{Edge, Event, Lane, Machine, Pipeline, Standing, State};

/// A supervised browser automation.
pub const SCRIPT: Pipeline = Pipeline::new(MACHINE);

/// Queued scripts.
pub const LANE: Lane = Lane::new(MACHINE, "script");

/// Stored, not yet eligible.
pub const PENDING: State = State::new("pending");
/// Waits for a worker.
pub const QUEUED: State = State::new("queued");
/// A worker runs it.
pub const IN_PROGRESS: State = State::new("in_progress");
/// The result is there.
pub const COMPLETED: State = State::new("completed");
/// It did not work; the error says why.
pub const FAILED: State = State::new("failed");
/// It ran longer than it may.
pub const TIMED_OUT: State = State::new("timed_out");
/// Called off before it started.
pub const CANCELLED: State = State::new("cancelled");

const MACHINE: &Machine = &Machine {
    name: "script",
    article: "A",
    initial: PENDING,
    is_early_initial: true,
    states: &[
        Standing::held(PENDING),
        Standing::ready(QUEUED, "script"),
        Standing::running(IN_PROGRESS, "script"),
        Standing::done(COMPLETED),
        Standing::failed(FAILED),
        Standing::failed(TIMED_OUT),
        Standing::cancelled(CANCELLED),
    ],
    edges: &[
        Edge::new(PENDING, Event::Queued, QUEUED),
        Edge::new(PENDING, Event::Cancelled, CANCELLED),
        Edge::new(QUEUED, Event::Started, IN_PROGRESS),
        Edge::new(QUEUED, Event::Failed, FAILED),
        Edge::new(QUEUED, Event::Cancelled, CANCELLED),
        Edge::new(IN_PROGRESS, Event::Succeeded, COMPLETED),
        Edge::new(IN_PROGRESS, Event::Failed, FAILED),
        Edge::new(IN_PROGRESS, Event::TimedOut, TIMED_OUT),
        Edge::new(IN_PROGRESS, Event::Stopped, FAILED),
        Edge::new(IN_PROGRESS, Event::Released, QUEUED),
        Edge::new(IN_PROGRESS, Event::Rescued, QUEUED),
        Edge::new(FAILED, Event::Retried, PENDING),
    ],
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_machine_is_sound() {
        SCRIPT.machine().check().unwrap();
    }

    #[test]
    fn a_script_can_be_cancelled_only_before_it_starts() {
        let cancel = |state| SCRIPT.next(state, Event::Cancelled);
        assert_eq!(cancel(PENDING), Ok(CANCELLED));
        assert_eq!(cancel(QUEUED), Ok(CANCELLED));
        for state in [IN_PROGRESS, COMPLETED, FAILED, TIMED_OUT, CANCELLED] {
            assert!(cancel(state).is_err(), "{state}");
        }
    }

    #[test]
    fn a_new_job_is_made_ready_by_being_queued() {
        assert_eq!(SCRIPT.path_to_ready().map(|edge| edge.to), Some(QUEUED));
    }
}
