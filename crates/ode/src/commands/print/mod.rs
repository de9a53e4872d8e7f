//! `ode print` and `ode export:queue`: maps on their way to paper.

mod backfill;
mod make;
mod queue;

pub(crate) use queue::{EXAMPLES as QUEUE_EXAMPLES, ExportQueue, run as export_queue};

use crate::config::{Schema, Settings};
use clap::Subcommand;
use std::process::ExitCode;

/// What to do with prints.
#[derive(Debug, Subcommand)]
pub(crate) enum Print {
    /// Freeze a map and ask for its export
    Export(make::Export),
    /// Print a frozen map once more, as a job of its own
    Reprint(make::Reprint),
    /// Ask for the export of every frozen map that has no job yet
    Backfill(backfill::Backfill),
}

/// Shown after the long help.
pub(crate) const EXAMPLES: &str = "\
Examples:
  ode print export map.json                  a job that draws this map for print
  ode print export --user-map 0198c0de-…     one that draws the features of a map that is kept
  ode print reprint 0198c0de-…               the same frozen map once more
  ode print backfill --dry-run               which frozen maps no job prints
  ode export:queue --watch                   how far all exports are";

pub(crate) async fn run(settings: &Settings, command: Print) -> anyhow::Result<ExitCode> {
    let schema = if matches!(command, Print::Export(_)) { Schema::Migrate } else { Schema::Check };
    let store = settings.store("cli", schema).await?;
    match command {
        Print::Export(args) => make::export(&store, args).await,
        Print::Reprint(args) => make::reprint(&store, args).await,
        Print::Backfill(args) => backfill::backfill(&store, &args).await,
    }
}
