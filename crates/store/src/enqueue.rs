//! Accepting jobs. Many small requests share one commit; a request is idempotent by its keys; a job may be
//! born already claimed when this process has a worker free for it.

use crate::db::{Param, Row, Tx, params};
use crate::dialect::{Dialect, postgres, sqlite};
use crate::error::Error;
use crate::maps::FrozenMap;
use crate::mint::unless_taken;
use crate::{Store, micros};
use jiff::Timestamp;
use ode_job::{Artifact, Claimed, Event, JobId, Lane, Lease, NewJob, Owner, State, WorkerId};
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
    /// A new job.
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

/// The waiting room of the group commit.
pub(crate) struct Group {
    sender: mpsc::Sender<Request>,
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

impl Group {
    pub(crate) fn new() -> (Self, mpsc::Receiver<Request>) {
        let (sender, receiver) = mpsc::channel(WAITING_MAX);
        (Group { sender, slots: Mutex::new(None) }, receiver)
    }
}

/// What is stored in the transaction that makes a job.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Beside<'a> {
    Nothing,
    /// The file it is about.
    File(&'a Artifact),
    /// The map it prints.
    Map(&'a FrozenMap),
}

impl Beside<'_> {
    /// What makes two requests the same. A map gets a new id with each request, so it counts by its content.
    fn fingerprint(&self, job: &NewJob) -> String {
        match self {
            Beside::Nothing | Beside::File(_) => fingerprint(job),
            Beside::Map(map) => fingerprint(&NewJob { input: map.fingerprint(), ..job.clone() }),
        }
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
        // Only a script has a state of its own for "not yet"; the others wait in their ready state without a lane.
        let is_walked = run_at.is_none() || pipeline != ode_job::Pipeline::Script;
        for edge in pipeline.path_to_ready().iter().filter(|_| is_walked) {
            steps.push((edge.event, Some(edge.from), edge.to));
            state = edge.to;
        }
        let lane = if run_at.is_none() { pipeline.lane(state) } else { None };
        NewRow { id, job, state, lane, steps, run_at, born: None }
    }

    fn start_at_birth(&mut self, born: Box<dyn BornClaimed>) {
        let Some(lane) = self.lane else { return };
        self.steps.push((Event::Started, Some(self.state), lane.running_state()));
        self.state = lane.running_state();
        self.born = Some(born);
    }

    fn born_limit(&self) -> Option<i64> {
        self.born.as_ref().map(|born| micros(self.job.timeout.unwrap_or(born.terms().1)))
    }

    pub(crate) fn timeout_ms(&self) -> Option<i64> {
        self.job.timeout.map(|timeout| micros(timeout) / 1000)
    }

    fn to_json(&self, group: usize, history: String) -> Value {
        let job = &self.job;
        let [session, user, organisation] = owner_columns(job.owner);
        json!({
            "g": group, "id": self.id, "pipeline": job.pipeline, "kind": job.kind,
            "session_id": session, "user_id": user, "organisation_id": organisation, "created_by": job.created_by,
            "external_id": job.external_id, "priority": job.priority,
            "timeout_ms": self.timeout_ms(),
            "input": job.input, "config": unless_empty(&job.config), "metadata": unless_empty(&job.metadata),
            "owner": job.owner.key(), "retries_max": job.retries_max, "lane": self.lane, "state": self.state,
            "history": history, "run_at": self.run_at.map(Timestamp::as_microsecond),
            "started": i32::from(self.born.is_some()),
            "advance": i32::from(job.advance), "limit_micros": self.born_limit(),
        })
    }
}

/// The three columns an owner may stand in.
pub(crate) fn owner_columns(owner: Owner) -> [Option<Uuid>; 3] {
    match owner {
        Owner::Operator => [None, None, None],
        Owner::Session(id) => [Some(id), None, None],
        Owner::User(id) => [None, Some(id), None],
        Owner::Organisation(id) => [None, None, Some(id)],
    }
}

/// A new job's values, in the order of [`postgres::ENQUEUE`].
fn values(row: &NewRow, seqs: Vec<i64>) -> Vec<Param> {
    let job = &row.job;
    let [session, user, organisation] = owner_columns(job.owner);
    vec![
        job.pipeline.as_str().into(),
        job.kind.as_str().into(),
        job.owner.key().into(),
        session.into(),
        user.into(),
        organisation.into(),
        job.created_by.into(),
        job.external_id.as_deref().into(),
        i64::from(job.priority).into(),
        row.timeout_ms().into(),
        job.input.clone().into(),
        unless_empty(&job.config).cloned().into(),
        unless_empty(&job.metadata).cloned().into(),
        job.retries_max.map(i64::from).into(),
        row.lane.map(Lane::as_str).into(),
        row.state.as_str().into(),
        Param::History(seqs),
        row.run_at.map(Timestamp::as_microsecond).into(),
        i64::from(row.born.is_some()).into(),
        i64::from(job.advance).into(),
        row.born_limit().into(),
    ]
}

/// The lanes in which some of these jobs wait.
pub(crate) fn waiting_lanes(rows: &[NewRow]) -> Vec<Lane> {
    let waiting = rows.iter().filter(|row| row.born.is_none()).filter_map(|row| row.lane);
    let mut lanes: Vec<Lane> = waiting.collect();
    lanes.sort_unstable();
    lanes.dedup();
    lanes
}

/// An empty document is the default, and the default is not stored.
pub(crate) fn unless_empty(json: &Value) -> Option<&Value> {
    let is_empty = json.is_null() || json.as_object().is_some_and(serde_json::Map::is_empty);
    if is_empty { None } else { Some(json) }
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

    /// The group of these steps, and the numbers of their entries.
    pub(crate) fn group(&mut self, steps: &[BirthStep], mut seq: impl FnMut() -> i64) -> (usize, &[i64]) {
        if let Some(known) = self.groups.iter().position(|(known, _)| known == steps) {
            return (known, &self.groups[known].1);
        }
        let group = self.groups.len();
        let seqs: Vec<i64> = steps.iter().map(|_| seq()).collect();
        for ((event, from, to), seq) in steps.iter().zip(&seqs) {
            self.entries
                .push(json!({ "g": group, "seq": seq, "event": event, "from_state": from, "to_state": to }));
        }
        self.groups.push((steps.to_vec(), seqs));
        (group, &self.groups[group].1)
    }

    pub(crate) fn into_json(self) -> String {
        Value::Array(self.entries).to_string()
    }
}

const BY_KEY: &str = "SELECT job_id, request FROM job_key WHERE kind = $1 AND owner = $2 AND key = $3";
/// The names of a batch that other jobs have.
const TAKEN: &str = "SELECT k.key, k.job_id FROM {rows $1: owner uuid, key text}
    JOIN job_key k ON k.kind = 'external' AND k.owner = r.owner AND k.key = r.key ORDER BY k.key LIMIT 1";
const BY_NAMES: &str = "SELECT k.key, k.job_id FROM {rows $1: key text}
    JOIN job_key k ON k.kind = 'external' AND k.owner = $2 AND k.key = r.key";
const CLAIM_KEY: &str = "INSERT INTO job_key (kind, owner, key, job_id, request) VALUES ($1, $2, $3, $4, $5)
    ON CONFLICT (kind, owner, key) DO NOTHING RETURNING job_id";
const MOVE_KEY: &str = "UPDATE job_key SET job_id = $4, created_at = {now}
    WHERE kind = 'dedupe' AND owner = $1 AND key = $2 AND job_id = $3 RETURNING job_id";
const ANSWER_KEY: &str =
    "UPDATE job_key SET job_id = $3 WHERE kind = 'idempotency' AND owner = $1 AND key = $2";
const KNOWN: &str = "SELECT jobs.id FROM {rows $1: id uuid} JOIN jobs ON jobs.id = r.id";
/// Whether a job still stands for its dedupe key: it does while it is live and after it succeeded.
const STANDS: &str = "SELECT id FROM jobs WHERE id = $1 AND phase NOT IN ('failed', 'cancelled')";
/// The same for a job that was made from a file: what it made must still be there to be fetched.
pub(crate) const STANDS_WITH_RESULT: &str =
    "SELECT id FROM jobs WHERE id = $1 AND phase NOT IN ('failed', 'cancelled')
    AND (phase <> 'done' OR EXISTS (SELECT 1 FROM job_artifact a WHERE a.job_id = $1 AND a.role = 'result'))";
const KEEP_FILE: &str =
    "INSERT INTO job_artifact (id, job_id, role, name, storage, path, content_type, bytes, sha256)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)";

impl Store {
    /// Lets jobs that are enqueued in this process start in it at once.
    pub fn offer_slots(&self, slots: Arc<dyn Slots>) {
        *self.inner.group.slots.lock().expect("no code panics while holding this lock") = Some(slots);
    }

    /// Accepts one job. When this returns, the job is durable.
    pub async fn enqueue(&self, job: NewJob) -> Result<Enqueued, Error> {
        if job.idempotency_key.is_some() || job.dedupe_key.is_some() {
            return self.enqueue_with(job, Beside::Nothing).await;
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

    /// Accepts a job together with the file it is about, in one transaction. The file must be stored already.
    ///
    /// Where [`Enqueued::Existing`] is answered, nothing points to the file, and it is the caller's to remove.
    pub async fn enqueue_file(&self, job: NewJob, source: Artifact) -> Result<Enqueued, Error> {
        self.enqueue_with(job, Beside::File(&source)).await
    }

    /// Accepts a job with what is stored in the same transaction.
    pub(crate) async fn enqueue_with(&self, job: NewJob, beside: Beside<'_>) -> Result<Enqueued, Error> {
        job.check()?;
        unless_taken(|| self.enqueue_by_key(job.clone(), beside)).await
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
            return Err(self.explain_duplicate(&rows, error).await);
        }
        self.tell(rows);
        Ok(ids)
    }

    fn reserve_slot(&self, row: &mut NewRow) {
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
            return crate::bulk::copy(self, rows).await;
        }
        let (script, params) = self.insert_statement(rows);
        self.db().write(script, &params).await.map(drop)
    }

    fn insert_statement(&self, rows: &[NewRow]) -> (&'static [&'static str], Vec<Param>) {
        let mut steps = Steps::new();
        let told = rows.iter().map(|row| {
            let (group, seqs) = steps.group(&row.steps, || self.inner.mint.seq());
            (group, seqs.to_vec())
        });
        let told: Vec<(usize, Vec<i64>)> = told.collect();
        let lanes = waiting_lanes(rows).into_iter().map(|lane| json!({ "lane": lane }));
        let lanes = Param::rows(lanes);
        let (script, jobs, lanes, columns) = match (self.dialect(), rows) {
            (Dialect::Postgres, [row]) => {
                let seqs = told.into_iter().flat_map(|(_, seqs)| seqs).collect();
                let lane = waiting_lanes(rows).first().map(|lane| lane.as_str());
                (postgres::ENQUEUE_ONE, row.id.into(), lane.into(), values(row, seqs))
            }
            (Dialect::Postgres, rows) => {
                let ids = Param::Ids(rows.iter().map(|row| row.id.0).collect());
                let (groups, seqs): (Vec<usize>, Vec<_>) = told.into_iter().unzip();
                let groups = groups.into_iter().map(|group| i64::try_from(group).ok()).collect();
                let mut columns = Param::columns(rows.iter().zip(seqs).map(|(row, seqs)| values(row, seqs)));
                columns.push(Param::Ints(groups));
                (postgres::ENQUEUE, ids, lanes, columns)
            }
            (Dialect::Sqlite, rows) => {
                let json = rows.iter().zip(told).map(|(row, (group, seqs))| {
                    row.to_json(group, sqlite::history(&seqs).trim_start_matches(',').to_owned())
                });
                (sqlite::ENQUEUE, Param::rows(json), lanes, Vec::new())
            }
        };
        let born = rows.iter().find_map(|row| row.born.as_ref());
        let mut params = vec![
            jobs,
            Param::Rows(steps.into_json()),
            self.inner.actor.as_str().into(),
            lanes,
            born.map(|born| born.worker().0).into(),
            born.map_or(0, |born| micros(born.terms().0)).into(),
        ];
        params.extend(columns);
        (script, params)
    }

    /// After the commit: starts what was born claimed, and wakes workers for the rest.
    fn tell(&self, rows: Vec<NewRow>) {
        self.nudge();
        self.inner.hints.enqueued(rows.iter().filter(|row| row.lane.is_some()).map(|row| row.id));
        for lane in waiting_lanes(&rows) {
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
                let error = self.explain_duplicate(&rows, error).await;
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
            Err(error) => Err(self.explain_duplicate(&rows, error).await),
        }
    }

    /// Turns the database's refusal of a taken `external_id` into one that names the job that has it.
    async fn explain_duplicate(&self, rows: &[NewRow], error: Error) -> Error {
        if !matches!(error, Error::Database(_)) {
            return error;
        }
        let mut names = HashSet::new();
        for row in rows {
            if let Some(external_id) = &row.job.external_id
                && !names.insert((row.job.owner.key(), external_id))
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
        let rows = self.db().read(BY_KEY, params!["external", owner.key(), external_id]).await?;
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

    /// Accepts a job under its keys: one transaction finds or makes it, so ten requests at once make one job.
    async fn enqueue_by_key(&self, job: NewJob, beside: Beside<'_>) -> Result<Enqueued, Error> {
        let owner = job.owner.key();
        let request = beside.fingerprint(&job);
        let mut row = NewRow::new(self.inner.mint.job_id(), job, Timestamp::now());
        self.reserve_slot(&mut row);
        let stands = if matches!(beside, Beside::File(_)) { STANDS_WITH_RESULT } else { STANDS };
        let mut tx = self.db().begin().await?;
        if let Some(key) = &row.job.idempotency_key {
            let taken = tx
                .run(CLAIM_KEY, params!["idempotency", owner, key.as_str(), row.id, request.as_str()])
                .await?;
            if taken.is_empty() {
                let known = by_key(&mut tx, "idempotency", owner, key).await?;
                if known.opt_text("request")?.is_some_and(|first| first != request) {
                    return Err(Error::KeyReused);
                }
                return Ok(Enqueued::Existing(known.job("job_id")?));
            }
        }
        if let Some(key) = &row.job.dedupe_key
            && let Some(twin) = find_twin(&mut tx, owner, key, row.id, stands).await?
        {
            // The request has its answer for good, whatever becomes of the twin.
            if let Some(key) = &row.job.idempotency_key {
                tx.run(ANSWER_KEY, params![owner, key.as_str(), twin]).await?;
                tx.commit().await?;
            }
            return Ok(Enqueued::Existing(twin));
        }
        if let Beside::Map(map) = beside {
            map.keep(&mut tx, row.job.owner).await?;
        }
        let rows = vec![row];
        let (script, params) = self.insert_statement(&rows);
        for sql in script {
            if let Err(error) = tx.run(sql, &params).await {
                drop(tx);
                return Err(self.explain_duplicate(&rows, error).await);
            }
        }
        let id = rows[0].id;
        if let Beside::File(source) = beside {
            keep_file(&mut tx, id, source).await?;
        }
        tx.commit().await?;
        self.tell(rows);
        Ok(Enqueued::New(id))
    }
}

async fn by_key(tx: &mut Tx, kind: &str, owner: Uuid, key: &str) -> Result<Row, Error> {
    let rows = tx.run(BY_KEY, params![kind, owner, key]).await?;
    rows.into_iter().next().ok_or_else(|| Error::Unavailable("the key changed hands".into()))
}

pub(crate) async fn keep_file(tx: &mut Tx, job: JobId, file: &Artifact) -> Result<(), Error> {
    let params = params![
        Uuid::now_v7(),
        job,
        file.role.as_str(),
        file.name.as_str(),
        file.storage.as_str(),
        file.path.as_str(),
        file.content_type.as_str(),
        file.bytes,
        file.sha256.as_str(),
    ];
    tx.run(KEEP_FILE, params).await.map(drop)
}

/// The job that stands for this content already; none if from now on it is `id`.
pub(crate) async fn find_twin(
    tx: &mut Tx,
    owner: Uuid,
    key: &str,
    id: JobId,
    stands: &'static str,
) -> Result<Option<JobId>, Error> {
    let taken = tx.run(CLAIM_KEY, params!["dedupe", owner, key, id, None::<&str>]).await?;
    if !taken.is_empty() {
        return Ok(None);
    }
    let twin = by_key(tx, "dedupe", owner, key).await?.job("job_id")?;
    if !tx.run(stands, params![twin]).await?.is_empty() {
        return Ok(Some(twin));
    }
    if !tx.run(MOVE_KEY, params![owner, key, twin, id]).await?.is_empty() {
        return Ok(None);
    }
    // Another request was quicker to replace the job that failed.
    by_key(tx, "dedupe", owner, key).await?.job("job_id").map(Some)
}

/// What makes two requests the same: everything the caller chose, except the key itself.
fn fingerprint(job: &NewJob) -> String {
    let text = json!([
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
    crate::blobs::sha256_hex(text.to_string().as_bytes())
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
pub(crate) fn spawn_group_commit(store: &Store, mut receiver: mpsc::Receiver<Request>) {
    // Weak, so that a store that everyone has dropped does not live on in its own task.
    let weak = Arc::downgrade(&store.inner);
    tokio::spawn(async move {
        let mut batch = Vec::with_capacity(BATCH_MAX);
        while receiver.recv_many(&mut batch, BATCH_MAX).await > 0 {
            let Some(inner) = weak.upgrade() else { return };
            // Jobs born claimed are written under one worker and one set of terms; a process has one worker.
            Store { inner }.commit_group(std::mem::take(&mut batch)).await;
        }
    });
}
