//! `ode job:status`: where one job stands, in a line or two, and until it has ended if that is wanted.

use crate::machine::{EXPORT_COMPLETE, ORDERED, PRINT};
use crate::sql::{OrderRecord, export_warnings, order_of};
use clap::Parser;
use ode_cli::{self as output, Cell, Schema, Settings, Table};
use ode_job::{JobRecord, JobRef, Phase};
use ode_store::Store;
use serde_json::json;
use std::collections::HashMap;
use std::process::ExitCode;
use std::time::Duration;

/// Show where one job stands
#[derive(Debug, Parser)]
pub(super) struct JobStatus {
    /// Its reference (JOB_…) or id
    job: JobRef,
    /// Stay until it has ended (or is ordered, or exported and not to be ordered), and tell each change
    #[arg(long)]
    watch: bool,
    /// Print JSON, for programs: with --watch, a line for each change
    #[arg(long)]
    json: bool,
}

/// Between two looks.
const LOOK_EVERY: Duration = Duration::from_millis(250);

pub(super) async fn run(settings: &Settings, args: &JobStatus) -> anyhow::Result<ExitCode> {
    let store = settings.store("cli", Schema::Check).await?;
    let id = store.resolve(args.job).await?;
    let mut told = None;
    loop {
        let job = store.job(JobRef::Id(id)).await?;
        let order = order_of(store.sql(), id).await?;
        let is_over = matches!(job.phase, Phase::Done | Phase::Failed | Phase::Cancelled);
        // Without an order, an exported print goes no further by itself.
        let is_resting = job.state == EXPORT_COMPLETE && order.is_none();
        let is_over = is_over || is_resting || job.state == ORDERED;
        let now = (job.state, order.as_ref().map(|order| order.phase));
        if told != Some(now) {
            tell(&store, &job, order.as_ref(), args).await?;
            told = Some(now);
        }
        if !args.watch || is_over {
            return Ok(if job.phase == Phase::Failed { ExitCode::FAILURE } else { ExitCode::SUCCESS });
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

async fn tell(
    store: &Store,
    job: &JobRecord,
    order: Option<&OrderRecord>,
    args: &JobStatus,
) -> anyhow::Result<()> {
    let files = store.artifacts(job.id).await?;
    let export = files.iter().find(|file| file.role == "export");
    let is_print = job.pipeline == PRINT;
    let warnings = if is_print { export_warnings(store.sql(), &[job.id]).await? } else { HashMap::new() };
    let warnings = warnings.into_values().next().unwrap_or_default();
    let status = json!({
        "id": job.id, "reference": job.reference, "state": job.state,
        "export_file_path": export.map(|file| &file.path),
        "printful_order_id": order.and_then(|order| order.provider_order_id),
        "order": order, "warnings": warnings, "error_code": job.error_code, "error_message": job.error_message,
    });
    if args.json && args.watch {
        return output::line(status);
    }
    if args.json {
        return output::json(&status);
    }
    if args.watch {
        let phase = order.map(|order| format!(", order {}", order.phase)).unwrap_or_default();
        let attention = order.and_then(|order| order.attention_message.as_ref());
        let why = job.error_message.as_ref().or(attention).map(|why| format!(": {why}")).unwrap_or_default();
        return output::line(format!("{}  {}{phase}{why}", job.reference, job.state));
    }
    let mut table = Table::new(["job", &job.reference]);
    table.row(["state".into(), Cell::state(job.state.as_str(), job.phase)]);
    let mut line = |name: &str, value: Option<String>| {
        if let Some(value) = value {
            table.row([name.into(), value.into()]);
        }
    };
    line("export", export.map(|file| file.path.clone()));
    warnings.into_iter().for_each(|warning| line("note", Some(warning)));
    line("order", order.and_then(|order| order.provider_order_id).map(|id| id.to_string()));
    line("order phase", order.map(|order| order.phase.to_string()));
    line("shipped", order.and_then(|order| order.shipped_at).map(output::moment));
    line("attention", order.and_then(|order| order.attention_message.clone()));
    line("error", job.error_message.clone());
    if is_print && order.is_none() && job.state == EXPORT_COMPLETE {
        line("next", Some("order it with `ode print order`".into()));
    }
    table.print()
}
