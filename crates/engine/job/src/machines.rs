//! The machines that this program knows. Declared once, when it starts: names are parsed with them.

use crate::machine::{Lane, Machine, Pipeline, Unsound};
use crate::state::{Phase, State};
use std::sync::OnceLock;

static DECLARED: OnceLock<Declared> = OnceLock::new();

#[derive(Debug)]
struct Declared {
    pipelines: Vec<Pipeline>,
    states: Vec<State>,
    lanes: Vec<Lane>,
}

/// The machines could not be declared.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DeclareError {
    /// One breaks a rule.
    #[error(transparent)]
    Unsound(#[from] Unsound),
    /// Two have the same name.
    #[error("Two machines are called \"{0}\".")]
    Duplicate(&'static str),
    /// Two give one state different phases, which a database that knows the state by its name could not tell apart.
    #[error("The state {0} is {1} in one machine and {2} in another. Call one of the two something else.")]
    Ambiguous(State, Phase, Phase),
    /// Other machines were declared before, and names may have been parsed with them.
    #[error("The machines of this program are declared already: {0}.")]
    AlreadyDeclared(String),
}

/// Declares the machines of this program, in the order in which lists show them. Declaring the same ones again
/// changes nothing.
pub fn declare(machines: &[&'static Machine]) -> Result<(), DeclareError> {
    let declared = Declared::new(machines)?;
    let pipelines = declared.pipelines.clone();
    let known = DECLARED.get_or_init(|| declared);
    if known.pipelines == pipelines {
        return Ok(());
    }
    let names: Vec<_> = known.pipelines.iter().map(|pipeline| pipeline.as_str()).collect();
    Err(DeclareError::AlreadyDeclared(names.join(", ")))
}

impl Declared {
    fn new(machines: &[&'static Machine]) -> Result<Self, DeclareError> {
        for (index, machine) in machines.iter().enumerate() {
            machine.check()?;
            if machines[..index].iter().any(|other| other.name == machine.name) {
                return Err(DeclareError::Duplicate(machine.name));
            }
        }
        check_phases(machines)?;
        let pipelines: Vec<_> = machines.iter().map(|machine| Pipeline::new(machine)).collect();
        let lanes = pipelines.iter().flat_map(|pipeline| pipeline.lanes()).collect();
        let mut states = Vec::new();
        for standing in machines.iter().flat_map(|machine| machine.states) {
            if !states.contains(&standing.state) {
                states.push(standing.state);
            }
        }
        Ok(Declared { pipelines, states, lanes })
    }
}

/// Checks that no state is used for phases that are confused where only its name is known.
fn check_phases(machines: &[&'static Machine]) -> Result<(), DeclareError> {
    let standings = || machines.iter().flat_map(|machine| machine.states);
    for one in standings() {
        let other =
            standings().find(|other| other.state == one.state && are_confused(one.phase, other.phase));
        if let Some(other) = other {
            return Err(DeclareError::Ambiguous(one.state, one.phase, other.phase));
        }
    }
    Ok(())
}

/// Whether jobs in the two phases are told apart by their state alone. Ended jobs lie in a table of their own, and a job that
/// waits for a worker has a lane.
fn are_confused(one: Phase, other: Phase) -> bool {
    let is_live = |phase| matches!(phase, Phase::Held | Phase::Ready | Phase::Running);
    let waits = |phase| matches!(phase, Phase::Held | Phase::Ready);
    one != other && is_live(one) == is_live(other) && !(waits(one) && waits(other))
}

/// The declared pipelines. None before [`declare`].
pub fn pipelines() -> &'static [Pipeline] {
    DECLARED.get().map_or(&[], |declared| &declared.pipelines)
}

/// The declared pipeline of this name, for code that is written for one.
///
/// # Panics
/// If the program did not declare it: an error of its wiring, not of its input.
pub fn pipeline(name: &str) -> Pipeline {
    let found = pipelines().iter().find(|pipeline| pipeline.as_str() == name);
    *found.unwrap_or_else(|| panic!("the pipeline {name} is not declared; see ode_job::machines::declare"))
}

/// The states of all declared machines, each name once.
pub fn states() -> &'static [State] {
    DECLARED.get().map_or(&[], |declared| &declared.states)
}

/// The lanes of all declared machines.
pub fn lanes() -> &'static [Lane] {
    DECLARED.get().map_or(&[], |declared| &declared.lanes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::tests::{BROKEN, LATE, PLAIN, STAGED, WORKING};
    use crate::machine::{Edge, Standing};
    use crate::state::Event;

    /// It is done where another machine has failed. That another of its states is live and there an end does no harm.
    const AMBIGUOUS: &Machine = &Machine {
        name: "ambiguous",
        article: "An",
        initial: BROKEN,
        is_early_initial: false,
        states: &[
            Standing::ready(BROKEN, "ambiguous"),
            Standing::running(WORKING, "ambiguous"),
            Standing::done(LATE),
        ],
        edges: &[
            Edge::new(BROKEN, Event::Started, WORKING),
            Edge::new(WORKING, Event::Released, BROKEN),
            Edge::new(WORKING, Event::Succeeded, LATE),
        ],
    };

    #[test]
    fn machines_are_declared_once() {
        let machines = [PLAIN.machine(), STAGED.machine()];
        let twice = declare(&[machines[0], machines[1], machines[0]]);
        assert_eq!(twice, Err(DeclareError::Duplicate("plain")));
        assert!(declare(&machines).is_ok());
        assert!(declare(&machines).is_ok(), "the same ones again");
        let others = declare(&machines[..1]).unwrap_err();
        assert_eq!(others.to_string(), "The machines of this program are declared already: plain, staged.");

        let error = declare(&[machines[0], AMBIGUOUS]).unwrap_err();
        assert_eq!(error, DeclareError::Ambiguous(LATE, Phase::Failed, Phase::Done));

        assert!(PLAIN < STAGED);
        assert_eq!("staged".parse(), Ok(STAGED));
        assert_eq!("waiting".parse(), Ok(crate::machine::tests::WAITING));
        assert_eq!("staged.send".parse::<Lane>().map(Lane::pipeline), Ok(STAGED));
        let error = "plian".parse::<Pipeline>().unwrap_err();
        assert_eq!(error.to_string(), "There is no pipeline called \"plian\". Use one of: plain, staged.");
        let json = serde_json::to_string(&[PLAIN, STAGED]).unwrap();
        assert_eq!(json, r#"["plain","staged"]"#);
        assert_eq!(serde_json::from_str::<Vec<Pipeline>>(&json).unwrap(), [PLAIN, STAGED]);
        assert!(serde_json::from_str::<State>("\"gone\"").is_err());
    }
}
