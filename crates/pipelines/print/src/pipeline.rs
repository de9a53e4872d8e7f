//! What the print pipeline brings to the engine.

use crate::commands;
use crate::drawing;
use crate::machine::{EXPORT, ORDER};
use crate::routes::{self, PrintSite};
use crate::setup::{WorkArgs, drawer, hook_secret};
use crate::{DECLARATION, ExportHandler};
use async_trait::async_trait;
use clap::Args as _;
use ode_child::Sandbox;
use ode_http::Routes;
use ode_pipeline::{Child, Command, Pipeline, Scope, SiteSetup, Work, WorkSetup};
use ode_store::Declaration;
use std::sync::Arc;

/// Maps to print, and orders of them.
#[derive(Debug, Clone, Copy)]
pub struct Print;

#[async_trait]
impl Pipeline for Print {
    fn declaration(&self) -> &'static Declaration {
        &DECLARATION
    }

    fn options(&self, scope: Scope, command: clap::Command) -> clap::Command {
        if scope.has_worker() { WorkArgs::augment_args(command) } else { command }
    }

    async fn work(&self, setup: WorkSetup<'_>) -> anyhow::Result<Work> {
        let options: WorkArgs = setup.options()?;
        let at_once = options.maps_at_once.get();
        let export = ExportHandler::new(drawer(Some(at_once), setup.sandbox)?, at_once, setup.retry);
        let work = Work::lane(EXPORT, export);
        match options.orders.start(setup.store, setup.retry, setup.breaker).await? {
            Some((order, chores)) => Ok(Work { chores, ..work.with_lane(ORDER, order) }),
            None => Ok(work),
        }
    }

    async fn site(&self, _setup: &SiteSetup<'_>) -> anyhow::Result<Routes> {
        let site = PrintSite::new(drawer(None, Sandbox::BestEffort)?, hook_secret()?);
        Ok(routes::routes(Arc::new(site)))
    }

    fn commands(&self) -> Vec<Command> {
        commands::commands()
    }

    fn children(&self) -> &'static [Child] {
        &[Child { name: "map", run: |_| drawing::serve() }]
    }
}
