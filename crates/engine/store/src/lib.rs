//! All SQL of ODE, for PostgreSQL and SQLite, and the files that jobs own.
//!
//! The store carries out, it does not decide: which state may follow which, and whether a job is tried again,
//! is asked of `ode-job` and then written under a guard that names the fence and the state it was decided on.
//! A write whose guard no longer holds changes nothing and says so.

mod access;
mod attempts;
#[doc(hidden)]
pub mod crash;
mod database;
mod error;
mod feed;
mod files;
mod jobs;
#[cfg(test)]
mod plans;
mod retention;
mod schema;
pub mod sql;
#[cfg(feature = "trial")]
#[expect(clippy::unwrap_used, clippy::expect_used, reason = "in a test, a panic at the place is the report")]
pub mod trial;

pub use access::keys::{ApiKey, KeyText, NewKey, OwnerKind, Principal};
pub use access::limiter::{Limiter, Rate};
pub use attempts::chore::Hold;
pub use attempts::claim::ClaimRequest;
pub use attempts::finish::{Finish, Finished};
pub use attempts::hints::ping_redis;
pub use attempts::rules::{Gate, Gates, Rules, Ruling};
pub use attempts::wake::{Wake, Wakes};
pub use attempts::workers::{Look, Renewed};
pub use database::dialect::Dialect;
pub use database::health::Finding;
pub use error::Error;
pub use feed::Told;
pub use feed::webhooks::{Delivery, Endpoint, Sent};
pub use files::blobs::{Blobs, BlobsConfig, Stored, sha256_hex};
pub use files::disk;
pub use files::incoming::Incoming;
pub use files::leftovers::{LEFTOVERS, Publisher, Withdrawn};
pub use files::places::{Destination, MANIFEST, Places, PlacesConfig, Published, PublishedFile};
pub use jobs::beside::{EnqueuedTogether, NewJobs};
pub use jobs::documents::{Download, JobFiles};
pub use jobs::enqueue::{BornClaimed, Enqueued, Slots, fingerprint};
pub use jobs::keyed::Accepted;
pub use jobs::overview::{LiveJobs, Overview};
pub use jobs::owned::{OwnedFilter, OwnedJob, OwnedPage, Setback};
pub use jobs::read::{ListFilter, Page};
pub use jobs::twins::Twin;
pub use retention::{Cleaned, Retention};
pub use schema::declaration::{Declaration, Notified, declare};
pub use schema::migrate::{Migration, Status as MigrationStatus, Taken, newest as schema_newest};
pub(crate) use sql::micros;

use attempts::{hints, wake};
use database::db::Db;
use database::{connections, dialect};
use jobs::enqueue;
use jobs::mint::Mint;
use schema::declaration::declared;
use schema::migrate;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

/// How to open a store.
#[derive(Debug, Clone)]
pub struct Config {
    /// `postgres://…` or `sqlite:PATH`.
    pub database_url: String,
    /// Connections to PostgreSQL at most.
    pub connections_max: u32,
    /// Redis, for hints; everything works without.
    pub redis_url: Option<String>,
    /// Who writes, for the history: `web`, `worker`, `cli`.
    pub actor: String,
    /// How long a worker may be silent before its jobs go to others.
    pub silence_max: Duration,
}

impl Config {
    /// The defaults for a database.
    pub fn new(database_url: impl Into<String>) -> Self {
        Config {
            database_url: database_url.into(),
            connections_max: 10,
            redis_url: None,
            actor: "ode".into(),
            silence_max: Duration::from_secs(5),
        }
    }
}

/// The one place where jobs are kept.
///
/// Cheap to clone; all clones share the connections.
#[derive(Clone, Debug)]
pub struct Store {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    db: Db,
    mint: Mint,
    actor: String,
    silence_max: Duration,
    url: String,
    wake: wake::Hub,
    hints: hints::Hints,
    group: enqueue::Group,
    /// Bumped with every write of this process.
    told: watch::Sender<()>,
}

impl Store {
    /// Opens the database without looking at its schema; see [`Store::check_schema`] and [`Store::migrate_up`].
    pub async fn open(config: Config) -> Result<Self, Error> {
        if ode_job::machines::pipelines().len() != declared().len() {
            return Err(Error::Config(
                "The machines of this program are declared without their rules; see ode_store::declare."
                    .into(),
            ));
        }
        let url = &config.database_url;
        let db = if url.starts_with("postgres:") || url.starts_with("postgresql:") {
            let pool = dialect::postgres::open(url, config.connections_max).await?;
            Db::Postgres(connections::Connections::new(pool))
        } else if url.starts_with("sqlite:") {
            dialect::sqlite::open(url).await?
        } else {
            let shown = url.split(':').next().unwrap_or_default();
            return Err(Error::Config(format!(
                "\"{shown}:\" is not a database ODE knows. Use postgres://user@host/name or sqlite:PATH."
            )));
        };
        let (group, waiting) = enqueue::Group::new();
        let inner = Inner {
            wake: wake::Hub::new(),
            hints: hints::Hints::open(config.redis_url.as_deref())?,
            mint: Mint::new(),
            actor: config.actor,
            silence_max: config.silence_max,
            url: config.database_url,
            group,
            told: watch::Sender::new(()),
            db,
        };
        let store = Store { inner: Arc::new(inner) };
        enqueue::spawn_group_commits(&store, waiting);
        Ok(store)
    }

    /// Brings the schema to the newest version; answers the versions that were missing.
    pub async fn migrate_up(&self) -> Result<Vec<i64>, Error> {
        let applied = migrate::up(self.db(), declared()).await;
        self.db().forget_tables();
        applied
    }

    /// Takes schema versions above `target` away, with all they hold.
    pub async fn migrate_down(&self, target: i64) -> Result<Taken, Error> {
        let taken = migrate::down(self.db(), declared(), target).await;
        self.db().forget_tables();
        taken
    }

    /// Every schema version and whether it is applied, also those that this program does not know.
    pub async fn migrate_status(&self) -> Result<Vec<MigrationStatus>, Error> {
        migrate::status(self.db(), declared()).await
    }

    /// Refuses a database whose schema is older or newer than this program.
    pub async fn check_schema(&self) -> Result<(), Error> {
        migrate::check(self.db(), declared()).await
    }

    pub fn dialect(&self) -> Dialect {
        self.db().dialect()
    }

    /// Statements this process has sent to its databases.
    pub fn statements_sent(&self) -> u64 {
        database::db::SENT.load(std::sync::atomic::Ordering::Relaxed)
    }

    /// Ends all connections. Open transactions are rolled back by the database.
    pub async fn close(&self) {
        self.db().close().await;
    }

    fn db(&self) -> &Db {
        &self.inner.db
    }
}
