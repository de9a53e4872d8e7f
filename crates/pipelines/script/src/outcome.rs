//! How a run ended, from how its processes ended and what they answered.

use crate::order::{Done, Failed, Outcome, code};
use crate::payload::mark;
use crate::script::Script;
use ode_child::{Crash, Redactor, Report, Violation};
use serde_json::Value;

/// What a shell answers for a program that it did not find.
const NOT_FOUND: i32 = 127;

/// How a run ended. What people should know besides is told to `note`.
pub(crate) fn of(
    script: &Script,
    report: Report,
    redactor: &Redactor,
    mut note: impl FnMut(String),
) -> Outcome {
    match report.outcome {
        ode_child::Outcome::Finished(data) => {
            if let Some(code) = report.status.code().filter(|code| *code != 0) {
                note(format!("The script ended with the code {code} after it had given its result."));
            }
            let data = serde_json::from_str(data.get()).unwrap_or(Value::Null);
            finished(script, data, report.summary, redactor)
        }
        ode_child::Outcome::Failed(failure) => Outcome::Failed(Failed {
            code: failure.code,
            message: failure.message,
            retryable: failure.retryable,
            stack: failure.stack,
        }),
        ode_child::Outcome::TimedOut => Outcome::TimedOut,
        ode_child::Outcome::Stopped => Outcome::Stopped,
        ode_child::Outcome::OutOfMemory => {
            let limit_mb = script.manifest.memory_bytes_max / 1024 / 1024;
            let message = format!(
                "The script used more than {limit_mb} MB of memory. Raise max_memory_mb in its manifest."
            );
            failed(code::OUT_OF_MEMORY, message, true)
        }
        ode_child::Outcome::CpuExceeded | ode_child::Outcome::OutputTooLarge => {
            failed(code::CRASHED, "The script used more of the machine than it may.", true)
        }
        ode_child::Outcome::Crashed(crash) => crashed(crash, &misread(report.misread.as_deref())),
        ode_child::Outcome::ProtocolViolation(Violation::NoResult) => {
            let misread = misread(report.misread.as_deref());
            let message =
                format!("The script ended without a result. It must tell one before it ends.{misread}");
            failed(code::NO_RESULT, message, false)
        }
        ode_child::Outcome::ProtocolViolation(Violation::ManySecrets) => {
            Outcome::Failed(many_secrets("The script masked"))
        }
        ode_child::Outcome::ProtocolViolation(violation) => {
            let why = violation.to_string().replace("the child", "the script");
            let misread = misread(report.misread.as_deref());
            failed(code::PROTOCOL, format!("The script did not keep to the protocol: {why}.{misread}"), false)
        }
    }
}

/// What was wrong with what it said, where something was.
fn misread(why: Option<&str>) -> String {
    why.map_or_else(String::new, |why| format!(" A line that it sent was not understood, because {why}."))
}

fn finished(script: &Script, data: Value, summary: ode_child::Summary, redactor: &Redactor) -> Outcome {
    match script.split_result(data) {
        Ok((data, secrets)) => {
            redactor.add_all(secrets.values());
            if redactor.is_overfull() {
                return Outcome::Failed(many_secrets("The script did its work, but its result has"));
            }
            let data = mark(redactor.value(data), &secrets);
            let message = redactor.text(&summary.message).into_owned();
            Outcome::Done(Done { partial: summary.partial, message, data, secrets })
        }
        // Where it is not what was promised, a secret may be anywhere in it: nothing of it is kept.
        Err(wrong) => {
            let wrong: Vec<String> =
                wrong.iter().map(|wrong| format!("{} {}", wrong.path, wrong.message)).collect();
            let message = format!(
                "The script did its work, but its result is not what its manifest promises: {}. Mend the script or \
                 its result schema, and look at the site before it is run again.",
                wrong.join("; ")
            );
            failed(code::BAD_RESULT, redactor.text(&message), false)
        }
    }
}

/// What somebody did with more secrets than can be searched for.
pub(crate) fn many_secrets(what: &str) -> Failed {
    Failed {
        code: code::MANY_SECRETS.to_owned(),
        message: format!("{what} more secrets than can be hidden. Use fewer of them."),
        retryable: false,
        stack: None,
    }
}

fn crashed(crash: Crash, misread: &str) -> Outcome {
    let Crash { signal, exit, stderr } = crash;
    let last = stderr.last().map_or_else(String::new, |line| format!(" The last it wrote was: {line}"));
    let stack = (!stderr.is_empty()).then(|| stderr.join("\n"));
    let (code, message, retryable) = match (signal, exit) {
        (Some(signal), _) => (code::CRASHED, format!("The script was ended by the signal {signal}."), true),
        (None, Some(NOT_FOUND)) => {
            (code::NOT_INSTALLED, format!("A program that the script needs is not installed.{last}"), false)
        }
        (None, exit) => {
            let exit = exit.unwrap_or(1);
            (code::CRASHED, format!("The script ended with the code {exit} and gave no result.{last}"), true)
        }
    };
    Outcome::Failed(Failed { code: code.to_owned(), message: message + misread, retryable, stack })
}

fn failed(code: &str, message: impl Into<String>, retryable: bool) -> Outcome {
    Outcome::Failed(Failed { code: code.to_owned(), message: message.into(), retryable, stack: None })
}
