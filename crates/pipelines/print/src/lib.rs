//! Maps to print: the child process that draws them, the drawer that starts it, the handler of exports, orders, and
//! what is done about them by the clock.
//!
//! Drawing itself is `ode_atlas`. Nobody but the child reads a specification or GeoJSON that came from outside.

mod child;
mod chores;
mod commands;
mod drawer;
mod export;
pub mod machine;
pub mod order;
mod pages;
pub mod request;
mod routes;
mod setup;
pub mod sql;

pub use chores::reconcile;
pub use drawer::{Drawer, Drawn, Features, Frozen, Undrawn, pool_options};
pub use export::ExportHandler;
pub use routes::{ExportLinks, PrintSite};
pub use setup::{PrintfulArgs, SetupError, drawer};

use crate::machine::{EXPORT, ORDER};
use crate::setup::{WorkArgs, hook_secret};
use async_trait::async_trait;
use clap::Args as _;
use ode_child::Sandbox;
use ode_http::Routes;
use ode_pipeline::{Child, Command, Pipeline, Scope, SiteSetup, Work, WorkSetup};
use ode_store::{Declaration, Rules};
use std::sync::Arc;

/// Maps belong to a session or a user, and an order that is tried again is within the limit of whoever pays.
pub static DECLARATION: Declaration = Declaration {
    migrations: &[ode_store::migration!("0001_print")],
    rules: Rules {
        renew: |tx, job| Box::pin(sql::caps::renew(tx, job)),
        adopt: |tx, session, user| Box::pin(sql::maps::adopt_maps(tx, session, user)),
        ..Rules::NONE
    },
    is_cancelled_in_sql: false,
    ..Declaration::new(machine::PRINT)
};

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
        &[Child { name: "map", run: |_| child::serve() }]
    }
}
