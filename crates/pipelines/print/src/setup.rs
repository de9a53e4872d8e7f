//! How the print pipeline is set up: the provider and its orders, as flags of the commands that work with them, and the secrets
//! that are read from the environment.

use crate::chores::{FollowOrders, LOOK_AGAIN, Reconcile};
use crate::order::{
    CALL_TIMEOUT, OrderHandler, OrderPolicy, PRINTFUL_URL, Pace, Printful, PrintfulError, PrintfulSettings,
    Provider,
};
use crate::routes::ExportLinks;
use crate::{Drawer, pool_options};
use clap::Args;
use ode_child::{PoolOptions, Sandbox};
use ode_job::{BreakerPolicy, RetryPolicy};
use ode_store::Store;
use ode_worker::Chore;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

/// What keeps the print pipeline from being set up.
#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    /// A call would take longer than any lease.
    #[error("--printful-timeout is {0}. Give a number of seconds up to {TIMEOUT_MAX}.")]
    Timeout(f64),
    /// Printful's address or its token cannot be used.
    #[error("--printful-url cannot be used")]
    Printful(#[source] PrintfulError),
    /// There is no token, and nothing can be done without.
    #[error("There is no token for Printful. Set it in {TOKEN}.")]
    NoToken,
    /// There is a token, and Printful could not fetch what it is to print.
    #[error(
        "{TOKEN} is set, but not where Printful fetches exported maps. Say so with --export-base, such as https://ode.example."
    )]
    NoExportBase,
    /// The key of Printful's events is none.
    #[error("{HOOK_SECRET} is not hexadecimal. Copy what `ode print webhook` printed.")]
    HookSecret,
    /// The database could not be asked.
    #[error(transparent)]
    Store(#[from] ode_store::Error),
}

/// Where prints are ordered.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Orders")]
pub struct PrintfulArgs {
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
    pub fn provider(&self, pace: Pace) -> Result<Option<Provider>, SetupError> {
        let token = std::env::var(TOKEN).ok().filter(|token| !token.is_empty());
        let Some(token) = token else { return Ok(None) };
        let seconds = self.printful_timeout;
        if !(seconds > 0.0 && seconds <= TIMEOUT_MAX) {
            return Err(SetupError::Timeout(seconds));
        }
        let settings = PrintfulSettings {
            url: self.printful_url.clone(),
            token,
            store: self.printful_store.clone(),
            timeout: Duration::from_secs_f64(seconds),
        };
        let client = Printful::new(&settings).map_err(SetupError::Printful)?;
        Ok(Some(Provider::new(client, Pace { calls_a_minute: self.printful_rate, ..pace })))
    }

    /// The same for commands that can do nothing without.
    pub fn needed(&self) -> Result<Provider, SetupError> {
        self.provider(Pace::default())?.ok_or(SetupError::NoToken)
    }
}

/// Options of workers.
#[derive(Debug, Args)]
#[group(skip)]
#[command(next_help_heading = "Work")]
pub(crate) struct WorkArgs {
    /// Maps that are drawn for print at a time
    #[arg(long, env = "ODE_MAPS_AT_ONCE", value_name = "N", default_value = "2")]
    pub(crate) maps_at_once: NonZeroUsize,
    #[command(flatten)]
    pub(crate) orders: OrderArgs,
}

/// A drawer, ready to work; `at_once` maps at a time, or one for each processor.
pub fn drawer(at_once: Option<usize>, sandbox: Sandbox) -> Result<Drawer, ode_child::Error> {
    let options = PoolOptions { sandbox, ..pool_options() };
    Drawer::new(PoolOptions { at_once: at_once.unwrap_or(options.at_once), ..options })
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
    /// The handler of orders, and the chores of following them; nothing where there is no provider.
    pub(crate) async fn start(
        &self,
        store: &Store,
        retry: RetryPolicy,
        breaker: BreakerPolicy,
    ) -> Result<Option<(OrderHandler, Vec<Arc<dyn Chore>>)>, SetupError> {
        let pace = Pace { breaker, refused_pause: retry.base * REFUSED_BASES, ..Pace::default() };
        let Some(provider) = self.printful.provider(pace)? else { return Ok(None) };
        let base = self.export_base.as_deref().map(|base| base.trim_end_matches('/'));
        let base = base.filter(|base| base.starts_with("https://") || base.starts_with("http://"));
        let base = base.ok_or(SetupError::NoExportBase)?;
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
        let follow = FollowOrders::new(provider.clone(), policy, look_again);
        let chores: Vec<Arc<dyn Chore>> = vec![Arc::new(follow), Arc::new(Reconcile::new(provider))];
        Ok(Some((handler, chores)))
    }
}

/// The key under which Printful signs its events. Never an argument: other users of the machine could read it.
const HOOK_SECRET: &str = "ODE_PRINTFUL_WEBHOOK_SECRET";

pub(crate) fn hook_secret() -> Result<Option<Vec<u8>>, SetupError> {
    let text = std::env::var(HOOK_SECRET).ok().filter(|text| !text.is_empty());
    text.map(|text| hex::decode(text).map_err(|_| SetupError::HookSecret)).transpose()
}
