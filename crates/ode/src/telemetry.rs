//! Logs, to standard error: text for people, JSON for machines.

use crate::log_lines::{Flush, LogLines};
use crate::output::{self, WrongUse};
use anyhow::Context as _;
use ode_cli::Settings;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

/// The filter where none is given. A name stands for all that begin with it: every crate of this program.
const USUAL: &str = "warn,ode=info";

/// Starts logging as the settings say. What was logged is written once the answer is dropped.
pub(crate) fn start(settings: &Settings) -> anyhow::Result<Flush> {
    let wanted = settings.log.as_deref().unwrap_or(USUAL);
    let filter = filter(wanted).ok_or_else(|| {
        WrongUse(format!(
            "--log \"{wanted}\" is not understood. Use error, warn, info, debug, or a filter such as \
             ode_worker=debug."
        ))
    })?;
    let (lines, flush) = LogLines::start(std::io::stderr()).context("The log could not start")?;
    let builder = tracing_subscriber::fmt()
        // What is too much is left out by the filter.
        .with_max_level(LevelFilter::TRACE)
        .with_writer(move || lines.clone())
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
    Ok(flush)
}

/// Levels for all, or for what is named, such as `warn,ode_worker=debug`.
fn filter(wanted: &str) -> Option<Targets> {
    // A word by itself would be taken for a name of which everything is logged.
    let is_level = |directive: &str| {
        let (_, level) = directive.rsplit_once('=').unwrap_or(("", directive));
        !level.trim().is_empty() && level.trim().parse::<LevelFilter>().is_ok()
    };
    wanted.split(',').all(is_level).then(|| wanted.parse().ok()).flatten()
}
