//! `ode webhooks`: who is told when jobs end, and what became of the messages.

use super::keys::KeyOwner;
use crate::output::{self, Table, WrongUse};
use clap::{Args, Subcommand};
use ode_cli::{Schema, Settings};
use ode_job::{JobId, JobRef};
use ode_store::{Delivery, Store};
use serde_json::Value;
use std::process::ExitCode;
use std::time::Duration;
use uuid::Uuid;

/// What to do with webhooks.
#[derive(Debug, Subcommand)]
pub(crate) enum Webhooks {
    /// Tell an address whenever a job of this owner ends
    Add(Add),
    /// List the addresses that are told
    Endpoints(Json),
    /// Tell an address nothing more
    Remove(Remove),
    /// Show what messages to an owner are signed with
    Secret(Secret),
    /// Make a new secret; messages are signed with the old one as well for a while
    Rotate(Rotate),
    /// List messages and what became of them, newest first
    List(List),
    /// Send messages once more, from the beginning
    Replay(Replay),
}

pub(crate) const EXAMPLES: &str = "\
Examples:
  ode webhooks add --organisation acme https://acme.example/hooks/ode
  ode webhooks secret --organisation acme              what the receiver checks signatures with
  ode webhooks rotate --organisation acme              a new one; the old one holds for a day
  ode webhooks list --status failed
  ode webhooks replay msg_0198c0de7a317c529d2e5b1f4d0a9e77   a message, or all messages of a job";

/// Which address.
#[derive(Debug, Args)]
pub(crate) struct Add {
    #[command(flatten)]
    owner: KeyOwner,
    /// The address, such as https://acme.example/hooks/ode
    url: String,
}

/// How to print.
#[derive(Debug, Args)]
pub(crate) struct Json {
    /// Write JSON
    #[arg(long)]
    json: bool,
}

/// Which address to forget.
#[derive(Debug, Args)]
pub(crate) struct Remove {
    /// Its id, as `ode webhooks endpoints` shows it
    id: Uuid,
}

/// Whose secret.
#[derive(Debug, Args)]
pub(crate) struct Secret {
    #[command(flatten)]
    owner: KeyOwner,
}

/// Whose secret, and for how long the one before it is good.
#[derive(Debug, Args)]
pub(crate) struct Rotate {
    #[command(flatten)]
    owner: KeyOwner,
    /// How many hours messages are signed with the old secret as well; 0 ends it at once
    #[arg(long, value_name = "N", default_value_t = 24, value_parser = clap::value_parser!(u64).range(0..=8760))]
    keep_hours: u64,
}

/// Which messages.
#[derive(Debug, Args)]
pub(crate) struct List {
    /// Only messages about this job
    #[arg(long, value_name = "JOB")]
    job: Option<String>,
    /// Only messages with this status
    #[arg(long, value_parser = ["pending", "delivered", "failed"])]
    status: Option<String>,
    /// How many at most
    #[arg(long, value_name = "N", default_value_t = 50)]
    limit: usize,
    #[command(flatten)]
    json: Json,
}

/// What to send again.
#[derive(Debug, Args)]
pub(crate) struct Replay {
    /// Ids of messages (msg_…), or of jobs for all their messages
    #[arg(required = true, value_name = "ID", value_parser = MessageOrJob::read)]
    ids: Vec<MessageOrJob>,
}

/// A message or a job, and how it was named.
#[derive(Debug, Clone)]
struct MessageOrJob {
    id: Uuid,
    name: String,
}

impl MessageOrJob {
    fn read(text: &str) -> Result<Self, String> {
        let id = ode_webhooks::message_id(text);
        let id =
            id.map_err(|_| "write it as `ode webhooks list` shows it: msg_… or the job's id".to_owned())?;
        Ok(MessageOrJob { id, name: text.to_owned() })
    }
}

pub(crate) async fn run(settings: &Settings, command: Webhooks) -> anyhow::Result<ExitCode> {
    let store = settings.store("cli", Schema::Check).await?;
    match command {
        Webhooks::Add(args) => add(settings, &store, &args).await,
        Webhooks::Endpoints(args) => endpoints(&store, &args).await,
        Webhooks::Remove(args) => remove(&store, &args).await,
        Webhooks::Secret(args) => {
            let (kind, name) = args.owner.named();
            let owner = store.owner_named(kind, name).await?;
            output::line(ode_webhooks::secret_text(&store.webhook_secrets(owner).await?.0))?;
            Ok(ExitCode::SUCCESS)
        }
        Webhooks::Rotate(args) => {
            let (kind, name) = args.owner.named();
            let owner = store.owner_named(kind, name).await?;
            let keep = Duration::from_hours(args.keep_hours);
            output::line(ode_webhooks::secret_text(&store.renew_webhook_secret(owner, keep).await?))?;
            Ok(ExitCode::SUCCESS)
        }
        Webhooks::List(args) => list(&store, &args).await,
        Webhooks::Replay(args) => replay(&store, &args).await,
    }
}

async fn add(settings: &Settings, store: &Store, args: &Add) -> anyhow::Result<ExitCode> {
    let checked = settings.webhook_guard()?.check(&args.url);
    checked.map_err(|why| WrongUse(format!("The address: {why}")))?;
    let (kind, name) = args.owner.named();
    store.add_endpoint(kind, name, &args.url).await?;
    output::line(format!("{name} is told at {} whenever a job of theirs ends.", args.url))?;
    Ok(ExitCode::SUCCESS)
}

async fn endpoints(store: &Store, args: &Json) -> anyhow::Result<ExitCode> {
    let endpoints = store.endpoints().await?;
    if args.json {
        output::json(&endpoints)?;
        return Ok(ExitCode::SUCCESS);
    }
    if endpoints.is_empty() {
        output::tell("Nobody is told. Add an address with `ode webhooks add`.");
        return Ok(ExitCode::SUCCESS);
    }
    let mut table = Table::new(["ID", "OF", "ADDRESS", "SINCE", "GONE"]);
    for endpoint in &endpoints {
        let since = output::ago(endpoint.created_at);
        table.row([
            endpoint.id.to_string().into(),
            endpoint.owner.as_str().into(),
            endpoint.url.as_str().into(),
            since.into(),
            endpoint.gone_at.map(output::ago).unwrap_or_default().into(),
        ]);
    }
    table.print()?;
    Ok(ExitCode::SUCCESS)
}

async fn remove(store: &Store, args: &Remove) -> anyhow::Result<ExitCode> {
    if store.remove_endpoint(args.id).await? {
        output::line("It is told nothing more.")?;
        return Ok(ExitCode::SUCCESS);
    }
    output::tell(format!(
        "There is no address {}. `ode webhooks endpoints` shows the ones there are.",
        args.id
    ));
    Ok(ExitCode::FAILURE)
}

async fn list(store: &Store, args: &List) -> anyhow::Result<ExitCode> {
    let job: Option<JobId> = match &args.job {
        Some(name) => Some(store.resolve(name.parse::<JobRef>()?).await?),
        None => None,
    };
    let deliveries = store.deliveries(job, args.status.as_deref(), args.limit).await?;
    if args.json.json {
        let shown = deliveries.iter().map(shown).collect::<Result<Vec<Value>, _>>()?;
        output::json(&shown)?;
        return Ok(ExitCode::SUCCESS);
    }
    if deliveries.is_empty() {
        output::tell("There are no such messages.");
        return Ok(ExitCode::SUCCESS);
    }
    let mut table = Table::new(["MESSAGE", "JOB", "STATUS", "TRIES", "ADDRESS", "LAST PROBLEM"]);
    for delivery in &deliveries {
        table.row([
            ode_webhooks::message_name(delivery.id).into(),
            delivery.job_id.to_string().into(),
            delivery.status.as_str().into(),
            delivery.attempts.to_string().into(),
            delivery.url.as_str().into(),
            delivery.problem.clone().unwrap_or_default().into(),
        ]);
    }
    table.print()?;
    Ok(ExitCode::SUCCESS)
}

/// A message under the name that its receiver knows it by.
fn shown(delivery: &Delivery) -> serde_json::Result<Value> {
    let mut shown = serde_json::to_value(delivery)?;
    shown["id"] = ode_webhooks::message_name(delivery.id).into();
    Ok(shown)
}

async fn replay(store: &Store, args: &Replay) -> anyhow::Result<ExitCode> {
    let mut outcome = ExitCode::SUCCESS;
    for MessageOrJob { id, name } in &args.ids {
        match store.replay_deliveries(*id).await? {
            0 => {
                output::tell(format!("There is no message or job {name} that anybody was told of."));
                outcome = ExitCode::FAILURE;
            }
            1 if name.starts_with("msg_") => output::line(format!("{name} is sent again."))?,
            count => output::line(format!("Messages of {name} that are sent again: {count}."))?,
        }
    }
    Ok(outcome)
}
