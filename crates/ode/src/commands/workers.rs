//! `ode workers`: who works, and on how much.

use crate::output::{self, Cell, Table};
use clap::Args;
use ode_cli::{Schema, Settings};
use ode_job::WorkerRecord;
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
    print_breakers(&workers)?;
    Ok(ExitCode::SUCCESS)
}

/// What each worker depends on, and whether it is there.
fn print_breakers(workers: &[WorkerRecord]) -> anyhow::Result<()> {
    if workers.iter().all(|worker| worker.about.breakers.is_empty()) {
        return Ok(());
    }
    output::line("")?;
    let mut table =
        Table::new(["WORKER", "DEPENDS ON", "BREAKER", "AWAY SINCE", "NEXT PROBE", "FAILED", "CALLS"]);
    for worker in workers {
        for breaker in &worker.about.breakers {
            table.row([
                worker.id.to_string().into(),
                Cell::start(&breaker.name, NAME_CHARS_MAX),
                Cell::news(&breaker.state, breaker.state == "closed"),
                breaker.away_since.map(output::ago).unwrap_or_default().into(),
                breaker
                    .until
                    .map(|until| until.strftime("%H:%M:%S UTC").to_string())
                    .unwrap_or_default()
                    .into(),
                breaker.failures.to_string().into(),
                breaker.calls.to_string().into(),
            ]);
        }
    }
    table.print()
}

/// An address with its port; a longer one is cut.
const NAME_CHARS_MAX: usize = 48;

/// Enough to tell machines apart; with more, the table would not fit on a screen.
const HOST_CHARS_MAX: usize = 24;
