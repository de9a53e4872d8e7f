//! `ode cleanup`: removes what was kept long enough, now. A worker does the same once a day.

use crate::{output, wire};
use clap::Args;
use ode_cli::{Schema, Settings};
use ode_job::WorkerId;
use ode_store::{Cleaned, LEFTOVERS, Places, Retention, Store};
use std::process::ExitCode;
use std::time::Duration;
use uuid::Uuid;

/// How to clean up.
#[derive(Debug, Args)]
pub(crate) struct Cleanup {
    /// Only say what would be removed
    #[arg(long)]
    dry_run: bool,
    /// Print JSON, for programs
    #[arg(long)]
    json: bool,
}

pub(crate) const EXAMPLES: &str = "\
Examples:
  ode cleanup --dry-run     what would be removed today
  ode cleanup               remove it now rather than tonight

Nothing goes before its time: see --keep-documents, --keep-results and --keep-events of
`ode serve`. Events are in compressed files under archive/events in the storage before
they are removed.";

pub(crate) async fn run(settings: &Settings, args: &Cleanup) -> anyhow::Result<ExitCode> {
    let store = settings.store("cli", Schema::Check).await?;
    let blobs = settings.blobs()?;
    let cleaned = if args.dry_run {
        store.cleanup_plan(&blobs).await?
    } else {
        withdraw(&store, &settings.places()?).await?;
        store.cleanup(&blobs).await?
    };
    if args.json {
        output::json(&cleaned)?;
    } else {
        print(&cleaned, &store.retention().await?, args.dry_run)?;
    }
    Ok(if cleaned.is_storage_suspect { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// Takes away what failed jobs left at output prefixes, unless a worker is at it.
async fn withdraw(store: &Store, places: &Places) -> anyhow::Result<()> {
    let me = WorkerId(Uuid::new_v4());
    if store.take_chore(LEFTOVERS, me, Duration::ZERO).await? {
        store.withdraw_failed(places, &wire::publishers(), me).await?;
        // A worker looks again: it knows from when on.
        store.leave_chore(LEFTOVERS, me).await?;
    }
    Ok(())
}

fn print(cleaned: &Cleaned, kept: &Retention, is_dry: bool) -> anyhow::Result<()> {
    let verb = if is_dry { "Would remove" } else { "Removed" };
    let size = cleaned.bytes as f64 / 1e6;
    output::line(format!("{verb} {} documents older than {}", cleaned.sources, days(kept.sources)))?;
    output::line(format!(
        "{verb} {} results older than {} ({size:.1} MB together)",
        cleaned.results,
        days(kept.results)
    ))?;
    let archive = if is_dry { "Would archive" } else { "Archived" };
    output::line(format!("{archive} {} events older than {}", cleaned.events_archived, days(kept.events)))?;
    output::line(format!(
        "{archive} {} scripts older than {}",
        cleaned.scripts_archived,
        days(kept.scripts)
    ))?;
    output::line(format!("{verb} {} files that belong to nothing", cleaned.orphans))?;
    if cleaned.lost > 0 {
        let said = if is_dry { "would be" } else { "are" };
        output::line(format!(
            "{} files of jobs are not in the storage; they {said} shown as expired",
            cleaned.lost
        ))?;
    }
    if cleaned.is_storage_suspect {
        output::tell(
            "Most files of jobs are not in the storage, so nothing was done about those. Is --storage the right place?",
        );
    }
    Ok(())
}

fn days(kept: Duration) -> String {
    let seconds = kept.as_secs_f64();
    let (count, unit) = match seconds {
        86_400.0.. => (seconds / 86_400.0, "days"),
        3_600.0.. => (seconds / 3_600.0, "hours"),
        60.0.. => (seconds / 60.0, "minutes"),
        _ => (seconds, "seconds"),
    };
    let count = format!("{count:.1}");
    format!("{} {unit}", count.strip_suffix(".0").unwrap_or(&count))
}
