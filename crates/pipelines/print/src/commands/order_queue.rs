//! `ode print:queue`: exported prints on their way to being ordered.
//!
//! A print whose order was asked for goes on by itself; this sees to those that did not, shows the rest, and watches.
//! Run twice, or by two people at once, it changes no job twice: every step is the store's.

use crate::machine::{FULFILLED, ORDER_FAILED, ORDERED};
use crate::sql::{ReadyPrint, go_on_to_order, prints_ready};
use clap::Parser;
use ode_cli::{self as output, Bar, Schema, Settings, Table};
use ode_job::{JobId, JobRef};
use ode_store::Store;
use serde_json::json;
use std::process::ExitCode;
use std::time::Duration;

/// Show which exported prints wait to be ordered, and see to it
#[derive(Debug, Parser)]
#[command(after_long_help = EXAMPLES)]
pub(super) struct PrintQueue {
    /// Stay until every order is placed or has failed, and show how far they are
    #[arg(long)]
    watch: bool,
    /// Only show what would be done
    #[arg(long, conflicts_with = "watch")]
    dry_run: bool,
    /// Print JSON, for programs
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  ode print:queue --dry-run          which exported prints would be ordered
  ode print:queue                    see to it that they are
  ode print:queue --watch            the same, until all of them are placed";

/// Prints seen to at a time; the rest is for the next time.
const JOBS_MAX: u16 = 10_000;
/// Between two looks at jobs that workers work on.
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// An exported print.
struct Ready {
    job: JobId,
    /// What is done about it.
    word: &'static str,
}

pub(super) async fn run(settings: &Settings, args: &PrintQueue) -> anyhow::Result<ExitCode> {
    let store = settings.store("cli", Schema::Check).await?;
    let mut prints = Vec::new();
    for ReadyPrint { job, is_asked, is_in_line } in prints_ready(store.sql(), JOBS_MAX).await? {
        let word = match (is_asked, is_in_line) {
            (true, true) => "in line",
            (true, false) if args.dry_run => "would be put in line",
            (true, false) => {
                go_on_to_order(&store, job).await?;
                "put in line"
            }
            (false, _) => "no order asked for",
        };
        prints.push(Ready { job, word });
    }
    show(&prints, args)?;
    if args.watch {
        let waiting = prints.iter().filter(|print| print.word != "no order asked for");
        return watch(&store, waiting.map(|print| print.job).collect()).await;
    }
    Ok(ExitCode::SUCCESS)
}

fn show(prints: &[Ready], args: &PrintQueue) -> anyhow::Result<()> {
    if args.json {
        let print = |print: &Ready| json!({ "id": print.job, "reference": print.job.reference(), "what": print.word });
        return output::json(&prints.iter().map(print).collect::<Vec<_>>());
    }
    if prints.is_empty() {
        output::tell("No exported print waits to be ordered.");
        return Ok(());
    }
    let mut table = Table::new(["REFERENCE", "ORDER"]);
    prints.iter().for_each(|print| table.row([print.job.reference().into(), print.word.into()]));
    table.print()
}

/// Waits until each is placed or has failed.
async fn watch(store: &Store, mut waiting: Vec<JobId>) -> anyhow::Result<ExitCode> {
    let mut bar = Bar::new(waiting.len());
    let mut failed = 0;
    while !waiting.is_empty() {
        let mut left = Vec::new();
        for id in waiting {
            let job = store.job(JobRef::Id(id)).await?;
            match job.state {
                ORDERED | FULFILLED => bar.step(),
                ORDER_FAILED => {
                    failed += 1;
                    bar.clear();
                    output::tell(format!("{}: {}", job.reference, job.error_message.unwrap_or_default()));
                    bar.step();
                }
                _ => left.push(id),
            }
        }
        waiting = left;
        tokio::time::sleep(LOOK_EVERY).await;
    }
    bar.clear();
    Ok(if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
