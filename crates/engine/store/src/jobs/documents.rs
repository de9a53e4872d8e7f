//! The files of jobs: what is known of them, that they were fetched, and that somebody wants them gone.

use crate::Store;
use crate::database::db::{Param, Row, Tx, params};
use crate::error::Error;
use crate::files::blobs::Blobs;
use jiff::{SignedDuration, Timestamp};
use ode_job::{Event, JobId, Pipeline, State};
use serde_json::{Value, json};
use std::time::Duration;

/// What is known of the files of a job beside its record: the document that it was sent, and its result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobFiles {
    /// Where the blob of its source is, while it is kept.
    pub source_path: Option<String>,
    /// Where the result's blob is, once it is there and while it is kept.
    pub result_path: Option<String>,
    /// When retention removes the result, or the source where there is no result.
    pub expires_at: Option<Timestamp>,
    /// How often the result was fetched.
    pub download_count: u32,
    /// When it was first.
    pub first_downloaded_at: Option<Timestamp>,
}

/// That a result was fetched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Download {
    /// How often by now.
    pub count: u32,
    /// Whether nobody can fetch it again.
    pub is_last: bool,
}

/// Who began to read a result that goes with its first download has this long to read it to its end.
const LAST_READ: Duration = Duration::from_secs(60);

/// A column of one of a job's files.
macro_rules! of_file {
    ($column:literal, $role:literal) => {
        concat!(
            "(SELECT a.",
            $column,
            " FROM job_artifact a WHERE a.job_id = jobs.id AND a.role = '",
            $role,
            "' ORDER BY a.name LIMIT 1)"
        )
    };
}
pub(crate) use of_file;

/// The same as columns, looked up by the job's id wherever it is read. A join, or the view `documents`, might be made for all
/// documents there are.
macro_rules! file_columns {
    () => {
        concat!(
            $crate::jobs::documents::of_file!("path", "source"),
            " AS source_path, ",
            $crate::jobs::documents::of_file!("created_at", "source"),
            " AS uploaded_at, ",
            $crate::jobs::documents::of_file!("path", "result"),
            " AS result_path, ",
            $crate::jobs::documents::of_file!("created_at", "result"),
            " AS made_at,
            (SELECT d.count FROM job_download d WHERE d.job_id = jobs.id) AS download_count,
            (SELECT d.first_at FROM job_download d WHERE d.job_id = jobs.id) AS first_downloaded_at,
            (SELECT p.source_micros FROM retention_policy p) AS source_micros,
            (SELECT p.result_micros FROM retention_policy p) AS result_micros"
        )
    };
}
pub(crate) use file_columns;

const STANDING: &str = "SELECT pipeline, state FROM job_past WHERE id = $1
    UNION ALL SELECT pipeline, state FROM job_live WHERE id = $1";
/// Holds the row for the rest of the transaction.
pub(crate) const TOUCH: &str = "UPDATE job_past SET history = history || $2, updated_at = {now}
    WHERE id IN (SELECT id FROM {rows $1: id uuid}) AND state = $3 RETURNING id";
pub(crate) const TELL: &str =
    "INSERT INTO job_journal (seq, event, from_state, to_state, actor, jobs, details)
    VALUES ($1, $2, $3, $3, $4, $5, $6)";
const COUNT: &str = "INSERT INTO job_download (job_id, count) VALUES ($1, 1)
    ON CONFLICT (job_id) DO UPDATE SET count = job_download.count + 1, last_at = {now} RETURNING count";
const IS_LAST: &str =
    "SELECT CASE WHEN delete_on_download THEN 1 ELSE 0 END AS is_last FROM retention_policy";
/// The result, and what lies beside it.
const RESULTS: &str = "SELECT id FROM job_artifact WHERE job_id = $1 AND role <> 'source'";
const TRASH_ALL: &str =
    "INSERT INTO blob_trash (storage, path) SELECT DISTINCT storage, {object path} FROM job_artifact
    WHERE job_id = $1 ON CONFLICT (storage, path) DO NOTHING";
const DELETE: &str = "DELETE FROM job_past WHERE id = $1 RETURNING id";
/// Gives up files: `$1` their rows, `$2` when the files themselves may go, in microseconds from now. One that others lie in,
/// too, goes with the last of them.
pub(crate) const TRASH: &str = "INSERT INTO blob_trash (storage, path, not_before)
    SELECT g.storage, g.object, {after $2}
    FROM (SELECT a.storage, a.job_id, {object a.path} AS object, count(*) AS files
        FROM {rows $1: id uuid} JOIN job_artifact a ON a.id = r.id
        GROUP BY a.storage, a.job_id, {object a.path}) g
    JOIN (SELECT o.storage, o.job_id, {object o.path} AS object, count(*) AS files
        FROM (SELECT DISTINCT a.job_id FROM {rows $1: id uuid} JOIN job_artifact a ON a.id = r.id) j
        JOIN job_artifact o ON o.job_id = j.job_id
        GROUP BY o.storage, o.job_id, {object o.path}) t
    ON t.storage = g.storage AND t.job_id = g.job_id AND t.object = g.object AND t.files = g.files
    WHERE TRUE ON CONFLICT (storage, path) DO NOTHING";
pub(crate) const FORGET: &str = "DELETE FROM job_artifact WHERE id IN (SELECT id FROM {rows $1: id uuid})";

impl Store {
    /// Records that a job's result was fetched. If results go with their first download, this one is given up here: its
    /// file stays a little longer, so that whoever has begun to read it can end.
    pub async fn record_download(&self, id: JobId) -> Result<Download, Error> {
        let mut tx = self.db().begin().await?;
        let state = ended_state(&mut tx, id, Event::Downloaded).await?;
        let news = News { event: Event::Downloaded, state, particulars: None };
        self.tell_of(&mut tx, &[id], news).await?;
        let count = tx.run(COUNT, params![id]).await?.first().map_or(Ok(0), |row| row.int("count"))?;
        let is_last = tx.run(IS_LAST, params![]).await?.first().map_or(Ok(0), |row| row.int("is_last"))? == 1;
        if is_last {
            let rows = tx.run(RESULTS, params![id]).await?;
            let files = rows.iter().map(|row| row.uuid("id")).collect::<Result<Vec<_>, _>>()?;
            let particulars = Some(json!({ "files": ["result"], "reason": "downloaded" }));
            self.tell_of(&mut tx, &[id], News { event: Event::Expired, state, particulars }).await?;
            give_up(&mut tx, &files, LAST_READ).await?;
        }
        tx.commit().await?;
        self.nudge();
        Ok(Download { count: u32::try_from(count).unwrap_or(u32::MAX), is_last })
    }

    /// Removes an ended job and everything of it: rows in one transaction, then the files. If that is cut short, the
    /// next cleanup removes the rest.
    pub async fn delete_job(&self, id: JobId, blobs: &Blobs) -> Result<(), Error> {
        let mut tx = self.db().begin().await?;
        ended_state(&mut tx, id, Event::Expired).await?;
        tx.begin_retention().await?;
        tx.run(TRASH_ALL, params![id]).await?;
        // A person may have retried it in between.
        if tx.run(DELETE, params![id]).await?.is_empty() {
            return Err(Error::Busy(id));
        }
        tx.end_retention().await?;
        tx.commit().await?;
        crate::crash::point("after-delete");
        if let Err(error) = self.sweep_job(id, blobs).await {
            tracing::warn!(%error, job.id = %id, "the files of job {id} are not removed yet; cleanup will");
        }
        Ok(())
    }

    /// Writes an event that changes no state, for those of these jobs that are still in it. Answers which.
    pub(crate) async fn tell_of(&self, tx: &mut Tx, jobs: &[JobId], news: News) -> Result<Vec<JobId>, Error> {
        let News { event, state, particulars } = news;
        let seq = self.inner.mint.seq();
        let ids = json!(jobs.iter().map(|id| json!({ "id": id })).collect::<Vec<_>>());
        let params = [Param::Rows(ids.to_string()), Param::History(vec![seq]), state.as_str().into()];
        let rows = tx.run(TOUCH, &params).await?;
        let told = rows.iter().map(|row| row.job("id")).collect::<Result<Vec<_>, _>>()?;
        if !told.is_empty() {
            let each = |why: &Value| told.iter().map(|id| (id.to_string(), why.clone())).collect();
            let details = particulars.as_ref().map(|why| Value::Object(each(why)));
            let (event, state, actor) = (event.as_str(), state.as_str(), self.inner.actor.as_str());
            let ids: Vec<uuid::Uuid> = told.iter().map(|id| id.0).collect();
            tx.run(TELL, params![seq, event, state, actor, ids, details]).await?;
        }
        Ok(told)
    }
}

/// An event that changes no state.
pub(crate) struct News {
    pub(crate) event: Event,
    /// The state of the jobs it happens to.
    pub(crate) state: State,
    /// The same for each of them.
    pub(crate) particulars: Option<Value>,
}

/// Moves files to the trash: their rows go now, they themselves after `wait`.
pub(crate) async fn give_up(tx: &mut Tx, files: &[uuid::Uuid], wait: Duration) -> Result<(), Error> {
    let ids = json!(files.iter().map(|id| json!({ "id": id })).collect::<Vec<_>>()).to_string();
    tx.run(TRASH, &[Param::Rows(ids.clone()), crate::micros(wait).into()]).await?;
    tx.begin_retention().await?;
    tx.run(FORGET, &[Param::Rows(ids)]).await?;
    tx.end_retention().await
}

/// The state of a job to which this may happen.
async fn ended_state(tx: &mut Tx, id: JobId, event: Event) -> Result<State, Error> {
    let rows = tx.run(STANDING, params![id]).await?;
    let row = rows.first().ok_or_else(|| Error::NotFound(id.to_string()))?;
    let (pipeline, state): (Pipeline, State) = (row.name("pipeline")?, row.name("state")?);
    Ok(pipeline.next(state, event)?)
}

/// Ids as the rows of a statement, in a column `key`.
pub(crate) fn ids_as_rows(ids: impl Iterator<Item = JobId>) -> Param {
    let keys: Vec<Value> = ids.map(|id| json!({ "key": id })).collect();
    Param::Rows(Value::Array(keys).to_string())
}

impl JobFiles {
    /// What a row says of the files of its job.
    pub(crate) fn of(row: &Row) -> Result<Self, Error> {
        let until = |since: &str, kept_for: &str| {
            let (since, kept_for) = (row.opt_moment(since)?, row.opt_int(kept_for)?);
            let kept = since.zip(kept_for.map(SignedDuration::from_micros));
            Ok::<_, Error>(
                kept.map(|(since, kept_for)| since.checked_add(kept_for).unwrap_or(Timestamp::MAX)),
            )
        };
        let count = row.opt_int("download_count")?.unwrap_or_default();
        // A result outlives the document it was made from.
        let expires_at = until("made_at", "result_micros")?.or(until("uploaded_at", "source_micros")?);
        Ok(JobFiles {
            source_path: row.opt_text("source_path")?,
            result_path: row.opt_text("result_path")?,
            expires_at,
            download_count: u32::try_from(count).unwrap_or(u32::MAX),
            first_downloaded_at: row.opt_moment("first_downloaded_at")?,
        })
    }
}
