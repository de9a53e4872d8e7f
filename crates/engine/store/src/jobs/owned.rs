//! What an owner reads of their own jobs: a list that walks an index of that owner's alone, however many jobs others
//! have, and what the page shows beside it.

use crate::Store;
use crate::database::db::{Param, Row, params};
use crate::error::Error;
use crate::jobs::documents::{JobFiles, file_columns, ids_as_rows};
use crate::jobs::read::{LIST_MAX, record};
use jiff::Timestamp;
use ode_job::{JobId, JobRecord, Owner, Phase, Pipeline, State};
use serde_json::{Value, json};
use std::collections::HashMap;

/// Which of an owner's jobs to list.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct OwnedFilter {
    pub owner: Owner,
    /// Only in this state.
    pub state: Option<State>,
    /// Only in this phase.
    pub phase: Option<Phase>,
    /// Only of this mapping, script type or format.
    pub kind: Option<String>,
    /// Only those that changed at this moment or later.
    pub since: Option<Timestamp>,
    /// Only older ones than this: the cursor.
    pub before: Option<JobId>,
    /// How many at most.
    pub limit: usize,
}

/// A job, and what is known of its files.
#[derive(Debug, Clone, PartialEq)]
pub struct OwnedJob {
    pub record: JobRecord,
    pub files: JobFiles,
    /// What went wrong with its last attempt, while it waits for the next.
    pub setback: Option<Setback>,
}

/// Why an attempt failed that is not the last.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Setback {
    pub code: String,
    /// What happened, for people.
    pub message: String,
}

impl OwnedJob {
    /// What a row says of a job. Why it waits, if it was tried before, stands elsewhere.
    pub(crate) fn of(row: &Row) -> Result<Self, Error> {
        Ok(OwnedJob { record: record(row)?, files: JobFiles::of(row)?, setback: None })
    }
}

/// A part of an owner's list, newest first.
#[derive(Debug, Clone)]
pub struct OwnedPage {
    pub jobs: Vec<OwnedJob>,
    /// Where the next part begins, if there is one.
    pub next_cursor: Option<JobId>,
    /// How many of all the owner's jobs have not ended.
    pub active_count: i64,
    /// The database's clock when it was asked.
    pub as_of: Timestamp,
}

/// One statement for each kind of owner: with the three in one, a prepared plan could use the index of none.
#[derive(Debug, Clone, Copy)]
pub struct ByOwner<S> {
    /// For those of a session.
    pub session: S,
    /// For those of a user.
    pub user: S,
    /// For those of an organisation.
    pub organisation: S,
}

impl<S: Copy> ByOwner<S> {
    /// The one for this owner. The operator owns nothing, which any of them finds.
    pub fn of(&self, owner: Owner) -> S {
        match owner {
            Owner::Session(_) | Owner::Operator => self.session,
            Owner::User(_) => self.user,
            Owner::Organisation(_) => self.organisation,
        }
    }
}

/// What a macro makes of the column that names each kind of owner.
#[macro_export]
macro_rules! by_owner {
    ($statement:ident) => {
        $crate::sql::ByOwner {
            session: $statement!("session_id"),
            user: $statement!("user_id"),
            organisation: $statement!("organisation_id"),
        }
    };
}
pub use crate::by_owner;

macro_rules! list_and_count {
    ($column:literal) => {
        (
            concat!(
                "SELECT {job_columns}, ",
                file_columns!(),
                " FROM jobs WHERE ",
                $column,
                " = $1 AND $8 NOT LIKE '%,' || pipeline || ',%' AND ($2 IS NULL OR state = $2) AND ($3 IS NULL OR type = $3) AND ($4 IS NULL OR updated_at >= $4)
                    AND ($5 IS NULL OR id < $5) AND ($7 IS NULL OR phase = $7) ORDER BY id DESC LIMIT $6"
            ),
            concat!(
                "SELECT count(*) AS active, {now} AS now FROM job_live WHERE ",
                $column,
                " = $1 AND $2 NOT LIKE '%,' || pipeline || ',%'"
            ),
        )
    };
}

pub(crate) const LIST_AND_COUNT: ByOwner<(&str, &str)> = by_owner!(list_and_count);
pub(crate) const BY_IDS: &str = concat!(
    "SELECT {job_columns}, ",
    file_columns!(),
    " FROM jobs WHERE id IN (SELECT r.key FROM {rows $1: key uuid})"
);
/// The last entry in the history of jobs that wait: what ended an attempt is told there with the reason.
pub(crate) const SETBACKS: &str =
    "SELECT l.id, e.details -> r.name AS meta FROM {rows $1: key uuid, name text}
    JOIN job_live l ON l.id = r.key JOIN job_journal e ON e.seq = {last l.history}";

impl Store {
    /// Lists an owner's jobs but those of some pipelines, newest first. The operator owns none of them.
    pub async fn owned_jobs(&self, filter: &OwnedFilter, without: &[Pipeline]) -> Result<OwnedPage, Error> {
        let without: String = without.iter().map(|pipeline| format!(",{pipeline},")).collect();
        let (list, count) = LIST_AND_COUNT.of(filter.owner);
        let limit = filter.limit.clamp(1, LIST_MAX);
        let params = params![
            filter.owner.key(),
            filter.state.map(State::as_str),
            filter.kind.as_deref(),
            filter.since,
            filter.before.map(|id| id.0),
            i64::try_from(limit + 1).unwrap_or(i64::MAX),
            filter.phase.map(Phase::as_str),
            without.as_str(),
        ];
        // Counted first: what changes in between then shows as a job that is further than the count says, and the
        // clock is never ahead of what was read.
        let counts = self.db().read(count, params![filter.owner.key(), without.as_str()]).await?;
        let rows = self.db().read(list, params).await?;
        let jobs = self.owned(&rows[..rows.len().min(limit)]).await?;
        let next_cursor = jobs.last().map(|job| job.record.id).filter(|_| rows.len() > limit);
        let counted = counts.first().ok_or_else(|| Error::Corrupt("a count without an answer".into()))?;
        Ok(OwnedPage {
            jobs,
            next_cursor,
            active_count: counted.int("active")?,
            as_of: counted.moment("now")?,
        })
    }

    /// These jobs, as far as they exist, whoever owns them.
    pub async fn jobs_by_id(&self, ids: impl Iterator<Item = JobId>) -> Result<Vec<OwnedJob>, Error> {
        let ids: Vec<JobId> = ids.collect();
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        let rows = self.db().read(BY_IDS, &[ids_as_rows(ids.into_iter())]).await?;
        self.owned(&rows).await
    }

    /// The jobs of these rows.
    async fn owned(&self, rows: &[Row]) -> Result<Vec<OwnedJob>, Error> {
        let mut jobs = rows.iter().map(OwnedJob::of).collect::<Result<Vec<_>, Error>>()?;
        let mut setbacks = self.setbacks(&jobs).await?;
        for job in &mut jobs {
            job.setback = setbacks.remove(&job.record.id);
        }
        Ok(jobs)
    }

    /// Why those of these jobs that wait for another attempt do. One that was never tried costs nothing.
    async fn setbacks(&self, jobs: &[OwnedJob]) -> Result<HashMap<JobId, Setback>, Error> {
        let is_waiting = |job: &&JobRecord| matches!(job.phase, Phase::Held | Phase::Ready);
        let was_tried = |job: &&JobRecord| job.attempt_count > 0 || job.run_at.is_some();
        let waiting = jobs.iter().map(|job| &job.record).filter(is_waiting).filter(was_tried);
        let keys: Vec<Value> =
            waiting.map(|job| json!({ "key": job.id, "name": job.id.to_string() })).collect();
        if keys.is_empty() {
            return Ok(HashMap::new());
        }
        let rows = self.db().read(SETBACKS, &[Param::Rows(Value::Array(keys).to_string())]).await?;
        let mut setbacks = HashMap::new();
        for row in &rows {
            let meta = row.opt_json("meta")?.unwrap_or_default();
            if let (Some(code), Some(message)) = (meta["code"].as_str(), meta["message"].as_str()) {
                setbacks.insert(row.job("id")?, Setback { code: code.into(), message: message.into() });
            }
        }
        Ok(setbacks)
    }
}
