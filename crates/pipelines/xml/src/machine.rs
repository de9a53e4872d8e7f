//! The xml pipeline's machine: its states, the steps between them, its lane.

use ode_job::{Edge, Event, Lane, Machine, Pipeline, Standing, State};

/// PDF to structured XML through a gateway and a named mapping.
pub const XML: Pipeline = Pipeline::new(MACHINE);

/// Queued jobs.
pub const LANE: Lane = Lane::new(MACHINE, "xml");

/// The file is stored, nothing is asked of a worker yet.
pub const UPLOADED: State = State::new("uploaded");
/// Waits for a worker.
pub const QUEUED: State = State::new("queued");
/// A worker converts it.
pub const PROCESSING: State = State::new("processing");
/// The XML is there.
pub const COMPLETE: State = State::new("complete");
/// It did not work; the error says why.
pub const FAILED: State = State::new("failed");

const MACHINE: &Machine = &Machine {
    name: "xml",
    article: "An",
    initial: UPLOADED,
    is_early_initial: false,
    states: &[
        Standing::held(UPLOADED),
        Standing::ready(QUEUED, "xml"),
        Standing::running(PROCESSING, "xml"),
        Standing::done(COMPLETE),
        Standing::failed(FAILED),
    ],
    edges: &[
        Edge::new(UPLOADED, Event::Queued, QUEUED),
        Edge::new(UPLOADED, Event::Failed, FAILED),
        Edge::new(UPLOADED, Event::Cancelled, FAILED),
        Edge::new(QUEUED, Event::Started, PROCESSING),
        Edge::new(QUEUED, Event::Failed, FAILED),
        Edge::new(QUEUED, Event::Cancelled, FAILED),
        Edge::new(PROCESSING, Event::Succeeded, COMPLETE),
        Edge::new(PROCESSING, Event::Failed, FAILED),
        Edge::new(PROCESSING, Event::TimedOut, FAILED),
        Edge::new(PROCESSING, Event::Stopped, FAILED),
        Edge::new(PROCESSING, Event::Released, QUEUED),
        Edge::new(PROCESSING, Event::Rescued, QUEUED),
        Edge::new(FAILED, Event::Retried, QUEUED),
    ],
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_machine_is_sound() {
        XML.machine().check().unwrap();
    }

    #[test]
    fn a_finished_job_refuses_everything_but_being_fetched_and_expiring() {
        for event in Event::ALL {
            let next = XML.next(COMPLETE, *event);
            match event {
                Event::Downloaded | Event::Expired => assert_eq!(next, Ok(COMPLETE)),
                _ => assert!(next.is_err(), "{event} was allowed"),
            }
        }
    }

    #[test]
    fn a_new_job_is_made_ready_by_being_queued() {
        assert_eq!(XML.path_to_ready().map(|edge| edge.to), Some(QUEUED));
    }
}
