//! What owners read of their scripts.

use crate::record::RecordedStep;
use jiff::Timestamp;
use ode_job::{JobId, JobRecord, Phase, State};
use ode_store::sql::{ByOwner, LIST_MAX, Param, Row, Sql, by_owner, params};
use ode_store::{Error, OwnedFilter, Page};
use serde_json::json;
use std::collections::HashMap;
use uuid::Uuid;

/// Which scripts to list.
#[derive(Debug, Clone)]
pub struct ScriptFilter {
    /// Whose, and what can be asked of any list of an owner's.
    pub owned: OwnedFilter,
    /// Only about this restaurant.
    pub restaurant: Option<Uuid>,
    /// Only those that this person asked for.
    pub created_by: Option<Uuid>,
    /// Only of this batch.
    pub batch: Option<Uuid>,
}

/// What is known of a script beside its job.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ScriptFacts {
    /// The batch it belongs to.
    pub batch: Option<Uuid>,
    /// The jobs that it needs.
    pub needs: Vec<JobId>,
    /// Whether another job has its turn.
    pub waits_for_turn: bool,
    /// Whether there are secrets that came of it, and nobody has looked at them.
    pub has_result_secret: bool,
    /// Whether the secrets that were sent with it are gone.
    pub are_secrets_gone: bool,
    /// What its last attempt ran.
    pub version: Option<String>,
    /// As which process.
    pub process_pid: Option<i64>,
    /// Its steps, as far as its last attempt came.
    pub steps: Vec<RecordedStep>,
    /// How far that was.
    pub percent: u8,
    /// What it last said.
    pub message: Option<String>,
    /// Why it was called off.
    pub reason: Option<String>,
    /// The script's own word for why its last attempt failed.
    pub code: Option<String>,
    /// When it was asked to begin.
    pub run_at: Option<Timestamp>,
}

macro_rules! list {
    ($column:literal) => {
        concat!(
            "SELECT {job_columns} FROM jobs WHERE ",
            $column,
            " = $1 AND pipeline = 'script' AND ($2 IS NULL OR type = $2) AND ($3 IS NULL OR state = $3)
                AND ($4 IS NULL OR lower(metadata ->> 'restaurant_id') = $4) AND ($5 IS NULL OR created_by = $5)
                AND ($6 IS NULL OR updated_at >= $6) AND ($7 IS NULL OR id < $7)
                AND ($8 IS NULL OR id IN (SELECT job_id FROM script_order WHERE batch = $8))
                AND ($10 IS NULL OR phase = $10)
            ORDER BY id DESC LIMIT $9"
        )
    };
}

const LIST: ByOwner<&str> = by_owner!(list);
const ORDERS: &str =
    "SELECT o.job_id, o.batch, o.run_at, CASE WHEN t.holder <> o.job_id THEN 1 ELSE 0 END AS waits
    FROM {rows $1: id uuid} JOIN script_order o ON o.job_id = r.id
        LEFT JOIN script_turn t ON t.owner = o.owner AND t.turn = o.turn";
const NEEDS: &str = "SELECT n.job_id, n.needs FROM {rows $1: id uuid} JOIN script_need n ON n.job_id = r.id
    ORDER BY n.job_id, n.needs";
const SECRETS: &str = "SELECT s.job_id, s.part, CASE WHEN s.shredded_at IS NULL THEN 0 ELSE 1 END AS gone
    FROM {rows $1: id uuid} JOIN script_secret s ON s.job_id = r.id";
const RUNS: &str =
    "SELECT s.job_id, s.version, s.pid, s.steps, s.progress_percent, s.progress_message, s.error_code
    FROM {rows $1: id uuid, attempt int} JOIN script_run s ON s.job_id = r.id AND s.attempt = r.attempt";
/// The last entry in the history of jobs that were called off.
const REASONS: &str = "SELECT p.id, e.details -> r.name AS meta FROM {rows $1: id uuid, name text}
    JOIN job_past p ON p.id = r.id AND p.state = 'cancelled' JOIN job_journal e ON e.seq = {last p.history}";

/// Lists an owner's scripts, newest first.
pub async fn scripts(sql: Sql<'_>, filter: &ScriptFilter) -> Result<Page, Error> {
    let owned = &filter.owned;
    let limit = owned.limit.clamp(1, LIST_MAX);
    let params = params![
        owned.owner.key(),
        owned.kind.as_deref(),
        owned.state.map(State::as_str),
        filter.restaurant.map(|id| id.to_string()),
        filter.created_by,
        owned.since,
        owned.before.map(|id| id.0),
        filter.batch,
        i64::try_from(limit + 1).unwrap_or(i64::MAX),
        owned.phase.map(Phase::as_str),
    ];
    Page::of(&sql.read(LIST.of(owned.owner), params).await?, limit)
}

/// What is known of these scripts beside their jobs.
pub async fn script_facts(sql: Sql<'_>, jobs: &[JobRecord]) -> Result<HashMap<JobId, ScriptFacts>, Error> {
    let mut facts: HashMap<JobId, ScriptFacts> =
        jobs.iter().map(|job| (job.id, ScriptFacts::default())).collect();
    if jobs.is_empty() {
        return Ok(facts);
    }
    let ids = || {
        let row = |job: &JobRecord| json!({ "id": job.id, "attempt": job.attempt_count, "name": job.id.to_string() });
        [Param::rows(jobs.iter().map(row))]
    };
    let readers: [(&'static str, &str, Reader); 5] = [
        (ORDERS, "job_id", ScriptFacts::read_order),
        (NEEDS, "job_id", ScriptFacts::read_need),
        (SECRETS, "job_id", ScriptFacts::read_secret),
        (RUNS, "job_id", ScriptFacts::read_run),
        (REASONS, "id", ScriptFacts::read_reason),
    ];
    for (statement, id, read) in readers {
        for row in sql.read(statement, &ids()).await? {
            if let Some(facts) = facts.get_mut(&row.job(id)?) {
                read(facts, &row)?;
            }
        }
    }
    Ok(facts)
}

type Reader = fn(&mut ScriptFacts, &Row) -> Result<(), Error>;

impl ScriptFacts {
    fn read_order(&mut self, row: &Row) -> Result<(), Error> {
        self.batch = row.opt_uuid("batch")?;
        self.run_at = row.opt_moment("run_at")?;
        self.waits_for_turn = row.int("waits")? == 1;
        Ok(())
    }

    fn read_need(&mut self, row: &Row) -> Result<(), Error> {
        self.needs.push(row.job("needs")?);
        Ok(())
    }

    fn read_secret(&mut self, row: &Row) -> Result<(), Error> {
        let is_gone = row.int("gone")? == 1;
        match row.text("part")?.as_str() {
            "input" => self.are_secrets_gone = is_gone,
            _ => self.has_result_secret = !is_gone,
        }
        Ok(())
    }

    fn read_run(&mut self, row: &Row) -> Result<(), Error> {
        self.version = row.opt_text("version")?;
        self.process_pid = row.opt_int("pid")?;
        self.steps = serde_json::from_value(row.json("steps")?).unwrap_or_default();
        self.percent = u8::try_from(row.int("progress_percent")?).unwrap_or(100);
        self.message = row.opt_text("progress_message")?;
        self.code = row.opt_text("error_code")?;
        Ok(())
    }

    fn read_reason(&mut self, row: &Row) -> Result<(), Error> {
        let meta = row.opt_json("meta")?.unwrap_or_default();
        self.reason = meta["message"].as_str().map(str::to_owned);
        Ok(())
    }
}
