//! What is taken and what is refused: names, configurations, places, keys.

use super::{Site, key, pdf, request};
use crate::harness::{Ode, on_both};
use crate::serve::Answer;
use crate::web::client::Client;
use serde_json::{Value, json};

on_both!(
    the_request_of_the_specification_is_answered_as_it_says,
    a_taken_external_id_is_a_conflict_that_names_its_job_and_the_same_request_is_answered_with_it,
    a_configuration_of_fifty_kilobytes_is_kept_to_the_last_byte,
    a_wrong_configuration_is_told_with_the_path_of_its_fault,
    places_that_are_not_open_are_refused,
    nobody_without_a_key_and_nobody_else_sees_a_job,
    thousands_of_jobs_are_taken_in_one_call,
    a_list_goes_on_where_it_ended,
);

fn the_request_of_the_specification_is_answered_as_it_says(ode: &Ode) {
    let site = Site::start(ode);
    let address = site.put("doc.pdf", &pdf("RE-1"));
    let asked = json!({ "external_id": "req_99283", "input_s3_path": address,
        "config": { "zoom": 1.5, "embed_fonts": true, "format": "html5" }, "priority": 10 });
    let answer = site.client.submit(&asked);
    assert_eq!(answer.code(), 202, "{answer:?}");
    let taken = answer.json();
    let id = taken["job_id"].as_str().unwrap();
    assert_eq!(taken["status"], "pending");
    assert_eq!(taken["links"], json!({ "self": format!("/v1/jobs/{id}") }));
    assert_eq!(answer.header("location"), format!("/v1/jobs/{id}"));
    let job = site.client.ended(id);
    assert_eq!((&job["status"], &job["priority"]), (&json!("completed"), &json!(10)), "{job}");
    assert_eq!(job["config"], asked["config"]);
}

fn a_taken_external_id_is_a_conflict_that_names_its_job_and_the_same_request_is_answered_with_it(ode: &Ode) {
    let site = Site::start(ode);
    let address = site.put("doc.pdf", &pdf("RE-1"));
    let first = json!({ "external_id": "one", "input_s3_path": address, "config": { "zoom": 2, "embed_fonts": true } });
    let id = site.client.submitted(&first);
    // Written in another order, it is the same request.
    let same = json!({ "config": { "embed_fonts": true, "zoom": 2 }, "input_s3_path": address, "external_id": "one" });
    let again = site.client.submit(&same);
    assert_eq!((again.code(), again.json()["job_id"].as_str()), (200, Some(id.as_str())), "{again:?}");
    let other = json!({ "external_id": "one", "input_s3_path": address, "config": { "zoom": 3 } });
    let taken = site.client.submit(&other);
    taken.assert_problem(409, "DUPLICATE");
    assert_eq!(taken.json()["job_id"], json!(id));
    assert!(taken.json()["detail"].as_str().unwrap().contains(&id));
    // The same by a form, and another organisation's names are its own.
    let file = site.client.submit_file(&pdf("RE-2"), &[("external_id", "two")]);
    assert_eq!(file.code(), 202, "{file:?}");
    let again = site.client.submit_file(&pdf("RE-2"), &[("external_id", "two")]);
    assert_eq!((again.code(), &again.json()["job_id"]), (200, &file.json()["job_id"]));
    site.client.submit_file(&pdf("RE-3"), &[("external_id", "two")]).assert_problem(409, "DUPLICATE");
    let others = Client::program(&site.serving, &key(ode, "other"));
    assert_eq!(others.submit(&first).code(), 202);
}

fn a_configuration_of_fifty_kilobytes_is_kept_to_the_last_byte(ode: &Ode) {
    let site = Site::start(ode);
    let address = site.put("doc.pdf", &pdf("RE-1"));
    // What a database would write otherwise: the order of keys, spaces, digits, escapes.
    let start = r#"{ "zoom":1.50,  "custom": {"b": 1e2, "a": 0.10000000000000000001, "\u00fc": ""#;
    let config = format!("{start}{}\"}}}}", "x".repeat(50 * 1024 - start.len() - 3));
    assert_eq!(config.len(), 50 * 1024);
    let body = format!(r#"{{"external_id":"large","input_s3_path":"{address}","config":{config}}}"#);
    let answer = site.client.send("POST", "/v1/jobs", "application/json", body.as_bytes());
    assert_eq!(answer.code(), 202, "{}", answer.body);
    let id = answer.json()["job_id"].as_str().unwrap().to_owned();
    assert_eq!(site.client.ended(&id)["status"], "completed");
    let shown = site.client.get(&format!("/v1/jobs/{id}"));
    assert!(shown.body.contains(&config), "it differs from what was sent");
    let larger = body.replacen("xxxx", "xxxxx", 1).replace("\"large\"", "\"larger\"");
    let refused = site.client.send("POST", "/v1/jobs", "application/json", larger.as_bytes());
    refused.assert_problem(413, "PAYLOAD_TOO_LARGE");
    assert!(refused.json()["detail"].as_str().unwrap().contains("51201 bytes"), "{refused:?}");
}

fn a_wrong_configuration_is_told_with_the_path_of_its_fault(ode: &Ode) {
    let site = Site::start(ode);
    let address = site.put("doc.pdf", &pdf("RE-1"));
    let check = |change: Value, path: &str, says: &str| {
        let mut asked = request("wrong", &address);
        asked.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
        let refused = site.client.submit(&asked);
        refused.assert_problem(400, "INVALID");
        let problem = refused.json();
        assert_eq!(problem["path"], json!(path), "{problem}");
        let detail = problem["detail"].as_str().unwrap();
        assert!(detail.starts_with(says) && detail.ends_with('.'), "{detail}");
        assert!(!detail.contains("expected") && !detail.contains("invalid type"), "{detail}");
    };
    let config = |key: &str, value: Value| json!({ "config": { key: value } });
    check(config("zoomm", json!(1)), "config.zoomm", "config.zoomm: there is no such key");
    check(config("zoom", json!(99)), "config.zoom", "config.zoom: write a number from 0.1 to 10");
    check(config("zoom", json!("x")), "config.zoom", "config.zoom: write a number from 0.1 to 10");
    check(
        config("embed_fonts", json!("yes")),
        "config.embed_fonts",
        "config.embed_fonts: write true or false",
    );
    check(config("pages", json!("9-1")), "config.pages", "config.pages: write one page");
    check(json!({ "config": [] }), "config", "config: write an object");
    check(json!({ "priority": "high" }), "priority", "priority: write a whole number");
    check(json!({ "priority": 1001 }), "priority", "Priority 1001 ");
    check(json!({ "urgent": true }), "urgent", "urgent: there is no such field");
    check(json!({ "external_id": "" }), "external_id", "`external_id` has 0 characters");
    check(json!({ "external_id": 5 }), "external_id", "external_id: write a text");
    check(json!({ "input_sha256": "abc" }), "input_sha256", "input_sha256: write the digest");
    check(json!({ "webhook_url": "ftp://a" }), "webhook_url", "webhook_url: ");
    for body in ["", "{", "[]", "null", "{\"external_id\":\"a\"}", "{} {}"] {
        site.client
            .send("POST", "/v1/jobs", "application/json", body.as_bytes())
            .assert_problem(400, "INVALID");
    }
    site.client.send("POST", "/v1/jobs", "text/plain", b"{}").assert_problem(415, "INVALID");
    check_repeated(&site, &address);
}

/// A name that stands twice would leave one of its values out of account.
fn check_repeated(site: &Site, address: &str) {
    let refused = |answer: &Answer| {
        answer.assert_problem(400, "INVALID");
        let detail = answer.json()["detail"].as_str().unwrap().to_owned();
        assert!(detail.starts_with("config.custom.a[0].b: this name stands more than once"), "{detail}");
    };
    let config = r#"{"zoom":1,"custom":{"a":[{"b":1,"b":2}]}}"#;
    let body =
        |config: &str| format!(r#"{{"external_id":"twice","input_s3_path":"{address}","config":{config}}}"#);
    refused(&site.client.send("POST", "/v1/jobs", "application/json", body(config).as_bytes()));
    refused(&site.client.submit_file(&pdf("RE-1"), &[("external_id", "twice"), ("config", config)]));
    // In a batch, it is the one request that is wrong.
    let batch = format!(r#"{{"jobs":[{},{}]}}"#, body(config), body("{}"));
    let answer = site.client.send("POST", "/v1/jobs/batch", "application/json", batch.as_bytes());
    assert_eq!(answer.code(), 202, "{answer:?}");
}

fn places_that_are_not_open_are_refused(ode: &Ode) {
    let site = Site::start(ode);
    let inside = site.put("doc.pdf", &pdf("RE-1"));
    let refused = |asked: Value, field: &str, (status, code): (u16, &str)| {
        let refused = site.client.submit(&asked);
        refused.assert_problem(status, code);
        let problem = refused.json();
        assert_eq!(problem["path"], json!(field), "{problem}");
        assert!(problem["detail"].as_str().unwrap().starts_with(&format!("{field}: ")), "{problem}");
        assert!(!problem["title"].as_str().unwrap().contains("isn't yours"), "{problem}");
    };
    let (closed, malformed) = ((403, "FORBIDDEN"), (400, "INVALID"));
    let inputs = [
        ("s3://somebody-elses/doc.pdf", closed),
        ("file:///etc/passwd", closed),
        (&site.prefix("doc.pdf"), closed),
        (&inside.replace("doc.pdf", "../../etc/passwd"), malformed),
        (&inside.replace("doc.pdf", "a\\b.pdf"), malformed),
        ("http://127.0.0.1/doc.pdf", malformed),
        ("https://example.com/doc.pdf", malformed),
        ("s3://somebody-elses", malformed),
        ("s3:///doc.pdf", malformed),
        ("doc.pdf", malformed),
        ("", malformed),
    ];
    for (address, expected) in inputs {
        refused(request("closed", address), "input_s3_path", expected);
    }
    let outputs = [
        ("s3://elsewhere/a", closed),
        (&site.prefix(""), closed),
        (&site.prefix(".ode-staging/a"), closed),
        (&site.prefix("../a"), malformed),
        (&site.prefix("a//b"), malformed),
    ];
    for (prefix, expected) in outputs {
        let asked = json!({ "external_id": "out", "input_s3_path": inside, "output_s3_prefix": prefix });
        refused(asked, "output_s3_prefix", expected);
    }
    // Nothing was made of any of them.
    assert_eq!(site.client.get("/v1/jobs").json()["jobs"], json!([]));
    // What is not there is found out by the worker.
    let id = site.client.submitted(&request("missing", &inside.replace("doc", "no")));
    let job = site.client.ended(&id);
    assert_eq!((&job["status"], &job["error"]["code"]), (&json!("failed"), &json!("NOT_FOUND")), "{job}");
}

fn nobody_without_a_key_and_nobody_else_sees_a_job(ode: &Ode) {
    let site = Site::start(ode);
    let id = site.client.submitted(&request("mine", &site.put("doc.pdf", &pdf("RE-1"))));
    site.client.ended(&id);
    let below = ["", "/assets", "/logs", "/events", "/view", "/download"];
    let (stranger, browser) = (Client::stranger(&site.serving), Client::browser(&site.serving));
    let other = Client::program(&site.serving, &key(ode, "other"));
    for path in below.map(|part| format!("/v1/jobs/{id}{part}")) {
        let refused = stranger.get(&path);
        refused.assert_problem(401, "UNAUTHORIZED");
        assert_eq!(refused.json()["title"], "An API key is needed here");
        browser.get(&path).assert_problem(401, "UNAUTHORIZED");
        other.get(&path).assert_problem(404, "NOT_FOUND");
    }
    other.send("DELETE", &format!("/v1/jobs/{id}"), "", b"").assert_problem(404, "NOT_FOUND");
    stranger.submit(&request("a", "file:///a")).assert_problem(401, "UNAUTHORIZED");
    assert_eq!(other.get("/v1/jobs").json()["jobs"], json!([]));
    assert_eq!(other.get("/v1/jobs?external_id=mine").json()["jobs"], json!([]));
}

fn thousands_of_jobs_are_taken_in_one_call(ode: &Ode) {
    let serving = crate::web::client::web_with(ode, &["--input-root", ode.data().to_str().unwrap()]);
    let client = Client::program(&serving, &key(ode, "acme"));
    let address = |number: usize| format!("file://{}/{number}.pdf", ode.data().display());
    let jobs: Vec<Value> = (0..2000).map(|number| request(&format!("n{number}"), &address(number))).collect();
    let send = |jobs: &[Value]| {
        let body = json!({ "jobs": jobs }).to_string();
        client.send("POST", "/v1/jobs/batch", "application/json", body.as_bytes())
    };
    let first = send(&jobs[..1500]);
    assert_eq!(first.code(), 202, "{first:?}");
    assert_eq!(first.json()["accepted"], 1500);
    // Sent again with more, a duplicate, another body under a known name, and a fault.
    let mut more = jobs.clone();
    more.push(request("n5", &address(5)));
    more[7]["priority"] = json!(3);
    more[1999] = json!({ "external_id": "n1999" });
    let second = send(&more).json();
    assert_eq!(
        (&second["accepted"], &second["existing"], &second["refused"]),
        (&json!(499), &json!(1499), &json!(3))
    );
    let outcome = |at: usize| second["jobs"][at].clone();
    assert_eq!(outcome(5)["job_id"], first.json()["jobs"][5]["job_id"]);
    assert_eq!((&outcome(7)["status"], &outcome(7)["problem"]["code"]), (&json!(409), &json!("DUPLICATE")));
    assert_eq!((&outcome(1999)["status"], &outcome(2000)["status"]), (&json!(400), &json!(409)));
    assert_eq!(send(&jobs[..10]).code(), 200);
    send(&[]).assert_problem(400, "INVALID");
    send(&[json!({})]).assert_problem(400, "INVALID");
}

fn a_list_goes_on_where_it_ended(ode: &Ode) {
    let serving = crate::web::client::web_with(ode, &["--input-root", ode.data().to_str().unwrap()]);
    let client = Client::program(&serving, &key(ode, "acme"));
    let address = format!("file://{}/a.pdf", ode.data().display());
    let ids: Vec<String> = (0..5).map(|n| client.submitted(&request(&format!("n{n}"), &address))).collect();
    let (mut seen, mut cursor) = (Vec::new(), String::new());
    loop {
        let part = client.get(&format!("/v1/jobs?limit=2{cursor}")).json();
        seen.extend(
            part["jobs"].as_array().unwrap().iter().map(|job| job["job_id"].as_str().unwrap().to_owned()),
        );
        match part["next_cursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => break,
        }
    }
    seen.reverse();
    assert_eq!(seen, ids);
    let count =
        |query: &str| client.get(&format!("/v1/jobs?{query}")).json()["jobs"].as_array().unwrap().len();
    assert_eq!((count("status=pending"), count("status=completed"), count("external_id=n3")), (5, 0, 1));
    for query in ["status=queued", "external_id=%00", "limit=0", "cursor=x", "since=now", "color=red"] {
        client.get(&format!("/v1/jobs?{query}")).assert_problem(400, "INVALID");
    }
}
