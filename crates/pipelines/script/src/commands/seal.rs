//! `ode seal`: the keys that secrets of scripts are sealed to.

use crate::Folders;
use crate::sql::{self, SealKey, SealSide};
use crate::{Bond, Error, Keyring};
use clap::{Args, Parser, ValueEnum};
use ode_cli::{self as output, Table};
use ode_store::Store;
use serde_json::json;
use std::process::ExitCode;

/// See to the keys that secrets of scripts are sealed to
#[derive(Debug, Parser)]
#[command(after_long_help = EXAMPLES)]
pub(super) enum SealCommand {
    /// List the keys there are and were, and which of them are on this machine
    List(List),
    /// Make a new key, turn everything to it, and give up the old one
    Rotate(Rotate),
}

const EXAMPLES: &str = "\
Examples:
  ode seal list
  ode seal rotate              a new key for what is sent to scripts
  ode seal rotate --side web   a new key for what comes of them";

/// How to list.
#[derive(Debug, Args)]
pub(super) struct List {
    /// Write JSON
    #[arg(long)]
    json: bool,
}

/// Which key to replace.
#[derive(Debug, Args)]
pub(super) struct Rotate {
    /// Whose key
    #[arg(long, value_enum, default_value_t = Side::Worker)]
    side: Side,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Side {
    /// The workers', to which secrets are sealed that are sent to scripts
    Worker,
    /// The web side's, to which secrets are sealed that come of scripts
    Web,
}

impl From<Side> for SealSide {
    fn from(side: Side) -> Self {
        match side {
            Side::Worker => SealSide::Worker,
            Side::Web => SealSide::Web,
        }
    }
}

pub(super) async fn run_seal(
    folders: &Folders,
    store: &Store,
    command: SealCommand,
) -> anyhow::Result<ExitCode> {
    match command {
        SealCommand::List(args) => list(folders, store, &args).await,
        SealCommand::Rotate(args) => rotate(folders, store, args.side.into()).await,
    }
}

async fn list(folders: &Folders, store: &Store, args: &List) -> anyhow::Result<ExitCode> {
    let keys = sql::seal_keys(store.sql()).await?;
    let mut here = Vec::new();
    for side in [SealSide::Worker, SealSide::Web] {
        here.extend(Keyring::read(&folders.key_file(side))?.map(|keys| keys.ids()).unwrap_or_default());
    }
    if args.json {
        let each = keys.iter().map(|key| {
            let mut json = json!(key);
            json["is_here"] = here.contains(&key.id).into();
            json
        });
        output::json(&each.collect::<Vec<_>>())?;
        return Ok(ExitCode::SUCCESS);
    }
    if keys.is_empty() {
        output::tell(
            "There are no keys yet. The first worker and the first web process make theirs by themselves.",
        );
        return Ok(ExitCode::SUCCESS);
    }
    let mut table = Table::new(["KEY", "OF", "CREATED", "SECRETS", "HERE", "STATE"]);
    for key in &keys {
        let is_here = if here.contains(&key.id) { "yes" } else { "no" };
        table.row([
            key.id.as_str().into(),
            key.side.as_str().into(),
            output::ago(key.created_at).into(),
            key.in_use.to_string().into(),
            is_here.into(),
            state(key).into(),
        ]);
    }
    table.print()?;
    Ok(ExitCode::SUCCESS)
}

fn state(key: &SealKey) -> String {
    key.retired_at.map_or_else(|| "in use".to_owned(), |at| format!("retired {}", output::ago(at)))
}

async fn rotate(folders: &Folders, store: &Store, side: SealSide) -> anyhow::Result<ExitCode> {
    let path = folders.key_file(side);
    let keys = match Keyring::read(&path)? {
        Some(keys) => keys.with_new_key()?,
        None => Keyring::make(&path)?,
    };
    let newest = keys.newest();
    // In the file before anybody seals to it.
    sql::publish_seal_key(store.sql(), side, &newest.id(), newest.bytes()).await?;
    let turned = turn(store, &keys, side).await?;
    let left: Vec<SealKey> = sql::seal_keys(store.sql())
        .await?
        .into_iter()
        .filter(|key| key.side == side && key.in_use > 0)
        .collect();
    keys.without_old_keys(|id| left.iter().any(|key| key.id == id))?;
    output::line(newest.id())?;
    output::tell(format!(
        "Secrets are sealed to this key from now on; {turned} that were there are turned to it."
    ));
    let lost: i64 = left.iter().filter(|key| key.id != newest.id()).map(|key| key.in_use).sum();
    if lost > 0 {
        output::tell(format!(
            "{lost} secrets are sealed to keys that are not in {}. Bring those keys here and rotate again, or send the \
             secrets again with the request to try their jobs again.",
            path.display()
        ));
    }
    output::tell(format!("Copy {} to every machine that needs it.", path.display()));
    Ok(ExitCode::SUCCESS)
}

/// Turns what is sealed to earlier keys to the newest; answers how many there were.
async fn turn(store: &Store, keys: &Keyring, side: SealSide) -> anyhow::Result<usize> {
    let newest = keys.newest();
    let mut count = 0;
    for key in sql::seal_keys(store.sql()).await? {
        if key.side != side || key.id == newest.id() {
            continue;
        }
        let turned = sql::turn_secrets(store.sql(), &key.id, |owner, part, sealed| {
            match keys.turn(Bond { owner, part }, sealed, &newest) {
                Ok(turned) => Ok(Some(turned)),
                // What nobody can open here stays as it is, for somebody who can.
                Err(Error::NoKey(_) | Error::BrokenSeal) => Ok(None),
                Err(error) => Err(anyhow::Error::from(error)),
            }
        });
        count += turned.await?;
    }
    Ok(count)
}
