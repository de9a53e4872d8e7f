//! How the tests of this crate open a store, and the steps of prints and orders that they take.

use crate::machines::lane;
use ode_job::{Artifact, Claimed, Ended, JobId, Lease};
use ode_print::order::OrderStep;
use ode_print::request::{Money, OrderAsk};
use ode_print::sql::{self, order_of, record_step};
use ode_store::sql::Held;
use ode_store::{Config, Error, Finish, Finished, Store};
use serde_json::json;
use uuid::Uuid;

pub(crate) use ode_store::on_both;
use ode_store::trial;
pub(crate) use ode_store::trial::{
    Database, LEASE, Outside as Sql, claim, claim_one, file, history, job, organisation, postgres_url,
    record, request, silence, until, worker,
};

/// How a store at this address is opened.
pub(crate) fn config(url: impl Into<String>) -> Config {
    crate::machines::declare();
    Config::new(url)
}

pub(crate) async fn sqlite() -> Store {
    trial::sqlite(config).await
}

pub(crate) async fn sqlite_file() -> Database {
    trial::sqlite_file(config).await
}

pub(crate) async fn empty_sqlite_file() -> Database {
    trial::empty_sqlite_file(config).await
}

pub(crate) async fn postgres_database() -> Database {
    trial::postgres_database(config).await
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
    sql::set_spend_cap(store.sql(), organisation, "USD", Money(10_000), Money(100_000)).await.unwrap();
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
        match sql::ask_order(store, lease.job(), organisation, &order_ask()).await {
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
    if job.lane == lane::PRINT_ORDER && ended == Ended::Succeeded {
        place(store, &job.lease).await;
    }
    store.finish(vec![ending(job, ended)]).await.unwrap().remove(0)
}

/// A map with nothing on it.
pub(crate) const FEATURES: &str = r#"{"features":[],"type":"FeatureCollection"}"#;
