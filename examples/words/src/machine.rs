//! The pipeline's machine: its states, the steps between them, its lane.

use ode_job::{Edge, Event, Lane, Machine, Pipeline, Standing, State};

pub(crate) const WORDS: Pipeline = Pipeline::new(MACHINE);

pub(crate) const LANE: Lane = Lane::new(MACHINE, "words");

const WAITING: State = State::new("waiting");
const COUNTING: State = State::new("counting");
const COUNTED: State = State::new("counted");
const FAILED: State = State::new("failed");

const MACHINE: &Machine = &Machine {
    name: "words",
    article: "A",
    initial: WAITING,
    is_early_initial: false,
    states: &[
        Standing::ready(WAITING, "words"),
        Standing::running(COUNTING, "words"),
        Standing::done(COUNTED),
        Standing::failed(FAILED),
    ],
    edges: &[
        Edge::new(WAITING, Event::Started, COUNTING),
        Edge::new(WAITING, Event::Failed, FAILED),
        Edge::new(WAITING, Event::Cancelled, FAILED),
        Edge::new(COUNTING, Event::Succeeded, COUNTED),
        Edge::new(COUNTING, Event::Failed, FAILED),
        Edge::new(COUNTING, Event::TimedOut, FAILED),
        Edge::new(COUNTING, Event::Stopped, FAILED),
        Edge::new(COUNTING, Event::Released, WAITING),
        Edge::new(COUNTING, Event::Rescued, WAITING),
        Edge::new(FAILED, Event::Retried, WAITING),
    ],
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_machine_is_sound() {
        WORDS.machine().check().unwrap();
    }
}
