//! `ode printful-sim`: a Printful of one's own, to try orders with and to see what happens when things go wrong.

use clap::Args;
use ode_cli::process::{Signals, announce, listen};
use ode_printful_sim::{Fault, Options, Simulator, Switches};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

/// How it behaves.
#[derive(Debug, Args)]
pub(crate) struct PrintfulSim {
    /// Address to listen on; port 0 takes any that is free
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:8090")]
    listen: String,
    /// Write what it was made to do here, a line of JSON for each order, confirmation and charge
    #[arg(long, value_name = "FILE")]
    ledger: Option<PathBuf>,
    /// Let this go wrong, such as hang:create, 429:any:3 or late:confirm@2; may be given often
    #[arg(long = "fault", value_name = "FAULT")]
    faults: Vec<Fault>,
    /// Let two orders have the same external id, which the real one does not
    #[arg(long)]
    not_unique: bool,
    /// Let an order be confirmed, and charged for, twice
    #[arg(long)]
    confirm_often: bool,
    /// Calls a minute for each token; 0 counts nothing
    #[arg(long, value_name = "N", default_value_t = 120)]
    rate: u32,
    /// Take files for fetched without fetching them
    #[arg(long)]
    no_fetch: bool,
    /// Seconds before a file is fetched
    #[arg(long, value_name = "SECONDS", default_value_t = 0.2)]
    file_delay: f64,
    /// Seconds before the cost of an order is known
    #[arg(long, value_name = "SECONDS", default_value_t = 0.0)]
    cost_delay: f64,
    /// Ship confirmed orders after so many seconds, and deliver them after as many more
    #[arg(long, value_name = "SECONDS")]
    ship_after: Option<f64>,
}

/// Shown after the long help.
pub(crate) const EXAMPLES: &str = "\
Examples:
  ode printful-sim --ledger ledger.jsonl        take orders, and keep a ledger
  ode printful-sim --fault hang:create          the first order is made and never answered
  ODE_PRINTFUL_TOKEN=any ode serve --printful-url http://127.0.0.1:8090 \\
      --export-base http://127.0.0.1:8080       order there
  curl -d late:confirm@3 http://127.0.0.1:8090/sim/faults
  curl -X POST http://127.0.0.1:8090/sim/orders/@EXTERNAL_ID/ship";

/// Nothing here takes longer than a day.
const SECONDS_MAX: f64 = 86_400.0;

pub(crate) async fn run(args: PrintfulSim) -> anyhow::Result<ExitCode> {
    let mut signals = Signals::listen()?;
    let listener = listen(&args.listen, "--listen").await?;
    let seconds = |seconds: f64| Duration::from_secs_f64(seconds.clamp(0.0, SECONDS_MAX));
    let options = Options {
        ledger: args.ledger,
        switches: Switches { unique: !args.not_unique, confirm_once: !args.confirm_often },
        rate_per_minute: args.rate,
        fetch_files: !args.no_fetch,
        file_delay: seconds(args.file_delay),
        cost_delay: seconds(args.cost_delay),
        ship_after: args.ship_after.map(seconds),
        faults: args.faults,
        ..Options::default()
    };
    let simulator = Simulator::start(listener, options)?;
    announce(format!("A simulated Printful is listening on http://{}", simulator.address()));
    announce("Its ledger is at /sim/ledger, its faults at /sim/faults. Stop it with ctrl-C.".into());
    tokio::select! {
        () = signals.asked() => {}
        () = simulator.run() => {}
    }
    Ok(ExitCode::SUCCESS)
}
