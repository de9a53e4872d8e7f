//! How a run ends in the terms of jobs.

use crate::{Failure as ChildFailure, Outcome, Program, Report};
use ode_job::{ErrorCode, Failure};
use serde_json::value::RawValue;
use std::ffi::OsString;

/// This very program, as a child of itself.
pub fn this_program(
    arguments: impl IntoIterator<Item = impl Into<OsString>>,
) -> Result<Program, crate::Error> {
    let not_started = |error| crate::Error::Start { program: "ode".into(), error };
    Program::this_binary(arguments).map_err(not_started)
}

/// A failure that a child reports under one of our codes.
pub fn failed(code: ErrorCode, message: impl ToString) -> ChildFailure {
    ChildFailure {
        code: code.to_string(),
        message: message.to_string(),
        retryable: code.is_retryable(),
        stack: None,
    }
}

/// The result of a run over a PDF, or the failure of its job.
pub fn finished(report: &Report) -> Result<&RawValue, Failure> {
    match &report.outcome {
        Outcome::Finished(result) => Ok(result),
        Outcome::Failed(failure) => {
            let code = failure.code.parse().unwrap_or(ErrorCode::Unknown);
            Err(if failure.retryable {
                Failure::retryable(code, failure.message.clone())
            } else {
                Failure::rejected(code, failure.message.clone())
            })
        }
        // These would happen again: the document asks for more than any document may have.
        Outcome::TimedOut | Outcome::CpuExceeded | Outcome::OutOfMemory | Outcome::OutputTooLarge => {
            Err(Failure::rejected(ErrorCode::Unreadable, too_much(&report.outcome)))
        }
        Outcome::Crashed(_) => Err(Failure::rejected(
            ErrorCode::Unreadable,
            "This PDF made the reader fail. Export it again from the program that made it",
        )
        .with_detail(format!("{:?}", report.outcome))),
        Outcome::Stopped | Outcome::ProtocolViolation(_) => Err(broken(format!("{:?}", report.outcome))),
    }
}

fn too_much(outcome: &Outcome) -> String {
    let what = match outcome {
        Outcome::OutOfMemory => "memory",
        Outcome::OutputTooLarge => "room for its result",
        _ => "time",
    };
    format!(
        "This PDF needs more {what} than one document may have. Split it, or export it again in a simpler form"
    )
}

/// A document larger than may be converted.
pub fn too_large(bytes: u64, bytes_max: u64) -> Failure {
    const MB: f64 = 1_048_576.0;
    let (size, limit) = (bytes as f64 / MB, bytes_max as f64 / MB);
    Failure::rejected(
        ErrorCode::TooLarge,
        format!(
            "This file has {size:.1} MB and the limit is {limit:.0} MB. Split it, or save it with smaller pictures"
        ),
    )
}

/// A fault of ours or of the machine, for the operator.
pub fn broken(error: impl ToString) -> Failure {
    Failure::retryable(ErrorCode::Unknown, ErrorCode::Unknown.sentence()).with_detail(error.to_string())
}
