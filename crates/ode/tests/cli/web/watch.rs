//! What operators see: lines in the log, metrics, health.

use super::client::{Client, pdf, until};
use crate::harness::{Ode, id_of, on_both};
use crate::serve::{Answer, Serving, ask, assert_stopped};
use ode_job::WorkerId;
use ode_store::ClaimRequest;
use rustix::process::Signal;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::io::BufRead as _;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;
use uuid::Uuid;

on_both!(
    a_job_can_be_traced_through_the_log_and_is_counted,
    what_does_not_work_is_named_and_nobody_is_turned_away,
);

/// A process with a listener for operators.
struct Watched {
    serving: Serving,
    metrics: SocketAddr,
}

fn watched(ode: &Ode, command: &str, more: &[&str]) -> Watched {
    let mut args = vec![command, "--metrics", "127.0.0.1:0", "--log-json"];
    if command != "worker" {
        args.extend(["--listen", "127.0.0.1:0"]);
    }
    args.extend(more);
    let mut serving = Serving::start(&mut ode.command(args));
    let mut line = String::new();
    serving.stdout.read_line(&mut line).unwrap();
    let address = line.trim_end().strip_prefix("Its metrics are at http://");
    let address = address.and_then(|rest| rest.strip_suffix("/metrics"));
    let metrics = address.unwrap_or_else(|| panic!("{line:?}")).parse().unwrap();
    Watched { serving, metrics }
}

impl Watched {
    fn get(&self, path: &str) -> Answer {
        ask(self.metrics, &format!("GET {path}"))
    }

    fn metrics(&self) -> String {
        let answer = self.get("/metrics");
        assert_eq!(answer.status, "HTTP/1.1 200 OK");
        assert!(answer.headers.contains("content-type: text/plain; version=0.0.4"), "{answer:?}");
        answer.body
    }
}

fn a_job_can_be_traced_through_the_log_and_is_counted(ode: &Ode) {
    let watched = watched(ode, "serve", &[]);
    let browser = Client::browser(&watched.serving);
    let good = browser.uploaded("secret name.pdf", &pdf(1))["id"].as_str().unwrap().to_owned();
    let fields = [("mapping", "nobody_wrote_this_v1")];
    let bad = browser.upload(&[("b.pdf", &pdf(2))], &fields).json()["job"]["id"].as_str().unwrap().to_owned();
    until("both have ended", || {
        let list = browser.list();
        let jobs = list["jobs"].as_array().unwrap().iter();
        jobs.filter(|job| job["status"] == "complete" || job["status"] == "failed").count() == 2
    });
    let text = watched.metrics();
    for line in [
        "ode_jobs_ended_total{pipeline=\"xml\",state=\"complete\",code=\"\"} 1",
        "ode_jobs_ended_total{pipeline=\"xml\",state=\"failed\",code=\"GW_4XX\"} 1",
        "ode_job_duration_seconds_count{pipeline=\"xml\",outcome=\"done\"} 1",
        "ode_http_requests_total{method=\"POST\",route=\"/api/upload\",status=\"201\"} 2",
        "ode_workers_alive 1",
        "ode_database_up 1",
        "ode_uploads_paused 0",
    ] {
        assert!(text.lines().any(|found| found == line), "{line} is not in:\n{text}");
    }
    assert!(!text.contains(&good), "an id is in the metrics:\n{text}");

    let ran = watched.serving.stop(Signal::TERM);
    assert_stopped(&ran);
    assert!(!ran.stderr.contains("secret name"), "{}", ran.stderr);
    assert_trace(&ran.stderr, &good, json!("complete"), Value::Null);
    assert_trace(&ran.stderr, &bad, json!("failed"), json!("GW_4XX"));
}

/// The lines about a job tell its whole way, and nothing of whose it is.
#[track_caller]
fn assert_trace(log: &str, id: &str, state: Value, code: Value) {
    let lines = log.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let lines: Vec<Value> = lines.filter(|line| line["job.id"] == id).collect();
    assert_eq!(lines.len(), 3, "{lines:#?}");
    for line in &lines {
        assert_eq!((&line["level"], &line["job.pipeline"]), (&json!("INFO"), &json!("xml")), "{line}");
        assert!(line["job.kind"].is_string(), "{line}");
        assert!(!line.to_string().contains("owner") && !line.to_string().contains("session"), "{line}");
    }
    let told = |message: &str| lines.iter().find(|line| line["message"] == message);
    let accepted = format!("accepted job {id} (");
    let is_accepted = |line: &Value| line["message"].as_str().unwrap().starts_with(&accepted);
    assert!(lines.iter().any(is_accepted), "{lines:#?}");
    assert_eq!(told(&format!("attempt 1 of job {id} started")).unwrap()["attempt"], 1);
    // A job may start before its upload is told: each line is found by what it says.
    let ended = lines.iter().find(|line| line["state"].is_string()).unwrap();
    assert_eq!((&ended["state"], &ended["code"]), (&state, &code), "{ended}");
    assert!(ended["duration_ms"].is_u64() && ended["attempt"] == 1, "{ended}");
}

fn what_does_not_work_is_named_and_nobody_is_turned_away(ode: &Ode) {
    let alone = watched(ode, "web", &[]);
    let browser = Client::browser(&alone.serving);
    assert_eq!(browser.get("/api/healthz").json()["status"], "ok");
    browser.uploaded("a.pdf", &pdf(1));
    until("it is noticed that nobody works", || {
        let answer = browser.get("/api/healthz");
        assert_eq!(answer.code(), 200, "{answer:?}");
        let health = answer.json();
        health["status"] == "degraded" && health["degraded"] == json!(["workers"])
    });
    assert_eq!(browser.get("/api/healthz/ready").json()["status"], "ok");
    let details = alone.get("/healthz");
    assert_eq!(details.status, "HTTP/1.1 200 OK");
    let details = details.json();
    assert_eq!(details["schema"], crate::harness::schema_newest());
    let finding = |name: &str| {
        let mut findings = details["findings"].as_array().unwrap().iter();
        findings.find(|finding| finding["name"] == name).unwrap_or_else(|| panic!("{details}")).clone()
    };
    assert_eq!(finding("workers")["is_ok"], false);
    assert!(finding("queue")["found"].as_str().unwrap().starts_with("1 waiting, the oldest for "));
    assert!(finding("uploads")["found"].as_str().unwrap().ends_with("% of the disk is used"));
    assert_eq!(finding("redis")["found"], "not configured, not needed");
    let text = alone.metrics();
    for line in ["ode_jobs{pipeline=\"xml\",state=\"queued\"} 1", "ode_workers_alive 0"] {
        assert!(text.lines().any(|found| found == line), "{line} is not in:\n{text}");
    }
    let doctor = ode.run(["doctor"]);
    assert!(doctor.stdout.contains("\nworkers: Start one with `ode worker`"), "{doctor:?}");

    let full =
        watched(ode, "web", &["--disk-pause", "1", "--disk-resume", "1", "--redis", "redis://127.0.0.1:1"]);
    let health = full.serving.get("/api/healthz").json();
    assert_eq!(health["degraded"], json!(["uploads", "workers", "redis"]), "{health}");
    assert!(full.metrics().contains("\node_uploads_paused 1\n"));
}

#[test]
fn a_worker_alone_can_be_watched() {
    let ode = Ode::sqlite();
    let worker = watched(&ode, "worker", &[]);
    assert!(worker.metrics().contains("\node_workers_alive 1\n"));
    assert_eq!(worker.get("/healthz").json()["status"], "ok");
    assert_eq!(worker.get("/nonsense").status, "HTTP/1.1 404 Not Found");
    assert_stopped(&worker.serving.stop(Signal::TERM));
}

#[test]
fn a_try_that_failed_is_told_with_its_code_and_reason() {
    let ode = Ode::sqlite();
    // Nobody listens there.
    let watched = watched(&ode, "serve", &["--gateway-url", "http://127.0.0.1:1"]);
    let job = Client::browser(&watched.serving).uploaded("a.pdf", &pdf(1));
    let retried = "ode_retries_total{pipeline=\"xml\",code=\"GW_5XX\"} 1";
    until("it is tried again", || watched.metrics().contains(retried));
    let text = watched.metrics();
    let called = "ode_gateway_call_duration_seconds_count{gateway=\"http://127.0.0.1:1\",status=\"none\"} 1";
    assert!(text.lines().any(|line| line == called), "{text}");
    assert!(text.contains("\node_breaker_open{dependency=\"gateway http://127.0.0.1:1\"} 0\n"), "{text}");
    let ran = watched.serving.stop(Signal::TERM);
    let lines = ran.stderr.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let again = format!("job {} will be tried again", job["id"].as_str().unwrap());
    let line = lines.into_iter().find(|line| line["message"] == again).unwrap_or_else(|| panic!("{ran:?}"));
    assert_eq!((&line["code"], &line["outcome"]), (&json!("GW_5XX"), &json!("retried")), "{line}");
    assert!(line["reason"].is_string() && line["run_at"].is_string(), "{line}");
}

#[test]
fn a_rescue_is_told_and_counted() {
    let ode = Ode::sqlite();
    let reference = ode.add("xml");
    let id = id_of(&ode, &reference);
    ode.with_store(async |store| {
        let (worker, lease) = (WorkerId(Uuid::new_v4()), Duration::from_secs(60));
        store.register(worker, "test", "0").await.unwrap();
        let request = ClaimRequest {
            lane: ode_xml::machine::LANE,
            worker,
            count: 1,
            after: Uuid::nil(),
            lease,
            attempt_timeout: lease,
        };
        assert_eq!(store.claim(request).await.unwrap().len(), 1);
        // From here on it is silent.
        store.beat(worker, Duration::ZERO, 1, false).await.unwrap();
    });
    let worker = watched(&ode, "worker", &[]);
    until("it is rescued", || worker.metrics().contains("\node_rescued_total 1\n"));
    let ran = worker.serving.stop(Signal::TERM);
    let lines = ran.stderr.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let said = format!("job {id} was rescued from a worker that is lost");
    let line = lines.into_iter().find(|line| line["message"] == said).unwrap_or_else(|| panic!("{ran:?}"));
    let told = (&line["job.pipeline"], &line["job.kind"], &line["crashes"]);
    assert_eq!(told, (&json!("xml"), &json!("plain"), &json!(1)), "{line}");
}

/// Everything in a text that looks like the name of a metric.
fn metrics_in(text: &str) -> BTreeSet<&str> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    let base = |word: &str| {
        let endings = ["_bucket", "_sum", "_count"];
        let ending = endings.into_iter().find(|ending| word.ends_with(ending)).unwrap_or_default();
        word.len() - ending.len()
    };
    words.filter(|word| word.starts_with("ode_")).map(|word| &word[..base(word)]).collect()
}

#[test]
fn the_metrics_that_are_documented_and_watched_are_those_that_exist() {
    let ode = Ode::sqlite();
    let text = watched(&ode, "serve", &[]).metrics();
    let types = text.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next());
    let served: BTreeSet<&str> = types.collect();
    let page = |name: &str| {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(name);
        std::fs::read_to_string(path).unwrap()
    };
    let operating = page("operating.md");
    let (_, section) = operating.split_once("### Metrics\n").unwrap();
    let table: String = section
        .lines()
        .skip_while(|line| !line.starts_with('|'))
        .take_while(|line| line.starts_with('|'))
        .collect();
    assert_eq!(metrics_in(&table), served, "docs/operating.md has others than there are");
    let alerts = page("alerts.yml");
    let watched = metrics_in(&alerts);
    assert!(watched.len() > 5, "{watched:?}");
    let unknown: Vec<_> = watched.difference(&served).collect();
    assert!(unknown.is_empty(), "docs/alerts.yml watches what nobody tells: {unknown:?}");
}
