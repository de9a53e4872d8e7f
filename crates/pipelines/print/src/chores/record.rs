//! The record of following placed orders: which are due, what is known of confirming them again, and the steps of that,
//! each written under the right to the chore.

use jiff::Timestamp;
use ode_job::JobId;
use ode_job::order::Attention;
use ode_store::Error;
use ode_store::sql::{Row, Sql, Tx, micros, params};
use ode_worker::Turn;
use serde_json::{Value, json};
use std::time::Duration;

const IS_DUE: &str = "SELECT job_id FROM print_orders WHERE look_at <= {now} AND phase = 'confirmed' LIMIT 1";
const LOOK_WITHIN: &str = "UPDATE print_orders
    SET look_at = CASE WHEN {after $2} < look_at THEN {after $2} ELSE look_at END WHERE job_id = $1";
const STANDING: &str = "SELECT o.doubts, o.unclear_at, {now} AS now,
        CAST((SELECT coalesce(sum(CASE s.step WHEN 'confirm_sent' THEN 1 WHEN 'not_executed' THEN -1 ELSE 0 END), 0)
            FROM print_order_steps s WHERE s.job_id = o.job_id) AS bigint) AS confirms,
        (SELECT s.step FROM print_order_steps s WHERE s.job_id = o.job_id ORDER BY s.id DESC LIMIT 1) AS last_step
    FROM print_orders o WHERE o.job_id = $1";
/// Of an order whose job is not `ordered` yet, or not any more, the handler or nobody confirms. What dies after this is
/// looked at again soon.
const MAY_CONFIRM: &str = "UPDATE print_orders
    SET look_at = CASE WHEN {after $2} < look_at THEN {after $2} ELSE look_at END, updated_at = {now}
    WHERE job_id = $1 AND phase = 'confirmed' AND EXISTS (SELECT 1 FROM jobs j WHERE j.id = $1 AND j.state = 'ordered')
    RETURNING look_at";
/// Only as it was planned with the intent: what an event asked for meanwhile is sooner, and stays.
const LOOK_AFTER: &str = "UPDATE print_orders SET look_at = {after $2} WHERE job_id = $1 AND look_at = $3";
const STEP: &str = "INSERT INTO print_order_steps (job_id, fence, step, details) VALUES ($1, NULL, $2, $3)";
const CLEAR: &str = "UPDATE print_orders SET provider_status = $2, doubts = 0, unclear_at = NULL,
        attention = NULL, attention_message = NULL, attention_at = NULL, updated_at = {now} WHERE job_id = $1";
const DOUBT: &str = "UPDATE print_orders SET doubts = doubts + 1, unclear_at = coalesce(unclear_at, {now}),
        updated_at = {now} WHERE job_id = $1";
const CALL: &str = "UPDATE print_orders SET attention = $2, attention_message = $3,
        attention_at = coalesce(attention_at, {now}), updated_at = {now} WHERE job_id = $1";

/// What is known of confirming an order again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Standing {
    /// How often in a row it was not clear what became of it.
    pub(crate) doubts: u32,
    /// For how long it has not been clear.
    pub(crate) unclear_for: Option<Duration>,
    /// How often it was confirmed, or may have been; confirmations that were not carried out do not count.
    pub(crate) confirms: u32,
    /// What became of the last confirmation is not recorded, or was not that the order is confirmed.
    pub(crate) is_open: bool,
}

/// What became of a confirmation that was sent again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Confirmation {
    /// The order is confirmed; how it stands, in the provider's words.
    Confirmed(String),
    /// It was taken, and the order is a draft all the same.
    StillDraft,
    /// It was not carried out.
    NotExecuted(String),
    /// Nobody can say.
    Unclear(String),
    /// A person should look at it.
    NeedsAttention(Attention, String),
}

impl Confirmation {
    /// Its name in the history of the order.
    pub(crate) const fn step(&self) -> &'static str {
        match self {
            Confirmation::Confirmed(_) => "confirmed",
            Confirmation::StillDraft => "draft",
            Confirmation::NotExecuted(_) => "not_executed",
            Confirmation::Unclear(_) => "unclear",
            Confirmation::NeedsAttention(..) => "attention",
        }
    }

    fn details(&self) -> Option<Value> {
        match self {
            Confirmation::Confirmed(status) => Some(json!({ "status": status })),
            Confirmation::StillDraft => None,
            Confirmation::NotExecuted(why) | Confirmation::Unclear(why) => Some(json!({ "why": why })),
            Confirmation::NeedsAttention(reason, message) => {
                Some(json!({ "reason": reason, "message": message }))
            }
        }
    }
}

/// Whether there is an order about which the provider is to be asked now.
pub(crate) async fn is_due(sql: Sql<'_>) -> Result<bool, Error> {
    Ok(!sql.read(IS_DUE, params![]).await?.is_empty())
}

/// Has an order looked at again within this time, if that is sooner than planned.
pub(crate) async fn look_within(sql: Sql<'_>, job: JobId, within: Duration) -> Result<(), Error> {
    sql.write(LOOK_WITHIN, params![job, micros(within)]).await.map(drop)
}

/// What is known of confirming an order again.
pub(crate) async fn standing(sql: Sql<'_>, job: JobId) -> Result<Standing, Error> {
    let rows = sql.read(STANDING, params![job]).await?;
    let row = rows.first().ok_or_else(|| Error::NotFound(job.to_string()))?;
    let now = row.moment("now")?;
    let until_now = |at: Timestamp| Duration::try_from(now.duration_since(at)).unwrap_or_default();
    let count = |column| row.int(column).map(|count| u32::try_from(count).unwrap_or(u32::MAX));
    let last = row.opt_text("last_step")?;
    Ok(Standing {
        doubts: count("doubts")?,
        unclear_for: row.opt_moment("unclear_at")?.map(until_now),
        confirms: count("confirms")?,
        is_open: last.is_some_and(|step| step != "confirmed"),
    })
}

/// Has an order looked at again after this time, unless somebody asked for it since the intent planned the next look.
pub(crate) async fn look_after(
    sql: Sql<'_>,
    job: JobId,
    after: Duration,
    planned: Timestamp,
) -> Result<(), Error> {
    sql.write(LOOK_AFTER, params![job, micros(after), planned]).await.map(drop)
}

/// Records that an order is about to be confirmed again, and plans a look at it soon, whatever becomes of that: returns
/// when. None if it must not be confirmed: the chore is another's by now, or the order is not one that was placed.
pub(crate) async fn record_intent(
    turn: &Turn<'_>,
    job: JobId,
    soon: Duration,
) -> Result<Option<Timestamp>, Error> {
    let Some(mut tx) = turn.begin().await? else { return Ok(None) };
    let rows = tx.run(MAY_CONFIRM, params![job, micros(soon)]).await?;
    let Some(row) = rows.first() else { return Ok(None) };
    let planned = row.moment("look_at")?;
    let details = json!({ "again": true, "by": turn.holder() });
    tx.run(STEP, params![job, "confirm_sent", details]).await?;
    tx.commit().await?;
    Ok(Some(planned))
}

/// Records what became of it. False if the chore is another's by now, who finds out by looking.
pub(crate) async fn record_outcome(
    turn: &Turn<'_>,
    job: JobId,
    outcome: &Confirmation,
) -> Result<bool, Error> {
    let Some(mut tx) = turn.begin().await? else { return Ok(false) };
    write_outcome(&mut tx, job, outcome).await?;
    tx.run(STEP, params![job, outcome.step(), outcome.details()]).await?;
    tx.commit().await?;
    Ok(true)
}

async fn write_outcome(tx: &mut Tx, job: JobId, outcome: &Confirmation) -> Result<Vec<Row>, Error> {
    match outcome {
        Confirmation::Confirmed(status) => tx.run(CLEAR, params![job, status.as_str()]).await,
        Confirmation::Unclear(_) => tx.run(DOUBT, params![job]).await,
        Confirmation::NeedsAttention(reason, message) => {
            tx.run(CALL, params![job, reason.as_str(), message.as_str()]).await
        }
        Confirmation::StillDraft | Confirmation::NotExecuted(_) => Ok(Vec::new()),
    }
}
