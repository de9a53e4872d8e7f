//! What organisations may spend on prints.

use super::orders::ASKED;
use super::prints::PaidOrder;
use crate::order::product::check_page;
use crate::request::{Money, OrderAsk};
use ode_job::{ErrorCode, JobId};
use ode_store::Error;
use ode_store::sql::{Row, Sql, Tx, micros, params};
use serde::Serialize;
use serde_json::Value;
use std::time::Duration;
use uuid::Uuid;

/// What an organisation spends is counted over this long.
const MONTH: Duration = Duration::from_hours(30 * 24);

/// What an organisation may spend on prints, and what it has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SpendCap {
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
const RAISE: &str = "UPDATE print_orders SET cost_max_cents = $2, attention = NULL, attention_message = NULL,
        attention_at = NULL, updated_at = {now}
    WHERE job_id = $1 AND phase NOT IN ('confirm_sent', 'confirmed') RETURNING job_id";
/// One that may be confirmed is counted whatever comes.
const UNCONFIRMED: &str = "SELECT organisation_id, cost_cents, cost_max_cents FROM print_orders
    WHERE job_id = $1 AND phase NOT IN ('confirm_sent', 'confirmed')";
const RENEW: &str = "UPDATE print_orders SET cost_max_cents = $2, attention = NULL, attention_message = NULL,
        attention_at = NULL, updated_at = {now} WHERE job_id = $1";

/// Sets what an organisation may spend.
pub async fn set_spend_cap(
    sql: Sql<'_>,
    organisation: Uuid,
    currency: &str,
    order: Money,
    month: Money,
) -> Result<(), Error> {
    if order.0 < 1 || month < order || currency.len() != 3 {
        let reason = "A limit is an amount for one order and at least as much for 30 days, in a currency of three letters.";
        return Err(Error::declined(ErrorCode::Invalid, reason));
    }
    let params = params![organisation, currency, order.0, month.0];
    sql.write(SET_CAP, params).await.map(drop)
}

/// What organisations may spend, and have.
pub async fn spend_caps(sql: Sql<'_>) -> Result<Vec<SpendCap>, Error> {
    let caps = sql.read(CAPS, params![-micros(MONTH), None::<Uuid>, None::<Uuid>]).await?;
    let mut caps = caps.iter().map(SpendCap::read).collect::<Result<Vec<_>, _>>()?;
    caps.sort_by(|a, b| (&a.organisation, a.organisation_id).cmp(&(&b.organisation, b.organisation_id)));
    Ok(caps)
}

/// Lets an order that is not confirmed cost this much. What people were to look at is settled by it.
pub async fn raise_cost(sql: Sql<'_>, job: JobId, cost_max: Money) -> Result<(), Error> {
    let mut tx = sql.begin().await?;
    raise(&mut tx, job, cost_max).await?;
    tx.commit().await
}

/// Refuses a higher cost as [`raise_cost`] would, and changes nothing.
pub async fn check_raise(sql: Sql<'_>, job: JobId, cost_max: Money) -> Result<(), Error> {
    raise(&mut sql.begin().await?, job, cost_max).await
}

async fn raise(tx: &mut Tx, job: JobId, cost_max: Money) -> Result<(), Error> {
    let rows = tx.run(ASKED, params![job]).await?;
    let row = rows.first().ok_or_else(|| Error::NotFound(job.to_string()))?;
    let cap = held_cap(tx, row.uuid("organisation_id")?, job).await?;
    cap.check_one(cost_max)?;
    cap.check_month(cost_max)?;
    if tx.run(RAISE, params![job, cost_max.0]).await?.is_empty() {
        let reason = "This order is confirmed already, at the cost it had.";
        return Err(Error::declined(ErrorCode::Invalid, reason));
    }
    Ok(())
}

/// Refuses the order of a map on this page that is not printed yet, as [`super::print_map`] would.
pub(super) async fn check_first_order(sql: Sql<'_>, page: &Value, order: &PaidOrder) -> Result<(), Error> {
    let PaidOrder { organisation, ask } = order;
    let refused = |reason| Error::declined(ErrorCode::Invalid, reason);
    ask.check().map_err(refused)?;
    check_page(ask.variant_id, page).map_err(refused)?;
    // It has no job yet.
    let cap = held_cap(&mut sql.begin().await?, *organisation, JobId(Uuid::nil())).await?;
    cap.check_month(cap.cost_max(ask))
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
        cap.check_one(cost)?;
    }
    cap.check_month(cost.unwrap_or(cost_max))?;
    tx.run(RENEW, params![job, cost_max.0]).await.map(drop)
}

/// What an organisation may spend, and has on other orders than this job's. Until the transaction ends, nobody else is
/// granted anything.
pub(super) async fn held_cap(tx: &mut Tx, organisation: Uuid, job: JobId) -> Result<SpendCap, Error> {
    let none = || above("This organisation has no limit for prints, so it can order none.".into());
    if tx.run(HOLD_CAP, params![organisation]).await?.is_empty() {
        return Err(none());
    }
    let rows = tx.run(CAPS, params![-micros(MONTH), job, organisation]).await?;
    SpendCap::read(rows.first().ok_or_else(none)?)
}

fn above(message: String) -> Error {
    let hint = " `ode print cap` shows the limits and changes them.";
    Error::Declined { code: ErrorCode::SpendCap, message, hint }
}

impl SpendCap {
    fn read(row: &Row) -> Result<Self, Error> {
        Ok(SpendCap {
            organisation_id: row.uuid("organisation_id")?,
            organisation: row.opt_text("organisation")?,
            currency: row.text("currency")?,
            order: Money(row.int("order_cents")?),
            month: Money(row.int("month_cents")?),
            spent: Money(row.int("spent")?),
        })
    }

    pub(super) fn cost_max(&self, ask: &OrderAsk) -> Money {
        ask.cost_max.unwrap_or(self.order).min(self.order)
    }

    fn check_one(&self, cost: Money) -> Result<(), Error> {
        if cost <= self.order {
            return Ok(());
        }
        let SpendCap { order, currency, .. } = self;
        Err(above(format!(
            "This organisation may spend {order} {currency} on one order, and this one may cost {cost}."
        )))
    }

    pub(super) fn check_month(&self, cost_max: Money) -> Result<(), Error> {
        if self.spent.0 + cost_max.0 <= self.month.0 {
            return Ok(());
        }
        let SpendCap { currency, spent, month, .. } = self;
        Err(above(format!(
            "This order may cost up to {cost_max} {currency}, and {spent} of {month} for 30 days are spent or set aside."
        )))
    }
}
