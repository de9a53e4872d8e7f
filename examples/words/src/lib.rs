//! A small pipeline from end to end, to start one of your own from: it counts the words of PDFs.
//!
//! Documents come in by upload, each is read in a locked-in child, the count is the job's result, with a page, an address and a
//! command to see it. What the engine gives without a line here: the queue and its page, retries, limits, owners, history, logs,
//! downloads, retention, metrics, `ode jobs` and completions.

mod child;
mod commands;
mod count;
mod handler;
mod kind;
mod machine;
mod routes;

use async_trait::async_trait;
use clap::Args;
use ode_http::Routes;
use ode_pipeline::{Child, Command, Pipeline, Scope, SiteSetup, Work, WorkSetup};
use ode_store::Declaration;
use std::num::NonZeroUsize;

/// Words of PDFs, counted.
#[derive(Debug, Clone, Copy)]
pub struct Words;

/// Options of workers.
#[derive(Debug, Args)]
#[group(skip)]
#[command(next_help_heading = "Work")]
struct WorkArgs {
    /// Documents whose words are counted at a time
    #[arg(long, env = "ODE_WORDS_AT_ONCE", value_name = "N", default_value = "2")]
    words_at_once: NonZeroUsize,
}

#[async_trait]
impl Pipeline for Words {
    fn declaration(&self) -> &'static Declaration {
        static DECLARATION: Declaration = Declaration::new(machine::WORDS);
        &DECLARATION
    }

    fn options(&self, scope: Scope, command: clap::Command) -> clap::Command {
        if scope.has_worker() { WorkArgs::augment_args(command) } else { command }
    }

    async fn work(&self, setup: WorkSetup<'_>) -> anyhow::Result<Work> {
        let at_once = setup.options::<WorkArgs>()?.words_at_once.get();
        let counter = child::Counter::new(at_once, setup.sandbox)?;
        Ok(Work::lane(machine::LANE, handler::WordsHandler::new(counter, at_once, setup.retry)))
    }

    async fn site(&self, _setup: &SiteSetup<'_>) -> anyhow::Result<Routes> {
        Ok(routes::routes())
    }

    fn commands(&self) -> Vec<Command> {
        vec![Command::new("words", "Documents", commands::run).without_settings()]
    }

    fn children(&self) -> &'static [Child] {
        &[Child { name: "words", run: |_| child::serve() }]
    }
}
