//! `ode print backfill`: a job for each frozen map that has none, such as those from before there were jobs.

use crate::sql::{reprint, unprinted_maps};
use clap::Args;
use ode_cli as output;
use ode_job::Owner;
use ode_store::{Enqueued, Store};
use serde_json::json;
use std::process::ExitCode;
use uuid::Uuid;

/// How to do it.
#[derive(Debug, Args)]
pub(super) struct Backfill {
    /// Only show which maps would get a job
    #[arg(long)]
    dry_run: bool,
    /// Print JSON, for programs
    #[arg(long)]
    json: bool,
}

/// Maps looked at together.
const PART: usize = 500;

pub(super) async fn backfill(store: &Store, args: &Backfill) -> anyhow::Result<ExitCode> {
    let (mut after, mut made, mut maps) = (Uuid::nil(), 0, Vec::new());
    loop {
        let part = unprinted_maps(store.sql(), after, PART).await?;
        let Some(last) = part.last() else { break };
        after = last.id;
        for map in part {
            let job = if args.dry_run {
                None
            } else {
                // Under the map's own name: whoever does the same at this moment makes no second job.
                let key = Some(format!("backfill:{}", map.id));
                let enqueued = reprint(store, Owner::Operator, map.id, key).await?;
                made += usize::from(matches!(enqueued, Enqueued::New(_)));
                Some(enqueued.id())
            };
            if !args.json {
                let job = job.map_or_else(|| "would get a job".into(), |job| job.reference());
                output::line(format!("{}  {job}", map.id))?;
            }
            maps.push(json!({ "printableMapId": map.id, "printJobId": job }));
        }
    }
    if args.json {
        output::json(&maps)?;
    } else if maps.is_empty() {
        output::tell("Every frozen map has its job already.");
    } else if args.dry_run {
        output::tell(format!("{} maps have no job. Without --dry-run, each gets one.", maps.len()));
    } else {
        output::tell(format!("{made} jobs were made. `ode export:queue --watch` shows how far they are."));
    }
    Ok(ExitCode::SUCCESS)
}
