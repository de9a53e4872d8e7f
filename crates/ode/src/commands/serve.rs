//! `ode serve`, `ode web`, `ode worker`: the long-running parts, together or alone.

use super::drawing::drawer;
use super::gateway;
use super::opinions::Asking;
use super::site::SiteArgs;
use super::watch::{Watched, Watching};
use super::work::Work;
use crate::config::{Schema, Settings};
use crate::output::{self, WrongUse};
use anyhow::Context as _;
use clap::Args;
use ode_child::Sandbox;
use ode_html::Html;
use ode_http::{Site, Watcher};
use ode_pipeline::Pipeline;
use ode_print::{Print, PrintSite};
use ode_script::Scripts;
use ode_store::disk::Watermark;
use ode_store::{Blobs, Store};
use ode_worker::{Chores, Worker};
use ode_xml::Xml;
use std::pin::pin;
use std::process::ExitCode;
use std::sync::Arc;
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
    /// Address for the gateway to listen on, or off to go without
    #[arg(long, env = "ODE_GATEWAY", value_name = "HOST:PORT", default_value = gateway::LISTEN)]
    gateway: String,
    #[command(flatten)]
    work: Work,
}

/// A worker, and what runs beside it.
struct Working {
    worker: Worker,
    /// Shows results to a language model, where that is wanted.
    asking: Option<Asking>,
    /// Tells owners of jobs that ended.
    telling: JoinHandle<()>,
}

impl Working {
    async fn stop(self) -> anyhow::Result<()> {
        if let Some(asking) = self.asking {
            asking.stop().await;
        }
        let stopped = self.worker.stop().await;
        // What was under way is sent again by whoever comes next.
        self.telling.abort();
        Ok(stopped?)
    }
}

/// What runs beside the web side.
struct Beside {
    worker: Working,
    gateway: Option<gateway::Running>,
}

/// Runs web, worker and gateway until it is asked to stop.
pub(crate) async fn everything(settings: &Settings, args: &Everything) -> anyhow::Result<ExitCode> {
    let gateway = match args.gateway.as_str() {
        "off" => None,
        address => Some(listen(address, "--gateway").await?),
    };
    args.work.check_mapping(args.web.site.mapping())?;
    serve(settings, &args.web, async |store, blobs| {
        let gateway = match gateway {
            Some(listener) => {
                Some(gateway::start(listener, args.work.conversions(), args.web.drain.grace()).await?)
            }
            None => None,
        };
        // On the same connections: a job that is asked for here can then start here, without being claimed.
        let worker = start_worker(settings, (store, blobs), &args.work, &args.web.drain).await?;
        Ok(Some(Beside { worker, gateway }))
    })
    .await
}

/// Runs the web side alone until it is asked to stop.
pub(crate) async fn web(settings: &Settings, args: &Serve) -> anyhow::Result<ExitCode> {
    serve(settings, args, async |_, _| Ok(None)).await
}

async fn serve(
    settings: &Settings,
    args: &Serve,
    beside: impl AsyncFnOnce(Store, Blobs) -> anyhow::Result<Option<Beside>>,
) -> anyhow::Result<ExitCode> {
    raise_descriptors();
    let mut signals = Signals::listen()?;
    let listener = listen(&args.listen, "--listen").await?;
    let address = listener.local_addr()?;
    let store = settings.store("web", Schema::Migrate).await?;
    let blobs = settings.blobs()?;
    let mut site = args.site.settings(settings, args.drain.grace())?;
    site.fields = gateway::fields_known();
    let scripts = Scripts::site(&args.site.scripts, &settings.script_folders(), &store).await?;
    let xml = Xml { kind: Some(ode_xml::job_kind()), ..Xml::default() };
    let html = Html { service: Some(args.site.html(settings)?), ..Html::default() };
    let print = PrintSite::new(drawer(None, Sandbox::BestEffort)?, ode_print::hook_secret()?);
    let print = Print { site: Some(Arc::new(print)), ..Print::default() };
    let pipelines: [&dyn Pipeline; 4] = [&xml, &print, &html, &scripts];
    let routes = pipelines.into_iter().map(Pipeline::routes).collect();
    let site = Site::open(store.clone(), blobs.clone(), site, routes).await?;
    let watching = args.watched.start(site.watcher()).await?;
    let beside = beside(store.clone(), blobs).await?;
    let (stop, stopped) = oneshot::channel::<()>();
    let mut web = tokio::spawn(site.serve(listener, async {
        // An error means that the sender is gone, which says the same.
        let _ = stopped.await;
    }));
    announce(format!("ODE is listening on http://{address}"));
    if let Some(gateway) = beside.as_ref().and_then(|beside| beside.gateway.as_ref()) {
        announce(format!("Its gateway is listening on http://{}", gateway.address()));
    }
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
        let (web, beside) = tokio::join!(web, end_beside(beside));
        store.close().await;
        web.context("The web side ended unexpectedly").and(beside)
    };
    signals.wait_for(drained, args.drain.grace()).await
}

/// Files and connections that a busy site may have open.
const DESCRIPTORS: u64 = 65_536;

/// Raises the limit that programs begin with, which is often 1,024, as far as this process may.
pub(crate) fn raise_descriptors() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let wanted = maximum.map_or(DESCRIPTORS, |maximum| maximum.min(DESCRIPTORS));
    if current.is_some_and(|current| current < wanted) {
        // Where it is refused, it stays as it was.
        let _ = setrlimit(Resource::Nofile, Rlimit { current: Some(wanted), maximum });
    }
}

async fn end_beside(beside: Option<Beside>) -> anyhow::Result<()> {
    let Some(Beside { worker, gateway }) = beside else { return Ok(()) };
    let end_gateway = async {
        match gateway {
            Some(gateway) => gateway.stop().await,
            None => Ok(()),
        }
    };
    let (worker, gateway) = tokio::join!(worker.stop(), end_gateway);
    worker.and(gateway)
}

/// Works until it is asked to stop.
pub(crate) async fn worker(settings: &Settings, args: &WorkerOnly) -> anyhow::Result<ExitCode> {
    let mut signals = Signals::listen()?;
    let store = settings.store("worker", Schema::Migrate).await?;
    let blobs = settings.blobs()?;
    let disk = Watermark::new(blobs.root(), settings.watermark()?);
    let watcher = Watcher::new(store.clone(), blobs.clone(), disk, settings.redis.clone());
    let watching = args.watched.start(Arc::new(watcher)).await?;
    let worker = start_worker(settings, (store, blobs), &args.work, &args.drain).await?;
    announce(format!("Worker {} is running. Stop it with ctrl-C.", worker.worker.id()));
    watching.iter().for_each(Watching::announce);
    signals.asked().await;
    signals.wait_for(worker.stop(), args.drain.grace()).await
}

/// Says something on standard output. Nobody need listen: the work goes on if the reader is gone.
pub(super) fn announce(text: String) {
    let _ = output::line(text);
}

/// Listens where this option says.
pub(super) async fn listen(address: &str, option: &str) -> anyhow::Result<TcpListener> {
    TcpListener::bind(address).await.map_err(|error| {
        let refused = format!(
            "Cannot listen on {address}: {error}. Give {option} an address of this machine, such as 127.0.0.1:8080."
        );
        match error.kind() {
            std::io::ErrorKind::AddrInUse => anyhow::anyhow!(
                "Another program listens on {address}; perhaps ODE is running already. Stop it, or choose another \
                 address with {option}{}.",
                if option == "--gateway" { ", or go without a gateway with --gateway off" } else { "" }
            ),
            std::io::ErrorKind::InvalidInput => WrongUse(refused).into(),
            _ => anyhow::anyhow!(refused),
        }
    })
}

async fn start_worker(
    settings: &Settings,
    (store, blobs): (Store, Blobs),
    work: &Work,
    drain: &Drain,
) -> anyhow::Result<Working> {
    work.keep.apply(&store).await?;
    let chores = Chores {
        cleanup_every: work.keep.cleanup_every(),
        watermark: settings.watermark()?,
        ..Chores::default()
    };
    let config = ode_worker::Config {
        grace: drain.grace(),
        away_max: work.away_max(),
        chores: Some(chores),
        places: settings.places()?,
        publishers: vec![ode_html::PUBLISHER],
        beat_every: settings.beat_every(),
        ..ode_worker::Config::default()
    };
    let asking = work.opinions.start(store.clone(), blobs.clone(), work.conversions()).await?;
    let telling = work.webhooks(settings, store.clone())?;
    let pipelines = work.pipelines(settings, &store).await?;
    let registry = ode_pipeline::registry(&pipelines);
    let chores = pipelines.iter().flat_map(|pipeline| pipeline.chores()).collect();
    let worker = Worker::start_with(store, Some(blobs), registry, chores, config).await?;
    Ok(Working { worker, asking, telling: tokio::spawn(telling.run()) })
}

/// Stopping for longer than this asks for a word.
const SILENCE_MAX: Duration = Duration::from_secs(1);

/// Ctrl-C and SIGTERM, heard from the moment this is made.
pub(super) struct Signals {
    interrupt: Signal,
    terminate: Signal,
}

impl Signals {
    pub(super) fn listen() -> anyhow::Result<Self> {
        let hear = |kind| signal(kind).context("Signals cannot be listened for");
        Ok(Signals { interrupt: hear(SignalKind::interrupt())?, terminate: hear(SignalKind::terminate())? })
    }

    /// Returns when the process is asked to stop.
    pub(super) async fn asked(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }

    /// Waits until everything has ended. Who asks a second time does not want to wait.
    pub(super) async fn wait_for(
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
