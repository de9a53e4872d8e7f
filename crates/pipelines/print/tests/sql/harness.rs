//! How the tests of this crate open a store, and the steps that most of them take.

use ode_job::{Artifact, Claimed, Edge, Ended, Event, JobId, Lease, Machine, Pipeline, Standing, State};
use ode_print::machine::{EXPORT, ORDER};
use ode_print::order::OrderStep;
use ode_print::request::{Money, OrderAsk};
use ode_print::sql::{ask_order, order_of, record_step, set_spend_cap};
use ode_store::sql::Held;
use ode_store::trial::{Outside, file};
use ode_store::{Config, Declaration, Error, Finish, Finished, Store};
use serde_json::json;
use uuid::Uuid;

/// How a store at this address is opened.
pub(crate) fn config(url: impl Into<String>) -> Config {
    static XML_DECLARATION: Declaration = Declaration::new(XML);
    ode_store::declare(&[&ode_print::DECLARATION, &XML_DECLARATION]).unwrap();
    Config::new(url)
}

/// A pipeline that is not this one.
pub(crate) const XML: Pipeline = Pipeline::new(&Machine {
    name: "xml",
    article: "An",
    initial: WAITING,
    is_early_initial: false,
    states: &[
        Standing::ready(WAITING, "xml"),
        Standing::running(RUNNING, "xml"),
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
const WAITING: State = State::new("queued");
const RUNNING: State = State::new("processing");
const DONE: State = State::new("complete");
const FAILED: State = State::new("failed");

/// The end of an attempt; a map that was exported has its export.
pub(crate) fn ending(job: Claimed, ended: Ended) -> Finish {
    let result = (ended == Ended::Succeeded).then(|| json!({ "pages": 1 }));
    let is_export = ended == Ended::Succeeded && job.lane == EXPORT;
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
    set_spend_cap(store.sql(), organisation, "USD", Money(10_000), Money(100_000)).await.unwrap();
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
    if order_of(store.sql(), lease.job()).await.unwrap().is_none() {
        let organisation = spender(store).await;
        match ask_order(store, lease.job(), organisation, &order_ask()).await {
            Ok(_) => {}
            // The lease was lost, and the job has ended meanwhile.
            Err(Error::Refused { .. }) => return,
            Err(error) => panic!("{error}"),
        }
    }
    for step in order_steps(lease.job()) {
        match record_step(Held::new(store, lease), &step).await {
            Ok(()) | Err(Error::LeaseLost(_)) => {}
            Err(error) => panic!("{}: {error}", step.name()),
        }
    }
}

pub(crate) async fn finish(store: &Store, job: Claimed, ended: Ended) -> Finished {
    if job.lane == ORDER && ended == Ended::Succeeded {
        place(store, &job.lease).await;
    }
    store.finish(vec![ending(job, ended)]).await.unwrap().remove(0)
}

/// A map with nothing on it.
pub(crate) const FEATURES: &str = r#"{"features":[],"type":"FeatureCollection"}"#;

/// Tries each statement on the row with this id, and expects a refusal that names what it breaks.
pub(crate) async fn check_refused(sql: &mut Outside, id: Uuid, cases: &[(&str, &str)]) {
    for (statement, broken) in cases {
        match sql.run(statement, &[id]).await {
            Ok(changed) => panic!("accepted, {changed} rows: {statement}"),
            Err(refusal) => assert!(
                refusal.to_lowercase().contains(&broken.to_lowercase()),
                "{statement}\nwas refused for another reason: {refusal}"
            ),
        }
    }
}
