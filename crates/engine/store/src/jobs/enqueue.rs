//! Accepting jobs. Many small requests share one commit; a request is idempotent by its keys; a job may be
//! born already claimed when this process has a worker free for it.

use crate::database::db::{Param, Script, Tx, params};
use crate::database::dialect::names::Named;
use crate::database::dialect::{Dialect, postgres, sqlite};
use crate::error::Error;
use crate::jobs::keyed;
use crate::schema::columns::{self, Birth, Read};
use crate::{Store, micros};
use jiff::Timestamp;
use ode_job::{Claimed, Event, JobId, Lane, Lease, NewJob, Owner, State, WorkerId};
use serde_json::{Value, json};
use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};
use uuid::Uuid;

/// What became of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Enqueued {
    New(JobId),
    /// A job that was there already, by idempotency or dedupe key.
    Existing(JobId),
}

impl Enqueued {
    /// The job, new or not.
    pub fn id(self) -> JobId {
        match self {
            Enqueued::New(id) | Enqueued::Existing(id) => id,
        }
    }
}

/// A worker in this process that can take a job at its birth, saving the claim.
pub trait Slots: Send + Sync {
    /// Reserves room for one job of this lane, if the lane is idle here and a slot is free.
    fn reserve(&self, lane: Lane) -> Option<Box<dyn BornClaimed>>;
}

/// Reserved room for one job. Dropped unused, the room is free again.
pub trait BornClaimed: Send + Sync {
    /// Under whose name the lease is written.
    fn worker(&self) -> WorkerId;
    /// How long the lease is, and how long the attempt may take.
    fn terms(&self) -> (Duration, Duration);
    /// Starts the job: it is committed, and leased.
    fn start(self: Box<Self>, job: Claimed);
}

/// Requests that wait for the next commit. Bounded: callers wait when it is full, nothing is dropped.
const WAITING_MAX: usize = 10_000;
/// Jobs in one commit. Larger ones hold their first caller up for longer than they help the last.
const BATCH_MAX: usize = 1_000;
/// From here on COPY's extra round trips are worth it.
const COPY_MIN: usize = 200;
/// A commit that is tried again in vain for this long is given up, and its callers are told.
const RETRY_FOR: Duration = Duration::from_secs(10);
const RETRY_PAUSE: Duration = Duration::from_millis(200);

/// The waiting rooms of the group commits: of requests without keys, which are written at once, and of those with.
pub(crate) struct Group {
    sender: mpsc::Sender<Request>,
    pub(crate) keyed: mpsc::Sender<keyed::Request>,
    slots: Mutex<Option<Arc<dyn Slots>>>,
}

impl fmt::Debug for Group {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Group").finish_non_exhaustive()
    }
}

pub(crate) struct Request {
    row: NewRow,
    reply: oneshot::Sender<Result<(), Error>>,
}

/// What comes out of the waiting rooms.
pub(crate) struct Waiting {
    plain: mpsc::Receiver<Request>,
    keyed: mpsc::Receiver<keyed::Request>,
}

impl Group {
    pub(crate) fn new() -> (Self, Waiting) {
        let (sender, plain) = mpsc::channel(WAITING_MAX);
        let (keyed, waiting) = mpsc::channel(WAITING_MAX);
        (Group { sender, keyed, slots: Mutex::new(None) }, Waiting { plain, keyed: waiting })
    }
}

/// What happened, before which there may have been no state at all, and the state after it.
type BirthStep = (Event, Option<State>, State);

/// A checked request with its id, the state it is born into and the steps that took it there.
pub(crate) struct NewRow {
    pub(crate) id: JobId,
    pub(crate) job: NewJob,
    pub(crate) state: State,
    pub(crate) lane: Option<Lane>,
    pub(crate) steps: Vec<BirthStep>,
    pub(crate) run_at: Option<Timestamp>,
    born: Option<Box<dyn BornClaimed>>,
}

impl NewRow {
    /// Decides where a job is born: ready if its time has come, else held until it does.
    pub(crate) fn new(id: JobId, job: NewJob, now: Timestamp) -> Self {
        let pipeline = job.pipeline;
        let run_at = job.run_at.filter(|at| *at > now);
        let mut state = pipeline.machine().initial;
        let mut steps = vec![(Event::Created, None, state)];
        // Where the machine has no state for "not yet", the job waits in its ready state without a lane.
        let is_walked = run_at.is_none() || !pipeline.machine().is_early_initial;
        for edge in pipeline.path_to_ready().into_iter().filter(|_| is_walked) {
            steps.push((edge.event, Some(edge.from), edge.to));
            state = edge.to;
        }
        let lane = if run_at.is_none() { pipeline.lane(state) } else { None };
        NewRow { id, job, state, lane, steps, run_at, born: None }
    }

    /// One that is done when it is made.
    pub(crate) fn done(id: JobId, job: NewJob, state: State) -> Self {
        NewRow {
            id,
            job,
            state,
            lane: None,
            steps: vec![(Event::Created, None, state)],
            run_at: None,
            born: None,
        }
    }

    /// Has it wait for more than its moment, and be looked at when that has come.
    pub(crate) fn hold(&mut self, now: Timestamp) {
        let state = self.job.pipeline.machine().initial;
        self.state = state;
        self.steps = vec![(Event::Created, None, state)];
        self.lane = None;
        self.run_at = Some(self.job.run_at.filter(|at| *at > now).unwrap_or(now));
    }

    fn start_at_birth(&mut self, born: Box<dyn BornClaimed>) {
        let Some(lane) = self.lane else { return };
        self.steps.push((Event::Started, Some(self.state), lane.running_state()));
        self.state = lane.running_state();
        self.born = Some(born);
    }

    pub(crate) fn is_born_claimed(&self) -> bool {
        self.born.is_some()
    }

    pub(crate) fn born_limit(&self) -> Option<i64> {
        self.born.as_ref().map(|born| micros(self.job.timeout.unwrap_or(born.terms().1)))
    }

    pub(crate) fn timeout_ms(&self) -> Option<i64> {
        self.job.timeout.map(|timeout| micros(timeout) / 1000)
    }
}

/// The three columns an owner may stand in.
pub fn owner_columns(owner: Owner) -> [Option<Uuid>; 3] {
    match owner {
        Owner::Operator => [None, None, None],
        Owner::Session(id) => [Some(id), None, None],
        Owner::User(id) => [None, Some(id), None],
        Owner::Organisation(id) => [None, None, Some(id)],
    }
}

/// How new jobs are handed to a statement.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Handed {
    /// The only one, as single values.
    Alone,
    /// As one array for each column.
    Columns,
    Json,
}

/// The lanes in which some of these jobs wait.
pub(crate) fn waiting_lanes<'a>(rows: impl Iterator<Item = &'a NewRow>) -> Vec<Lane> {
    let waiting = rows.filter(|row| row.born.is_none()).filter_map(|row| row.lane);
    let mut lanes: Vec<Lane> = waiting.collect();
    lanes.sort_unstable();
    lanes.dedup();
    lanes
}

/// The steps of a batch, grouped so that jobs which took the same ones share their entries.
pub(crate) struct Steps {
    /// Few: a search is quicker than hashing.
    groups: Vec<(Vec<BirthStep>, Vec<i64>)>,
    entries: Vec<Value>,
}

impl Steps {
    pub(crate) fn new() -> Self {
        Steps { groups: Vec::new(), entries: Vec::new() }
    }

    /// The group of these steps.
    pub(crate) fn group(&mut self, steps: &[BirthStep], mut seq: impl FnMut() -> i64) -> usize {
        if let Some(known) = self.groups.iter().position(|(known, _)| known == steps) {
            return known;
        }
        let group = self.groups.len();
        let seqs: Vec<i64> = steps.iter().map(|_| seq()).collect();
        for ((event, from, to), seq) in steps.iter().zip(&seqs) {
            self.entries
                .push(json!({ "g": group, "seq": seq, "event": event, "from_state": from, "to_state": to }));
        }
        self.groups.push((steps.to_vec(), seqs));
        group
    }

    /// A job of this group with the numbers of its entries.
    pub(crate) fn birth<'a>(&'a self, row: &'a NewRow, group: usize) -> Birth<'a> {
        Birth { row, group, seqs: &self.groups[group].1 }
    }

    /// The entries of all groups, as rows.
    pub(crate) fn to_rows(&self) -> Param {
        Param::rows(self.entries.iter().cloned())
    }
}

/// The names of a batch that other jobs have.
const TAKEN: &str = "SELECT k.key, k.job_id FROM {rows $1: owner uuid, key text}
    JOIN job_key k ON k.kind = 'external' AND k.owner = r.owner AND k.key = r.key ORDER BY k.key LIMIT 1";
const BY_NAME: &str = "SELECT job_id FROM job_key WHERE kind = 'external' AND owner = $1 AND key = $2";
const BY_NAMES: &str = "SELECT k.key, k.job_id FROM {rows $1: key text}
    JOIN job_key k ON k.kind = 'external' AND k.owner = $2 AND k.key = r.key";
pub(crate) const KNOWN: &str = "SELECT jobs.id FROM {rows $1: id uuid} JOIN jobs ON jobs.id = r.id";
impl Store {
    /// Lets jobs that are enqueued in this process start in it at once.
    pub fn offer_slots(&self, slots: Arc<dyn Slots>) {
        *self.inner.group.slots.lock().expect("no code panics while holding this lock") = Some(slots);
    }

    /// Accepts one job. When this returns, the job is durable.
    pub async fn enqueue(&self, job: NewJob) -> Result<Enqueued, Error> {
        if job.idempotency_key.is_some() || job.dedupe_key.is_some() {
            return Ok(self.enqueue_keyed(job, None).await?.enqueued);
        }
        job.check()?;
        let mut row = NewRow::new(self.inner.mint.job_id(), job, Timestamp::now());
        let id = row.id;
        self.reserve_slot(&mut row);
        let (reply, answer) = oneshot::channel();
        let gone = || Error::Unavailable("the store is closed".into());
        self.inner.group.sender.send(Request { row, reply }).await.map_err(|_| gone())?;
        answer.await.map_err(|_| gone())??;
        Ok(Enqueued::New(id))
    }

    /// Accepts many jobs at once, all or none. Keys are not looked at: use [`Store::enqueue`] for those.
    pub async fn enqueue_many(&self, jobs: Vec<NewJob>) -> Result<Vec<JobId>, Error> {
        for job in &jobs {
            job.check()?;
        }
        let now = Timestamp::now();
        let rows: Vec<_> =
            jobs.into_iter().map(|job| NewRow::new(self.inner.mint.job_id(), job, now)).collect();
        let ids = rows.iter().map(|row| row.id).collect();
        if !rows.is_empty()
            && let Err(error) = self.insert_surely(&rows).await
        {
            return Err(self.explain_duplicate(rows.iter().map(|row| &row.job), error).await);
        }
        self.tell(rows);
        Ok(ids)
    }

    pub(crate) fn reserve_slot(&self, row: &mut NewRow) {
        let slots = self.inner.group.slots.lock().expect("no code panics while holding this lock").clone();
        if let Some(born) = row.lane.zip(slots).and_then(|(lane, slots)| slots.reserve(lane)) {
            row.start_at_birth(born);
        }
    }

    /// Writes jobs in one transaction.
    async fn insert(&self, rows: &[NewRow]) -> Result<(), Error> {
        // COPY writes no leases: a crowd in which some are born claimed goes by the statement.
        let is_plain = rows.iter().all(|row| row.born.is_none());
        if self.dialect() == Dialect::Postgres && rows.len() >= COPY_MIN && is_plain {
            return crate::jobs::bulk::copy(self, rows).await;
        }
        self.db().write_all(&[self.insert_script(&rows.iter().collect::<Vec<_>>())]).await.map(drop)
    }

    /// Writes jobs in a transaction of the caller's.
    pub(crate) async fn insert_in(&self, tx: &mut Tx, rows: &[&NewRow]) -> Result<(), Error> {
        let Script { sql, params } = self.insert_script(rows);
        tx.run(sql, &params).await.map(drop)
    }

    pub(crate) fn insert_script(&self, rows: &[&NewRow]) -> Script {
        let dialect = self.dialect();
        let (sql, handed) = match (dialect, rows.len()) {
            (Dialect::Postgres, 1) => (postgres::ENQUEUE_ONE, Handed::Alone),
            (Dialect::Postgres, _) => (postgres::ENQUEUE, Handed::Columns),
            (Dialect::Sqlite, _) => (sqlite::ENQUEUE, Handed::Json),
        };
        Script { sql, params: self.insert_params(rows, handed).order(dialect, sql) }
    }

    /// What the statements that store new jobs take.
    pub(crate) fn insert_params(&self, rows: &[&NewRow], handed: Handed) -> Named {
        let mut steps = Steps::new();
        let groups: Vec<usize> =
            rows.iter().map(|row| steps.group(&row.steps, || self.inner.mint.seq())).collect();
        let births = rows.iter().zip(groups).map(|(row, group)| steps.birth(row, group));
        let births: Vec<Birth<'_>> = births.collect();
        let waiting = waiting_lanes(rows.iter().copied());
        let born = rows.iter().find_map(|row| row.born.as_ref());
        let mut params = params! {
            steps: steps.to_rows(),
            actor: self.inner.actor.as_str(),
            lanes: Param::rows(waiting.iter().map(|lane| json!({ "lane": lane }))),
            wakes: waiting.first().map(|lane| lane.as_str()),
            worker: born.map(|born| born.worker().0),
            lease: born.map_or(0, |born| micros(born.terms().0)),
        };
        let value = |birth: &Birth<'_>, read: Read| read(birth).into_param(self.dialect());
        match handed {
            Handed::Alone => {
                let values = |birth| columns::given().map(move |(name, _, read)| (name, value(birth, read)));
                params.extend(births.iter().flat_map(values));
            }
            Handed::Columns => {
                let column = |read| Param::column(births.iter().map(|birth| value(birth, read)));
                params.extend(columns::given().map(|(name, _, read)| (name, column(read))));
            }
            Handed::Json => {
                params.extend([("jobs", Param::rows(births.into_iter().map(Birth::to_json)))]);
            }
        }
        params
    }

    /// After the commit: starts what was born claimed, and wakes workers for the rest.
    pub(crate) fn tell(&self, rows: Vec<NewRow>) {
        self.nudge();
        self.inner.hints.enqueued(rows.iter().filter(|row| row.lane.is_some()).map(|row| row.id));
        for lane in waiting_lanes(rows.iter()) {
            self.inner.wake.ready(lane);
        }
        for row in rows {
            if let Some(born) = row.born {
                let claimed = born_claimed(row.id, row.job, row.lane, &*born);
                born.start(claimed);
            }
        }
    }

    /// Writes a batch, riding out passing faults. The ids were chosen before the first try, so a commit whose
    /// answer was lost is recognised instead of repeated.
    async fn insert_surely(&self, rows: &[NewRow]) -> Result<(), Error> {
        let deadline = tokio::time::Instant::now() + RETRY_FOR;
        let mut error = match self.insert(rows).await {
            Ok(()) => return Ok(()),
            Err(error) => error,
        };
        while error.is_passing() && tokio::time::Instant::now() < deadline {
            tokio::time::sleep(RETRY_PAUSE).await;
            let outcome = match self.are_known(rows).await {
                Ok(true) => return Ok(()),
                Ok(false) => self.insert(rows).await,
                Err(error) => Err(error),
            };
            match outcome {
                Ok(()) => return Ok(()),
                Err(next) => error = next,
            }
        }
        Err(error)
    }

    /// Whether these jobs are stored. One transaction writes them all: any of them shows that it committed.
    async fn are_known(&self, rows: &[NewRow]) -> Result<bool, Error> {
        let ids: Vec<Value> = rows.iter().map(|row| json!({ "id": row.id })).collect();
        let known = self.db().read(KNOWN, &[Param::rows(ids)]).await?;
        Ok(!known.is_empty())
    }

    async fn commit_group(&self, batch: Vec<Request>) {
        let (rows, replies): (Vec<NewRow>, Vec<_>) =
            batch.into_iter().map(|request| (request.row, request.reply)).unzip();
        match self.insert_surely(&rows).await {
            Ok(()) => {
                self.tell(rows);
                for reply in replies {
                    // A caller that went away has its job all the same.
                    let _ = reply.send(Ok(()));
                }
            }
            // The database is away, for all of them.
            Err(error) if error.is_passing() => {
                for reply in replies {
                    let _ = reply.send(Err(error.again()));
                }
            }
            // One bad request must not fail its neighbours: each gets a commit, and an answer, of its own.
            Err(_) if rows.len() > 1 => {
                for (row, reply) in rows.into_iter().zip(replies) {
                    let _ = reply.send(self.commit_alone(row).await);
                }
            }
            Err(error) => {
                let error = self.explain_duplicate(rows.iter().map(|row| &row.job), error).await;
                if let Some(reply) = replies.into_iter().next() {
                    let _ = reply.send(Err(error));
                }
            }
        }
    }

    async fn commit_alone(&self, row: NewRow) -> Result<(), Error> {
        let rows = vec![row];
        match self.insert_surely(&rows).await {
            Ok(()) => {
                self.tell(rows);
                Ok(())
            }
            Err(error) => Err(self.explain_duplicate(rows.iter().map(|row| &row.job), error).await),
        }
    }

    /// Turns the database's refusal of a taken `external_id` into one that names the job that has it.
    pub(crate) async fn explain_duplicate<'a>(
        &self,
        jobs: impl Iterator<Item = &'a NewJob>,
        error: Error,
    ) -> Error {
        if !matches!(error, Error::Database(_)) {
            return error;
        }
        let mut names = HashSet::new();
        for job in jobs {
            if let Some(external_id) = &job.external_id
                && !names.insert((job.owner.key(), external_id))
            {
                return Error::Repeated(external_id.clone());
            }
        }
        let names = names.into_iter().map(|(owner, key)| json!({ "owner": owner, "key": key }));
        let names = Param::rows(names);
        match self.db().read(TAKEN, &[names]).await.as_deref() {
            Ok([row, ..]) => match (row.text("key"), row.job("job_id")) {
                (Ok(external_id), Ok(existing)) => Error::Duplicate { external_id, existing },
                _ => error,
            },
            _ => error,
        }
    }

    /// The job to which this owner gave that external id.
    pub async fn find_external(&self, owner: Owner, external_id: &str) -> Result<Option<JobId>, Error> {
        let rows = self.db().read(BY_NAME, params![owner.key(), external_id]).await?;
        rows.first().map(|row| row.job("job_id")).transpose()
    }

    /// The jobs to which this owner gave these external ids, as far as there are some.
    pub async fn find_externals(
        &self,
        owner: Owner,
        names: impl Iterator<Item = &str>,
    ) -> Result<HashMap<String, JobId>, Error> {
        let names: Vec<Value> = names.map(|key| json!({ "key": key })).collect();
        let names = Param::Rows(Value::Array(names).to_string());
        let rows = self.db().read(BY_NAMES, &[names, owner.key().into()]).await?;
        rows.iter().map(|row| Ok((row.text("key")?, row.job("job_id")?))).collect()
    }
}

/// What makes two requests the same: everything the caller chose, except the key itself.
pub fn fingerprint(job: &NewJob) -> String {
    let mut parts = json!([
        job.pipeline,
        job.kind,
        job.external_id,
        job.dedupe_key,
        job.input,
        job.config,
        job.metadata,
        job.priority,
        job.retries_max,
        job.run_at,
        job.timeout.map(micros),
        job.advance,
    ]);
    // The fields of an object have no order.
    parts.sort_all_objects();
    crate::files::blobs::sha256_hex(parts.to_string().as_bytes())
}

fn born_claimed(id: JobId, job: NewJob, lane: Option<Lane>, born: &dyn BornClaimed) -> Claimed {
    Claimed {
        lease: Lease::granted(id, 1, born.worker()),
        lane: lane.expect("only a job with a lane is born claimed"),
        kind: job.kind,
        owner: job.owner,
        input: job.input,
        config: job.config,
        attempt: 1,
        retries: 0,
        retries_max: job.retries_max,
        crashes: 0,
        timeout: job.timeout,
    }
}

/// Commits what waits, again and again: while one commit is under way, the next batch gathers.
pub(crate) fn spawn_group_commits(store: &Store, waiting: Waiting) {
    // Jobs born claimed are written under one worker and one set of terms; a process has one worker.
    commit_batches(
        store,
        waiting.plain,
        BATCH_MAX,
        |store, batch| async move { store.commit_group(batch).await },
    );
    let keyed = |store: Store, batch| async move { store.commit_keyed(batch).await };
    commit_batches(store, waiting.keyed, keyed::BATCH_MAX, keyed);
}

fn commit_batches<R, F>(
    store: &Store,
    mut receiver: mpsc::Receiver<R>,
    batch_max: usize,
    commit: impl Fn(Store, Vec<R>) -> F + Send + 'static,
) where
    R: Send + 'static,
    F: Future<Output = ()> + Send,
{
    // Weak, so that a store that everyone has dropped does not live on in its own task.
    let weak = Arc::downgrade(&store.inner);
    tokio::spawn(async move {
        let mut batch = Vec::with_capacity(batch_max);
        while receiver.recv_many(&mut batch, batch_max).await > 0 {
            let Some(inner) = weak.upgrade() else { return };
            commit(Store { inner }, std::mem::take(&mut batch)).await;
        }
    });
}
