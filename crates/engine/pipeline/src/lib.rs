//! The seam between the engine and the kinds of work: everything that a pipeline brings, in one trait.
//!
//! A pipeline is a crate with a type that implements [`Pipeline`]. The binary lists those types in one place; the worker, the
//! site, the command line and the children take everything else from here.

mod command;
mod setup;

pub use command::{Call, Child, Command};
pub use setup::{Scope, Service, SiteSetup, Work, WorkSetup};

use async_trait::async_trait;
use clap::FromArgMatches;
use ode_cli::Settings;
use ode_http::Routes;
use ode_job::JobId;
use ode_metrics::Family;
use ode_store::{Declaration, Finding, Publisher, Store};
use tokio::net::TcpListener;

/// A kind of work: its machine and, as far as it has them, handlers, routes, commands and the rest.
#[async_trait]
pub trait Pipeline: Send + Sync {
    /// Its machine, its tables and its rules.
    fn declaration(&self) -> &'static Declaration;

    /// Adds its options to the commands of a scope.
    fn options(&self, _scope: Scope, command: clap::Command) -> clap::Command {
        command
    }

    /// Checks its options and takes the address that it listens on beside the site, if any, before anything is opened or made.
    async fn prepare(&self, _scope: Scope, _typed: &clap::ArgMatches) -> anyhow::Result<Option<TcpListener>> {
        Ok(None)
    }

    /// Makes the handlers of its lanes and whatever else a worker runs for it.
    async fn work(&self, setup: WorkSetup<'_>) -> anyhow::Result<Work>;

    /// Makes its routes.
    async fn site(&self, setup: &SiteSetup<'_>) -> anyhow::Result<Routes>;

    fn commands(&self) -> Vec<Command> {
        Vec::new()
    }

    /// The work that it does in processes of their own.
    fn children(&self) -> &'static [Child] {
        &[]
    }

    /// The path below which clients of the API find its jobs.
    fn jobs_path(&self) -> &'static str {
        "/api/jobs"
    }

    /// How it puts results of jobs outside our own storage.
    fn publisher(&self) -> Option<Publisher> {
        None
    }

    /// Reads what its own tables say of a job, for `ode jobs show`.
    async fn details(&self, _store: &Store, _job: JobId) -> anyhow::Result<Vec<Detail>> {
        Ok(Vec::new())
    }

    fn metrics(&self) -> &'static [&'static dyn Family] {
        &[]
    }

    /// Codes of its own that `ode explain` knows, beside those of errors.
    fn codes(&self) -> Option<&'static Codes> {
        None
    }

    /// Checks what it needs of this machine, for `ode doctor`.
    fn check(&self, _settings: &Settings, _options: &clap::ArgMatches) -> anyhow::Result<Vec<Finding>> {
        Ok(Vec::new())
    }
}

/// Something that a pipeline's own tables say of a job.
#[derive(Debug, Clone)]
pub struct Detail {
    /// The field in JSON.
    pub field: &'static str,
    pub value: serde_json::Value,
    /// The heading of the lines for people.
    pub heading: &'static str,
    /// The same for people.
    pub lines: Vec<String>,
}

#[derive(Debug, Clone)]
pub struct Codes {
    /// The heading of their table.
    pub heading: &'static str,
    pub codes: Vec<KnownCode>,
}

/// A code and its explanation.
#[derive(Debug, Clone)]
pub struct KnownCode {
    pub name: &'static str,
    /// Its meaning in a sentence.
    pub sentence: &'static str,
    /// Whether a job that failed with it is tried again by itself; nothing where no job fails with it.
    pub is_retried: Option<bool>,
    /// Its page in Markdown.
    pub page: String,
}

/// Reads options of this type. The command must be of a scope to which the pipeline added them.
pub fn read_options<T: FromArgMatches>(typed: &clap::ArgMatches) -> anyhow::Result<T> {
    Ok(T::from_arg_matches(typed)?)
}
