//! `ode print export` and `reprint`: asking for prints.

use super::maps::read_text;
use super::order::{organisation_id, read_order};
use crate::drawer;
use crate::request::PrintInput;
use crate::sql::{self, FrozenMap, PaidOrder};
use anyhow::Context as _;
use clap::Args;
use ode_child::Sandbox;
use ode_cli as output;
use ode_job::{Failure, JobId, JobRef, Owner};
use ode_store::Store;
use serde_json::{Value, json};
use std::path::PathBuf;
use std::process::ExitCode;
use std::str::FromStr;
use uuid::Uuid;

/// Which map to print.
#[derive(Debug, Args)]
pub(super) struct Export {
    /// The map's specification as JSON; - reads standard input
    #[arg(required_unless_present = "user_map")]
    spec: Option<PathBuf>,
    /// Draw the features of this map that is kept
    #[arg(long, value_name = "ID")]
    user_map: Option<Uuid>,
    /// The organisation whose map it is [default: nobody's]
    #[arg(long, value_name = "NAME")]
    organisation: Option<String>,
    /// Order the print in the same step: what to order and where it goes, as JSON
    #[arg(long, value_name = "FILE", requires = "organisation")]
    order: Option<PathBuf>,
    #[command(flatten)]
    how: How,
}

/// Which frozen map to print once more.
#[derive(Debug, Args)]
pub(super) struct Reprint {
    /// The id of the frozen map, or the reference (JOB_…) of a print of it
    map: Printed,
    #[command(flatten)]
    how: How,
}

/// A frozen map, as it is called.
#[derive(Debug, Clone)]
enum Printed {
    Map(Uuid),
    By(JobRef),
}

impl FromStr for Printed {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let is_map = text.trim().parse().map(Printed::Map);
        is_map.or_else(|_| text.parse().map(Printed::By)).map_err(|_: <JobRef as FromStr>::Err| {
            format!("\"{text}\" is no map. Give the id that `ode print export` told, or the reference (JOB_…) of a print of it.")
        })
    }
}

impl Printed {
    async fn id(&self, store: &Store) -> anyhow::Result<Uuid> {
        match self {
            Printed::Map(id) => Ok(*id),
            Printed::By(job) => {
                let job = store.job(*job).await?;
                let map = PrintInput::of(&job.input).printable_map_id;
                map.with_context(|| format!("{} prints no map. Give a print's reference.", job.reference))
            }
        }
    }
}

/// What holds for both.
#[derive(Debug, Args)]
struct How {
    /// A name for this request: given again with the same map, it makes nothing new
    #[arg(long, value_name = "NAME")]
    key: Option<String>,
    /// Only check that it could be printed
    #[arg(long)]
    dry_run: bool,
    /// Print JSON, for programs
    #[arg(long)]
    json: bool,
}

/// A specification in which everything is as it is unless told.
const PLAIN_MAP: &[u8] = b"{\"schema\": 1}";

pub(super) async fn export(store: &Store, args: Export) -> anyhow::Result<ExitCode> {
    let owner = match &args.organisation {
        Some(name) => Owner::Organisation(organisation_id(store, name).await?),
        None => Owner::Operator,
    };
    let ask = args.order.as_deref().map(read_order).transpose()?;
    let (map, warnings) = frozen(store, owner, &args).await?;
    warnings.iter().for_each(|warning| output::tell(format!("note: {warning}")));
    let order = match (owner, ask) {
        (Owner::Organisation(organisation), Some(ask)) => Some(PaidOrder { organisation, ask }),
        _ => None,
    };
    if args.how.dry_run {
        return tried(sql::check_print(store, owner, &map, args.how.key, order).await?);
    }
    let printing = sql::print_map(store, owner, &map, args.how.key, order).await?;
    let made = json!({ "printableMapId": printing.map, "printJobId": printing.job, "warnings": warnings });
    tell(printing.job, made, args.how.json)
}

/// Tells what would be made.
fn tried(known: Option<JobId>) -> anyhow::Result<ExitCode> {
    output::tell(match known {
        None => "The map can be printed. Nothing was made.".to_owned(),
        Some(job) => format!("This request has made {} before, and makes nothing new.", job.reference()),
    });
    Ok(ExitCode::SUCCESS)
}

/// The map that is asked for, checked and ready to be kept, and what its maker should know about it.
async fn frozen(store: &Store, owner: Owner, args: &Export) -> anyhow::Result<(FrozenMap, Vec<String>)> {
    let spec = match &args.spec {
        Some(path) => read_text(path)?,
        None => PLAIN_MAP.to_vec(),
    };
    let kept = match args.user_map {
        Some(id) => Some(sql::user_map(store.sql(), owner, id).await?),
        None => None,
    };
    let features = kept.as_ref().map(|map| (map.name.as_str(), map.data.as_deref().unwrap_or_default()));
    let frozen = drawer(Some(1), Sandbox::BestEffort)?.freeze(spec.into(), features).await;
    let frozen = frozen.map_err(|undrawn| anyhow::anyhow!(Failure::from(undrawn).message))?;
    Ok((FrozenMap::new(frozen.text, kept.map(|map| (map.id, map.version))), frozen.warnings))
}

pub(super) async fn reprint(store: &Store, args: Reprint) -> anyhow::Result<ExitCode> {
    let map = args.map.id(store).await?;
    if args.how.dry_run {
        return tried(sql::check_reprint(store, Owner::Operator, map, args.how.key).await?);
    }
    let job = sql::reprint(store, Owner::Operator, map, args.how.key).await;
    let job = job.with_context(|| format!("Map {map} was not printed again"))?.id();
    tell(job, json!({ "printableMapId": map, "printJobId": job }), args.how.json)
}

fn tell(job: JobId, made: Value, is_json: bool) -> anyhow::Result<ExitCode> {
    if is_json {
        output::json(&made)?;
    } else {
        output::line(job.reference())?;
        let map = made["printableMapId"].as_str().unwrap_or_default();
        output::tell(format!("It prints map {map}. `ode export:queue --watch` shows how far it is."));
    }
    Ok(ExitCode::SUCCESS)
}
