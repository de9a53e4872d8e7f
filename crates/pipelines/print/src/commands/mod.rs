//! `ode maps`, `ode print`, `ode export:queue`, `ode print:queue` and `ode job:status`: maps on their way to paper.

mod backfill;
mod make;
mod maps;
mod order;
mod order_queue;
mod queue;
mod status;

use clap::Parser;
use ode_cli::{Schema, Settings};
use ode_pipeline::{Call, Command};
use std::process::ExitCode;

const HEADING: &str = "Maps";

pub(crate) fn commands() -> Vec<Command> {
    let draw = async |_: Call, command| maps::run(command);
    let print = async |call: Call, command| run_print(&call.settings, command).await;
    let export_queue = async |call: Call, args| queue::run(&call.settings, &args).await;
    let status = async |call: Call, args| status::run(&call.settings, &args).await;
    let print_queue = async |call: Call, args| order_queue::run(&call.settings, &args).await;
    vec![
        Command::new("maps", HEADING, draw),
        Command::new("print", HEADING, print),
        Command::new("export:queue", HEADING, export_queue),
        Command::new("print:queue", HEADING, print_queue),
        Command::new("job:status", "Jobs", status),
    ]
}

/// Ask for prints of maps
#[derive(Debug, Parser)]
#[command(after_long_help = EXAMPLES)]
enum PrintCommand {
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

const EXAMPLES: &str = "\
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

async fn run_print(settings: &Settings, command: PrintCommand) -> anyhow::Result<ExitCode> {
    let schema = if matches!(command, PrintCommand::Export(_)) { Schema::Migrate } else { Schema::Check };
    let store = settings.store("cli", schema).await?;
    match command {
        PrintCommand::Export(args) => make::export(&store, args).await,
        PrintCommand::Reprint(args) => make::reprint(&store, args).await,
        PrintCommand::Backfill(args) => backfill::backfill(&store, &args).await,
        PrintCommand::Order(args) => order::order(&store, args).await,
        PrintCommand::Status(args) => order::status(&store, &args).await,
        PrintCommand::Cap(args) => order::cap(&store, &args).await,
        PrintCommand::Webhook(args) => order::webhook(&args).await,
        PrintCommand::Reconcile(args) => order::reconcile(store, &args).await,
    }
}
