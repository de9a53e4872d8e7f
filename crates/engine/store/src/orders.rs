//! Orders: asking for one within an organisation's limit, and the record of placing it, each step under the fence of the
//! lease it is made.

use crate::db::{Param, Row, Tx, params};
use crate::error::Error;
use crate::maps::{FrozenMap, job_rows};
use crate::sql::Held;
use crate::{Store, micros};
use jiff::Timestamp;
use ode_job::order::{Attention, Money, Order, OrderAsk, OrderPhase, OrderStep};
use ode_job::product::check_page;
use ode_job::{Event, JobId, Pipeline, Refused, State};
use serde::Serialize;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use std::collections::HashMap;
use std::time::Duration;
use uuid::Uuid;

/// What an organisation spends is counted over this long.
const MONTH: Duration = Duration::from_hours(30 * 24);
/// A job that changed this often between reading and writing is left to those who change it.
const TRIES_MAX: usize = 5;

/// What an organisation may spend on prints, and what it has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SpendCap {
    /// Whose.
    pub organisation_id: Uuid,
    /// What they are called, where they are known by a name.
    pub organisation: Option<String>,
    /// In which currency.
    pub currency: String,
    /// On one order.
    pub order: Money,
    /// In 30 days.
    pub month: Money,
    /// Spent, or set aside for orders under way, in the last 30 days.
    pub spent: Money,
}

impl SpendCap {
    fn cost_max(&self, ask: &OrderAsk) -> Money {
        ask.cost_max.unwrap_or(self.order).min(self.order)
    }
}

/// What came of asking for an order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asked {
    /// It is new.
    New,
    /// The same was asked for before.
    Existing,
}

/// An order, and who pays for it.
#[derive(Debug, Clone)]
pub struct PaidOrder {
    /// The organisation within whose limit it must be.
    pub organisation: Uuid,
    /// What is ordered.
    pub ask: OrderAsk,
}

/// An order as people look at it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct OrderRecord {
    /// Its job.
    pub job_id: JobId,
    /// Where the job stands.
    pub state: State,
    /// Who pays.
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
    /// When.
    pub created_at: Timestamp,
    /// When it was confirmed.
    pub placed_at: Option<Timestamp>,
    /// When all of it was first seen on its way.
    pub shipped_at: Option<Timestamp>,
    /// When it was delivered.
    pub delivered_at: Option<Timestamp>,
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
    /// When.
    pub at: Timestamp,
}

/// How an order that was placed was found at the provider.
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

const HELD: &str = "SELECT o.external_id, o.phase, o.asked, o.request, o.provider_order_id, o.cost_max_cents, o.doubts,
        o.unclear_at, {now} AS now, (SELECT a.sha256 FROM job_artifact a WHERE a.job_id = o.job_id AND a.role = 'export') AS sha256,
        (SELECT m.page FROM map_print p JOIN printable_maps m ON m.id = p.printable_map_id WHERE p.job_id = o.job_id) AS page
    FROM print_orders o JOIN job_live l ON l.id = o.job_id AND l.fence = $2 AND l.worker = $3 WHERE o.job_id = $1";
const PHASE: &str = "SELECT phase FROM print_orders WHERE job_id = $1";
/// `$9` is the step's name. An answer that is clear ends the doubts; a confirmation also what people were to look at.
const RECORD: &str = "UPDATE print_orders SET
        request = coalesce(request, $2), request_sha256 = coalesce(request_sha256, $3), phase = $4,
        provider_order_id = coalesce($5, provider_order_id), cost_cents = coalesce($6, cost_cents),
        provider_status = coalesce($7, provider_status),
        doubts = CASE WHEN $9 = 'unclear' THEN doubts + 1 WHEN $9 IN ('draft', 'confirmed') THEN 0 ELSE doubts END,
        unclear_at = CASE WHEN $9 = 'unclear' THEN coalesce(unclear_at, {now})
            WHEN $9 IN ('draft', 'confirmed') THEN NULL ELSE unclear_at END,
        attention = CASE WHEN $9 = 'confirmed' THEN NULL ELSE coalesce($8, attention) END,
        attention_message = CASE WHEN $9 = 'confirmed' THEN NULL ELSE coalesce($10, attention_message) END,
        attention_at = CASE WHEN $9 = 'confirmed' THEN NULL WHEN $8 IS NOT NULL THEN {now} ELSE attention_at END,
        placed_at = CASE WHEN $4 = 'confirmed' THEN coalesce(placed_at, {now}) END,
        look_at = CASE WHEN $4 = 'confirmed' THEN coalesce(look_at, {now}) ELSE look_at END, updated_at = {now}
    WHERE job_id = $1";
const STEP: &str = "INSERT INTO print_order_steps (job_id, fence, step, details) VALUES ($1, $2, $3, $4)";
const SET_CAP: &str = "INSERT INTO spend_caps (organisation_id, currency, order_cents, month_cents)
    VALUES ($1, $2, $3, $4) ON CONFLICT (organisation_id) DO UPDATE SET currency = excluded.currency,
        order_cents = excluded.order_cents, month_cents = excluded.month_cents, updated_at = {now}";
/// What may have been confirmed counts for a month from then; what is under way counts however long it has been, and one
/// that was given up or cancelled costs nothing. The order of job `$2` is left out, and all but organisation `$3`, if any.
const CAPS: &str = "SELECT c.organisation_id, w.name AS organisation, c.currency, c.order_cents, c.month_cents,
        CAST((SELECT coalesce(sum(coalesce(o.cost_cents, o.cost_max_cents)), 0) FROM print_orders o
            WHERE o.organisation_id = c.organisation_id AND o.job_id IS DISTINCT FROM $2
                AND o.phase IN ('confirm_sent', 'confirmed')
                AND coalesce(o.placed_at, o.updated_at) > {after $1} AND coalesce(o.provider_status, '') <> 'canceled')
        + (SELECT coalesce(sum(coalesce(o.cost_cents, o.cost_max_cents)), 0) FROM print_orders o
            WHERE o.organisation_id = c.organisation_id AND o.job_id IS DISTINCT FROM $2
                AND o.phase NOT IN ('confirm_sent', 'confirmed')
                AND EXISTS (SELECT 1 FROM job_live l WHERE l.id = o.job_id)) AS bigint) AS spent
    FROM spend_caps c LEFT JOIN owner w ON w.id = c.organisation_id
    WHERE c.organisation_id = coalesce($3, c.organisation_id)";
/// Holds the row: of two who ask at once, the second sees what the first was granted.
const HOLD_CAP: &str =
    "UPDATE spend_caps SET updated_at = {now} WHERE organisation_id = $1 RETURNING organisation_id";
const OF_JOB: &str = "SELECT pipeline, state FROM jobs WHERE id = $1";
const PAGE_OF_JOB: &str = "SELECT m.page FROM map_print p JOIN printable_maps m ON m.id = p.printable_map_id
    WHERE p.job_id = $1";
const ASKED: &str = "SELECT asked, organisation_id FROM print_orders WHERE job_id = $1";
const ASK: &str =
    "INSERT INTO print_orders (job_id, organisation_id, external_id, asked, currency, cost_max_cents)
    VALUES ($1, $2, $3, $4, $5, $6)";
const WANTS_ORDER: &str =
    "SELECT state, CASE WHEN advance THEN 1 ELSE 0 END AS advance FROM job_live WHERE id = $1";
const WILL_ORDER: &str = "UPDATE job_live SET advance = TRUE, updated_at = {now}
    WHERE id = $1 AND state = $2 AND advance IS NULL RETURNING id";
const RAISE: &str = "UPDATE print_orders SET cost_max_cents = $2, attention = NULL, attention_message = NULL,
        attention_at = NULL, updated_at = {now}
    WHERE job_id = $1 AND phase NOT IN ('confirm_sent', 'confirmed') RETURNING job_id";
/// One that may be confirmed is counted whatever comes.
const UNCONFIRMED: &str = "SELECT organisation_id, cost_cents, cost_max_cents FROM print_orders
    WHERE job_id = $1 AND phase NOT IN ('confirm_sent', 'confirmed')";
const RENEW: &str = "UPDATE print_orders SET cost_max_cents = $2, attention = NULL, attention_message = NULL,
        attention_at = NULL, updated_at = {now} WHERE job_id = $1";
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
pub(crate) const ONE: &str = records!("WHERE o.job_id = $1");
pub(crate) const OF_JOBS: &str = records!("JOIN {rows $1: key uuid} ON r.key = o.job_id");
pub(crate) const NEWEST: &str = records!("ORDER BY o.job_id DESC LIMIT $1");
pub(crate) const TO_LOOK_AT: &str =
    records!("WHERE o.attention IS NOT NULL ORDER BY o.attention_at LIMIT $1");
const TAKE_DUE: &str =
    "UPDATE print_orders SET look_at = {after $2} WHERE job_id IN (SELECT job_id FROM print_orders
    WHERE look_at <= {now} AND phase = 'confirmed' ORDER BY look_at LIMIT $1) RETURNING job_id";
const PLACED: &str = records!(
    "WHERE o.phase = 'confirmed' AND o.placed_at > {after $1} AND j.state = 'ordered' ORDER BY o.job_id LIMIT $2"
);
const OWNED: &str = "SELECT o.external_id FROM {rows $1: external_id text}
    JOIN print_orders o ON o.external_id = r.external_id";
const STEPS: &str = "SELECT step, fence, details, at FROM print_order_steps WHERE job_id = $1 ORDER BY id";
const READY: &str = "SELECT l.id, CASE WHEN l.advance THEN 1 ELSE 0 END AS advance,
        CASE WHEN o.job_id IS NULL THEN 0 ELSE 1 END AS asked
    FROM job_live l LEFT JOIN print_orders o ON o.job_id = l.id
    WHERE l.pipeline = 'print' AND l.state = 'export_complete' ORDER BY l.id LIMIT $1";
const SAW: &str = "UPDATE print_orders SET provider_status = $2,
        shipped_at = CASE WHEN $3 = 1 THEN coalesce(shipped_at, {now}) ELSE shipped_at END,
        attention = $4, attention_message = $5,
        attention_at = CASE WHEN $4 IS NULL THEN NULL ELSE coalesce(attention_at, {now}) END,
        look_at = CASE WHEN {after $6} < look_at THEN {after $6} ELSE look_at END, updated_at = {now}
    WHERE job_id = $1 AND phase = 'confirmed'";
const LOOKED: &str = "UPDATE print_orders SET look_at = NULL WHERE job_id = $1";
const HEARD: &str = "INSERT INTO provider_events (digest, kind, external_id) VALUES ($1, $2, $3)
    ON CONFLICT (digest) DO NOTHING RETURNING digest";
const LOOK_NOW: &str =
    "UPDATE print_orders SET look_at = {now} WHERE external_id = $1 AND look_at IS NOT NULL";
const FORGET_HEARD: &str = "DELETE FROM provider_events WHERE received_at < {after $1}";

impl Held<'_> {
    /// What is recorded of the order of the job.
    pub async fn order(&self) -> Result<Option<Order>, Error> {
        self.read(HELD, &self.params()).await?.first().map(order).transpose()
    }

    /// Records a step of the order of the job, if the lease still holds.
    pub async fn record_order(&self, step: &OrderStep) -> Result<(), Error> {
        let job = self.job();
        let mut tx = self.begin().await?;
        write_step(&mut tx, job, step).await?;
        let told = params![job, self.fence(), step.name(), details(step)];
        tx.run(STEP, told).await?;
        tx.commit().await
    }
}

impl Store {
    /// Says what an organisation may spend.
    pub async fn set_spend_cap(
        &self,
        organisation: Uuid,
        currency: &str,
        order: Money,
        month: Money,
    ) -> Result<(), Error> {
        if order.0 < 1 || month < order || currency.len() != 3 {
            let reason = "A limit is an amount for one order and at least as much for 30 days, in a currency of three letters.";
            return Err(Error::Order(reason.into()));
        }
        let params = params![organisation, currency, order.0, month.0];
        self.db().write(SET_CAP, params).await.map(drop)
    }

    /// What organisations may spend, and have.
    pub async fn spend_caps(&self) -> Result<Vec<SpendCap>, Error> {
        let caps = self.db().read(CAPS, params![-micros(MONTH), None::<Uuid>, None::<Uuid>]).await?;
        let mut caps = caps.iter().map(cap).collect::<Result<Vec<_>, _>>()?;
        caps.sort_by(|a, b| (&a.organisation, a.organisation_id).cmp(&(&b.organisation, b.organisation_id)));
        Ok(caps)
    }

    /// Asks for the order of a print job, to be paid by this organisation. Asking for the same again changes nothing.
    pub async fn ask_order(&self, job: JobId, organisation: Uuid, ask: &OrderAsk) -> Result<Asked, Error> {
        let mut tx = self.db().begin().await?;
        let asked = grant(&mut tx, job, organisation, ask).await?;
        tx.commit().await?;
        self.go_on_to_order(job).await?;
        Ok(asked)
    }

    /// Refuses an order as [`Store::ask_order`] would, and asks for nothing. Answers the paper that is printed, where a
    /// map is.
    pub async fn check_order(
        &self,
        job: JobId,
        organisation: Uuid,
        ask: &OrderAsk,
    ) -> Result<Option<Value>, Error> {
        let mut tx = self.db().begin().await?;
        grant(&mut tx, job, organisation, ask).await?;
        check_fit(&tx.run(PAGE_OF_JOB, params![job]).await?, ask)
    }

    /// Refuses the order of a map that is not printed yet as [`Store::print_map`] would.
    pub(crate) async fn check_first_order(&self, map: &FrozenMap, order: &PaidOrder) -> Result<(), Error> {
        let PaidOrder { organisation, ask } = order;
        ask.check().map_err(Error::Order)?;
        check_page(ask.variant_id, &map.page()?).map_err(Error::Order)?;
        let mut tx = self.db().begin().await?;
        // It has no job yet.
        let cap = held_cap(&mut tx, *organisation, JobId(Uuid::nil())).await?;
        check_month(&cap, cap.cost_max(ask))
    }

    /// Sees to it that a job for which an order was asked goes on to being ordered. Doing it again changes nothing.
    pub async fn go_on_to_order(&self, job: JobId) -> Result<(), Error> {
        for _ in 0..TRIES_MAX {
            let rows = self.db().read(WANTS_ORDER, params![job]).await?;
            let Some(row) = rows.first() else { return Ok(()) };
            let state: State = row.name("state")?;
            if row.int("advance")? == 1 || matches!(state.as_str(), "ordering" | "ordered") {
                return Ok(());
            }
            if state.as_str() == "export_complete" {
                return self.advance(job).await.map(drop);
            }
            if !self.db().write(WILL_ORDER, params![job, state.as_str()]).await?.is_empty() {
                return Ok(());
            }
        }
        Err(Error::Busy(job))
    }

    /// Lets an order that is not confirmed cost this much. What people were to look at is settled by it.
    pub async fn raise_cost(&self, job: JobId, cost_max: Money) -> Result<(), Error> {
        let mut tx = self.db().begin().await?;
        raise(&mut tx, job, cost_max).await?;
        tx.commit().await
    }

    /// Refuses a higher cost as [`Store::raise_cost`] would, and changes nothing.
    pub async fn check_raise(&self, job: JobId, cost_max: Money) -> Result<(), Error> {
        raise(&mut self.db().begin().await?, job, cost_max).await
    }

    /// The order of a job, if one was asked for.
    pub async fn order_of(&self, job: JobId) -> Result<Option<OrderRecord>, Error> {
        self.db().read(ONE, params![job]).await?.first().map(record).transpose()
    }

    /// The orders of these jobs, as far as there are some.
    pub async fn orders_of(&self, jobs: &[JobId]) -> Result<HashMap<JobId, OrderRecord>, Error> {
        if jobs.is_empty() {
            return Ok(HashMap::new());
        }
        let rows = self.db().read(OF_JOBS, &[job_rows(jobs)]).await?;
        rows.iter().map(record).map(|order| order.map(|order| (order.job_id, order))).collect()
    }

    /// The record of an order, step by step.
    pub async fn order_steps(&self, job: JobId) -> Result<Vec<OrderStepRecord>, Error> {
        let read = |row: &Row| {
            let (step, fence) = (row.text("step")?, row.opt_int("fence")?);
            Ok(OrderStepRecord { step, fence, details: row.opt_json("details")?, at: row.moment("at")? })
        };
        self.db().read(STEPS, params![job]).await?.iter().map(read).collect()
    }

    /// The newest orders.
    pub async fn orders(&self, count_max: u16) -> Result<Vec<OrderRecord>, Error> {
        self.db().read(NEWEST, params![i64::from(count_max)]).await?.iter().map(record).collect()
    }

    /// The orders that a person should look at, those that wait longest first.
    pub async fn orders_to_look_at(&self, count_max: u16) -> Result<Vec<OrderRecord>, Error> {
        self.db().read(TO_LOOK_AT, params![i64::from(count_max)]).await?.iter().map(record).collect()
    }

    /// Placed orders about which the provider is to be asked now. They are due again after a while, or as soon as an
    /// event says so, also while they are being asked about.
    pub async fn take_orders_due(&self, count_max: u16, again: Duration) -> Result<Vec<OrderRecord>, Error> {
        let taken = self.db().write(TAKE_DUE, params![i64::from(count_max), micros(again)]).await?;
        let jobs = taken.iter().map(|row| row.job("job_id")).collect::<Result<Vec<_>, _>>()?;
        drop(taken);
        let mut orders = Vec::new();
        for job in jobs {
            orders.extend(self.order_of(job).await?);
        }
        Ok(orders)
    }

    /// Orders that were placed lately and are not delivered.
    pub async fn orders_placed(&self, within: Duration, count_max: u16) -> Result<Vec<OrderRecord>, Error> {
        let params = params![-micros(within), i64::from(count_max)];
        self.db().read(PLACED, params).await?.iter().map(record).collect()
    }

    /// Those of these external ids that are ours.
    pub async fn owned_external_ids(&self, external_ids: &[String]) -> Result<Vec<String>, Error> {
        let rows: Vec<Value> = external_ids.iter().map(|id| json!({ "external_id": id })).collect();
        let rows = Param::Rows(Value::Array(rows).to_string());
        self.db().read(OWNED, &[rows]).await?.iter().map(|row| row.text("external_id")).collect()
    }

    /// Exported prints, and of each whether an order was asked for and whether it is on its way to being placed.
    pub async fn prints_ready(&self, count_max: u16) -> Result<Vec<(JobId, bool, bool)>, Error> {
        let read = |row: &Row| Ok((row.job("id")?, row.int("asked")? == 1, row.int("advance")? == 1));
        self.db().read(READY, params![i64::from(count_max)]).await?.iter().map(read).collect()
    }

    /// Records how a placed order was found at the provider. One that arrived ends its job.
    pub async fn saw_order(&self, job: JobId, seen: &Seen) -> Result<(), Error> {
        let (reason, message) = match &seen.attention {
            Some((reason, message)) => (Some(reason.as_str()), Some(message.as_str())),
            None => (None, None),
        };
        let shipped = i64::from(seen.is_shipped);
        let params = params![job, seen.status.as_str(), shipped, reason, message, micros(seen.look_again)];
        self.db().write(SAW, params).await?;
        if !seen.is_delivered {
            return Ok(());
        }
        match self.delivered(job).await {
            // Somebody else was told of it first.
            Ok(_) | Err(Error::Refused { .. }) => self.db().write(LOOKED, params![job]).await.map(drop),
            Err(error) => Err(error),
        }
    }

    /// Takes note of an event that a provider told us of; false if it was told before. What it says is not believed:
    /// the order that it is about is looked at.
    pub async fn heard(&self, digest: &str, kind: &str, external_id: Option<&str>) -> Result<bool, Error> {
        let mut tx = self.db().begin().await?;
        if tx.run(HEARD, params![digest, kind, external_id]).await?.is_empty() {
            return Ok(false);
        }
        tx.run(LOOK_NOW, params![external_id.unwrap_or_default()]).await?;
        tx.commit().await?;
        Ok(true)
    }

    /// Forgets events that were told long ago.
    pub async fn forget_heard(&self, older_than: Duration) -> Result<(), Error> {
        self.db().write(FORGET_HEARD, params![-micros(older_than)]).await.map(drop)
    }
}

/// Writes down the order of a print job, within the limit of the organisation that pays.
pub(crate) async fn grant(
    tx: &mut Tx,
    job: JobId,
    organisation: Uuid,
    ask: &OrderAsk,
) -> Result<Asked, Error> {
    ask.check().map_err(Error::Order)?;
    let cap = held_cap(tx, organisation, job).await?;
    let wanted = json!(ask);
    if let Some(row) = tx.run(ASKED, params![job]).await?.first() {
        let is_same = row.json("asked")? == wanted && row.uuid("organisation_id")? == organisation;
        return if is_same { Ok(Asked::Existing) } else { Err(Error::OrderExists(job)) };
    }
    check_orderable(tx, job).await?;
    check_fit(&tx.run(PAGE_OF_JOB, params![job]).await?, ask)?;
    let cost_max = cap.cost_max(ask);
    check_month(&cap, cost_max)?;
    let external_id = job.0.simple().to_string();
    let params = params![job, organisation, external_id, wanted, cap.currency, cost_max.0];
    tx.run(ASK, params).await?;
    tx.run(STEP, params![job, None::<i64>, "asked", None::<Value>]).await?;
    Ok(Asked::New)
}

/// Sets aside anew what the order of a print that is tried again may cost, within the limit of the organisation that pays.
pub(crate) async fn renew(tx: &mut Tx, job: JobId) -> Result<(), Error> {
    let rows = tx.run(UNCONFIRMED, params![job]).await?;
    let Some(row) = rows.first() else { return Ok(()) };
    let cap = held_cap(tx, row.uuid("organisation_id")?, job).await?;
    let cost = row.opt_int("cost_cents")?.map(Money);
    // The limit of one order may have been lowered since it was asked for.
    let cost_max = Money(row.int("cost_max_cents")?).min(cap.order);
    if let Some(cost) = cost {
        check_one(&cap, cost)?;
    }
    check_month(&cap, cost.unwrap_or(cost_max))?;
    tx.run(RENEW, params![job, cost_max.0]).await.map(drop)
}

async fn raise(tx: &mut Tx, job: JobId, cost_max: Money) -> Result<(), Error> {
    let rows = tx.run(ASKED, params![job]).await?;
    let row = rows.first().ok_or_else(|| Error::NotFound(job.to_string()))?;
    let cap = held_cap(tx, row.uuid("organisation_id")?, job).await?;
    check_one(&cap, cost_max)?;
    check_month(&cap, cost_max)?;
    if tx.run(RAISE, params![job, cost_max.0]).await?.is_empty() {
        return Err(Error::Order("This order is confirmed already, at the cost it had.".into()));
    }
    Ok(())
}

/// What an organisation may spend, and has on other orders than this job's. Until the transaction ends, nobody else is
/// granted anything.
async fn held_cap(tx: &mut Tx, organisation: Uuid, job: JobId) -> Result<SpendCap, Error> {
    let none = || Error::SpendCap("This organisation has no limit for prints, so it can order none.".into());
    if tx.run(HOLD_CAP, params![organisation]).await?.is_empty() {
        return Err(none());
    }
    tx.run(CAPS, params![-micros(MONTH), job, organisation]).await?.first().map(cap).ok_or_else(none)?
}

fn check_one(cap: &SpendCap, cost: Money) -> Result<(), Error> {
    if cost <= cap.order {
        return Ok(());
    }
    let SpendCap { order, currency, .. } = cap;
    Err(Error::SpendCap(format!(
        "This organisation may spend {order} {currency} on one order, and this one may cost {cost}."
    )))
}

fn check_month(cap: &SpendCap, cost_max: Money) -> Result<(), Error> {
    if cap.spent.0 + cost_max.0 <= cap.month.0 {
        return Ok(());
    }
    Err(Error::SpendCap(format!(
        "This order may cost up to {cost_max} {}, and {} of {} for 30 days are spent or set aside.",
        cap.currency, cap.spent, cap.month
    )))
}

/// The page that is printed, if there is one in these rows, which must be that of the product.
fn check_fit(pages: &[Row], ask: &OrderAsk) -> Result<Option<Value>, Error> {
    let page = pages.first().map(|row| row.opt_json("page")).transpose()?.flatten();
    if let Some(page) = &page {
        check_page(ask.variant_id, page).map_err(Error::Order)?;
    }
    Ok(page)
}

async fn check_orderable(tx: &mut Tx, job: JobId) -> Result<(), Error> {
    let rows = tx.run(OF_JOB, params![job]).await?;
    let row = rows.first().ok_or_else(|| Error::NotFound(job.to_string()))?;
    let (pipeline, from): (Pipeline, State) = (row.name("pipeline")?, row.name("state")?);
    match from.as_str() {
        "pending_export" | "exporting" | "export_complete" | "ordering" => Ok(()),
        _ => Err(Refused { pipeline, from, event: Event::Advanced }.into()),
    }
}

async fn write_step(tx: &mut Tx, job: JobId, step: &OrderStep) -> Result<(), Error> {
    let rows = tx.run(PHASE, params![job]).await?;
    let row = rows.first().ok_or_else(|| Error::NotFound(job.to_string()))?;
    let phase: OrderPhase = row.name::<OrderPhase>("phase")?.after(step);
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
    let params =
        params![job, request, digest, phase.as_str(), number, cents, status, reason, step.name(), message];
    tx.run(RECORD, params).await.map(drop)
}

fn digest(request: &Value) -> String {
    hex::encode(Sha256::digest(request.to_string()))
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
        OrderStep::CreateSent | OrderStep::ConfirmSent | OrderStep::Unclear => None,
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

fn record(row: &Row) -> Result<OrderRecord, Error> {
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

fn cap(row: &Row) -> Result<SpendCap, Error> {
    Ok(SpendCap {
        organisation_id: row.uuid("organisation_id")?,
        organisation: row.opt_text("organisation")?,
        currency: row.text("currency")?,
        order: Money(row.int("order_cents")?),
        month: Money(row.int("month_cents")?),
        spent: Money(row.int("spent")?),
    })
}
