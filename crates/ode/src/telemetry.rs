//! Logs, to standard error: text for people, JSON for machines.

use crate::config::Settings;
use crate::output::{self, WrongUse};
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

/// What is logged unless something else is asked for.
const USUAL: &str = "warn,ode=info,ode_worker=info,ode_web=info,ode_store=info";

/// Starts logging as the settings say.
pub(crate) fn start(settings: &Settings) -> anyhow::Result<()> {
    let wanted = settings.log.as_deref().unwrap_or(USUAL);
    let filter: Targets = wanted.parse().map_err(|error| {
        WrongUse(format!(
            "--log \"{wanted}\" is not understood: {error}. Use error, warn, info, debug, or a filter such as \
             ode_worker=debug."
        ))
    })?;
    let builder = tracing_subscriber::fmt()
        // What is too much is left out by the filter.
        .with_max_level(LevelFilter::TRACE)
        .with_writer(std::io::stderr)
        // A log that cannot be written (a closed pipe, a full disk) must not end the work it tells of.
        .log_internal_errors(false);
    if settings.log_json {
        builder.json().flatten_event(true).finish().with(filter).init();
    } else {
        builder
            .with_ansi(output::is_coloured(&std::io::stderr()))
            .with_target(false)
            .finish()
            .with(filter)
            .init();
    }
    Ok(())
}
