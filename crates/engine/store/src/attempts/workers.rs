//! Workers among themselves: who is alive, who holds what, and whose jobs must go to others.

use crate::attempts::finish::{Change, Standing};
use crate::database::db::{Param, Row, params, without_nul};
use crate::error::Error;
use crate::{Store, micros};
use jiff::Timestamp;
use ode_job::record::About;
use ode_job::{Attempt, Ended, JobId, Lane, Lease, Progress, RetryPolicy, WorkerId, WorkerRecord, settle};
use serde_json::{Value, json};
use std::collections::HashSet;
use std::time::Duration;

/// What a look at the database showed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Look {
    /// Lanes in which somebody waits.
    pub ready: Vec<Lane>,
    /// When the next held job comes due.
    pub due_at: Option<Timestamp>,
    /// Whether a worker is lost. Leases that ran out are found by [`Store::rescue`] itself.
    pub has_lost: bool,
    /// The database's clock.
    pub now: Timestamp,
}

/// What became of the leases a worker holds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Renewed {
    /// Still held, and longer now.
    pub held: Vec<JobId>,
    /// Held, and a person wants it stopped.
    pub stop: Vec<JobId>,
}

const REGISTER: &str =
    "INSERT INTO worker (id, host, pid, version, alive_until) VALUES ($1, $2, $3, $4, {after $5})";
const BEAT: &str = "UPDATE worker SET beat_at = {now}, alive_until = {after $2}, running = $3,
    draining_at = CASE WHEN $4 = 1 THEN coalesce(draining_at, {now}) END WHERE id = $1 RETURNING id";
const LEAVE: &str = "DELETE FROM worker WHERE id = $1";
const DESCRIBE: &str = "UPDATE worker SET about = $2 WHERE id = $1";
const WORKERS: &str = "SELECT id, host, pid, version, started_at, beat_at, running, about,
    CASE WHEN draining_at IS NULL THEN 0 ELSE 1 END AS draining,
    CASE WHEN alive_until >= {now} THEN 1 ELSE 0 END AS alive FROM worker ORDER BY started_at, id";
const LOOK: &str = "SELECT 'due' AS what, NULL AS lane, (SELECT min(run_at) FROM job_live
        WHERE lane IS NULL AND run_at IS NOT NULL) AS at
    UNION ALL SELECT 'now', NULL, {now}
    UNION ALL SELECT 'ready', {text r.lane}, NULL FROM {rows $1: lane lane}
        WHERE EXISTS (SELECT 1 FROM job_live l WHERE l.lane = r.lane AND l.worker IS NULL)
    UNION ALL SELECT 'lost', NULL, NULL WHERE EXISTS (SELECT 1 FROM worker WHERE alive_until < {now})";
const RENEW: &str = "UPDATE job_live SET lease_until = {after $3}
    FROM {rows $1: id uuid, fence int}
    WHERE job_live.id = r.id AND job_live.fence = r.fence AND job_live.worker = $2
    RETURNING job_live.id, CASE WHEN job_live.stop_at IS NULL THEN 0 ELSE 1 END AS stop";
const HELD: &str = "SELECT l.id, CASE WHEN l.stop_at IS NULL THEN 0 ELSE 1 END AS stop
    FROM {rows $1: id uuid, fence int} JOIN job_live l ON l.id = r.id AND l.fence = r.fence AND l.worker = $2";
const PROGRESS: &str = "UPDATE job_live SET progress_percent = $4, progress_message = $5, progress_step = $6,
    progress_steps = $7 WHERE id = $1 AND fence = $2 AND worker = $3 RETURNING id";
const PROCESS: &str =
    "UPDATE job_live SET process_pid = $4 WHERE id = $1 AND fence = $2 AND worker = $3 RETURNING id";
/// Rows held by nobody who is alive, or for longer than the lease allows. Reads the whole of the live table,
/// which is why it is asked only when a worker is known to be lost, and now and then.
const LOST: &str =
    "SELECT l.id, l.fence, l.pipeline, l.kind, l.attempts, l.state, l.retries, l.crashes, l.worker,
        CASE WHEN l.stop_at IS NULL THEN 0 ELSE 1 END AS stop
    FROM job_live l LEFT JOIN worker w ON w.id = l.worker
    WHERE l.worker IS NOT NULL AND (w.id IS NULL OR w.alive_until < {now} OR l.lease_until < {now})
    ORDER BY l.id LIMIT $1";
const STRAY: &str = "SELECT l.id, l.fence, l.pipeline, l.state, l.retries, l.crashes, l.worker,
        CASE WHEN l.stop_at IS NULL THEN 0 ELSE 1 END AS stop
    FROM job_live l WHERE l.worker = $1 AND l.started_at <= {after $2}";
const FORGET: &str = "DELETE FROM worker WHERE alive_until < {now}
    AND NOT EXISTS (SELECT 1 FROM job_live l WHERE l.worker = worker.id) RETURNING id";

/// Lost jobs are rescued in parts of this size.
const RESCUE_MAX: i64 = 1000;

impl Store {
    /// Makes a worker known.
    pub async fn register(&self, id: WorkerId, host: &str, version: &str) -> Result<(), Error> {
        let pid = i64::from(std::process::id());
        let params = params![id, host, pid, version, micros(self.inner.silence_max)];
        self.db().write(REGISTER, params).await?;
        self.inner.hints.beat(id);
        Ok(())
    }

    /// Says that a worker is alive, for `silence` from now. False if it was given up in the meantime; its leases
    /// then are others'.
    pub async fn beat(
        &self,
        id: WorkerId,
        silence: Duration,
        running: usize,
        draining: bool,
    ) -> Result<bool, Error> {
        let running = i64::try_from(running).unwrap_or(i64::MAX);
        let params = params![id, micros(silence), running, i64::from(draining)];
        let is_known = !self.db().write(BEAT, params).await?.is_empty();
        self.inner.hints.beat(id);
        Ok(is_known)
    }

    /// Takes leave of a worker that has handed everything back.
    pub async fn leave(&self, id: WorkerId) -> Result<(), Error> {
        self.inner.hints.leave(id);
        self.free_chores(Some(id)).await?;
        self.db().write(LEAVE, params![id]).await.map(drop)
    }

    /// Every worker known, oldest first.
    pub async fn workers(&self) -> Result<Vec<WorkerRecord>, Error> {
        self.db().read(WORKERS, params![]).await?.iter().map(worker).collect()
    }

    /// How long a worker may be silent before its jobs go to others.
    pub fn silence_max(&self) -> Duration {
        self.inner.silence_max
    }

    /// One statement that says whether there is anything to do: the whole cost of an idle worker.
    pub async fn look(&self, lanes: &[Lane]) -> Result<Look, Error> {
        let lanes: Vec<Value> = lanes.iter().map(|lane| json!({ "lane": lane })).collect();
        let rows = self.db().read(LOOK, &[Param::rows(lanes)]).await?;
        let mut look = Look::default();
        for row in &rows {
            match row.text("what")?.as_str() {
                "due" => look.due_at = row.opt_moment("at")?,
                "now" => look.now = row.moment("at")?,
                "lost" => look.has_lost = true,
                _ => look.ready.push(row.name("lane")?),
            }
        }
        Ok(look)
    }

    /// Says what there is to see of a worker.
    pub async fn describe(&self, worker: WorkerId, about: &About) -> Result<(), Error> {
        self.db().write(DESCRIBE, params![worker, json!(about)]).await.map(drop)
    }

    /// Makes leases longer.
    pub async fn renew<'a>(
        &self,
        worker: WorkerId,
        leases: impl Iterator<Item = &'a (JobId, i64)>,
        lease: Duration,
    ) -> Result<Renewed, Error> {
        let rows = fences(leases);
        self.db()
            .write(RENEW, &[rows, worker.into(), micros(lease).into()])
            .await
            .and_then(|rows| renewed(&rows))
    }

    /// Which leases are still held, and which of those are to be stopped; changes nothing.
    pub async fn held<'a>(
        &self,
        worker: WorkerId,
        leases: impl Iterator<Item = &'a (JobId, i64)>,
    ) -> Result<Renewed, Error> {
        let rows = fences(leases);
        self.db().read(HELD, &[rows, worker.into()]).await.and_then(|rows| renewed(&rows))
    }

    /// Says how far an attempt is. False if the lease is lost.
    pub async fn progress(&self, lease: &Lease, progress: &Progress) -> Result<bool, Error> {
        let params = params![
            lease.job(),
            lease.fence(),
            lease.worker(),
            i64::from(progress.percent.min(100)),
            progress.message.as_deref().map(without_nul),
            i64::from(progress.step),
            // Who is at the third of two steps has at least three.
            i64::from(progress.steps.max(progress.step)),
        ];
        self.inner.hints.progress(lease.job(), progress.percent);
        Ok(!self.db().write(PROGRESS, params).await?.is_empty())
    }

    /// Says which process makes the attempt. False if the lease is lost.
    pub async fn process(&self, lease: &Lease, pid: u32) -> Result<bool, Error> {
        let params = params![lease.job(), lease.fence(), lease.worker(), i64::from(pid)];
        Ok(!self.db().write(PROCESS, params).await?.is_empty())
    }

    /// Gives the jobs of lost workers to others; a job that has taken too many down is set aside.
    /// Answers how many jobs were rescued.
    pub async fn rescue(&self) -> Result<usize, Error> {
        let mut rescued = 0;
        loop {
            let rows = self.db().read(LOST, params![RESCUE_MAX]).await?;
            let changes = rows.iter().map(|row| lost(row, Ended::Lost)).collect::<Result<Vec<_>, _>>()?;
            let lanes: Vec<Lane> =
                changes.iter().filter_map(|change| change.pipeline.lane(change.settled.state)).collect();
            let written = self.apply(changes).await.all()?;
            tell_rescued(&rows, &written)?;
            let count = written.len();
            rescued += count;
            for lane in lanes {
                self.inner.wake.ready(lane);
            }
            // Nothing written means that another worker is at it.
            if rows.len() < usize::try_from(RESCUE_MAX).unwrap_or(usize::MAX) || count == 0 {
                break;
            }
        }
        self.free_chores(None).await?;
        for row in self.db().write(FORGET, params![]).await? {
            self.inner.hints.leave(WorkerId(row.uuid("id")?));
        }
        Ok(rescued)
    }

    /// Hands back jobs that are leased to `worker` and that it does not know of: the answer to its claim was
    /// lost. `known` are those it does; one that was claimed less than `age` ago may be about to be.
    pub async fn release_strays(
        &self,
        worker: WorkerId,
        known: &[JobId],
        age: Duration,
    ) -> Result<usize, Error> {
        let rows = self.db().read(STRAY, params![worker, -micros(age)]).await?;
        let strays = rows.iter().filter(|row| row.job("id").is_ok_and(|id| !known.contains(&id)));
        let changes = strays.map(|row| lost(row, Ended::HandedBack)).collect::<Result<Vec<_>, _>>()?;
        Ok(self.apply(changes).await.all()?.len())
    }
}

/// Rescued jobs that get a line each in the log; a worker that held thousands of short ones would fill it.
const RESCUED_LINES_MAX: usize = 100;

/// Says which of the lost jobs were rescued.
fn tell_rescued(lost: &[Row], rescued: &[JobId]) -> Result<(), Error> {
    let rescued: HashSet<&JobId> = rescued.iter().collect();
    let mut lines = 0;
    for row in lost {
        let id = row.job("id")?;
        if !rescued.contains(&id) {
            continue;
        }
        lines += 1;
        if lines > RESCUED_LINES_MAX {
            break;
        }
        let (pipeline, kind) = (row.text("pipeline")?, row.text("kind")?);
        let (attempt, crashes) = (row.int("attempts")?, row.int("crashes")? + 1);
        tracing::info!(
            job.id = %id, job.pipeline = pipeline, job.kind = kind, attempt, crashes,
            "job {id} was rescued from a worker that is lost"
        );
    }
    Ok(())
}

/// Leases as rows.
pub(crate) fn fences<'a>(leases: impl Iterator<Item = &'a (JobId, i64)>) -> Param {
    let rows = leases.map(|(id, fence)| json!({ "id": id, "fence": fence }));
    Param::rows(rows)
}

fn renewed(rows: &[Row]) -> Result<Renewed, Error> {
    let mut renewed = Renewed::default();
    for row in rows {
        let id = row.job("id")?;
        renewed.held.push(id);
        if row.int("stop")? == 1 {
            renewed.stop.push(id);
        }
    }
    Ok(renewed)
}

fn lost(row: &Row, ended: Ended) -> Result<Change, Error> {
    let count = |column| row.int(column).map(|count| u32::try_from(count).unwrap_or_default());
    let standing = Standing::read(row)?;
    let attempt = Attempt {
        pipeline: standing.pipeline,
        state: standing.state,
        retries: count("retries")?,
        // Losing a worker uses up no retry, so how many there are does not matter here.
        retries_max: 0,
        crashes: count("crashes")?,
    };
    // A person's wish to end the job outlives the worker that was to carry it out.
    let ended = if row.int("stop")? == 1 { Ended::Stopped } else { ended };
    let settled = settle(attempt, ended, &RetryPolicy::default(), Timestamp::UNIX_EPOCH, 0.0)?;
    let meta = json!({ "worker": row.opt_uuid("worker")? });
    Ok(Change { meta: Some(meta), ..Change::new(row.job("id")?, standing, settled) })
}

fn worker(row: &Row) -> Result<WorkerRecord, Error> {
    Ok(WorkerRecord {
        id: WorkerId(row.uuid("id")?),
        host: row.text("host")?,
        pid: row.int("pid")?,
        version: row.text("version")?,
        started_at: row.moment("started_at")?,
        beat_at: row.moment("beat_at")?,
        running: row.int("running")?,
        is_draining: row.int("draining")? == 1,
        is_alive: row.int("alive")? == 1,
        about: row
            .opt_json("about")?
            .and_then(|about| serde_json::from_value(about).ok())
            .unwrap_or_default(),
    })
}
