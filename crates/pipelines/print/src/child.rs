//! What the child does: checks maps, freezes them and draws them.

use ode_atlas::spec::geojson::Collection;
use ode_atlas::{Error, Options, Rendered, Spec};
use ode_child::Failure;
use ode_child::child::{Reporter, failed};
use ode_job::ErrorCode;
use serde::{Deserialize, Serialize};
use std::process::ExitCode;

/// What the child is to do with its input.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "snake_case")]
pub(super) enum Task {
    /// Check GeoJSON, and give it back in canonical form.
    Features,
    /// Check a specification, and give it back in canonical form.
    Freeze {
        /// What comes after the specification in the input, if anything does.
        with: Option<Appended>,
    },
    /// Draw a specification.
    Draw {
        /// The width of a picture to look at; none for the page's own size.
        preview_width: Option<u32>,
    },
}

/// GeoJSON that follows a specification.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Appended {
    pub(super) offset: usize,
    /// What the layer is called.
    pub(super) name: String,
}

/// What the child answers.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Answer {
    /// It is done; what was made is in the output.
    Made(Made),
    /// The specification is wrong.
    Refused {
        path: String,
        /// What is wrong there, and what to do about it.
        message: String,
    },
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) enum Made {
    Features { count: usize },
    Frozen { width: u32, height: u32, warnings: Vec<String> },
    Drawn { width: u32, height: u32, dpi: f64, warnings: Vec<String> },
}

/// Under which name the output holds what was made.
pub(super) const MADE: &str = "made";

/// Runs as the child: locks itself in, and does the one thing it is given.
pub(super) fn serve() -> ExitCode {
    ode_child::child::serve(|| Ok(()), |(), task: Task, reporter| answer(&task, reporter))
}

fn answer(task: &Task, reporter: &mut Reporter) -> Result<Answer, Failure> {
    let io = |error: std::io::Error| failed(ErrorCode::IoError, error);
    let input = reporter.input().map_err(io)?;
    let made = match task {
        Task::Features => features(&input),
        Task::Freeze { with } => freeze(&input, with.as_ref()),
        Task::Draw { preview_width } => draw(&input, *preview_width, reporter),
    };
    match made {
        Ok((made, bytes)) => {
            reporter.artifact(MADE, &bytes).map_err(io)?;
            Ok(Answer::Made(made))
        }
        Err(Error::Spec { path, message }) => Ok(Answer::Refused { path, message }),
        Err(Error::Write(error)) => Err(io(error)),
    }
}

fn features(input: &[u8]) -> Result<(Made, Vec<u8>), Error> {
    let (collection, text) = Collection::canonical(input)?;
    Ok((Made::Features { count: collection.features.len() }, text.into_bytes()))
}

fn freeze(input: &[u8], with: Option<&Appended>) -> Result<(Made, Vec<u8>), Error> {
    let spec = match with {
        None => Spec::parse(input)?,
        Some(Appended { offset, name }) => {
            let (spec, features) = input.split_at_checked(*offset).unwrap_or((input, b""));
            Spec::parse_with(spec, name, Collection::parse(features)?)?
        }
    };
    let [width, height] = spec.page.pixels();
    let warnings = ode_atlas::warnings(&spec)?;
    Ok((Made::Frozen { width, height, warnings }, spec.frozen()?.into_bytes()))
}

fn draw(input: &[u8], preview_width: Option<u32>, reporter: &mut Reporter) -> Result<(Made, Vec<u8>), Error> {
    let spec = Spec::parse(input)?;
    let mut png = Vec::new();
    let options = Options { preview_width, ..Options::default() };
    let rendered = ode_atlas::render_telling(&spec, &options, &mut png, |done| {
        // Who drew on is not stopped by nobody listening.
        let _ = reporter.progress(done * 100.0, "Drawing the map");
    })?;
    let Rendered { width, height, dpi, warnings, .. } = rendered;
    Ok((Made::Drawn { width, height, dpi, warnings }, png))
}
