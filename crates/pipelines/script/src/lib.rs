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
pub use codes::{CODES, KnownCode};
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
pub use setup::{Folders, SiteArgs, WorkArgs};
pub use shipped::{unpack, unpacked};

use machine::SCRIPT as PIPELINE;
use ode_http::Routes;
use ode_job::Lane;
use ode_pipeline::Pipeline;
use ode_store::{Declaration, Rules, Store};
use ode_worker::{Chore, Handler};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Scripts wait for turns and for each other, keep their secrets for another try, and go to the archive.
pub static DECLARATION: Declaration = Declaration {
    rules: Rules {
        look: |sql, ids| Box::pin(sql::gate::look(sql, ids)),
        may_wait: |sql, id| Box::pin(sql::gate::may_wait(sql, id)),
        renew: |tx, id| Box::pin(sql::secrets::renew(tx, id)),
        archive: Some("archive/scripts"),
    },
    ..Declaration::new(PIPELINE)
};

/// The script pipeline, ready for what this process does.
#[derive(Clone, Default)]
pub struct Scripts {
    handler: Option<ScriptHandler>,
    intake: Option<Arc<Intake>>,
    chores: Vec<Arc<dyn Chore>>,
}

impl Scripts {
    /// The pipeline of a worker.
    pub async fn worker(args: &WorkArgs, folders: &Folders, store: &Store) -> Result<Self, Error> {
        let handler = args.handler(folders, store).await?;
        Ok(Scripts { handler, chores: vec![Arc::new(chores::ShredSecrets)], intake: None })
    }

    /// The pipeline of a site.
    pub async fn site(args: &SiteArgs, folders: &Folders, store: &Store) -> Result<Self, Error> {
        let intake = args.intake(folders, store).await?;
        Ok(Scripts { intake: Some(Arc::new(intake)), ..Scripts::default() })
    }
}

impl Pipeline for Scripts {
    fn lanes(&self) -> Vec<(Lane, Arc<dyn Handler>)> {
        let lane = |handler| (machine::LANE, Arc::new(handler) as Arc<dyn Handler>);
        self.handler.clone().map(lane).into_iter().collect()
    }

    fn chores(&self) -> Vec<Arc<dyn Chore>> {
        self.chores.clone()
    }

    fn routes(&self) -> Routes {
        self.intake.clone().map(routes::routes).unwrap_or_default()
    }
}

/// Why scripts cannot be read or started. How a run ends is not an error but an [`Outcome`].
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file or folder could not be read or written.
    #[error("{path} could not be used: {error}", path = path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// What the system said.
        error: std::io::Error,
    },
    /// A manifest is wrong.
    #[error("{path}{place}: {message}", path = path.display(), place = place(.error.at), message = error.message)]
    Manifest {
        /// Which.
        path: PathBuf,
        /// What is wrong, and where.
        error: ManifestError,
    },
    /// A schema is wrong.
    #[error("{path}{place}: {message}", path = path.display(), place = place(*at))]
    Schema {
        /// Which.
        path: PathBuf,
        /// Line and column, both from 1, where they are known.
        at: Option<(usize, usize)>,
        /// What is wrong, and at which place of the schema.
        message: String,
    },
    /// Two scripts in one directory have the same type.
    #[error("there are two scripts of the type {name}: in {one} and in {other}; rename one", one = one.display(), other = other.display())]
    Twins {
        /// The type.
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
