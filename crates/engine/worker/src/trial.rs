//! One attempt at a job on a store in memory, for the tests of handlers: the same context as a worker's, without its loops.

use crate::context::{Context, Gathered, LatestProgress};
use crate::{Chore, Handler, Turn, log};
use ode_job::{Artifact, Check, Claimed, Failure, NewJob, WorkerId};
use ode_store::{Blobs, BlobsConfig, ClaimRequest, Config, Declaration, Error, Places, Store};
use serde_json::{Map, Value};
use std::sync::Mutex;
use std::time::Duration;
use tempfile::TempDir;
use tokio::sync::watch;
use uuid::Uuid;

/// A store in memory and a folder for files.
pub struct Trial {
    /// The store.
    pub store: Store,
    pub blobs: Blobs,
    worker: WorkerId,
    /// Chores are never asked to end.
    stopping: (watch::Sender<bool>, watch::Receiver<bool>),
    _directory: TempDir,
}

/// What an attempt left.
pub struct Tried {
    /// What the handler returned.
    pub result: Result<Value, Failure>,
    /// Particulars for the history.
    pub notes: Map<String, Value>,
    /// Files it kept.
    pub files: Vec<Artifact>,
    pub checks: Vec<Check>,
}

impl Trial {
    /// A new store, with nothing in it, for jobs of this pipeline.
    pub async fn open(pipeline: &'static Declaration) -> Result<Self, Error> {
        ode_store::declare(&[pipeline]).map_err(|error| Error::Config(error.to_string()))?;
        let directory = tempfile::tempdir().map_err(|error| Error::Config(error.to_string()))?;
        let store = Store::open(Config::new("sqlite::memory:")).await?;
        store.migrate_up().await?;
        let blobs = Blobs::open(&BlobsConfig::Local(directory.path().to_owned()))?;
        let worker = WorkerId(Uuid::new_v4());
        store.register(worker, "trial", "0").await?;
        Ok(Trial { store, blobs, worker, stopping: watch::channel(false), _directory: directory })
    }

    /// Accepts a job with this document, and claims it.
    pub async fn claim(&self, job: NewJob, document: Option<(&str, &[u8])>) -> Result<Claimed, Error> {
        let lane = job.pipeline.lane(ready_state(&job)).ok_or_else(|| Error::Config("no lane".into()))?;
        match document {
            None => self.store.enqueue(job).await.map(drop)?,
            Some((name, content)) => {
                let mut incoming = self.blobs.receive();
                incoming.write(content).await?;
                let source = incoming.finish().await?.artifact("source", name, "application/pdf");
                self.store.enqueue_file(job, source).await.map(drop)?;
            }
        }
        let request = ClaimRequest {
            lane,
            worker: self.worker,
            count: 1,
            after: Uuid::nil(),
            lease: Duration::from_secs(300),
            attempt_timeout: Duration::from_secs(300),
        };
        let claimed = self.store.claim(request).await?.pop();
        claimed.ok_or_else(|| Error::Config("the job is not there to be claimed".into()))
    }

    /// Takes a chore, unless somebody else is at it.
    pub async fn take<'a>(&'a self, chore: &'a dyn Chore) -> Result<Option<Turn<'a>>, Error> {
        let name = chore.name();
        let is_taken = self.store.take_chore(name, self.worker, Duration::ZERO).await?;
        Ok(is_taken.then_some(Turn {
            store: &self.store,
            name,
            who: self.worker,
            stopping: &self.stopping.1,
        }))
    }

    /// Has a handler make one attempt.
    pub async fn run(&self, handler: &dyn Handler, job: &Claimed) -> Tried {
        let (logs, _lines) = log::channel();
        let (latest, places) = (LatestProgress::default(), Places::default());
        let (_interrupter, interrupt) = watch::channel(None);
        let context = Context {
            lease: &job.lease,
            owner: job.owner,
            store: &self.store,
            blobs: Some(&self.blobs),
            places: &places,
            latest: &latest,
            log: logs.of(job.lease.job(), job.attempt),
            interrupt,
            gathered: Mutex::default(),
        };
        let result = handler.run(job, &context).await;
        let Gathered { files, checks, notes, .. } =
            context.gathered.into_inner().expect("no code panics while holding this lock");
        Tried { result, notes, files, checks }
    }
}

/// The state in which a new job waits for a worker.
fn ready_state(job: &NewJob) -> ode_job::State {
    let machine = job.pipeline.machine();
    job.pipeline.path_to_ready().map_or(machine.initial, |edge| edge.to)
}
