//! Orders as they are asked for and recorded, each step under the fence of the lease it is made.

use super::caps::held_cap;
use super::prints::job_rows;
use crate::machine::{EXPORT_COMPLETE, EXPORTING, ORDERED, ORDERING, PENDING_EXPORT, PRINT};
use crate::order::product::check_page;
use crate::order::{Attention, Order, OrderPhase, OrderStep};
use crate::request::{Money, OrderAsk};
use jiff::Timestamp;
use ode_job::{ErrorCode, Event, JobId, Refused, State};
use ode_store::sql::{Held, Row, Sql, Tx, micros, params};
use ode_store::{Error, Store};
use serde::Serialize;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::time::Duration;
use uuid::Uuid;

/// A job that changed this often between reading and writing is left to those who change it.
const TRIES_MAX: usize = 5;

/// What came of asking for an order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asked {
    New,
    /// The same was asked for before.
    Existing,
}

/// An order as people look at it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct OrderRecord {
    pub job_id: JobId,
    pub state: State,
    pub organisation_id: Uuid,
    /// Its name at the provider.
    pub external_id: String,
    /// How far placing it has come.
    pub phase: OrderPhase,
    /// Its number at the provider.
    pub provider_order_id: Option<i64>,
    /// How the provider last said that it stands.
    pub provider_status: Option<String>,
    /// The currency of its amounts.
    pub currency: String,
    /// What it may cost.
    pub cost_max: Money,
    /// What it costs, once that is known.
    pub cost: Option<Money>,
    /// Why a person should look at it.
    pub attention: Option<Attention>,
    /// What they should do.
    pub attention_message: Option<String>,
    /// What was asked for.
    pub asked: Value,
    /// What was sent for it; not shown, since whoever has it can fetch the file.
    #[serde(skip)]
    pub request: Option<Value>,
    pub created_at: Timestamp,
    /// When it was confirmed.
    pub placed_at: Option<Timestamp>,
    /// When all of it was first seen on its way.
    pub shipped_at: Option<Timestamp>,
    pub delivered_at: Option<Timestamp>,
}

/// An exported print.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadyPrint {
    pub job: JobId,
    /// Whether an order was asked for with it.
    pub is_asked: bool,
    /// Whether it goes on to be ordered by itself.
    pub is_in_line: bool,
}

/// One step of the record.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct OrderStepRecord {
    /// What was recorded.
    pub step: String,
    /// Under which fence, if by a worker.
    pub fence: Option<i64>,
    /// More about it.
    pub details: Option<Value>,
    pub at: Timestamp,
}

const HELD: &str = "SELECT o.external_id, o.phase, o.asked, o.request, o.provider_order_id, o.cost_max_cents, o.doubts,
        o.unclear_at, {now} AS now, (SELECT a.sha256 FROM job_artifact a WHERE a.job_id = o.job_id AND a.role = 'export') AS sha256,
        (SELECT m.page FROM map_print p JOIN printable_maps m ON m.id = p.printable_map_id WHERE p.job_id = o.job_id) AS page
    FROM print_orders o JOIN job_live l ON l.id = o.job_id AND l.fence = $2 AND l.worker = $3 WHERE o.job_id = $1";
const PHASE: &str = "SELECT phase FROM print_orders WHERE job_id = $1";
/// An answer that is clear ends the doubts; a confirmation also what people were to look at.
const RECORD: &str = "UPDATE print_orders SET
        request = coalesce(request, $request), request_sha256 = coalesce(request_sha256, $digest), phase = $phase,
        provider_order_id = coalesce($number, provider_order_id), cost_cents = coalesce($cents, cost_cents),
        provider_status = coalesce($status, provider_status),
        doubts = CASE WHEN $step = 'unclear' THEN doubts + 1 WHEN $step IN ('draft', 'confirmed') THEN 0 ELSE doubts END,
        unclear_at = CASE WHEN $step = 'unclear' THEN coalesce(unclear_at, {now})
            WHEN $step IN ('draft', 'confirmed') THEN NULL ELSE unclear_at END,
        attention = CASE WHEN $step = 'confirmed' THEN NULL ELSE coalesce($reason, attention) END,
        attention_message = CASE WHEN $step = 'confirmed' THEN NULL ELSE coalesce($message, attention_message) END,
        attention_at = CASE WHEN $step = 'confirmed' THEN NULL
            WHEN $reason IS NOT NULL THEN coalesce(attention_at, {now}) ELSE attention_at END,
        placed_at = CASE WHEN $phase = 'confirmed' THEN coalesce(placed_at, {now}) END,
        look_at = CASE WHEN $phase = 'confirmed' THEN coalesce(look_at, {now}) ELSE look_at END, updated_at = {now}
    WHERE job_id = $job";
pub(super) const STEP: &str =
    "INSERT INTO print_order_steps (job_id, fence, step, details) VALUES ($1, $2, $3, $4)";
const OF_JOB: &str = "SELECT pipeline, state FROM jobs WHERE id = $1";
const PAGE_OF_JOB: &str = "SELECT m.page FROM map_print p JOIN printable_maps m ON m.id = p.printable_map_id
    WHERE p.job_id = $1";
pub(super) const ASKED: &str = "SELECT asked, organisation_id FROM print_orders WHERE job_id = $1";
const ASK: &str =
    "INSERT INTO print_orders (job_id, organisation_id, external_id, asked, currency, cost_max_cents)
    VALUES ($1, $2, $3, $4, $5, $6)";
const WANTS_ORDER: &str =
    "SELECT state, CASE WHEN advance THEN 1 ELSE 0 END AS advance FROM job_live WHERE id = $1";
const WILL_ORDER: &str = "UPDATE job_live SET advance = TRUE, updated_at = {now}
    WHERE id = $1 AND state = $2 AND advance IS NULL RETURNING id";

// What is sorted by is selected, too: otherwise SQLite makes the whole view of jobs first.
macro_rules! records {
    ($rest:literal) => {
        concat!(
            "SELECT o.job_id, j.state, o.organisation_id, o.external_id, o.phase, o.provider_order_id,
                o.provider_status, o.currency, o.cost_max_cents, o.cost_cents, o.attention, o.attention_message,
                o.asked, o.request, o.created_at, o.placed_at, o.shipped_at, o.delivered_at, o.attention_at
            FROM print_orders o JOIN jobs j ON j.id = o.job_id ",
            $rest
        )
    };
}

const ONE: &str = records!("WHERE o.job_id = $1");
const OF_JOBS: &str = records!("JOIN {rows $1: key uuid} ON r.key = o.job_id");
const NEWEST: &str = records!("ORDER BY o.job_id DESC LIMIT $1");
const TO_LOOK_AT: &str = records!("WHERE o.attention IS NOT NULL ORDER BY o.attention_at LIMIT $1");
/// Statements that must not read all jobs there are: by ids, and those of the newest.
#[doc(hidden)]
pub const BY_ID_STATEMENTS: [&str; 2] = [ONE, OF_JOBS];
#[doc(hidden)]
pub const NEWEST_STATEMENTS: [&str; 2] = [NEWEST, TO_LOOK_AT];
const PLACED: &str = records!(
    "WHERE o.phase = 'confirmed' AND o.placed_at > {after $1} AND j.state = $3 ORDER BY o.job_id LIMIT $2"
);
const STEPS: &str = "SELECT step, fence, details, at FROM print_order_steps WHERE job_id = $1 ORDER BY id";
const READY: &str = "SELECT l.id, CASE WHEN l.advance THEN 1 ELSE 0 END AS advance,
        CASE WHEN o.job_id IS NULL THEN 0 ELSE 1 END AS asked
    FROM job_live l LEFT JOIN print_orders o ON o.job_id = l.id
    WHERE l.pipeline = $2 AND l.state = $3 ORDER BY l.id LIMIT $1";

/// Asks for the order of a print job, to be paid by this organisation. Asking for the same again changes nothing.
pub async fn ask_order(
    store: &Store,
    job: JobId,
    organisation: Uuid,
    ask: &OrderAsk,
) -> Result<Asked, Error> {
    let mut tx = store.sql().begin().await?;
    let asked = grant(&mut tx, job, organisation, ask).await?;
    tx.commit().await?;
    go_on_to_order(store, job).await?;
    Ok(asked)
}

/// Refuses an order as [`ask_order`] would, and asks for nothing. Returns the paper that is printed, where a map is.
pub async fn check_order(
    sql: Sql<'_>,
    job: JobId,
    organisation: Uuid,
    ask: &OrderAsk,
) -> Result<Option<Value>, Error> {
    let mut tx = sql.begin().await?;
    grant(&mut tx, job, organisation, ask).await?;
    check_fit(&tx.run(PAGE_OF_JOB, params![job]).await?, ask)
}

/// Has a job for which an order was asked go on to being ordered. Doing it again changes nothing.
pub async fn go_on_to_order(store: &Store, job: JobId) -> Result<(), Error> {
    for _ in 0..TRIES_MAX {
        let rows = store.sql().read(WANTS_ORDER, params![job]).await?;
        let Some(row) = rows.first() else { return Ok(()) };
        let state: State = row.name("state")?;
        if row.int("advance")? == 1 || [ORDERING, ORDERED].contains(&state) {
            return Ok(());
        }
        if state == EXPORT_COMPLETE {
            return store.advance(job).await.map(drop);
        }
        if !store.sql().write(WILL_ORDER, params![job, state.as_str()]).await?.is_empty() {
            return Ok(());
        }
    }
    Err(Error::Busy(job))
}

/// The order of a job, if one was asked for.
pub async fn order_of(sql: Sql<'_>, job: JobId) -> Result<Option<OrderRecord>, Error> {
    sql.read(ONE, params![job]).await?.first().map(OrderRecord::read).transpose()
}

/// The orders of these jobs, as far as there are some.
pub async fn orders_of(sql: Sql<'_>, jobs: &[JobId]) -> Result<HashMap<JobId, OrderRecord>, Error> {
    if jobs.is_empty() {
        return Ok(HashMap::new());
    }
    let rows = sql.read(OF_JOBS, &[job_rows(jobs)]).await?;
    rows.iter().map(OrderRecord::read).map(|order| order.map(|order| (order.job_id, order))).collect()
}

/// The record of an order, step by step.
pub async fn order_steps(sql: Sql<'_>, job: JobId) -> Result<Vec<OrderStepRecord>, Error> {
    let read = |row: &Row| {
        let (step, fence) = (row.text("step")?, row.opt_int("fence")?);
        Ok(OrderStepRecord { step, fence, details: row.opt_json("details")?, at: row.moment("at")? })
    };
    sql.read(STEPS, params![job]).await?.iter().map(read).collect()
}

/// The newest orders.
pub async fn orders(sql: Sql<'_>, count_max: u16) -> Result<Vec<OrderRecord>, Error> {
    sql.read(NEWEST, params![i64::from(count_max)]).await?.iter().map(OrderRecord::read).collect()
}

/// The orders that a person should look at, those that wait longest first.
pub async fn orders_to_look_at(sql: Sql<'_>, count_max: u16) -> Result<Vec<OrderRecord>, Error> {
    sql.read(TO_LOOK_AT, params![i64::from(count_max)]).await?.iter().map(OrderRecord::read).collect()
}

/// Orders that were placed lately and are not delivered.
pub async fn orders_placed(
    sql: Sql<'_>,
    within: Duration,
    count_max: u16,
) -> Result<Vec<OrderRecord>, Error> {
    let params = params![-micros(within), i64::from(count_max), ORDERED.as_str()];
    sql.read(PLACED, params).await?.iter().map(OrderRecord::read).collect()
}

/// Exported prints that are not being ordered yet.
pub async fn prints_ready(sql: Sql<'_>, count_max: u16) -> Result<Vec<ReadyPrint>, Error> {
    let read = |row: &Row| {
        Ok(ReadyPrint {
            job: row.job("id")?,
            is_asked: row.int("asked")? == 1,
            is_in_line: row.int("advance")? == 1,
        })
    };
    let params = params![i64::from(count_max), PRINT.as_str(), EXPORT_COMPLETE.as_str()];
    sql.read(READY, params).await?.iter().map(read).collect()
}

/// What is recorded of the order of a job that is held.
pub async fn held_order(held: Held<'_>) -> Result<Option<Order>, Error> {
    held.read(HELD, &held.params()).await?.first().map(order).transpose()
}

/// Records a step of the order of a job, if the lease still holds.
pub async fn record_step(held: Held<'_>, step: &OrderStep) -> Result<(), Error> {
    let mut tx = held.begin().await?;
    write_step(&mut tx, held.job(), Some(held.fence()), step).await?;
    tx.commit().await
}

/// Writes down the order of a print job, within the limit of the organisation that pays.
pub(super) async fn grant(
    tx: &mut Tx,
    job: JobId,
    organisation: Uuid,
    ask: &OrderAsk,
) -> Result<Asked, Error> {
    ask.check().map_err(|reason| Error::declined(ErrorCode::Invalid, reason))?;
    let cap = held_cap(tx, organisation, job).await?;
    let wanted = json!(ask);
    if let Some(row) = tx.run(ASKED, params![job]).await?.first() {
        let is_same = row.json("asked")? == wanted && row.uuid("organisation_id")? == organisation;
        return if is_same { Ok(Asked::Existing) } else { Err(another(job)) };
    }
    check_orderable(tx, job).await?;
    check_fit(&tx.run(PAGE_OF_JOB, params![job]).await?, ask)?;
    let cost_max = cap.cost_max(ask);
    cap.check_month(cost_max)?;
    let external_id = job.0.simple().to_string();
    let params = params![job, organisation, external_id, wanted, cap.currency, cost_max.0];
    tx.run(ASK, params).await?;
    tx.run(STEP, params![job, None::<i64>, "asked", None::<Value>]).await?;
    Ok(Asked::New)
}

fn another(job: JobId) -> Error {
    let reason = format!(
        "Another order was asked for with job {job}, and one job is one order. Reprint the map to order it again."
    );
    Error::declined(ErrorCode::Conflict, reason)
}

/// The page that is printed, if there is one in these rows, which must be that of the product.
fn check_fit(pages: &[Row], ask: &OrderAsk) -> Result<Option<Value>, Error> {
    let page = pages.first().map(|row| row.opt_json("page")).transpose()?.flatten();
    if let Some(page) = &page {
        check_page(ask.variant_id, page).map_err(|reason| Error::declined(ErrorCode::Invalid, reason))?;
    }
    Ok(page)
}

async fn check_orderable(tx: &mut Tx, job: JobId) -> Result<(), Error> {
    let rows = tx.run(OF_JOB, params![job]).await?;
    let row = rows.first().ok_or_else(|| Error::NotFound(job.to_string()))?;
    let (pipeline, from) = (row.name("pipeline")?, row.name("state")?);
    if pipeline == PRINT && [PENDING_EXPORT, EXPORTING, EXPORT_COMPLETE, ORDERING].contains(&from) {
        return Ok(());
    }
    Err(Refused { pipeline, from, event: Event::Advanced }.into())
}

/// Writes a step, and what the order is after it.
pub(super) async fn write_step(
    tx: &mut Tx,
    job: JobId,
    fence: Option<i64>,
    step: &OrderStep,
) -> Result<(), Error> {
    let rows = tx.run(PHASE, params![job]).await?;
    let row = rows.first().ok_or_else(|| Error::NotFound(job.to_string()))?;
    let phase = row.name::<OrderPhase>("phase")?.after(step);
    let (request, digest) = match step {
        OrderStep::Freeze { request } => (Some(request.clone()), Some(digest(request))),
        _ => (None, None),
    };
    let (number, cents) = match step {
        OrderStep::Draft { provider_order_id, cost_cents } => (Some(*provider_order_id), *cost_cents),
        _ => (None, None),
    };
    let status = match step {
        OrderStep::Confirmed { status } => Some(status.as_str()),
        _ => None,
    };
    let (reason, message) = match step {
        OrderStep::Attention { reason, message } => (Some(reason.as_str()), Some(message.as_str())),
        _ => (None, None),
    };
    let params = params! {
        job: job, request: request, digest: digest, phase: phase.as_str(), number: number, cents: cents,
        status: status, reason: reason, step: step.name(), message: message
    };
    tx.run(RECORD, &params.order(tx.dialect(), RECORD)).await?;
    tx.run(STEP, params![job, fence, step.name(), details(step)]).await.map(drop)
}

fn digest(request: &Value) -> String {
    ode_store::sha256_hex(request.to_string())
}

/// What the history of an order says beside a step's name; never an address.
fn details(step: &OrderStep) -> Option<Value> {
    match step {
        OrderStep::Freeze { request } => Some(json!({ "sha256": digest(request) })),
        OrderStep::Draft { provider_order_id, cost_cents } => {
            Some(json!({ "provider_order_id": provider_order_id, "cost_cents": cost_cents }))
        }
        OrderStep::Confirmed { status } => Some(json!({ "status": status })),
        OrderStep::Attention { reason, message } => Some(json!({ "reason": reason, "message": message })),
        OrderStep::NotExecuted { why } | OrderStep::Unclear { why: Some(why) } => Some(json!({ "why": why })),
        OrderStep::CreateSent
        | OrderStep::ConfirmSent
        | OrderStep::StillDraft
        | OrderStep::Unclear { why: None } => None,
    }
}

fn order(row: &Row) -> Result<Order, Error> {
    let (asked, now) = (row.json("asked")?, row.moment("now")?);
    let until_now = |at: Timestamp| Duration::try_from(now.duration_since(at)).unwrap_or_default();
    Ok(Order {
        external_id: row.text("external_id")?,
        phase: row.name("phase")?,
        ask: serde_json::from_value(asked).map_err(|error| Error::Corrupt(error.to_string()))?,
        request: row.opt_json("request")?,
        provider_order_id: row.opt_int("provider_order_id")?,
        cost_max_cents: row.int("cost_max_cents")?,
        doubts: u32::try_from(row.int("doubts")?).unwrap_or(u32::MAX),
        unclear_for: row.opt_moment("unclear_at")?.map(until_now),
        export_sha256: row.opt_text("sha256")?,
        page: row.opt_json("page")?,
    })
}

impl OrderRecord {
    pub(super) fn read(row: &Row) -> Result<Self, Error> {
        let attention = row.opt_text("attention")?;
        let attention = attention.map(|name| name.parse().map_err(|_| Error::Corrupt(name))).transpose()?;
        Ok(OrderRecord {
            job_id: row.job("job_id")?,
            state: row.name("state")?,
            organisation_id: row.uuid("organisation_id")?,
            external_id: row.text("external_id")?,
            phase: row.name("phase")?,
            provider_order_id: row.opt_int("provider_order_id")?,
            provider_status: row.opt_text("provider_status")?,
            currency: row.text("currency")?,
            cost_max: Money(row.int("cost_max_cents")?),
            cost: row.opt_int("cost_cents")?.map(Money),
            attention,
            attention_message: row.opt_text("attention_message")?,
            asked: row.json("asked")?,
            request: row.opt_json("request")?,
            created_at: row.moment("created_at")?,
            placed_at: row.opt_moment("placed_at")?,
            shipped_at: row.opt_moment("shipped_at")?,
            delivered_at: row.opt_moment("delivered_at")?,
        })
    }
}
