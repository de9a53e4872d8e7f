//! One attempt: the handler under its deadline, what it tells while it runs, and how it ends.

use crate::Shared;
use crate::lane::{Interrupt, LaneState};
use crate::log::Log;
use crate::report::{self, Over};
use async_trait::async_trait;
use bytes::Bytes;
use ode_job::order::{Effects, Order, OrderStep};
use ode_job::pipeline::{File, Source};
use ode_job::script::Run;
use ode_job::{
    Artifact, Check, Claimed, Context, Ended, ErrorCode, Event, Failure, Lease, Limits, LogLevel, Owner,
    Progress, ScriptRecord, Sealed,
};
use ode_store::{Blobs, Destination, Finish, Places, SealSide, Store, Stored, crash};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};
use tokio::sync::watch;

/// The last thing an attempt said about how far it is.
#[derive(Debug, Default)]
pub(crate) struct Told {
    progress: Mutex<Option<Progress>>,
}

impl Told {
    pub(crate) fn take(&self) -> Option<Progress> {
        self.progress.lock().expect("no code panics while holding this lock").take()
    }
}

struct Telling<'a> {
    lease: &'a Lease,
    owner: Owner,
    store: &'a Store,
    blobs: Option<&'a Blobs>,
    places: &'a Places,
    told: &'a Told,
    log: Log,
    interrupt: watch::Receiver<Option<Interrupt>>,
    gathered: Mutex<Gathered>,
}

/// What an attempt has to show when it ends.
#[derive(Debug, Default)]
struct Gathered {
    /// Files that were begun: each has a number of its own.
    files_begun: usize,
    files: Vec<Artifact>,
    checks: Vec<Check>,
    notes: Map<String, Value>,
}

impl Telling<'_> {
    fn gathered(&self) -> MutexGuard<'_, Gathered> {
        self.gathered.lock().expect("no code panics while holding this lock")
    }

    fn blobs(&self) -> Result<&Blobs, Failure> {
        self.blobs.ok_or_else(|| Failure::rejected(ErrorCode::IoError, "This worker has no file store"))
    }
}

impl Telling<'_> {
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
fn unreached(error: &ode_store::Error) -> Failure {
    Failure::retryable(ErrorCode::IoError, ErrorCode::IoError.sentence()).with_detail(error.to_string())
}

/// How long an attempt waits to take away what earlier ones left: it will be written over in any case.
const CLEAR_PATIENCE: Duration = Duration::from_secs(2);
/// How long a job waits, and uses up no try, while somebody is slow to take away what attempts left.
const LEFTOVERS_PAUSE: Duration = Duration::from_secs(60);

#[async_trait]
impl Context for Telling<'_> {
    async fn source(&self) -> Result<Source, Failure> {
        let blobs = self.blobs()?;
        let found = self.store.source(self.lease).await.map_err(|error| unreached(&error))?;
        // A lease that is lost looks the same; whatever is said then reaches nobody.
        let Some(file) = found else { return Err(self.why_no_source().await) };
        let content = blobs.get(&file.path, &file.sha256).await.map_err(|error| unreached(&error))?;
        Ok(Source { name: file.name, content })
    }

    async fn printable_map(&self) -> Result<Bytes, Failure> {
        let found = self.store.held_map(self.lease).await.map_err(|error| unreached(&error))?;
        let none = "This job names no map. Make it with `ode print export`, or by POST /api/export";
        found.map(Bytes::from).ok_or_else(|| Failure::rejected(ErrorCode::Invalid, none))
    }

    async fn fetch(&self, address: &str, bytes_max: u64) -> Result<Bytes, Failure> {
        self.places.fetch(self.owner, address, bytes_max).await
    }

    fn note(&self, name: &'static str, value: Value) {
        self.gathered().notes.insert(name.to_owned(), value);
    }

    fn check(&self, check: Check) {
        self.gathered().checks.push(check);
    }

    fn progress(&self, progress: Progress) {
        *self.told.progress.lock().expect("no code panics while holding this lock") = Some(progress);
    }

    fn log(&self, level: LogLevel, message: &str) {
        self.log.add(level, message);
    }

    async fn keep(&self, files: Vec<File>) -> Result<Vec<Artifact>, Failure> {
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

    async fn publish(&self, address: &str, files: &[File]) -> Result<(), Failure> {
        let (job, fence) = (self.lease.job(), self.lease.fence());
        // What an attempt before this one left may be on its way out, under the same names.
        if fence > 1 && !self.store.leftovers_gone().await.map_err(|error| unreached(&error))? {
            let message = "What earlier attempts left at the output prefix is still being taken away";
            return Err(Failure::away(ErrorCode::Busy, message, LEFTOVERS_PAUSE));
        }
        self.places.publish(Destination { owner: self.owner, job, fence, address }, files).await
    }

    async fn clear(&self, address: &str) {
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

    async fn asked_to_end(&self) {
        interrupted(&mut self.interrupt.clone()).await;
    }

    fn effects(&self) -> Option<&dyn Effects> {
        Some(self)
    }

    fn script(&self) -> Option<&dyn ScriptRecord> {
        Some(self)
    }
}

/// How long secrets that came of a script wait for somebody to look at them.
const RESULT_SECRET_KEPT: Duration = Duration::from_hours(7 * 24);

#[async_trait]
impl ScriptRecord for Telling<'_> {
    async fn sealed(&self) -> Result<Option<Sealed>, Failure> {
        self.store.held_secret(self.lease).await.map_err(|error| unreached(&error))
    }

    async fn web_key(&self) -> Result<Option<(String, Vec<u8>)>, Failure> {
        let key = self.store.seal_key(SealSide::Web).await.map_err(|error| unreached(&error))?;
        Ok(key.map(|key| (key.id, key.public)))
    }

    async fn keep_sealed(&self, sealed: Sealed) -> Result<(), Failure> {
        let kept = self.store.keep_result_secret(self.lease, &sealed, RESULT_SECRET_KEPT).await;
        kept.map_err(|error| unreached(&error))
    }

    async fn checkpoints(&self) -> Result<BTreeMap<String, Value>, Failure> {
        self.store.checkpoints(self.lease).await.map_err(|error| unreached(&error))
    }

    async fn checkpoint(&self, key: &str, data: Value) -> Result<(), Failure> {
        self.store.checkpoint(self.lease, key, data).await.map_err(|error| unreached(&error))
    }

    async fn record(&self, run: &Run) -> Result<(), Failure> {
        self.store.record_run(self.lease, run).await.map_err(|error| unreached(&error))
    }
}

#[async_trait]
impl Effects for Telling<'_> {
    async fn order(&self) -> Result<Order, Failure> {
        // Not a try like others: what was sent before must be looked up, however often it cannot be read.
        let found = self.store.held_order(self.lease).await.map_err(|error| unrecorded(&error))?;
        // A lease that is lost looks the same; whatever is said then reaches nobody.
        let none = "No order was asked for with this print. Ask for one with `ode print order`";
        found.ok_or_else(|| Failure::rejected(ErrorCode::Invalid, none))
    }

    async fn record(&self, step: OrderStep) -> Result<(), Failure> {
        self.store.record_order(self.lease, &step).await.map_err(|error| unrecorded(&error))
    }

    async fn turn(&self, provider: &str, calls_a_minute: u32) -> Result<Option<Duration>, Failure> {
        self.store.take_turn(provider, calls_a_minute).await.map_err(|error| unrecorded(&error))
    }

    fn point(&self, name: &str) {
        crash::point_of(name, [self.lease.job()]);
    }
}

/// How long an order waits for the database before its record is read again.
const RECORD_PAUSE: Duration = Duration::from_secs(5);

/// The record cannot be read, or a step was not recorded, or perhaps was: the order goes on from what the record says the
/// next time.
fn unrecorded(error: &ode_store::Error) -> Failure {
    Failure::away(ErrorCode::IoError, ErrorCode::IoError.sentence(), RECORD_PAUSE)
        .with_detail(error.to_string())
}

/// Makes one attempt and says how it ended.
pub(crate) async fn run(
    shared: &Shared,
    lane: &LaneState,
    job: Claimed,
    mut interrupt: watch::Receiver<Option<Interrupt>>,
    told: Arc<Told>,
) -> Over {
    let (began, is_brisk) = (Instant::now(), lane.pace.is_brisk());
    report::started(&job, is_brisk);
    let context = Telling {
        lease: &job.lease,
        owner: job.owner,
        store: &shared.store,
        blobs: shared.blobs.as_ref(),
        places: &shared.config.places,
        told: &told,
        log: shared.logs.of(job.lease.job(), job.attempt),
        interrupt: interrupt.clone(),
        gathered: Mutex::default(),
    };
    let id = job.lease.job();
    crash::point_of("before-run", [id]);
    let limit = job.timeout.unwrap_or(lane.limits.attempt_timeout);
    let end_within = lane.handler.end_within();
    let attempt = tokio::time::timeout(limit + end_within, guarded(lane, &job, &context));
    let ended = unless_interrupted(attempt, &mut interrupt, end_within).await;
    crash::point_of("after-run", [id]);
    let took = began.elapsed();
    lane.pace.learn(took);
    let log = context.log.close().await;
    let shown = context.gathered.into_inner().expect("no code panics while holding this lock");
    let (ended, result) = match ended {
        Err(Interrupt::Stop) => (Ended::Stopped, None),
        // Nothing this attempt says will be written; handing back is the quietest thing to try.
        Err(Interrupt::LeaseLost | Interrupt::Shutdown) => (Ended::HandedBack, None),
        Ok(Err(_)) => (Ended::TimedOut(too_late(limit)), None),
        Ok(Ok(Ok(result))) => (Ended::Succeeded, Some(result)),
        Ok(Ok(Err(failure))) if failure.code == ErrorCode::TimedOut => (Ended::TimedOut(failure), None),
        Ok(Ok(Err(failure))) => (Ended::Failed(failure), None),
    };
    let Gathered { files: artifacts, checks, notes, .. } = shown;
    let end = Finish { artifacts, checks, notes, log, result, ..ending(&lane.limits, job, ended) };
    Over { end, took: Some(took), is_brisk }
}

/// How an attempt ended, or why it was ended.
async fn unless_interrupted<T>(
    attempt: impl Future<Output = T>,
    interrupt: &mut watch::Receiver<Option<Interrupt>>,
    end_within: Duration,
) -> Result<T, Interrupt> {
    let mut attempt = pin!(attempt);
    let ended = tokio::select! {
        biased;
        why = interrupted(interrupt) => Err(why),
        ended = attempt.as_mut() => Ok(ended),
    };
    if matches!(ended, Err(Interrupt::Stop | Interrupt::Shutdown)) {
        // Over only when nothing of it runs any more: the next job may need what this one holds. It knows by
        // `asked_to_end`; what it answers to that is of no interest.
        let _ = tokio::time::timeout(end_within, attempt).await;
    }
    ended
}

/// A handler that panics has failed; the worker has not.
async fn guarded(lane: &LaneState, job: &Claimed, context: &Telling<'_>) -> Result<Value, Failure> {
    use futures_util::FutureExt as _;
    let run = std::panic::AssertUnwindSafe(lane.handler.run(job, context));
    run.catch_unwind().await.unwrap_or_else(|panic| {
        let said = panic.downcast_ref::<&str>().map(ToString::to_string);
        let said = said.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default();
        Err(Failure::retryable(ErrorCode::Unknown, ErrorCode::Unknown.sentence()).with_detail(said))
    })
}

/// An attempt that ends in this way, with nothing to show.
pub(crate) fn ending(limits: &Limits, job: Claimed, ended: Ended) -> Finish {
    // Asking the kernel for chance costs more than the rest of a short attempt, and a success needs none.
    let jitter = if ended == Ended::Succeeded { 0.0 } else { jitter() };
    Finish { retry: limits.retry, jitter, ..Finish::new(job, ended) }
}

/// Between 0 and 1. Spreads retries; nothing depends on its quality.
fn jitter() -> f64 {
    let random = uuid::Uuid::new_v4().as_u128() as u32;
    f64::from(random) / f64::from(u32::MAX)
}

fn too_late(limit: Duration) -> Failure {
    let message = format!("It took longer than the {} it may", said(limit));
    Failure::retryable(ErrorCode::TimedOut, message)
}

fn said(limit: Duration) -> String {
    // Rounded up: the limit was reached, and "0 s" would read like a fault of ours.
    match limit.as_millis() {
        millis @ ..1000 => format!("{} ms", millis.max(1)),
        millis @ ..120_000 => format!("{} s", millis.div_ceil(1000)),
        millis => format!("{} min", millis.div_ceil(60_000)),
    }
}

async fn interrupted(interrupt: &mut watch::Receiver<Option<Interrupt>>) -> Interrupt {
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
