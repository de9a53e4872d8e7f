//! Documents beside their jobs: sources under a lease, checks, downloads, deletion.

use crate::harness::{claim_one, ending, finish, history, job, on_both, record, until, worker};
use crate::machines::{lane, pipeline};
use ode_job::check::Opinion;
use ode_job::record::About;
use ode_job::{Check, CheckKind, Ended, ErrorCode, Failure, JobId, JobRef, NewJob, Severity};
use ode_store::{Blobs, BlobsConfig, Error, Finished, JobFiles, Retention, Store, Stored};
use serde_json::json;
use std::collections::BTreeMap;
use std::time::Duration;
use tempfile::TempDir;
use uuid::Uuid;

on_both!(
    a_source_is_read_by_its_lease_and_by_no_other,
    what_an_attempt_notes_stands_with_the_event_that_ends_it,
    checks_are_kept_with_a_success_and_only_then,
    a_job_that_waits_for_something_away_has_used_up_nothing,
    jobs_that_waited_too_long_fail_and_those_just_retried_do_not,
    downloads_are_counted_and_told,
    a_result_that_goes_with_its_first_download_is_gone_for_the_second,
    an_ended_job_is_removed_with_everything_and_a_live_one_is_not,
    what_a_worker_says_of_itself_is_seen,
);

/// A file store in a directory of its own.
pub(crate) fn blobs() -> (TempDir, Blobs) {
    let directory = tempfile::tempdir().unwrap();
    let blobs = Blobs::open(&BlobsConfig::Local(directory.path().join("files"))).unwrap();
    (directory, blobs)
}

/// The first file of an attempt.
pub(crate) async fn put(blobs: &Blobs, job: JobId, fence: i64, content: &'static str) -> Stored {
    blobs.put(job, fence, 0, vec![content.into()]).await.unwrap().remove(0)
}

/// An uploaded document of this size.
pub(crate) async fn upload(store: &Store, blobs: &Blobs, bytes: u64) -> JobId {
    let stored = put(blobs, JobId(Uuid::now_v7()), 0, "%PDF-1.7 and so on").await;
    let source = stored.artifact("source", "invoice.pdf", "application/pdf");
    let document = json!({ "name": "invoice.pdf", "bytes": bytes, "sha256": stored.sha256 });
    let new = NewJob::new(pipeline::XML, "plain_v1", json!({ "document": document }));
    store.enqueue_file(new, source).await.unwrap().id()
}

/// The same, converted.
pub(crate) async fn converted(store: &Store, blobs: &Blobs) -> JobId {
    let id = upload(store, blobs, 18).await;
    let worker = worker(store).await;
    let claimed = claim_one(store, lane::XML, worker).await;
    assert_eq!(claimed.lease.job(), id);
    let stored = put(blobs, id, claimed.lease.fence(), "<a/>").await;
    let mut end = ending(claimed, Ended::Succeeded);
    end.artifacts.push(stored.artifact("result", "invoice.xml", "application/xml"));
    store.finish(vec![end]).await.unwrap();
    id
}

/// What is known of a job's files beside its record.
pub(crate) async fn known(store: &Store, id: JobId) -> JobFiles {
    store.jobs_by_id(std::iter::once(id)).await.unwrap().remove(0).files
}

/// The roles of the files that a job has.
pub(crate) async fn roles(store: &Store, id: JobId) -> Vec<String> {
    store.artifacts(id).await.unwrap().into_iter().map(|file| file.role).collect()
}

/// How many files lie in the storage.
pub(crate) fn files(directory: &TempDir) -> usize {
    fn count(path: &std::path::Path) -> usize {
        let entries = std::fs::read_dir(path).unwrap().flatten();
        entries.map(|entry| if entry.path().is_dir() { count(&entry.path()) } else { 1 }).sum()
    }
    count(&directory.path().join("files"))
}

async fn a_source_is_read_by_its_lease_and_by_no_other(store: Store) {
    let (_directory, blobs) = blobs();
    upload(&store, &blobs, 18).await;
    let first = worker(&store).await;
    let claimed = claim_one(&store, lane::XML, first).await;
    let source = store.source(&claimed.lease).await.unwrap().unwrap();
    assert_eq!((source.role.as_str(), source.name.as_str()), ("source", "invoice.pdf"));
    let late = ode_job::Lease::granted(claimed.lease.job(), claimed.lease.fence() - 1, first);
    assert_eq!(store.source(&late).await.unwrap(), None, "an old fence");
    let stranger = ode_job::Lease::granted(claimed.lease.job(), claimed.lease.fence(), worker(&store).await);
    assert_eq!(store.source(&stranger).await.unwrap(), None, "another worker");
    let lease = ode_job::Lease::granted(claimed.lease.job(), claimed.lease.fence(), first);
    finish(&store, claimed, Ended::Succeeded).await;
    assert_eq!(store.source(&lease).await.unwrap(), None, "a lease that is over");
}

async fn what_an_attempt_notes_stands_with_the_event_that_ends_it(store: Store) {
    let worker = worker(&store).await;
    let notes = |status: u64| {
        let notes = json!({ "gateway": "http://g:8000", "http_status": status, "duration_ms": 7 });
        notes.as_object().unwrap().clone()
    };
    for (ended, event, status) in
        [(Ended::Succeeded, "complete", 200), (Ended::Failed(Failure::from(ErrorCode::Gw4xx)), "failed", 404)]
    {
        let id = store.enqueue(job(pipeline::XML)).await.unwrap().id();
        let mut end = ending(claim_one(&store, lane::XML, worker).await, ended);
        end.notes = notes(status);
        store.finish(vec![end]).await.unwrap();
        let events = store.events(id).await.unwrap();
        let told = events.iter().find(|told| told.event.as_str() == event).unwrap();
        let meta = told.meta.clone().unwrap();
        assert_eq!((&meta["gateway"], &meta["http_status"]), (&json!("http://g:8000"), &json!(status)));
        assert_eq!(meta["duration_ms"], 7);
    }
}

fn check(kind: CheckKind, opinion: Option<Opinion>) -> Check {
    Check {
        kind,
        severity: Severity::Review,
        code: "TOTAL_MISMATCH".into(),
        field: Some("gross_total".into()),
        message: "The lines add up to 10.00, the total says 11.00.".into(),
        opinion,
    }
}

async fn checks_are_kept_with_a_success_and_only_then(store: Store) {
    let worker = worker(&store).await;
    let opinion = Opinion {
        model: "m".into(),
        prompt_version: "1".into(),
        confidence: Some(0.5),
        output: json!({ "a": 1 }),
    };
    let ids = [
        store.enqueue(job(pipeline::XML)).await.unwrap().id(),
        store.enqueue(job(pipeline::XML)).await.unwrap().id(),
    ];
    for ended in [Ended::Succeeded, Ended::Failed(Failure::from(ErrorCode::NotPdf))] {
        let mut end = ending(claim_one(&store, lane::XML, worker).await, ended);
        end.checks = vec![check(CheckKind::Arithmetic, None)];
        assert!(matches!(store.finish(vec![end]).await.unwrap()[0], Finished::Written { .. }));
    }
    assert_eq!(store.checks(ids[0]).await.unwrap(), [check(CheckKind::Arithmetic, None)]);
    assert_eq!(store.checks(ids[1]).await.unwrap(), [], "it failed");
    store.add_checks(ids[0], &[check(CheckKind::Model, Some(opinion.clone()))]).await.unwrap();
    assert_eq!(store.checks(ids[0]).await.unwrap()[1], check(CheckKind::Model, Some(opinion)));
    let nobody = JobId(Uuid::now_v7());
    assert!(store.add_checks(nobody, &[check(CheckKind::Schema, None)]).await.is_err(), "no such job");
}

async fn a_job_that_waits_for_something_away_has_used_up_nothing(store: Store) {
    let id = store.enqueue(job(pipeline::XML)).await.unwrap().id();
    let worker = worker(&store).await;
    for _ in 0..5 {
        let away = Failure::away(ErrorCode::Gw5xx, "away", Duration::ZERO);
        let claimed = claim_one(&store, lane::XML, worker).await;
        finish(&store, claimed, Ended::Failed(away)).await;
        let waiting = record(&store, id).await;
        assert_eq!((waiting.state.as_str(), waiting.attempt_count, waiting.retry_count), ("queued", 0, 0));
        assert!(waiting.run_at.is_some(), "it is not claimed again at once");
        until(async || store.promote_due().await.unwrap() > 0).await;
    }
    assert_eq!(record(&store, id).await.phase.as_str(), "ready");
}

async fn jobs_that_waited_too_long_fail_and_those_just_retried_do_not(store: Store) {
    let waits = store.enqueue(job(pipeline::XML)).await.unwrap().id();
    let failure = Failure::from(ErrorCode::GatewayUnavailable);
    let hour = Duration::from_secs(3600);
    assert_eq!(store.give_up_waiting(lane::XML, hour, &failure).await.unwrap(), 0);
    tokio::time::sleep(Duration::from_millis(60)).await;
    let little = Duration::from_millis(50);
    assert_eq!(store.give_up_waiting(lane::HTML, little, &failure).await.unwrap(), 0, "another lane");
    assert_eq!(store.give_up_waiting(lane::XML, little, &failure).await.unwrap(), 1);
    let failed = record(&store, waits).await;
    assert_eq!(
        (failed.state.as_str(), failed.error_code.as_deref()),
        ("failed", Some("GATEWAY_UNAVAILABLE"))
    );
    store.retry(waits).await.unwrap();
    assert_eq!(store.give_up_waiting(lane::XML, little, &failure).await.unwrap(), 0, "it was just retried");
}

async fn downloads_are_counted_and_told(store: Store) {
    let (_directory, blobs) = blobs();
    let waiting = upload(&store, &blobs, 18).await;
    assert!(matches!(store.record_download(waiting).await, Err(Error::Refused { .. })), "not ready");
    store.cancel(waiting).await.unwrap();
    let id = converted(&store, &blobs).await;
    let new = known(&store, id).await;
    assert_eq!((new.download_count, new.first_downloaded_at), (0, None));
    assert!(new.source_path.is_some() && new.result_path.is_some() && new.expires_at.is_some());
    for count in 1..=2 {
        let download = store.record_download(id).await.unwrap();
        assert_eq!((download.count, download.is_last), (count, false));
    }
    let known = known(&store, id).await;
    assert_eq!(known.download_count, 2);
    assert!(known.first_downloaded_at.is_some());
    assert_eq!(history(&store, id).await[3..], ["complete", "downloaded", "downloaded"]);
}

async fn a_result_that_goes_with_its_first_download_is_gone_for_the_second(store: Store) {
    let (directory, blobs) = blobs();
    store.set_retention(&Retention { delete_on_download: true, ..Retention::default() }).await.unwrap();
    let id = converted(&store, &blobs).await;
    assert!(store.record_download(id).await.unwrap().is_last);
    assert_eq!(roles(&store, id).await, ["source"]);
    assert_eq!(store.empty_trash(&blobs).await.unwrap(), 0, "whoever reads it may read on for a while");
    assert_eq!(files(&directory), 2);
    let events = store.events(id).await.unwrap();
    let expired = events.last().unwrap();
    assert_eq!(expired.event.as_str(), "expired");
    assert_eq!(expired.meta, Some(json!({ "files": ["result"], "reason": "downloaded" })));
}

async fn an_ended_job_is_removed_with_everything_and_a_live_one_is_not(store: Store) {
    let (directory, blobs) = blobs();
    let id = converted(&store, &blobs).await;
    store.log(id, 1, ode_job::LogLevel::Info, "a line").await.unwrap();
    store.record_download(id).await.unwrap();
    store.add_checks(id, &[check(CheckKind::Content, None)]).await.unwrap();
    let live = upload(&store, &blobs, 18).await;
    let refused = store.delete_job(live, &blobs).await.unwrap_err();
    assert!(matches!(refused, Error::Refused { .. }), "{refused:?}");
    assert!(refused.to_string().contains("cannot be removed. Call it off first"), "{refused}");
    assert_eq!(files(&directory), 3);
    store.delete_job(id, &blobs).await.unwrap();
    assert!(matches!(store.job(JobRef::Id(id)).await, Err(Error::NotFound(_))));
    assert_eq!(store.artifacts(id).await.unwrap(), []);
    assert_eq!(store.checks(id).await.unwrap(), []);
    assert_eq!(store.logs(id, 0, 10).await.unwrap(), []);
    assert_eq!(files(&directory), 1, "only the live one's document is left");
    assert!(matches!(store.delete_job(id, &blobs).await, Err(Error::NotFound(_))), "it is gone");
}

async fn what_a_worker_says_of_itself_is_seen(store: Store) {
    let worker = worker(&store).await;
    let now = jiff::Timestamp::from_second(1_800_000_000).unwrap();
    let breaker = ode_job::Breaker::new(ode_job::BreakerPolicy::default()).standing("gateway http://g", now);
    let about = About { slots: BTreeMap::from([(lane::XML, 3)]), breakers: vec![breaker] };
    store.describe(worker, &about).await.unwrap();
    assert_eq!(store.workers().await.unwrap()[0].about, about);
}
