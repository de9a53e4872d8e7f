//! `ode workers`: who works, and on how much.

use crate::config::{Schema, Settings};
use crate::output::{self, Cell, Table};
use clap::Args;
use std::process::ExitCode;

/// How to show them.
#[derive(Debug, Args)]
pub(crate) struct Workers {
    /// Print JSON, for programs
    #[arg(long)]
    json: bool,
}

pub(crate) async fn run(settings: &Settings, args: &Workers) -> anyhow::Result<ExitCode> {
    let store = settings.store("cli", Schema::Check).await?;
    let workers = store.workers().await?;
    if args.json {
        output::json(&workers)?;
        return Ok(ExitCode::SUCCESS);
    }
    if workers.is_empty() {
        output::tell("No worker is running. Start one with `ode serve` or `ode worker`.");
        return Ok(ExitCode::SUCCESS);
    }
    let mut table = Table::new(["WORKER", "HOST", "PID", "VERSION", "STATE", "JOBS", "STARTED", "LAST SEEN"]);
    for worker in &workers {
        let state = match (worker.is_alive, worker.is_draining) {
            (false, _) => Cell::news("lost", false),
            (true, true) => Cell::from("stopping"),
            (true, false) => Cell::news("alive", true),
        };
        table.row([
            worker.id.to_string().into(),
            Cell::start(&worker.host, HOST_CHARS_MAX),
            worker.pid.to_string().into(),
            worker.version.as_str().into(),
            state,
            worker.running.to_string().into(),
            output::ago(worker.started_at).into(),
            output::ago(worker.beat_at).into(),
        ]);
    }
    table.print()?;
    Ok(ExitCode::SUCCESS)
}

/// Enough to tell machines apart; with more, the table would not fit on a screen.
const HOST_CHARS_MAX: usize = 24;
