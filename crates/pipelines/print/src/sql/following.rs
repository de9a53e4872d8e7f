//! The record of following placed orders: which are due, how the provider says that they stand, and the steps of confirming
//! one again, each written under the right to the chore.

use super::orders::{OrderRecord, STEP, order_of, write_step};
use crate::machine::ORDERED;
use crate::order::{Attention, OrderStep};
use jiff::Timestamp;
use ode_job::{JobId, State};
use ode_store::sql::{Param, Row, Sql, Tx, micros, params};
use ode_store::{Error, Store};
use ode_worker::Turn;
use serde_json::json;
use std::time::Duration;

/// A placed order as it was found at the provider.
#[derive(Debug, Clone, PartialEq)]
pub struct Seen {
    /// In the provider's words.
    pub status: String,
    /// Whether all of it is on its way.
    pub is_shipped: bool,
    /// Whether all of it arrived.
    pub is_delivered: bool,
    /// What a person should look at.
    pub attention: Option<(Attention, String)>,
    /// When to look again at the latest, if that is sooner than planned.
    pub look_again: Duration,
}

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
    /// For how long a confirmation has been under way of which no outcome is recorded.
    pub(crate) unanswered_for: Option<Duration>,
    /// For how long nothing about the order has changed.
    pub(crate) unchanged_for: Duration,
}

const IS_DUE: &str = "SELECT job_id FROM print_orders WHERE look_at <= {now} AND phase = 'confirmed' LIMIT 1";
const TAKE_DUE: &str =
    "UPDATE print_orders SET look_at = {after $2} WHERE job_id IN (SELECT job_id FROM print_orders
    WHERE look_at <= {now} AND phase = 'confirmed' ORDER BY look_at LIMIT $1) RETURNING job_id";
const LOOK_WITHIN: &str = "UPDATE print_orders
    SET look_at = CASE WHEN {after $2} < look_at THEN {after $2} ELSE look_at END WHERE job_id = $1";
/// Only as it was planned with the intent: what an event asked for meanwhile is sooner, and stays.
const LOOK_AFTER: &str = "UPDATE print_orders SET look_at = {after $2} WHERE job_id = $1 AND look_at = $3";
const LOOK_NOW: &str =
    "UPDATE print_orders SET look_at = {now} WHERE external_id = $1 AND look_at IS NOT NULL";
const LOOKED: &str = "UPDATE print_orders SET look_at = NULL WHERE job_id = $1";
const STANDING: &str = "SELECT o.doubts, o.unclear_at, o.updated_at, {now} AS now,
        CAST((SELECT coalesce(sum(CASE s.step WHEN 'confirm_sent' THEN 1 WHEN 'not_executed' THEN -1 ELSE 0 END), 0)
            FROM print_order_steps s WHERE s.job_id = o.job_id) AS bigint) AS confirms,
        (SELECT s.step FROM print_order_steps s WHERE s.job_id = o.job_id ORDER BY s.id DESC LIMIT 1) AS last_step,
        (SELECT s.at FROM print_order_steps s WHERE s.job_id = o.job_id ORDER BY s.id DESC LIMIT 1) AS last_at
    FROM print_orders o WHERE o.job_id = $1";
/// Of an order whose job is not `ordered` yet, or not any more, the handler or nobody confirms. What dies after this is
/// looked at again soon.
const MAY_CONFIRM: &str = "UPDATE print_orders
    SET look_at = CASE WHEN {after $2} < look_at THEN {after $2} ELSE look_at END, updated_at = {now}
    WHERE job_id = $1 AND phase = 'confirmed' AND EXISTS (SELECT 1 FROM jobs j WHERE j.id = $1 AND j.state = $3)
    RETURNING look_at";
const SAW: &str = "UPDATE print_orders SET provider_status = $2,
        shipped_at = CASE WHEN $3 = 1 THEN coalesce(shipped_at, {now}) ELSE shipped_at END,
        attention = $4, attention_message = $5,
        attention_at = CASE WHEN $4 IS NULL THEN NULL ELSE coalesce(attention_at, {now}) END,
        look_at = CASE WHEN {after $6} < look_at THEN {after $6} ELSE look_at END, updated_at = {now}
    WHERE job_id = $1 AND phase = 'confirmed'";
/// The job's end is refused unless its order says the same.
const ARRIVED: &str = "UPDATE print_orders SET shipped_at = coalesce(shipped_at, {now}),
        delivered_at = coalesce(delivered_at, {now}), updated_at = {now}
    WHERE job_id = $1 AND phase = 'confirmed' AND EXISTS (SELECT 1 FROM job_live WHERE id = $1 AND state = $2)";
const OWNED: &str = "SELECT o.external_id FROM {rows $1: external_id text}
    JOIN print_orders o ON o.external_id = r.external_id";
const EVENT: &str = "INSERT INTO provider_events (digest, kind, external_id) VALUES ($1, $2, $3)
    ON CONFLICT (digest) DO NOTHING RETURNING digest";
const FORGET_EVENTS: &str = "DELETE FROM provider_events WHERE received_at < {after $1}";

/// Whether there is an order about which the provider is to be asked now.
pub(crate) async fn is_due(sql: Sql<'_>) -> Result<bool, Error> {
    Ok(!sql.read(IS_DUE, params![]).await?.is_empty())
}

/// A placed order about which the provider is to be asked now. It is due again after a while, or as soon as an event says so,
/// also while it is being asked about.
pub async fn take_order_due(sql: Sql<'_>, again: Duration) -> Result<Option<OrderRecord>, Error> {
    let taken = sql.write(TAKE_DUE, params![1_i64, micros(again)]).await?;
    let job = taken.first().map(|row| row.job("job_id")).transpose()?;
    drop(taken);
    match job {
        Some(job) => order_of(sql, job).await,
        None => Ok(None),
    }
}

/// Has an order looked at again within this time, if that is sooner than planned.
pub(crate) async fn look_within(sql: Sql<'_>, job: JobId, within: Duration) -> Result<(), Error> {
    sql.write(LOOK_WITHIN, params![job, micros(within)]).await.map(drop)
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

/// What is known of confirming an order again.
pub(crate) async fn standing(sql: Sql<'_>, job: JobId) -> Result<Standing, Error> {
    let rows = sql.read(STANDING, params![job]).await?;
    let row = rows.first().ok_or_else(|| Error::NotFound(job.to_string()))?;
    let now = row.moment("now")?;
    let until_now = |at: Timestamp| Duration::try_from(now.duration_since(at)).unwrap_or_default();
    let count = |column| row.int(column).map(|count| u32::try_from(count).unwrap_or(u32::MAX));
    let last = row.opt_text("last_step")?;
    let last_for = row.opt_moment("last_at")?.map(until_now);
    let is_unanswered = last.as_deref() == Some(OrderStep::ConfirmSent.name());
    Ok(Standing {
        doubts: count("doubts")?,
        unclear_for: row.opt_moment("unclear_at")?.map(until_now),
        confirms: count("confirms")?,
        is_open: last.is_some_and(|step| step != "confirmed"),
        unanswered_for: last_for.filter(|_| is_unanswered),
        unchanged_for: until_now(row.moment("updated_at")?),
    })
}

/// Records that an order is about to be confirmed again, and plans a look at it soon, whatever becomes of that: returns
/// when. None if it must not be confirmed: the chore is another's by now, or the order is not one that was placed.
pub(crate) async fn record_intent(
    turn: &Turn<'_>,
    job: JobId,
    soon: Duration,
) -> Result<Option<Timestamp>, Error> {
    let Some(mut tx) = turn.begin().await? else { return Ok(None) };
    let rows = tx.run(MAY_CONFIRM, params![job, micros(soon), ORDERED.as_str()]).await?;
    let Some(row) = rows.first() else { return Ok(None) };
    let planned = row.moment("look_at")?;
    let details = json!({ "again": true, "by": turn.holder() });
    tx.run(STEP, params![job, None::<i64>, OrderStep::ConfirmSent.name(), details]).await?;
    tx.commit().await?;
    Ok(Some(planned))
}

/// Records what became of it. False if the chore is another's by now, who finds out by looking.
pub(crate) async fn record_outcome(turn: &Turn<'_>, job: JobId, outcome: &OrderStep) -> Result<bool, Error> {
    let Some(mut tx) = turn.begin().await? else { return Ok(false) };
    write_step(&mut tx, job, None, outcome).await?;
    tx.commit().await?;
    Ok(true)
}

/// Records how a placed order was found at the provider, in a transaction of whoever may. One that arrived ends its job.
pub async fn saw_order(store: &Store, mut tx: Tx, job: JobId, seen: &Seen) -> Result<(), Error> {
    let (reason, message) =
        seen.attention.as_ref().map(|(reason, message)| (reason.as_str(), message.as_str())).unzip();
    let shipped = i64::from(seen.is_shipped);
    let params = params![job, seen.status.as_str(), shipped, reason, message, micros(seen.look_again)];
    tx.run(SAW, params).await?;
    tx.commit().await?;
    if !seen.is_delivered {
        return Ok(());
    }
    match delivered(store, job).await {
        // Another process recorded it first.
        Ok(_) | Err(Error::Refused { .. }) => store.sql().write(LOOKED, params![job]).await.map(drop),
        Err(error) => Err(error),
    }
}

/// Records that a placed order was delivered, which ends its job.
pub async fn delivered(store: &Store, job: JobId) -> Result<State, Error> {
    store.sql().write(ARRIVED, params![job, ORDERED.as_str()]).await?;
    store.delivered(job).await
}

/// Those of these external ids that are ours.
pub async fn owned_external_ids(sql: Sql<'_>, external_ids: &[String]) -> Result<Vec<String>, Error> {
    let rows = Param::rows(external_ids.iter().map(|id| json!({ "external_id": id })));
    sql.read(OWNED, &[rows]).await?.iter().map(|row: &Row| row.text("external_id")).collect()
}

/// Takes note of an event of the provider's; false if it came before. What it says is not believed: the order that it is about
/// is looked at.
pub async fn note_event(
    sql: Sql<'_>,
    digest: &str,
    kind: &str,
    external_id: Option<&str>,
) -> Result<bool, Error> {
    let mut tx = sql.begin().await?;
    if tx.run(EVENT, params![digest, kind, external_id]).await?.is_empty() {
        return Ok(false);
    }
    tx.run(LOOK_NOW, params![external_id.unwrap_or_default()]).await?;
    tx.commit().await?;
    Ok(true)
}

/// Forgets events that came long ago.
pub async fn forget_events(sql: Sql<'_>, older_than: Duration) -> Result<(), Error> {
    sql.write(FORGET_EVENTS, params![-micros(older_than)]).await.map(drop)
}
