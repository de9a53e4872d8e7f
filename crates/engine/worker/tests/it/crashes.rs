//! Workers, the database and Redis die at every named point and at random moments. After each storm no job is
//! lost, none has ended twice, and no history has a gap.

use crate::audit::all_ended_once;
use crate::child::{Plan, kill, signal, spawn};
use crate::harness::{PATIENCE, QUICK_SILENCE, Site, add, job, new_database, on_both, open, wait_for};
use ode_job::{Event, JobId, Phase};
use ode_store::Store;
use ode_testing::{Postgres, Redis};
use rustix::process::Signal;
use serde_json::json;
use std::time::{Duration, Instant};
use tokio::sync::watch;

on_both!(
    a_worker_killed_at_each_named_point_loses_nothing,
    workers_killed_at_random_lose_nothing,
    a_worker_that_slept_through_its_lease_changes_nothing,
    the_jobs_of_a_killed_worker_run_again_within_ten_seconds,
    a_worker_asked_to_stop_ends_what_it_can,
);

/// Where a worker may die, and how many jobs that may cost one try each.
const POINTS: [&str; 7] =
    ["after-claim", "before-run", "after-run", "before-finish", "after-finish", "before-renew", "in-rescue"];

impl Site {
    fn plan(&self) -> Plan {
        Plan { url: self.url.clone(), ..Plan::default() }
    }
}

async fn a_worker_killed_at_each_named_point_loses_nothing(site: Site) {
    let store = site.store().await;
    for point in POINTS {
        let mut ids = Vec::new();
        for _ in 0..20 {
            ids.push(add(&store, json!({ "ms": 20 })).await);
        }
        // A renewal is due only after a while, so one job must last that long.
        ids.push(add(&store, json!({ "ms": 900 })).await);
        let mut doomed = spawn(&Plan { crash_at: Some(point), ..site.plan() });
        let status = doomed.wait().unwrap();
        assert!(!status.success(), "the worker did not die at {point}");
        let mut healthy = spawn(&site.plan());
        assert_eq!(all_ended_once(&store, &ids).await, 0, "one crash is not poison ({point})");
        kill(&mut healthy);
    }
}

async fn workers_killed_at_random_lose_nothing(site: Site) {
    const KILLS: usize = 25;
    let store = site.store().await;
    let mut ids = Vec::new();
    for _ in 0..300 {
        ids.push(add(&store, json!({ "ms": 15 })).await);
    }
    let mut workers: Vec<_> = (0..3).map(|_| spawn(&site.plan())).collect();
    // Any spread will do; a fixed one makes a failure repeatable as far as the machine allows.
    let mut random = 12_345_u64;
    for kills in 0..KILLS {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        tokio::time::sleep(Duration::from_millis(40 + (random >> 33) % 200)).await;
        let unlucky = &mut workers[kills % 3];
        kill(unlucky);
        *unlucky = spawn(&site.plan());
        ids.push(add(&store, json!({ "ms": 15 })).await);
    }
    all_ended_once(&store, &ids).await;
    for worker in &mut workers {
        kill(worker);
    }
}

async fn a_worker_that_slept_through_its_lease_changes_nothing(site: Site) {
    let store = site.store().await;
    let id = add(&store, json!({ "ms": 1500 })).await;
    let mut sleeper = spawn(&site.plan());
    let first = wait_for(&store, id, |job| job.phase == Phase::Running).await.worker_id;
    signal(&sleeper, Signal::STOP);
    let mut other = spawn(&site.plan());
    let second =
        wait_for(&store, id, |job| job.phase == Phase::Running && job.worker_id != first).await.worker_id;
    // Its own attempt has long been over by its clock: it will try to end it as soon as it is awake.
    tokio::time::sleep(Duration::from_millis(500)).await;
    signal(&sleeper, Signal::CONT);
    all_ended_once(&store, &[id]).await;
    let events = store.events(id).await.unwrap();
    let starts: Vec<_> =
        events.iter().filter(|event| event.event == Event::Started).map(|event| &event.actor).collect();
    assert_eq!(starts, [&first.unwrap().to_string(), &second.unwrap().to_string()]);
    kill(&mut sleeper);
    kill(&mut other);
}

async fn the_jobs_of_a_killed_worker_run_again_within_ten_seconds(site: Site) {
    let store = site.store().await;
    let plan = Plan { is_unhurried: true, ..site.plan() };
    let id = add(&store, json!({ "ms": 3000 })).await;
    let mut doomed = spawn(&plan);
    let first = wait_for(&store, id, |job| job.phase == Phase::Running).await;
    let mut other = spawn(&plan);
    kill(&mut doomed);
    let killed = Instant::now();
    wait_for(&store, id, |job| job.phase == Phase::Running && job.worker_id != first.worker_id).await;
    let waited = killed.elapsed();
    assert!(waited < Duration::from_secs(10), "it took {waited:?}, with a lease of five minutes");
    all_ended_once(&store, &[id]).await;
    kill(&mut other);
}

async fn a_worker_asked_to_stop_ends_what_it_can(site: Site) {
    let store = site.store().await;
    let short = add(&store, json!({ "ms": 700 })).await;
    let long = add(&store, json!({ "ms": 60_000 })).await;
    let mut worker = spawn(&site.plan());
    wait_for(&store, short, |job| job.phase == Phase::Running).await;
    wait_for(&store, long, |job| job.phase == Phase::Running).await;
    signal(&worker, Signal::TERM);
    assert!(worker.wait().unwrap().success());
    wait_for(&store, short, |job| job.phase == Phase::Done).await;
    let long = wait_for(&store, long, |job| job.phase == Phase::Ready).await;
    assert_eq!(long.attempt_count, 0, "a try that was handed back counts for nothing");
    assert_eq!(store.workers().await.unwrap(), []);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn postgres_killed_and_restarted_loses_no_accepted_job() {
    let mut server = Postgres::start();
    let url = new_database(&server.url()).await;
    let store = open(&url, None, QUICK_SILENCE).await;
    store.migrate_up().await.unwrap();
    let mut workers: Vec<_> = (0..2).map(|_| spawn(&Plan { url: url.clone(), ..Plan::default() })).collect();
    let (is_over, over) = watch::channel(false);
    let enqueuer = tokio::spawn(enqueue_until(store.clone(), over));
    for _ in 0..3 {
        tokio::time::sleep(Duration::from_millis(1500)).await;
        server.kill();
        server.run();
    }
    is_over.send_replace(true);
    let accepted = enqueuer.await.unwrap();
    // On connections of its own: those of before may not have noticed yet that the server was another.
    let store = open(&url, None, QUICK_SILENCE).await;
    all_ended_once(&store, &accepted).await;
    for worker in &mut workers {
        kill(worker);
    }
}

/// Jobs that make a storm worth the name.
const ACCEPTED_MIN: usize = 20;

/// Enqueues until it is over and there are enough, riding out refusals; answers the jobs that were accepted.
async fn enqueue_until(store: Store, over: watch::Receiver<bool>) -> Vec<JobId> {
    let began = Instant::now();
    let mut accepted = Vec::new();
    while !*over.borrow() || accepted.len() < ACCEPTED_MIN {
        assert!(began.elapsed() < PATIENCE, "only {} jobs were accepted", accepted.len());
        if let Ok(enqueued) = store.enqueue(job(json!({ "ms": 5 }))).await {
            accepted.push(enqueued.id());
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    accepted
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn redis_flushed_and_killed_costs_nothing_but_time() {
    let site = Site::postgres().await;
    let mut redis = Redis::start();
    let store = open(&site.url, Some(redis.url()), QUICK_SILENCE).await;
    store.migrate_up().await.unwrap();
    let mut worker = spawn(&Plan { redis: Some(redis.url()), ..site.plan() });
    let mut ids = Vec::new();
    ids.push(add(&store, json!({ "progress": 50, "ms": 1500 })).await);
    wait_for(&store, ids[0], |job| job.progress.percent == 50).await;
    let key = format!("ode:job:progress:{}", ids[0]);
    assert!(redis.ask(&["GET", &key]).contains("50"), "no progress in Redis");
    let ttl: i64 = redis.ask(&["TTL", &key]).trim().trim_start_matches(':').parse().unwrap();
    assert!((1..=3600).contains(&ttl), "{ttl}");
    assert!(redis.ask(&["HLEN", "ode:workers:active"]).starts_with(":1"), "the worker is not in Redis");
    for round in 0..4 {
        for _ in 0..20 {
            ids.push(add(&store, json!({ "ms": 5 })).await);
        }
        match round {
            0 => drop(redis.ask(&["FLUSHALL"])),
            1 => redis.kill(),
            2 => redis.run(),
            _ => {}
        }
    }
    assert_eq!(all_ended_once(&store, &ids).await, 0);
    kill(&mut worker);
}
