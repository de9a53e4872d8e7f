//! `ode serve`, `ode web`, `ode worker`: the long-running parts, together or alone.

use crate::config::{Schema, Settings};
use anyhow::Context as _;
use clap::Args;
use ode_job::Registry;
use ode_web::Web;
use ode_worker::Worker;
use std::net::SocketAddr;
use std::process::ExitCode;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};

/// How to serve.
#[derive(Debug, Args)]
pub(crate) struct Serve {
    /// Address to listen on
    #[arg(long, env = "ODE_LISTEN", value_name = "ADDRESS", default_value = "127.0.0.1:8080")]
    listen: SocketAddr,
    #[command(flatten)]
    drain: Drain,
}

/// How to stop.
#[derive(Debug, Args)]
pub(crate) struct Drain {
    /// Seconds that running jobs get to end when the process is asked to stop; then they are handed back
    #[arg(long, env = "ODE_GRACE", value_name = "SECONDS", default_value_t = 30)]
    grace: u64,
}

/// Which parts run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Parts {
    has_worker: bool,
}

impl Parts {
    /// Everything.
    pub(crate) const ALL: Parts = Parts { has_worker: true };
    /// Only the web side.
    pub(crate) const WEB: Parts = Parts { has_worker: false };
}

/// Serves until it is asked to stop.
pub(crate) async fn serve(settings: &Settings, args: &Serve, parts: Parts) -> anyhow::Result<ExitCode> {
    let store = settings.store("web", Schema::Migrate).await?;
    let blobs = settings.blobs()?;
    let listener = TcpListener::bind(args.listen).await.with_context(|| {
        format!(
            "Cannot listen on {}. Is another `ode` running there? Choose another with --listen",
            args.listen
        )
    })?;
    let address = listener.local_addr()?;
    let worker = match parts.has_worker {
        true => Some(start_worker(settings, &args.drain).await?),
        false => None,
    };
    println!("ODE is listening on http://{address}");
    println!("Stop it with ctrl-C.");
    let web = Web { store: store.clone(), blobs };
    ode_web::serve(listener, web, asked_to_stop()).await.context("The web side ended unexpectedly")?;
    if let Some(worker) = worker {
        worker.stop().await?;
    }
    store.close().await;
    println!("Stopped.");
    Ok(ExitCode::SUCCESS)
}

/// Works until it is asked to stop.
pub(crate) async fn worker(settings: &Settings, args: &Drain) -> anyhow::Result<ExitCode> {
    let worker = start_worker(settings, args).await?;
    println!("Worker {} is running. Stop it with ctrl-C.", worker.id());
    asked_to_stop().await;
    worker.stop().await?;
    println!("Stopped.");
    Ok(ExitCode::SUCCESS)
}

async fn start_worker(settings: &Settings, args: &Drain) -> anyhow::Result<Worker> {
    // Its own connections: a busy web side must not keep the worker from renewing its leases.
    let store = settings.store("worker", Schema::Migrate).await?;
    let config =
        ode_worker::Config { grace: Duration::from_secs(args.grace), ..ode_worker::Config::default() };
    Ok(Worker::start(store, Some(settings.blobs()?), Registry::new(), config).await?)
}

/// Returns when ctrl-C is pressed or SIGTERM comes.
async fn asked_to_stop() {
    let mut terminate = match signal(SignalKind::terminate()) {
        Ok(terminate) => terminate,
        Err(error) => {
            tracing::warn!(%error, "SIGTERM cannot be listened for; only ctrl-C stops this process cleanly");
            return std::future::pending().await;
        }
    };
    tokio::select! {
        _ = tokio::signal::ctrl_c() => {}
        _ = terminate.recv() => {}
    }
}
