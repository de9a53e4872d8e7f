//! Scripts that run: what is told of them, how they end, and what is left of them.

use super::{Site, input};
use crate::harness::{Ode, on_both};
use serde_json::{Value, json};

on_both!(
    a_script_runs_and_its_secret_is_shown_once,
    a_script_that_fails_says_why_and_is_tried_again_with_other_secrets,
    a_script_is_stopped_and_one_that_takes_too_long_times_out,
    jobs_of_one_restaurant_run_one_after_the_other,
    a_log_is_followed_to_its_end,
);

fn a_script_runs_and_its_secret_is_shown_once(ode: &Ode) {
    let site = Site::start(ode);
    let id = site.client.asked_script(&json!({ "input": input("well") }));
    let job = site.client.script_is(&id, "completed");
    let result = &job["result"];
    assert_eq!((&result["success"], &result["message"]), (&json!(true), &json!("Greeted")), "{job}");
    assert_eq!(result["data"], json!({ "greeted": 1, "apiKey": { "$secret": "apiKey" } }));
    assert!(result["duration_ms"].is_u64() && result["partial"].is_null(), "{result}");
    assert_eq!((&job["progress_percent"], &job["total_steps"]), (&json!(100), &json!(2)), "{job}");
    assert_eq!(job["steps"][0], json!({ "id": "login", "title": "Sign in", "state": "done" }));
    assert_eq!((&job["script_version"], job["process_pid"].is_i64()), (&json!("1"), true), "{job}");
    let on_the_page = site.client.get(&format!("/api/jobs/{id}")).json();
    assert_eq!(on_the_page["is_expired"], false, "{on_the_page}");
    let secrets = job["links"]["secrets"].as_str().unwrap();
    let shown = site.client.post(secrets);
    assert_eq!(shown.json(), json!({ "secrets": { "apiKey": "made-4711-key" } }), "{shown:?}");
    site.client.post(secrets).assert_problem(409, "CONFLICT");
    assert!(site.client.script(&id)["links"]["secrets"].is_null());
    let part = site.client.asked_script(&json!({ "input": input("part") }));
    let part = site.client.script_is(&part, "completed");
    assert_eq!((&part["result"]["partial"], &part["result"]["success"]), (&json!(true), &json!(true)));
}

fn a_script_that_fails_says_why_and_is_tried_again_with_other_secrets(ode: &Ode) {
    let site = Site::start(ode);
    let id = site.client.asked_script(&json!({ "input": input("refuse") }));
    let job = site.client.script_is(&id, "failed");
    assert_eq!(job["error"]["code"], "SCRIPT_FAILED", "{job}");
    assert_eq!(job["error"]["message"], "The password was refused (login_rejected)");
    assert_eq!(job["error"]["script_code"], "login_rejected", "{job}");
    assert_eq!(
        (&job["error"]["step"], &job["error"]["stack"]),
        (&json!("greet"), &json!("run.sh: line 7")),
        "{job}"
    );
    assert_eq!((&job["retry_count"], &job["progress_percent"]), (&json!(0), &json!(50)), "{job}");
    let files = site.client.get(&format!("/v1/scripts/jobs/{id}/artifacts")).json();
    assert_eq!(
        (&files["artifacts"][0]["name"], &files["artifacts"][0]["kind"]),
        (&json!("1/failure.png"), &json!("screenshot"))
    );
    let picture = site.client.get(files["artifacts"][0]["url"].as_str().unwrap());
    assert_eq!((picture.code(), picture.body.as_str()), (200, "not a picture"));
    assert_eq!(files["artifacts"].as_array().unwrap().len(), 1, "{files}");
    let log = site.client.get(&format!("/v1/scripts/jobs/{id}/logs")).json();
    assert!(log.to_string().contains("The file 1/draft.csv was not kept"), "{log}");
    let retry = format!("/v1/scripts/jobs/{id}/retry");
    let refused = |secrets: Value, path: &str, words: &str| {
        let answer = site.client.post_json(&retry, &json!({ "secrets": secrets }));
        answer.assert_problem(400, "INVALID");
        let problem = answer.json();
        assert_eq!(problem["path"], path, "{problem}");
        assert!(problem["detail"].as_str().unwrap().contains(words), "{problem}");
    };
    refused(json!({ "email": "a@b.c" }), "secrets.password", "email, password");
    refused(json!({ "email": "a@b.c", "pasword": "AnotherPass1!" }), "secrets.pasword", "email, password");
    refused(json!({ "email": "a@b.c", "password": "short" }), "input.password", "at least 8");
    let secrets = json!({ "secrets": { "email": "a@b.c", "password": "AnotherPass1!" } });
    let again = site.client.post_json(&retry, &secrets);
    assert_eq!(again.code(), 200, "{again:?}");
    let job = site.client.script_is(&id, "failed");
    assert_eq!(job["attempt_count"], 2, "{job}");
    assert_eq!(job["steps"][0]["state"], "skipped", "what was done is not done again: {job}");
    assert_eq!(site.client.post(&retry).code(), 200, "its secrets are kept for a while");
    site.client.script_is(&id, "failed");
}

fn a_script_is_stopped_and_one_that_takes_too_long_times_out(ode: &Ode) {
    let site = Site::start(ode);
    let id = site.client.asked_script(&json!({ "input": input("wait") }));
    site.client.script_is(&id, "in_progress");
    assert_eq!(site.client.post(&format!("/v1/scripts/jobs/{id}/stop")).code(), 200);
    let job = site.client.script_is(&id, "failed");
    assert_eq!(job["error"]["code"], "STOPPED", "{job}");
    let process = format!("/proc/{}", job["process_pid"]);
    assert!(
        !std::path::Path::new(&process).exists(),
        "what it started is gone when it is told to have ended"
    );
    let late = site.client.asked_script(&json!({ "input": input("wait"), "timeout_ms": 500 }));
    let job = site.client.script_is(&late, "timed_out");
    assert_eq!((&job["error"]["code"], &job["retry_count"]), (&json!("TIMED_OUT"), &json!(0)), "{job}");
    assert!(job["error"]["message"].as_str().unwrap().contains("the 500 ms it may"), "{job}");
    site.client.post(&format!("/v1/scripts/jobs/{late}/retry")).assert_problem(409, "CONFLICT");
}

fn jobs_of_one_restaurant_run_one_after_the_other(ode: &Ode) {
    let site = Site::start(ode);
    let mut one = input("wait");
    one["restaurantName"] = json!("The corner");
    let first = site.client.asked_script(&json!({ "input": one.clone() }));
    site.client.script_is(&first, "in_progress");
    one["how"] = json!("well");
    let second = site.client.asked_script(&json!({ "input": one }));
    let waiting = site.client.script_is(&second, "pending");
    assert_eq!(waiting["waits_for"], "turn", "{waiting}");
    site.client.post(&format!("/v1/scripts/jobs/{first}/stop"));
    site.client.script_is(&second, "completed");
}

fn a_log_is_followed_to_its_end(ode: &Ode) {
    let site = Site::start(ode);
    let id = site.client.asked_script(&json!({ "input": input("well") }));
    let stream = site.client.with("Accept", "text/event-stream");
    let told = stream.get(&format!("/v1/scripts/jobs/{id}/logs")).body;
    assert!(told.contains("event: log") && told.contains("I was given"), "{told}");
    assert!(told.contains("event: end") && !told.contains("SecurePass123!"), "{told}");
    let tail = site.client.get(&format!("/v1/scripts/jobs/{id}/logs?tail=1")).json();
    let last = tail["logs"][0]["id"].to_string();
    let back = stream.with("Last-Event-ID", &last).get(&format!("/v1/scripts/jobs/{id}/logs?tail=1")).body;
    assert!(!back.contains("event: log") && back.contains("event: end"), "what was seen comes again: {back}");
    assert_eq!(tail["logs"].as_array().unwrap().len(), 1, "{tail}");
    let events = site.client.get(&format!("/v1/scripts/jobs/{id}/events")).json();
    let events: Vec<&str> =
        events["events"].as_array().unwrap().iter().filter_map(|event| event["event"].as_str()).collect();
    assert_eq!(events, ["created", "queued", "processing", "complete"]);
}
