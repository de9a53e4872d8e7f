//! Fresh stores on both databases, and the few steps that nearly every test takes: for the tests of the store and of the
//! pipelines that keep tables in it.

use crate::{ClaimRequest, Config, Store};
use ode_job::{Artifact, Claimed, JobId, JobRecord, JobRef, Lane, NewJob, Owner, Pipeline, WorkerId};
use serde_json::json;
use sqlx::postgres::PgConnection;
use sqlx::sqlite::SqliteConnection;
use sqlx::{AssertSqlSafe, Connection as _};
use std::time::{Duration, Instant};
use uuid::Uuid;

/// Makes each behaviour a test on SQLite and a test on PostgreSQL, by default on a fresh [`Store`]. Others name the two
/// functions of [`crate::trial`] that open what they need. The module `harness` of the tests says how, by its `config`.
#[macro_export]
#[allow(
    clippy::crate_in_macro_def,
    reason = "each crate of tests says in its module `harness` how it opens a store"
)]
macro_rules! on_both {
    ($($name:ident),+ $(,)?) => {
        $crate::on_both!(sqlite, postgres: $($name),+);
    };
    ($sqlite:ident, $postgres:ident: $($name:ident),+ $(,)?) => {
        mod $sqlite {
            $(#[tokio::test] async fn $name() {
                super::$name($crate::trial::$sqlite(crate::harness::config).await).await;
            })+
        }
        mod $postgres {
            $(#[tokio::test] async fn $name() {
                super::$name($crate::trial::$postgres(crate::harness::config).await).await;
            })+
        }
    };
}

/// How a store at this address is opened.
pub type Opening = fn(String) -> Config;

async fn open(config: Opening, url: &str) -> Store {
    Store::open(config(url.to_owned())).await.unwrap()
}

/// A new SQLite database, in memory.
pub async fn sqlite(config: Opening) -> Store {
    let store = open(config, "sqlite::memory:").await;
    store.migrate_up().await.unwrap();
    store
}

/// A new PostgreSQL database on the test server.
pub async fn postgres(config: Opening) -> Store {
    let store = open(config, &postgres_url().await).await;
    store.migrate_up().await.unwrap();
    store
}

/// The address of a new, empty PostgreSQL database.
pub async fn postgres_url() -> String {
    let server = std::env::var("ODE_TEST_POSTGRES_URL").expect(
        "ODE_TEST_POSTGRES_URL is not set: run the tests with `tests/run`, which starts a server for them",
    );
    let name = format!("ode_test_{}", Uuid::new_v4().simple());
    let mut connection = PgConnection::connect(&server).await.expect("the test server answers");
    let create = AssertSqlSafe(format!("CREATE DATABASE {name}"));
    sqlx::raw_sql(create).execute(&mut connection).await.unwrap();
    let (base, _) = server.rsplit_once('/').unwrap();
    format!("{base}/{name}")
}

/// A database that is reached in two ways: by a store, and by SQL of our own.
pub struct Database {
    pub store: Store,
    pub sql: Outside,
    pub url: String,
    /// Where the file is, for as long as it is needed.
    _dir: Option<tempfile::TempDir>,
}

/// A new SQLite database in a file, so that there can be a second connection.
pub async fn sqlite_file(config: Opening) -> Database {
    migrated(empty_sqlite_file(config).await).await
}

/// A new PostgreSQL database and a connection of our own.
pub async fn postgres_database(config: Opening) -> Database {
    migrated(empty_postgres(config).await).await
}

async fn migrated(database: Database) -> Database {
    database.store.migrate_up().await.unwrap();
    database
}

/// A file in which there is nothing yet.
pub async fn empty_sqlite_file(config: Opening) -> Database {
    let dir = tempfile::tempdir().unwrap();
    let url = format!("sqlite:{}", dir.path().join("ode.db").display());
    let store = open(config, &url).await;
    let sql = Outside::Sqlite(SqliteConnection::connect(&url).await.unwrap());
    Database { store, sql, url, _dir: Some(dir) }
}

/// A PostgreSQL database in which there is nothing yet.
pub async fn empty_postgres(config: Opening) -> Database {
    let url = postgres_url().await;
    let store = open(config, &url).await;
    let sql = Outside::Postgres(PgConnection::connect(&url).await.unwrap());
    Database { store, sql, url, _dir: None }
}

/// A connection for what no verb of the store would do.
pub enum Outside {
    Postgres(PgConnection),
    Sqlite(SqliteConnection),
}

impl Outside {
    /// Runs one statement, in which `$1` to `$n` are ids and `{now}` is the clock. Answers how many rows it
    /// changed, or what the database said.
    pub async fn run(&mut self, sql: &str, ids: &[Uuid]) -> Result<u64, String> {
        let sql = AssertSqlSafe(self.with_clock(sql));
        let done = match self {
            Outside::Postgres(connection) => {
                let query = ids.iter().fold(sqlx::query(sql), |query, id| query.bind(*id));
                query.execute(connection).await.map(|done| done.rows_affected())
            }
            Outside::Sqlite(connection) => {
                let query = ids.iter().fold(sqlx::query(sql), |query, id| query.bind(*id));
                query.execute(connection).await.map(|done| done.rows_affected())
            }
        };
        done.map_err(|error| error.to_string())
    }

    pub async fn number(&mut self, sql: &str, ids: &[Uuid]) -> i64 {
        let sql = AssertSqlSafe(self.with_clock(sql));
        match self {
            Outside::Postgres(connection) => {
                let query = ids.iter().fold(sqlx::query_scalar(sql), |query, id| query.bind(*id));
                query.fetch_one(connection).await.unwrap()
            }
            Outside::Sqlite(connection) => {
                let query = ids.iter().fold(sqlx::query_scalar(sql), |query, id| query.bind(*id));
                query.fetch_one(connection).await.unwrap()
            }
        }
    }

    fn with_clock(&self, sql: &str) -> String {
        let now = match self {
            Outside::Postgres(_) => "now()",
            Outside::Sqlite(_) => "CAST(unixepoch('subsec') * 1000000 AS INTEGER)",
        };
        sql.replace("{now}", now)
    }
}

pub const LEASE: Duration = Duration::from_secs(300);

/// A job with nothing special about it.
pub fn job(pipeline: Pipeline) -> NewJob {
    NewJob::new(pipeline, "plain", json!({ "document": "a.pdf" }))
}

pub fn organisation() -> Owner {
    Owner::Organisation(Uuid::new_v4())
}

/// Registers a worker.
pub async fn worker(store: &Store) -> WorkerId {
    let id = WorkerId(Uuid::new_v4());
    store.register(id, "test", "0").await.unwrap();
    id
}

pub fn request(lane: Lane, worker: WorkerId, count: usize) -> ClaimRequest {
    ClaimRequest { lane, worker, count, after: Uuid::nil(), lease: LEASE, attempt_timeout: LEASE }
}

pub async fn claim(store: &Store, lane: Lane, worker: WorkerId, count: usize) -> Vec<Claimed> {
    store.claim(request(lane, worker, count)).await.unwrap()
}

pub async fn claim_one(store: &Store, lane: Lane, worker: WorkerId) -> Claimed {
    let mut claimed = claim(store, lane, worker, 1).await;
    assert_eq!(claimed.len(), 1, "nothing to claim in {lane}");
    claimed.remove(0)
}

/// The job as it stands.
pub async fn record(store: &Store, job: JobId) -> JobRecord {
    store.job(JobRef::Id(job)).await.unwrap()
}

/// Makes a worker fall silent, and waits until others can see it.
pub async fn silence(store: &Store, worker: WorkerId) {
    assert!(
        store.beat(worker, Duration::ZERO, 0, false).await.unwrap(),
        "an unknown worker cannot fall silent"
    );
    until(async || store.look(&[]).await.unwrap().has_lost).await;
}

/// Nothing that a test waits for takes longer than this.
const PATIENCE: Duration = Duration::from_secs(20);

/// Waits until it is so.
pub async fn until(is_so: impl AsyncFn() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !is_so().await {
        assert!(Instant::now() < deadline, "waited in vain for {PATIENCE:?}");
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

/// A file as an attempt would publish it.
pub fn file(path: &str) -> Artifact {
    Artifact {
        role: "result".into(),
        name: "invoice.xml".into(),
        storage: "local".into(),
        path: path.into(),
        content_type: "application/xml".into(),
        bytes: 3,
        sha256: "0".repeat(64),
    }
}

/// A job's history as words.
pub async fn history(store: &Store, job: JobId) -> Vec<String> {
    store.events(job).await.unwrap().iter().map(|event| event.event.to_string()).collect()
}
