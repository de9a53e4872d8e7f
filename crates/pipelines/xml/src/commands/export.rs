//! `ode export`: what the installation has learned, for other programs.

use crate::sql::training_samples;
use clap::Parser;
use ode_cli as output;
use ode_cli::Schema;
use ode_pipeline::Call;
use std::process::ExitCode;
use uuid::Uuid;

/// Write what people corrected, for other programs to learn from
#[derive(Debug, Parser)]
pub(super) enum Export {
    /// What people corrected, one JSON object a line: which field of which document read what, and what is right
    #[command(after_long_help = EXAMPLES)]
    Training {
        /// Only what came after this one: the id of the last line of an earlier export
        #[arg(long, value_name = "ID")]
        after: Option<Uuid>,
    },
}

const EXAMPLES: &str = "\
Examples:
  ode export training > samples.jsonl
  ode export training --after 0198c0de-0000-7000-8000-000000000000   only what is newer than that";

pub(super) async fn run(call: Call, export: Export) -> anyhow::Result<ExitCode> {
    let Export::Training { after } = export;
    let store = call.settings.store("cli", Schema::Check).await?;
    let (mut after, mut is_empty) = (after.unwrap_or(Uuid::nil()), true);
    loop {
        let samples = training_samples(store.sql(), after).await?;
        let Some(last) = samples.last() else {
            if is_empty {
                output::tell("Nobody has corrected anything yet, so there is nothing to export.");
            }
            return Ok(ExitCode::SUCCESS);
        };
        is_empty = false;
        after = last.id;
        for sample in &samples {
            output::line(serde_json::to_string(sample)?)?;
        }
    }
}
