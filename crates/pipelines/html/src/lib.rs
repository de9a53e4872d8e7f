//! The html pipeline: PDFs into HTML. Its handler, the child process that the conversion runs in, the `/v1/jobs` service
//! and how its jobs appear at the addresses that all pipelines share.
//!
//! The conversion itself is `ode_pdf_html::convert_here`. Nobody calls it on a document from outside but the child.

mod args;
mod child;
mod converter;
mod handler;
mod kind;
pub mod machine;
mod request;
mod routes;
mod telemetry;
mod view;

pub use args::{SiteArgs, WorkArgs};
pub use child::serve;
pub use converter::{Converted, Converter, Cost, Unconverted, pool_options};
pub use handler::HtmlHandler;
pub use request::PUBLISHER;
pub use routes::Service;

use ode_http::Routes;
use ode_job::Lane;
use ode_pipeline::Pipeline;
use ode_store::Declaration;
use ode_worker::Handler;
use std::sync::Arc;

/// What it brings to the database.
pub static DECLARATION: Declaration = Declaration::new(machine::HTML);

/// The html pipeline, ready for what this process does.
#[derive(Clone, Default)]
pub struct Html {
    /// The handler, where this process works.
    pub handler: Option<HtmlHandler>,
    /// What the addresses share, where this process serves them.
    pub service: Option<Service>,
}

impl Pipeline for Html {
    fn lanes(&self) -> Vec<(Lane, Arc<dyn Handler>)> {
        let handler = self.handler.clone().into_iter();
        handler.map(|handler| (machine::LANE, Arc::new(handler) as Arc<dyn Handler>)).collect()
    }

    fn routes(&self) -> Routes {
        self.service.clone().map(routes::routes).unwrap_or_default()
    }
}
