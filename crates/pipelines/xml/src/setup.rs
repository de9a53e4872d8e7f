//! Options of workers, and what is made of them. Groups of options are skipped: clap names them after structs, and other crates
//! have structs of these names.

use crate::commands::gateway::{LISTEN, RunningGateway};
use crate::opinions::{OpinionArgs, Opinions};
use crate::{ClientLimits, GatewayClient, Gateways, LiveConverter, OcrArgs, Options, Route, XmlHandler};
use anyhow::Context as _;
use clap::Args;
use ode_child::{PoolOptions, Sandbox};
use ode_cli::process::listen_or;
use ode_cli::{WrongUse, seconds};
use ode_invoice::registry::Loaded;
use ode_invoice::{ExtractError, Registry};
use ode_job::{BreakerPolicy, ErrorCode};
use ode_pipeline::{Service, WorkSetup};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;

/// Options of workers.
#[derive(Debug, Args)]
#[group(skip)]
#[command(next_help_heading = "Work")]
pub(crate) struct WorkArgs {
    /// Documents that are converted at a time
    #[arg(long, env = "ODE_JOBS_AT_ONCE", value_name = "N", default_value = "3")]
    jobs_at_once: NonZeroUsize,
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
    #[command(flatten)]
    conversions: Conversions,
    #[command(flatten)]
    opinions: OpinionArgs,
}

/// Options of the site.
#[derive(Debug, Args)]
#[group(skip)]
#[command(next_help_heading = "Web")]
pub(crate) struct SiteArgs {
    /// Mapping of documents for which none is named
    #[arg(long, env = "ODE_MAPPING", value_name = "NAME", default_value = "pt_simon_invoice_v1")]
    pub(crate) mapping: String,
}

/// Options of `ode serve` alone.
#[derive(Debug, Args)]
#[group(skip)]
pub(crate) struct ServeArgs {
    /// Address for the gateway to listen on, or off to go without
    #[arg(long, env = "ODE_GATEWAY", value_name = "HOST:PORT", default_value = LISTEN)]
    gateway: String,
}

impl ServeArgs {
    /// Takes the gateway's address, unless it goes without.
    pub(crate) async fn listen(&self) -> anyhow::Result<Option<TcpListener>> {
        match self.gateway.as_str() {
            "off" => Ok(None),
            address => {
                let otherwise = ", or go without a gateway with --gateway off";
                listen_or(address, "--gateway", otherwise).await.map(Some)
            }
        }
    }
}

/// Options about conversions.
#[derive(Debug, Args)]
#[group(skip)]
pub(crate) struct Conversions {
    /// Conversions at a time [default: one for each processor]
    #[arg(long, env = "ODE_AT_ONCE", value_name = "N")]
    pub(crate) at_once: Option<NonZeroUsize>,
    /// Folder with mappings beside those that ship; changes in it are picked up within seconds
    #[arg(long, env = "ODE_MAPPINGS", value_name = "DIR")]
    pub(crate) mappings: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) ocr: OcrArgs,
}

impl Conversions {
    /// Starts a converter for so many documents at a time. Nobody is refused as busy: slots give the turns.
    async fn converter(&self, at_once: usize, sandbox: Sandbox) -> anyhow::Result<LiveConverter> {
        let pool = PoolOptions { at_once, patience: Duration::MAX, sandbox, ..PoolOptions::default() };
        let (mappings, ocr) = (self.mappings.clone(), self.ocr.options());
        Ok(LiveConverter::start(Options { mappings, ocr, pool, ..Options::default() }).await?)
    }
}

impl WorkArgs {
    /// Makes the handler of the lane.
    pub(crate) async fn handler(&self, setup: &WorkSetup<'_>) -> anyhow::Result<XmlHandler> {
        let at_once = self.jobs_at_once.get();
        let route = match &self.gateway_url {
            None => Route::BuiltIn(Arc::new(self.conversions.converter(at_once, setup.sandbox).await?)),
            Some(url) => Route::Remote(Arc::new(self.gateways(url, setup.breaker)?)),
        };
        let handler = XmlHandler::new(route, at_once);
        Ok(handler.with_retry(setup.retry).with_call_timeout(self.gateway_timeout))
    }

    /// Makes the chore of asking a language model, if one is named.
    pub(crate) async fn opinions(&self, setup: &WorkSetup<'_>) -> anyhow::Result<Option<Opinions>> {
        let Some(model) = self.opinions.model()? else { return Ok(None) };
        let converter = self.conversions.converter(1, setup.sandbox).await?;
        Ok(Some(Opinions::new(setup.blobs.clone(), model, converter)))
    }

    /// Starts the gateway of `ode serve`, unless it goes without.
    pub(crate) async fn gateway(&self, setup: WorkSetup<'_>) -> anyhow::Result<Option<Service>> {
        let Some(listener) = setup.listener else { return Ok(None) };
        let running = RunningGateway::start(listener, &self.conversions, setup.sandbox, setup.grace).await?;
        let announcement = format!("Its gateway is listening on http://{}", running.address);
        Ok(Some(Service { announcement, stop: Box::pin(running.stop()) }))
    }

    fn gateways(&self, url: &str, breaker: BreakerPolicy) -> anyhow::Result<Gateways> {
        let limits = ClientLimits { total: self.gateway_timeout, ..ClientLimits::default() };
        let client = |option: &str, url: &str| {
            GatewayClient::new(url, limits).with_context(|| format!("{option} cannot be used"))
        };
        let mut clients = vec![client("--gateway-url", url)?];
        if let Some(backup) = &self.gateway_backup {
            clients.push(client("--gateway-backup", backup)?);
        }
        Ok(Gateways::new(clients, breaker))
    }

    /// Refuses a default mapping that is not there, where documents are converted here; elsewhere others know.
    pub(crate) fn check_mapping(&self, name: &str) -> anyhow::Result<()> {
        if self.gateway_url.is_some() || name == "auto" {
            return Ok(());
        }
        let registry = registry(self.conversions.mappings.as_deref())?;
        if let Err(error) = registry.current().get(name).map(drop) {
            let known: Vec<String> = registry.current().list().map(|mapping| mapping.id.clone()).collect();
            anyhow::bail!("--mapping {name} cannot be used: {} There are: {}.", error, known.join(", "));
        }
        Ok(())
    }
}

/// The mappings that ship and those of a folder.
pub fn registry(folder: Option<&Path>) -> anyhow::Result<Registry> {
    let options = ode_invoice::Options { folder: folder.map(Path::to_owned), ..Default::default() };
    Registry::new(options).map_err(|mistakes| {
        let place = folder.map_or_else(String::new, |folder| format!(" of {}", folder.display()));
        let mistakes: Vec<String> = mistakes.iter().map(ToString::to_string).collect();
        WrongUse(format!("The mappings{place} cannot be loaded. {}", mistakes.join("; "))).into()
    })
}

/// A mapping by its name.
pub fn named<'a>(loaded: &'a Loaded, name: &str) -> anyhow::Result<&'a ode_invoice::Mapping> {
    match loaded.get(name) {
        Ok(mapping) => Ok(mapping),
        Err(error) => {
            let list = match error {
                ExtractError::UnknownMapping { near: None, .. } => " `ode mapping list` shows what there is.",
                _ => "",
            };
            anyhow::bail!(WrongUse(format!("{error}{list} ({})", ErrorCode::UnknownMapping)))
        }
    }
}
