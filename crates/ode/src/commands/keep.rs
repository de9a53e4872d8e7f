//! How long things are kept, as flags of the commands that work: what is given is written to the database, which all
//! processes go by; what is not given stays as it is there.

use clap::Args;
use ode_store::{Retention, Store};
use std::time::Duration;

/// How long things are kept.
#[derive(Debug, Args)]
#[command(next_help_heading = "Retention")]
pub(crate) struct Keep {
    /// Days that uploaded documents are kept [default: 7]
    #[arg(long, env = "ODE_KEEP_DOCUMENTS", value_name = "DAYS", value_parser = days)]
    keep_documents: Option<Duration>,
    /// Days that results are kept [default: 30]
    #[arg(long, env = "ODE_KEEP_RESULTS", value_name = "DAYS", value_parser = days)]
    keep_results: Option<Duration>,
    /// Days that the history of jobs is kept in the database; then it is archived [default: 90]
    #[arg(long, env = "ODE_KEEP_EVENTS", value_name = "DAYS", value_parser = days)]
    keep_events: Option<Duration>,
    /// Days that scripts are kept in the database; those that ended are archived then [default: 30]
    #[arg(long, env = "ODE_KEEP_SCRIPTS", value_name = "DAYS", value_parser = days)]
    keep_scripts: Option<Duration>,
    /// Whether a result is removed once it was downloaded [default: false]
    #[arg(long, env = "ODE_DELETE_ON_DOWNLOAD", value_name = "YES", num_args = 0..=1,
        default_missing_value = "true")]
    delete_on_download: Option<bool>,
    /// Hours between two cleanups
    #[arg(long, env = "ODE_CLEANUP_EVERY", value_name = "HOURS", default_value = "24", value_parser = hours)]
    cleanup_every: Duration,
}

impl Keep {
    /// Writes down what was asked for.
    pub(crate) async fn apply(&self, store: &Store) -> anyhow::Result<()> {
        let before = store.retention().await?;
        let wanted = Retention {
            sources: self.keep_documents.unwrap_or(before.sources),
            results: self.keep_results.unwrap_or(before.results),
            events: self.keep_events.unwrap_or(before.events),
            scripts: self.keep_scripts.unwrap_or(before.scripts),
            delete_on_download: self.delete_on_download.unwrap_or(before.delete_on_download),
        };
        if wanted != before {
            store.set_retention(&wanted).await?;
        }
        Ok(())
    }

    pub(crate) fn cleanup_every(&self) -> Duration {
        self.cleanup_every
    }
}

/// A hundred years are as good as for ever.
const YEARS_MAX: f64 = 100.0;

fn days(text: &str) -> Result<Duration, String> {
    length(text, 86_400.0, "days")
}

fn hours(text: &str) -> Result<Duration, String> {
    length(text, 3_600.0, "hours")
}

fn length(text: &str, unit_s: f64, unit: &str) -> Result<Duration, String> {
    let refused = || format!("Give a number of {unit} above 0, such as 7 or 0.5.");
    let number: f64 = text.parse().map_err(|_| refused())?;
    let seconds = number * unit_s;
    if !(seconds > 0.0 && seconds <= YEARS_MAX * 366.0 * 86_400.0) {
        return Err(refused());
    }
    Ok(Duration::from_secs_f64(seconds))
}
