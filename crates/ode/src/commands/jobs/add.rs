//! `ode jobs add`: asking for a job.

use crate::names::named;
use crate::output::{self, WrongUse};
use clap::Args;
use ode_cli::document;
use ode_job::{JobRef, NewJob, Pipeline};
use ode_store::Store;
use std::path::PathBuf;
use std::process::ExitCode;

/// A new job.
#[derive(Debug, Args)]
pub(crate) struct Add {
    /// The kind of work
    #[arg(value_parser = named::<Pipeline>())]
    pipeline: Pipeline,
    /// Mapping, script type or format
    #[arg(value_name = "TYPE")]
    kind: String,
    /// What to work on, as JSON
    #[arg(long, value_name = "JSON", default_value = "{}", allow_hyphen_values = true)]
    input: String,
    /// The same from a file, which may be larger than a command line; - reads standard input
    #[arg(long, value_name = "PATH", conflicts_with = "input")]
    input_file: Option<PathBuf>,
    /// How to work on it, as JSON
    #[arg(long, value_name = "JSON", default_value = "{}", allow_hyphen_values = true)]
    config: String,
    /// Your own id for it; a second job with the same one is refused
    #[arg(long, value_name = "ID")]
    external_id: Option<String>,
    /// Higher goes first, -1000 to 1000
    #[arg(long, value_name = "N", default_value_t = 0, allow_negative_numbers = true)]
    priority: i32,
    /// Not before this moment, such as 2026-12-24T18:00:00Z
    #[arg(long, value_name = "MOMENT")]
    run_at: Option<String>,
    /// Print JSON, for programs
    #[arg(long)]
    json: bool,
}

pub(crate) async fn add(store: &Store, args: Add) -> anyhow::Result<ExitCode> {
    let is_json = args.json;
    let id = store.enqueue(args.into_job()?).await?.id();
    let job = store.job(JobRef::Id(id)).await?;
    if is_json {
        output::json(&job)?;
    } else {
        output::line(format!("{}  {}", job.reference, job.state))?;
    }
    Ok(ExitCode::SUCCESS)
}

impl Add {
    fn into_job(self) -> anyhow::Result<NewJob> {
        let input = match &self.input_file {
            Some(path) => document::read(path)?,
            None => document::parse("--input", &self.input)?,
        };
        let mut job = NewJob::new(self.pipeline, self.kind, input);
        job.config = document::parse("--config", &self.config)?;
        job.external_id = self.external_id;
        job.priority = self.priority;
        job.run_at = self.run_at.as_deref().map(parse_moment).transpose()?;
        Ok(job)
    }
}

/// The text itself is not repeated: it may be long, and hold what is nobody's business.
fn parse_moment(text: &str) -> anyhow::Result<jiff::Timestamp> {
    text.parse().map_err(|_| {
        WrongUse(format!("--run-at \"{text}\" is not a moment. Write it like 2026-12-24T18:00:00Z.")).into()
    })
}
