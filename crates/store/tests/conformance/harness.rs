//! Fresh stores for tests, and the few steps that nearly every test takes.

use ode_job::{Claimed, Ended, Lane, NewJob, Owner, Pipeline, RetryPolicy, WorkerId};
use ode_store::{ClaimRequest, Config, Finish, Finished, Store};
use serde_json::json;
use std::time::Duration;
use uuid::Uuid;

/// Makes each behaviour a test on SQLite and a test on PostgreSQL.
macro_rules! on_both {
    ($($name:ident),+ $(,)?) => {
        mod sqlite {
            $(#[tokio::test] async fn $name() { super::$name($crate::harness::sqlite().await).await; })+
        }
        mod postgres {
            $(#[tokio::test] async fn $name() { super::$name($crate::harness::postgres().await).await; })+
        }
    };
}
pub(crate) use on_both;

/// A new SQLite database, in memory.
pub(crate) async fn sqlite() -> Store {
    let store = Store::open(Config::new("sqlite::memory:")).await.unwrap();
    store.migrate_up().await.unwrap();
    store
}

/// A new PostgreSQL database on the test server.
pub(crate) async fn postgres() -> Store {
    let store = Store::open(Config::new(postgres_url().await)).await.unwrap();
    store.migrate_up().await.unwrap();
    store
}

/// The address of a new, empty PostgreSQL database.
pub(crate) async fn postgres_url() -> String {
    let server = std::env::var("ODE_TEST_POSTGRES_URL").expect(
        "ODE_TEST_POSTGRES_URL is not set: run the tests with `tests/run`, which starts a server for them",
    );
    let name = format!("ode_test_{}", Uuid::new_v4().simple());
    let mut connection =
        sqlx::postgres::PgConnection::connect(&server).await.expect("the test server answers");
    let create = sqlx::AssertSqlSafe(format!("CREATE DATABASE {name}"));
    sqlx::raw_sql(create).execute(&mut connection).await.unwrap();
    let (base, _) = server.rsplit_once('/').unwrap();
    format!("{base}/{name}")
}

use sqlx::Connection as _;

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

pub(crate) fn ending(job: Claimed, ended: Ended) -> Finish {
    let result = (ended == Ended::Succeeded).then(|| json!({ "pages": 1 }));
    Finish { job, ended, result, artifacts: Vec::new(), retry: RetryPolicy::default(), jitter: 0.0 }
}

pub(crate) async fn finish(store: &Store, job: Claimed, ended: Ended) -> Finished {
    store.finish(vec![ending(job, ended)]).await.unwrap().remove(0)
}

/// A job's history as words.
pub(crate) async fn history(store: &Store, job: ode_job::JobId) -> Vec<String> {
    store.events(job).await.unwrap().iter().map(|event| event.event.to_string()).collect()
}
