//! Conversions with mappings that change while the process runs.
//!
//! The mappings in use are a copy of the folder, made when all of it was found right. Children read the copy, so
//! that a file which is being edited, or is wrong, reaches none of them; and who started with one copy ends with it.

use super::ask::{Ask, Converted};
use super::converter::{Converter, Options};
use bytes::Bytes;
use ode_invoice::{Mapping, Registry};
use ode_job::{ErrorCode, Failure};
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::{Duration, SystemTime};
use tempfile::TempDir;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// How often the folder is looked at. Looking beats being notified: it also works on network drives.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// One byte more than a mapping file may have: the copy of one that is too large is so too.
const COPY_BYTES_MAX: u64 = (1 << 20) + 1;
/// As many as the registry reads.
const FILES_MAX: usize = 5_000;

/// Why conversions cannot begin.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// Mappings are wrong, each with the place and the reason.
    #[error("The mappings cannot be used. Mend them, or move them away.\n{}", .0.join("\n"))]
    Mappings(Vec<String>),
    /// Children cannot be started.
    #[error(transparent)]
    Child(#[from] ode_child::Error),
    /// Loading the mappings ended unexpectedly.
    #[error("The mappings could not be loaded: {0}")]
    Interrupted(#[from] tokio::task::JoinError),
}

/// A converter whose mappings follow their folder. Dropped, it follows no more.
pub struct LiveConverter {
    service: Arc<Service>,
    watching: Mutex<Option<Watching>>,
}

/// The task that looks at the folder. It ends when the sender is dropped.
struct Watching {
    stop: oneshot::Sender<()>,
    task: JoinHandle<()>,
}

impl LiveConverter {
    /// Loads the mappings that ship and those of the folder, and follows the folder from then on.
    pub async fn start(options: Options) -> Result<Self, StartError> {
        let converter = Converter::new(Options { mappings: None, ..options.clone() })?;
        Self::with_converter(converter, options.mappings).await
    }

    pub(crate) async fn with_converter(
        converter: Converter,
        folder: Option<PathBuf>,
    ) -> Result<Self, StartError> {
        let service = tokio::task::spawn_blocking(move || Service::new(converter, folder)).await??;
        let service = Arc::new(service);
        let (stop, stopped) = oneshot::channel();
        let task = tokio::spawn(watch(service.clone(), stopped));
        Ok(LiveConverter { service, watching: Mutex::new(Some(Watching { stop, task })) })
    }

    /// Follows the folder no more, and returns once no look at it is under way, which would hold a copy of it.
    pub async fn stop(&self) {
        let watching = self.watching.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(Watching { stop, task }) = watching {
            drop(stop);
            // A look that panicked has ended, too.
            let _ = task.await;
        }
    }

    /// Converts one document with the mappings in use now. Dropping the future ends the conversion.
    pub async fn convert(&self, ask: &Ask, document: Bytes) -> Result<Converted, Failure> {
        let live = self.service.live();
        live.converter.convert(ask, document).await
    }

    /// Refuses the name of a mapping that is not in use.
    pub fn check_mapping(&self, name: &str) -> Result<(), Failure> {
        let unknown = |error: ode_invoice::ExtractError| {
            Failure::rejected(ErrorCode::UnknownMapping, error.to_string())
        };
        self.service.live().registry.current().get(name).map(drop).map_err(unknown)
    }

    /// Reads the mappings in use, and why files that are newer are not.
    pub fn mappings<T>(&self, read: impl Fn(&Mapping) -> T) -> (Vec<T>, Vec<String>) {
        let current = self.service.current.read().unwrap_or_else(PoisonError::into_inner);
        let mappings = current.live.registry.current().list().map(|mapping| read(mapping)).collect();
        (mappings, current.mistakes.clone())
    }

    /// The largest document it takes, in bytes.
    pub fn bytes_max(&self) -> u64 {
        self.service.converter.bytes_max()
    }
}

/// What the watching task and the conversions share.
struct Service {
    converter: Converter,
    folder: Option<PathBuf>,
    /// The folder as it looked before it was loaded for the first time.
    first_look: Look,
    current: RwLock<Current>,
}

/// The mappings in use. Kept together, so that no mistake is reported that has been mended.
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
    fn new(converter: Converter, folder: Option<PathBuf>) -> Result<Self, StartError> {
        // Before it is loaded: what changes in between is then seen as a change.
        let first_look = folder.as_deref().map(look).unwrap_or_default();
        let live = load(&converter, folder.as_deref()).map_err(StartError::Mappings)?;
        let current = RwLock::new(Current { live: Arc::new(live), mistakes: Vec::new() });
        Ok(Service { converter, folder, first_look, current })
    }

    fn live(&self) -> Arc<Live> {
        self.current.read().unwrap_or_else(PoisonError::into_inner).live.clone()
    }

    /// Swaps in what the folder holds now, or reports what is wrong with it and changes nothing.
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

/// Loads the mappings anew whenever the folder has changed, until the sender is dropped.
async fn watch(service: Arc<Service>, mut stopped: oneshot::Receiver<()>) {
    let Some(folder) = service.folder.clone() else { return };
    let mut seen = Some(service.first_look.clone());
    loop {
        tokio::select! {
            () = tokio::time::sleep(LOOK_EVERY) => {}
            // Only ever ends with the sender being dropped.
            _ = &mut stopped => return,
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
