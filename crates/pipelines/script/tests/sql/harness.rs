//! Fresh stores with the rules of scripts, and the few steps that nearly every test takes.

use ode_job::{
    Artifact, Claimed, Edge, Ended, Event, JobId, JobRecord, JobRef, Lane, Machine, NewJob, Owner, Pipeline,
    Standing, State, WorkerId,
};
use ode_store::sql::{Param, params};
use ode_store::{ClaimRequest, Config, Declaration, Finish, Store};
use serde_json::json;
use std::time::Duration;
use uuid::Uuid;

/// A pipeline that is not this one.
pub(crate) const OTHER: Pipeline = Pipeline::new(&Machine {
    name: "html",
    article: "An",
    initial: WAITING,
    is_early_initial: false,
    states: &[
        Standing::ready(WAITING, "html"),
        Standing::running(RUNNING, "html"),
        Standing::done(DONE),
        Standing::failed(FAILED),
    ],
    edges: &[
        Edge::new(WAITING, Event::Started, RUNNING),
        Edge::new(WAITING, Event::Failed, FAILED),
        Edge::new(WAITING, Event::Cancelled, FAILED),
        Edge::new(RUNNING, Event::Succeeded, DONE),
        Edge::new(RUNNING, Event::Failed, FAILED),
        Edge::new(RUNNING, Event::TimedOut, FAILED),
        Edge::new(RUNNING, Event::Stopped, FAILED),
        Edge::new(RUNNING, Event::Released, WAITING),
        Edge::new(RUNNING, Event::Rescued, WAITING),
        Edge::new(FAILED, Event::Retried, WAITING),
    ],
});
static OTHER_DECLARATION: Declaration = Declaration::new(OTHER);
const WAITING: State = State::new("pending");
const RUNNING: State = State::new("processing");
const DONE: State = State::new("completed");
const FAILED: State = State::new("failed");

/// Makes each behaviour a test on SQLite and a test on PostgreSQL, each on a fresh [`Store`].
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
    migrated("sqlite::memory:".into()).await
}

/// A new PostgreSQL database on the test server.
pub(crate) async fn postgres() -> Store {
    let server = std::env::var("ODE_TEST_POSTGRES_URL").expect(
        "ODE_TEST_POSTGRES_URL is not set: run the tests with `tests/run`, which starts a server for them",
    );
    let name = format!("ode_test_{}", Uuid::new_v4().simple());
    let create: &'static str = format!("CREATE DATABASE {name}").leak();
    let store = Store::open(Config::new(&server)).await.expect("the test server answers");
    store.sql().write(create, &[]).await.unwrap();
    store.close().await;
    let (base, _) = server.rsplit_once('/').unwrap();
    migrated(format!("{base}/{name}")).await
}

async fn migrated(url: String) -> Store {
    ode_store::declare(&[&ode_script::DECLARATION, &OTHER_DECLARATION]).unwrap();
    let store = Store::open(Config::new(url)).await.unwrap();
    store.migrate_up().await.unwrap();
    store
}

/// One number.
pub(crate) async fn number(store: &Store, sql: &'static str, id: JobId) -> i64 {
    store.sql().read(sql, params![id]).await.unwrap()[0].int("number").unwrap()
}

/// Changes the row of a job as no verb of the store would.
pub(crate) async fn change(store: &Store, sql: &'static str, params: &[Param]) {
    assert_eq!(store.sql().write(sql, params).await.unwrap().len(), 1);
}

const LEASE: Duration = Duration::from_secs(300);

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

pub(crate) async fn claim(store: &Store, lane: Lane, worker: WorkerId, count: usize) -> Vec<Claimed> {
    let request =
        ClaimRequest { lane, worker, count, after: Uuid::nil(), lease: LEASE, attempt_timeout: LEASE };
    store.claim(request).await.unwrap()
}

pub(crate) async fn claim_one(store: &Store, lane: Lane, worker: WorkerId) -> Claimed {
    let mut claimed = claim(store, lane, worker, 1).await;
    assert_eq!(claimed.len(), 1, "nothing to claim in {lane}");
    claimed.remove(0)
}

/// The end of an attempt.
pub(crate) fn ending(job: Claimed, ended: Ended) -> Finish {
    let result = (ended == Ended::Succeeded).then(|| json!({ "success": true }));
    Finish { result, ..Finish::new(job, ended) }
}

pub(crate) async fn finish(store: &Store, job: Claimed, ended: Ended) {
    store.finish(vec![ending(job, ended)]).await.unwrap();
}

/// The job as it stands.
pub(crate) async fn record(store: &Store, job: JobId) -> JobRecord {
    store.job(JobRef::Id(job)).await.unwrap()
}

/// A job's history as words.
pub(crate) async fn history(store: &Store, job: JobId) -> Vec<String> {
    store.events(job).await.unwrap().iter().map(|event| event.event.to_string()).collect()
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
