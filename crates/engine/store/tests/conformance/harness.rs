//! Fresh stores for tests, and the few steps that nearly every test takes.

use crate::machines::lane;
use ode_job::order::{Money, OrderAsk};
use ode_job::{
    Artifact, Claimed, Ended, JobId, JobRecord, JobRef, Lane, Lease, NewJob, OrderStep, Owner, Pipeline,
    WorkerId,
};
use ode_store::sql::Held;
use ode_store::{ClaimRequest, Config, Error, Finish, Finished, Store};
use serde_json::json;
use sqlx::postgres::PgConnection;
use sqlx::sqlite::SqliteConnection;
use sqlx::{AssertSqlSafe, Connection as _};
use std::time::{Duration, Instant};
use uuid::Uuid;

/// Makes each behaviour a test on SQLite and a test on PostgreSQL, by default on a fresh [`Store`]. Others
/// name the two functions of this file that open what they need.
macro_rules! on_both {
    ($($name:ident),+ $(,)?) => {
        $crate::harness::on_both!(sqlite, postgres: $($name),+);
    };
    ($sqlite:ident, $postgres:ident: $($name:ident),+ $(,)?) => {
        mod $sqlite {
            $(#[tokio::test] async fn $name() { super::$name($crate::harness::$sqlite().await).await; })+
        }
        mod $postgres {
            $(#[tokio::test] async fn $name() { super::$name($crate::harness::$postgres().await).await; })+
        }
    };
}
pub(crate) use on_both;

/// How a store at this address is opened.
pub(crate) fn config(url: impl Into<String>) -> Config {
    crate::machines::declare();
    Config::new(url)
}

/// A new SQLite database, in memory.
pub(crate) async fn sqlite() -> Store {
    let store = Store::open(config("sqlite::memory:")).await.unwrap();
    store.migrate_up().await.unwrap();
    store
}

/// A new PostgreSQL database on the test server.
pub(crate) async fn postgres() -> Store {
    let store = Store::open(config(postgres_url().await)).await.unwrap();
    store.migrate_up().await.unwrap();
    store
}

/// The address of a new, empty PostgreSQL database.
pub(crate) async fn postgres_url() -> String {
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
pub(crate) struct Database {
    pub(crate) store: Store,
    pub(crate) sql: Sql,
    pub(crate) url: String,
    /// Where the file is, for as long as it is needed.
    _dir: Option<tempfile::TempDir>,
}

/// A new SQLite database in a file, so that there can be a second connection.
pub(crate) async fn sqlite_file() -> Database {
    migrated(empty_sqlite_file().await).await
}

/// A new PostgreSQL database and a connection of our own.
pub(crate) async fn postgres_database() -> Database {
    migrated(empty_postgres().await).await
}

async fn migrated(database: Database) -> Database {
    database.store.migrate_up().await.unwrap();
    database
}

/// A file in which there is nothing yet.
pub(crate) async fn empty_sqlite_file() -> Database {
    let dir = tempfile::tempdir().unwrap();
    let url = format!("sqlite:{}", dir.path().join("ode.db").display());
    let store = Store::open(config(&url)).await.unwrap();
    let sql = Sql::Sqlite(SqliteConnection::connect(&url).await.unwrap());
    Database { store, sql, url, _dir: Some(dir) }
}

/// A PostgreSQL database in which there is nothing yet.
pub(crate) async fn empty_postgres() -> Database {
    let url = postgres_url().await;
    let store = Store::open(config(&url)).await.unwrap();
    let sql = Sql::Postgres(PgConnection::connect(&url).await.unwrap());
    Database { store, sql, url, _dir: None }
}

/// A connection for what no verb of the store would do.
pub(crate) enum Sql {
    Postgres(PgConnection),
    Sqlite(SqliteConnection),
}

impl Sql {
    /// Runs one statement, in which `$1` to `$n` are ids and `{now}` is the clock. Answers how many rows it
    /// changed, or what the database said.
    pub(crate) async fn run(&mut self, sql: &str, ids: &[Uuid]) -> Result<u64, String> {
        let sql = AssertSqlSafe(self.with_clock(sql));
        let done = match self {
            Sql::Postgres(connection) => {
                let query = ids.iter().fold(sqlx::query(sql), |query, id| query.bind(*id));
                query.execute(connection).await.map(|done| done.rows_affected())
            }
            Sql::Sqlite(connection) => {
                let query = ids.iter().fold(sqlx::query(sql), |query, id| query.bind(*id));
                query.execute(connection).await.map(|done| done.rows_affected())
            }
        };
        done.map_err(|error| error.to_string())
    }

    /// One number.
    pub(crate) async fn number(&mut self, sql: &str, ids: &[Uuid]) -> i64 {
        let sql = AssertSqlSafe(self.with_clock(sql));
        match self {
            Sql::Postgres(connection) => {
                let query = ids.iter().fold(sqlx::query_scalar(sql), |query, id| query.bind(*id));
                query.fetch_one(connection).await.unwrap()
            }
            Sql::Sqlite(connection) => {
                let query = ids.iter().fold(sqlx::query_scalar(sql), |query, id| query.bind(*id));
                query.fetch_one(connection).await.unwrap()
            }
        }
    }

    fn with_clock(&self, sql: &str) -> String {
        let now = match self {
            Sql::Postgres(_) => "now()",
            Sql::Sqlite(_) => "CAST(unixepoch('subsec') * 1000000 AS INTEGER)",
        };
        sql.replace("{now}", now)
    }
}

pub(crate) const LEASE: Duration = Duration::from_secs(300);

/// A job with nothing special about it.
pub(crate) fn job(pipeline: Pipeline) -> NewJob {
    NewJob::new(pipeline, "plain", json!({ "document": "a.pdf" }))
}

pub(crate) fn organisation() -> Owner {
    Owner::Organisation(Uuid::new_v4())
}

/// Registers a worker.
pub(crate) async fn worker(store: &Store) -> WorkerId {
    let id = WorkerId(Uuid::new_v4());
    store.register(id, "test", "0").await.unwrap();
    id
}

pub(crate) fn request(lane: Lane, worker: WorkerId, count: usize) -> ClaimRequest {
    ClaimRequest { lane, worker, count, after: Uuid::nil(), lease: LEASE, attempt_timeout: LEASE }
}

pub(crate) async fn claim(store: &Store, lane: Lane, worker: WorkerId, count: usize) -> Vec<Claimed> {
    store.claim(request(lane, worker, count)).await.unwrap()
}

pub(crate) async fn claim_one(store: &Store, lane: Lane, worker: WorkerId) -> Claimed {
    let mut claimed = claim(store, lane, worker, 1).await;
    assert_eq!(claimed.len(), 1, "nothing to claim in {lane}");
    claimed.remove(0)
}

/// The end of an attempt; a map that was exported has its export.
pub(crate) fn ending(job: Claimed, ended: Ended) -> Finish {
    let result = (ended == Ended::Succeeded).then(|| json!({ "pages": 1 }));
    let is_export = ended == Ended::Succeeded && job.lane == lane::PRINT_EXPORT;
    let artifacts = is_export.then(|| export(&Uuid::new_v4().to_string())).into_iter().collect();
    Finish { result, artifacts, ..Finish::new(job, ended) }
}

/// A PNG as the export of a map would publish it.
pub(crate) fn export(path: &str) -> Artifact {
    Artifact { role: "export".into(), name: "map.png".into(), content_type: "image/png".into(), ..file(path) }
}

/// An order that could be delivered.
pub(crate) fn order_ask() -> OrderAsk {
    let order = json!({
        "recipient": { "name": "Ada", "address1": "Main St 1", "city": "Springfield", "country_code": "US" },
        "variant_id": 1,
    });
    serde_json::from_value(order).unwrap()
}

/// An organisation that may order.
pub(crate) async fn spender(store: &Store) -> Uuid {
    let organisation = Uuid::new_v4();
    store.set_spend_cap(organisation, "USD", Money(10_000), Money(100_000)).await.unwrap();
    organisation
}

/// Everything that is recorded of an order on its way to being placed.
pub(crate) fn order_steps(job: JobId) -> [OrderStep; 5] {
    let provider_order_id = (job.0.as_u128() as i64 & i64::MAX).max(1);
    [
        OrderStep::Freeze { request: json!({ "external_id": job.0.simple().to_string() }) },
        OrderStep::CreateSent,
        OrderStep::Draft { provider_order_id, cost_cents: Some(18_49) },
        OrderStep::ConfirmSent,
        OrderStep::Confirmed { status: "pending".into() },
    ]
}

/// Records what the handler of orders would have, where the lease still holds: a job is ordered only with its order.
pub(crate) async fn place(store: &Store, lease: &Lease) {
    if store.order_of(lease.job()).await.unwrap().is_none() {
        let organisation = spender(store).await;
        match store.ask_order(lease.job(), organisation, &order_ask()).await {
            Ok(_) => {}
            // The lease was lost, and the job has ended meanwhile.
            Err(Error::Refused { .. }) => return,
            Err(error) => panic!("{error}"),
        }
    }
    for step in order_steps(lease.job()) {
        match Held::new(store, lease).record_order(&step).await {
            Ok(()) | Err(Error::LeaseLost(_)) => {}
            Err(error) => panic!("{}: {error}", step.name()),
        }
    }
}

pub(crate) async fn finish(store: &Store, job: Claimed, ended: Ended) -> Finished {
    if job.lane == lane::PRINT_ORDER && ended == Ended::Succeeded {
        place(store, &job.lease).await;
    }
    store.finish(vec![ending(job, ended)]).await.unwrap().remove(0)
}

/// The job as it stands.
pub(crate) async fn record(store: &Store, job: JobId) -> JobRecord {
    store.job(JobRef::Id(job)).await.unwrap()
}

/// Makes a worker fall silent, and waits until others can see it.
pub(crate) async fn silence(store: &Store, worker: WorkerId) {
    assert!(
        store.beat(worker, Duration::ZERO, 0, false).await.unwrap(),
        "an unknown worker cannot fall silent"
    );
    until(async || store.look(&[]).await.unwrap().has_lost).await;
}

/// Nothing that a test waits for takes longer than this.
const PATIENCE: Duration = Duration::from_secs(20);

/// Waits until it is so.
pub(crate) async fn until(is_so: impl AsyncFn() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !is_so().await {
        assert!(Instant::now() < deadline, "waited in vain for {PATIENCE:?}");
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

/// A file as an attempt would publish it.
pub(crate) fn file(path: &str) -> Artifact {
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

/// A map with nothing on it.
pub(crate) const FEATURES: &str = r#"{"features":[],"type":"FeatureCollection"}"#;

/// A job's history as words.
pub(crate) async fn history(store: &Store, job: JobId) -> Vec<String> {
    store.events(job).await.unwrap().iter().map(|event| event.event.to_string()).collect()
}
