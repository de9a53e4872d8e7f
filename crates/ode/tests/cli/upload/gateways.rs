//! A gateway elsewhere that does everything a gateway should not: slow, failing, away, talkative.

use super::{LONG, all, events, invoices, remote, upload, wait, worker};
use crate::harness::{Ode, on_both};
use crate::serve::assert_stopped;
use crate::standin::{Mood, StandIn};
use jiff::Timestamp;
use ode_job::JobRecord;
use rustix::process::Signal;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

on_both!(
    scenario_1_a_gateway_that_takes_200_seconds_is_given_up_after_180,
    scenario_2_a_502_is_tried_again_with_growing_pauses,
    scenario_5_an_unknown_mapping_fails_as_refused_by_the_gateway,
    mode_2_a_dead_gateway_is_left_alone_and_no_try_is_used_up,
    mode_3_the_backup_works_while_the_first_gateway_is_away,
    a_long_outage_fails_what_waits_and_a_retry_works_when_it_is_over,
    a_gateway_that_is_not_there_or_says_too_much_is_a_gateway_that_fails,
);

fn scenario_1_a_gateway_that_takes_200_seconds_is_given_up_after_180(ode: &Ode) {
    let gateway = StandIn::start(Mood::Slow(Duration::from_secs(2)));
    let _worker = remote(ode, &gateway, &["--retries", "1"]);
    let ids = upload(ode, "auto", &invoices(1));
    let job = wait(ode, &ids, "the last try", all("failed")).remove(0);
    assert_eq!((job.error_code.as_deref(), job.attempt_count), (Some("GW_TIMEOUT"), 2));
    assert_eq!(job.error_message.as_deref(), Some("Conversion is taking too long. Retry it later"));
    let told = events(ode, job.id);
    let failed: Vec<&Value> = told
        .iter()
        .filter(|event| event.event.as_str() == "failed")
        .map(|event| event.meta.as_ref().unwrap())
        .collect();
    for meta in &failed {
        let duration = meta["duration_ms"].as_u64().unwrap();
        assert!((1750..2000).contains(&duration), "cut off at 1.8 s: {meta}");
        assert_eq!((&meta["gateway"], &meta["http_status"]), (&json!(gateway.url), &Value::Null));
    }
    let messages: Vec<_> = failed.iter().map(|meta| meta["message"].as_str().unwrap()).collect();
    let what = "Conversion is taking too long.";
    assert_eq!(messages, [format!("{what} We'll retry"), format!("{what} Retry it later")]);
    assert_eq!(
        failed.iter().map(|meta| meta["attempt_count"].clone()).collect::<Vec<_>>(),
        [json!(1), json!(2)]
    );
}

fn scenario_2_a_502_is_tried_again_with_growing_pauses(ode: &Ode) {
    let gateway = StandIn::start(Mood::Says(502));
    let _worker = remote(ode, &gateway, &["--retry-base", "0.4", "--breaker-calls", "100"]);
    let ids = upload(ode, "auto", &invoices(1));
    let job = wait(ode, &ids, "the last try", all("failed")).remove(0);
    assert_eq!((job.error_code.as_deref(), job.attempt_count, job.retry_count), (Some("GW_5XX"), 4, 3));
    assert_eq!(job.error_message.as_deref(), Some("Converter is having an issue. Retry it later"));
    assert_eq!(job.error_detail.as_deref().map(|detail| detail.contains("502")), Some(true));
    let told = events(ode, job.id);
    let pauses: Vec<f64> = told
        .iter()
        .filter(|event| event.event.as_str() == "retry")
        .map(|event| {
            let meta = event.meta.as_ref().unwrap();
            let run_at: Timestamp = meta["run_at"].as_str().unwrap().parse().unwrap();
            run_at.duration_since(event.at).as_secs_f64()
        })
        .collect();
    assert_eq!(pauses.len(), 3, "{told:?}");
    for (pause, least) in pauses.iter().zip([0.4, 0.8, 1.6]) {
        assert!((least - 0.05..=least + 0.45).contains(pause), "5 s × 2ⁿ and up to 5 s, scaled: {pauses:?}");
    }
    let first = told.iter().find(|event| event.event.as_str() == "failed").unwrap().meta.clone().unwrap();
    assert_eq!((&first["http_status"], &first["gateway"]), (&json!(502), &json!(gateway.url)));
}

fn scenario_5_an_unknown_mapping_fails_as_refused_by_the_gateway(ode: &Ode) {
    let _worker = worker(ode, &[]);
    let ids = upload(ode, "no_such_mapping_v9", &invoices(1));
    let job = wait(ode, &ids, "the refusal", all("failed")).remove(0);
    assert_eq!((job.error_code.as_deref(), job.attempt_count), (Some("GW_4XX"), 1));
    assert!(job.error_message.unwrap().contains("no_such_mapping_v9"));
}

fn mode_2_a_dead_gateway_is_left_alone_and_no_try_is_used_up(ode: &Ode) {
    let gateway = StandIn::start(Mood::Says(503));
    let worker =
        remote(ode, &gateway, &["--breaker-calls", "6", "--breaker-cool-down", "1.5", "--retry-base", "1"]);
    let ids = upload(ode, "auto", &invoices(20));
    let deadline = Instant::now() + LONG;
    let workers = loop {
        let workers = ode.json(["workers"]);
        if workers[0]["breakers"][0]["state"] == "open" {
            break workers;
        }
        assert!(Instant::now() < deadline, "{workers}");
        std::thread::sleep(Duration::from_millis(100));
    };
    assert_eq!(workers[0]["breakers"][0]["name"], format!("gateway {}", gateway.url));
    let table = ode.ok(["workers"]);
    assert!(
        table.contains("AWAY SINCE") && table.contains(&gateway.url) && table.contains("open"),
        "{table}"
    );
    let calls = gateway.calls().len();
    // Three at a time until six had failed, and a probe or two before a slow machine looks.
    assert!((6..ids.len()).contains(&calls), "not every job was tried: {calls}");
    let tried = |jobs: &[JobRecord]| jobs.iter().filter(|job| job.attempt_count > 0).count();
    let jobs = wait(ode, &ids, "all to be queued but the one that probes", |jobs| {
        jobs.iter().filter(|job| job.state.as_str() != "queued").count() <= 1
    });
    assert!(jobs.iter().all(|job| job.finished_at.is_none()), "nothing ended: {jobs:#?}");
    assert!(tried(&jobs) < ids.len(), "the others wait untouched");
    // Probes go out one at a time and cost nothing.
    std::thread::sleep(Duration::from_secs(4));
    let probes = gateway.calls().len() - calls;
    assert!((1..=10).contains(&probes), "{probes} probes in 4 s at a cool-down of 1.5 s");
    assert!(tried(&wait(ode, &ids, "nothing", |_| true)) < ids.len());
    gateway.set(Mood::Well);
    let jobs = wait(ode, &ids, "all of them", all("complete"));
    assert!(
        jobs.iter().all(|job| job.retry_count <= 1),
        "nobody lost more than the try that failed: {jobs:#?}"
    );
    assert_stopped(&worker.stop(Signal::TERM));
}

fn mode_3_the_backup_works_while_the_first_gateway_is_away(ode: &Ode) {
    let (first, backup) = (StandIn::start(Mood::Says(502)), StandIn::start(Mood::Well));
    let settings = ["--gateway-backup", &backup.url, "--breaker-calls", "3", "--breaker-cool-down", "2"];
    let _worker = remote(ode, &first, &settings);
    let ids = upload(ode, "auto", &invoices(6));
    let jobs = wait(ode, &ids, "the backup", all("complete"));
    for job in &jobs {
        assert_eq!(job.result.as_ref().unwrap()["gateway"], json!(backup.url), "{job:?}");
    }
    first.set(Mood::Flapping);
    let ids = upload(ode, "auto", &invoices(12));
    wait(ode, &ids, "both together", all("complete"));
    first.set(Mood::Well);
    std::thread::sleep(Duration::from_millis(2500));
    let ids = upload(ode, "auto", &invoices(1));
    let job = wait(ode, &ids, "the first again", all("complete")).remove(0);
    assert_eq!(job.result.unwrap()["gateway"], json!(first.url));
}

fn a_long_outage_fails_what_waits_and_a_retry_works_when_it_is_over(ode: &Ode) {
    let gateway = StandIn::start(Mood::Says(502));
    let settings = [
        "--breaker-calls",
        "2",
        "--breaker-cool-down",
        "1",
        "--gateway-away-max",
        "2",
        "--retry-base",
        "0.5",
    ];
    let _worker = remote(ode, &gateway, &settings);
    let ids = upload(ode, "auto", &invoices(5));
    let jobs = wait(ode, &ids, "patience to end", all("failed"));
    let unavailable: Vec<_> =
        jobs.iter().filter(|job| job.error_code.as_deref() == Some("GATEWAY_UNAVAILABLE")).collect();
    assert!(!unavailable.is_empty(), "{jobs:#?}");
    let message = "The converter has been away for too long. Retry once it is back";
    assert!(unavailable.iter().all(|job| job.error_message.as_deref() == Some(message)));
    gateway.set(Mood::Well);
    for job in &jobs {
        ode.ok(["jobs", "retry", &job.reference]);
    }
    wait(ode, &ids, "all of them", all("complete"));
}

fn a_gateway_that_is_not_there_or_says_too_much_is_a_gateway_that_fails(ode: &Ode) {
    // Nobody listens where somebody did just now.
    let nobody = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let url = format!("http://{nobody}");
    let alone = worker(ode, &["--gateway-url", &url]);
    let ids = upload(ode, "auto", &invoices(1));
    let job = wait(ode, &ids, "the last try", all("failed")).remove(0);
    assert_eq!(job.error_code.as_deref(), Some("GW_5XX"));
    assert_stopped(&alone.stop(Signal::TERM));
    let gateway = StandIn::start(Mood::Endless);
    let _worker = remote(ode, &gateway, &["--retries", "0", "--gateway-timeout", "20"]);
    let ids = upload(ode, "auto", &invoices(1));
    let job = wait(ode, &ids, "it to be cut off", all("failed")).remove(0);
    assert_eq!(job.error_code.as_deref(), Some("GW_5XX"));
    assert!(job.error_detail.unwrap().contains("longer than"));
}
