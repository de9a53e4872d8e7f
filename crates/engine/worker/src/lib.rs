//! The worker: claims jobs, runs their handlers, keeps the leases alive, ends the attempts, stops cleanly.
//!
//! One process has one worker. Each lane has a dispatcher that claims for all its slots at once; one finisher
//! ends attempts in batches; one pulse says that the process is alive, renews leases and looks after others'
//! lost jobs. No transaction is open while a handler runs.

mod attempt;
mod chore;
mod chores;
mod context;
mod finisher;
mod handler;
mod lane;
mod log;
mod pulse;
mod report;
#[cfg(feature = "trial")]
pub mod trial;

pub use chore::{Chore, ChoreError, Turn};
pub use chores::Chores;
pub use context::{Context, unreached};
pub use handler::{Handler, Limits, Readiness, Registry};
use lane::{LaneState, Lanes};
use ode_job::WorkerId;
use ode_store::{Blobs, Error, Places, Publisher, Store};
pub use report::METRICS;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::sync::{Notify, mpsc, watch};
use tokio::task::JoinHandle;
use uuid::Uuid;

/// How a worker behaves.
#[derive(Debug, Clone)]
pub struct Config {
    /// How long a lease is.
    pub lease: Duration,
    /// How often leases are renewed.
    pub renew_every: Duration,
    /// How often it says that it is alive, and looks for work it was not told of.
    pub beat_every: Duration,
    /// How long it waits for running attempts when it stops.
    pub grace: Duration,
    /// A job waits for something that is away no longer than this; then it fails, and a person may retry it.
    pub away_max: Duration,
    /// How it looks after files and history; not at all where absent.
    pub chores: Option<Chores>,
    /// Where documents may be fetched from and results be put, beside the file store.
    pub places: Places,
    /// Pipelines that put results there.
    pub publishers: Vec<Publisher>,
    /// The name of this machine.
    pub host: String,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            lease: Duration::from_secs(300),
            renew_every: Duration::from_secs(30),
            beat_every: Duration::from_secs(2),
            grace: Duration::from_secs(30),
            away_max: Duration::from_hours(1),
            chores: None,
            places: Places::default(),
            publishers: Vec::new(),
            host: rustix::system::uname().nodename().to_string_lossy().into_owned(),
        }
    }
}

/// A running worker.
#[derive(Debug)]
pub struct Worker {
    shared: Arc<Shared>,
    dispatchers: Vec<JoinHandle<()>>,
    pulse: Vec<JoinHandle<()>>,
    chores: Vec<JoinHandle<()>>,
    /// Tells chores to end with what they are at.
    stopping: watch::Sender<bool>,
    /// They end by themselves, when nobody can send to them any more.
    writers: [JoinHandle<()>; 2],
}

/// What the tasks of one worker share.
pub(crate) struct Shared {
    pub(crate) id: WorkerId,
    pub(crate) store: Store,
    pub(crate) blobs: Option<Blobs>,
    pub(crate) config: Config,
    pub(crate) lanes: Lanes,
    pub(crate) ended: mpsc::Sender<report::Over>,
    pub(crate) logs: log::Logs,
    pub(crate) is_stopping: AtomicBool,
    /// When the answer to a claim was lost: jobs may be leased to us that we do not know of.
    strays_since: Mutex<Option<Instant>>,
    pub(crate) idle: Notify,
    /// Jobs of lost workers were taken back: what the last of them left at places of callers is to go.
    pub(crate) rescued: Notify,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared").field("id", &self.id).finish_non_exhaustive()
    }
}

/// Jobs that are leased to us are given this long to become known to us before they count as strays.
const STRAY_AFTER: Duration = Duration::from_secs(5);

impl Shared {
    /// Notes that jobs may have been leased to us without our learning of it.
    pub(crate) fn may_have_strays(&self) {
        *self.strays_since.lock().expect("no code panics while holding this lock") = Some(Instant::now());
    }

    /// Whether it is time to look for them. True once for each time that there may be some.
    pub(crate) fn strays_are_due(&self) -> bool {
        let mut since = self.strays_since.lock().expect("no code panics while holding this lock");
        let is_due = since.is_some_and(|since| since.elapsed() > STRAY_AFTER);
        if is_due {
            *since = None;
        }
        is_due
    }
}

/// Ended attempts that wait to be written. Handlers wait when it is full.
const ENDED_MAX: usize = 4_000;

impl Worker {
    /// Registers a worker and starts its tasks.
    pub async fn start(
        store: Store,
        blobs: Option<Blobs>,
        registry: Registry,
        config: Config,
    ) -> Result<Self, Error> {
        Self::start_with(store, blobs, registry, Vec::new(), config).await
    }

    /// The same, with what pipelines have done by the clock.
    pub async fn start_with(
        store: Store,
        blobs: Option<Blobs>,
        registry: Registry,
        chores: Vec<Arc<dyn Chore>>,
        config: Config,
    ) -> Result<Self, Error> {
        let id = WorkerId(Uuid::new_v4());
        store.register(id, &config.host, env!("CARGO_PKG_VERSION")).await?;
        let (ended, ended_receiver) = mpsc::channel(ENDED_MAX);
        let (logs, lines) = log::channel();
        let lanes = registry
            .lanes()
            .filter_map(|lane| Some((lane, LaneState::new(lane, registry.get(lane)?.clone()))));
        let shared = Arc::new(Shared {
            id,
            lanes: Lanes::new(lanes.map(|(_, state)| Arc::new(state)).collect()),
            store: store.clone(),
            blobs,
            config,
            ended,
            logs,
            is_stopping: AtomicBool::new(false),
            strays_since: Mutex::new(None),
            idle: Notify::new(),
            rescued: Notify::new(),
        });
        store.offer_slots(Arc::new(lane::Reservations::new(&shared)));
        let writers = [
            tokio::spawn(finisher::run(store.clone(), Arc::downgrade(&shared), ended_receiver)),
            tokio::spawn(log::write(store, lines)),
        ];
        let mut pulse =
            vec![tokio::spawn(pulse::beat(shared.clone())), tokio::spawn(pulse::listen(shared.clone()))];
        if let Some((blobs, chores)) = shared.blobs.clone().zip(shared.config.chores) {
            pulse.push(tokio::spawn(chores::run(shared.clone(), blobs, chores)));
        }
        let (stopping, is_stopping) = watch::channel(false);
        let chores = chores.into_iter().map(|chore| {
            tokio::spawn(chore::keep_doing(shared.store.clone(), id, chore, is_stopping.clone()))
        });
        let chores = chores.collect();
        let dispatchers = shared.lanes.all().iter().flat_map(|lane| {
            let (main, express) = ((shared.clone(), lane.clone()), (shared.clone(), lane.clone()));
            [tokio::spawn(lane::dispatch(main.0, main.1)), tokio::spawn(lane::express(express.0, express.1))]
        });
        let dispatchers = dispatchers.collect();
        tracing::info!(worker.id = %id, "worker {id} started");
        Ok(Worker { shared, dispatchers, pulse, chores, stopping, writers })
    }

    pub fn id(&self) -> WorkerId {
        self.shared.id
    }

    /// Stops: takes no more work, hands back what has not begun, waits for what has, and hands that back
    /// unburned if it takes longer than the grace period. When this returns, nothing is held.
    pub async fn stop(self) -> Result<(), Error> {
        let Worker { shared, dispatchers, pulse, chores, stopping, writers } = self;
        shared.is_stopping.store(true, Ordering::SeqCst);
        shared.lanes.nudge();
        // A claim that is under way is waited for: what it brings must be handed back, not lost.
        join(dispatchers).await;
        shared.lanes.hand_back_waiting(&shared).await;
        stopping.send_replace(true);
        let aborts: Vec<_> = chores.iter().map(JoinHandle::abort_handle).collect();
        // Both at once: whoever stops this process waits for one grace period.
        let (chores, drained) = tokio::join!(
            tokio::time::timeout(shared.config.grace, join(chores)),
            tokio::time::timeout(shared.config.grace, shared.lanes.drained(&shared.idle)),
        );
        if chores.is_err() {
            tracing::warn!(
                "a chore was still under way at the end of the grace period; another worker goes on with it"
            );
            aborts.iter().for_each(tokio::task::AbortHandle::abort);
        }
        if drained.is_err() {
            shared.lanes.interrupt_all(lane::Interrupt::Shutdown);
            shared.lanes.drained(&shared.idle).await;
        }
        pulse.iter().for_each(JoinHandle::abort);
        for task in pulse {
            // Aborted on purpose; there is nothing to learn from how it ended.
            let _ = task.await;
        }
        let (id, store) = (shared.id, shared.store.clone());
        drop(shared);
        join(writers).await;
        store.leave(id).await?;
        tracing::info!(worker.id = %id, "worker {id} stopped");
        Ok(())
    }
}

async fn join(tasks: impl IntoIterator<Item = JoinHandle<()>>) {
    for task in tasks {
        if let Err(error) = task.await {
            tracing::error!(%error, "a task of the worker failed");
        }
    }
}
