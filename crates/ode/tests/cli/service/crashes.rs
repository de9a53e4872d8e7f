//! Processes that die: nothing half-done is seen, nothing is lost, nothing is done twice.

use super::{Site, key, pdf, request};
use crate::harness::{Ode, on_both};
use crate::serve::Serving;
use crate::web::client::{Client, until, web_with};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::collections::HashSet;
use std::process::Command;
use std::time::{Duration, Instant};

on_both!(a_worker_that_dies_while_it_publishes_leaves_nothing_to_be_seen_and_another_goes_on);

/// A worker of its own on the same installation.
fn worker(ode: &Ode, crash_at: Option<&str>) -> Serving {
    let mut command = ode.command(["worker", "--html-at-once", "2", "--retry-base", "0.1"]);
    with_places(ode, &mut command);
    if let Some(point) = crash_at {
        command.env("ODE_CRASH_AT", point);
    }
    Serving::start(&mut command)
}

fn with_places(ode: &Ode, command: &mut Command) {
    command.arg("--input-root").arg(ode.path("inbox")).arg("--output-root").arg(ode.path("outbox"));
}

fn places(ode: &Ode) -> Vec<String> {
    for name in ["inbox", "outbox"] {
        std::fs::create_dir_all(ode.path(name)).unwrap();
    }
    let path = |name: &str| ode.path(name).display().to_string();
    ["--input-root".into(), path("inbox"), "--output-root".into(), path("outbox")].into()
}

fn a_worker_that_dies_while_it_publishes_leaves_nothing_to_be_seen_and_another_goes_on(ode: &Ode) {
    let places = places(ode);
    let web = web_with(ode, &places.iter().map(String::as_str).collect::<Vec<_>>());
    let client = Client::program(&web, &key(ode, "acme"));
    std::fs::write(ode.path("inbox").join("a.pdf"), pdf("RE-1")).unwrap();
    let mut asked = request("a", &format!("file://{}/a.pdf", ode.path("inbox").display()));
    asked["output_s3_prefix"] = json!(format!("file://{}/a", ode.path("outbox").display()));
    let id = client.submitted(&asked);
    let mut dying = worker(ode, Some("before-manifest"));
    dying.child.wait().unwrap();
    assert!(!ode.path("outbox").join("a").exists(), "nothing is seen of an attempt that did not end");
    assert_eq!(client.get(&format!("/v1/jobs/{id}/assets")).json()["assets"], json!([]));
    assert_eq!(client.job(&id)["status"], "processing", "its lease has not been missed yet");
    let _living = worker(ode, None);
    let job = client.ended(&id);
    assert_eq!(job["status"], "completed", "{job}");
    let manifest = std::fs::read(ode.path("outbox").join("a/manifest.json")).unwrap();
    let manifest: Value = serde_json::from_slice(&manifest).unwrap();
    assert_eq!((&manifest["job_id"], &manifest["fence"]), (&json!(id), &json!(2)));
}

/// Two web and three worker processes on one PostgreSQL. More documents with ODE_TEST_FLEET_DOCUMENTS.
#[test]
fn a_fleet_that_is_killed_at_random_does_every_document_once() {
    let ode = &Ode::postgres();
    let count: usize =
        std::env::var("ODE_TEST_FLEET_DOCUMENTS").ok().and_then(|count| count.parse().ok()).unwrap_or(30);
    let places = places(ode);
    let mut places: Vec<&str> = places.iter().map(String::as_str).collect();
    // Looking at every document afterwards is more than one caller may ask in a minute.
    places.extend(["--polls-a-minute", "1000000"]);
    let mut webs = [web_with(ode, &places), web_with(ode, &places)];
    let mut workers = [worker(ode, None), worker(ode, None), worker(ode, None)];
    let key = key(ode, "acme");
    let jobs: Vec<Value> = (0..count).map(|number| wanted(ode, number)).collect();
    for (web, half) in webs.iter().zip(jobs.chunks(count.div_ceil(2))) {
        let body = json!({ "jobs": half }).to_string();
        let answer =
            Client::program(web, &key).send("POST", "/v1/jobs/batch", "application/json", body.as_bytes());
        assert_eq!(answer.code(), 202, "{answer:?}");
    }
    let (began, mut kills) = (Instant::now(), 0_usize);
    let left = |web: &Serving| {
        let client = Client::program(web, &key);
        let count = |status: &str| {
            client.get(&format!("/v1/jobs?limit=1000&status={status}")).json()["jobs"]
                .as_array()
                .unwrap()
                .len()
        };
        count("pending") + count("processing")
    };
    while left(&webs[1]) > 0 {
        assert!(began.elapsed() < Duration::from_secs(60 + count as u64), "{} are left", left(&webs[1]));
        // Chance by the clock: which one, and when.
        let chance = usize::try_from(began.elapsed().as_micros() % 1000).unwrap_or_default();
        if kills < 4 && chance.is_multiple_of(2) {
            workers[chance % 3].signal(Signal::KILL);
            workers[chance % 3] = worker(ode, None);
            webs[0].signal(Signal::KILL);
            webs[0] = web_with(ode, &places);
            kills += 1;
        }
        std::thread::sleep(Duration::from_millis(500));
    }
    check_each_once(ode, &Client::program(&webs[1], &key), count);
    eprintln!("{count} documents in {:?} with {kills} kills", began.elapsed());
}

fn wanted(ode: &Ode, number: usize) -> Value {
    let name = format!("{number}.pdf");
    std::fs::write(ode.path("inbox").join(&name), pdf(&format!("RE-{number}"))).unwrap();
    let mut asked = request(&format!("n{number}"), &format!("file://{}/{name}", ode.path("inbox").display()));
    asked["output_s3_prefix"] = json!(format!("file://{}/{number}", ode.path("outbox").display()));
    asked
}

/// Every document has one job, which completed once, and one result, which is its own.
fn check_each_once(ode: &Ode, client: &Client, count: usize) {
    let mut seen = HashSet::new();
    for number in 0..count {
        let found = client.get(&format!("/v1/jobs?external_id=n{number}")).json()["jobs"][0].clone();
        assert_eq!(found["status"], "completed", "{found}");
        let id = found["job_id"].as_str().unwrap();
        assert!(seen.insert(id.to_owned()));
        let events = client.get(&format!("/v1/jobs/{id}/events")).json();
        let ends =
            events["events"].as_array().unwrap().iter().filter(|event| event["to"] == "completed").count();
        assert_eq!(ends, 1, "{events}");
        let folder = ode.path("outbox").join(number.to_string());
        let manifest: Value =
            serde_json::from_slice(&std::fs::read(folder.join("manifest.json")).unwrap()).unwrap();
        assert_eq!(manifest["job_id"], json!(id));
        assert!(
            std::fs::read_to_string(folder.join("index.html")).unwrap().contains(&format!("RE-{number}"))
        );
    }
}

#[test]
fn a_job_that_runs_is_stopped_by_its_removal() {
    let ode = &Ode::sqlite();
    let site = Site::start_with(ode, &["--html-at-once", "1"]);
    // Many pages, so that it takes a while; what is removed may have been done already on a quick machine.
    let id = site.client.submitted(&request("long", &site.put("long.pdf", &pdf("RE-1"))));
    until("it is gone", || {
        let code = site.client.send("DELETE", &format!("/v1/jobs/{id}"), "", b"").code();
        assert!([202, 204, 404].contains(&code), "{code}");
        code != 202
    });
    site.client.get(&format!("/v1/jobs/{id}")).assert_problem(404, "NOT_FOUND");
}
