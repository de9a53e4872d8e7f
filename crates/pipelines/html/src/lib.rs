//! The html pipeline: PDFs into HTML. Its handler, the child process that the conversion runs in, the `/v1/jobs` service
//! and how its jobs appear at the addresses that all pipelines share.
//!
//! The conversion itself is `ode_pdf_html::convert_here`. Nobody calls it on a document from outside but the child.

mod child;
pub mod client;
mod commands;
mod converter;
mod handler;
mod kind;
pub mod machine;
mod request;
mod routes;
mod setup;
mod telemetry;
mod view;

pub use commands::{ConvertArgs, page, write};
pub use converter::{Converted, Converter, Cost, Unconverted, pool_options};
pub use handler::HtmlHandler;
pub use request::PUBLISHER;
pub use routes::Service;

use async_trait::async_trait;
use clap::Args as _;
use ode_http::Routes;
use ode_pipeline::{Child, Command, Pipeline, Scope, SiteSetup, Work, WorkSetup};
use ode_store::{Declaration, Notified, Publisher};
use setup::{SiteArgs, WorkArgs};

/// What the pipeline brings to the database.
pub static DECLARATION: Declaration = Declaration {
    migrations: &[ode_store::migration!("0001_html")],
    notified: Notified::OwnerAnd(request::WEBHOOK_URL),
    ..Declaration::new(machine::HTML)
};

/// PDFs into HTML.
#[derive(Debug, Clone, Copy)]
pub struct Html;

#[async_trait]
impl Pipeline for Html {
    fn declaration(&self) -> &'static Declaration {
        &DECLARATION
    }

    fn options(&self, scope: Scope, mut command: clap::Command) -> clap::Command {
        if scope.has_worker() {
            command = WorkArgs::augment_args(command);
        }
        if scope.has_site() {
            command = SiteArgs::augment_args(command);
        }
        command
    }

    async fn work(&self, setup: WorkSetup<'_>) -> anyhow::Result<Work> {
        let options: WorkArgs = setup.options()?;
        Ok(Work::lane(machine::LANE, options.handler(setup.retry)?))
    }

    async fn site(&self, setup: &SiteSetup<'_>) -> anyhow::Result<Routes> {
        let options: SiteArgs = setup.options()?;
        let (places, webhooks) = (setup.settings.places()?, setup.settings.webhook_guard()?);
        Ok(routes::routes(options.service(places, webhooks)))
    }

    fn commands(&self) -> Vec<Command> {
        commands::commands()
    }

    fn children(&self) -> &'static [Child] {
        &[Child { name: "html", run: |_| child::serve() }]
    }

    fn jobs_path(&self) -> &'static str {
        "/v1/jobs"
    }

    fn publisher(&self) -> Option<Publisher> {
        Some(PUBLISHER)
    }
}
