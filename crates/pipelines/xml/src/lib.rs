//! The xml pipeline: what is asked for, the conversion itself, and the child process it runs in.
//!
//! The whole conversion is a function of bytes. Nobody calls it on a document from outside but the child, which
//! [`Converter`] starts for each one. [`XmlHandler`] is what the worker knows of it.
//!
//! A document with scans takes three steps: a child tells which pages are scans, a child each draws them and tesseract
//! reads them, a last child converts with what was read.

mod child;
mod codes;
mod commands;
mod conversion;
mod gateway;
mod handler;
mod kind;
pub mod machine;
mod notice;
mod opinions;
mod pages;
mod remote;
mod request;
mod routes;
mod setup;
pub mod sql;
mod values;

pub use commands::findings::{worked_out, worth_telling};
pub use conversion::{
    Ask, Converted, Converter, Differences, Finding, LiveConverter, OcrArgs, OcrOptions, Options, Output,
    Places, Shadow, StartError, Study, Summary, To,
};
pub use gateway::{GatewayLimits, serve_gateway};
pub use handler::{Route, XmlHandler};
pub use kind::job_kind;
pub use opinions::{Model, ModelError, ModelSettings};
pub use remote::{Call, ClientLimits, GatewayAddressError, GatewayClient, Gateways, METRICS, Processed};
pub use setup::{named, registry};

use async_trait::async_trait;
use clap::{ArgMatches, Args as _, Parser as _};
use ode_http::Routes;
use ode_job::JobId;
use ode_metrics::Family;
use ode_pipeline::{
    Child, Codes, Command, Detail, Pipeline, Scope, SiteSetup, Work, WorkSetup, read_options,
};
use ode_store::{Declaration, Store};
use setup::{ServeArgs, SiteArgs, WorkArgs};
use sql::{Revised, Revision};
use tokio::net::TcpListener;

/// What the pipeline brings to the database.
pub static DECLARATION: Declaration =
    Declaration { migrations: &[ode_store::migration!("0001_xml")], ..Declaration::new(machine::XML) };

/// PDFs into XML.
#[derive(Debug, Clone, Copy)]
pub struct Xml;

#[async_trait]
impl Pipeline for Xml {
    fn declaration(&self) -> &'static Declaration {
        &DECLARATION
    }

    fn options(&self, scope: Scope, mut command: clap::Command) -> clap::Command {
        if scope == Scope::Serve {
            command = ServeArgs::augment_args(command);
        }
        if scope.has_worker() {
            command = WorkArgs::augment_args(command);
        }
        if scope.has_site() {
            command = SiteArgs::augment_args(command);
        }
        command
    }

    async fn prepare(&self, scope: Scope, typed: &ArgMatches) -> anyhow::Result<Option<TcpListener>> {
        if scope != Scope::Serve {
            return Ok(None);
        }
        let listener = read_options::<ServeArgs>(typed)?.listen().await?;
        read_options::<WorkArgs>(typed)?.check_mapping(&read_options::<SiteArgs>(typed)?.mapping)?;
        Ok(listener)
    }

    async fn work(&self, setup: WorkSetup<'_>) -> anyhow::Result<Work> {
        let options: WorkArgs = setup.options()?;
        let mut work = Work::lane(machine::LANE, options.handler(&setup).await?);
        if let Some(opinions) = options.opinions(&setup).await? {
            work = work.with_chore(opinions);
        }
        work.services.extend(options.gateway(setup).await?);
        Ok(work)
    }

    async fn site(&self, setup: &SiteSetup<'_>) -> anyhow::Result<Routes> {
        let type_default = Some(setup.options::<SiteArgs>()?.mapping);
        Ok(Routes { type_default, ..routes::routes(kind::job_kind()) })
    }

    fn commands(&self) -> Vec<Command> {
        commands::commands()
    }

    fn children(&self) -> &'static [Child] {
        &[Child { name: "convert", run: |args| child::serve(child::ChildArgs::parse_from(args)) }]
    }

    async fn details(&self, store: &Store, job: JobId) -> anyhow::Result<Vec<Detail>> {
        let revised = sql::revisions(store.sql(), job).await?;
        let line = |Revised { revision: Revision { field, before, after, .. }, .. }: &Revised| {
            let [before, after] = [before, after].map(|value| value.as_deref().unwrap_or("nothing"));
            format!("{field}: {before} → {after}")
        };
        let lines = revised.iter().map(line).collect();
        let value = serde_json::to_value(revised)?;
        Ok(vec![Detail { field: "revisions", value, heading: "corrected", lines }])
    }

    fn metrics(&self) -> &'static [&'static dyn Family] {
        &METRICS
    }

    fn codes(&self) -> Option<&'static Codes> {
        Some(&codes::FINDINGS)
    }
}
