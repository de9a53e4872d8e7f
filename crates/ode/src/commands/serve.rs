//! `ode serve`, `ode web`, `ode worker`: the long-running parts, together or alone.

use crate::config::{Schema, Settings};
use crate::output;
use anyhow::Context as _;
use clap::Args;
use ode_store::{Blobs, Store};
use ode_web::Web;
use ode_worker::Worker;
use std::pin::pin;
use std::process::ExitCode;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// How to serve.
#[derive(Debug, Args)]
pub(crate) struct Serve {
    /// Address to listen on; port 0 takes any that is free
    #[arg(long, env = "ODE_LISTEN", value_name = "HOST:PORT", default_value = "127.0.0.1:8080")]
    listen: String,
    #[command(flatten)]
    drain: Drain,
}

/// How to stop.
#[derive(Debug, Args)]
pub(crate) struct Drain {
    /// Seconds that running jobs get to end when the process is asked to stop; then they are handed back
    #[arg(long, env = "ODE_GRACE", value_name = "SECONDS", default_value_t = 30, allow_negative_numbers = true,
        value_parser = clap::value_parser!(u64).range(..=86_400))]
    grace: u64,
}

impl Drain {
    fn grace(&self) -> Duration {
        Duration::from_secs(self.grace)
    }
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
    let mut signals = Signals::listen()?;
    let listener = listen(&args.listen).await?;
    let address = listener.local_addr()?;
    let store = settings.store("web", Schema::Migrate).await?;
    let blobs = settings.blobs()?;
    let worker = match parts.has_worker {
        // On the same connections: a job that is asked for here can then start here, without being claimed.
        true => Some(start_worker(store.clone(), blobs.clone(), &args.drain).await?),
        false => None,
    };
    let (stop, stopped) = oneshot::channel::<()>();
    let web = Web { store: store.clone(), blobs };
    let mut web = tokio::spawn(ode_web::serve(listener, web, async {
        // An error means that the sender is gone, which says the same.
        let _ = stopped.await;
    }));
    announce(format!("ODE is listening on http://{address}\nStop it with ctrl-C."));
    tokio::select! {
        () = signals.asked() => {}
        ended = &mut web => ended?.context("The web side ended unexpectedly")?,
    }
    drop(stop);
    let drained = async {
        let (web, worker) = tokio::join!(end_web(web, args.drain.grace()), end_worker(worker));
        store.close().await;
        web.and(worker)
    };
    signals.wait_for(drained, args.drain.grace()).await
}

/// Works until it is asked to stop.
pub(crate) async fn worker(settings: &Settings, args: &Drain) -> anyhow::Result<ExitCode> {
    let mut signals = Signals::listen()?;
    let store = settings.store("worker", Schema::Migrate).await?;
    let worker = start_worker(store, settings.blobs()?, args).await?;
    announce(format!("Worker {} is running. Stop it with ctrl-C.", worker.id()));
    signals.asked().await;
    signals.wait_for(end_worker(Some(worker)), args.grace()).await
}

/// Says something on standard output. Nobody need listen: the work goes on if the reader is gone.
fn announce(text: String) {
    let _ = output::line(text);
}

async fn listen(address: &str) -> anyhow::Result<TcpListener> {
    TcpListener::bind(address).await.map_err(|error| match error.kind() {
        std::io::ErrorKind::AddrInUse => anyhow::anyhow!(
            "Another program listens on {address}; perhaps ODE is running already. Stop it, or choose another \
             address with --listen."
        ),
        _ => anyhow::anyhow!(
            "Cannot listen on {address}: {error}. Give --listen an address of this machine, such as 127.0.0.1:8080."
        ),
    })
}

async fn start_worker(store: Store, blobs: Blobs, args: &Drain) -> anyhow::Result<Worker> {
    let config = ode_worker::Config { grace: args.grace(), ..ode_worker::Config::default() };
    Ok(Worker::start(store, Some(blobs), ode_pipelines::registry(), config).await?)
}

async fn end_worker(worker: Option<Worker>) -> anyhow::Result<()> {
    match worker {
        Some(worker) => Ok(worker.stop().await?),
        None => Ok(()),
    }
}

/// Lets requests that are under way end, but not for ever: a client may never finish sending one.
async fn end_web(mut web: JoinHandle<std::io::Result<()>>, grace: Duration) -> anyhow::Result<()> {
    // Also when the grace period is zero, requests that need no waiting get their answer.
    match tokio::time::timeout(grace.max(WEB_GRACE_MIN), &mut web).await {
        Ok(ended) => ended?.context("The web side ended unexpectedly"),
        Err(_) => {
            tracing::warn!("some requests did not end in time and were cut off");
            web.abort();
            Ok(())
        }
    }
}

/// Enough for an answer that is ready to be sent.
const WEB_GRACE_MIN: Duration = Duration::from_millis(100);
/// Stopping for longer than this asks for a word.
const SILENCE_MAX: Duration = Duration::from_secs(1);

/// Ctrl-C and SIGTERM, heard from the moment this is made.
struct Signals {
    interrupt: Signal,
    terminate: Signal,
}

impl Signals {
    fn listen() -> anyhow::Result<Self> {
        let hear = |kind| signal(kind).context("Signals cannot be listened for");
        Ok(Signals { interrupt: hear(SignalKind::interrupt())?, terminate: hear(SignalKind::terminate())? })
    }

    /// Returns when the process is asked to stop.
    async fn asked(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }

    /// Waits until everything has ended. Who asks a second time does not want to wait.
    async fn wait_for(
        &mut self,
        drained: impl Future<Output = anyhow::Result<()>>,
        grace: Duration,
    ) -> anyhow::Result<ExitCode> {
        let mut drained = pin!(drained);
        let outcome = tokio::select! {
            outcome = &mut drained => outcome,
            () = self.asked() => return Ok(cut_short()),
            () = tokio::time::sleep(SILENCE_MAX) => {
                output::tell(format!(
                    "Waiting up to {} s for what is running. Press ctrl-C again to stop at once.",
                    grace.as_secs()
                ));
                tokio::select! {
                    outcome = &mut drained => outcome,
                    () = self.asked() => return Ok(cut_short()),
                }
            }
        };
        outcome?;
        announce("Stopped.".into());
        Ok(ExitCode::SUCCESS)
    }
}

fn cut_short() -> ExitCode {
    output::tell(
        "Stopped at once. What was running is given to another worker, or tried again at the next start.",
    );
    // What shells report for a process that ctrl-C ended.
    ExitCode::from(130)
}
