//! Redis is a hint: it tells sooner, and may die at any time.

use super::{key, pdf, request};
use crate::harness::Ode;
use crate::serve::Serving;
use crate::web::client::{Client, until, web_with};
use ode_testing::Redis;
use serde_json::{Value, json};

#[test]
fn documents_are_converted_while_redis_dies() {
    let ode = &Ode::postgres();
    let mut redis = Redis::start();
    let url = redis.url();
    let inbox = ode.path("inbox");
    std::fs::create_dir_all(&inbox).unwrap();
    let args = ["--redis", &url, "--input-root", inbox.to_str().unwrap()];
    let web = web_with(ode, &args);
    let _worker = Serving::start(ode.command(["worker"]).args(args));
    let client = Client::program(&web, &key(ode, "acme"));
    let asked = |number: usize| {
        let name = format!("{number}.pdf");
        std::fs::write(inbox.join(&name), pdf(&format!("RE-{number}"))).unwrap();
        request(&format!("n{number}"), &format!("file://{}/{name}", inbox.display()))
    };
    let first = client.submitted(&asked(0));
    assert_eq!(client.ended(&first)["status"], "completed");
    until("a worker is known there", || redis.ask(&["HLEN", "ode:workers:active"]) == ":1\r\n");
    let batch: Vec<Value> = (1..25).map(asked).collect();
    let body = json!({ "jobs": batch }).to_string();
    let taken = client.send("POST", "/v1/jobs/batch", "application/json", body.as_bytes());
    redis.kill();
    assert_eq!(taken.json()["accepted"], 24, "{taken:?}");
    // What is asked for without it is done like what was asked for with it.
    let late = client.submitted(&asked(25));
    let ids = taken.json()["jobs"].as_array().unwrap().clone();
    for id in ids.iter().map(|job| job["job_id"].as_str().unwrap()).chain([late.as_str()]) {
        let job = client.ended(id);
        assert_eq!((&job["status"], &job["retry_count"]), (&json!("completed"), &json!(0)), "{job}");
    }
}
