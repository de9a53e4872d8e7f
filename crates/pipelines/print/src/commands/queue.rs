//! `ode export:queue`: what waits for its export, and seeing to it.
//!
//! A job is in line from the moment it is made, so there is nothing to put there. This shows the line, tries failed
//! exports again, does the work where nobody else does, and watches until all is done. Run twice, or by two people at
//! once, it changes no job twice: every step is the store's.

use crate::machine::{EXPORT, EXPORT_FAILED, EXPORTING, PENDING_EXPORT, PRINT};
use crate::request::PrintInput;
use crate::{ExportHandler, drawer};
use clap::Parser;
use ode_child::Sandbox;
use ode_cli::{self as output, Bar, Cell, Schema, Settings, Table};
use ode_job::{JobId, JobRecord, Phase, RetryPolicy, State};
use ode_store::{Error, ListFilter, Store};
use ode_worker::Registry;
use ode_worker::Worker;
use serde_json::json;
use std::collections::BTreeMap;
use std::process::ExitCode;
use std::time::Duration;

/// Show which maps wait for their export, and see to it
#[derive(Debug, Parser)]
#[command(after_long_help = EXAMPLES)]
pub(super) struct ExportQueue {
    /// Also try exports again that failed, where that can help
    #[arg(long)]
    failed: bool,
    /// Draw the maps here, rather than wait for a worker to do it
    #[arg(long)]
    here: bool,
    /// Stay until every export has ended, and show how far they are
    #[arg(long)]
    watch: bool,
    /// Only show what would be done
    #[arg(long, conflicts_with_all = ["here", "watch"])]
    dry_run: bool,
    /// Print JSON, for programs
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  ode export:queue                   what waits for its export
  ode export:queue --watch           the same, until all of it is done
  ode export:queue --here            draw it all in this process
  ode export:queue --failed --dry-run
                                     which failed exports would be tried again";

/// Between two looks at jobs that others work on.
const LOOK_EVERY: Duration = Duration::from_millis(250);
/// Jobs read at a time.
const PART: usize = 1000;
/// Jobs seen to at a time; the rest is for the next time.
const JOBS_MAX: usize = 10_000;

pub(super) async fn run(settings: &Settings, args: &ExportQueue) -> anyhow::Result<ExitCode> {
    let store = settings.store("cli", Schema::Check).await?;
    // In this order, a job that starts meanwhile is seen twice rather than not at all.
    let mut jobs = in_state(&store, PENDING_EXPORT).await?;
    jobs.extend(in_state(&store, EXPORTING).await?);
    if args.failed {
        jobs.extend(tried_again(&store, args.dry_run).await?);
    }
    // Ids are in order of creation.
    jobs.sort_by_key(|job| job.id);
    jobs.dedup_by_key(|job| job.id);
    let is_brief = !args.watch && !args.here;
    if is_brief {
        show(&jobs, args)?;
    }
    if !args.json && !args.here {
        advise(&store, &jobs, args).await?;
    }
    if is_brief {
        return Ok(ExitCode::SUCCESS);
    }
    let worker = if args.here { Some(worker(settings, &store).await?) } else { None };
    let ended = watch(&store, jobs.iter().map(|job| job.id).collect(), args).await;
    if let Some(worker) = worker {
        worker.stop().await?;
    }
    report(&ended?, args)
}

/// All jobs in this state.
async fn in_state(store: &Store, state: State) -> anyhow::Result<Vec<JobRecord>> {
    let mut jobs = Vec::new();
    let mut before = None;
    while jobs.len() < JOBS_MAX {
        let filter = ListFilter {
            pipeline: Some(PRINT),
            state: Some(state),
            before,
            limit: PART,
            ..ListFilter::default()
        };
        let page = store.jobs(&filter).await?;
        jobs.extend(page.jobs);
        before = page.next_cursor;
        if before.is_none() {
            break;
        }
    }
    Ok(jobs)
}

/// Puts failed exports in line again, or says which that would be.
async fn tried_again(store: &Store, is_dry_run: bool) -> anyhow::Result<Vec<JobRecord>> {
    let mut jobs = in_state(store, EXPORT_FAILED).await?;
    jobs.retain(JobRecord::can_print_again);
    if is_dry_run {
        return Ok(jobs);
    }
    let mut tried = Vec::new();
    for job in jobs {
        match store.retry(job.id).await {
            Ok(_) => tried.push(store.job(ode_job::JobRef::Id(job.id)).await?),
            // Somebody else was quicker.
            Err(Error::Refused { .. } | Error::Busy(_) | Error::NotFound(_)) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(tried)
}

fn show(jobs: &[JobRecord], args: &ExportQueue) -> anyhow::Result<()> {
    if args.json {
        let job = |job: &JobRecord| {
            json!({
                "id": job.id, "reference": job.reference, "printable_map_id": PrintInput::of(&job.input).printable_map_id,
                "state": job.state, "attempt_count": job.attempt_count, "created_at": job.created_at,
            })
        };
        return output::json(&jobs.iter().map(job).collect::<Vec<_>>());
    }
    if jobs.is_empty() {
        output::tell("Nothing waits for its export.");
        return Ok(());
    }
    let mut table = Table::new(["REFERENCE", "MAP", "STATE", "TRIES", "ASKED FOR"]);
    for job in jobs {
        let map = PrintInput::of(&job.input).printable_map_id;
        table.row([
            job.reference.as_str().into(),
            map.map(|map| map.to_string()).unwrap_or_default().into(),
            Cell::state(job.state.as_str(), job.phase),
            job.attempt_count.to_string().into(),
            output::ago(job.created_at).into(),
        ]);
    }
    table.print()
}

/// Says what comes next, to whoever reads the list or waits.
async fn advise(store: &Store, jobs: &[JobRecord], args: &ExportQueue) -> anyhow::Result<()> {
    if args.dry_run {
        let count = jobs.iter().filter(|job| job.state == EXPORT_FAILED).count();
        output::tell(format!("In line: {}. To be tried again: {count}.", jobs.len() - count));
    } else if !jobs.is_empty() && !store.workers().await?.iter().any(|worker| worker.is_alive) {
        output::tell("No worker is running. Start one with `ode worker`, or draw the maps here with --here.");
    }
    Ok(())
}

async fn worker(settings: &Settings, store: &Store) -> anyhow::Result<Worker> {
    let at_once = std::thread::available_parallelism().map_or(1, usize::from);
    let handler = ExportHandler::new(drawer(None, Sandbox::BestEffort)?, at_once, RetryPolicy::default());
    let registry = Registry::new().with(EXPORT, handler);
    let config = ode_worker::Config::default();
    Ok(Worker::start(store.clone(), Some(settings.blobs()?), registry, config).await?)
}

/// Waits until these exports have ended, one way or the other. Answers how each did.
async fn watch(store: &Store, ids: Vec<JobId>, args: &ExportQueue) -> anyhow::Result<Vec<JobRecord>> {
    // One export is watched by its percentage, many by their number.
    let mut bar = Bar::new(if ids.len() == 1 { 100 } else { ids.len() });
    let mut ended: BTreeMap<JobId, JobRecord> = BTreeMap::new();
    loop {
        let left: Vec<JobId> = ids.iter().copied().filter(|id| !ended.contains_key(id)).collect();
        let mut percent = 100;
        for part in left.chunks(PART) {
            for job in store.jobs_by_id(part.iter().copied()).await? {
                percent = job.record.progress.percent;
                if is_ended(&job.record) {
                    bar.clear();
                    tell_end(&job.record, args)?;
                    ended.insert(job.record.id, job.record);
                }
            }
        }
        bar.clear();
        bar.set(if ids.len() == 1 { usize::from(percent) } else { ended.len() });
        if ended.len() >= ids.len() || left.is_empty() {
            break;
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
    bar.clear();
    Ok(ended.into_values().collect())
}

/// Whether nothing more will happen to an export by itself.
fn is_ended(job: &JobRecord) -> bool {
    !matches!(job.state, PENDING_EXPORT | EXPORTING)
}

fn tell_end(job: &JobRecord, args: &ExportQueue) -> anyhow::Result<()> {
    if args.json {
        return Ok(());
    }
    match &job.error_message {
        Some(message) => output::line(format!("{}  {}: {message}", job.reference, job.state)),
        None => output::line(format!("{}  {}", job.reference, job.state)),
    }
}

fn report(ended: &[JobRecord], args: &ExportQueue) -> anyhow::Result<ExitCode> {
    let failed = ended.iter().filter(|job| job.phase == Phase::Failed).count();
    if args.json {
        show(ended, args)?;
    } else if ended.is_empty() {
        output::tell("Nothing waits for its export.");
    } else {
        output::tell(format!("{} exported, {failed} failed.", ended.len() - failed));
    }
    Ok(if failed > 0 { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}
