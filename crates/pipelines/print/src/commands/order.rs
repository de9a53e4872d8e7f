//! `ode print order`, `status`, `cap`, `webhook` and `reconcile`: orders of prints, seen to by the operator.

use crate::PrintfulArgs;
use crate::machine::ORDER_FAILED;
use crate::order::{Outcome, Pace, check_area};
use crate::request::{Money, OrderAsk};
use crate::sql::{self, Asked, OrderRecord, SpendCap};
use anyhow::Context as _;
use clap::Args;
use ode_cli::{self as output, Table};
use ode_job::{JobId, JobRef};
use ode_store::Store;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use uuid::Uuid;

/// Which print, for whom, and where it goes.
#[derive(Debug, Args)]
pub(super) struct Order {
    /// The print's reference (JOB_…) or id
    job: JobRef,
    /// The organisation that pays
    #[arg(long, value_name = "NAME", required_unless_present = "cost_max")]
    organisation: Option<String>,
    /// The order as JSON: recipient, variant_id, quantity; docs/orders.md shows one
    #[arg(long, value_name = "FILE", requires = "organisation")]
    order: Option<PathBuf>,
    /// What it may cost at most. Alone, it raises the limit of an order that was too dear, and tries it again
    #[arg(long, value_name = "AMOUNT")]
    cost_max: Option<Money>,
    /// Only check the order, and ask what it would cost
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    printful: PrintfulArgs,
}

/// Which orders to show.
#[derive(Debug, Args)]
pub(super) struct Status {
    /// One print's reference (JOB_…) or id; all of them without
    job: Option<JobRef>,
    /// Only those that a person should look at
    #[arg(long, conflicts_with = "job")]
    attention: bool,
    /// Print JSON, for programs
    #[arg(long)]
    json: bool,
}

/// What an organisation may spend.
#[derive(Debug, Args)]
pub(super) struct Cap {
    /// The organisation; all of them are shown without
    organisation: Option<String>,
    /// On one order at most
    #[arg(long, value_name = "AMOUNT", requires_all = ["organisation", "month"])]
    order: Option<Money>,
    /// In 30 days at most
    #[arg(long, value_name = "AMOUNT", requires = "order")]
    month: Option<Money>,
    /// The currency, as the provider charges it
    #[arg(long, value_name = "CODE", default_value = "USD")]
    currency: String,
    /// Print JSON, for programs
    #[arg(long)]
    json: bool,
}

/// Where events go.
#[derive(Debug, Args)]
pub(super) struct Webhook {
    /// The address as Printful reaches it, such as https://ode.example/webhooks/printful
    url: String,
    #[command(flatten)]
    printful: PrintfulArgs,
}

/// How both sides are compared.
#[derive(Debug, Args)]
pub(super) struct Reconcile {
    /// Print JSON, for programs
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    printful: PrintfulArgs,
}

/// Orders that are listed.
const LIST_MAX: u16 = 100;
/// An order is an address and a few numbers.
const ORDER_BYTES_MAX: u64 = 64 << 10;

pub(super) async fn order(store: &Store, args: Order) -> anyhow::Result<ExitCode> {
    let job = store.resolve(args.job).await?;
    let Some(organisation) = &args.organisation else {
        let cost_max = args.cost_max.context("Say which organisation pays, with --organisation.")?;
        return raise(store, job, cost_max, args.dry_run).await;
    };
    let organisation = paying_for(store, job, organisation).await?;
    let path = args.order.as_ref().context("Say what to order, with --order FILE.")?;
    let mut ask = read_order(path)?;
    ask.cost_max = args.cost_max.or(ask.cost_max);
    if args.dry_run {
        let page = sql::check_order(store.sql(), job, organisation, &ask).await?;
        return estimate(&ask, page.as_ref(), &args.printful).await;
    }
    let asked = sql::ask_order(store, job, organisation, &ask).await?;
    let word = if asked == Asked::New { "will be ordered" } else { "was asked for before; nothing changed" };
    output::line(format!("{}  {word}", job.reference()))?;
    Ok(ExitCode::SUCCESS)
}

/// Lets an order that failed cost more, and tries it again.
async fn raise(store: &Store, job: JobId, cost_max: Money, is_dry: bool) -> anyhow::Result<ExitCode> {
    let OrderRecord { state, .. } = order_of(store, job).await?;
    let reference = job.reference();
    anyhow::ensure!(
        state == ORDER_FAILED,
        "{reference} is {state}. Only an order that failed is tried again; `ode print status {reference}` shows how it stands."
    );
    if is_dry {
        sql::check_raise(store.sql(), job, cost_max).await?;
        output::line(format!("{reference}  could cost {cost_max} and be tried again. Nothing was changed."))?;
        return Ok(ExitCode::SUCCESS);
    }
    sql::raise_cost(store.sql(), job, cost_max).await?;
    let state = store.retry(job).await?;
    output::line(format!("{reference}  {state}, may cost {cost_max}"))?;
    Ok(ExitCode::SUCCESS)
}

/// The organisation of this name, if the print is theirs or nobody's.
async fn paying_for(store: &Store, job: JobId, name: &str) -> anyhow::Result<Uuid> {
    let organisation = organisation_id(store, name).await?;
    let job = store.job(JobRef::Id(job)).await?;
    let owner = job.organisation_id.or(job.user_id).or(job.session_id);
    anyhow::ensure!(
        owner.is_none_or(|owner| owner == organisation),
        "{} is not a print of {name}. Name the organisation that it belongs to.",
        job.reference
    );
    Ok(organisation)
}

/// The order of a print.
async fn order_of(store: &Store, job: JobId) -> anyhow::Result<OrderRecord> {
    let order = sql::order_of(store.sql(), job).await?;
    order.context("No order was asked for with this print. `ode print order` asks for one.")
}

/// What a file says is to be ordered.
pub(super) fn read_order(path: &Path) -> anyhow::Result<OrderAsk> {
    let unreadable = || format!("{} cannot be read. Check the path", path.display());
    let length = std::fs::metadata(path).with_context(unreadable)?.len();
    anyhow::ensure!(length <= ORDER_BYTES_MAX, "{} is too long for an order.", path.display());
    let text = std::fs::read(path).with_context(unreadable)?;
    let ask: OrderAsk =
        serde_json::from_slice(&text).with_context(|| format!("{} is no order", path.display()))?;
    ask.check().map_err(|reason| anyhow::anyhow!("{} cannot be ordered: {reason}", path.display()))?;
    Ok(ask)
}

async fn estimate(ask: &OrderAsk, page: Option<&Value>, printful: &PrintfulArgs) -> anyhow::Result<ExitCode> {
    let Some(provider) = printful.provider(Pace::default())? else {
        output::tell(
            "The order is well formed. What it costs is known to Printful, for which there is no token here.",
        );
        return Ok(ExitCode::SUCCESS);
    };
    if let Some(page) = page {
        let product = match provider.client.product_of(ask.variant_id).await {
            Outcome::Refused(refusal) if refusal.is_missing() => {
                anyhow::bail!(
                    "Printful has no variant {}. Look its number up in its catalogue.",
                    ask.variant_id
                )
            }
            outcome => told(outcome)?,
        };
        let area = told(provider.client.print_area(product, ask.variant_id).await)?;
        let area = area.context("This variant is not printed from one picture. Order a poster.")?;
        check_area(ask.variant_id, page, &area).map_err(anyhow::Error::msg)?;
    }
    // Any picture will do: posters cost what their size costs.
    let files = json!([{ "type": "default", "url": "https://example.com/map.png" }]);
    let request = json!({
        "shipping": ask.shipping, "recipient": ask.recipient,
        "items": [{ "variant_id": ask.variant_id, "quantity": ask.quantity, "files": files }],
    });
    let cost = told(provider.client.estimate(&request).await)?;
    if let Some(cost_max) = ask.cost_max.filter(|cost_max| cost > *cost_max) {
        anyhow::bail!("It would cost {cost}, and may cost {cost_max}. Allow more with --cost-max.");
    }
    output::line(format!("It would cost {cost}. Nothing was ordered."))?;
    Ok(ExitCode::SUCCESS)
}

/// What Printful answers to a question about an order that is not placed.
fn told<T>(outcome: Outcome<T>) -> anyhow::Result<T> {
    match outcome {
        Outcome::Done(told) => Ok(told),
        Outcome::Refused(refusal) => anyhow::bail!("Printful would refuse it: {refusal}."),
        Outcome::NotExecuted { why, .. } | Outcome::Unknown { why } => {
            anyhow::bail!("Printful does not say now whether it can be ordered: {why}. Try again later.")
        }
    }
}

pub(super) async fn organisation_id(store: &Store, name: &str) -> anyhow::Result<Uuid> {
    let known = store.organisation(name).await?;
    known.with_context(|| {
        format!("There is no organisation {name}. `ode keys create --organisation {name}` makes one.")
    })
}

pub(super) async fn status(store: &Store, args: &Status) -> anyhow::Result<ExitCode> {
    if let Some(name) = args.job {
        return one(store, name, args.json).await;
    }
    let orders = if args.attention {
        sql::orders_to_look_at(store.sql(), LIST_MAX).await?
    } else {
        sql::orders(store.sql(), LIST_MAX).await?
    };
    if args.json {
        output::json(&orders)?;
        return Ok(ExitCode::SUCCESS);
    }
    if orders.is_empty() {
        output::tell(if args.attention { "Nothing needs attention." } else { "No orders yet." });
        return Ok(ExitCode::SUCCESS);
    }
    let mut table = Table::new(["REFERENCE", "STATE", "PHASE", "ORDER", "COST", "ASKED FOR", "ATTENTION"]);
    for order in &orders {
        table.row([
            order.job_id.reference().into(),
            order.state.as_str().into(),
            order.phase.as_str().into(),
            order.provider_order_id.map(|id| id.to_string()).unwrap_or_default().into(),
            cost(order).into(),
            output::ago(order.created_at).into(),
            order.attention_message.clone().unwrap_or_default().into(),
        ]);
    }
    table.print()?;
    Ok(ExitCode::SUCCESS)
}

fn cost(order: &OrderRecord) -> String {
    match order.cost {
        Some(cost) => format!("{cost} {}", order.currency),
        None => format!("up to {} {}", order.cost_max, order.currency),
    }
}

async fn one(store: &Store, name: JobRef, is_json: bool) -> anyhow::Result<ExitCode> {
    let job = store.resolve(name).await?;
    let order = order_of(store, job).await?;
    let steps = sql::order_steps(store.sql(), job).await?;
    if is_json {
        let mut told = json!(order);
        told["steps"] = json!(steps);
        output::json(&told)?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut table = Table::new(["job", &job.to_string()]);
    let mut line = |name: &str, value: Option<String>| {
        if let Some(value) = value {
            table.row([name.into(), value.into()]);
        }
    };
    line("state", Some(order.state.to_string()));
    line("phase", Some(order.phase.to_string()));
    line("external id", Some(order.external_id.clone()));
    line("order", order.provider_order_id.map(|id| id.to_string()));
    line("provider says", order.provider_status.clone());
    line("cost", Some(cost(&order)));
    line("attention", order.attention_message.clone());
    line("asked for", Some(output::moment(order.created_at)));
    line("placed", order.placed_at.map(output::moment));
    line("shipped", order.shipped_at.map(output::moment));
    line("delivered", order.delivered_at.map(output::moment));
    for step in &steps {
        let details = step.details.as_ref().map(|details| format!(" {details}")).unwrap_or_default();
        let fence = step.fence.map(|fence| format!(" (fence {fence})")).unwrap_or_default();
        line("step", Some(format!("{}  {}{fence}{details}", output::moment(step.at), step.step)));
    }
    table.print()?;
    Ok(ExitCode::SUCCESS)
}

pub(super) async fn cap(store: &Store, args: &Cap) -> anyhow::Result<ExitCode> {
    if let (Some(name), Some(order), Some(month)) = (&args.organisation, args.order, args.month) {
        let organisation = organisation_id(store, name).await?;
        sql::set_spend_cap(store.sql(), organisation, &args.currency, order, month).await?;
    }
    let mut caps = sql::spend_caps(store.sql()).await?;
    if let Some(name) = &args.organisation {
        let organisation = organisation_id(store, name).await?;
        caps.retain(|cap| cap.organisation_id == organisation);
    }
    if args.json {
        output::json(&caps)?;
        return Ok(ExitCode::SUCCESS);
    }
    if caps.is_empty() {
        output::tell(
            "No limit is set, so nothing can be ordered. `ode print cap NAME --order 60.00 --month 600.00` sets one.",
        );
        return Ok(ExitCode::SUCCESS);
    }
    let mut table = Table::new(["ORGANISATION", "ONE ORDER", "30 DAYS", "SPENT"]);
    for SpendCap { organisation_id, organisation, currency, order, month, spent } in &caps {
        let amount = |money: &Money| format!("{money} {currency}");
        table.row([
            organisation.clone().unwrap_or_else(|| organisation_id.to_string()).into(),
            amount(order).into(),
            amount(month).into(),
            amount(spent).into(),
        ]);
    }
    table.print()?;
    Ok(ExitCode::SUCCESS)
}

pub(super) async fn webhook(args: &Webhook) -> anyhow::Result<ExitCode> {
    let provider = args.printful.needed()?;
    match provider.client.set_webhook(&args.url).await {
        Outcome::Done(secret) => {
            output::line(secret)?;
            output::tell("Set this in ODE_PRINTFUL_WEBHOOK_SECRET of the web side; it is shown this once.");
            Ok(ExitCode::SUCCESS)
        }
        Outcome::Refused(refusal) => anyhow::bail!("Printful refuses: {refusal}."),
        Outcome::NotExecuted { why, .. } | Outcome::Unknown { why } => {
            anyhow::bail!(
                "Printful did not answer clearly: {why}. Run it again; the last key is the one that counts."
            )
        }
    }
}

pub(super) async fn reconcile(store: Store, args: &Reconcile) -> anyhow::Result<ExitCode> {
    let found = crate::reconcile(&store, &args.printful.needed()?).await?;
    if args.json {
        output::json(&found)?;
    } else if found.is_empty() {
        output::tell("Both sides agree.");
    } else {
        found.iter().try_for_each(output::line)?;
    }
    Ok(if found.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
