//! Which state may follow which: a pipeline's machine as data, and pure functions over it.
//!
//! Every pipeline brings one [`Machine`]; the engine knows no other difference between pipelines. The databases
//! repeat the states in constraints made from the same tables, and `docs/state-machine.md` is checked against them.

use crate::state::{Event, Phase, State};
use std::cmp::Ordering;
use std::hash::{Hash, Hasher};

/// Makes a type with `as_str` print, parse and serialise as that name. `$known` lists the declared ones.
macro_rules! named_by_text {
    ($name:ident, $what:literal, $known:path) => {
        impl std::fmt::Debug for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.as_str())
            }
        }

        impl std::str::FromStr for $name {
            type Err = $crate::state::UnknownName;

            fn from_str(name: &str) -> Result<Self, Self::Err> {
                let known = $known();
                let found = known.iter().copied().find(|known| known.as_str() == name);
                let names = || known.iter().map(|known| known.as_str());
                found.ok_or_else(|| $crate::state::UnknownName::new($what, name, names()))
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let name = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
                name.parse().map_err(serde::de::Error::custom)
            }
        }
    };
}

pub(crate) use named_by_text;

/// Makes two values of a type equal by their names.
macro_rules! equal_by_name {
    ($($name:ident),+) => { $(
        impl PartialEq for $name {
            fn eq(&self, other: &Self) -> bool {
                self.as_str() == other.as_str()
            }
        }

        impl Eq for $name {}

        impl Hash for $name {
            fn hash<H: Hasher>(&self, state: &mut H) {
                self.as_str().hash(state);
            }
        }

        impl PartialOrd for $name {
            fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
                Some(self.cmp(other))
            }
        }
    )+ };
}

/// A pipeline's machine: its states and the steps between them.
#[derive(Debug)]
pub struct Machine {
    /// The pipeline's name.
    pub name: &'static str,
    /// The article before the name at the start of a sentence: names read letter by letter may begin with a vowel.
    pub article: &'static str,
    /// Where every job begins.
    pub initial: State,
    /// Whether a job that is asked for later stays in the initial state until then. Else it goes on to the state in
    /// which it waits for a worker, and is only not in line yet.
    pub is_early_initial: bool,
    /// Every state it knows.
    pub states: &'static [Standing],
    /// Every step it allows.
    pub edges: &'static [Edge],
}

/// What is true of a state: its phase, and the lane in which a job waits or runs.
#[derive(Debug, Clone, Copy)]
pub struct Standing {
    /// The state described.
    pub state: State,
    pub phase: Phase,
    /// The name of the lane a job waits or runs in, if any.
    pub lane: Option<&'static str>,
    /// Whether what a worker does in this state may have happened though nobody heard of it, and must not be given up
    /// then: such a job is looked up for as long as it takes, and its success is kept whatever else is lost.
    pub is_irreversible: bool,
}

impl Standing {
    const fn new(state: State, phase: Phase, lane: Option<&'static str>) -> Self {
        Standing { state, phase, lane, is_irreversible: false }
    }

    /// Stored, and waiting for something other than a worker.
    pub const fn held(state: State) -> Self {
        Self::new(state, Phase::Held, None)
    }

    /// Waiting in a lane.
    pub const fn ready(state: State, lane: &'static str) -> Self {
        Self::new(state, Phase::Ready, Some(lane))
    }

    /// Held by a worker of a lane.
    pub const fn running(state: State, lane: &'static str) -> Self {
        Self::new(state, Phase::Running, Some(lane))
    }

    /// Ended well.
    pub const fn done(state: State) -> Self {
        Self::new(state, Phase::Done, None)
    }

    /// Ended badly.
    pub const fn failed(state: State) -> Self {
        Self::new(state, Phase::Failed, None)
    }

    /// Called off.
    pub const fn cancelled(state: State) -> Self {
        Self::new(state, Phase::Cancelled, None)
    }

    /// The same for work that cannot be undone.
    pub const fn irreversible(self) -> Self {
        Standing { is_irreversible: true, ..self }
    }
}

/// One allowed step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Edge {
    /// Before.
    pub from: State,
    pub event: Event,
    /// After.
    pub to: State,
}

impl Edge {
    /// The step from one state to another.
    pub const fn new(from: State, event: Event, to: State) -> Self {
        Edge { from, event, to }
    }
}

/// The kind of work a job asks for: a handle to its machine.
#[derive(Clone, Copy)]
pub struct Pipeline(&'static Machine);

/// A line of waiting jobs that one kind of handler serves. A pipeline with several stages has several.
#[derive(Clone, Copy)]
pub struct Lane {
    pipeline: Pipeline,
    name: &'static str,
    ready: State,
    running: State,
}

equal_by_name!(Pipeline, Lane);
named_by_text!(Pipeline, "pipeline", crate::machines::pipelines);
named_by_text!(Lane, "lane", crate::machines::lanes);

/// In the order in which they are declared.
impl Ord for Pipeline {
    fn cmp(&self, other: &Self) -> Ordering {
        let place = |pipeline: &Self| crate::machines::pipelines().iter().position(|known| known == pipeline);
        let key = |pipeline: &Self| (place(pipeline).unwrap_or(usize::MAX), pipeline.as_str());
        key(self).cmp(&key(other))
    }
}

/// In the order of the pipelines and, within one, of its states.
impl Ord for Lane {
    fn cmp(&self, other: &Self) -> Ordering {
        let place = |lane: &Self| {
            lane.pipeline.machine().states.iter().position(|standing| standing.state == lane.ready)
        };
        let key = |lane: &Self| (lane.pipeline, place(lane));
        key(self).cmp(&key(other)).then_with(|| self.name.cmp(other.name))
    }
}

/// A step that the machine does not allow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{} {pipeline} job that is {from} cannot be {}.", pipeline.machine().article, event.done())]
pub struct Refused {
    pub pipeline: Pipeline,
    pub from: State,
    /// What was asked of it.
    pub event: Event,
}

impl Pipeline {
    /// The pipeline of this machine.
    pub const fn new(machine: &'static Machine) -> Self {
        Pipeline(machine)
    }

    pub const fn as_str(self) -> &'static str {
        self.0.name
    }

    /// This pipeline's machine.
    pub const fn machine(self) -> &'static Machine {
        self.0
    }

    /// The state that follows `from` when `event` happens, or a refusal.
    pub fn next(self, from: State, event: Event) -> Result<State, Refused> {
        // Fetching a result and removing files change no state; both concern jobs that have ended.
        if matches!(event, Event::Downloaded | Event::Expired) && self.is_terminal(from) {
            return Ok(from);
        }
        let edges = self.0.edges;
        let found = edges.iter().find(|edge| edge.from == from && edge.event == event);
        found.map(|edge| edge.to).ok_or(Refused { pipeline: self, from, event })
    }

    /// What is true of `state`, if this pipeline knows it.
    pub fn standing(self, state: State) -> Option<&'static Standing> {
        self.0.states.iter().find(|standing| standing.state == state)
    }

    /// The phase of `state`; a state of another pipeline has none.
    pub fn phase(self, state: State) -> Option<Phase> {
        self.standing(state).map(|standing| standing.phase)
    }

    /// The lane `state` waits or runs in.
    pub fn lane(self, state: State) -> Option<Lane> {
        let name = self.standing(state)?.lane?;
        Lane::find(self, name)
    }

    /// The pipeline's lanes, in the order of its states.
    pub fn lanes(self) -> impl Iterator<Item = Lane> {
        let ready = self.0.states.iter().filter(|standing| matches!(standing.phase, Phase::Ready));
        ready.filter_map(move |standing| Lane::find(self, standing.lane?))
    }

    /// Whether a job in `state` has ended. A failed one has too, though a person may retry it.
    pub fn is_terminal(self, state: State) -> bool {
        matches!(self.phase(state), Some(Phase::Done | Phase::Failed | Phase::Cancelled))
    }

    /// Whether a job in `state` may be doing what cannot be undone ([`Standing::is_irreversible`]).
    pub fn is_irreversible(self, state: State) -> bool {
        self.standing(state).is_some_and(|standing| standing.is_irreversible)
    }

    /// The step that makes a new job ready for a worker: none where it is born ready.
    pub fn path_to_ready(self) -> Option<&'static Edge> {
        let Machine { initial, edges, .. } = self.0;
        edges.iter().find(|edge| edge.from == *initial && edge.event == Event::Queued)
    }
}

impl Lane {
    /// The lane of this name, for constants of the pipelines. Does not compile where the machine has no such lane.
    pub const fn new(machine: &'static Machine, name: &'static str) -> Self {
        match Self::find(Pipeline(machine), name) {
            Some(lane) => lane,
            None => panic!("the machine has no state that is ready, or none that runs, in this lane"),
        }
    }

    const fn find(pipeline: Pipeline, name: &'static str) -> Option<Self> {
        let (mut ready, mut running) = (None, None);
        let mut states = pipeline.0.states;
        while let [standing, rest @ ..] = states {
            if let Some(lane) = standing.lane
                && is_same(lane, name)
            {
                match standing.phase {
                    Phase::Ready => ready = Some(standing.state),
                    Phase::Running => running = Some(standing.state),
                    Phase::Held | Phase::Done | Phase::Failed | Phase::Cancelled => {}
                }
            }
            states = rest;
        }
        match (ready, running) {
            (Some(ready), Some(running)) => Some(Lane { pipeline, name, ready, running }),
            _ => None,
        }
    }

    pub const fn as_str(self) -> &'static str {
        self.name
    }

    /// The pipeline this lane belongs to.
    pub const fn pipeline(self) -> Pipeline {
        self.pipeline
    }

    /// The state in which a job waits in this lane.
    pub const fn ready_state(self) -> State {
        self.ready
    }

    /// The state in which a worker holds a job of this lane.
    pub const fn running_state(self) -> State {
        self.running
    }
}

/// Whether two texts are equal; `==` cannot be used in constants.
const fn is_same(one: &str, other: &str) -> bool {
    let (mut one, mut other) = (one.as_bytes(), other.as_bytes());
    loop {
        match (one, other) {
            ([], []) => return true,
            ([a, rest_of_one @ ..], [b, rest_of_other @ ..]) if *a == *b => {
                (one, other) = (rest_of_one, rest_of_other);
            }
            _ => return false,
        }
    }
}

/// A rule that a machine breaks.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("The machine of the pipeline {pipeline} is not sound: {reason}.")]
pub struct Unsound {
    pipeline: &'static str,
    reason: String,
}

impl Machine {
    /// Checks the rules that the engine relies on.
    pub fn check(&'static self) -> Result<(), Unsound> {
        let rules = [
            Self::check_names,
            Self::check_ends_of_edges,
            Self::check_single_outcomes,
            Self::check_ways,
            Self::check_starts,
            Self::check_lanes,
        ];
        let pipeline = self.name;
        rules.iter().try_for_each(|rule| rule(self)).map_err(|reason| Unsound { pipeline, reason })
    }

    /// Names are written into constraints of the databases, addresses and pages.
    fn check_names(&'static self) -> Result<(), String> {
        let lanes = self.states.iter().filter_map(|standing| standing.lane);
        let states = self.states.iter().map(|standing| standing.state.as_str());
        let is_plain = |name: &str| {
            !name.is_empty()
                && name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b"_.".contains(&b))
        };
        for name in states.chain(lanes).chain([self.name]) {
            require(is_plain(name), || {
                format!("the name \"{name}\" has something other than small letters, digits, _ and . in it")
            })?;
        }
        for (index, standing) in self.states.iter().enumerate() {
            let is_twice = self.states[..index].iter().any(|other| other.state == standing.state);
            require(!is_twice, || format!("it describes {} twice", standing.state))?;
        }
        Ok(())
    }

    fn check_ends_of_edges(&'static self) -> Result<(), String> {
        let pipeline = Pipeline(self);
        let ends = self.edges.iter().flat_map(|edge| [edge.from, edge.to]).chain([self.initial]);
        for state in ends {
            require(pipeline.standing(state).is_some(), || format!("it does not describe {state}"))?;
        }
        Ok(())
    }

    fn check_single_outcomes(&'static self) -> Result<(), String> {
        for (index, edge) in self.edges.iter().enumerate() {
            let mut others = self.edges[..index].iter();
            let is_twice = others.any(|other| other.from == edge.from && other.event == edge.event);
            require(!is_twice, || format!("{} from {} is allowed twice", edge.event, edge.from))?;
        }
        Ok(())
    }

    /// Every state can be reached. One that ended well or was cancelled is not left, a failed one only by a retry, and
    /// every other can be left.
    fn check_ways(&'static self) -> Result<(), String> {
        for Standing { state, phase, .. } in self.states {
            let is_reached = *state == self.initial || self.edges.iter().any(|edge| edge.to == *state);
            require(is_reached, || format!("nothing leads to {state}"))?;
            let mut ways = self.edges.iter().filter(|edge| edge.from == *state);
            match phase {
                Phase::Done | Phase::Cancelled => {
                    require(ways.next().is_none(), || format!("{state} is an end and is left"))?;
                }
                Phase::Failed => {
                    let is_retry = ways.all(|edge| edge.event == Event::Retried);
                    require(is_retry, || format!("{state} is left by something other than a retry"))?;
                }
                Phase::Held | Phase::Ready | Phase::Running => {
                    require(ways.next().is_some(), || format!("{state} is never left"))?;
                }
            }
        }
        let phase = Pipeline(self).phase(self.initial);
        require(matches!(phase, Some(Phase::Held | Phase::Ready)), || {
            format!("jobs begin as {}, which is neither held nor ready", self.initial)
        })?;
        let is_held = phase == Some(Phase::Held);
        require(is_held || !self.is_early_initial, || format!("{} does not hold early jobs", self.initial))?;
        require(is_held == Pipeline(self).path_to_ready().is_some(), || {
            format!("no step leads from {} to a ready state, or one too many", self.initial)
        })
    }

    /// Only a start leads to a running state, and only from the ready state of the same lane.
    fn check_starts(&'static self) -> Result<(), String> {
        let pipeline = Pipeline(self);
        for edge @ Edge { from, event, to } in self.edges {
            let is_start = *event == Event::Started;
            require((pipeline.phase(*to) == Some(Phase::Running)) == is_start, || {
                format!("{edge:?} leads to a running state without being a start, or the reverse")
            })?;
            let is_from_ready =
                pipeline.phase(*from) == Some(Phase::Ready) && pipeline.lane(*from) == pipeline.lane(*to);
            require(!is_start || is_from_ready, || format!("{edge:?} does not start from a ready state"))?;
        }
        Ok(())
    }

    /// A lane has one ready and one running state, which a start and a release join.
    fn check_lanes(&'static self) -> Result<(), String> {
        let pipeline = Pipeline(self);
        for Standing { state, phase, lane, .. } in self.states {
            let has_lane = matches!(phase, Phase::Ready | Phase::Running);
            require(lane.is_some() == has_lane, || {
                format!("{state} must have a lane if it is ready or running, and only then")
            })?;
            let Some(name) = lane else { continue };
            let is_ours =
                name.strip_prefix(self.name).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'));
            require(is_ours, || format!("the lane {name} is not named after the pipeline"))?;
            let mut others = self.states.iter().filter(|other| other.lane == *lane && other.phase == *phase);
            require(others.by_ref().count() == 1, || format!("the lane {name} has two {phase} states"))?;
            let lane = pipeline.lane(*state);
            let lane = lane.ok_or_else(|| format!("the lane {name} lacks a ready or a running state"))?;
            let is_joined = pipeline.next(lane.ready, Event::Started) == Ok(lane.running)
                && pipeline.next(lane.running, Event::Released) == Ok(lane.ready);
            require(is_joined, || {
                format!("a start and a release do not join the states of the lane {name}")
            })?;
        }
        Ok(())
    }
}

fn require(holds: bool, reason: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(reason()) }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) const STORED: State = State::new("stored");
    pub(crate) const WAITING: State = State::new("waiting");
    pub(crate) const WORKING: State = State::new("working");
    pub(crate) const MADE: State = State::new("made");
    pub(crate) const BROKEN: State = State::new("broken");
    pub(crate) const LATE: State = State::new("late");
    pub(crate) const SENDING: State = State::new("sending");
    pub(crate) const SENT: State = State::new("sent");
    pub(crate) const CALLED_OFF: State = State::new("called_off");

    pub(crate) const PLAIN: Pipeline = Pipeline::new(PLAIN_MACHINE);
    pub(crate) const STAGED: Pipeline = Pipeline::new(STAGED_MACHINE);

    /// One stage, begun held; what ran out of time stays so.
    const PLAIN_MACHINE: &Machine = &Machine {
        name: "plain",
        article: "A",
        initial: STORED,
        is_early_initial: true,
        states: &[
            Standing::held(STORED),
            Standing::ready(WAITING, "plain"),
            Standing::running(WORKING, "plain"),
            Standing::done(MADE),
            Standing::failed(BROKEN),
            Standing::failed(LATE),
            Standing::cancelled(CALLED_OFF),
        ],
        edges: &[
            Edge::new(STORED, Event::Queued, WAITING),
            Edge::new(STORED, Event::Cancelled, CALLED_OFF),
            Edge::new(WAITING, Event::Started, WORKING),
            Edge::new(WORKING, Event::Succeeded, MADE),
            Edge::new(WORKING, Event::Failed, BROKEN),
            Edge::new(WORKING, Event::TimedOut, LATE),
            Edge::new(WORKING, Event::Stopped, BROKEN),
            Edge::new(WORKING, Event::Released, WAITING),
            Edge::new(WORKING, Event::Rescued, WAITING),
            Edge::new(BROKEN, Event::Retried, WAITING),
        ],
    };

    /// Two stages, begun ready, of which the second cannot be undone.
    const STAGED_MACHINE: &Machine = &Machine {
        name: "staged",
        article: "A",
        initial: WAITING,
        is_early_initial: false,
        states: &[
            Standing::ready(WAITING, "staged.make"),
            Standing::running(WORKING, "staged.make"),
            Standing::ready(MADE, "staged.send"),
            Standing::running(SENDING, "staged.send").irreversible(),
            Standing::done(SENT),
            Standing::failed(BROKEN),
        ],
        edges: &[
            Edge::new(WAITING, Event::Started, WORKING),
            Edge::new(WORKING, Event::Succeeded, MADE),
            Edge::new(WORKING, Event::Failed, BROKEN),
            Edge::new(WORKING, Event::Released, WAITING),
            Edge::new(WORKING, Event::Rescued, WAITING),
            Edge::new(MADE, Event::Started, SENDING),
            Edge::new(SENDING, Event::Succeeded, SENT),
            Edge::new(SENDING, Event::Failed, BROKEN),
            Edge::new(SENDING, Event::Released, MADE),
            Edge::new(SENDING, Event::Rescued, MADE),
            Edge::new(BROKEN, Event::Retried, WAITING),
        ],
    };

    #[test]
    fn sound_machines_pass() {
        PLAIN_MACHINE.check().unwrap();
        STAGED_MACHINE.check().unwrap();
    }

    /// Checks a copy of the plain machine with one thing changed.
    fn check(change: impl FnOnce(&mut Machine), expected: &str) {
        let mut machine = Machine { ..*PLAIN_MACHINE };
        change(&mut machine);
        let machine: &'static Machine = Box::leak(Box::new(machine));
        let error = machine.check().unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }

    fn with_edge(edge: Edge) -> &'static [Edge] {
        [PLAIN_MACHINE.edges, &[edge]].concat().leak()
    }

    fn with_standing(standing: Standing) -> &'static [Standing] {
        [PLAIN_MACHINE.states, &[standing]].concat().leak()
    }

    #[test]
    fn every_rule_refuses_what_breaks_it() {
        let lost = State::new("lost");
        check(|machine| machine.name = "Plain", "the name \"Plain\" has");
        check(|machine| machine.name = "", "the name \"\" has");
        check(|machine| machine.states = with_standing(Standing::held(STORED)), "it describes stored twice");
        check(|machine| machine.initial = lost, "it does not describe lost");
        check(
            |machine| machine.edges = with_edge(Edge::new(BROKEN, Event::Failed, lost)),
            "not describe lost",
        );
        check(|machine| machine.states = with_standing(Standing::held(lost)), "nothing leads to lost");
        let twice = Edge::new(WORKING, Event::Failed, LATE);
        check(|machine| machine.edges = with_edge(twice), "failed from working is allowed twice");
        check(
            |machine| machine.edges = with_edge(Edge::new(MADE, Event::Retried, WAITING)),
            "made is an end",
        );
        let odd = Edge::new(LATE, Event::Queued, WAITING);
        check(|machine| machine.edges = with_edge(odd), "late is left by something other than a retry");
        check(|machine| machine.initial = WAITING, "nothing leads to stored");
        check(|machine| machine.edges = &PLAIN_MACHINE.edges[1..], "no step leads from stored");
        let started = Edge::new(STORED, Event::Started, WORKING);
        check(|machine| machine.edges = with_edge(started), "does not start from a ready state");
        let unstarted = Edge::new(STORED, Event::Advanced, WORKING);
        check(|machine| machine.edges = with_edge(unstarted), "without being a start");
        check(|machine| machine.name = "other", "the lane plain is not named after the pipeline");
    }

    #[test]
    fn an_ended_job_refuses_everything_but_being_fetched_and_expiring() {
        for event in Event::ALL {
            let next = PLAIN.next(MADE, *event);
            match event {
                Event::Downloaded | Event::Expired => assert_eq!(next, Ok(MADE)),
                _ => assert!(next.is_err(), "{event} was allowed"),
            }
        }
    }

    #[test]
    fn a_refusal_says_what_was_asked_of_which_job() {
        let refused = PLAIN.next(STORED, Event::Retried).unwrap_err();
        assert_eq!(refused.to_string(), "A plain job that is stored cannot be retried.");
    }

    #[test]
    fn lanes_are_made_of_two_states() {
        let lanes: Vec<_> = STAGED.lanes().collect();
        let shown: Vec<_> = lanes
            .iter()
            .map(|lane| (lane.as_str(), lane.pipeline(), lane.ready_state(), lane.running_state()))
            .collect();
        assert_eq!(
            shown,
            [("staged.make", STAGED, WAITING, WORKING), ("staged.send", STAGED, MADE, SENDING)]
        );
        assert_eq!(STAGED.lane(SENDING), Some(lanes[1]));
        assert_eq!(STAGED.lane(SENT), None);
        const SEND: Lane = Lane::new(STAGED_MACHINE, "staged.send");
        assert_eq!(SEND, lanes[1]);
    }

    #[test]
    fn jobs_are_made_ready_by_the_step_out_of_their_first_state() {
        assert_eq!(PLAIN.path_to_ready().map(|edge| edge.to), Some(WAITING));
        assert_eq!(STAGED.path_to_ready(), None);
    }
}
