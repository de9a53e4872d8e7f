//! What an owner reads of their own jobs: a list that walks an index of that owner's alone, however many jobs others
//! have, and what the page shows beside it.

use crate::Store;
use crate::db::{Param, Row, params};
use crate::documents::Document;
use crate::error::Error;
use crate::read::{job_columns, record};
use jiff::Timestamp;
use ode_job::{JobId, JobRecord, Owner, State};
use serde_json::{Value, json};

/// Which of an owner's jobs to list.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct OwnedFilter {
    /// Whose.
    pub owner: Owner,
    /// Only in this state.
    pub state: Option<State>,
    /// Only of this mapping, script type or format.
    pub kind: Option<String>,
    /// Only those that changed at this moment or later.
    pub since: Option<Timestamp>,
    /// Only older ones than this: the cursor.
    pub before: Option<JobId>,
    /// How many at most.
    pub limit: usize,
}

/// A job, and what is known of its document.
#[derive(Debug, Clone, PartialEq)]
pub struct OwnedJob {
    /// The job.
    pub record: JobRecord,
    /// Its document, where it is about one.
    pub document: Option<Document>,
}

impl OwnedJob {
    /// Whether there is a file with its result.
    pub fn has_result(&self) -> bool {
        self.document.as_ref().is_some_and(|document| document.result_path.is_some())
    }

    /// Whether what it is to work on is still there.
    pub fn has_source(&self) -> bool {
        self.document.as_ref().is_none_or(|document| document.upload_path.is_some())
    }
}

/// A part of an owner's list, newest first.
#[derive(Debug, Clone)]
pub struct OwnedPage {
    /// The jobs.
    pub jobs: Vec<OwnedJob>,
    /// Where the next part begins, if there is one.
    pub next_cursor: Option<JobId>,
    /// How many of all the owner's jobs have not ended.
    pub active_count: i64,
    /// The database's clock when it was asked.
    pub as_of: Timestamp,
}

/// A list may ask for this many at most.
const LIST_MAX: usize = 1000;

/// One statement for each kind of owner: with the three in one, a prepared plan could use the index of none.
macro_rules! of_owner {
    ($column:literal) => {
        (
            concat!(
                job_columns!(),
                " FROM jobs WHERE ",
                $column,
                " = $1 AND pipeline <> 'print' AND ($2 IS NULL OR state = $2) AND ($3 IS NULL OR type = $3) AND ($4 IS NULL OR updated_at >= $4)
                    AND ($5 IS NULL OR id < $5) ORDER BY id DESC LIMIT $6"
            ),
            concat!(
                "SELECT count(*) AS active, {now} AS now FROM job_live WHERE ",
                $column,
                " = $1 AND pipeline <> 'print'"
            ),
        )
    };
}

const OF_SESSION: (&str, &str) = of_owner!("session_id");
const OF_USER: (&str, &str) = of_owner!("user_id");
const OF_ORGANISATION: (&str, &str) = of_owner!("organisation_id");
const BY_IDS: &str = concat!(job_columns!(), " FROM {rows $1: key uuid} JOIN jobs ON jobs.id = r.key");

impl Store {
    /// Lists an owner's jobs, newest first. The operator owns none of them. Those that print are listed by themselves: one
    /// that was exported rests, and would keep everybody waiting who waits until nothing is under way.
    pub async fn owned_jobs(&self, filter: &OwnedFilter) -> Result<OwnedPage, Error> {
        let (list, count) = match filter.owner {
            Owner::Session(_) | Owner::Operator => OF_SESSION,
            Owner::User(_) => OF_USER,
            Owner::Organisation(_) => OF_ORGANISATION,
        };
        let limit = filter.limit.clamp(1, LIST_MAX);
        let params = params![
            filter.owner.key(),
            filter.state.map(State::as_str),
            filter.kind.as_deref(),
            filter.since,
            filter.before.map(|id| id.0),
            i64::try_from(limit + 1).unwrap_or(i64::MAX),
        ];
        // Counted first: what changes in between then shows as a job that is further than the count says, and the
        // clock is never ahead of what was read.
        let counts = self.db().read(count, params![filter.owner.key()]).await?;
        let rows = self.db().read(list, params).await?;
        let jobs = self.with_documents(&rows[..rows.len().min(limit)]).await?;
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
        let keys: Vec<Value> = ids.map(|id| json!({ "key": id })).collect();
        if keys.is_empty() {
            return Ok(Vec::new());
        }
        let rows = self.db().read(BY_IDS, &[Param::Rows(Value::Array(keys).to_string())]).await?;
        self.with_documents(&rows).await
    }

    async fn with_documents(&self, rows: &[Row]) -> Result<Vec<OwnedJob>, Error> {
        let records = rows.iter().map(record).collect::<Result<Vec<_>, _>>()?;
        let ids: Vec<JobId> = records.iter().map(|record| record.id).collect();
        let mut documents = self.documents(&ids).await?;
        let owned = |record: JobRecord| OwnedJob { document: documents.remove(&record.id), record };
        Ok(records.into_iter().map(owned).collect())
    }
}
