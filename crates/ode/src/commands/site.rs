//! How the web side behaves, as it can be set.

use clap::{Args, ValueEnum};
use ode_cli::Settings;
use ode_http::{Dedupe, WebLimits, WebSettings, origin};
use std::time::Duration;

/// How the web side behaves.
#[derive(Debug, Args)]
#[command(next_help_heading = "Web")]
pub(crate) struct SiteArgs {
    /// Largest file that is taken, in megabytes
    #[arg(long, env = "ODE_UPLOAD_MAX", value_name = "MB", default_value_t = 50,
        value_parser = clap::value_parser!(u64).range(1..=10_000))]
    upload_max: u64,
    /// Files that one visitor may upload in a minute
    #[arg(long, env = "ODE_UPLOADS_A_MINUTE", value_name = "N", default_value_t = 10,
        value_parser = clap::value_parser!(u32).range(1..))]
    uploads_a_minute: u32,
    /// Requests of any kind that one visitor may make in a minute
    #[arg(long, env = "ODE_POLLS_A_MINUTE", value_name = "N", default_value_t = 1000,
        value_parser = clap::value_parser!(u32).range(1..))]
    polls_a_minute: u32,
    /// Where people reach it, such as https://ode.example, if that is not the address it listens on
    #[arg(long, env = "ODE_PUBLIC_URL", value_name = "URL", value_parser = origin)]
    public_url: Option<String>,
    /// Take the word of the proxy in front for visitors' addresses and for TLS (X-Forwarded-For and -Proto)
    #[arg(long, env = "ODE_BEHIND_PROXY")]
    behind_proxy: bool,
    /// Whose earlier result a document that was sent before is answered with
    #[arg(long, env = "ODE_DEDUPE", value_name = "SCOPE", value_enum, default_value_t = Scope::Owner)]
    dedupe: Scope,
    /// Minutes that a link to a result works
    #[arg(long, env = "ODE_LINK_MINUTES", value_name = "N", default_value_t = 10,
        value_parser = clap::value_parser!(u64).range(..=10_080))]
    link_minutes: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Scope {
    /// The visitor's own
    Owner,
    /// Anybody's: identical documents are converted once for all
    Everyone,
}

impl SiteArgs {
    pub(super) fn settings(&self, settings: &Settings, grace: Duration) -> anyhow::Result<WebSettings> {
        Ok(WebSettings {
            upload_bytes_max: self.upload_max * 1_000_000,
            watermark: settings.watermark()?,
            dedupe: match self.dedupe {
                Scope::Owner => Dedupe::Owner,
                Scope::Everyone => Dedupe::Everyone,
            },
            limits: WebLimits {
                uploads_a_minute: self.uploads_a_minute,
                polls_a_minute: self.polls_a_minute,
            },
            redis_url: settings.redis.clone(),
            public_url: self.public_url.clone(),
            is_behind_proxy: self.behind_proxy,
            link_ttl: Duration::from_secs(self.link_minutes * 60),
            grace,
            ..WebSettings::default()
        })
    }
}
