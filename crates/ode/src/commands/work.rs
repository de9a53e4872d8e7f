//! How jobs are worked on, as flags of the commands that do: where documents are converted, how often and when they are
//! tried again, and how long things are kept.

use super::gateway;
use super::keep::Keep;
use super::opinions::Opinions;
use crate::config::Settings;
use anyhow::Context as _;
use clap::Args;
use ode_html::Html;
use ode_job::{BreakerPolicy, RetryPolicy};
use ode_pipeline::Pipeline;
use ode_print::{ExportHandler, OrderArgs, Print};
use ode_script::Scripts;
use ode_store::Store;
use ode_xml::{ClientLimits, GatewayClient, Gateways, Route, Xml, XmlHandler};
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

/// How jobs are worked on.
#[derive(Debug, Args)]
#[command(next_help_heading = "Work")]
pub(crate) struct Work {
    /// Documents that are converted at a time
    #[arg(long, env = "ODE_JOBS_AT_ONCE", value_name = "N", default_value = "3")]
    jobs_at_once: NonZeroUsize,
    /// Maps that are drawn for print at a time
    #[arg(long, env = "ODE_MAPS_AT_ONCE", value_name = "N", default_value = "2")]
    maps_at_once: NonZeroUsize,
    #[command(flatten)]
    html: ode_html::WorkArgs,
    #[command(flatten)]
    scripts: ode_script::WorkArgs,
    /// Convert at the gateway with this address rather than here, such as http://gateway:8000
    #[arg(long, env = "ODE_GATEWAY_URL", value_name = "URL", hide_env_values = true)]
    gateway_url: Option<String>,
    /// Convert at this one while the first is away
    #[arg(
        long,
        env = "ODE_GATEWAY_BACKUP",
        value_name = "URL",
        requires = "gateway_url",
        hide_env_values = true
    )]
    gateway_backup: Option<String>,
    /// Seconds that a gateway may take for one document
    #[arg(long, env = "ODE_GATEWAY_TIMEOUT", value_name = "SECONDS", default_value = "180", value_parser = seconds)]
    gateway_timeout: Duration,
    /// Seconds that jobs wait for a gateway that is away before they fail
    #[arg(long, env = "ODE_GATEWAY_AWAY_MAX", value_name = "SECONDS", default_value = "3600", value_parser = seconds)]
    gateway_away_max: Duration,
    /// Calls within five minutes, half of them failed, from which on a gateway counts as away
    #[arg(long, env = "ODE_BREAKER_CALLS", value_name = "N", default_value_t = BreakerPolicy::FEW_CALLS.calls_min,
        value_parser = clap::value_parser!(u32).range(1..=10_000), hide_short_help = true)]
    breaker_calls: u32,
    /// Seconds after which a gateway that is away is asked again
    #[arg(long, env = "ODE_BREAKER_COOL_DOWN", value_name = "SECONDS", default_value = "30",
        value_parser = seconds, hide_short_help = true)]
    breaker_cool_down: Duration,
    /// Seconds before a message that did not arrive is sent again; each later pause is four times as long
    #[arg(long, env = "ODE_WEBHOOK_PAUSE", value_name = "SECONDS", default_value = "5", value_parser = seconds,
        hide_short_help = true)]
    webhook_pause: Duration,
    /// How often a document is tried again after something failed that may pass
    #[arg(long, env = "ODE_RETRIES", value_name = "N", default_value_t = 3,
        value_parser = clap::value_parser!(u32).range(0..=100), hide_short_help = true)]
    retries: u32,
    /// Seconds before the first of these; each later one waits twice as long, and up to this much more by chance
    #[arg(long, env = "ODE_RETRY_BASE", value_name = "SECONDS", default_value = "5", value_parser = seconds,
        hide_short_help = true)]
    retry_base: Duration,
    #[command(flatten)]
    conversions: gateway::Conversions,
    #[command(flatten)]
    orders: OrderArgs,
    #[command(flatten)]
    pub(super) opinions: Opinions,
    #[command(flatten)]
    pub(super) keep: Keep,
}

impl Work {
    /// The pipelines, ready to work.
    pub(super) async fn pipelines(
        &self,
        settings: &Settings,
        store: &Store,
    ) -> anyhow::Result<Vec<Arc<dyn Pipeline>>> {
        let at_once = self.jobs_at_once.get();
        let route = match &self.gateway_url {
            None => Route::BuiltIn(Arc::new(gateway::converter(&self.conversions, at_once).await?)),
            Some(url) => Route::Remote(Arc::new(self.gateways(url)?)),
        };
        let retry = RetryPolicy {
            base: self.retry_base,
            jitter_max: self.retry_base,
            retries_max: self.retries,
            ..RetryPolicy::default()
        };
        let limits = ClientLimits { total: self.gateway_timeout, ..ClientLimits::default() };
        let xml = XmlHandler::new(route, at_once).with_retry(retry).with_call_timeout(limits.total);
        let xml = Xml { handler: Some(xml), ..Xml::default() };
        let html = Html { handler: Some(self.html.handler(retry)?), ..Html::default() };
        let at_once = self.maps_at_once.get();
        let drawer = super::drawing::drawer(Some(at_once), self.conversions.sandbox())?;
        let export = ExportHandler::new(drawer, at_once, retry);
        let (order, following) = self.orders.start(store, retry, self.breaker()).await?.unzip();
        let print = Print { export: Some(export), order, chores: following.unwrap_or_default(), site: None };
        let scripts = Scripts::worker(&self.scripts, &settings.script_folders(), store).await?;
        Ok(vec![Arc::new(xml), Arc::new(html), Arc::new(print), Arc::new(scripts)])
    }

    /// What sends messages about jobs that ended.
    pub(super) fn webhooks(&self, settings: &Settings, store: Store) -> anyhow::Result<ode_webhooks::Sender> {
        let guard = settings.webhook_guard()?;
        let address = |pipeline, path| ode_webhooks::JobAddress { pipeline, path };
        let addresses = vec![
            address(ode_html::machine::HTML, "/v1/jobs"),
            address(ode_script::machine::SCRIPT, "/v1/scripts/jobs"),
        ];
        let options = ode_webhooks::Options { guard, pause: self.webhook_pause, addresses };
        Ok(ode_webhooks::Sender::new(store, options)?)
    }

    fn gateways(&self, url: &str) -> anyhow::Result<Gateways> {
        let limits = ClientLimits { total: self.gateway_timeout, ..ClientLimits::default() };
        let client = |option: &str, url: &str| {
            GatewayClient::new(url, limits).with_context(|| format!("{option} cannot be used"))
        };
        let mut clients = vec![client("--gateway-url", url)?];
        if let Some(backup) = &self.gateway_backup {
            clients.push(client("--gateway-backup", backup)?);
        }
        Ok(Gateways::new(clients, self.breaker()))
    }

    fn breaker(&self) -> BreakerPolicy {
        BreakerPolicy {
            calls_min: self.breaker_calls,
            cool_down: self.breaker_cool_down,
            ..BreakerPolicy::FEW_CALLS
        }
    }

    /// Refuses a mapping that is not there, where documents are converted here; elsewhere others know.
    pub(super) fn check_mapping(&self, name: &str) -> anyhow::Result<()> {
        if self.gateway_url.is_some() || name == "auto" {
            return Ok(());
        }
        let registry = super::mapping::registry(self.conversions.mappings())?;
        if let Err(error) = registry.current().get(name).map(drop) {
            let known: Vec<String> = registry.current().list().map(|mapping| mapping.id.clone()).collect();
            anyhow::bail!("--mapping {name} cannot be used: {} There are: {}.", error, known.join(", "));
        }
        Ok(())
    }

    pub(super) fn conversions(&self) -> &gateway::Conversions {
        &self.conversions
    }

    pub(super) fn away_max(&self) -> Duration {
        self.gateway_away_max
    }
}

/// A week is longer than anything here should take.
const SECONDS_MAX: f64 = 604_800.0;

fn seconds(text: &str) -> Result<Duration, String> {
    let number: Option<f64> = text.parse().ok();
    let in_range = number.filter(|number| *number > 0.0 && *number <= SECONDS_MAX);
    in_range
        .map(Duration::from_secs_f64)
        .ok_or_else(|| "Give a number of seconds above 0, up to a week.".to_owned())
}
