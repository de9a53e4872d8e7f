//! The print provider, as flags of the commands that work with it; and following its orders beside everything else:
//! asking how they stand, and comparing both sides once a day, by one process at a time.

use anyhow::Context as _;
use clap::Args;
use jiff::Timestamp;
use ode_http::ExportLinks;
use ode_job::order::Attention;
use ode_job::{BreakerPolicy, RetryPolicy, WorkerId};
use ode_print::order::{
    CALL_TIMEOUT, OrderHandler, OrderPolicy, Outcome, PAGE, PRINTFUL_URL, PROVIDER, Pace, Printful,
    PrintfulSettings, Provider, RemoteOrder, Status,
};
use ode_store::{OrderRecord, Seen, Store};
use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinHandle;
use uuid::Uuid;

/// Where prints are ordered.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Orders")]
pub(crate) struct PrintfulArgs {
    /// Order prints at this Printful; its token is read from ODE_PRINTFUL_TOKEN, and nothing is ordered without
    #[arg(long, env = "ODE_PRINTFUL_URL", value_name = "URL", default_value = PRINTFUL_URL, hide_short_help = true)]
    printful_url: String,
    /// The store there, where the token is for more than one
    #[arg(long, env = "ODE_PRINTFUL_STORE", value_name = "ID", hide_short_help = true)]
    printful_store: Option<String>,
    /// Seconds that one call there may take
    #[arg(long, env = "ODE_PRINTFUL_TIMEOUT", value_name = "SECONDS", default_value_t = CALL_TIMEOUT.as_secs_f64(),
        hide_short_help = true)]
    printful_timeout: f64,
    /// Calls there in a minute, of all processes together
    #[arg(long, env = "ODE_PRINTFUL_RATE", value_name = "N", default_value_t = Pace::default().calls_a_minute,
        value_parser = clap::value_parser!(u32).range(1..), hide_short_help = true)]
    printful_rate: u32,
}

/// The token is never an argument: other users of the machine could read it.
const TOKEN: &str = "ODE_PRINTFUL_TOKEN";
/// A lease lasts five minutes, and an attempt must hear of every call in time.
const TIMEOUT_MAX: f64 = 60.0;

impl PrintfulArgs {
    /// The provider, if there is a token for it.
    pub(super) fn provider(&self, pace: Pace) -> anyhow::Result<Option<Provider>> {
        let token = std::env::var(TOKEN).ok().filter(|token| !token.is_empty());
        let Some(token) = token else { return Ok(None) };
        let seconds = self.printful_timeout;
        anyhow::ensure!(
            seconds > 0.0 && seconds <= TIMEOUT_MAX,
            "--printful-timeout is {seconds}. Give a number of seconds up to {TIMEOUT_MAX}."
        );
        let settings = PrintfulSettings {
            url: self.printful_url.clone(),
            token,
            store: self.printful_store.clone(),
            timeout: Duration::from_secs_f64(seconds),
        };
        let client = Printful::new(&settings).context("--printful-url cannot be used")?;
        Ok(Some(Provider::new(client, Pace { calls_a_minute: self.printful_rate, ..pace })))
    }

    /// The same for commands that can do nothing without.
    pub(super) fn needed(&self) -> anyhow::Result<Provider> {
        let none = || format!("There is no token for Printful. Set it in {TOKEN}.");
        self.provider(Pace::default())?.with_context(none)
    }
}

/// How orders are placed and followed by a worker.
#[derive(Debug, Args)]
pub(crate) struct OrderArgs {
    #[command(flatten)]
    printful: PrintfulArgs,
    /// Where Printful fetches exported maps: the web side's address as it is reached from outside
    #[arg(
        long,
        env = "ODE_EXPORT_BASE",
        value_name = "URL",
        help_heading = "Orders",
        hide_short_help = true
    )]
    export_base: Option<String>,
    /// Seconds after which Printful is asked again how an order stands; its events only make that sooner
    #[arg(
        long,
        env = "ODE_ORDER_LOOK",
        value_name = "SECONDS",
        default_value_t = 3600.0,
        hide_short_help = true
    )]
    order_look: f64,
}

/// After a refused token the queue rests for so many of the shortest waits: a minute.
const REFUSED_BASES: u32 = 12;
/// A link to an export is good for as long as orders may be tried and files fetched again.
const LINK_LIFETIME: Duration = Duration::from_hours(24 * 90);

impl OrderArgs {
    /// The handler of orders, and what follows them; nothing where there is no provider.
    pub(super) async fn start(
        &self,
        store: &Store,
        retry: RetryPolicy,
        breaker: BreakerPolicy,
    ) -> anyhow::Result<Option<(OrderHandler, Following)>> {
        let pace = Pace { breaker, refused_pause: retry.base * REFUSED_BASES, ..Pace::default() };
        let Some(provider) = self.printful.provider(pace)? else { return Ok(None) };
        let base = self.export_base.as_deref().map(|base| base.trim_end_matches('/'));
        let base = base.filter(|base| base.starts_with("https://") || base.starts_with("http://"));
        let base = base.with_context(|| {
            format!("{TOKEN} is set, but not where Printful fetches exported maps. Say so with --export-base, such as https://ode.example.")
        })?;
        let links = ExportLinks::new(store.shared_secret("web").await?, base.to_owned());
        let provider = Arc::new(provider);
        let policy = OrderPolicy {
            doubt_base: retry.base,
            provider_pause: retry.base * 2,
            retry,
            ..OrderPolicy::default()
        };
        let url = Arc::new(move |sha256: &str| links.url(sha256, LINK_LIFETIME));
        let handler = OrderHandler::new(provider.clone(), url, policy);
        let look_again = Duration::try_from_secs_f64(self.order_look.max(0.1)).unwrap_or(LOOK_AGAIN);
        let follower = Follower { store: store.clone(), provider, me: WorkerId(Uuid::new_v4()), look_again };
        Ok(Some((handler, Following { task: tokio::spawn(follower.run()) })))
    }
}

/// What runs beside a worker.
pub(super) struct Following {
    task: JoinHandle<()>,
}

impl Following {
    /// Stops at once; whoever comes next goes on.
    pub(super) async fn stop(self) {
        self.task.abort();
        // Aborted on purpose; there is nothing to learn from how it ended.
        let _ = self.task.await;
    }
}

const RECONCILE: &str = "reconcile";
/// How often it is looked which orders are due.
const LOOK_EVERY: Duration = Duration::from_secs(2);
/// How often an order is asked about where nothing else is said.
const LOOK_AGAIN: Duration = Duration::from_hours(1);
/// Orders asked about in one go.
const BATCH: u16 = 20;
const DAY: Duration = Duration::from_hours(24);
/// Events are kept to be known again for this long: longer than any is repeated.
const HEARD_FOR: Duration = Duration::from_hours(24 * 90);
/// Orders older than this are not compared any more.
const RECONCILED_FOR: Duration = Duration::from_hours(24 * 60);
/// Pages of the provider's list that are read, at most.
const PAGES_MAX: usize = 100;
/// Orders of ours that are compared, at most.
const ORDERS_MAX: u16 = 10_000;

/// Asks the provider how placed orders stand.
pub(super) struct Follower {
    store: Store,
    provider: Arc<Provider>,
    me: WorkerId,
    look_again: Duration,
}

impl Follower {
    /// One for a single command.
    pub(super) fn new(store: Store, provider: Provider) -> Self {
        Follower { store, provider: Arc::new(provider), me: WorkerId(Uuid::new_v4()), look_again: LOOK_AGAIN }
    }

    async fn run(self) {
        loop {
            if let Err(error) = self.look().await {
                tracing::warn!("orders could not be followed: {error:#}");
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    async fn look(&self) -> anyhow::Result<()> {
        // Each order is taken by one process; the others find it due no more.
        for order in &self.store.take_orders_due(BATCH, self.look_again).await? {
            self.ask(order).await?;
        }
        if self.store.take_chore(RECONCILE, self.me, DAY).await? {
            let found = self.reconcile().await?;
            found.iter().for_each(|line| tracing::warn!("orders do not agree: {line}"));
            self.store.end_chore(RECONCILE, self.me).await?;
        }
        Ok(())
    }

    /// Asks how one order stands, and records it.
    pub(super) async fn ask(&self, order: &OrderRecord) -> anyhow::Result<()> {
        let seen = match self.call(self.provider.client.find(&order.external_id)).await? {
            Outcome::Done(found) => self.understand(order, &found).await?,
            Outcome::Refused(refusal) if refusal.is_missing() => Some(missing(order, self.look_again)),
            Outcome::Refused(_) | Outcome::NotExecuted { .. } | Outcome::Unknown { .. } => None,
        };
        match seen {
            Some(seen) => self.store.saw_order(order.job_id, &seen).await?,
            None => tracing::debug!("how order {} stands is not known yet", order.external_id),
        }
        Ok(())
    }

    async fn understand(&self, order: &OrderRecord, found: &RemoteOrder) -> anyhow::Result<Option<Seen>> {
        if found.status == Status::Draft {
            return self.confirm_again(order, found).await.map(Some);
        }
        let shipments = self.call(self.provider.client.shipments(found.id)).await?;
        let Outcome::Done(shipments) = shipments else { return Ok(None) };
        let fate = found.fate(&shipments);
        Ok(Some(Seen {
            status: found.status_word.clone(),
            is_shipped: fate.is_shipped,
            is_delivered: fate.is_delivered,
            attention: fate.attention,
            look_again: self.look_again,
        }))
    }

    /// An order that was confirmed is a draft again, as happens after a hold. It was compared and paid for as it is, so
    /// it is confirmed again; one that was changed meanwhile is for a person to look at.
    async fn confirm_again(&self, order: &OrderRecord, found: &RemoteOrder) -> anyhow::Result<Seen> {
        let request = order.request.as_ref();
        let difference = request.and_then(|request| found.difference(request));
        let is_dearer = found.cost.is_none_or(|cost| cost > order.cost_max);
        let attention = match difference {
            Some(difference) => Some((
                Attention::Mismatch,
                format!("Order {} is a draft again and its {difference} was changed.", found.id),
            )),
            None if is_dearer => Some((
                Attention::CostAboveCap,
                format!("Order {} is a draft again and costs more than it may.", found.id),
            )),
            None => {
                self.call(self.provider.client.confirm(&order.external_id)).await?;
                None
            }
        };
        let status = found.status_word.clone();
        let look_again = self.look_again.min(LOOK_EVERY);
        Ok(Seen { status, is_shipped: false, is_delivered: false, attention, look_again })
    }

    /// Compares both sides: what the provider was made to do that we know nothing of, and what we know that it does not.
    pub(super) async fn reconcile(&self) -> anyhow::Result<Vec<String>> {
        self.store.forget_heard(HEARD_FOR).await?;
        let (mut found, mut known) = (Vec::new(), HashSet::new());
        for page in 0..PAGES_MAX {
            let orders = self.call(self.provider.client.list(page * PAGE)).await?;
            let Outcome::Done(orders) = orders else {
                anyhow::bail!("The provider does not list its orders now. Try again later.");
            };
            let placed = orders.iter().filter(|order| order.status == Status::Placed);
            let ids: Vec<String> = placed.clone().filter_map(|order| order.external_id.clone()).collect();
            let ours: HashSet<String> = self.store.owned_external_ids(&ids).await?.into_iter().collect();
            for order in placed {
                let name = order.external_id.clone().unwrap_or_default();
                if !ours.contains(&name) {
                    let number = order.id;
                    found.push(format!("order {number} ({name}) is confirmed there and no job here owns it"));
                }
                known.insert(order.id);
            }
            if orders.len() < PAGE {
                break;
            }
        }
        for order in self.store.orders_placed(RECONCILED_FOR, ORDERS_MAX).await? {
            let is_there = order.provider_order_id.is_some_and(|number| known.contains(&number));
            if !is_there {
                found.push(format!("job {} is ordered here and not confirmed there", order.job_id));
                self.ask(&order).await?;
            }
        }
        Ok(found)
    }

    /// Makes a call when it is our turn, and remembers how it went.
    async fn call<T>(&self, call: impl Future<Output = Outcome<T>>) -> anyhow::Result<Outcome<T>> {
        while let Some(wait) = self.store.take_turn(PROVIDER, self.provider.pace.calls_a_minute).await? {
            tokio::time::sleep(wait).await;
        }
        let outcome = call.await;
        self.provider.learn(&outcome);
        Ok(outcome)
    }
}

/// An order that was placed and is not found: it may only not be shown for a moment, right after it was placed.
fn missing(order: &OrderRecord, look_again: Duration) -> Seen {
    const FRESH: Duration = Duration::from_mins(10);
    let age = order.placed_at.map(|at| Timestamp::now().duration_since(at));
    let is_fresh = age.and_then(|age| Duration::try_from(age).ok()).is_some_and(|age| age < FRESH);
    let message = "The provider does not find this order any more. Look for it in its dashboard.";
    let attention = (!is_fresh).then(|| (Attention::Missing, message.to_owned()));
    let status = order.provider_status.clone().unwrap_or_default();
    Seen { status, is_shipped: false, is_delivered: false, attention, look_again }
}
