//! `ode serve`, `ode web`, `ode worker`: the long-running parts, together or alone.

use super::site::SiteArgs;
use super::watch::{Watched, Watching};
use super::work::Work;
use crate::wire;
use anyhow::Context as _;
use clap::{ArgMatches, Args};
use futures_util::future::join_all;
use ode_cli::process::{Signals, announce, listen, raise_descriptors};
use ode_cli::{Schema, Settings};
use ode_http::{Site, Watcher};
use ode_pipeline::{Scope, Service, SiteSetup, WorkSetup};
use ode_store::disk::Watermark;
use ode_store::{Blobs, Store};
use ode_worker::{Chores, Registry, Worker};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// How to serve.
#[derive(Debug, Args)]
pub(crate) struct Serve {
    /// Address to listen on; port 0 takes any that is free
    #[arg(long, env = "ODE_LISTEN", value_name = "HOST:PORT", default_value = "127.0.0.1:8080")]
    listen: String,
    #[command(flatten)]
    watched: Watched,
    #[command(flatten)]
    site: SiteArgs,
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
    pub(super) fn grace(&self) -> Duration {
        Duration::from_secs(self.grace)
    }
}

/// How to run a worker alone.
#[derive(Debug, Args)]
pub(crate) struct WorkerOnly {
    #[command(flatten)]
    watched: Watched,
    #[command(flatten)]
    work: Work,
    #[command(flatten)]
    drain: Drain,
}

/// How to serve everything.
#[derive(Debug, Args)]
pub(crate) struct Everything {
    #[command(flatten)]
    web: Serve,
    #[command(flatten)]
    work: Work,
}

/// A command that starts a process: its scope, the settings, and everything that was typed for it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Start<'a> {
    pub(crate) scope: Scope,
    pub(crate) settings: &'a Settings,
    pub(crate) typed: &'a ArgMatches,
}

/// A worker, and what runs beside it.
struct RunningWorker {
    worker: Worker,
    /// What pipelines run in this process beside their jobs.
    services: Vec<Service>,
    /// Sends messages about jobs that ended.
    webhooks: JoinHandle<()>,
}

impl RunningWorker {
    async fn stop(self) -> anyhow::Result<()> {
        let services = join_all(self.services.into_iter().map(|service| service.stop));
        let (stopped, services) = tokio::join!(self.worker.stop(), services);
        // What was under way is sent again by whoever comes next.
        self.webhooks.abort();
        stopped?;
        services.into_iter().collect()
    }

    fn announce_services(&self) {
        self.services.iter().for_each(|service| announce(service.announcement.clone()));
    }
}

/// Runs web, worker and gateway until it is asked to stop.
pub(crate) async fn everything(start: Start<'_>, args: &Everything) -> anyhow::Result<ExitCode> {
    let worker = PreparedWorker::prepare(start, &args.work, &args.web.drain).await?;
    // On the same connections: a job that is asked for here can then start here, without being claimed.
    serve(start, &args.web, async |store, blobs| worker.start(store, blobs).await.map(Some)).await
}

/// Runs the web side alone until it is asked to stop.
pub(crate) async fn web(start: Start<'_>, args: &Serve) -> anyhow::Result<ExitCode> {
    serve(start, args, async |_, _| Ok(None)).await
}

async fn serve(
    start: Start<'_>,
    args: &Serve,
    start_worker: impl AsyncFnOnce(Store, Blobs) -> anyhow::Result<Option<RunningWorker>>,
) -> anyhow::Result<ExitCode> {
    let settings = start.settings;
    raise_descriptors();
    let mut signals = Signals::listen()?;
    let listener = listen(&args.listen, "--listen").await?;
    let address = listener.local_addr()?;
    let store = settings.store("web", Schema::Migrate).await?;
    let blobs = settings.blobs()?;
    let site = args.site.settings(settings, args.drain.grace())?;
    let setup = SiteSetup { settings, typed: start.typed, store: &store };
    let mut routes = Vec::new();
    for pipeline in wire::pipelines() {
        routes.push(pipeline.site(&setup).await?);
    }
    let site = Site::open(store.clone(), blobs.clone(), site, routes).await?;
    let watching = args.watched.start(site.watcher()).await?;
    let worker = start_worker(store.clone(), blobs).await?;
    let (stop, stopped) = oneshot::channel::<()>();
    let mut web = tokio::spawn(site.serve(listener, async {
        // An error means that the sender is gone, which says the same.
        let _ = stopped.await;
    }));
    announce(format!("ODE is listening on http://{address}"));
    worker.iter().for_each(RunningWorker::announce_services);
    watching.iter().for_each(Watching::announce);
    announce("Stop it with ctrl-C.".into());
    tokio::select! {
        () = signals.asked() => {}
        ended = &mut web => {
            ended.context("The web side ended unexpectedly")?;
            anyhow::bail!("The web side ended unexpectedly. The log says why.");
        }
    }
    drop(stop);
    let drained = async {
        let worker = async {
            match worker {
                Some(worker) => worker.stop().await,
                None => Ok(()),
            }
        };
        let (web, worker) = tokio::join!(web, worker);
        store.close().await;
        web.context("The web side ended unexpectedly").and(worker)
    };
    signals.wait_for(drained, args.drain.grace()).await
}

/// Works until it is asked to stop.
pub(crate) async fn worker(start: Start<'_>, args: &WorkerOnly) -> anyhow::Result<ExitCode> {
    let settings = start.settings;
    let mut signals = Signals::listen()?;
    let worker = PreparedWorker::prepare(start, &args.work, &args.drain).await?;
    let store = settings.store("worker", Schema::Migrate).await?;
    let blobs = settings.blobs()?;
    let disk = Watermark::new(blobs.root(), settings.watermark()?);
    let watcher = Watcher::new(store.clone(), blobs.clone(), disk, settings.redis.clone());
    let watching = args.watched.start(Arc::new(watcher)).await?;
    let worker = worker.start(store, blobs).await?;
    announce(format!("Worker {} is running. Stop it with ctrl-C.", worker.worker.id()));
    worker.announce_services();
    watching.iter().for_each(Watching::announce);
    signals.asked().await;
    signals.wait_for(worker.stop(), args.drain.grace()).await
}

/// A worker whose options are checked and whose addresses are taken, before anything is opened or made.
struct PreparedWorker<'a> {
    start: Start<'a>,
    args: &'a Work,
    grace: Duration,
    /// One for each pipeline, in their order.
    listeners: Vec<Option<TcpListener>>,
}

impl<'a> PreparedWorker<'a> {
    async fn prepare(start: Start<'a>, args: &'a Work, drain: &Drain) -> anyhow::Result<Self> {
        let mut listeners = Vec::new();
        for pipeline in wire::pipelines() {
            listeners.push(pipeline.prepare(start.scope, start.typed).await?);
        }
        Ok(PreparedWorker { start, args, grace: drain.grace(), listeners })
    }

    async fn start(self, store: Store, blobs: Blobs) -> anyhow::Result<RunningWorker> {
        let PreparedWorker { start: Start { scope, settings, typed }, args, grace, listeners } = self;
        args.keep.apply(&store).await?;
        let mut registry = Registry::new();
        let mut chores = Vec::new();
        let mut services = Vec::new();
        for (pipeline, listener) in wire::pipelines().iter().zip(listeners) {
            let setup = WorkSetup {
                scope,
                settings,
                typed,
                listener,
                store: &store,
                blobs: &blobs,
                retry: args.retry(),
                breaker: args.breaker(),
                sandbox: args.sandbox(),
                grace,
            };
            let work = pipeline.work(setup).await?;
            for (lane, handler) in work.lanes {
                registry = registry.with_shared(lane, handler);
            }
            chores.extend(work.chores);
            services.extend(work.services);
        }
        let config = ode_worker::Config {
            grace,
            away_max: args.away_max(),
            chores: Some(Chores {
                cleanup_every: args.keep.cleanup_every(),
                watermark: settings.watermark()?,
                ..Chores::default()
            }),
            places: settings.places()?,
            publishers: wire::publishers(),
            beat_every: settings.beat_every(),
            ..ode_worker::Config::default()
        };
        let webhooks = args.webhooks(settings, store.clone())?;
        let worker = Worker::start_with(store, Some(blobs), registry, chores, config).await?;
        Ok(RunningWorker { worker, services, webhooks: tokio::spawn(webhooks.run()) })
    }
}
