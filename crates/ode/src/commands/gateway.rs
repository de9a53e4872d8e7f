//! `ode gateway`: PDFs in over HTTP, XML out. Also the gateway's part of `ode serve`.

use super::serve::{Signals, announce, listen};
use anyhow::Context as _;
use clap::Args;
use ode_child::{PoolOptions, Sandbox};
use ode_invoice::terms::{HEADER, TABLES};
use ode_xml::{GatewayLimits, LiveConverter, Options};
use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// Where the gateway listens unless told otherwise.
pub(super) const LISTEN: &str = "127.0.0.1:8000";
/// For each conversion that may run, so many requests are held: the one that runs and those that wait for it. More
/// would only wait until they are told that we are busy, and each may hold a document in memory.
const REQUESTS_PER_TURN: usize = 4;

/// How to run the gateway.
#[derive(Debug, Args)]
pub(crate) struct Gateway {
    /// Address to listen on; port 0 takes any that is free
    #[arg(long, env = "ODE_GATEWAY", value_name = "HOST:PORT", default_value = LISTEN)]
    listen: String,
    #[command(flatten)]
    conversions: Conversions,
    /// Seconds that conversions get to end when the gateway is asked to stop; then they are cut off
    #[arg(long, env = "ODE_GRACE", value_name = "SECONDS", default_value_t = 30, allow_negative_numbers = true,
        value_parser = clap::value_parser!(u64).range(..=86_400))]
    grace: u64,
}

/// How the gateway converts.
#[derive(Debug, Args)]
pub(crate) struct Conversions {
    /// Conversions at a time [default: one for each processor]
    #[arg(long, env = "ODE_AT_ONCE", value_name = "N")]
    at_once: Option<NonZeroUsize>,
    /// Folder with mappings beside those that ship; changes in it are picked up within seconds
    #[arg(long, env = "ODE_MAPPINGS", value_name = "DIR")]
    mappings: Option<PathBuf>,
    #[command(flatten)]
    ocr: super::ocr::Ocr,
    /// Convert without locking the child in. Only to look for a fault, and only with files you trust
    #[arg(long)]
    no_sandbox: bool,
}

impl Conversions {
    /// The folder with mappings, where there is one.
    pub(super) fn mappings(&self) -> Option<&Path> {
        self.mappings.as_deref()
    }

    /// Whether children lock themselves in.
    pub(super) fn sandbox(&self) -> Sandbox {
        if self.no_sandbox { Sandbox::Off } else { Sandbox::BestEffort }
    }
}

pub(crate) const EXAMPLES: &str = "\
Examples:
  ode gateway                                     on 127.0.0.1:8000, with the mappings that ship
  ode gateway --mappings my-mappings --at-once 4  with mappings of your own, four at a time
  ode gateway --listen 0.0.0.0:8000               for other machines, behind a proxy with a login

  curl -F file=@invoice.pdf -F mapping=auto -F output=ubl http://127.0.0.1:8000/process";

/// Runs the gateway alone until it is asked to stop.
pub(crate) async fn run(args: &Gateway) -> anyhow::Result<ExitCode> {
    let mut signals = Signals::listen()?;
    let listener = listen(&args.listen, "--listen").await?;
    let grace = Duration::from_secs(args.grace);
    let running = start(listener, &args.conversions, grace).await?;
    announce(format!("The gateway is listening on http://{}\nStop it with ctrl-C.", running.address()));
    signals.asked().await;
    signals.wait_for(running.stop(), grace).await
}

/// A gateway that runs.
pub(super) struct Running {
    address: SocketAddr,
    stop: oneshot::Sender<()>,
    task: JoinHandle<()>,
}

impl Running {
    /// Where it listens.
    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Lets requests that are under way end, within the grace period, and returns when none is left.
    pub(super) async fn stop(self) -> anyhow::Result<()> {
        drop(self.stop);
        self.task.await.context("The gateway ended unexpectedly")
    }
}

/// Starts the gateway beside whatever else runs.
pub(super) async fn start(
    listener: TcpListener,
    args: &Conversions,
    grace: Duration,
) -> anyhow::Result<Running> {
    let address = listener.local_addr()?;
    let mut pool = PoolOptions { sandbox: args.sandbox(), ..PoolOptions::default() };
    pool.at_once = args.at_once.map_or(pool.at_once, NonZeroUsize::get);
    let requests = pool.at_once.saturating_mul(REQUESTS_PER_TURN);
    let limits = GatewayLimits { requests, grace, ..Default::default() };
    let (mappings, ocr) = (args.mappings.clone(), args.ocr.options());
    let converter = LiveConverter::start(Options { mappings, shadow: true, pool, ocr }).await?;
    let (stop, stopped) = oneshot::channel::<()>();
    let task = tokio::spawn(async move {
        let stopped = async {
            // An error means that the sender is gone, which says the same.
            let _ = stopped.await;
        };
        ode_xml::serve_gateway(listener, Arc::new(converter), limits, stopped).await;
    });
    Ok(Running { address, stop, task })
}

/// The fields that results may have, with `*` for the number of a row.
pub(super) fn fields_known() -> Vec<String> {
    let header = HEADER.iter().map(|term| term.name.to_owned());
    let columns = TABLES
        .iter()
        .flat_map(|table| table.columns.iter().map(|column| format!("{}.*.{}", table.name, column.name)));
    header.chain(columns).collect()
}

/// Starts a converter for so many documents at a time. Nobody is refused as busy: slots give the turns.
pub(super) async fn converter(args: &Conversions, at_once: usize) -> anyhow::Result<LiveConverter> {
    let (sandbox, patience) = (args.sandbox(), Duration::MAX);
    let pool = PoolOptions { at_once, patience, sandbox, ..PoolOptions::default() };
    let (mappings, ocr) = (args.mappings.clone(), args.ocr.options());
    Ok(LiveConverter::start(Options { mappings, ocr, pool, ..Options::default() }).await?)
}
