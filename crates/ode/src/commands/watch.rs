//! The listener for operators: metrics and health, off unless it is asked for.

use crate::wire;
use clap::Args;
use ode_cli::process::{announce, listen};
use ode_http::Watcher;
use ode_metrics::Family;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::task::JoinHandle;

/// How to be watched.
#[derive(Debug, Args)]
pub(crate) struct Watched {
    /// Address for /metrics and /healthz with all particulars, such as 127.0.0.1:9090; only for operators [default: off]
    #[arg(long, env = "ODE_METRICS", value_name = "HOST:PORT")]
    metrics: Option<String>,
}

/// A listener that is served for as long as this is kept.
pub(super) struct Watching {
    address: SocketAddr,
    serving: JoinHandle<()>,
}

impl Watched {
    /// Listens, if that was asked for.
    pub(super) async fn start(&self, watcher: Arc<Watcher>) -> anyhow::Result<Option<Watching>> {
        let Some(address) = &self.metrics else { return Ok(None) };
        let listener = listen(address, "--metrics").await?;
        let address = listener.local_addr()?;
        let serving = tokio::spawn(ode_http::serve_watch(listener, watcher, families()));
        Ok(Some(Watching { address, serving }))
    }
}

impl Watching {
    pub(super) fn announce(&self) {
        announce(format!("Its metrics are at http://{}/metrics", self.address));
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

/// Everything that this program counts.
fn families() -> Vec<&'static dyn Family> {
    let pipelines = wire::pipelines().iter().flat_map(|pipeline| pipeline.metrics());
    let engine = ode_worker::METRICS.iter().chain(&ode_http::METRICS);
    engine.chain(pipelines).chain(&ode_webhooks::METRICS).copied().collect()
}
