//! What an owner reads of their own jobs: a list that walks an index of that owner's alone, however many jobs others
//! have, and what the page shows beside it.

use crate::Store;
use crate::db::{Param, Row, params};
use crate::documents::Document;
use crate::error::Error;
use crate::read::{LIST_MAX, job_columns, record};
use jiff::Timestamp;
use ode_job::{JobId, JobRecord, Owner, Phase, State};
use serde_json::{Value, json};
use std::collections::HashMap;

/// Which of an owner's jobs to list.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct OwnedFilter {
    /// Whose.
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

/// A job, and what is known of its document.
#[derive(Debug, Clone, PartialEq)]
pub struct OwnedJob {
    /// The job.
    pub record: JobRecord,
    /// Its document, where it is about one.
    pub document: Option<Document>,
    /// What went wrong with its last attempt, while it waits for the next.
    pub setback: Option<Setback>,
}

/// Why an attempt failed that is not the last.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Setback {
    /// The stable code.
    pub code: String,
    /// What happened, for people.
    pub message: String,
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

/// One statement for each kind of owner: with the three in one, a prepared plan could use the index of none.
pub(crate) struct ByOwner<S> {
    pub(crate) session: S,
    pub(crate) user: S,
    pub(crate) organisation: S,
}

impl<S: Copy> ByOwner<S> {
    /// The one for this owner. The operator owns nothing, which any of them finds.
    pub(crate) fn of(&self, owner: Owner) -> S {
        match owner {
            Owner::Session(_) | Owner::Operator => self.session,
            Owner::User(_) => self.user,
            Owner::Organisation(_) => self.organisation,
        }
    }
}

/// What a macro makes of the column that names each kind of owner.
macro_rules! by_owner {
    ($statement:ident) => {
        $crate::owned::ByOwner {
            session: $statement!("session_id"),
            user: $statement!("user_id"),
            organisation: $statement!("organisation_id"),
        }
    };
}
pub(crate) use by_owner;

macro_rules! list_and_count {
    ($column:literal) => {
        (
            concat!(
                job_columns!(),
                " FROM jobs WHERE ",
                $column,
                " = $1 AND pipeline <> 'print' AND ($2 IS NULL OR state = $2) AND ($3 IS NULL OR type = $3) AND ($4 IS NULL OR updated_at >= $4)
                    AND ($5 IS NULL OR id < $5) AND ($7 IS NULL OR phase = $7) ORDER BY id DESC LIMIT $6"
            ),
            concat!(
                "SELECT count(*) AS active, {now} AS now FROM job_live WHERE ",
                $column,
                " = $1 AND pipeline <> 'print'"
            ),
        )
    };
}

const LIST_AND_COUNT: ByOwner<(&str, &str)> = by_owner!(list_and_count);
/// Named one by one: for a join with the view, SQLite would make all of it.
const BY_IDS: &str =
    job_columns!("WHERE id IN ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16)");
/// As many as the statement names.
const IDS_AT_ONCE: usize = 16;
/// The last entry in the history of jobs that wait: what ended an attempt is told there with the reason.
const SETBACKS: &str = "SELECT l.id, e.details -> r.name AS meta FROM {rows $1: key uuid, name text}
    JOIN job_live l ON l.id = r.key JOIN job_journal e ON e.seq = {last l.history}";

impl Store {
    /// Lists an owner's jobs, newest first. The operator owns none of them. Those that print are listed by themselves: one
    /// that was exported rests, and would keep everybody waiting who waits until nothing is under way.
    pub async fn owned_jobs(&self, filter: &OwnedFilter) -> Result<OwnedPage, Error> {
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
        let ids: Vec<JobId> = ids.collect();
        let mut rows = Vec::with_capacity(ids.len());
        for some in ids.chunks(IDS_AT_ONCE) {
            rows.extend(self.db().read(BY_IDS, &padded(some)).await?);
        }
        self.with_documents(&rows).await
    }

    async fn with_documents(&self, rows: &[Row]) -> Result<Vec<OwnedJob>, Error> {
        let records = rows.iter().map(record).collect::<Result<Vec<_>, _>>()?;
        let (mut documents, mut setbacks) =
            tokio::try_join!(self.documents(&records), self.setbacks(&records))?;
        let owned = |record: JobRecord| OwnedJob {
            document: documents.remove(&record.id),
            setback: setbacks.remove(&record.id),
            record,
        };
        Ok(records.into_iter().map(owned).collect())
    }

    /// Why those of these jobs that wait for another attempt do. One that was never tried costs nothing.
    async fn setbacks(&self, jobs: &[JobRecord]) -> Result<HashMap<JobId, Setback>, Error> {
        let is_waiting = |job: &&JobRecord| matches!(job.phase, Phase::Held | Phase::Ready);
        let was_tried = |job: &&JobRecord| job.attempt_count > 0 || job.run_at.is_some();
        let waiting = jobs.iter().filter(is_waiting).filter(was_tried);
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

/// These ids, and nothing in the places that are left.
fn padded(ids: &[JobId]) -> Vec<Param> {
    (0..IDS_AT_ONCE).map(|place| Param::Id(ids.get(place).map(|id| id.0))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::documents::{BESIDE, ids_as_rows};
    use crate::{Config, Dialect};
    use sqlx::{AssertSqlSafe, Connection as _};
    use uuid::Uuid;

    async fn sqlite() -> Store {
        Store::open(Config::new("sqlite::memory:")).await.unwrap()
    }

    async fn postgres() -> Store {
        let server =
            std::env::var("ODE_TEST_POSTGRES_URL").expect("`tests/run` starts a server and names it");
        let name = format!("ode_test_{}", Uuid::new_v4().simple());
        let mut connection = sqlx::PgConnection::connect(&server).await.unwrap();
        let create = AssertSqlSafe(format!("CREATE DATABASE {name}"));
        sqlx::raw_sql(create).execute(&mut connection).await.unwrap();
        Store::open(Config::new(format!("{}/{name}", server.rsplit_once('/').unwrap().0))).await.unwrap()
    }

    /// How the database would go about a statement, a line for each step.
    async fn plan(store: &Store, sql: &str, params: &[Param]) -> Vec<String> {
        let (explain, column) = match store.dialect() {
            Dialect::Postgres => ("EXPLAIN", "QUERY PLAN"),
            Dialect::Sqlite => ("EXPLAIN QUERY PLAN", "detail"),
        };
        let sql: &'static str = format!("{explain} {sql}").leak();
        let rows = store.db().read(sql, params).await.unwrap();
        rows.iter().map(|row| row.text(column).unwrap()).collect()
    }

    /// Whether each table is entered by an index and a value; but for the one row of the policy, and what was asked for.
    fn is_by_index(dialect: Dialect, plan: &[String]) -> bool {
        let count = |what: &str| plan.iter().filter(|line| line.contains(what)).count();
        match dialect {
            Dialect::Postgres => {
                let scanned = plan.iter().filter(|line| line.contains("Seq Scan"));
                let walks = count("Index Scan") + count("Index Only Scan");
                scanned.clone().all(|line| line.contains("on retention_policy"))
                    && walks == count("Index Cond")
            }
            Dialect::Sqlite => {
                // The view is no table: what it reads is told beside it.
                let mut scanned = plan.iter().filter(|line| line.starts_with("SCAN"));
                scanned.all(|line| {
                    line.contains("jsonb_each") || ["SCAN p", "SCAN jobs"].contains(&line.as_str())
                })
            }
        }
    }

    async fn a_list_is_read_by_index_however_many_jobs_others_have(store: Store) {
        store.migrate_up().await.unwrap();
        let id = JobId(Uuid::now_v7());
        let keys = ids_as_rows(std::iter::once(id));
        let named = Param::Rows(json!([{ "key": id, "name": id.to_string() }]).to_string());
        let text = None::<&str>;
        let filter = params![id.0, text, text, None::<Timestamp>, None::<Uuid>, 101_i64, text];
        let mut read = vec![(BY_IDS, padded(&[id])), (BESIDE, vec![keys]), (SETBACKS, vec![named])];
        let ByOwner { session, user, organisation } = LIST_AND_COUNT;
        for (list, count) in [session, user, organisation] {
            read.extend([(list, filter.to_vec()), (count, params![id.0].to_vec())]);
        }
        for (sql, params) in read {
            let plan = plan(&store, sql, &params).await;
            assert!(is_by_index(store.dialect(), &plan), "{sql}\n{}", plan.join("\n"));
        }
    }

    #[tokio::test]
    async fn a_list_is_read_by_index_on_sqlite() {
        a_list_is_read_by_index_however_many_jobs_others_have(sqlite().await).await;
    }

    #[tokio::test]
    async fn a_list_is_read_by_index_on_postgres() {
        a_list_is_read_by_index_however_many_jobs_others_have(postgres().await).await;
    }

    #[test]
    fn a_plan_that_reads_a_whole_table_is_recognised() {
        let plans = [
            (Dialect::Sqlite, "SCAN job_past"),
            (Dialect::Sqlite, "SCAN a USING INDEX sqlite_autoindex_job_artifact_2"),
            (Dialect::Postgres, "  ->  Seq Scan on job_past  (cost=0.00..1.00 rows=1 width=8)"),
            (Dialect::Postgres, "  ->  Index Scan using job_past_pkey on job_past"),
        ];
        for (dialect, line) in plans {
            assert!(!is_by_index(dialect, &[line.to_owned()]), "{line}");
        }
    }
}
