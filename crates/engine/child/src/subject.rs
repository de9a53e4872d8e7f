//! Kinds of input that children work on. Each maps the [`Outcome`] of a run to its result, or to the [`Failure`] of the job.

use crate::{Limits, Outcome};
use ode_job::{ErrorCode, Failure};
use serde_json::value::RawValue;

/// A kind of input, with the failures of runs that its own content may cause.
#[derive(Debug, Clone, Copy)]
pub struct Subject {
    /// Failure of an input that takes more than the limit. It would do so again, so it is rejected.
    pub too_much: fn(Excess, limit: u64) -> Failure,
    /// Code and message of an input that crashed its child, which rejects it. None where it is tried again: the child
    /// may have been killed from outside, as by a system that is short of memory.
    pub crashed: Option<(ErrorCode, &'static str)>,
}

/// The limit that an input exceeds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Excess {
    /// Its own size, limited in bytes.
    Input {
        /// How large it is.
        bytes: u64,
    },
    /// Time, of the clock or of the processor, limited in seconds.
    Time,
    /// Memory, limited in bytes.
    Memory,
    /// Output, limited in bytes.
    Output,
}

impl Subject {
    pub const PDF: Self = Self {
        too_much: pdf_too_much,
        crashed: Some((
            ErrorCode::Unreadable,
            "This PDF made the reader fail. Export it again from the program that made it",
        )),
    };

    /// Failure of an input larger than the limit.
    pub fn too_large(&self, bytes: u64, bytes_max: u64) -> Failure {
        (self.too_much)(Excess::Input { bytes }, bytes_max)
    }

    /// Result of a run within these limits, or the failure of its job.
    pub(crate) fn result<'a>(&self, outcome: &'a Outcome, limits: &Limits) -> Result<&'a RawValue, Failure> {
        let seconds_max = limits.wall_clock.as_secs();
        let memory_bytes_max = limits.address_space_bytes.unwrap_or_default();
        Err(match outcome {
            Outcome::Finished(result) => return Ok(result),
            Outcome::Failed(failure) => reported(failure),
            Outcome::TimedOut | Outcome::CpuExceeded => (self.too_much)(Excess::Time, seconds_max),
            Outcome::OutOfMemory => (self.too_much)(Excess::Memory, memory_bytes_max),
            Outcome::OutputTooLarge => (self.too_much)(Excess::Output, limits.output_bytes),
            Outcome::Crashed(_) => match self.crashed {
                Some((code, message)) => Failure::rejected(code, message).with_detail(format!("{outcome:?}")),
                None => unexpected(format!("{outcome:?}")),
            },
            Outcome::Stopped | Outcome::ProtocolViolation(_) => unexpected(format!("{outcome:?}")),
        })
    }
}

/// Failure for a fault of ours or of the machine, with its cause for the operator.
pub fn unexpected(error: impl ToString) -> Failure {
    Failure::from(ErrorCode::Unknown).with_detail(error.to_string())
}

/// Failure that a child reported.
fn reported(failure: &crate::Failure) -> Failure {
    let code = failure.code.parse().unwrap_or(ErrorCode::Unknown);
    let failed = if failure.retryable { Failure::retryable } else { Failure::rejected };
    failed(code, failure.message.as_str())
}

fn pdf_too_much(excess: Excess, limit: u64) -> Failure {
    let what = match excess {
        Excess::Input { bytes } => return pdf_too_large(bytes, limit),
        Excess::Time => "time",
        Excess::Memory => "memory",
        Excess::Output => "room for its result",
    };
    let message = format!(
        "This PDF needs more {what} than one document may have. Split it, or export it again in a simpler form"
    );
    Failure::rejected(ErrorCode::Unreadable, message)
}

fn pdf_too_large(bytes: u64, bytes_max: u64) -> Failure {
    const MB: f64 = 1_048_576.0;
    let (size, limit) = (bytes as f64 / MB, bytes_max as f64 / MB);
    let message = format!(
        "This file has {size:.1} MB and the limit is {limit:.0} MB. Split it, or save it with smaller pictures"
    );
    Failure::rejected(ErrorCode::TooLarge, message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Crash, Violation};
    use ode_job::FailureKind;

    /// What is tried again after a crash, and tells its limits.
    const TALL: Subject =
        Subject { too_much: |excess, limit| unexpected(format!("{excess:?} {limit}")), crashed: None };

    const UNEXPECTED: &str = "Something went wrong that we didn't expect. We'll retry";

    fn crash() -> Outcome {
        Outcome::Crashed(Crash { signal: Some(11), exit: None, stderr: Vec::new() })
    }

    fn failure(subject: &Subject, outcome: &Outcome) -> Failure {
        subject.result(outcome, &Limits::default()).unwrap_err()
    }

    fn check(outcome: &Outcome, code: ErrorCode, is_retryable: bool, message: &str) {
        let failure = failure(&Subject::PDF, outcome);
        let is_retried = matches!(failure.kind, FailureKind::Retryable { .. });
        let found = (failure.code, is_retried, failure.message.as_str());
        assert_eq!(found, (code, is_retryable, message), "{outcome:?}");
    }

    #[test]
    fn every_outcome_but_a_result_is_a_failure() {
        let reported = |failure| Outcome::Failed(failure);
        check(&reported(crate::Failure::rejected("NO_TEXT", "why")), ErrorCode::NoText, false, "why");
        check(&reported(crate::Failure::retryable("IO_ERROR", "why")), ErrorCode::IoError, true, "why");
        check(&reported(crate::Failure::rejected("unheard of", "why")), ErrorCode::Unknown, false, "why");
        let too_much = |what| {
            format!(
                "This PDF needs more {what} than one document may have. \
                 Split it, or export it again in a simpler form"
            )
        };
        check(&Outcome::TimedOut, ErrorCode::Unreadable, false, &too_much("time"));
        check(&Outcome::CpuExceeded, ErrorCode::Unreadable, false, &too_much("time"));
        check(&Outcome::OutOfMemory, ErrorCode::Unreadable, false, &too_much("memory"));
        check(&Outcome::OutputTooLarge, ErrorCode::Unreadable, false, &too_much("room for its result"));
        let crashed = "This PDF made the reader fail. Export it again from the program that made it";
        check(&crash(), ErrorCode::Unreadable, false, crashed);
        check(&Outcome::Stopped, ErrorCode::Unknown, true, UNEXPECTED);
        check(&Outcome::ProtocolViolation(Violation::Garbage), ErrorCode::Unknown, true, UNEXPECTED);
        let finished = Outcome::Finished(RawValue::NULL.to_owned());
        assert!(Subject::PDF.result(&finished, &Limits::default()).is_ok());
    }

    #[test]
    fn a_crash_is_tried_again_where_the_subject_says_nothing_about_it() {
        let failure = failure(&TALL, &crash());
        assert_eq!(failure.message, UNEXPECTED);
        assert_eq!(failure.kind, FailureKind::Retryable { after: None });
        assert!(failure.detail.is_some_and(|detail| detail.contains("signal: Some(11)")));
    }

    #[test]
    fn a_subject_learns_which_limit_was_reached() {
        let detail = |outcome| failure(&TALL, &outcome).detail;
        assert_eq!(detail(Outcome::TimedOut).as_deref(), Some("Time 60"));
        assert_eq!(detail(Outcome::CpuExceeded).as_deref(), Some("Time 60"));
        assert_eq!(detail(Outcome::OutOfMemory).as_deref(), Some("Memory 536870912"));
        assert_eq!(detail(Outcome::OutputTooLarge).as_deref(), Some("Output 209715200"));
    }

    #[test]
    fn a_pdf_that_is_too_large_has_its_size_and_the_limit_in_megabytes() {
        let failure = Subject::PDF.too_large(60 << 20, 50 << 20);
        let message =
            "This file has 60.0 MB and the limit is 50 MB. Split it, or save it with smaller pictures";
        assert_eq!((failure.code, failure.message.as_str()), (ErrorCode::TooLarge, message));
        assert_eq!(failure.kind, FailureKind::Rejected);
    }
}
