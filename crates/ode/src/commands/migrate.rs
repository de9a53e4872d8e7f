//! `ode migrate`: the schema's versions.

use crate::config::{Schema, Settings};
use crate::output::{self, Table};
use clap::Subcommand;
use std::process::ExitCode;

/// What to do with the schema.
#[derive(Debug, Subcommand)]
pub(crate) enum Migrate {
    /// Apply every version that is missing
    Up,
    /// Take versions away, with everything they hold
    Down {
        /// The version to go down to; 0 removes everything
        #[arg(long, value_name = "VERSION")]
        to: i64,
        /// Yes, delete the data too
        #[arg(long)]
        yes: bool,
    },
    /// Show which versions are applied
    Status {
        /// For programs
        #[arg(long)]
        json: bool,
    },
}

pub(crate) async fn run(settings: &Settings, command: Migrate) -> anyhow::Result<ExitCode> {
    let store = settings.store("cli", Schema::Ignore).await?;
    match command {
        Migrate::Up => {
            let done = store.migrate_up().await?;
            if done.is_empty() {
                println!("The schema is up to date (version {}).", ode_store::SCHEMA_NEWEST);
            }
            for version in done {
                println!("Applied version {version}.");
            }
        }
        Migrate::Down { to, yes } => {
            anyhow::ensure!(
                (0..ode_store::SCHEMA_NEWEST).contains(&to),
                "Version {to} is not below the newest, {}. See `ode migrate status`.",
                ode_store::SCHEMA_NEWEST
            );
            anyhow::ensure!(yes, "Going down deletes data for good. Add --yes if that is what you want.");
            for version in store.migrate_down(to).await? {
                println!("Took version {version} away.");
            }
        }
        Migrate::Status { json } => {
            let status = store.migrate_status().await?;
            if json {
                output::json(&status)?;
                return Ok(ExitCode::SUCCESS);
            }
            let mut table = Table::new(["VERSION", "NAME", "APPLIED"]);
            for line in &status {
                let applied = line.applied_at.map_or_else(|| "no".to_owned(), output::moment);
                table.row([line.version.to_string().into(), line.name.as_str().into(), applied.into()]);
            }
            table.print();
        }
    }
    Ok(ExitCode::SUCCESS)
}
