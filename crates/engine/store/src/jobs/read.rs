//! Reading: one job, many jobs, their histories, logs and files. Every reading for somebody names them.

use crate::Store;
use crate::database::db::{Param, Row, params, without_nul};
use crate::error::Error;
use crate::jobs::enqueue::owner_columns;
use ode_job::{
    Artifact, EventRecord, JobId, JobRecord, JobRef, Lease, LogLevel, LogLine, NewLogLine, Owner, Phase,
    Pipeline, Progress, State, WorkerId,
};
use serde_json::json;

/// Which jobs to list.
#[derive(Debug, Clone, Default)]
pub struct ListFilter {
    /// Only this owner's; an operator sees all.
    pub owner: Option<Owner>,
    /// Only of this pipeline.
    pub pipeline: Option<Pipeline>,
    /// Only in this state.
    pub state: Option<State>,
    /// Only in this phase.
    pub phase: Option<Phase>,
    /// Only older ones than this: the cursor.
    pub before: Option<JobId>,
    /// How many at most.
    pub limit: usize,
}

/// A list may ask for this many at most.
pub const LIST_MAX: usize = 1000;

/// A part of a list, newest first.
#[derive(Debug, Clone, serde::Serialize)]
pub struct Page {
    pub jobs: Vec<JobRecord>,
    /// Where the next part begins, if there is one.
    pub next_cursor: Option<JobId>,
}

impl Page {
    /// What was found by a statement that asked for one more than `limit`, to see whether there is a next part.
    pub fn of(rows: &[Row], limit: usize) -> Result<Self, Error> {
        let jobs = rows.iter().take(limit).map(record).collect::<Result<Vec<_>, _>>()?;
        let next_cursor = jobs.last().map(|job| job.id).filter(|_| rows.len() > limit);
        Ok(Page { jobs, next_cursor })
    }
}

const BY_ID: &str = "SELECT {job_columns} FROM jobs WHERE id = $1";
const BY_REFERENCE: &str = "SELECT id FROM jobs WHERE id >= $1 AND id < $2 AND {tail id} = $3 LIMIT 2";
const LIST: &str = "SELECT {job_columns} FROM jobs
    WHERE ($1 IS NULL OR session_id = $1) AND ($2 IS NULL OR user_id = $2) AND ($3 IS NULL OR organisation_id = $3)
        AND ($4 IS NULL OR pipeline = $4) AND ($5 IS NULL OR state = $5) AND ($6 IS NULL OR phase = $6)
        AND ($7 IS NULL OR id < $7) ORDER BY id DESC LIMIT $8";
const EVENTS: &str = "SELECT seq, job_id, event_type, from_state, to_state, actor, meta, at
    FROM job_events WHERE job_id = $1 ORDER BY place";
const LOGS: &str = "SELECT id, job_id, attempt, level, message, at FROM job_log
    WHERE job_id = $1 AND id > $2 ORDER BY id LIMIT $3";
const LAST_LOGS: &str = "SELECT id, job_id, attempt, level, message, at FROM job_log
    WHERE job_id = $1 ORDER BY id DESC LIMIT $2";
const ARTIFACTS: &str = "SELECT role, name, storage, path, content_type, bytes, sha256 FROM job_artifact
    WHERE job_id = $1 ORDER BY role, name";
/// The document of a job, for the one who holds it.
const SOURCE: &str = "SELECT a.role, a.name, a.storage, a.path, a.content_type, a.bytes, a.sha256
    FROM job_artifact a JOIN job_live l ON l.id = a.job_id
    WHERE a.job_id = $1 AND a.role = 'source' AND l.fence = $2 AND l.worker = $3 ORDER BY a.name LIMIT 1";
const COUNTS: &str =
    "SELECT pipeline, state, phase, count(*) AS jobs FROM jobs GROUP BY pipeline, state, phase
    ORDER BY pipeline, state, phase";
const LIVE_COUNT: &str = "SELECT count(*) AS jobs FROM job_live";
pub(crate) const ADD_LOGS: &str = "INSERT INTO job_log (job_id, attempt, level, message)
    SELECT r.job_id, r.attempt, r.level, r.message
    FROM {rows $1: place int, job_id uuid, attempt int, level text, message text}
    WHERE EXISTS (SELECT 1 FROM jobs WHERE jobs.id = r.job_id) ORDER BY r.place";

impl Store {
    /// Finds a job by id or reference, for the operator.
    pub async fn job(&self, name: JobRef) -> Result<JobRecord, Error> {
        let id = self.resolve(name).await?;
        let rows = self.db().read(BY_ID, params![id]).await?;
        rows.first().map(record).transpose()?.ok_or_else(|| Error::NotFound(id.to_string()))
    }

    /// Finds a job that `owner` may see. Somebody else's is not found, like one that does not exist.
    pub async fn job_of(&self, owner: Owner, name: JobRef) -> Result<JobRecord, Error> {
        let job = self.job(name).await?;
        let is_theirs = match owner {
            Owner::Operator => true,
            Owner::Session(id) => job.session_id == Some(id),
            Owner::User(id) => job.user_id == Some(id),
            Owner::Organisation(id) => job.organisation_id == Some(id),
        };
        // In the very words used for a name that nothing has: the id behind a reference is theirs alone.
        if is_theirs { Ok(job) } else { Err(Error::NotFound(shown(name))) }
    }

    /// The id behind a name. A reference that no job has is not found; an id is taken at its word.
    pub async fn resolve(&self, name: JobRef) -> Result<JobId, Error> {
        let (from, until, tail) = match name {
            JobRef::Id(id) => return Ok(id),
            JobRef::Reference { from, until, tail } => (from, until, tail),
        };
        let tail = format!("{tail:08x}");
        let rows = self.db().read(BY_REFERENCE, params![from, until, tail.as_str()]).await?;
        match rows.as_slice() {
            [] => Err(Error::NotFound(shown(name))),
            [row] => row.job("id"),
            _ => Err(Error::Ambiguous(format!("JOB_…_{tail}"))),
        }
    }

    /// Lists jobs, newest first.
    pub async fn jobs(&self, filter: &ListFilter) -> Result<Page, Error> {
        let [session, user, organisation] = filter.owner.map_or([None; 3], owner_columns);
        let limit = filter.limit.clamp(1, LIST_MAX);
        let params = params![
            session,
            user,
            organisation,
            filter.pipeline.map(Pipeline::as_str),
            filter.state.map(State::as_str),
            filter.phase.map(Phase::as_str),
            filter.before.map(|id| id.0),
            i64::try_from(limit + 1).unwrap_or(i64::MAX),
        ];
        Page::of(&self.db().read(LIST, params).await?, limit)
    }

    /// A job's whole history, in order.
    pub async fn events(&self, job: JobId) -> Result<Vec<EventRecord>, Error> {
        self.db().read(EVENTS, params![job]).await?.iter().map(event).collect()
    }

    /// A job's log after line `after`.
    pub async fn logs(&self, job: JobId, after: i64, limit: usize) -> Result<Vec<LogLine>, Error> {
        let limit = i64::try_from(limit.clamp(1, LIST_MAX)).unwrap_or(i64::MAX);
        self.db().read(LOGS, params![job, after, limit]).await?.iter().map(log_line).collect()
    }

    /// The last lines of a job's log, oldest first.
    pub async fn last_logs(&self, job: JobId, count: usize) -> Result<Vec<LogLine>, Error> {
        let count = i64::try_from(count.clamp(1, LIST_MAX)).unwrap_or(i64::MAX);
        self.db().read(LAST_LOGS, params![job, count]).await?.iter().rev().map(log_line).collect()
    }

    /// Adds a line to a job's log.
    pub async fn log(&self, job: JobId, attempt: u32, level: LogLevel, message: &str) -> Result<(), Error> {
        self.log_all(&[NewLogLine { job, attempt, level, message: message.to_owned() }]).await
    }

    /// Adds lines to the logs of jobs, in this order. Those of a job that is gone are left out.
    pub async fn log_all(&self, lines: &[NewLogLine]) -> Result<(), Error> {
        self.db().write(ADD_LOGS, &[log_rows(lines)]).await.map(drop)
    }

    pub async fn artifacts(&self, job: JobId) -> Result<Vec<Artifact>, Error> {
        self.db().read(ARTIFACTS, params![job]).await?.iter().map(artifact).collect()
    }

    /// The document that was stored with a job, for the worker that holds it. None if there is none, or if the lease
    /// is lost.
    pub async fn source(&self, lease: &Lease) -> Result<Option<Artifact>, Error> {
        let params = params![lease.job(), lease.fence(), lease.worker()];
        self.db().read(SOURCE, params).await?.first().map(artifact).transpose()
    }

    /// How many jobs have not ended.
    pub async fn live_count(&self) -> Result<i64, Error> {
        let rows = self.db().read(LIVE_COUNT, params![]).await?;
        rows.first().map_or(Ok(0), |row| row.int("jobs"))
    }

    /// How many jobs there are, by pipeline, state and phase.
    pub async fn counts(&self) -> Result<Vec<(Pipeline, State, Phase, i64)>, Error> {
        let rows = self.db().read(COUNTS, params![]).await?;
        rows.iter()
            .map(|row| Ok((row.name("pipeline")?, row.name("state")?, row.name("phase")?, row.int("jobs")?)))
            .collect()
    }
}

/// A name as a message repeats it.
fn shown(name: JobRef) -> String {
    match name {
        JobRef::Id(id) => id.to_string(),
        JobRef::Reference { tail, .. } => format!("with a reference ending in {tail:08x}"),
    }
}

pub fn record(row: &Row) -> Result<JobRecord, Error> {
    let count = |column| row.int(column).map(|count| u32::try_from(count).unwrap_or_default());
    let id = row.job("id")?;
    Ok(JobRecord {
        id,
        reference: id.reference(),
        pipeline: row.name("pipeline")?,
        kind: row.text("type")?,
        state: row.name("state")?,
        phase: row.name("phase")?,
        session_id: row.opt_uuid("session_id")?,
        user_id: row.opt_uuid("user_id")?,
        organisation_id: row.opt_uuid("organisation_id")?,
        created_by: row.opt_uuid("created_by")?,
        external_id: row.opt_text("external_id")?,
        priority: i32::try_from(row.int("priority")?).unwrap_or_default(),
        input: row.json("input")?,
        config: row.json("config")?,
        metadata: row.json("metadata")?,
        result: row.opt_json("result")?,
        error_code: row.opt_text("error_code")?,
        error_message: row.opt_text("error_message")?,
        error_detail: row.opt_text("error_detail")?,
        attempt_count: count("attempt_count")?,
        retry_count: count("retry_count")?,
        max_retries: count("max_retries")?,
        progress: Progress {
            percent: u8::try_from(row.int("progress_percent")?).unwrap_or(100),
            message: row.opt_text("progress_message")?,
            step: count("current_step")?,
            steps: count("total_steps")?,
        },
        worker_id: row.opt_uuid("worker_id")?.map(WorkerId),
        lease_expires_at: row.opt_moment("lease_expires_at")?,
        run_at: row.opt_moment("run_at")?,
        timeout_at: row.opt_moment("timeout_at")?,
        engine_version: row.opt_text("engine_version")?,
        created_at: row.moment("created_at")?,
        queued_at: row.opt_moment("queued_at")?,
        started_at: row.opt_moment("started_at")?,
        finished_at: row.opt_moment("finished_at")?,
        updated_at: row.moment("updated_at")?,
    })
}

fn event(row: &Row) -> Result<EventRecord, Error> {
    Ok(EventRecord {
        seq: row.int("seq")?,
        job_id: row.job("job_id")?,
        event: row.name("event_type")?,
        from_state: row.opt_text("from_state")?.and_then(|state| state.parse().ok()),
        to_state: row.name("to_state")?,
        actor: row.text("actor")?,
        meta: row.opt_json("meta")?,
        at: row.moment("at")?,
    })
}

/// Lines for [`ADD_LOGS`], in this order.
pub(crate) fn log_rows<'a>(lines: impl IntoIterator<Item = &'a NewLogLine>) -> Param {
    Param::rows(lines.into_iter().enumerate().map(|(place, line)| {
        json!({ "place": place, "job_id": line.job, "attempt": line.attempt, "level": line.level.as_str(),
            "message": without_nul(&line.message) })
    }))
}

fn log_line(row: &Row) -> Result<LogLine, Error> {
    let level = row.text("level")?;
    Ok(LogLine {
        id: row.int("id")?,
        job_id: row.job("job_id")?,
        attempt: u32::try_from(row.int("attempt")?).unwrap_or_default(),
        level: LogLevel::parse(&level).ok_or_else(|| Error::Corrupt(format!("log level {level}")))?,
        message: row.text("message")?,
        at: row.moment("at")?,
    })
}

/// A file of a job, from a row with its columns.
pub fn artifact(row: &Row) -> Result<Artifact, Error> {
    Ok(Artifact {
        role: row.text("role")?,
        name: row.text("name")?,
        storage: row.text("storage")?,
        path: row.text("path")?,
        content_type: row.text("content_type")?,
        bytes: row.int("bytes")?,
        sha256: row.text("sha256")?,
    })
}
