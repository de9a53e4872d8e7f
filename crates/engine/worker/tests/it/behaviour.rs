//! What a worker does with jobs that succeed, fail, take too long, or are ended by a person.

use crate::harness::{PATIENCE, Site, add, job, on_both, wait_for};
use ode_job::{JobRef, LogLine, NewJob, Phase};
use serde_json::json;
use std::time::{Duration, Instant};

on_both!(
    a_job_runs_and_its_file_is_kept,
    a_failure_is_retried_until_it_works,
    retries_are_spent_and_then_it_has_failed,
    a_rejection_is_not_retried,
    a_panic_is_a_failure_of_the_job_only,
    an_attempt_that_takes_too_long_is_ended,
    a_person_can_stop_a_running_job,
    progress_and_logs_are_seen_while_it_runs,
    a_flood_of_lines_is_all_there_when_the_job_has_ended,
    a_job_enqueued_where_a_worker_is_idle_is_born_claimed,
    a_scheduled_job_starts_when_its_time_has_come,
    no_more_run_at_a_time_than_there_are_slots,
    a_worker_that_stops_hands_back_what_it_cannot_end,
    another_stores_job_is_found_without_a_wake_up,
);

async fn a_job_runs_and_its_file_is_kept(site: Site) {
    let store = site.store().await;
    let worker = site.worker(&store).await;
    let id = add(&store, json!({ "keep": "hello" })).await;
    let job = wait_for(&store, id, |job| job.phase == Phase::Done).await;
    assert_eq!(job.result, Some(json!({ "attempt": 1 })));
    let files = store.artifacts(id).await.unwrap();
    assert_eq!((files[0].name.as_str(), files[0].bytes), ("out.txt", 5));
    let content = site.blobs().get(&files[0].path, &files[0].sha256).await.unwrap();
    assert_eq!(content.as_ref(), b"hello");
    worker.stop().await.unwrap();
    assert_eq!(store.workers().await.unwrap(), []);
}

async fn a_failure_is_retried_until_it_works(site: Site) {
    let store = site.store().await;
    let worker = site.worker(&store).await;
    let id = add(&store, json!({ "fail": 2 })).await;
    let job = wait_for(&store, id, |job| job.phase == Phase::Done).await;
    assert_eq!((job.attempt_count, job.retry_count), (3, 2));
    assert_eq!(job.error_code, None);
    worker.stop().await.unwrap();
}

async fn retries_are_spent_and_then_it_has_failed(site: Site) {
    let store = site.store().await;
    let worker = site.worker(&store).await;
    let mut new = job(json!({ "fail": 99 }));
    new.retries_max = Some(1);
    let id = store.enqueue(new).await.unwrap().id();
    let job = wait_for(&store, id, |job| job.phase == Phase::Failed).await;
    assert_eq!((job.attempt_count, job.retry_count), (2, 1));
    assert_eq!(job.error_code.as_deref(), Some("GW_5XX"));
    worker.stop().await.unwrap();
}

async fn a_rejection_is_not_retried(site: Site) {
    let store = site.store().await;
    let worker = site.worker(&store).await;
    let id = add(&store, json!({ "reject": true })).await;
    let job = wait_for(&store, id, |job| job.phase == Phase::Failed).await;
    assert_eq!((job.attempt_count, job.error_code.as_deref()), (1, Some("NOT_PDF")));
    worker.stop().await.unwrap();
}

async fn a_panic_is_a_failure_of_the_job_only(site: Site) {
    let store = site.store().await;
    let worker = site.worker(&store).await;
    let mut new = job(json!({ "panic": true }));
    new.retries_max = Some(0);
    let id = store.enqueue(new).await.unwrap().id();
    let panicked = wait_for(&store, id, |job| job.phase == Phase::Failed).await;
    assert_eq!(panicked.error_code.as_deref(), Some("UNKNOWN"));
    assert_eq!(panicked.error_detail.as_deref(), Some("as the input says"));
    let next = add(&store, json!({})).await;
    wait_for(&store, next, |job| job.phase == Phase::Done).await;
    worker.stop().await.unwrap();
}

async fn an_attempt_that_takes_too_long_is_ended(site: Site) {
    let store = site.store().await;
    let worker = site.worker(&store).await;
    let mut slow = NewJob::new(ode_script::machine::SCRIPT, "obedient", json!({ "ms": 60_000 }));
    slow.timeout = Some(Duration::from_millis(100));
    let id = store.enqueue(slow).await.unwrap().id();
    let job = wait_for(&store, id, |job| job.phase == Phase::Failed).await;
    assert_eq!(job.state, ode_script::machine::TIMED_OUT);
    assert_eq!(job.error_code.as_deref(), Some("TIMED_OUT"));
    worker.stop().await.unwrap();
}

async fn a_person_can_stop_a_running_job(site: Site) {
    let store = site.store().await;
    let worker = site.worker(&store).await;
    let id = add(&store, json!({ "ms": 60_000 })).await;
    wait_for(&store, id, |job| job.phase == Phase::Running).await;
    // From another process's store, which can only leave a wish in the database.
    let other = crate::harness::open(&site.url, None, crate::harness::QUICK_SILENCE).await;
    other.stop(id).await.unwrap();
    let job = wait_for(&store, id, |job| job.phase == Phase::Failed).await;
    assert_eq!(job.error_code.as_deref(), Some("STOPPED"));
    worker.stop().await.unwrap();
}

async fn a_flood_of_lines_is_all_there_when_the_job_has_ended(site: Site) {
    let store = site.store().await;
    let worker = site.worker(&store).await;
    let id = add(&store, json!({ "log": 3_000 })).await;
    wait_for(&store, id, |job| job.phase == Phase::Done).await;
    let mut lines = Vec::new();
    loop {
        let page = store.logs(id, lines.last().map_or(0, |line: &LogLine| line.id), 1_000).await.unwrap();
        if page.is_empty() {
            break;
        }
        lines.extend(page);
    }
    let messages: Vec<_> = lines.into_iter().map(|line| line.message).collect();
    assert_eq!(messages, (0..3_000).map(|number| format!("line {number}")).collect::<Vec<_>>());
    worker.stop().await.unwrap();
}

async fn progress_and_logs_are_seen_while_it_runs(site: Site) {
    let store = site.store().await;
    let worker = site.worker(&store).await;
    let id = add(&store, json!({ "progress": 50, "ms": 60_000 })).await;
    let job = wait_for(&store, id, |job| job.progress.percent == 50).await;
    assert_eq!(job.progress.message.as_deref(), Some("half way"));
    let began = Instant::now();
    while store.logs(id, 0, 10).await.unwrap().is_empty() {
        assert!(began.elapsed() < PATIENCE, "the log line never came");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    store.stop(id).await.unwrap();
    wait_for(&store, id, |job| job.phase == Phase::Failed).await;
    worker.stop().await.unwrap();
}

async fn a_job_enqueued_where_a_worker_is_idle_is_born_claimed(site: Site) {
    let store = site.store().await;
    let worker = site.worker(&store).await;
    // The lane is known to be empty once a claim has found nobody; until then jobs are claimed as usual.
    for _ in 0..100 {
        let id = add(&store, json!({})).await;
        wait_for(&store, id, |job| job.phase == Phase::Done).await;
        let events = store.events(id).await.unwrap();
        if events[0].actor == events[1].actor {
            assert_eq!(events[0].at, events[1].at, "born and started in one commit");
            worker.stop().await.unwrap();
            return;
        }
    }
    panic!("no job was born claimed");
}

async fn a_scheduled_job_starts_when_its_time_has_come(site: Site) {
    let store = site.store().await;
    let worker = site.worker(&store).await;
    let mut later = job(json!({}));
    later.run_at = Some(jiff::Timestamp::now() + Duration::from_millis(700));
    let id = store.enqueue(later).await.unwrap().id();
    assert_eq!(store.job(JobRef::Id(id)).await.unwrap().phase, Phase::Held);
    let done = wait_for(&store, id, |job| job.phase == Phase::Done).await;
    let waited = done.started_at.unwrap().duration_since(done.created_at);
    assert!(waited >= jiff::SignedDuration::from_millis(600), "{waited:?}");
    worker.stop().await.unwrap();
}

async fn no_more_run_at_a_time_than_there_are_slots(site: Site) {
    let store = site.store().await;
    for _ in 0..5 {
        add(&store, json!({ "ms": 60_000 })).await;
    }
    let worker = site.worker(&store).await;
    let running = |phase: Phase| {
        let store = store.clone();
        async move {
            let counts = store.counts().await.unwrap();
            counts
                .iter()
                .filter(|(_, _, other, _)| *other == phase)
                .map(|(_, _, _, count)| *count)
                .sum::<i64>()
        }
    };
    let began = Instant::now();
    while running(Phase::Running).await < 3 {
        assert!(began.elapsed() < PATIENCE, "the slots were never filled");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!((running(Phase::Running).await, running(Phase::Ready).await), (3, 2));
    worker.stop().await.unwrap();
}

async fn a_worker_that_stops_hands_back_what_it_cannot_end(site: Site) {
    let store = site.store().await;
    let worker = site.worker(&store).await;
    let long = add(&store, json!({ "ms": 60_000 })).await;
    let short = add(&store, json!({ "ms": 400 })).await;
    wait_for(&store, long, |job| job.phase == Phase::Running).await;
    wait_for(&store, short, |job| job.phase == Phase::Running).await;
    worker.stop().await.unwrap();
    assert_eq!(
        store.job(JobRef::Id(short)).await.unwrap().phase,
        Phase::Done,
        "it fitted into the grace period"
    );
    let handed_back = store.job(JobRef::Id(long)).await.unwrap();
    assert_eq!((handed_back.phase, handed_back.attempt_count), (Phase::Ready, 0));
}

async fn another_stores_job_is_found_without_a_wake_up(site: Site) {
    let store = site.store().await;
    let worker = site.worker(&store).await;
    let other = crate::harness::open(&site.url, None, crate::harness::QUICK_SILENCE).await;
    for _ in 0..5 {
        let id = add(&other, json!({})).await;
        wait_for(&other, id, |job| job.phase == Phase::Done).await;
    }
    worker.stop().await.unwrap();
}
