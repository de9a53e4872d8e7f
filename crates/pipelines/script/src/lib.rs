//! Scripts: programs in any language that do long work on other sites, as jobs.
//!
//! A script is a folder with a manifest ([`Manifest`]), found by a [`Catalog`] among those that came with ODE and the
//! operator's own. Its payload is checked against a JSON Schema and its secrets are taken out ([`Script::check`],
//! [`Script::split`]). A [`Runner`] then runs it: one process for each attempt, with everything it started ended
//! when it ends, its progress and checkpoints told as [`News`], its secrets hidden in all that it says
//! ([`Redactor`]), and one [`Outcome`] at the end.
//!
//! ```no_run
//! use ode_script::{Catalog, Order, Runner, Settings, unpack};
//! use serde_json::json;
//! use std::path::Path;
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let data = Path::new("data");
//! let catalog = Catalog::load(&unpack(data)?, Some(Path::new("my-scripts")))?;
//! let script = catalog.get("add-item-tags").ok_or("no such type")?;
//! let payload = json!({ "email": "owner@example.com", "password": "…", "itemTags": [] });
//! script.check(&payload).map_err(|wrong| format!("{wrong:?}"))?;
//! let (input, secrets) = script.split(payload);
//! let keeper = ode_child::Program::this_binary(["child", "keep"])?;
//! let runner = Runner::new(Settings::new(data, keeper))?;
//! let order = Order::new("JOB_1", script, input, secrets);
//! let report = runner.run(order, |news| println!("{news:?}"), std::future::pending()).await?;
//! println!("{:?}", report.outcome);
//! # Ok(())
//! # }
//! ```

mod archive;
mod artifacts;
mod browser;
mod catalog;
mod chores;
mod codes;
pub mod commands;
mod concurrency;
mod handler;
mod intake;
pub mod machine;
mod manifest;
mod order;
mod outcome;
mod payload;
mod record;
mod reporter;
mod request;
mod routes;
mod run;
mod schema;
mod scratch;
mod script;
mod seal;
mod setup;
mod shipped;
mod spare;
pub mod sql;
mod teller;
mod view;

pub use browser::{Browser, find as find_browser};
pub use catalog::Catalog;
pub use handler::{ScriptHandler, Site};
pub use intake::Intake;
pub use manifest::{Manifest, ManifestError, Pool, Trace};
pub use ode_child::{HIDDEN, Redactor, SECRET_CHARS_MIN, Step, StepState};
pub use order::{
    Artifact, Done, Failed, Level, LogLine, News, Order, Outcome, Progress, Record, Report, Source, code,
    in_words,
};
pub use payload::{Secrets, join, secret_names};
pub use record::{RecordedState, RecordedStep, Run, Sealed, SecretPart};
pub use run::{Runner, Settings};
pub use schema::{INVALID_MAX, Invalid, Schema, SchemaError};
pub use script::{MANIFEST, Origin, Script};
pub use seal::{Bond, Keyring, SealTo};
pub use setup::Folders;
pub use shipped::{unpack, unpacked};

use async_trait::async_trait;
use clap::Args as _;
use machine::SCRIPT as PIPELINE;
use ode_http::Routes;
use ode_pipeline::{Codes, Command, Pipeline, Scope, SiteSetup, Work, WorkSetup, read_options};
use ode_store::{Declaration, Finding, Notified, Rules};
use setup::{FolderArgs, SiteArgs, WorkArgs};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Scripts wait for turns and for each other, keep their secrets for another try, and go to the archive.
pub static DECLARATION: Declaration = Declaration {
    migrations: &[ode_store::migration!("0001_script")],
    notified: Notified::Owner,
    rules: Rules {
        look: |sql, ids| Box::pin(sql::gate::look(sql, ids)),
        may_wait: |sql, id| Box::pin(sql::gate::may_wait(sql, id)),
        renew: |tx, id| Box::pin(sql::secrets::renew(tx, id)),
        archive: Some("archive/scripts"),
        ..Rules::NONE
    },
    ..Declaration::new(PIPELINE)
};

/// Supervised scripts.
#[derive(Debug, Clone, Copy)]
pub struct Scripts;

#[async_trait]
impl Pipeline for Scripts {
    fn declaration(&self) -> &'static Declaration {
        &DECLARATION
    }

    fn options(&self, scope: Scope, mut command: clap::Command) -> clap::Command {
        if scope == Scope::All {
            command = FolderArgs::augment_args(command);
        }
        if scope.has_worker() {
            command = WorkArgs::augment_args(command);
        }
        if scope.has_site() {
            command = SiteArgs::augment_args(command);
        }
        command
    }

    async fn work(&self, setup: WorkSetup<'_>) -> anyhow::Result<Work> {
        let folders = Folders::new(setup.settings, setup.options()?);
        let options: WorkArgs = setup.options()?;
        let work = Work::default().with_chore(chores::ShredSecrets);
        Ok(match options.handler(&folders, setup.store).await? {
            Some(handler) => work.with_lane(machine::LANE, handler),
            None => work,
        })
    }

    async fn site(&self, setup: &SiteSetup<'_>) -> anyhow::Result<Routes> {
        let folders = Folders::new(setup.settings, setup.options()?);
        let options: SiteArgs = setup.options()?;
        Ok(routes::routes(Arc::new(options.intake(&folders, setup.store).await?)))
    }

    fn commands(&self) -> Vec<Command> {
        commands::commands()
    }

    fn jobs_path(&self) -> &'static str {
        "/v1/scripts/jobs"
    }

    fn codes(&self) -> Option<&'static Codes> {
        Some(&codes::CODES)
    }

    fn check(&self, settings: &ode_cli::Settings, typed: &clap::ArgMatches) -> anyhow::Result<Vec<Finding>> {
        let folders = Folders::new(settings, read_options(typed)?);
        Ok(vec![folders.check()])
    }
}

/// Why scripts cannot be read or started. How a run ends is not an error but an [`Outcome`].
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file or folder could not be read or written.
    #[error("{path} could not be used: {error}", path = path.display())]
    File {
        path: PathBuf,
        /// What the system said.
        error: std::io::Error,
    },
    #[error("{path}{place}: {message}", path = path.display(), place = place(.error.at), message = error.message)]
    Manifest {
        path: PathBuf,
        /// What is wrong, and where.
        error: ManifestError,
    },
    /// A schema is wrong.
    #[error("{path}{place}: {message}", path = path.display(), place = place(*at))]
    Schema {
        path: PathBuf,
        /// Line and column, both from 1, where they are known.
        at: Option<(usize, usize)>,
        /// What is wrong, and at which place of the schema.
        message: String,
    },
    /// Two scripts in one directory have the same type.
    #[error("there are two scripts of the type {name}: in {one} and in {other}; rename one", one = one.display(), other = other.display())]
    Twins {
        name: String,
        /// Where the first is.
        one: PathBuf,
        /// Where the second is.
        other: PathBuf,
    },
    /// A file does not hold keys.
    #[error("{path} does not hold private keys, one a line in 64 hexadecimal digits; restore it, or make new keys with `ode seal rotate`", path = .0.display())]
    KeyFile(PathBuf),
    /// The key that opens a seal is not here.
    #[error("the key {0} is not here; copy the file of keys from where it was made")]
    NoKey(String),
    /// A seal was damaged, or belongs to something else.
    #[error("the secrets are damaged, or belong to something else; send them again")]
    BrokenSeal,
    /// Nothing can be sealed: the system has no random numbers, or the key is none.
    #[error("the secrets cannot be sealed: the key is unfit, or the system has no random numbers")]
    Unsealable,
    /// A process could not be started or fed.
    #[error(transparent)]
    Child(#[from] ode_child::Error),
    /// The store failed.
    #[error("{0}")]
    Store(#[from] ode_store::Error),
}

impl Error {
    fn file(path: &Path, error: std::io::Error) -> Self {
        Self::File { path: path.to_owned(), error }
    }
}

/// `:3:1`, as editors understand it.
fn place(at: Option<(usize, usize)>) -> String {
    at.map_or_else(String::new, |(line, column)| format!(":{line}:{column}"))
}
