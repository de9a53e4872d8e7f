//! Fresh stores with the rules of scripts, and the few steps that nearly every test takes.

use ode_job::{Claimed, Edge, Ended, Event, JobId, Machine, Pipeline, Standing, State};
use ode_store::sql::{Param, params};
use ode_store::{Config, Declaration, Finish, Store};
use serde_json::json;

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

/// How a store at this address is opened.
pub(crate) fn config(url: String) -> Config {
    ode_store::declare(&[&ode_script::DECLARATION, &OTHER_DECLARATION]).unwrap();
    Config::new(url)
}

/// One number.
pub(crate) async fn number(store: &Store, sql: &'static str, id: JobId) -> i64 {
    store.sql().read(sql, params![id]).await.unwrap()[0].int("number").unwrap()
}

/// Changes the row of a job as no verb of the store would.
pub(crate) async fn change(store: &Store, sql: &'static str, params: &[Param]) {
    assert_eq!(store.sql().write(sql, params).await.unwrap().len(), 1);
}

/// The end of an attempt.
pub(crate) fn ending(job: Claimed, ended: Ended) -> Finish {
    let result = (ended == Ended::Succeeded).then(|| json!({ "success": true }));
    Finish { result, ..Finish::new(job, ended) }
}

pub(crate) async fn finish(store: &Store, job: Claimed, ended: Ended) {
    store.finish(vec![ending(job, ended)]).await.unwrap();
}
