//! `ode print`, `ode export:queue` and `ode print:queue`: maps on their way to paper.

mod backfill;
mod make;
mod order;
mod order_queue;
mod queue;

pub(crate) use order_queue::{EXAMPLES as PRINT_QUEUE_EXAMPLES, PrintQueue, run as print_queue};
pub(crate) use queue::{EXAMPLES as QUEUE_EXAMPLES, ExportQueue, run as export_queue};

use clap::Subcommand;
use ode_cli::{Schema, Settings};
use std::process::ExitCode;

/// What to do with prints.
#[derive(Debug, Subcommand)]
pub(crate) enum Print {
    /// Freeze a map and ask for its export
    Export(make::Export),
    /// Print a frozen map once more, as a job of its own
    Reprint(make::Reprint),
    /// Ask for the export of every frozen map that has no job yet
    Backfill(backfill::Backfill),
    /// Order a print, exactly once
    Order(order::Order),
    /// Show orders and how they stand
    Status(order::Status),
    /// Show and set what organisations may spend on prints
    Cap(order::Cap),
    /// Have Printful tell its events to an address, and print the key they are signed with
    Webhook(order::Webhook),
    /// Compare our orders with the provider's, in both directions
    Reconcile(order::Reconcile),
}

/// Shown after the long help.
pub(crate) const EXAMPLES: &str = "\
Examples:
  ode print export map.json                  a job that draws this map for print
  ode print export --user-map 0198c0de-…     one that draws the features of a map that is kept
  ode print export map.json --organisation acme --order order.json
                                             the same, and orders the print
  ode print reprint 0198c0de-…               the same frozen map once more
  ode print backfill --dry-run               which frozen maps no job prints
  ode print cap acme --order 60 --month 600  what acme may spend
  ode print order JOB_… --organisation acme --order order.json
                                             order an exported map
  ode print status --attention               which orders a person should look at
  ode export:queue --watch                   how far all exports are";

pub(crate) async fn run(settings: &Settings, command: Print) -> anyhow::Result<ExitCode> {
    let schema = if matches!(command, Print::Export(_)) { Schema::Migrate } else { Schema::Check };
    let store = settings.store("cli", schema).await?;
    match command {
        Print::Export(args) => make::export(&store, args).await,
        Print::Reprint(args) => make::reprint(&store, args).await,
        Print::Backfill(args) => backfill::backfill(&store, &args).await,
        Print::Order(args) => order::order(&store, args).await,
        Print::Status(args) => order::status(&store, &args).await,
        Print::Cap(args) => order::cap(&store, &args).await,
        Print::Webhook(args) => order::webhook(&args).await,
        Print::Reconcile(args) => order::reconcile(store, &args).await,
    }
}
