//! `ode jobs`: looking at jobs, and acting on them.

mod act;
pub(super) mod add;
mod look;

use act::Wish;
use clap::Subcommand;
use ode_cli::{Schema, Settings};
use std::process::ExitCode;

/// What to do with jobs.
#[derive(Debug, Subcommand)]
pub(crate) enum Jobs {
    /// Ask for a job
    Add(add::Add),
    /// List jobs, newest first
    List(look::List),
    /// Show everything about a job
    Show(look::One),
    /// Show what happened to a job
    Events(look::One),
    /// Show what a job's attempts logged
    Logs(look::Logs),
    /// Try jobs that failed again
    Retry(act::Many),
    /// Call off jobs that have not started
    Cancel(act::Many),
    /// End jobs that are running
    Stop(act::Many),
}

/// Shown after the long help.
pub(crate) const EXAMPLES: &str = "\
Examples:
  ode jobs list --phase failed                   what went wrong lately
  ode jobs show JOB_20261115_093000_1a2b3c4d     everything about one job; its id will do as well
  ode jobs retry JOB_… JOB_…                     try these again
  ode jobs add script greet --input '{\"name\": \"Ada\"}'
  ode jobs add html html5 --input-file request.json --external-id order-42
  ode jobs list --json --limit 1000 | jq -r '.jobs[] | select(.error_code == \"GW_5XX\").id'";

pub(crate) async fn run(settings: &Settings, command: Jobs) -> anyhow::Result<ExitCode> {
    let store = settings.store("cli", Schema::Check).await?;
    match command {
        Jobs::Add(args) => add::add(&store, args).await,
        Jobs::List(args) => look::list(&store, args).await,
        Jobs::Show(args) => look::show(&store, &args).await,
        Jobs::Events(args) => look::events(&store, &args).await,
        Jobs::Logs(args) => look::logs(&store, &args).await,
        Jobs::Retry(args) => act::act(&store, &args, Wish::Retry).await,
        Jobs::Cancel(args) => act::act(&store, &args, Wish::Cancel).await,
        Jobs::Stop(args) => act::act(&store, &args, Wish::Stop).await,
    }
}
