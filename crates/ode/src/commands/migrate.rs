//! `ode migrate`: the schema's versions.

use crate::output::{self, Table, WrongUse};
use clap::Subcommand;
use ode_cli::{Schema, Settings, no_database};
use ode_store::{MigrationStatus, Store, Taken};
use std::process::ExitCode;

/// What to do with the schema.
#[derive(Debug, Subcommand)]
pub(crate) enum Migrate {
    /// Apply every version that is missing
    Up,
    /// Take versions away, with everything they hold
    Down {
        /// The version to go down to; 0 removes everything
        #[arg(long, value_name = "VERSION", allow_negative_numbers = true)]
        to: i64,
        /// Yes, delete the data too
        #[arg(long)]
        yes: bool,
    },
    /// Show which versions are applied
    Status {
        /// Print JSON, for programs
        #[arg(long)]
        json: bool,
    },
}

pub(crate) async fn run(settings: &Settings, command: Migrate) -> anyhow::Result<ExitCode> {
    match command {
        Migrate::Up => up(settings).await?,
        Migrate::Down { to, yes } => {
            check_target(to)?;
            let sentence = "Going down deletes data for good. Add --yes if that is what you want.";
            anyhow::ensure!(yes, WrongUse(sentence.to_owned()));
            down(settings, to).await?;
        }
        Migrate::Status { json } => return show(settings, json).await,
    }
    Ok(ExitCode::SUCCESS)
}

async fn show(settings: &Settings, json: bool) -> anyhow::Result<ExitCode> {
    let store = look(settings).await?;
    let status = store.migrate_status().await?;
    if json {
        output::json(&status)?;
    } else {
        print(&status)?;
        advise(settings, &status);
    }
    // What a newer program made can be shown, and not be worked with.
    if status.iter().any(|line| !line.is_known) {
        store.check_schema().await?;
    }
    Ok(ExitCode::SUCCESS)
}

async fn up(settings: &Settings) -> anyhow::Result<()> {
    let done = settings.store("cli", Schema::Ignore).await?.migrate_up().await?;
    if done.is_empty() {
        output::line(format!("The schema is up to date (version {}).", ode_store::schema_newest()))?;
    }
    done.iter().try_for_each(|version| output::line(format!("Applied version {version}.")))
}

fn check_target(to: i64) -> anyhow::Result<()> {
    anyhow::ensure!(
        (0..ode_store::schema_newest()).contains(&to),
        WrongUse(format!(
            "There is no way down to version {to}. Give --to a version from 0 to {}; `ode migrate status` shows them.",
            ode_store::schema_newest() - 1
        ))
    );
    Ok(())
}

async fn down(settings: &Settings, to: i64) -> anyhow::Result<()> {
    if let Some(file) = settings.missing_file() {
        return Err(no_database(&file));
    }
    let Taken { versions, members } = settings.store("cli", Schema::Ignore).await?.migrate_down(to).await?;
    if versions.is_empty() {
        output::line(format!("The schema has no version above {to}; nothing was changed."))?;
    }
    versions.iter().try_for_each(|version| output::line(format!("Took version {version} away.")))?;
    if !members.is_empty() {
        let members = members.join(", ");
        output::tell(format!(
            "\nThe role ode_api went too, and is no longer granted to: {members}. After `ode migrate up`, give it back \
             with GRANT ode_api TO {members};"
        ));
    }
    Ok(())
}

/// Looking must not make a database; an empty one in memory knows the same versions.
async fn look(settings: &Settings) -> anyhow::Result<Store> {
    Ok(match settings.missing_file() {
        Some(_) => Store::open(ode_store::Config::new("sqlite::memory:")).await?,
        None => settings.store("cli", Schema::Ignore).await?,
    })
}

fn print(status: &[MigrationStatus]) -> anyhow::Result<()> {
    let mut table = Table::new(["VERSION", "NAME", "APPLIED"]);
    for line in status {
        let applied = line.applied_at.map_or_else(|| "no".to_owned(), output::moment);
        table.row([line.version.to_string().into(), line.name.as_str().into(), applied.into()]);
    }
    table.print()
}

/// What to do about what is missing.
fn advise(settings: &Settings, status: &[MigrationStatus]) {
    if let Some(file) = settings.missing_file() {
        output::tell(format!("\nThere is no database at {} yet; `ode serve` makes one.", file.display()));
    } else if status.iter().any(|line| line.applied_at.is_none()) {
        output::tell("\n`ode migrate up` applies what is missing.");
    }
}
