//! Accepting jobs under their keys, each with what is stored beside it. A job is made in the transaction that takes its keys, so
//! ten requests at once make one; many requests share one commit.

use crate::Store;
use crate::database::db::{Param, Row, Script, Tx, params};
use crate::database::dialect::{Dialect, postgres};
use crate::error::Error;
use crate::jobs::documents::ids_as_rows;
use crate::jobs::enqueue::{Enqueued, Handed, NewRow, fingerprint};
use crate::jobs::mint::unless_taken;
use crate::jobs::owned::{BY_IDS, OwnedJob};
use jiff::Timestamp;
use ode_job::{Artifact, JobId, NewJob};
use serde_json::{Value, json};
use std::collections::{HashMap, HashSet};
use tokio::sync::oneshot;
use uuid::Uuid;

/// Requests in one commit. Each that finds its key taken costs statements of its own, while others wait.
pub(crate) const BATCH_MAX: usize = 100;

/// A request that waits for the next commit.
pub(crate) struct Request {
    row: NewRow,
    /// By which it is told from another one under the same idempotency key.
    fingerprint: String,
    /// The file it is about.
    source: Option<Artifact>,
    reply: oneshot::Sender<Result<Accepted, Error>>,
}

/// What became of a request.
#[derive(Debug)]
pub struct Accepted {
    /// The job, new or not.
    pub enqueued: Enqueued,
    /// A new job with a file as it was stored, where it is known from storing it: nobody has to read it then.
    pub job: Option<OwnedJob>,
}

impl Accepted {
    pub fn id(&self) -> JobId {
        self.enqueued.id()
    }
}

impl From<Enqueued> for Accepted {
    fn from(enqueued: Enqueued) -> Self {
        Accepted { enqueued, job: None }
    }
}

impl Request {
    fn idempotency(&self) -> Option<Claim<'_>> {
        let (owner, job) = (self.row.job.owner.key(), self.row.id);
        let key = self.row.job.idempotency_key.as_deref()?;
        Some(Claim { owner, key, job, request: Some(&self.fingerprint) })
    }

    fn dedupe(&self) -> Option<Claim<'_>> {
        let (owner, job) = (self.row.job.owner.key(), self.row.id);
        Some(Claim { owner, key: self.row.job.dedupe_key.as_deref()?, job, request: None })
    }

    /// Its keys as rows.
    fn keys(&self) -> impl Iterator<Item = Value> {
        let keys = [("idempotency", self.idempotency()), ("dedupe", self.dedupe())];
        keys.into_iter().filter_map(|(kind, claim)| {
            let Claim { owner, key, job, request } = claim?;
            Some(json!({ "kind": kind, "owner": owner, "key": key, "job_id": job, "request": request }))
        })
    }

    fn content(&self) -> (Uuid, Option<&str>) {
        (self.row.job.owner.key(), self.row.job.dedupe_key.as_deref())
    }

    /// What shows that a job still stands for its content.
    fn stands(&self) -> &'static str {
        if self.source.is_some() { STANDS_WITH_RESULT } else { STANDS }
    }

    fn refuse(self, error: Error) {
        // A caller that went away needs no answer.
        let _ = self.reply.send(Err(error));
    }

    fn file(&self) -> Option<(JobId, &Artifact)> {
        self.source.as_ref().map(|file| (self.row.id, file))
    }
}

/// That a key is to name a job from now on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Claim<'a> {
    pub(crate) owner: Uuid,
    pub(crate) key: &'a str,
    pub(crate) job: JobId,
    pub(crate) request: Option<&'a str>,
}

/// The job of a request if it was there before, or why the request is refused; nothing where its own is to be made.
type Known = Option<Result<JobId, Error>>;

/// In the order of the keys, for the same reason as batches are.
const CLAIM_KEYS: &str = "INSERT INTO job_key (kind, owner, key, job_id, request)
    SELECT $2, r.owner, r.key, r.job_id, r.request
    FROM {rows $1: owner uuid, key text, job_id uuid, request text} WHERE TRUE ORDER BY r.owner, r.key
    ON CONFLICT (kind, owner, key) DO NOTHING RETURNING job_id";
/// The same for keys that are taken to be free: one that is not fails all of it.
const CLAIM_FREE_KEYS: &str = "INSERT INTO job_key (kind, owner, key, job_id, request)
    SELECT r.kind, r.owner, r.key, r.job_id, r.request
    FROM {rows $1: kind text, owner uuid, key text, job_id uuid, request text}";
pub(crate) const BY_KEY: &str =
    "SELECT job_id, request FROM job_key WHERE kind = $1 AND owner = $2 AND key = $3";
const MOVE_KEY: &str = "UPDATE job_key SET job_id = $4, created_at = {now}
    WHERE kind = 'dedupe' AND owner = $1 AND key = $2 AND job_id = $3 RETURNING job_id";
const ANSWER_KEY: &str =
    "UPDATE job_key SET job_id = $3 WHERE kind = 'idempotency' AND owner = $1 AND key = $2";
/// Whether a job still stands for its dedupe key: it does while it is live and after it succeeded.
const STANDS: &str = "SELECT id FROM jobs WHERE id = $1 AND phase NOT IN ('failed', 'cancelled')";
/// The same for a job that was made from a file: what it made must still be there to be fetched.
pub(crate) const STANDS_WITH_RESULT: &str =
    "SELECT id FROM jobs WHERE id = $1 AND phase NOT IN ('failed', 'cancelled')
    AND (phase <> 'done' OR EXISTS (SELECT 1 FROM job_artifact a WHERE a.job_id = $1 AND a.role = 'result'))";
const KEEP_FILES: &str =
    "INSERT INTO job_artifact (id, job_id, role, name, storage, path, content_type, bytes, sha256)
    SELECT r.id, r.job_id, r.role, r.name, r.storage, r.path, r.content_type, r.bytes, r.sha256
    FROM {rows $1: id uuid, job_id uuid, role text, name text, storage text, path text, content_type text,
        bytes int, sha256 text}";

impl Store {
    /// Accepts a job together with the file it is about, in one transaction. The file must be stored already.
    ///
    /// Where [`Enqueued::Existing`] is answered, nothing points to the file, and it is the caller's to remove.
    pub async fn enqueue_file(&self, job: NewJob, source: Artifact) -> Result<Accepted, Error> {
        self.enqueue_keyed(job, Some(source)).await
    }

    /// Accepts a job under its keys, together with the file it is about if there is one.
    pub(crate) async fn enqueue_keyed(
        &self,
        job: NewJob,
        source: Option<Artifact>,
    ) -> Result<Accepted, Error> {
        job.check()?;
        unless_taken(|| self.enqueue_by_key(job.clone(), source.clone())).await
    }

    /// Accepts a job under its keys, with the next commit.
    async fn enqueue_by_key(&self, job: NewJob, source: Option<Artifact>) -> Result<Accepted, Error> {
        let fingerprint = fingerprint(&job);
        let mut row = NewRow::new(self.inner.mint.job_id(), job, Timestamp::now());
        self.reserve_slot(&mut row);
        let (reply, answer) = oneshot::channel();
        let gone = || Error::Unavailable("the store is closed".into());
        let request = Request { row, fingerprint, source, reply };
        self.inner.group.keyed.send(request).await.map_err(|_| gone())?;
        answer.await.map_err(|_| gone())?
    }

    pub(crate) async fn commit_keyed(&self, batch: Vec<Request>) {
        // A statement costs more than its work, and keys are nearly always free: all are claimed at once, and looked up only
        // where that fails.
        let (mut free, mut rest): (Vec<_>, Vec<_>) =
            batch.into_iter().partition(|request| self.may_be_free(request));
        in_order(&mut free);
        let known = match self.write_free(&free).await {
            Ok(Made { ids, jobs }) => {
                let is_made = |request: &Request| ids.contains(&request.row.id);
                let (new, taken): (Vec<_>, Vec<_>) = free.into_iter().partition(is_made);
                let none = new.iter().map(|_| None).collect();
                self.answer(new, none, jobs);
                rest.extend(taken);
                self.find_or_write(&mut rest).await
            }
            Err(error) if error.is_passing() => {
                rest.extend(free);
                Err(error)
            }
            // One of them is at fault, or was there before.
            Err(_) => {
                rest.extend(free);
                self.find_or_write(&mut rest).await
            }
        };
        let batch = rest;
        match known {
            Ok(known) => self.answer(batch, known, HashMap::new()),
            // The database is away, for all of them.
            Err(error @ (Error::Unavailable(_) | Error::DiskFull(_))) => {
                batch.into_iter().for_each(|request| request.refuse(error.again()));
            }
            // One bad request must not fail its neighbours: each gets a commit, and an answer, of its own.
            Err(_) if batch.len() > 1 => {
                for request in batch {
                    Box::pin(self.commit_keyed(vec![request])).await;
                }
            }
            Err(error) => {
                if let Some(request) = batch.into_iter().next() {
                    request.refuse(error);
                }
            }
        }
    }

    /// Whether a request is written at once if its keys are free.
    fn may_be_free(&self, request: &Request) -> bool {
        match self.dialect() {
            Dialect::Sqlite => true,
            // Of two keys one may be taken, and the other must not be left to a job that is not made.
            Dialect::Postgres => request.keys().count() == 1,
        }
    }

    /// Writes those of these requests whose keys are free, in one round trip. On SQLite it is all or none.
    async fn write_free(&self, batch: &[Request]) -> Result<Made, Error> {
        if batch.is_empty() {
            return Ok(Made::default());
        }
        let keys = Param::rows(batch.iter().flat_map(Request::keys));
        let rows: Vec<&NewRow> = batch.iter().map(|request| &request.row).collect();
        let files: Vec<(JobId, &Artifact)> = batch.iter().filter_map(Request::file).collect();
        // Whoever sends a file is told of its job, which is read in the transaction that makes it.
        let is_source = |(_, file): &&(JobId, &Artifact)| file.role == "source";
        let told = ids_as_rows(files.iter().filter(is_source).map(|(job, _)| *job));
        let files = file_rows(&files);
        match self.dialect() {
            Dialect::Sqlite => {
                let scripts = [
                    Script { sql: CLAIM_FREE_KEYS, params: vec![keys] },
                    self.insert_script(&rows),
                    Script { sql: KEEP_FILES, params: vec![files] },
                    Script { sql: BY_IDS, params: vec![told] },
                ];
                let told = self.db().write_all(&scripts).await?;
                Ok(Made { ids: rows.iter().map(|row| row.id).collect(), jobs: new_jobs(&told) })
            }
            Dialect::Postgres => {
                let params = self.insert_params(&rows, Handed::Columns);
                let params = params.with("keys", keys).with("files", files);
                let params = params.order(Dialect::Postgres, postgres::ENQUEUE_KEYED);
                let made = self.db().write(postgres::ENQUEUE_KEYED, &params).await?;
                let ids = made.iter().map(|row| row.job("made")).collect::<Result<_, _>>()?;
                Ok(Made { ids, jobs: new_jobs(&made) })
            }
        }
    }

    /// Writes requests in one transaction where some may be there already; answers the jobs that were.
    async fn find_or_write(&self, batch: &mut [Request]) -> Result<Vec<Known>, Error> {
        if batch.is_empty() {
            return Ok(Vec::new());
        }
        in_order(batch);
        let batch = &*batch;
        let mut tx = self.db().begin().await?;
        let known = find_known(&mut tx, batch).await?;
        let made = unknown(batch, &known);
        let rows: Vec<&NewRow> = made.iter().map(|request| &request.row).collect();
        if !rows.is_empty()
            && let Err(error) = self.insert_in(&mut tx, &rows).await
        {
            drop(tx);
            return Err(self.explain_duplicate(rows.iter().map(|row| &row.job), error).await);
        }
        let files: Vec<(JobId, &Artifact)> = made.into_iter().filter_map(Request::file).collect();
        keep_files(&mut tx, &files).await?;
        tx.commit().await?;
        Ok(known)
    }

    /// After the commit: lets new jobs start, and tells the callers.
    fn answer(&self, batch: Vec<Request>, known: Vec<Known>, mut made: HashMap<JobId, OwnedJob>) {
        if batch.is_empty() {
            return;
        }
        let (mut rows, mut answers) = (Vec::new(), Vec::new());
        for (Request { row, reply, .. }, known) in batch.into_iter().zip(known) {
            let answer = match known {
                // Its own job was there before where a commit went through whose answer did not.
                Some(Ok(id)) if id != row.id => Ok(Enqueued::Existing(id)),
                Some(Err(error)) => Err(error),
                Some(Ok(id)) => Ok(Enqueued::New(id)),
                None => {
                    let id = row.id;
                    rows.push(row);
                    Ok(Enqueued::New(id))
                }
            };
            let accepted = answer.map(|enqueued| Accepted { enqueued, job: made.remove(&enqueued.id()) });
            answers.push((reply, accepted));
        }
        self.tell(rows);
        for (reply, accepted) in answers {
            // A caller that went away has its job all the same.
            let _ = reply.send(accepted);
        }
    }
}

/// The jobs that were made, and how those look that were asked for.
#[derive(Default)]
struct Made {
    ids: HashSet<JobId>,
    jobs: HashMap<JobId, OwnedJob>,
}

/// Jobs as they were stored. None of them waits for another attempt, so nothing of them stands elsewhere.
fn new_jobs(rows: &[Row]) -> HashMap<JobId, OwnedJob> {
    let is_told = |row: &&Row| matches!(row.opt_uuid("id"), Ok(Some(_)));
    let job = |row: &Row| {
        // They are stored: what cannot be told of one here is read where it is asked for.
        OwnedJob::of(row).inspect_err(|error| tracing::warn!(%error, "a new job cannot be told of")).ok()
    };
    rows.iter().filter(is_told).filter_map(job).map(|job| (job.record.id, job)).collect()
}

/// Finds the jobs that were there before; the other requests have the keys they asked for.
async fn find_known(tx: &mut Tx, batch: &[Request]) -> Result<Vec<Known>, Error> {
    let mut known: Vec<Known> = batch.iter().map(|_| None).collect();
    let claims: Vec<Claim> = batch.iter().filter_map(Request::idempotency).collect();
    let claimed = claim_keys(tx, "idempotency", &claims).await?;
    for (request, known) in batch.iter().zip(&mut known) {
        if let Some(claim) = request.idempotency().filter(|claim| !claimed.contains(&claim.job)) {
            *known = Some(match first_of(tx, claim).await {
                Err(Error::KeyReused) => Err(Error::KeyReused),
                first => Ok(first?),
            });
        }
    }
    let claims: Vec<Claim> = unknown(batch, &known).into_iter().filter_map(Request::dedupe).collect();
    let claimed = claim_keys(tx, "dedupe", &claims).await?;
    let own: HashSet<JobId> = batch.iter().map(|request| request.row.id).collect();
    for (request, known) in batch.iter().zip(&mut known) {
        let taken = request.dedupe().filter(|claim| known.is_none() && !claimed.contains(&claim.job));
        let Some(claim) = taken else { continue };
        let Some(twin) = find_twin(tx, claim, &own, request.stands()).await? else { continue };
        *known = Some(Ok(twin));
        // The request has its answer for good, whatever becomes of the twin.
        if let Some(Claim { owner, key, .. }) = request.idempotency() {
            tx.run(ANSWER_KEY, params![owner, key, twin]).await?;
        }
    }
    follow(batch, &mut known);
    Ok(known)
}

/// In one order, so that two processes do not wait for each other in a circle.
fn in_order(batch: &mut [Request]) {
    batch.sort_by(|a, b| a.content().cmp(&b.content()));
}

/// The requests whose own job is to be made.
fn unknown<'a>(batch: &'a [Request], known: &[Known]) -> Vec<&'a Request> {
    batch.iter().zip(known).filter(|(_, known)| known.is_none()).map(|(request, _)| request).collect()
}

/// One request that came twice at once: the second was led to the first, and goes where that one went.
fn follow(batch: &[Request], known: &mut [Known]) {
    let led = |(request, known): (&Request, &Known)| match known {
        Some(Ok(twin)) => Some((request.row.id, *twin)),
        Some(Err(_)) | None => None,
    };
    let led: HashMap<JobId, JobId> = batch.iter().zip(&*known).filter_map(led).collect();
    for twin in known.iter_mut().flatten().flatten() {
        *twin = led.get(twin).copied().unwrap_or(*twin);
    }
}

/// Lets keys name jobs, where they name none yet; answers the jobs that got theirs.
pub(crate) async fn claim_keys(
    tx: &mut Tx,
    kind: &str,
    claims: &[Claim<'_>],
) -> Result<HashSet<JobId>, Error> {
    if claims.is_empty() {
        return Ok(HashSet::new());
    }
    let rows = claims.iter().map(|Claim { owner, key, job, request }| {
        json!({ "owner": owner, "key": key, "job_id": job, "request": request })
    });
    let claimed = tx.run(CLAIM_KEYS, &[Param::rows(rows), kind.into()]).await?;
    claimed.iter().map(|row| row.job("job_id")).collect()
}

/// The job that was made under this idempotency key; none if from now on it is the one of the claim.
pub(crate) async fn claim_key(tx: &mut Tx, claim: Claim<'_>) -> Result<Option<JobId>, Error> {
    if claim_keys(tx, "idempotency", &[claim]).await?.is_empty() {
        return first_of(tx, claim).await.map(Some);
    }
    Ok(None)
}

/// The job of the request that came first under an idempotency key.
async fn first_of(tx: &mut Tx, claim: Claim<'_>) -> Result<JobId, Error> {
    same_request(&by_key(tx, "idempotency", claim).await?, claim.request)
}

/// The job that a key names, if it was made by this request.
pub(crate) fn same_request(first: &Row, request: Option<&str>) -> Result<JobId, Error> {
    let is_same = first.opt_text("request")?.is_none_or(|first| request == Some(first.as_str()));
    if is_same { first.job("job_id") } else { Err(Error::KeyReused) }
}

async fn by_key(tx: &mut Tx, kind: &str, claim: Claim<'_>) -> Result<Row, Error> {
    let rows = tx.run(BY_KEY, params![kind, claim.owner, claim.key]).await?;
    rows.into_iter().next().ok_or_else(|| Error::Unavailable("the key changed hands".into()))
}

/// The job that stands for a content whose key is taken; none if from now on it is the one of the claim. Those of the
/// same transaction stand for theirs, though they are not written yet.
pub(crate) async fn find_twin(
    tx: &mut Tx,
    claim: Claim<'_>,
    own: &HashSet<JobId>,
    stands: &'static str,
) -> Result<Option<JobId>, Error> {
    let twin = by_key(tx, "dedupe", claim).await?.job("job_id")?;
    if own.contains(&twin) || !tx.run(stands, params![twin]).await?.is_empty() {
        return Ok(Some(twin));
    }
    if !tx.run(MOVE_KEY, params![claim.owner, claim.key, twin, claim.job]).await?.is_empty() {
        return Ok(None);
    }
    // Another request was quicker to replace the job that failed.
    by_key(tx, "dedupe", claim).await?.job("job_id").map(Some)
}

/// Writes which files belong to which jobs.
pub(crate) async fn keep_files(tx: &mut Tx, files: &[(JobId, &Artifact)]) -> Result<(), Error> {
    if files.is_empty() {
        return Ok(());
    }
    tx.run(KEEP_FILES, &[file_rows(files)]).await.map(drop)
}

fn file_rows(files: &[(JobId, &Artifact)]) -> Param {
    Param::rows(files.iter().map(|(job, file)| {
        json!({
            "id": Uuid::now_v7(), "job_id": job, "role": file.role, "name": file.name, "storage": file.storage,
            "path": file.path, "content_type": file.content_type, "bytes": file.bytes, "sha256": file.sha256,
        })
    }))
}
