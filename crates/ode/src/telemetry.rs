//! Logs, to standard error: text for people, JSON for machines.

use crate::config::Settings;
use std::io::IsTerminal as _;
use tracing_subscriber::EnvFilter;

/// Starts logging as the settings say.
pub(crate) fn start(settings: &Settings) {
    let wanted =
        settings.log.as_deref().unwrap_or("warn,ode=info,ode_worker=info,ode_web=info,ode_store=info");
    let filter = EnvFilter::try_new(wanted).unwrap_or_else(|error| {
        eprintln!("--log {wanted} is not understood ({error}); logging warnings only.");
        EnvFilter::new("warn")
    });
    let builder = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    if settings.log_json {
        builder.json().flatten_event(true).init();
    } else {
        let is_plain = std::env::var_os("NO_COLOR").is_some() || !std::io::stderr().is_terminal();
        builder.with_ansi(!is_plain).with_target(false).init();
    }
}
