//! How a run ended, in the words that a caller decides by.

use crate::lines::clean;
use crate::protocol::{Artifact, Failure, Level, Place, Progress, Step, StepState};
use crate::sandbox::Enforcement;
use rustix::process::Signal;
use serde_json::value::RawValue;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::time::Duration;

#[derive(Debug)]
pub enum Outcome {
    /// The child gave its result. It stands even if the child stumbled afterwards.
    Finished(Box<RawValue>),
    /// The child said that it failed.
    Failed(Failure),
    /// It took longer than [`wall_clock`](crate::Limits::wall_clock).
    TimedOut,
    /// The caller wished it to stop.
    Stopped,
    /// It used more memory than allowed.
    OutOfMemory,
    /// It used more processor time than allowed.
    CpuExceeded,
    /// It ended without an answer.
    Crashed(Crash),
    /// It did not keep to the protocol.
    ProtocolViolation(Violation),
    /// It wrote more than [`output_bytes`](crate::Limits::output_bytes).
    OutputTooLarge,
}

/// How a child ended that did not answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Crash {
    /// By which signal, if by one.
    pub signal: Option<i32>,
    /// With which code, if not by a signal.
    pub exit: Option<i32>,
    /// The last lines it wrote to stderr.
    pub stderr: Vec<String>,
}

/// In which way a child broke the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Violation {
    /// It ended well and said nothing.
    #[error("the child ended without a result")]
    NoResult,
    /// It answered again.
    #[error("the child answered twice")]
    SecondAnswer,
    /// It went on after its answer.
    #[error("the child went on after its answer")]
    EventAfterAnswer,
    /// A line was longer than [`event_bytes`](crate::Limits::event_bytes).
    #[error("the child sent a line that is too long")]
    LongEvent,
    /// There were more lines than [`events`](crate::Limits::events).
    #[error("the child sent too many events")]
    ManyEvents,
    /// It masked more than a [`Redactor`](crate::Redactor) can search for.
    #[error("the child masked more secrets than can be hidden")]
    ManySecrets,
    /// Too many lines were not events.
    #[error("the child sent lines that are no events")]
    Garbage,
    /// It named a part of the output that is not there.
    #[error("the child named an artifact that is not in its output")]
    MissingArtifact,
}

/// What a child says while it runs.
#[derive(Debug, Clone, PartialEq)]
pub enum Notice {
    /// How far it is.
    Progress(Progress),
    /// A line of a log.
    Log(LogLine),
    /// The steps it is going to take.
    Plan(Vec<Step>),
    /// What became of a step.
    Step(String, StepState),
    /// Something is done that need not be done again.
    Checkpoint {
        key: String,
        /// What the program wants to know about it then.
        data: serde_json::Value,
    },
}

/// A line of a log: valid UTF-8 without control characters, of bounded length.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogLine {
    /// Where it was written.
    pub source: Source,
    /// How important it is; stdout counts as info, stderr as a warning.
    pub level: Level,
    pub text: String,
}

/// Where a line of a log was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// The event channel, on purpose.
    Events,
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

/// Everything about a run that has ended.
#[derive(Debug)]
pub struct Report {
    pub outcome: Outcome,
    /// What the child said about its result.
    pub summary: Summary,
    /// What the child named as its files, in order. Kept on failure too: they may explain it.
    pub artifacts: Vec<Artifact>,
    /// Why the last line on the event channel that was no event was none.
    pub misread: Option<String>,
    /// The bytes of the artifacts that are in the output.
    pub output: Option<File>,
    /// How far the sandbox came, as the child said before it saw the input.
    pub enforcement: Enforcement,
    pub usage: Usage,
    /// How many bytes of logs were dropped past [`log_bytes`](crate::Limits::log_bytes).
    pub log_bytes_dropped: u64,
    /// How the process ended, after everything else.
    pub status: ExitStatus,
}

/// What a child says about its result, for people.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Summary {
    pub message: String,
    /// Whether that is only a part of what was asked for.
    pub partial: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Usage {
    /// From the payload's first byte to the end of the process.
    pub wall_clock: Duration,
    /// Processor time of the process and of the children it reaped, in steps of 10 ms; zero without /proc.
    pub cpu: Duration,
}

impl Report {
    /// The bytes of an artifact in the output.
    pub fn read(&self, artifact: &Artifact) -> io::Result<Vec<u8>> {
        match (&artifact.place, &self.output) {
            (Place::Output { offset, bytes }, Some(output)) => {
                let mut contents = vec![0; usize::try_from(*bytes).map_err(io::Error::other)?];
                output.read_exact_at(&mut contents, *offset)?;
                Ok(contents)
            }
            (Place::Output { .. } | Place::File(_), _) => Err(io::ErrorKind::NotFound.into()),
        }
    }
}

/// Why the supervisor's watch over a child came to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    Exited,
    Deadline,
    Stop,
    Memory,
    /// It had answered and did not go.
    Lingered,
    /// It broke the protocol.
    Broken,
}

/// What is known once the process is gone.
pub(crate) struct Facts {
    pub(crate) end: End,
    pub(crate) violation: Option<Violation>,
    pub(crate) answer: Option<Result<Box<RawValue>, Failure>>,
    pub(crate) status: ExitStatus,
    pub(crate) cpu: Duration,
    pub(crate) cpu_seconds_max: Option<u64>,
    pub(crate) is_output_too_large: bool,
    pub(crate) stderr: Vec<String>,
}

impl Facts {
    /// Decides how the run ended.
    pub(crate) fn outcome(self) -> Outcome {
        if let Some(violation) = self.violation {
            return Outcome::ProtocolViolation(violation);
        }
        if self.is_output_too_large {
            return Outcome::OutputTooLarge;
        }
        match (self.answer, self.end) {
            (Some(Ok(value)), _) => Outcome::Finished(value),
            (Some(Err(failure)), _) => Outcome::Failed(failure),
            (None, End::Deadline) => Outcome::TimedOut,
            (None, End::Stop) => Outcome::Stopped,
            (None, End::Memory) => Outcome::OutOfMemory,
            (None, End::Exited | End::Lingered | End::Broken) => {
                let is_cpu_spent =
                    self.cpu_seconds_max.is_some_and(|max| self.cpu >= Duration::from_secs(max));
                unanswered(self.status, is_cpu_spent, self.stderr)
            }
        }
    }
}

/// Reads from the way a process ended which limit it ran into, if any.
fn unanswered(status: ExitStatus, is_cpu_spent: bool, stderr: Vec<String>) -> Outcome {
    match status.signal().and_then(Signal::from_named_raw) {
        Some(Signal::XCPU) => Outcome::CpuExceeded,
        Some(Signal::KILL) if is_cpu_spent => Outcome::CpuExceeded,
        Some(Signal::XFSZ) => Outcome::OutputTooLarge,
        Some(Signal::ABORT) if stderr.iter().any(|line| is_allocation_failure(line)) => Outcome::OutOfMemory,
        None if status.success() => Outcome::ProtocolViolation(Violation::NoResult),
        _ => Outcome::Crashed(Crash { signal: status.signal(), exit: status.code(), stderr }),
    }
}

/// What the standard library writes before it aborts for want of memory.
fn is_allocation_failure(line: &str) -> bool {
    line.starts_with("memory allocation of ") && line.ends_with(" bytes failed")
}

/// How many of the last lines of stderr are kept to explain a crash.
const LAST_LINES: usize = 20;

/// Adds a line to those kept to explain a crash.
pub(crate) fn keep_last(lines: &mut Vec<String>, line: &[u8], bytes_max: usize) {
    if lines.len() == LAST_LINES {
        lines.remove(0);
    }
    lines.push(clean(line, bytes_max));
}

#[cfg(test)]
mod tests {
    use super::*;

    const EXIT_0: i32 = 0;
    const EXIT_3: i32 = 3 << 8;

    fn facts(end: End, status: i32) -> Facts {
        Facts {
            end,
            violation: None,
            answer: None,
            status: ExitStatus::from_raw(status),
            cpu: Duration::ZERO,
            cpu_seconds_max: Some(20),
            is_output_too_large: false,
            stderr: Vec::new(),
        }
    }

    fn check(facts: Facts, expected: &str) {
        let outcome = format!("{:?}", facts.outcome());
        assert!(outcome.starts_with(expected), "{outcome} and not {expected}");
    }

    fn result() -> Option<Result<Box<RawValue>, Failure>> {
        Some(Ok(RawValue::NULL.to_owned()))
    }

    fn failure() -> Option<Result<Box<RawValue>, Failure>> {
        Some(Err(Failure::rejected("CODE", "why")))
    }

    #[test]
    fn each_end_has_its_outcome() {
        let (kill, abort) = (Signal::KILL.as_raw(), Signal::ABORT.as_raw());
        let exited = |status| facts(End::Exited, status);
        let spent = |seconds| Duration::from_secs(seconds);
        check(Facts { answer: result(), ..exited(EXIT_0) }, "Finished");
        check(Facts { answer: failure(), ..exited(EXIT_3) }, "Failed");
        check(exited(EXIT_0), "ProtocolViolation(NoResult)");
        check(exited(EXIT_3), "Crashed(Crash { signal: None, exit: Some(3), stderr: []");
        check(exited(Signal::SEGV.as_raw()), "Crashed(Crash { signal: Some(11), exit: None");
        check(exited(Signal::XCPU.as_raw()), "CpuExceeded");
        check(Facts { cpu: spent(21), ..exited(kill) }, "CpuExceeded");
        check(Facts { cpu: spent(15), ..exited(kill) }, "Crashed(Crash { signal: Some(9)");
        check(exited(Signal::XFSZ.as_raw()), "OutputTooLarge");
        let stderr = vec!["memory allocation of 9 bytes failed".to_owned()];
        check(Facts { stderr, ..exited(abort) }, "OutOfMemory");
        check(Facts { stderr: vec!["assertion failed".to_owned()], ..exited(abort) }, "Crashed");
        check(facts(End::Deadline, kill), "TimedOut");
        check(facts(End::Stop, kill), "Stopped");
        check(facts(End::Memory, kill), "OutOfMemory");
    }

    #[test]
    fn an_answer_that_was_given_stands() {
        for end in [End::Exited, End::Deadline, End::Stop, End::Memory, End::Lingered] {
            check(Facts { answer: result(), ..facts(end, Signal::KILL.as_raw()) }, "Finished");
            check(Facts { answer: failure(), ..facts(end, Signal::KILL.as_raw()) }, "Failed");
        }
    }

    #[test]
    fn an_answer_against_the_rules_does_not_stand() {
        let violation = Some(Violation::SecondAnswer);
        check(
            Facts { answer: result(), violation, ..facts(End::Exited, EXIT_0) },
            "ProtocolViolation(SecondAnswer)",
        );
        check(
            Facts { answer: result(), is_output_too_large: true, ..facts(End::Exited, EXIT_0) },
            "OutputTooLarge",
        );
    }
}
