//! What an attempt sees of the engine.

use crate::lane::Interrupt;
use crate::log::Log;
use bytes::Bytes;
use ode_job::{Artifact, Check, ErrorCode, Event, Failure, File, Lease, LogLevel, Owner, Progress, Source};
use ode_store::sql::Held;
use ode_store::{Blobs, Destination, Places, Store, Stored, crash};
use serde_json::{Map, Value};
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;
use tokio::sync::watch;

/// The progress an attempt reported last.
#[derive(Debug, Default)]
pub(crate) struct LatestProgress {
    progress: Mutex<Option<Progress>>,
}

impl LatestProgress {
    pub(crate) fn take(&self) -> Option<Progress> {
        self.progress.lock().expect("no code panics while holding this lock").take()
    }
}

/// What an attempt may ask of the engine and report to it while it runs. Everything is fenced: once the lease is lost, the
/// document is not given out, and progress, files, notes and checks do not reach the job. A log line names the attempt that
/// wrote it, and is kept whatever became of that.
pub struct Context<'a> {
    pub(crate) lease: &'a Lease,
    pub(crate) owner: Owner,
    pub(crate) store: &'a Store,
    pub(crate) blobs: Option<&'a Blobs>,
    pub(crate) places: &'a Places,
    pub(crate) latest: &'a LatestProgress,
    pub(crate) log: Log,
    pub(crate) interrupt: watch::Receiver<Option<Interrupt>>,
    pub(crate) gathered: Mutex<Gathered>,
}

/// What an attempt has to show when it ends.
#[derive(Debug, Default)]
pub(crate) struct Gathered {
    /// Files that were begun: each has a number of its own.
    files_begun: usize,
    pub(crate) files: Vec<Artifact>,
    pub(crate) checks: Vec<Check>,
    pub(crate) notes: Map<String, Value>,
}

impl Context<'_> {
    fn gathered(&self) -> MutexGuard<'_, Gathered> {
        self.gathered.lock().expect("no code panics while holding this lock")
    }

    fn blobs(&self) -> Result<&Blobs, Failure> {
        self.blobs.ok_or_else(|| Failure::rejected(ErrorCode::IoError, "This worker has no file store"))
    }
}

impl Context<'_> {
    /// Why a job has no document: it was removed, or nobody ever gave it one.
    async fn why_no_source(&self) -> Failure {
        match self.store.events(self.lease.job()).await {
            Ok(events) if events.iter().any(|event| event.event == Event::Expired) => {
                ErrorCode::Expired.into()
            }
            Ok(_) => Failure::rejected(ErrorCode::Invalid, NO_DOCUMENT),
            Err(error) => unreached(&error),
        }
    }
}

const NO_DOCUMENT: &str = "This job was made without a document. Upload the file instead, on the page or with POST /api/upload: \
    that makes the job too";

/// A file or the database could not be reached; the next try may find them.
pub fn unreached(error: &ode_store::Error) -> Failure {
    Failure::retryable(ErrorCode::IoError, ErrorCode::IoError.sentence()).with_detail(error.to_string())
}

/// How long an attempt waits to take away what earlier ones left: it will be written over in any case.
const CLEAR_PATIENCE: Duration = Duration::from_secs(2);
/// How long a job waits, and uses up no try, while somebody is slow to take away what attempts left.
const LEFTOVERS_PAUSE: Duration = Duration::from_secs(60);

impl Context<'_> {
    /// The document that was stored with the job.
    pub async fn source(&self) -> Result<Source, Failure> {
        let blobs = self.blobs()?;
        let found = self.store.source(self.lease).await.map_err(|error| unreached(&error))?;
        // A lease that is lost looks the same; whatever is said then reaches nobody.
        let Some(file) = found else { return Err(self.why_no_source().await) };
        let content = blobs.get(&file.path, &file.sha256).await.map_err(|error| unreached(&error))?;
        Ok(Source { name: file.name, content })
    }

    /// Fails if a document cannot be fetched from there, in words for whoever asked: `INVALID` what is no address, `FORBIDDEN`
    /// what is not open.
    pub fn check_input(&self, address: &str) -> Result<(), Failure> {
        self.places.check_input(self.owner, address)
    }

    /// Fails if files cannot be put below that prefix, in the same words.
    pub fn check_output(&self, address: &str) -> Result<(), Failure> {
        self.places.check_output(self.owner, address)
    }

    /// A document that lies at a place of the caller's, if it is one that is open to them.
    pub async fn fetch(&self, address: &str, bytes_max: u64) -> Result<Bytes, Failure> {
        self.places.fetch(self.owner, address, bytes_max).await
    }

    /// A particular for the history: it stands with the event that ends this attempt, however it ends.
    pub fn note(&self, name: &'static str, value: Value) {
        self.gathered().notes.insert(name.to_owned(), value);
    }

    /// Something that was found out about the result. It is kept when the attempt succeeds.
    pub fn check(&self, check: Check) {
        self.gathered().checks.push(check);
    }

    /// How far it is. Coalesced; the last word wins.
    pub fn progress(&self, progress: Progress) {
        *self.latest.progress.lock().expect("no code panics while holding this lock") = Some(progress);
    }

    /// A line for the job's log. Whoever hears that the attempt is over finds them all.
    pub fn log(&self, level: LogLevel, message: &str) {
        self.log.add(level, message);
    }

    /// Stores files of the job. They become visible when the attempt succeeds; a screenshot or a log when it fails, too.
    pub async fn keep(&self, files: Vec<File>) -> Result<Vec<Artifact>, Failure> {
        let first = {
            let mut gathered = self.gathered();
            gathered.files_begun += files.len();
            gathered.files_begun - files.len()
        };
        let contents = files.iter().map(|file| file.content.clone()).collect();
        let stored = self.blobs()?.put(self.lease.job(), self.lease.fence(), first, contents).await;
        let stored = stored.map_err(|error| unreached(&error))?;
        let artifact =
            |(stored, file): (Stored, &File)| stored.artifact(&file.role, &file.name, &file.content_type);
        let artifacts: Vec<Artifact> = stored.into_iter().zip(&files).map(artifact).collect();
        self.gathered().files.extend_from_slice(&artifacts);
        Ok(artifacts)
    }

    /// Puts files at a place of the caller's, the page to open first. There they appear together or not at all.
    pub async fn publish(&self, address: &str, files: &[File]) -> Result<(), Failure> {
        let (job, fence) = (self.lease.job(), self.lease.fence());
        // What an attempt before this one left may be on its way out, under the same names.
        if fence > 1 && !self.store.leftovers_gone().await.map_err(|error| unreached(&error))? {
            let message = "What earlier attempts left at the output prefix is still being taken away";
            return Err(Failure::away(ErrorCode::Busy, message, LEFTOVERS_PAUSE));
        }
        self.places.publish(Destination { owner: self.owner, job, fence, address }, files).await
    }

    /// Takes away what attempts before this one left at a place of the caller's, unless that is a whole result. Where it
    /// cannot be done now, [`Context::publish`] puts it right.
    pub async fn clear(&self, address: &str) {
        let (job, fence, owner) = (self.lease.job(), self.lease.fence(), self.owner);
        if fence <= 1 || !self.places.shows_unfinished(owner, address) {
            return;
        }
        let (store, places, address) = (self.store.clone(), self.places.clone(), address.to_owned());
        // On its own, so that nobody waits for an end that does not come when this attempt is interrupted.
        let cleared = tokio::spawn(async move {
            let from = Destination { owner, job, fence: fence - 1, address: &address };
            let work = async {
                // One that stood still may have been replaced, and what it would take away be written over by now.
                let is_last = store.is_last_attempt(job, fence).await?;
                if is_last { Ok(places.clear(from).await) } else { Ok(Ok(0)) }
            };
            store.at_leftovers(CLEAR_PATIENCE, work).await
        });
        let problem = match cleared.await {
            Ok(Ok(None | Some(Ok(_)))) => return,
            Ok(Ok(Some(Err(failure)))) => failure.to_string(),
            Ok(Err(error)) => error.to_string(),
            Err(error) => error.to_string(),
        };
        tracing::warn!(job.id = %job, "what earlier attempts at job {job} left at its output prefix stays for now: {problem}");
    }

    /// Ready once the attempt is to end early. It has [`crate::Handler::end_within`] for that; without any, it is just dropped.
    pub async fn asked_to_end(&self) {
        interrupted(&mut self.interrupt.clone()).await;
    }

    /// The database under this attempt's lease, for the statements of its pipeline.
    pub fn held(&self) -> Held<'_> {
        Held::new(self.store, self.lease)
    }

    /// A named point at which a test may end this process.
    pub fn crash_point(&self, name: &str) {
        crash::point_of(name, [self.lease.job()]);
    }
}

/// Waits until the attempt is interrupted, and returns why.
pub(crate) async fn interrupted(interrupt: &mut watch::Receiver<Option<Interrupt>>) -> Interrupt {
    loop {
        if let Some(why) = *interrupt.borrow_and_update() {
            return why;
        }
        if interrupt.changed().await.is_err() {
            // Nobody can interrupt any more.
            return std::future::pending().await;
        }
    }
}
