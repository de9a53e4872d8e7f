//! Runs conversions, each in a child of its own.

use super::ask::{Ask, Converted, Summary, Task};
use super::conversion::{DOCUMENT, PROVENANCE};
use super::study::Study;
use ode_child::{Input, Limits, Outcome, Program, Report, Sandbox, Spec, Supervisor, Work};
use ode_job::{ErrorCode, Failure};
use serde_json::value::RawValue;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;

/// How conversions run.
#[derive(Debug, Clone)]
pub struct Options {
    /// Folder with mappings beside those that ship.
    pub mappings: Option<PathBuf>,
    /// Conversions at a time; further ones wait.
    pub at_once: usize,
    /// How long one may wait for its turn before it is told that we are busy.
    pub patience: Duration,
    /// Whether the child locks itself in. Off only to look for a fault.
    pub sandbox: Sandbox,
    /// What one conversion may use.
    pub limits: Limits,
}

impl Default for Options {
    /// As many as there are processors, ten seconds' patience, locked in where the system can.
    fn default() -> Self {
        Options {
            mappings: None,
            at_once: std::thread::available_parallelism().map_or(1, usize::from),
            patience: Duration::from_secs(10),
            sandbox: Sandbox::BestEffort,
            limits: Limits::default(),
        }
    }
}

/// Converts documents. Cheap to clone.
#[derive(Clone)]
pub struct Converter {
    supervisor: Supervisor,
    spec: Arc<Spec>,
    turns: Arc<Semaphore>,
    patience: Duration,
}

impl std::fmt::Debug for Converter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Converter").field("turns", &self.turns).finish_non_exhaustive()
    }
}

impl Converter {
    /// Gets ready. The child is this very program, which must answer to `child convert [--mappings DIR]` by calling
    /// [`super::serve`].
    pub fn new(options: Options) -> Result<Self, ode_child::Error> {
        let program = program(options.mappings)?;
        let spec = Spec { sandbox: options.sandbox, limits: options.limits, ..Spec::own(program) };
        Ok(Converter {
            supervisor: Supervisor::new()?,
            spec: Arc::new(spec),
            turns: Arc::new(Semaphore::new(options.at_once.max(1))),
            patience: options.patience,
        })
    }

    /// The same with the mappings of another folder. The turns are shared: both together convert no more at a time.
    pub fn with_mappings(&self, folder: PathBuf) -> Result<Self, ode_child::Error> {
        let spec = Spec { program: program(Some(folder))?, ..(*self.spec).clone() };
        Ok(Converter { spec: Arc::new(spec), ..self.clone() })
    }

    /// The largest document it takes, in bytes.
    pub fn bytes_max(&self) -> u64 {
        self.spec.limits.input_bytes
    }

    /// Converts one document. Ends early, and ends the child, when the future is dropped.
    pub async fn convert(&self, ask: &Ask, document: bytes::Bytes) -> Result<Converted, Failure> {
        let report = self.run(&Task::Convert(ask.clone()), document).await?;
        let summary: Summary = serde_json::from_str(finished(&report)?.get()).map_err(broken)?;
        Ok(Converted { document: made(&report)?, provenance: artifact(&report, PROVENANCE)?, summary })
    }

    /// Answers a question about one document, in the type that the question names.
    pub async fn study<T: serde::de::DeserializeOwned>(
        &self,
        study: Study,
        document: bytes::Bytes,
    ) -> Result<T, Failure> {
        let report = self.run(&Task::Study(study), document).await?;
        finished(&report)?;
        serde_json::from_slice(&made(&report)?).map_err(broken)
    }

    async fn run(&self, task: &Task, document: bytes::Bytes) -> Result<Report, Failure> {
        let size = document.len() as u64;
        if size > self.bytes_max() {
            return Err(too_large(size, self.bytes_max()));
        }
        let turn = tokio::time::timeout(self.patience, self.turns.acquire()).await;
        let _turn = match turn {
            Ok(Ok(turn)) => turn,
            Ok(Err(_)) | Err(_) => {
                return Err(Failure::retryable(ErrorCode::Busy, ErrorCode::Busy.sentence()));
            }
        };
        let work = Work::new(task).map_err(broken)?.with_input(Input::Bytes(document.to_vec().into()));
        self.supervisor.run(&self.spec, work, |_| (), std::future::pending()).await.map_err(broken)
    }
}

/// This very program, as the child that converts.
fn program(mappings: Option<PathBuf>) -> Result<Program, ode_child::Error> {
    let mut arguments: Vec<std::ffi::OsString> = vec!["child".into(), "convert".into()];
    let start = |error| ode_child::Error::Start { program: "ode".into(), error };
    if let Some(folder) = mappings {
        // The child starts in a directory of its own.
        let folder = std::path::absolute(folder).map_err(start)?;
        arguments.extend(["--mappings".into(), folder.into_os_string()]);
    }
    Program::this_binary(arguments).map_err(start)
}

/// What a run answered, or what became of it in the terms of jobs.
fn finished(report: &Report) -> Result<&RawValue, Failure> {
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

/// What every finished run hands back.
fn made(report: &Report) -> Result<Vec<u8>, Failure> {
    artifact(report, DOCUMENT)?.ok_or_else(|| broken("the child gave no document"))
}

fn artifact(report: &Report, name: &str) -> Result<Option<Vec<u8>>, Failure> {
    let found = report.artifacts.iter().find(|artifact| artifact.name == name);
    found.map(|artifact| report.read(artifact).map_err(broken)).transpose()
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

/// Our own fault, or the machine's; told to the operator.
fn broken(error: impl ToString) -> Failure {
    Failure::retryable(ErrorCode::Unknown, ErrorCode::Unknown.sentence()).with_detail(error.to_string())
}
