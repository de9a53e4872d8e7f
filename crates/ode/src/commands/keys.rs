//! `ode keys`: who may ask for jobs by program.

use crate::output::{self, Table};
use clap::{Args, Subcommand};
use ode_cli::{Schema, Settings};
use ode_store::{ApiKey, OwnerKind, Store};
use serde_json::json;
use std::process::ExitCode;

/// What to do with keys.
#[derive(Debug, Subcommand)]
pub(crate) enum Keys {
    /// Make a key. It is shown once, and only its digest is kept
    Create(Create),
    /// List the keys there are and were
    List(List),
    /// End keys. They are refused within a second
    Revoke(Revoke),
}

pub(crate) const EXAMPLES: &str = "\
Examples:
  ode keys create --user ada --name laptop             a key for a person
  ode keys create --organisation acme --name billing   a key for an organisation
  ode keys list
  ode keys revoke 3f9a0c51d2b7

  curl -H \"Authorization: Bearer ode_…\" -F file=@invoice.pdf http://127.0.0.1:8080/api/upload";

/// Which key to make.
#[derive(Debug, Args)]
pub(crate) struct Create {
    #[command(flatten)]
    owner: KeyOwner,
    /// What it is for, to tell it from others
    #[arg(long, value_name = "TEXT", default_value = "")]
    name: String,
    /// Write JSON
    #[arg(long)]
    json: bool,
}

/// Whose key it is.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub(super) struct KeyOwner {
    /// The person it is for, by any name; a second key for the same name is for the same person
    #[arg(long, value_name = "NAME", value_parser = owner_name)]
    user: Option<String>,
    /// The organisation it is for, likewise
    #[arg(long, value_name = "NAME", value_parser = owner_name)]
    organisation: Option<String>,
}

impl KeyOwner {
    /// Who it is, by kind and name.
    pub(super) fn named(&self) -> (OwnerKind, &str) {
        match (&self.user, &self.organisation) {
            (Some(name), _) => (OwnerKind::User, name),
            (None, name) => (OwnerKind::Organisation, name.as_deref().unwrap_or_default()),
        }
    }
}

/// How to list.
#[derive(Debug, Args)]
pub(crate) struct List {
    /// Write JSON
    #[arg(long)]
    json: bool,
}

/// Which keys to end.
#[derive(Debug, Args)]
pub(crate) struct Revoke {
    /// The keys' ids, as `ode keys list` shows them
    #[arg(required = true, value_name = "ID")]
    ids: Vec<String>,
}

pub(crate) async fn run(settings: &Settings, command: Keys) -> anyhow::Result<ExitCode> {
    // The first key may well be made before anything was started.
    let schema = if matches!(command, Keys::Create(_)) { Schema::Migrate } else { Schema::Check };
    let store = settings.store("cli", schema).await?;
    match command {
        Keys::Create(args) => create(&store, args).await,
        Keys::List(args) => list(&store, &args).await,
        Keys::Revoke(args) => revoke(&store, &args).await,
    }
}

async fn create(store: &Store, args: Create) -> anyhow::Result<ExitCode> {
    let (kind, owner) = args.owner.named();
    let made = store.create_key(kind, owner, &args.name).await?;
    if args.json {
        let mut json = json!(made.key);
        json["key"] = json!(made.text);
        output::json(&json)?;
    } else {
        output::line(made.text)?;
        output::tell("This is shown once. Keep it where only its owner can read it.");
    }
    Ok(ExitCode::SUCCESS)
}

async fn list(store: &Store, args: &List) -> anyhow::Result<ExitCode> {
    let keys = store.keys().await?;
    if args.json {
        output::json(&keys)?;
        return Ok(ExitCode::SUCCESS);
    }
    if keys.is_empty() {
        output::tell("There are no keys. Make one with `ode keys create`.");
        return Ok(ExitCode::SUCCESS);
    }
    let mut table = Table::new(["KEY", "OF", "NAME", "CREATED", "LAST USED", "STATE"]);
    for key in &keys {
        table.row([
            key.id.as_str().into(),
            format!("{} {}", key.kind.as_str(), key.owner).into(),
            key.name.as_str().into(),
            output::ago(key.created_at).into(),
            key.used_at.map_or_else(|| "never".to_owned(), output::ago).into(),
            state(key).into(),
        ]);
    }
    table.print()?;
    Ok(ExitCode::SUCCESS)
}

fn state(key: &ApiKey) -> String {
    key.revoked_at.map_or_else(|| "valid".to_owned(), |at| format!("revoked {}", output::ago(at)))
}

async fn revoke(store: &Store, args: &Revoke) -> anyhow::Result<ExitCode> {
    let mut outcome = ExitCode::SUCCESS;
    for id in &args.ids {
        // Who pastes the whole key means the one that it is.
        let id = id.trim().strip_prefix("ode_").and_then(|rest| rest.split('_').next()).unwrap_or(id.trim());
        if store.revoke_key(id).await? {
            output::line(format!("Key {id} is revoked."))?;
        } else {
            output::tell(format!("There is no key {id}. `ode keys list` shows the ones there are."));
            outcome = ExitCode::FAILURE;
        }
    }
    Ok(outcome)
}

/// Names are for people: any text that fits on a line.
fn owner_name(text: &str) -> Result<String, String> {
    let name = text.trim();
    if name.is_empty() || name.chars().count() > 100 || name.chars().any(char::is_control) {
        return Err("give a name of 1 to 100 printable characters".into());
    }
    Ok(name.to_owned())
}
