//! Has maps checked, frozen and drawn, each by a child of its own.

use super::drawing::{Answer, Appended, MADE, Made, Task};
use bytes::{Bytes, BytesMut};
use ode_child::failure::{broken, this_program};
use ode_child::{Input, Limits, Notice, Outcome, Report, Sandbox, Spec, Supervisor, Work};
use ode_job::{ErrorCode, Failure};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;

/// How maps are drawn.
#[derive(Debug, Clone)]
pub struct DrawerOptions {
    /// Maps at a time; further ones wait.
    pub at_once: usize,
    /// How long one may wait for its turn before it is told that we are busy.
    pub patience: Duration,
    /// Whether the child locks itself in. Off only to look for a fault.
    pub sandbox: Sandbox,
    /// What one map may use.
    pub limits: Limits,
}

impl Default for DrawerOptions {
    /// As many as there are processors, ten seconds' patience, two minutes of processor time: the largest page with the
    /// finest coasts takes a few seconds.
    fn default() -> Self {
        DrawerOptions {
            at_once: std::thread::available_parallelism().map_or(1, usize::from),
            patience: Duration::from_secs(10),
            sandbox: Sandbox::BestEffort,
            limits: Limits {
                wall_clock: Duration::from_secs(240),
                cpu_seconds: Some(120),
                input_bytes: 64 << 20,
                ..Limits::default()
            },
        }
    }
}

/// Why nothing was drawn.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Undrawn {
    /// The specification is wrong.
    #[error("{message}")]
    Refused {
        /// Where, such as `layers[0].style`; empty for all of it.
        path: String,
        /// What is wrong there, and what to do about it.
        message: String,
    },
    /// Something else.
    #[error("{}", .0.message)]
    Failed(Failure),
}

impl From<Failure> for Undrawn {
    fn from(failure: Failure) -> Self {
        Undrawn::Failed(failure)
    }
}

impl From<Undrawn> for Failure {
    /// As what became of a job.
    fn from(undrawn: Undrawn) -> Self {
        match undrawn {
            Undrawn::Failed(failure) => failure,
            Undrawn::Refused { path, message } if path.is_empty() => {
                Failure::rejected(ErrorCode::BadMap, message)
            }
            Undrawn::Refused { path, message } => {
                Failure::rejected(ErrorCode::BadMap, format!("At {path}: {message}"))
            }
        }
    }
}

/// GeoJSON that was found right.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Features {
    /// In canonical form.
    pub text: String,
    /// How many features.
    pub count: usize,
}

/// A specification that can be drawn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frozen {
    /// In canonical form, with every default written out.
    pub text: String,
    /// Width of the page in pixels.
    pub width: u32,
    /// Height of the page in pixels.
    pub height: u32,
    /// What whoever made the map should know, in sentences.
    pub warnings: Vec<String>,
}

/// A map that was drawn.
#[derive(Debug, Clone, PartialEq)]
pub struct Drawn {
    /// The file.
    pub png: Vec<u8>,
    /// Its width in pixels.
    pub width: u32,
    /// Its height in pixels.
    pub height: u32,
    /// Dots per inch that it asks to be printed with.
    pub dpi: f64,
    /// What whoever made the map should know, in sentences.
    pub warnings: Vec<String>,
}

/// Has maps drawn. Cheap to clone.
#[derive(Clone)]
pub struct Drawer {
    supervisor: Supervisor,
    spec: Arc<Spec>,
    turns: Arc<Semaphore>,
    patience: Duration,
}

impl std::fmt::Debug for Drawer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Drawer").field("turns", &self.turns).finish_non_exhaustive()
    }
}

impl Drawer {
    /// Gets ready. The child is this very program, which must answer to `child map` by calling [`super::serve`].
    pub fn new(options: DrawerOptions) -> Result<Self, ode_child::Error> {
        let program = this_program(["child", "map"])?;
        let spec = Spec { sandbox: options.sandbox, limits: options.limits, ..Spec::own(program) };
        Ok(Drawer {
            supervisor: Supervisor::new()?,
            spec: Arc::new(spec),
            turns: Arc::new(Semaphore::new(options.at_once.max(1))),
            patience: options.patience,
        })
    }

    /// Checks GeoJSON.
    pub async fn features(&self, geojson: Bytes) -> Result<Features, Undrawn> {
        match self.run(&Task::Features, geojson, |_| ()).await? {
            (Made::Features { count }, bytes) => Ok(Features { text: text(bytes)?, count }),
            (made, _) => Err(broken(format!("the child made {made:?}")).into()),
        }
    }

    /// Checks a specification, alone or with the features of a map that has this name.
    pub async fn freeze(&self, spec: Bytes, features: Option<(&str, &str)>) -> Result<Frozen, Undrawn> {
        let (with, input) = match features {
            None => (None, spec),
            Some((name, features)) => {
                let mut input = BytesMut::from(spec.as_ref());
                input.extend_from_slice(features.as_bytes());
                (Some(Appended { offset: spec.len(), name: name.to_owned() }), input.freeze())
            }
        };
        match self.run(&Task::Freeze { with }, input, |_| ()).await? {
            (Made::Frozen { width, height, warnings }, bytes) => {
                Ok(Frozen { text: text(bytes)?, width, height, warnings })
            }
            (made, _) => Err(broken(format!("the child made {made:?}")).into()),
        }
    }

    /// Draws a specification: at the page's own size, or so many pixels wide. Tells how far it is, in percent. Ends
    /// early, and ends the child, when the future is dropped.
    pub async fn draw(
        &self,
        spec: Bytes,
        preview_width: Option<u32>,
        told: impl FnMut(f32) + Send,
    ) -> Result<Drawn, Undrawn> {
        match self.run(&Task::Draw { preview_width }, spec, told).await? {
            (Made::Drawn { width, height, dpi, warnings }, png) => {
                Ok(Drawn { png, width, height, dpi, warnings })
            }
            (made, _) => Err(broken(format!("the child made {made:?}")).into()),
        }
    }

    async fn run(
        &self,
        task: &Task,
        input: Bytes,
        mut told: impl FnMut(f32) + Send,
    ) -> Result<(Made, Vec<u8>), Undrawn> {
        let (bytes, bytes_max) = (input.len() as u64, self.spec.limits.input_bytes);
        if bytes > bytes_max {
            return Err(too_much("room", bytes_max).into());
        }
        let turn = tokio::time::timeout(self.patience, self.turns.acquire()).await;
        let _turn = match turn {
            Ok(Ok(turn)) => turn,
            Ok(Err(_)) | Err(_) => {
                return Err(Failure::retryable(ErrorCode::Busy, ErrorCode::Busy.sentence()).into());
            }
        };
        let work = Work::new(task).map_err(broken)?.with_input(Input::Bytes(input));
        let notice = move |notice| match notice {
            Notice::Progress(progress) => told(progress.percent),
            Notice::Log(line) => tracing::debug!(line = line.text, "the child that draws says something"),
            Notice::Plan(_) | Notice::Step(..) | Notice::Checkpoint { .. } => {}
        };
        let ran = self.supervisor.run(&self.spec, work, notice, std::future::pending()).await;
        let report = ran.map_err(broken)?;
        match answered(&report, &self.spec.limits)? {
            Answer::Refused { path, message } => Err(Undrawn::Refused { path, message }),
            Answer::Made(made) => {
                let found = report.artifacts.iter().find(|artifact| artifact.name == MADE);
                let artifact = found.ok_or_else(|| broken("the child left out what it made"))?;
                Ok((made, report.read(artifact).map_err(broken)?))
            }
        }
    }
}

fn text(bytes: Vec<u8>) -> Result<String, Failure> {
    String::from_utf8(bytes).map_err(broken)
}

/// What the child answered, or what became of it in the terms of jobs.
fn answered(report: &Report, limits: &Limits) -> Result<Answer, Failure> {
    match &report.outcome {
        Outcome::Finished(result) => serde_json::from_str(result.get()).map_err(broken),
        Outcome::Failed(failure) => {
            let code = failure.code.parse().unwrap_or(ErrorCode::Unknown);
            let failed = if failure.retryable { Failure::retryable } else { Failure::rejected };
            Err(failed(code, failure.message.as_str()))
        }
        // These would happen again: the map asks for more than any map may have.
        Outcome::TimedOut | Outcome::CpuExceeded => Err(too_much("time", limits.wall_clock.as_secs())),
        Outcome::OutOfMemory => Err(too_much("memory", limits.address_space_bytes.unwrap_or_default())),
        Outcome::OutputTooLarge => Err(too_much("room for its file", limits.output_bytes)),
        // It may have been killed from outside, as by a system that is short of memory. A map that makes every try crash
        // has failed when they are used up.
        Outcome::Crashed(_) | Outcome::Stopped | Outcome::ProtocolViolation(_) => {
            Err(broken(format!("{:?}", report.outcome)))
        }
    }
}

fn too_much(what: &str, limit: u64) -> Failure {
    let message = format!(
        "This map needs more {what} than one map may have. Simplify its layers, or make the page smaller"
    );
    Failure::rejected(ErrorCode::BadMap, message).with_detail(format!("the limit is {limit}"))
}
