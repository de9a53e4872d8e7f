//! How jobs are worked on, as flags of the commands that do: where documents are converted, how often and when they are
//! tried again, and how long things are kept.

use super::keep::Keep;
use crate::wire;
use clap::Args;
use ode_child::Sandbox;
use ode_cli::{SandboxArgs, Settings, seconds};
use ode_job::{BreakerPolicy, RetryPolicy};
use ode_pipeline::Pipeline;
use ode_store::Store;
use ode_webhooks::JobAddress;
use std::time::Duration;

/// How jobs are worked on.
#[derive(Debug, Args)]
#[command(next_help_heading = "Work")]
pub(crate) struct Work {
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
    sandbox: SandboxArgs,
    #[command(flatten)]
    pub(super) keep: Keep,
}

impl Work {
    /// When failed jobs are tried again.
    pub(super) fn retry(&self) -> RetryPolicy {
        RetryPolicy {
            base: self.retry_base,
            jitter_max: self.retry_base,
            retries_max: self.retries,
            ..RetryPolicy::default()
        }
    }

    /// Makes the sender of messages about jobs that ended.
    pub(super) fn webhooks(&self, settings: &Settings, store: Store) -> anyhow::Result<ode_webhooks::Sender> {
        let address = |pipeline: &&dyn Pipeline| JobAddress {
            pipeline: pipeline.declaration().pipeline,
            path: pipeline.jobs_path(),
        };
        let addresses = wire::pipelines().iter().map(address).collect();
        let options =
            ode_webhooks::Options { guard: settings.webhook_guard()?, pause: self.webhook_pause, addresses };
        Ok(ode_webhooks::Sender::new(store, options)?)
    }

    /// When something outside counts as away.
    pub(super) fn breaker(&self) -> BreakerPolicy {
        BreakerPolicy {
            calls_min: self.breaker_calls,
            cool_down: self.breaker_cool_down,
            ..BreakerPolicy::FEW_CALLS
        }
    }

    /// Whether children lock themselves in.
    pub(super) fn sandbox(&self) -> Sandbox {
        self.sandbox.sandbox()
    }

    pub(super) fn away_max(&self) -> Duration {
        self.gateway_away_max
    }
}
