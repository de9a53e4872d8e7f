//! Which state may follow which: the four state machines as data, and one pure function over them.
//!
//! This is the only place that says so. The database repeats the states in CHECK constraints and refuses
//! what is not here by conditional updates; `docs/state-machine.md` is checked against these tables.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// Declares a fieldless enum whose variants have one stable name each, used in tables, JSON, logs and pages.
macro_rules! named {
    ($(#[$meta:meta])* $name:ident, $what:literal { $($(#[$vmeta:meta])* $variant:ident = $text:literal,)+ }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        pub enum $name { $($(#[$vmeta])* #[serde(rename = $text)] $variant,)+ }

        impl $name {
            /// Every variant, in declaration order.
            pub const ALL: &[Self] = &[$(Self::$variant),+];

            /// The stable name.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $text,)+ }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(self.as_str())
            }
        }

        impl FromStr for $name {
            type Err = UnknownName;

            fn from_str(name: &str) -> Result<Self, UnknownName> {
                let known = || Self::ALL.iter().map(|known| known.as_str());
                let found = Self::ALL.iter().copied().find(|known| known.as_str() == name);
                found.ok_or_else(|| UnknownName::new($what, name, known()))
            }
        }
    };
}

pub(crate) use named;

/// A mistyped name is shown back to the person, but not more of it than fits on a line.
const NAME_SHOWN_MAX: usize = 60;

/// A name that is none of ours.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("There is no {what} called \"{name}\". Use one of: {known}.")]
pub struct UnknownName {
    what: &'static str,
    name: String,
    known: String,
}

impl UnknownName {
    pub(crate) fn new(what: &'static str, name: &str, known: impl Iterator<Item = &'static str>) -> Self {
        UnknownName {
            what,
            name: name.chars().take(NAME_SHOWN_MAX).collect(),
            known: known.collect::<Vec<_>>().join(", "),
        }
    }
}

named! {
    /// The kind of work a job asks for.
    Pipeline, "pipeline" {
        /// PDF to structured XML through a gateway and a named mapping.
        Xml = "xml",
        /// PDF to faithful, selectable HTML with its assets.
        Html = "html",
        /// A frozen map to a print-ready PNG, then to one order.
        Print = "print",
        /// A supervised browser automation.
        Script = "script",
    }
}

named! {
    /// Where a job stands, in its pipeline's own words.
    State, "state" {
        /// xml: the file is stored, nothing is asked of a worker yet.
        Uploaded = "uploaded",
        /// xml, script: waits for a worker.
        Queued = "queued",
        /// xml, html: a worker holds it.
        Processing = "processing",
        /// xml: the XML is there.
        Complete = "complete",
        /// xml, html, script: it did not work; the error says why.
        Failed = "failed",
        /// html: waits for a worker. script: stored, not yet eligible.
        Pending = "pending",
        /// html, script: the result is there.
        Completed = "completed",
        /// print: waits for its PNG.
        PendingExport = "pending_export",
        /// print: a worker renders the PNG.
        Exporting = "exporting",
        /// print: the PNG could not be rendered.
        ExportFailed = "export_failed",
        /// print: the PNG is there.
        ExportComplete = "export_complete",
        /// print: a worker places the order.
        Ordering = "ordering",
        /// print: the order could not be placed.
        OrderFailed = "order_failed",
        /// print: the provider has the order, under a recorded id.
        Ordered = "ordered",
        /// print: the provider confirmed delivery.
        Fulfilled = "fulfilled",
        /// script: a worker runs it.
        InProgress = "in_progress",
        /// script: it ran longer than it may.
        TimedOut = "timed_out",
        /// script: called off before it started.
        Cancelled = "cancelled",
    }
}

named! {
    /// Where a job stands, in the same words for every pipeline.
    Phase, "phase" {
        /// Stored, not yet (or no longer) waiting for a worker.
        Held = "held",
        /// Waits for a worker.
        Ready = "ready",
        /// A worker holds a lease on it.
        Running = "running",
        /// Ended well.
        Done = "done",
        /// Ended badly; a person may retry it.
        Failed = "failed",
        /// Called off before it started.
        Cancelled = "cancelled",
    }
}

named! {
    /// A line of waiting jobs that one kind of handler serves. Print has two, one for each stage.
    Lane, "lane" {
        /// Queued xml jobs.
        Xml = "xml",
        /// Pending html jobs.
        Html = "html",
        /// Maps to be rendered.
        PrintExport = "print.export",
        /// Rendered maps to be ordered.
        PrintOrder = "print.order",
        /// Queued scripts.
        Script = "script",
    }
}

named! {
    /// What happened to a job. The names are those of its history.
    Event, "event" {
        /// The job was accepted.
        Created = "created",
        /// It became eligible.
        Queued = "queued",
        /// A worker took it.
        Started = "processing",
        /// The attempt succeeded.
        Succeeded = "complete",
        /// The attempt failed, or the job was given up before one.
        Failed = "failed",
        /// The attempt ran out of time.
        TimedOut = "timed_out",
        /// It will be tried again: by policy, or because a person asked.
        Retried = "retry",
        /// It was called off before it started.
        Cancelled = "cancelled",
        /// A person ended it while it ran.
        Stopped = "stopped",
        /// Its worker handed it back unburned while shutting down.
        Released = "released",
        /// Its worker was lost; the attempt counts.
        Rescued = "rescued",
        /// The next stage was asked for.
        Advanced = "advanced",
        /// The provider confirmed delivery.
        Delivered = "delivered",
        /// Its result was fetched.
        Downloaded = "downloaded",
        /// Retention removed its files.
        Expired = "expired",
    }
}

impl Event {
    /// What was done to the job, as a sentence says it: the names in histories are not all of that form.
    const fn done(self) -> &'static str {
        match self {
            Event::Started => "started",
            Event::Succeeded => "completed",
            Event::TimedOut => "timed out",
            Event::Retried => "retried",
            Event::Expired => "removed",
            Event::Created
            | Event::Queued
            | Event::Failed
            | Event::Cancelled
            | Event::Stopped
            | Event::Released
            | Event::Rescued
            | Event::Advanced
            | Event::Delivered
            | Event::Downloaded => self.as_str(),
        }
    }
}

/// What is true of a state: its phase, and the lane in which it waits or runs.
#[derive(Debug, Clone, Copy)]
pub struct Standing {
    /// The state described.
    pub state: State,
    /// Its phase.
    pub phase: Phase,
    /// The lane it waits or runs in, if any.
    pub lane: Option<Lane>,
}

/// One allowed step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Edge {
    /// Before.
    pub from: State,
    /// What happened.
    pub event: Event,
    /// After.
    pub to: State,
}

/// One pipeline's machine.
#[derive(Debug, Clone, Copy)]
pub struct Machine {
    /// Whose machine it is.
    pub pipeline: Pipeline,
    /// Where every job begins.
    pub initial: State,
    /// Every state it knows.
    pub states: &'static [Standing],
    /// Every step it allows.
    pub edges: &'static [Edge],
}

const fn at(state: State, phase: Phase, lane: Option<Lane>) -> Standing {
    Standing { state, phase, lane }
}

const fn edge(from: State, event: Event, to: State) -> Edge {
    Edge { from, event, to }
}

use Event as E;
use Phase as P;
use State as S;

const XML: Machine = Machine {
    pipeline: Pipeline::Xml,
    initial: S::Uploaded,
    states: &[
        at(S::Uploaded, P::Held, None),
        at(S::Queued, P::Ready, Some(Lane::Xml)),
        at(S::Processing, P::Running, Some(Lane::Xml)),
        at(S::Complete, P::Done, None),
        at(S::Failed, P::Failed, None),
    ],
    edges: &[
        edge(S::Uploaded, E::Queued, S::Queued),
        edge(S::Uploaded, E::Failed, S::Failed),
        edge(S::Uploaded, E::Cancelled, S::Failed),
        edge(S::Queued, E::Started, S::Processing),
        edge(S::Queued, E::Failed, S::Failed),
        edge(S::Queued, E::Cancelled, S::Failed),
        edge(S::Processing, E::Succeeded, S::Complete),
        edge(S::Processing, E::Failed, S::Failed),
        edge(S::Processing, E::TimedOut, S::Failed),
        edge(S::Processing, E::Stopped, S::Failed),
        edge(S::Processing, E::Released, S::Queued),
        edge(S::Processing, E::Rescued, S::Queued),
        edge(S::Failed, E::Retried, S::Queued),
    ],
};

const HTML: Machine = Machine {
    pipeline: Pipeline::Html,
    initial: S::Pending,
    states: &[
        at(S::Pending, P::Ready, Some(Lane::Html)),
        at(S::Processing, P::Running, Some(Lane::Html)),
        at(S::Completed, P::Done, None),
        at(S::Failed, P::Failed, None),
    ],
    edges: &[
        edge(S::Pending, E::Started, S::Processing),
        edge(S::Pending, E::Failed, S::Failed),
        edge(S::Pending, E::Cancelled, S::Failed),
        edge(S::Processing, E::Succeeded, S::Completed),
        edge(S::Processing, E::Failed, S::Failed),
        edge(S::Processing, E::TimedOut, S::Failed),
        edge(S::Processing, E::Stopped, S::Failed),
        edge(S::Processing, E::Released, S::Pending),
        edge(S::Processing, E::Rescued, S::Pending),
        edge(S::Failed, E::Retried, S::Pending),
    ],
};

const PRINT: Machine = Machine {
    pipeline: Pipeline::Print,
    initial: S::PendingExport,
    states: &[
        at(S::PendingExport, P::Ready, Some(Lane::PrintExport)),
        at(S::Exporting, P::Running, Some(Lane::PrintExport)),
        at(S::ExportFailed, P::Failed, None),
        // Rests here until an order is asked for: only `Advanced` puts it in line for the second stage.
        at(S::ExportComplete, P::Ready, Some(Lane::PrintOrder)),
        at(S::Ordering, P::Running, Some(Lane::PrintOrder)),
        at(S::OrderFailed, P::Failed, None),
        at(S::Ordered, P::Held, None),
        at(S::Fulfilled, P::Done, None),
    ],
    edges: &[
        edge(S::PendingExport, E::Started, S::Exporting),
        edge(S::PendingExport, E::Failed, S::ExportFailed),
        edge(S::PendingExport, E::Cancelled, S::ExportFailed),
        edge(S::Exporting, E::Succeeded, S::ExportComplete),
        edge(S::Exporting, E::Failed, S::ExportFailed),
        edge(S::Exporting, E::TimedOut, S::ExportFailed),
        edge(S::Exporting, E::Stopped, S::ExportFailed),
        edge(S::Exporting, E::Released, S::PendingExport),
        edge(S::Exporting, E::Rescued, S::PendingExport),
        edge(S::ExportFailed, E::Retried, S::PendingExport),
        edge(S::ExportComplete, E::Advanced, S::ExportComplete),
        edge(S::ExportComplete, E::Started, S::Ordering),
        edge(S::Ordering, E::Succeeded, S::Ordered),
        edge(S::Ordering, E::Failed, S::OrderFailed),
        edge(S::Ordering, E::TimedOut, S::OrderFailed),
        edge(S::Ordering, E::Stopped, S::OrderFailed),
        edge(S::Ordering, E::Released, S::ExportComplete),
        edge(S::Ordering, E::Rescued, S::ExportComplete),
        edge(S::OrderFailed, E::Retried, S::ExportComplete),
        edge(S::Ordered, E::Delivered, S::Fulfilled),
    ],
};

const SCRIPT: Machine = Machine {
    pipeline: Pipeline::Script,
    initial: S::Pending,
    states: &[
        at(S::Pending, P::Held, None),
        at(S::Queued, P::Ready, Some(Lane::Script)),
        at(S::InProgress, P::Running, Some(Lane::Script)),
        at(S::Completed, P::Done, None),
        at(S::Failed, P::Failed, None),
        at(S::TimedOut, P::Failed, None),
        at(S::Cancelled, P::Cancelled, None),
    ],
    edges: &[
        edge(S::Pending, E::Queued, S::Queued),
        edge(S::Pending, E::Cancelled, S::Cancelled),
        edge(S::Queued, E::Started, S::InProgress),
        edge(S::Queued, E::Failed, S::Failed),
        edge(S::Queued, E::Cancelled, S::Cancelled),
        edge(S::InProgress, E::Succeeded, S::Completed),
        edge(S::InProgress, E::Failed, S::Failed),
        edge(S::InProgress, E::TimedOut, S::TimedOut),
        edge(S::InProgress, E::Stopped, S::Failed),
        edge(S::InProgress, E::Released, S::Queued),
        edge(S::InProgress, E::Rescued, S::Queued),
        edge(S::Failed, E::Retried, S::Pending),
    ],
};

/// A step that the machine does not allow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{} {pipeline} job that is {from} cannot be {}.", pipeline.article(), event.done())]
pub struct Refused {
    /// The pipeline asked.
    pub pipeline: Pipeline,
    /// Where the job stood.
    pub from: State,
    /// What was asked of it.
    pub event: Event,
}

impl Pipeline {
    /// What stands before its name: `xml` and `html` are read letter by letter, beginning with a vowel.
    const fn article(self) -> &'static str {
        match self {
            Pipeline::Xml | Pipeline::Html => "An",
            Pipeline::Print | Pipeline::Script => "A",
        }
    }

    /// This pipeline's machine.
    pub const fn machine(self) -> &'static Machine {
        match self {
            Pipeline::Xml => &XML,
            Pipeline::Html => &HTML,
            Pipeline::Print => &PRINT,
            Pipeline::Script => &SCRIPT,
        }
    }

    /// The state that follows `from` when `event` happens, or a refusal.
    pub fn next(self, from: State, event: Event) -> Result<State, Refused> {
        // Fetching a result and removing files change no state; both concern jobs that have ended.
        if matches!(event, Event::Downloaded | Event::Expired) && self.is_terminal(from) {
            return Ok(from);
        }
        let edges = self.machine().edges;
        let found = edges.iter().find(|edge| edge.from == from && edge.event == event);
        found.map(|edge| edge.to).ok_or(Refused { pipeline: self, from, event })
    }

    /// What is true of `state`, if this pipeline knows it.
    pub fn standing(self, state: State) -> Option<&'static Standing> {
        self.machine().states.iter().find(|standing| standing.state == state)
    }

    /// The phase of `state`; a state of another pipeline has none.
    pub fn phase(self, state: State) -> Option<Phase> {
        self.standing(state).map(|standing| standing.phase)
    }

    /// The lane `state` waits or runs in.
    pub fn lane(self, state: State) -> Option<Lane> {
        self.standing(state).and_then(|standing| standing.lane)
    }

    /// Whether a job in `state` has ended. A failed one has too, though a person may retry it.
    pub fn is_terminal(self, state: State) -> bool {
        matches!(self.phase(state), Some(Phase::Done | Phase::Failed | Phase::Cancelled))
    }

    /// The steps that make a new job ready for a worker: none where it is born ready.
    pub fn path_to_ready(self) -> &'static [Edge] {
        let first = &self.machine().edges[..1];
        if first[0].event == Event::Queued { first } else { &[] }
    }
}

impl Lane {
    /// The pipeline this lane belongs to.
    pub const fn pipeline(self) -> Pipeline {
        match self {
            Lane::Xml => Pipeline::Xml,
            Lane::Html => Pipeline::Html,
            Lane::PrintExport | Lane::PrintOrder => Pipeline::Print,
            Lane::Script => Pipeline::Script,
        }
    }

    /// The state in which a job waits in this lane.
    pub const fn ready_state(self) -> State {
        match self {
            Lane::Xml | Lane::Script => State::Queued,
            Lane::Html => State::Pending,
            Lane::PrintExport => State::PendingExport,
            Lane::PrintOrder => State::ExportComplete,
        }
    }

    /// The state in which a worker holds a job of this lane.
    pub const fn running_state(self) -> State {
        match self {
            Lane::Xml | Lane::Html => State::Processing,
            Lane::PrintExport => State::Exporting,
            Lane::PrintOrder => State::Ordering,
            Lane::Script => State::InProgress,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_edge_joins_states_the_pipeline_knows() {
        for pipeline in Pipeline::ALL {
            for edge in pipeline.machine().edges {
                assert!(pipeline.standing(edge.from).is_some(), "{pipeline}: {edge:?}");
                assert!(pipeline.standing(edge.to).is_some(), "{pipeline}: {edge:?}");
            }
        }
    }

    #[test]
    fn every_pair_of_state_and_event_has_at_most_one_outcome() {
        for pipeline in Pipeline::ALL {
            let edges = pipeline.machine().edges;
            for (index, edge) in edges.iter().enumerate() {
                let twin =
                    edges[..index].iter().find(|other| other.from == edge.from && other.event == edge.event);
                assert_eq!(twin, None, "{pipeline} allows {edge:?} twice");
            }
        }
    }

    #[test]
    fn every_state_can_be_reached_and_every_one_but_success_can_be_left() {
        for pipeline in Pipeline::ALL {
            let machine = pipeline.machine();
            for standing in machine.states {
                let state = standing.state;
                let reached = state == machine.initial || machine.edges.iter().any(|edge| edge.to == state);
                assert!(reached, "{pipeline}: nothing leads to {state}");
                let left = machine.edges.iter().any(|edge| edge.from == state);
                let is_final =
                    matches!(state, S::Complete | S::Completed | S::Fulfilled | S::TimedOut | S::Cancelled);
                assert_eq!(left, !is_final, "{pipeline}: {state}");
            }
        }
    }

    #[test]
    fn only_a_start_leads_to_running_and_only_from_ready() {
        for pipeline in Pipeline::ALL {
            for edge in pipeline.machine().edges {
                let leads_to_running = pipeline.phase(edge.to) == Some(Phase::Running);
                assert_eq!(leads_to_running, edge.event == Event::Started, "{pipeline}: {edge:?}");
                if leads_to_running {
                    assert_eq!(pipeline.phase(edge.from), Some(Phase::Ready), "{pipeline}: {edge:?}");
                    assert_eq!(pipeline.lane(edge.from), pipeline.lane(edge.to), "{pipeline}: {edge:?}");
                }
            }
        }
    }

    #[test]
    fn lanes_agree_with_the_machines() {
        for lane in Lane::ALL {
            let pipeline = lane.pipeline();
            assert_eq!(pipeline.lane(lane.ready_state()), Some(*lane));
            assert_eq!(pipeline.lane(lane.running_state()), Some(*lane));
            assert_eq!(pipeline.next(lane.ready_state(), Event::Started), Ok(lane.running_state()));
            assert_eq!(pipeline.next(lane.running_state(), Event::Released), Ok(lane.ready_state()));
        }
    }

    #[test]
    fn a_finished_job_refuses_everything_but_being_fetched_and_expiring() {
        for event in Event::ALL {
            let next = Pipeline::Xml.next(State::Complete, *event);
            match event {
                Event::Downloaded | Event::Expired => assert_eq!(next, Ok(State::Complete)),
                _ => assert!(next.is_err(), "{event} was allowed"),
            }
        }
    }

    #[test]
    fn a_script_can_be_cancelled_only_before_it_starts() {
        let cancel = |state| Pipeline::Script.next(state, Event::Cancelled);
        assert_eq!(cancel(State::Pending), Ok(State::Cancelled));
        assert_eq!(cancel(State::Queued), Ok(State::Cancelled));
        for state in [State::InProgress, State::Completed, State::Failed, State::TimedOut, State::Cancelled] {
            assert!(cancel(state).is_err(), "{state}");
        }
    }

    #[test]
    fn a_mistyped_name_is_answered_with_the_known_ones() {
        let error = "xlm".parse::<Pipeline>().unwrap_err();
        assert_eq!(
            error.to_string(),
            "There is no pipeline called \"xlm\". Use one of: xml, html, print, script."
        );
    }

    #[test]
    fn jobs_are_made_ready_by_the_first_step_of_their_machine() {
        let path =
            |pipeline: Pipeline| pipeline.path_to_ready().iter().map(|edge| edge.to).collect::<Vec<_>>();
        assert_eq!(path(Pipeline::Xml), [State::Queued]);
        assert_eq!(path(Pipeline::Html), []);
        assert_eq!(path(Pipeline::Print), []);
        assert_eq!(path(Pipeline::Script), [State::Queued]);
    }
}
