//! `ode gateway`: PDFs in over HTTP, XML out. Also the gateway's part of `ode serve`.

use crate::setup::Conversions;
use crate::{GatewayLimits, LiveConverter, Options, serve_gateway};
use anyhow::Context as _;
use clap::Parser;
use ode_child::{PoolOptions, Sandbox};
use ode_cli::SandboxArgs;
use ode_cli::process::{Signals, announce, listen};
use ode_pipeline::Call;
use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// Where the gateway listens unless told otherwise.
pub(crate) const LISTEN: &str = "127.0.0.1:8000";
/// For each conversion that may run, so many requests are held: the one that runs and those that wait for it. More
/// would only wait until they are told that we are busy, and each may hold a document in memory.
const REQUESTS_PER_TURN: usize = 4;

/// Run only the gateway: PDFs in over HTTP, XML out, with no database
#[derive(Debug, Parser)]
#[command(after_long_help = EXAMPLES)]
pub(super) struct Gateway {
    /// Address to listen on; port 0 takes any that is free
    #[arg(long, env = "ODE_GATEWAY", value_name = "HOST:PORT", default_value = LISTEN)]
    listen: String,
    #[command(flatten)]
    conversions: Conversions,
    #[command(flatten)]
    sandbox: SandboxArgs,
    /// Seconds that conversions get to end when the gateway is asked to stop; then they are cut off
    #[arg(long, env = "ODE_GRACE", value_name = "SECONDS", default_value_t = 30, allow_negative_numbers = true,
        value_parser = clap::value_parser!(u64).range(..=86_400))]
    grace: u64,
}

const EXAMPLES: &str = "\
Examples:
  ode gateway                                     on 127.0.0.1:8000, with the mappings that ship
  ode gateway --mappings my-mappings --at-once 4  with mappings of your own, four at a time
  ode gateway --listen 0.0.0.0:8000               for other machines, behind a proxy with a login

  curl -F file=@invoice.pdf -F mapping=auto -F output=ubl http://127.0.0.1:8000/process";

/// Runs the gateway alone until it is asked to stop.
pub(super) async fn run(_: Call, args: Gateway) -> anyhow::Result<ExitCode> {
    let mut signals = Signals::listen()?;
    let listener = listen(&args.listen, "--listen").await?;
    let grace = Duration::from_secs(args.grace);
    let running = RunningGateway::start(listener, &args.conversions, args.sandbox.sandbox(), grace).await?;
    announce(format!("The gateway is listening on http://{}\nStop it with ctrl-C.", running.address));
    signals.asked().await;
    signals.wait_for(running.stop(), grace).await
}

/// A gateway that runs beside whatever else this process does.
pub(crate) struct RunningGateway {
    pub(crate) address: SocketAddr,
    stop: oneshot::Sender<()>,
    task: JoinHandle<()>,
}

impl RunningGateway {
    pub(crate) async fn start(
        listener: TcpListener,
        args: &Conversions,
        sandbox: Sandbox,
        grace: Duration,
    ) -> anyhow::Result<Self> {
        let address = listener.local_addr()?;
        let mut pool = PoolOptions { sandbox, ..PoolOptions::default() };
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
            serve_gateway(listener, Arc::new(converter), limits, stopped).await;
        });
        Ok(RunningGateway { address, stop, task })
    }

    /// Lets requests that are under way end, within the grace period, and returns when none is left.
    pub(crate) async fn stop(self) -> anyhow::Result<()> {
        drop(self.stop);
        self.task.await.context("The gateway ended unexpectedly")
    }
}
