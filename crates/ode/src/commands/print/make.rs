//! `ode print export` and `reprint`: asking for prints.

use crate::commands::drawing::drawer;
use crate::commands::maps::read_text;
use crate::output;
use anyhow::Context as _;
use clap::Args;
use ode_child::Sandbox;
use ode_job::{Failure, JobId, Owner};
use ode_store::{FrozenMap, Store};
use serde_json::json;
use std::path::PathBuf;
use std::process::ExitCode;
use uuid::Uuid;

/// Which map to print.
#[derive(Debug, Args)]
pub(crate) struct Export {
    /// The map's specification as JSON; - reads standard input
    #[arg(required_unless_present = "user_map")]
    spec: Option<PathBuf>,
    /// Draw the features of this map that is kept
    #[arg(long, value_name = "ID")]
    user_map: Option<Uuid>,
    #[command(flatten)]
    how: How,
}

/// Which frozen map to print once more.
#[derive(Debug, Args)]
pub(crate) struct Reprint {
    /// The id of the frozen map
    #[arg(value_name = "MAP")]
    map: Uuid,
    #[command(flatten)]
    how: How,
}

/// What holds for both.
#[derive(Debug, Args)]
struct How {
    /// A name for this request: given again with the same map, it makes nothing new
    #[arg(long, value_name = "NAME")]
    key: Option<String>,
    /// Print JSON, for programs
    #[arg(long)]
    json: bool,
}

/// A specification in which everything is as it is unless told.
const PLAIN_MAP: &[u8] = b"{\"schema\": 1}";

pub(crate) async fn export(store: &Store, args: Export) -> anyhow::Result<ExitCode> {
    let spec = match &args.spec {
        Some(path) => read_text(path)?,
        None => PLAIN_MAP.to_vec(),
    };
    let kept = match args.user_map {
        Some(id) => Some(store.user_map(Owner::Operator, id).await?),
        None => None,
    };
    let features = kept.as_ref().map(|map| (map.name.as_str(), map.data.as_deref().unwrap_or_default()));
    let frozen = drawer(Some(1), Sandbox::BestEffort)?.freeze(spec.into(), features).await;
    let frozen = frozen.map_err(|undrawn| anyhow::anyhow!(Failure::from(undrawn).message))?;
    let map = FrozenMap::new(frozen.text, kept.map(|map| (map.id, map.version)));
    let printing = store.print_map(Owner::Operator, &map, args.how.key, false).await?;
    tell(printing.map, printing.job, args.how.json)
}

pub(crate) async fn reprint(store: &Store, args: Reprint) -> anyhow::Result<ExitCode> {
    let job = store.reprint(Owner::Operator, args.map, args.how.key, false).await;
    let job = job.with_context(|| format!("Map {} was not printed again", args.map))?.id();
    tell(args.map, job, args.how.json)
}

fn tell(map: Uuid, job: JobId, is_json: bool) -> anyhow::Result<ExitCode> {
    if is_json {
        output::json(&json!({ "printableMapId": map, "printJobId": job }))?;
    } else {
        output::line(job.reference())?;
        output::tell(format!("It prints map {map}. `ode export:queue --watch` shows how far it is."));
    }
    Ok(ExitCode::SUCCESS)
}
