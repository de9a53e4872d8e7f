//! Has maps checked, frozen and drawn, each by a child of its own.

use super::child::{Answer, Appended, MADE, Made, Task};
use bytes::{Bytes, BytesMut};
use ode_child::{Excess, Limits, Notice, Pool, PoolOptions, Program, Subject, unexpected};
use ode_job::{ErrorCode, Failure};
use std::time::Duration;

/// How maps are drawn where nothing else is said: two minutes of processor time, as the largest page with the finest
/// coasts takes a few seconds.
pub fn pool_options() -> PoolOptions {
    let limits = Limits {
        wall_clock: Duration::from_secs(240),
        cpu_seconds: Some(120),
        input_bytes: 64 << 20,
        ..Limits::default()
    };
    PoolOptions { limits, ..PoolOptions::default() }
}

/// Maps, in the failures of their runs.
const MAP: Subject = Subject { too_much, crashed: None };

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
#[derive(Debug, Clone)]
pub struct Drawer {
    pool: Pool,
}

impl Drawer {
    /// Gets ready. The child is this very program, which must answer to `child map` by calling [`super::serve`].
    pub fn new(options: PoolOptions) -> Result<Self, ode_child::Error> {
        Ok(Drawer { pool: Pool::new(options, Program::this_binary(["child", "map"])?, MAP)? })
    }

    /// Checks GeoJSON.
    pub async fn features(&self, geojson: Bytes) -> Result<Features, Undrawn> {
        match self.run(&Task::Features, geojson, |_| ()).await? {
            (Made::Features { count }, bytes) => Ok(Features { text: text(bytes)?, count }),
            (made, _) => Err(unexpected(format!("the child made {made:?}")).into()),
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
            (made, _) => Err(unexpected(format!("the child made {made:?}")).into()),
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
            (made, _) => Err(unexpected(format!("the child made {made:?}")).into()),
        }
    }

    async fn run(
        &self,
        task: &Task,
        input: Bytes,
        mut told: impl FnMut(f32) + Send,
    ) -> Result<(Made, Vec<u8>), Undrawn> {
        let mut turn = self.pool.turn(&input).await?;
        let notice = move |notice| match notice {
            Notice::Progress(progress) => told(progress.percent),
            Notice::Log(line) => tracing::debug!(line = line.text, "the child that draws says something"),
            Notice::Plan(_) | Notice::Step(..) | Notice::Checkpoint { .. } => {}
        };
        let run = turn.run(task, input, notice).await?;
        match run.answer()? {
            Answer::Refused { path, message } => Err(Undrawn::Refused { path, message }),
            Answer::Made(made) => Ok((made, run.artifact(MADE)?)),
        }
    }
}

fn text(bytes: Vec<u8>) -> Result<String, Failure> {
    String::from_utf8(bytes).map_err(unexpected)
}

fn too_much(excess: Excess, limit: u64) -> Failure {
    let what = match excess {
        Excess::Input { .. } => "room",
        Excess::Time => "time",
        Excess::Memory => "memory",
        Excess::Output => "room for its file",
    };
    let message = format!(
        "This map needs more {what} than one map may have. Simplify its layers, or make the page smaller"
    );
    Failure::rejected(ErrorCode::BadMap, message).with_detail(format!("the limit is {limit}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn maps_that_need_too_much_are_rejected_with_the_limit_for_the_operator() {
        let check = |excess, what: &str| {
            let failure = too_much(excess, 7);
            let message = format!(
                "This map needs more {what} than one map may have. \
                 Simplify its layers, or make the page smaller"
            );
            let expected = Failure::rejected(ErrorCode::BadMap, message).with_detail("the limit is 7");
            assert_eq!(failure, expected);
        };
        check(Excess::Input { bytes: 8 }, "room");
        check(Excess::Time, "time");
        check(Excess::Memory, "memory");
        check(Excess::Output, "room for its file");
    }
}
