//! `ode gateway`: PDFs in over HTTP, XML out. Also the gateway's part of `ode serve`.
//!
//! The mappings in use are a copy of the folder, made when all of it was found right. Children read the copy, so
//! that a file which is being edited, or is wrong, reaches none of them; and who started with one copy ends with it.

use super::serve::{Signals, announce, listen};
use anyhow::Context as _;
use bytes::Bytes;
use clap::Args;
use ode_child::{PoolOptions, Sandbox};
use ode_http::{Conversion, Convert, GatewayLimits, MappingInfo, Mappings, Order, Shadow};
use ode_invoice::mapping::file::Status;
use ode_invoice::terms::{HEADER, TABLES};
use ode_invoice::{ExtractError, Mapping, Registry};
use ode_job::{ErrorCode, Failure};
use ode_xml::{Ask, Converted, Converter, Engine, Options, Places, To};
use std::io::Read as _;
use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, SystemTime};
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// Where the gateway listens unless told otherwise.
pub(super) const LISTEN: &str = "127.0.0.1:8000";
/// The mapping where none is named.
const MAPPING: &str = "pt_simon_invoice_v1";
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
    let options = Options { shadow: true, pool, ocr: args.ocr.options(), ..Options::default() };
    let folder = args.mappings.clone();
    let service =
        tokio::task::spawn_blocking(move || Service::new(Converter::new(options)?, folder)).await??;
    let service = Arc::new(service);
    let (stop, stopped) = oneshot::channel::<()>();
    let task = tokio::spawn(async move {
        let stopped = async {
            // An error means that the sender is gone, which says the same.
            let _ = stopped.await;
        };
        let (serving, served) = oneshot::channel::<()>();
        let serve = async {
            ode_http::serve_gateway(listener, service.clone(), limits, stopped).await;
            drop(serving);
        };
        // Neither is cut off: a look at the folder that is under way holds a copy, which is to be gone at the end.
        tokio::join!(serve, watch(&service, served));
    });
    Ok(Running { address, stop, task })
}

/// Conversions with mappings that change.
struct Service {
    converter: Converter,
    folder: Option<PathBuf>,
    /// The folder as it looked before it was loaded for the first time.
    first_look: Look,
    current: RwLock<Current>,
}

/// What is in use. Kept together, so that nobody is told of mistakes that have been mended.
struct Current {
    live: Arc<Live>,
    /// What is wrong with the folder as it is now, if that is why it is not what is live.
    mistakes: Vec<String>,
}

/// Mappings that were found right together.
struct Live {
    registry: Registry,
    converter: Converter,
    /// What the children read; it goes with the last conversion that uses it.
    _copy: Option<TempDir>,
}

impl Service {
    fn new(converter: Converter, folder: Option<PathBuf>) -> anyhow::Result<Self> {
        // Before it is loaded: what changes in between is then seen as a change.
        let first_look = folder.as_deref().map(look).unwrap_or_default();
        let live = load(&converter, folder.as_deref()).map_err(|mistakes| {
            anyhow::anyhow!(
                "The mappings cannot be used. Mend them, or move them away.\n{}",
                mistakes.join("\n")
            )
        })?;
        let current = RwLock::new(Current { live: Arc::new(live), mistakes: Vec::new() });
        Ok(Service { converter, folder, first_look, current })
    }

    fn live(&self) -> Arc<Live> {
        self.current.read().unwrap_or_else(PoisonError::into_inner).live.clone()
    }

    /// Swaps in what the folder holds now, or tells what is wrong with it and changes nothing.
    fn reload(&self, folder: &Path) {
        let loaded = load(&self.converter, Some(folder));
        let mut current = self.current.write().unwrap_or_else(PoisonError::into_inner);
        match loaded {
            Ok(live) => {
                let count = live.registry.current().list().count();
                tracing::info!(mapping_count = count, "mappings loaded anew: there are {count}");
                *current = Current { live: Arc::new(live), mistakes: Vec::new() };
            }
            Err(mistakes) => {
                let told = mistakes.join("; ");
                tracing::warn!("changed mappings are not used, those before stay: {told}");
                current.mistakes = mistakes;
            }
        }
    }
}

/// Loads the mappings that ship and those in a copy of the folder.
fn load(converter: &Converter, folder: Option<&Path>) -> Result<Live, Vec<String>> {
    let Some(folder) = folder else {
        return Ok(Live { registry: Registry::shipped(), converter: converter.clone(), _copy: None });
    };
    let copy = copy(folder).map_err(|error| vec![format!("{}: {error}", folder.display())])?;
    let options =
        ode_invoice::Options { folder: Some(copy.path().to_owned()), ..ode_invoice::Options::default() };
    let registry = Registry::new(options)
        .map_err(|mistakes| mistakes.iter().map(ToString::to_string).collect::<Vec<_>>())?;
    let converter =
        converter.with_mappings(copy.path().to_owned()).map_err(|error| vec![error.to_string()])?;
    Ok(Live { registry, converter, _copy: Some(copy) })
}

/// One byte more than a mapping file may have: the copy of one that is too large is so too.
const COPY_BYTES_MAX: u64 = (1 << 20) + 1;
/// As many as the registry reads.
const FILES_MAX: usize = 5_000;

fn copy(folder: &Path) -> std::io::Result<TempDir> {
    let copy = tempfile::Builder::new().prefix("ode-mappings-").tempdir()?;
    for path in files(folder)? {
        let (Some(name), file) = (path.file_name(), std::fs::File::open(&path)?) else { continue };
        let mut to = std::fs::File::create(copy.path().join(name))?;
        std::io::copy(&mut file.take(COPY_BYTES_MAX), &mut to)?;
    }
    Ok(copy)
}

fn files(folder: &Path) -> std::io::Result<Vec<PathBuf>> {
    let paths = std::fs::read_dir(folder)?.map(|entry| entry.map(|entry| entry.path()));
    let is_mapping = |path: &PathBuf| path.extension().is_some_and(|ending| ending == "toml");
    let mut files: Vec<PathBuf> = paths
        .filter(|path| path.as_ref().map_or(true, is_mapping))
        .take(FILES_MAX)
        .collect::<Result<_, _>>()?;
    files.sort();
    Ok(files)
}

/// How often the folder is looked at. Looking beats being told: it also works on network drives.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Loads the mappings anew whenever the folder has changed, until the gateway has ended.
async fn watch(service: &Arc<Service>, mut served: oneshot::Receiver<()>) {
    let Some(folder) = service.folder.clone() else { return };
    let mut seen = Some(service.first_look.clone());
    loop {
        tokio::select! {
            () = tokio::time::sleep(LOOK_EVERY) => {}
            // Only ever ends with the sender being dropped.
            _ = &mut served => return,
        }
        let (service, folder, before) = (service.clone(), folder.clone(), seen.take());
        let look = move || {
            let now = look(&folder);
            if before.as_ref() != Some(&now) {
                service.reload(&folder);
            }
            now
        };
        seen = tokio::task::spawn_blocking(look).await.ok();
    }
}

/// What shows that a folder has changed: its files, when each was written, and how long it is.
type Look = Vec<(PathBuf, Option<SystemTime>, u64)>;

fn look(folder: &Path) -> Look {
    let seen = |path: PathBuf| {
        let metadata = std::fs::metadata(&path).ok();
        let modified = metadata.as_ref().and_then(|metadata| metadata.modified().ok());
        (path, modified, metadata.map_or(0, |metadata| metadata.len()))
    };
    // A folder that cannot be read looks empty here; loading it says why.
    files(folder).unwrap_or_default().into_iter().map(seen).collect()
}

/// Conversions with mappings that follow their folder, for the worker of this process.
pub(super) struct WorkerEngine {
    service: Arc<Service>,
    /// Dropped, it ends the watching.
    _watching: oneshot::Sender<()>,
}

/// The fields that results may have, with `*` for the number of a row.
pub(super) fn fields_known() -> Vec<String> {
    let header = HEADER.iter().map(|term| term.name.to_owned());
    let columns = TABLES
        .iter()
        .flat_map(|table| table.columns.iter().map(|column| format!("{}.*.{}", table.name, column.name)));
    header.chain(columns).collect()
}

/// Starts an engine that converts so many documents at a time. Nobody is told that we are busy: slots give the turns.
pub(super) async fn engine(args: &Conversions, at_once: usize) -> anyhow::Result<WorkerEngine> {
    let (sandbox, patience) = (args.sandbox(), Duration::MAX);
    let pool = PoolOptions { at_once, patience, sandbox, ..PoolOptions::default() };
    let options = Options { ocr: args.ocr.options(), pool, ..Options::default() };
    let folder = args.mappings.clone();
    let service =
        tokio::task::spawn_blocking(move || Service::new(Converter::new(options)?, folder)).await??;
    let service = Arc::new(service);
    let (watching, ended) = oneshot::channel();
    let watched = service.clone();
    tokio::spawn(async move { watch(&watched, ended).await });
    Ok(WorkerEngine { service, _watching: watching })
}

#[async_trait::async_trait]
impl Engine for WorkerEngine {
    async fn convert(&self, ask: &Ask, document: Bytes) -> Result<Converted, Failure> {
        let live = self.service.live();
        live.converter.convert(ask, document).await
    }
}

impl Convert for Service {
    async fn convert(&self, order: Order) -> Result<Conversion, Failure> {
        let live = self.live();
        let (ask, document) = ask(&live.registry, order)?;
        let converted = live.converter.convert(&ask, document).await?;
        Ok(Conversion {
            xml: converted.document,
            source: converted.summary.source,
            findings: converted.summary.findings.iter().map(|finding| serde_json::json!(finding)).collect(),
            pages: converted.summary.pages,
            shadows: converted.summary.shadows.into_iter().map(shadow).collect(),
        })
    }

    fn mappings(&self) -> Mappings {
        let current = self.current.read().unwrap_or_else(PoisonError::into_inner);
        let mappings = current.live.registry.current().list().map(|mapping| describe(mapping)).collect();
        Mappings { mappings, mistakes: current.mistakes.clone() }
    }

    fn document_bytes_max(&self) -> u64 {
        self.converter.bytes_max()
    }
}

fn shadow(shadow: ode_xml::Shadow) -> Shadow {
    Shadow { mapping: shadow.mapping, different: shadow.different }
}

/// What is asked, checked as far as it can be before a child is started for it.
fn ask(registry: &Registry, order: Order) -> Result<(Ask, Bytes), Failure> {
    let mapping = order.mapping.filter(|name| !name.is_empty()).unwrap_or_else(|| MAPPING.to_owned());
    let mapping = (mapping != "auto").then_some(mapping);
    if let Some(name) = &mapping {
        registry.current().get(name).map_err(unknown)?;
    }
    let output = order.output.filter(|output| !output.is_empty());
    let output = output.map(|output| output.parse()).transpose();
    let output = output.map_err(|message| Failure::rejected(ErrorCode::Invalid, message))?;
    let ask = Ask {
        to: To::Xml,
        mapping,
        output: output.unwrap_or_default(),
        page_only: false,
        places: if order.provenance { Places::Within } else { Places::Untold },
    };
    Ok((ask, order.document))
}

fn unknown(error: ExtractError) -> Failure {
    Failure::rejected(ErrorCode::UnknownMapping, error.to_string())
}

fn describe(mapping: &Mapping) -> MappingInfo {
    MappingInfo {
        id: mapping.id.clone(),
        name: mapping.name.clone(),
        version: mapping.version,
        status: match mapping.status {
            Status::Draft => "draft",
            Status::Canary => "canary",
            Status::Live => "live",
            Status::Retired => "retired",
        },
        kind: mapping.kind.clone(),
        // The two standards are about invoices; our own XML takes any kind of document.
        outputs: if mapping.kind == "invoice" { &["own", "ubl", "cii"] } else { &["own"] },
    }
}
