//! Orders while two versions of the program work side by side, as they do while a new one is rolled out.

use super::client::until;
use super::orders::{Shop, order, post};
use crate::harness::{Ode, claim, on_both};
use crate::serve::Serving;
use ode_print::order::OrderStep;
use ode_print::sql::record_step;
use ode_store::sql::Held;
use rustix::process::Signal;
use serde_json::{Value, json};

on_both!(
    an_order_that_another_version_began_is_ended_as_it_was_begun,
    an_order_that_this_version_does_not_understand_waits_for_one_that_does,
    a_newer_schema_stops_no_order_that_is_under_way,
);

/// What another version may send: fields that this one never does, and a file at another address.
fn other_request(external_id: &str) -> Value {
    let file = json!({ "type": "default", "url": "https://example.com/other.png", "visible": false });
    json!({
        "external_id": external_id, "shipping": "STANDARD", "recipient": order()["recipient"],
        "gift": { "subject": "For you", "message": "" },
        "items": [{ "external_id": external_id, "variant_id": 1, "quantity": 1, "name": "Map", "files": [file] }],
    })
}

fn an_order_that_another_version_began_is_ended_as_it_was_begun(ode: &Ode) {
    let shop = Shop::open(ode, &["--no-fetch"]);
    let provider = shop.sim().with("Authorization", "Bearer token");
    for is_sent in [false, true] {
        let job = shop.exported();
        shop.order(job);
        let request = other_request(&job.0.simple().to_string());
        ode.with_store(async |store| {
            let held = claim(&store, ode_print::machine::ORDER).await;
            let freeze = OrderStep::Freeze { request: request.clone() };
            record_step(Held::new(&store, &held.lease), &freeze).await.unwrap();
            record_step(Held::new(&store, &held.lease), &OrderStep::CreateSent).await.unwrap();
            store.leave(held.lease.worker()).await.unwrap();
        });
        if is_sent {
            assert_eq!(post(&provider, "/orders", &request).code(), 200);
        }
        let _worker = shop.quick_worker();
        shop.assert_once(job, "begun elsewhere");
        let placed = provider.get(&format!("/orders/@{}", job.0.simple())).json();
        let (files, gift) = (&placed["result"]["items"][0]["files"], &placed["result"]["gift"]);
        assert_eq!((&files[0]["url"], gift), (&request["items"][0]["files"][0]["url"], &request["gift"]));
    }
}

fn an_order_that_this_version_does_not_understand_waits_for_one_that_does(ode: &Ode) {
    let shop = Shop::open(ode, &["--no-fetch"]);
    let job = shop.exported();
    shop.order(job);
    let [add, remove] = match ode.url().starts_with("postgres") {
        true => [r#"asked || '{"wrapping": "red"}'"#, "asked - 'wrapping'"],
        false => ["json_set(asked, '$.wrapping', 'red')", "json_remove(asked, '$.wrapping')"],
    };
    ode.sql_of_retention(&format!("UPDATE print_orders SET asked = {add}"));
    let _worker = shop.quick_worker();
    shop.until_put_off(job);
    assert_eq!(ode.json(["jobs", "show", &job.to_string()])["retry_count"], 0);
    assert_eq!(shop.told(job, "create"), 0);
    ode.sql_of_retention(&format!("UPDATE print_orders SET asked = {remove}"));
    shop.assert_once(job, "understood");
}

fn a_newer_schema_stops_no_order_that_is_under_way(ode: &Ode) {
    let shop = Shop::open(ode, &["--no-fetch"]);
    let job = shop.exported();
    shop.fault("hang:create");
    shop.order(job);
    let old: Serving = shop.quick_worker();
    until("the draft", || shop.told(job, "create") == 1);
    let newest = crate::harness::schema_newest() + 1;
    let now = if ode.url().starts_with("postgres") { "now()" } else { "0" };
    ode.sql(&format!("INSERT INTO ode_schema (version, name, applied_at) VALUES ({newest}, 'newer', {now})"));
    ode.run(["worker"]).assert_refused(&["Use a newer ode"]);
    until("the charge", || shop.told(job, "charge") == 1);
    old.stop(Signal::TERM);
    ode.sql(&format!("DELETE FROM ode_schema WHERE version = {newest}"));
    let _new = shop.quick_worker();
    shop.assert_once(job, "by the old one");
}
