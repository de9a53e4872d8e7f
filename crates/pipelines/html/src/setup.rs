//! Options of the commands that work and serve. Groups are skipped: clap names them after structs, and other crates have
//! structs of these names.

use crate::routes::Service;
use crate::{Converter, HtmlHandler, pool_options};
use clap::Args;
use ode_child::PoolOptions;
use ode_job::RetryPolicy;
use ode_store::Places;
use ode_webhooks::Guard;
use std::num::NonZeroUsize;
use std::time::Duration;

/// A job that has a slot waits for a processor; its attempt's own limit ends that.
const TURN_MAX: Duration = Duration::from_secs(300);

/// Options of workers.
#[derive(Debug, Args)]
#[group(skip)]
#[command(next_help_heading = "Work")]
pub(super) struct WorkArgs {
    /// Documents that are converted into HTML at a time [default: as many as there are processors]
    #[arg(long, env = "ODE_HTML_AT_ONCE", value_name = "N")]
    html_at_once: Option<NonZeroUsize>,
}

impl WorkArgs {
    /// Makes the handler of the lane.
    pub(super) fn handler(&self, retry: RetryPolicy) -> Result<HtmlHandler, ode_child::Error> {
        let options = PoolOptions { patience: TURN_MAX, ..pool_options() };
        let at_once = self.html_at_once.map_or(options.at_once, NonZeroUsize::get);
        let converter = Converter::new(PoolOptions { at_once, ..options })?;
        // Twice as many as are converted: to have a document's files on disk for good takes about as long as a conversion, and
        // meanwhile no processor is to be idle.
        Ok(HtmlHandler::new(converter, at_once * 2).with_retry(retry))
    }
}

/// Options of the site.
#[derive(Debug, Args)]
#[group(skip)]
#[command(next_help_heading = "Web")]
pub(super) struct SiteArgs {
    /// Where converted documents are shown, such as https://views.example, if they are to have an origin of their own
    #[arg(long, env = "ODE_VIEW_ORIGIN", value_name = "URL", value_parser = ode_http::origin, hide_short_help = true)]
    view_origin: Option<String>,
}

impl SiteArgs {
    /// Makes what the addresses of the html service share.
    pub(super) fn service(&self, places: Places, webhooks: Guard) -> Service {
        Service { places, webhooks, view_origin: self.view_origin.clone() }
    }
}
