//! Taking leases.

use crate::database::db::{Db, Param, Row, Tx, params};
use crate::database::dialect::names::Named;
use crate::database::dialect::{Dialect, postgres, sqlite};
use crate::error::Error;
use crate::{Store, micros};
use ode_job::{Claimed, Lane, Lease, Owner, WorkerId};
use serde_json::json;
use std::time::Duration;
use uuid::Uuid;

/// What a worker asks for.
#[derive(Debug, Clone, Copy)]
pub struct ClaimRequest {
    /// The line to take from.
    pub lane: Lane,
    pub worker: WorkerId,
    /// How many at most.
    pub count: usize,
    /// The owner served last; the round goes on after it.
    pub after: Uuid,
    /// How long the leases are.
    pub lease: Duration,
    /// How long an attempt may take, where the job has no limit of its own.
    pub attempt_timeout: Duration,
}

/// How many owners share one claim. More would make each claim dearer; fewer would make the round longer.
const RING_MAX: i64 = 64;

impl Store {
    /// Takes up to `count` leases, highest priority first, fairly between owners, oldest first.
    ///
    /// One call serves one priority; fewer jobs than asked for may mean that the next one has more.
    pub async fn claim(&self, request: ClaimRequest) -> Result<Vec<Claimed>, Error> {
        let ClaimRequest { lane, worker, .. } = request;
        let seq = self.inner.mint.seq();
        let params = params! {
            lane: lane.as_str(),
            worker: worker,
            lease: micros(request.lease),
            limit: micros(request.attempt_timeout),
            seq: seq,
            actor: worker.to_string(),
            from: lane.ready_state().as_str(),
            to: lane.running_state().as_str(),
        };
        let rows = match self.db() {
            Db::Postgres(_) => {
                let count = i64::try_from(request.count).unwrap_or(i64::MAX);
                let params = params.with("count", count).with("after", request.after).with("ring", RING_MAX);
                let params = params.with("adds", Param::History(vec![seq]));
                self.db().write(postgres::CLAIM, &params.order(Dialect::Postgres, postgres::CLAIM)).await?
            }
            Db::Sqlite { .. } => claim_sqlite(self.db(), &params, request).await?,
        };
        if !rows.is_empty() {
            self.nudge();
        }
        rows.iter().map(|row| claimed(row, lane, worker)).collect()
    }
}

/// SQLite has no lateral joins: the shares are taken one owner after the other, in one transaction.
async fn claim_sqlite(db: &Db, params: &Named, request: ClaimRequest) -> Result<Vec<Row>, Error> {
    let turn = params![request.lane.as_str(), request.after, RING_MAX];
    // Looked at before the write lock is taken: an idle worker must not hold up those who have work.
    if db.read(sqlite::TURN, turn).await?.is_empty() {
        return Ok(Vec::new());
    }
    let mut tx = db.begin().await?;
    let owners = tx.run(sqlite::TURN, turn).await?;
    let share = request.count.div_ceil(owners.len().max(1));
    let mut claimed = Vec::new();
    for owner in &owners {
        let count = share.min(request.count - claimed.len());
        claimed.extend(claim_share(&mut tx, params, owner, count).await?);
    }
    if claimed.is_empty() {
        return Ok(Vec::new());
    }
    let ids = claimed.iter().map(|row| row.uuid("id")).collect::<Result<Vec<_>, _>>()?;
    let entry = params.clone().with("jobs", ids);
    tx.run(sqlite::CLAIM_ENTRY, &entry.order(Dialect::Sqlite, sqlite::CLAIM_ENTRY)).await?;
    tx.commit().await?;
    Ok(claimed)
}

async fn claim_share(tx: &mut Tx, params: &Named, owner: &Row, count: usize) -> Result<Vec<Row>, Error> {
    let count = i64::try_from(count).unwrap_or(i64::MAX);
    let params = params.clone().with("count", count);
    let params = params.with("owner", owner.uuid("owner")?).with("priority", owner.int("priority")?);
    let params = params.order(Dialect::Sqlite, sqlite::CLAIM_SHARE);
    let mut rows = tx.run(sqlite::CLAIM_SHARE, &params).await?;
    rows.sort_by_cached_key(|row| row.uuid("id").ok());
    Ok(rows)
}

fn claimed(row: &Row, lane: Lane, worker: WorkerId) -> Result<Claimed, Error> {
    let count = |column| row.int(column).map(|count| u32::try_from(count).unwrap_or_default());
    Ok(Claimed {
        lease: Lease::granted(row.job("id")?, row.int("fence")?, worker),
        lane,
        kind: row.text("kind")?,
        owner: owner(row)?,
        input: row.json("input")?,
        config: row.opt_json("config")?.unwrap_or_else(|| json!({})),
        attempt: count("attempts")?,
        retries: count("retries")?,
        retries_max: row.opt_int("retries_max")?.and_then(|count| u32::try_from(count).ok()),
        crashes: count("crashes")?,
        timeout: row.opt_int("timeout_ms")?.and_then(|ms| u64::try_from(ms).ok()).map(Duration::from_millis),
    })
}

/// The owner a row names. A session whose jobs were given to a user keeps taking turns as the session.
pub(crate) fn owner(row: &Row) -> Result<Owner, Error> {
    if let Some(id) = row.opt_uuid("organisation_id")? {
        return Ok(Owner::Organisation(id));
    }
    if let Some(id) = row.opt_uuid("session_id")? {
        return Ok(Owner::Session(id));
    }
    Ok(row.opt_uuid("user_id")?.map_or(Owner::Operator, Owner::User))
}
