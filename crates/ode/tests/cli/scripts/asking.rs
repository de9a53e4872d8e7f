//! What is taken and what is refused, and what is told of it, while nothing runs.

use super::{Site, input};
use crate::harness::{Ode, on_both};
use crate::service::key;
use crate::web::client::Client;
use serde_json::{Value, json};

on_both!(
    a_script_is_taken_at_once_and_shown_without_its_secrets,
    what_is_wrong_is_told_with_its_place_and_without_its_secret,
    a_request_under_a_key_is_taken_once,
    a_sequence_waits_for_its_first_job_and_goes_with_it,
    scripts_are_listed_by_type_status_restaurant_creator_and_batch,
    only_what_the_state_allows_is_done,
    nobody_else_sees_a_script,
    keys_are_listed_and_rotated,
);

fn a_script_is_taken_at_once_and_shown_without_its_secrets(ode: &Ode) {
    let site = Site::web(ode);
    let asked = json!({ "input": input("well"), "priority": 7, "metadata": { "note": "first" } });
    let answer = site.client.ask_script(&asked);
    assert_eq!(answer.code(), 202, "{answer:?}");
    let taken = answer.json();
    let (id, reference) = (taken["id"].as_str().unwrap(), taken["job_id"].as_str().unwrap());
    assert!(reference.starts_with("JOB_") && taken["status"] == "queued", "{taken}");
    assert_eq!(answer.header("location"), format!("/v1/scripts/jobs/{id}"));
    let job = site.client.script(reference);
    assert_eq!(job["id"], id);
    let hidden =
        json!({ "email": { "$secret": "email" }, "password": { "$secret": "password" }, "how": "well" });
    assert_eq!(job["input"], hidden);
    assert_eq!((&job["priority"], &job["max_retries"]), (&json!(7), &json!(3)), "{job}");
    assert_eq!(job["metadata"], json!({ "note": "first" }));
    let types = site.client.get("/v1/scripts").json();
    let is_ours = |kind: &&Value| kind["type"] == "greet";
    let greet = types["types"].as_array().unwrap().iter().find(is_ours).unwrap();
    assert_eq!(greet["steps"], json!(["Sign in", "Greet"]));
    let later = json!({ "input": input("well"), "run_at": "2099-01-01T00:00:00Z" });
    let later = site.client.script(&site.client.asked_script(&later));
    assert_eq!((&later["status"], &later["waits_for"]), (&json!("pending"), &json!("schedule")), "{later}");
    assert_eq!(later["run_at"], "2099-01-01T00:00:00.000Z", "{later}");
    let on_the_page = site.client.get(&format!("/api/jobs/{}", later["id"].as_str().unwrap())).json();
    assert_eq!(on_the_page["starts_at"], "2099-01-01T00:00:00.000Z", "{on_the_page}");
    assert!(on_the_page["retry_at"].is_null(), "{on_the_page}");
}

fn what_is_wrong_is_told_with_its_place_and_without_its_secret(ode: &Ode) {
    let site = Site::web(ode);
    let check = |body: Value, words: &str| {
        let refused = site.client.ask_script(&body);
        refused.assert_problem(400, "INVALID");
        let problem = refused.json();
        let detail = problem["detail"].as_str().unwrap();
        assert!(detail.contains(words) && !detail.contains("hunter"), "{detail}");
        problem["path"].as_str().unwrap_or_default().to_owned()
    };
    let with = |change: Value| {
        let mut body = json!({ "input": input("well") });
        body.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
        body
    };
    let weak = json!({ "input": { "email": "a", "password": "hunter" } });
    assert_eq!(check(weak, "at least 8"), "input.password");
    check(json!({ "input": { "email": "a", "password": { "$secret": "email" } } }), "$secret");
    check(json!({ "input": {} }), "email");
    check(json!({}), "input");
    check(json!([input("well"), 5]), "object");
    check(Value::Null, "write an object");
    assert_eq!(check(json!({ "input": "hunter" }), "write an object"), "input");
    assert_eq!(check(with(json!({ "priority": 99_999_999_999_u64 })), "from -1000 to 1000"), "priority");
    assert_eq!(check(with(json!({ "priority": 1001 })), "1000"), "priority");
    assert_eq!(check(with(json!({ "run_at": "tomorrow" })), "must be a moment"), "run_at");
    assert_eq!(check(with(json!({ "restaurant_id": "here" })), "must be a UUID"), "restaurant_id");
    assert_eq!(check(with(json!({ "depends_on": ["nobody"] })), "nobody"), "depends_on[0]");
    assert_eq!(check(with(json!({ "concurrency_key": "" })), "1 to 200"), "concurrency_key");
    assert_eq!(check(with(json!({ "urgent": true })), "there is no such field"), "urgent");
    let twice = br#"{"input": {"email": "a", "email": "b"}}"#;
    let refused = site.client.send("POST", "/v1/scripts/greet", "application/json", twice);
    assert_eq!(refused.json()["path"], "input.email", "{refused:?}");
    let body = json!({ "input": {} });
    site.client.post_json("/v1/scripts/unheard-of", &body).assert_problem(404, "NOT_FOUND");
    site.client.send("POST", "/v1/scripts/greet", "text/plain", b"{}").assert_problem(415, "INVALID");
}

fn a_request_under_a_key_is_taken_once(ode: &Ode) {
    let site = Site::web(ode);
    let client = site.client.with("Idempotency-Key", "one");
    let first = client.ask_script(&json!({ "input": input("well") }));
    let again = client.ask_script(&json!({ "input": input("well") }));
    assert_eq!((first.code(), again.code()), (202, 200), "{again:?}");
    assert_eq!(first.json()["id"], again.json()["id"]);
    client.ask_script(&json!({ "input": input("part") })).assert_problem(400, "INVALID");
}

/// A sequence of three, of which each needs the one before.
fn onboarding() -> Value {
    let job = |name: &str| json!({ "type": "greet", "name": name, "input": input("well") });
    json!({ "in_order": true, "jobs": [job("register"), job("menu"), job("live")] })
}

fn a_sequence_waits_for_its_first_job_and_goes_with_it(ode: &Ode) {
    let site = Site::web(ode);
    let client = site.client.with("Idempotency-Key", "onboarding");
    let answer = client.post_json("/v1/scripts/batch", &onboarding());
    assert_eq!(answer.code(), 202, "{answer:?}");
    let batch = answer.json();
    let again = client.post_json("/v1/scripts/batch", &onboarding());
    assert_eq!((again.code(), &again.json()["batch_id"]), (200, &batch["batch_id"]), "{again:?}");
    let ids: Vec<&str> = (0..3).map(|place| batch["jobs"][place]["id"].as_str().unwrap()).collect();
    let [first, second] = [site.client.script(ids[0]), site.client.script(ids[1])];
    assert_eq!((&first["status"], &second["status"]), (&json!("queued"), &json!("pending")));
    assert_eq!((&second["waits_for"], &second["depends_on"]), (&json!("needs"), &json!([ids[0]])));
    let cancelled = site.client.post(&format!("/v1/scripts/jobs/{}/cancel", ids[0]));
    assert_eq!(cancelled.json()["status"], "cancelled", "{cancelled:?}");
    ode.with_store(async |store| while store.promote_due().await.unwrap() > 0 {});
    let last = site.client.script(ids[2]);
    assert_eq!(last["status"], "cancelled");
    assert!(last["reason"].as_str().unwrap().contains("was cancelled"), "{last}");
    let named = json!({ "jobs": [{ "type": "greet", "name": "a", "input": input("well") },
        { "type": "greet", "input": input("well"), "depends_on": ["a", ids[0]] }] });
    assert_eq!(site.client.post_json("/v1/scripts/batch", &named).code(), 202);
    let job = |name: &str, needs: &[&str]| json!({ "type": "greet", "name": name, "input": input("well"), "depends_on": needs });
    let circle = json!({ "jobs": [job("a", &["b"]), job("b", &["a"])] });
    let refused = site.client.post_json("/v1/scripts/batch", &circle).json();
    assert_eq!(refused["path"], "jobs[0].depends_on[0]", "{refused}");
    assert!(refused["detail"].as_str().unwrap().contains(r#""a" needs "b" needs "a""#), "{refused}");
    let other = json!({ "jobs": [{ "type": "greet", "input": input("well"), "urgent": true }] });
    let refused = site.client.post_json("/v1/scripts/batch", &other).json();
    assert!(refused["detail"].as_str().unwrap().contains("Those there are: type, name, input"), "{refused}");
    for wrong in [json!({ "jobs": [] }), json!({ "jobs": [{ "input": {} }] }), json!({ "jobs": [1] })] {
        site.client.post_json("/v1/scripts/batch", &wrong).assert_problem(400, "INVALID");
    }
    let half =
        json!({ "jobs": [{ "type": "greet", "input": input("well") }, { "type": "greet", "input": {} }] });
    let refused = site.client.post_json("/v1/scripts/batch", &half);
    refused.assert_problem(400, "INVALID");
    assert!(refused.json()["detail"].as_str().unwrap().starts_with("jobs[1]: "), "{refused:?}");
}

fn scripts_are_listed_by_type_status_restaurant_creator_and_batch(ode: &Ode) {
    let site = Site::web(ode);
    let (restaurant, person) =
        ("0190a0a0-0000-7000-8000-000000000001", "0190a0a0-0000-7000-8000-000000000002");
    let about = json!({ "input": input("well"), "restaurant_id": restaurant, "created_by": person });
    let one = site.client.asked_script(&about);
    let other = site.client.asked_script(&json!({ "input": input("well") }));
    site.client.post(&format!("/v1/scripts/jobs/{other}/cancel"));
    let list = |query: &str| {
        let answer = site.client.get(&format!("/v1/scripts/jobs?{query}"));
        assert_eq!(answer.code(), 200, "{query}: {answer:?}");
        let jobs = answer.json()["jobs"].as_array().unwrap().clone();
        jobs.iter().map(|job| job["id"].as_str().unwrap()).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(list(""), format!("{other} {one}"));
    assert_eq!(list(&format!("restaurant_id={restaurant}")), one);
    assert_eq!(list(&format!("created_by={person}")), one);
    assert_eq!(list("status=cancelled&type=greet"), other);
    assert_eq!(list("limit=1"), other);
    assert_eq!(list(&format!("limit=1&cursor={other}")), one);
    assert_eq!(list("type=unheard-of"), "");
    for wrong in ["status=done", "restaurant_id=x", "limit=0", "cursor=x", "since=x", "colour=red"] {
        site.client.get(&format!("/v1/scripts/jobs?{wrong}")).assert_problem(400, "INVALID");
    }
}

fn only_what_the_state_allows_is_done(ode: &Ode) {
    let site = Site::web(ode);
    let id = site.client.asked_script(&json!({ "input": input("well") }));
    let act = |what: &str| site.client.post(&format!("/v1/scripts/jobs/{id}/{what}"));
    act("stop").assert_problem(409, "CONFLICT");
    act("retry").assert_problem(409, "CONFLICT");
    let early = act("secrets");
    early.assert_problem(409, "NOT_READY");
    assert_eq!(early.json()["title"], "The script has not ended yet");
    ode.start(ode_script::machine::LANE);
    let refused = act("cancel");
    refused.assert_problem(409, "CONFLICT");
    assert!(refused.json()["detail"].as_str().unwrap().contains("in_progress"), "{refused:?}");
    assert_eq!(act("stop").code(), 200);
    let waiting = site.client.asked_script(&json!({ "input": input("well") }));
    let act = |what: &str| site.client.post(&format!("/v1/scripts/jobs/{waiting}/{what}"));
    assert_eq!(act("cancel").json()["status"], "cancelled");
    act("cancel").assert_problem(409, "CONFLICT");
    act("secrets").assert_problem(409, "CONFLICT");
}

fn nobody_else_sees_a_script(ode: &Ode) {
    let site = Site::web(ode);
    let id = site.client.asked_script(&json!({ "input": input("well") }));
    let others = Client::program(&site.serving, &key(ode, "other"));
    for path in ["", "/logs", "/artifacts", "/events", "/artifacts/1/a.png"] {
        others.get(&format!("/v1/scripts/jobs/{id}{path}")).assert_problem(404, "NOT_FOUND");
        let stranger = Client::stranger(&site.serving);
        stranger.get(&format!("/v1/scripts/jobs/{id}{path}")).assert_problem(401, "UNAUTHORIZED");
    }
    for what in ["cancel", "stop", "retry", "secrets"] {
        others.post(&format!("/v1/scripts/jobs/{id}/{what}")).assert_problem(404, "NOT_FOUND");
    }
    assert_eq!(others.get("/v1/scripts/jobs").json()["jobs"], json!([]));
    others.ask_script(&json!({ "input": input("well"), "depends_on": [id] })).assert_problem(400, "INVALID");
}

fn keys_are_listed_and_rotated(ode: &Ode) {
    let site = Site::web(ode);
    site.client.asked_script(&json!({ "input": input("well") }));
    let before = ode.json(["seal", "list"]);
    let new = ode.ok(["seal", "rotate"]);
    let after = ode.json(["seal", "list"]);
    let of = |keys: &Value, side: &str| {
        keys.as_array().unwrap().iter().filter(|key| key["side"] == side).cloned().collect::<Vec<_>>()
    };
    assert_eq!((of(&before, "worker").len(), of(&before, "worker")[0]["in_use"].as_i64()), (1, Some(1)));
    let workers = of(&after, "worker");
    assert_eq!((&workers[0]["in_use"], &workers[0]["is_here"]), (&json!(0), &json!(false)), "{after}");
    assert_eq!((&workers[1]["in_use"], &workers[1]["is_here"]), (&json!(1), &json!(true)), "{after}");
    assert_eq!(workers[1]["id"], new.trim());
    assert_eq!(of(&after, "web").len(), 1);
    // Somebody who lost the file makes a new key; what was sealed to the old one is told to be lost.
    std::fs::remove_file(ode.data().join("keys/worker.key")).unwrap();
    let rotated = ode.run(["seal", "rotate"]);
    assert!(
        rotated.code == Some(0) && rotated.stderr.contains("1 secrets are sealed to keys"),
        "{rotated:?}"
    );
}
