//! What a pipeline has done by the clock, beside its jobs.

use async_trait::async_trait;
use futures_util::FutureExt as _;
use ode_job::{Failure, JobId, WorkerId};
use ode_store::sql::{Sql, Tx};
use ode_store::{Error, Store, crash};
use std::fmt::Display;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::MissedTickBehavior;

/// Work that recurs, done by one process at a time.
#[async_trait]
pub trait Chore: Send + Sync {
    /// Its stable name, by which processes keep out of each other's way.
    fn name(&self) -> &'static str;

    /// How often it is due.
    fn every(&self) -> Duration;

    /// Whether there may be something to do. Asked before the chore is taken, by every process, so it must cost little.
    async fn has_work(&self, _store: &Store) -> Result<bool, Error> {
        Ok(true)
    }

    /// Does what is due. It is dropped where the process stops, or was taken for lost and another one is at it.
    async fn run(&self, turn: &Turn<'_>) -> Result<(), ChoreError>;
}

/// A chore that was cut short; what is left of it is done the next time.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct ChoreError(String);

impl From<Error> for ChoreError {
    fn from(error: Error) -> Self {
        ChoreError(error.to_string())
    }
}

impl From<Failure> for ChoreError {
    fn from(failure: Failure) -> Self {
        ChoreError(failure.to_string())
    }
}

impl ChoreError {
    /// A chore that something kept from being done.
    pub fn new(why: impl Display) -> Self {
        ChoreError(why.to_string())
    }
}

/// One process's right to do a chore now.
#[derive(Debug, Clone, Copy)]
pub struct Turn<'a> {
    pub(crate) store: &'a Store,
    pub(crate) name: &'a str,
    pub(crate) who: WorkerId,
    pub(crate) stopping: &'a watch::Receiver<bool>,
}

impl Turn<'_> {
    pub fn sql(&self) -> Sql<'_> {
        self.store.sql()
    }

    pub fn store(&self) -> &Store {
        self.store
    }

    /// Whether the chore is still this process's, asked right before something that must not be done twice.
    pub async fn is_held(&self) -> Result<bool, Error> {
        self.store.keep_chore(self.name, self.who).await
    }

    /// Opens a transaction under this right: nobody can take the chore over before it ends. Nothing if somebody has.
    pub async fn begin(&self) -> Result<Option<Tx>, Error> {
        self.store.begin_at_chore(self.name, self.who).await
    }

    /// Ready once the process stops. What a chore is at may then end by itself within the grace period, or be dropped.
    pub async fn asked_to_end(&self) {
        // A sender that is gone says the same.
        let _ = self.stopping.clone().wait_for(|is_stopping| *is_stopping).await;
    }

    /// The process that has it.
    pub fn holder(&self) -> WorkerId {
        self.who
    }

    /// A named point at which a test may end this process while it is at something about this job.
    pub fn crash_point(&self, name: &str, job: JobId) {
        crash::point_of(name, [job]);
    }
}

/// A look whether a chore is due comes this often, or as often as the chore itself where that is sooner.
const LOOK_EVERY: Duration = Duration::from_secs(30);

/// Does a chore whenever it is due, until it is aborted or `stopping` says so; what is under way then is ended.
pub(crate) async fn keep_doing(
    store: Store,
    who: WorkerId,
    chore: Arc<dyn Chore>,
    mut stopping: watch::Receiver<bool>,
) {
    let mut ticks = tokio::time::interval(chore.every().min(LOOK_EVERY));
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            _ = ticks.tick() => {}
            _ = stopping.wait_for(|is_stopping| *is_stopping) => return,
        }
        if let Err(error) = do_if_due(&store, who, chore.as_ref(), &stopping).await {
            tracing::warn!(chore = chore.name(), %error, "the chore {} was cut short; it goes on later", chore.name());
        }
    }
}

async fn do_if_due(
    store: &Store,
    who: WorkerId,
    chore: &dyn Chore,
    stopping: &watch::Receiver<bool>,
) -> Result<(), Error> {
    let name = chore.name();
    if !chore.has_work(store).await? || !store.take_chore(name, who, chore.every()).await? {
        return Ok(());
    }
    let turn = Turn { store, name, who, stopping };
    // One that panics has failed like any other; it must not be gone for as long as this process lives.
    let run = AssertUnwindSafe(chore.run(&turn)).catch_unwind();
    let work = async { Ok(run.await.unwrap_or_else(|_| Err(ChoreError::new("it panicked")))) };
    match store.at_chore(name, who, work).await? {
        Some(Ok(())) => store.end_chore(name, who).await.map(drop),
        Some(Err(error)) => {
            tracing::warn!(chore = name, %error, "the chore {name} was cut short; it goes on later");
            store.leave_chore(name, who).await.map(drop)
        }
        None => Ok(()),
    }
}
