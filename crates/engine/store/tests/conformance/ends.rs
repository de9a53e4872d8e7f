//! Ending attempts: success, failure, retries, and the fence.

use crate::harness::{claim, claim_one, ending, file, finish, history, job, on_both, request, worker};
use crate::machines::{lane, pipeline, state};
use ode_job::{
    Artifact, Ended, ErrorCode, Failure, JobId, JobRef, Lease, LogLevel, LogLine, NewLogLine, Phase,
};
use ode_store::{ClaimRequest, Finish, Finished, Store};
use std::time::Duration;

on_both!(
    a_success_carries_its_result_and_history,
    a_late_finish_is_refused_and_changes_nothing,
    the_last_lines_of_a_log_come_with_the_end_and_are_kept_whatever_became_of_it,
    a_retryable_failure_waits_and_is_tried_again,
    a_rejected_job_fails_at_once_and_keeps_its_reason,
    a_job_handed_back_has_not_used_a_try,
    files_are_published_with_the_success_only,
    a_batch_of_mixed_ends_is_answered_in_order,
    an_end_that_cannot_be_written_does_not_spoil_its_neighbours,
    an_end_that_cannot_be_written_is_not_taken_for_those_of_other_kinds,
    a_failure_whose_files_are_refused_keeps_its_reason,
    a_print_job_rests_between_its_stages_until_it_is_asked_to_go_on,
    a_print_job_that_wants_to_be_ordered_goes_on_by_itself,
    a_script_that_is_retried_waits_as_pending,
);

async fn a_success_carries_its_result_and_history(store: Store) {
    let id = store.enqueue(job(pipeline::XML)).await.unwrap().id();
    let worker = worker(&store).await;
    let claimed = claim_one(&store, lane::XML, worker).await;
    let done = finish(&store, claimed, Ended::Succeeded).await;
    assert_eq!(done, Finished::Written { state: state::COMPLETE, run_at: None, code: None });
    let record = store.job(JobRef::Id(id)).await.unwrap();
    assert_eq!((record.state, record.phase), (state::COMPLETE, Phase::Done));
    assert_eq!(record.result.unwrap()["pages"], 1);
    assert_eq!(record.progress.percent, 100);
    assert_eq!(record.attempt_count, 1);
    assert!(
        record.queued_at.is_some() && record.started_at.is_some() && record.finished_at >= record.started_at
    );
    assert_eq!(record.engine_version.as_deref(), Some(env!("CARGO_PKG_VERSION")));
    assert_eq!(history(&store, id).await, ["created", "queued", "processing", "complete"]);
    let events = store.events(id).await.unwrap();
    assert_eq!(events[3].from_state, Some(state::PROCESSING));
    assert_eq!(events[2].actor, worker.to_string());
}

async fn the_last_lines_of_a_log_come_with_the_end_and_are_kept_whatever_became_of_it(store: Store) {
    let line = |job: JobId, message: &str| NewLogLine {
        job,
        attempt: 1,
        level: LogLevel::Info,
        message: message.to_owned(),
    };
    let messages = async |id| -> Vec<String> {
        let mut all: Vec<LogLine> = Vec::new();
        loop {
            let after = all.last().map_or(0, |line| line.id);
            let lines = store.logs(id, after, 500).await.unwrap();
            if lines.is_empty() {
                return all.into_iter().map(|line| line.message).collect();
            }
            all.extend(lines);
        }
    };
    let worker = worker(&store).await;
    let mut ends = Vec::new();
    for count in [1, 2_500] {
        let id = store.enqueue(job(pipeline::HTML)).await.unwrap().id();
        let claimed = claim_one(&store, lane::HTML, worker).await;
        store.log(id, 1, LogLevel::Info, "first").await.unwrap();
        let log = (0..count).map(|number| line(id, &number.to_string())).collect();
        ends.push((id, count, Finish { log, ..ending(claimed, Ended::Succeeded) }));
    }
    let (ids, ends): (Vec<_>, Vec<_>) = ends.into_iter().map(|(id, count, end)| ((id, count), end)).unzip();
    store.finish(ends).await.unwrap();
    for (id, count) in ids {
        let mut expected = vec!["first".to_owned()];
        expected.extend((0..count).map(|number| number.to_string()));
        assert_eq!(messages(id).await, expected);
    }
    let id = store.enqueue(job(pipeline::HTML)).await.unwrap().id();
    let short = ClaimRequest { lease: Duration::from_millis(1), ..request(lane::HTML, worker, 1) };
    let late = store.claim(short).await.unwrap().remove(0);
    tokio::time::sleep(Duration::from_millis(20)).await;
    assert_eq!(store.rescue().await.unwrap(), 1);
    let end = Finish { log: vec![line(id, "of a lost lease")], ..ending(late, Ended::Succeeded) };
    assert_eq!(store.finish(vec![end]).await.unwrap(), [Finished::LeaseLost]);
    assert_eq!(messages(id).await, ["of a lost lease"]);
}

async fn a_late_finish_is_refused_and_changes_nothing(store: Store) {
    let id = store.enqueue(job(pipeline::HTML)).await.unwrap().id();
    let (slow, quick) = (worker(&store).await, worker(&store).await);
    let short = ClaimRequest { lease: Duration::from_millis(1), ..request(lane::HTML, slow, 1) };
    let late = store.claim(short).await.unwrap().remove(0);
    tokio::time::sleep(Duration::from_millis(20)).await;
    assert_eq!(store.rescue().await.unwrap(), 1);
    let current = claim_one(&store, lane::HTML, quick).await;
    assert_eq!(current.lease.fence(), 2);

    assert_eq!(finish(&store, late, Ended::Succeeded).await, Finished::LeaseLost);
    let stale = Lease::granted(id, 1, slow);
    let progress = ode_job::Progress { percent: 50, ..Default::default() };
    assert!(!store.progress(&stale, &progress).await.unwrap(), "a lost lease still reported progress");
    let record = store.job(JobRef::Id(id)).await.unwrap();
    assert_eq!((record.state, record.worker_id), (state::PROCESSING, Some(quick)));
    assert_eq!(record.progress.percent, 0);

    let done = finish(&store, current, Ended::Succeeded).await;
    assert!(matches!(done, Finished::Written { state: state::COMPLETED, .. }));
    assert_eq!(history(&store, id).await, ["created", "processing", "rescued", "processing", "complete"]);
}

fn broken() -> Failure {
    Failure::retryable(ErrorCode::Gw5xx, "no answer")
}

async fn a_retryable_failure_waits_and_is_tried_again(store: Store) {
    let id = store.enqueue(job(pipeline::XML)).await.unwrap().id();
    let worker = worker(&store).await;
    let claimed = claim_one(&store, lane::XML, worker).await;
    let mut failed = ending(claimed, Ended::Failed(broken()));
    failed.retry.base = Duration::from_millis(10);
    let done = store.finish(vec![failed]).await.unwrap().remove(0);
    assert!(matches!(done, Finished::Written { state: state::QUEUED, run_at: Some(_), .. }));
    let record = store.job(JobRef::Id(id)).await.unwrap();
    assert_eq!((record.phase, record.retry_count, record.error_code), (Phase::Held, 1, None));
    assert!(claim(&store, lane::XML, worker, 1).await.is_empty(), "tried again before its time");
    tokio::time::sleep(Duration::from_millis(30)).await;
    assert_eq!(store.promote_due().await.unwrap(), 1);
    let again = claim_one(&store, lane::XML, worker).await;
    assert_eq!((again.attempt, again.retries), (2, 1));
    let events = store.events(id).await.unwrap();
    let words: Vec<_> = events.iter().map(|event| event.event.as_str()).collect();
    assert_eq!(words, ["created", "queued", "processing", "failed", "retry", "processing"]);
    assert_eq!(events[3].meta.as_ref().unwrap()["code"], "GW_5XX");
}

async fn a_rejected_job_fails_at_once_and_keeps_its_reason(store: Store) {
    let id = store.enqueue(job(pipeline::HTML)).await.unwrap().id();
    let worker = worker(&store).await;
    let claimed = claim_one(&store, lane::HTML, worker).await;
    let failure = Failure::rejected(ErrorCode::NotPdf, "Only PDF files are supported")
        .with_detail("starts with GIF89a");
    let done = finish(&store, claimed, Ended::Failed(failure)).await;
    let code = Some(ErrorCode::NotPdf);
    assert_eq!(done, Finished::Written { state: state::FAILED, run_at: None, code });
    let record = store.job(JobRef::Id(id)).await.unwrap();
    assert_eq!(record.error_code.as_deref(), Some("NOT_PDF"));
    assert_eq!(record.error_message.as_deref(), Some("Only PDF files are supported"));
    assert_eq!(record.error_detail.as_deref(), Some("starts with GIF89a"));
    assert_eq!(record.result, None);
}

async fn a_job_handed_back_has_not_used_a_try(store: Store) {
    let id = store.enqueue(job(pipeline::SCRIPT)).await.unwrap().id();
    let worker = worker(&store).await;
    let claimed = claim_one(&store, lane::SCRIPT, worker).await;
    finish(&store, claimed, Ended::HandedBack).await;
    let record = store.job(JobRef::Id(id)).await.unwrap();
    assert_eq!((record.state, record.phase, record.attempt_count), (state::QUEUED, Phase::Ready, 0));
    let again = claim_one(&store, lane::SCRIPT, worker).await;
    assert_eq!((again.attempt, again.lease.fence()), (1, 2), "the try does not count, the fence does");
}

async fn files_are_published_with_the_success_only(store: Store) {
    let ids =
        store.enqueue_many(vec![job(pipeline::XML), job(pipeline::XML), job(pipeline::XML)]).await.unwrap();
    let worker = worker(&store).await;
    let mut batch = Vec::new();
    for (number, claimed) in claim(&store, lane::XML, worker, 3).await.into_iter().enumerate() {
        let ended = if number == 1 { Ended::Failed(broken()) } else { Ended::Succeeded };
        let mut finish = ending(claimed, ended);
        finish.artifacts.push(file(&format!("blob-{number}")));
        batch.push(finish);
    }
    // The third one's lease is lost before its success arrives.
    let lost = &mut batch[2].job;
    lost.lease = Lease::granted(lost.lease.job(), lost.lease.fence() - 1, worker);
    store.finish(batch).await.unwrap();
    assert_eq!(store.artifacts(ids[0]).await.unwrap(), [file("blob-0")]);
    assert_eq!(store.artifacts(ids[1]).await.unwrap(), []);
    assert_eq!(store.artifacts(ids[2]).await.unwrap(), []);
}

async fn a_batch_of_mixed_ends_is_answered_in_order(store: Store) {
    store.enqueue_many((0..4).map(|_| job(pipeline::HTML)).collect()).await.unwrap();
    let worker = worker(&store).await;
    let ends = [Ended::Succeeded, Ended::Failed(broken()), Ended::Stopped, Ended::HandedBack];
    let claimed = claim(&store, lane::HTML, worker, 4).await;
    let batch = claimed.into_iter().zip(ends).map(|(job, ended)| ending(job, ended)).collect();
    let state = |finished: Finished| match finished {
        Finished::Written { state, .. } => state,
        other => panic!("{other:?}"),
    };
    let states: Vec<_> = store.finish(batch).await.unwrap().into_iter().map(state).collect();
    assert_eq!(states, [state::COMPLETED, state::PENDING, state::FAILED, state::PENDING]);
}

async fn an_end_that_cannot_be_written_does_not_spoil_its_neighbours(store: Store) {
    let ids = store.enqueue_many((0..3).map(|_| job(pipeline::HTML)).collect()).await.unwrap();
    let worker = worker(&store).await;
    let claimed = claim(&store, lane::HTML, worker, 3).await;
    let mut batch: Vec<_> = claimed.into_iter().map(|job| ending(job, Ended::Succeeded)).collect();
    let place = batch.iter().position(|end| end.job.lease.job() == ids[1]).unwrap();
    batch[place].artifacts = vec![file("one"), file("two, of the same name")];
    let answers = store.finish(batch).await.unwrap();
    let code = Some(ErrorCode::Unknown);
    assert_eq!(answers[place], Finished::Written { state: state::FAILED, run_at: None, code });
    for id in [ids[0], ids[2]] {
        assert_eq!(store.job(JobRef::Id(id)).await.unwrap().state, state::COMPLETED);
    }
    // It has failed with the reason, and is not run again in vain.
    let failed = store.job(JobRef::Id(ids[1])).await.unwrap();
    assert_eq!((failed.phase, failed.result), (Phase::Failed, None));
    let detail = failed.error_detail.unwrap();
    assert!(detail.starts_with("The database refused: "), "{detail}");
    assert_eq!(store.artifacts(ids[1]).await.unwrap(), []);
}

async fn an_end_that_cannot_be_written_is_not_taken_for_those_of_other_kinds(store: Store) {
    store.enqueue_many((0..2).map(|_| job(pipeline::HTML)).collect()).await.unwrap();
    let worker = worker(&store).await;
    let mut claimed = claim(&store, lane::HTML, worker, 2).await;
    let mut bad = ending(claimed.remove(0), Ended::Succeeded);
    bad.artifacts = vec![file("one"), file("two, of the same name")];
    let answers = store.finish(vec![bad, ending(claimed.remove(0), Ended::Stopped)]).await.unwrap();
    let failed = |code| Finished::Written { state: state::FAILED, run_at: None, code: Some(code) };
    assert_eq!(answers, [failed(ErrorCode::Unknown), failed(ErrorCode::Stopped)]);
}

async fn a_failure_whose_files_are_refused_keeps_its_reason(store: Store) {
    let id = store.enqueue(job(pipeline::HTML)).await.unwrap().id();
    let worker = worker(&store).await;
    let failure = Failure::rejected(ErrorCode::ScriptFailed, "The site is shut");
    let mut end = ending(claim_one(&store, lane::HTML, worker).await, Ended::Failed(failure));
    end.artifacts =
        ["one", "two, of the same name"].map(|path| Artifact { role: "log".into(), ..file(path) }).into();
    let answers = store.finish(vec![end]).await.unwrap();
    let code = Some(ErrorCode::ScriptFailed);
    assert_eq!(answers, [Finished::Written { state: state::FAILED, run_at: None, code }]);
    assert_eq!(store.artifacts(id).await.unwrap(), []);
}

async fn a_print_job_rests_between_its_stages_until_it_is_asked_to_go_on(store: Store) {
    let id = store.enqueue(job(pipeline::PRINT)).await.unwrap().id();
    let worker = worker(&store).await;
    let export = claim_one(&store, lane::PRINT_EXPORT, worker).await;
    finish(&store, export, Ended::Succeeded).await;
    let record = store.job(JobRef::Id(id)).await.unwrap();
    assert_eq!((record.state, record.phase), (state::EXPORT_COMPLETE, Phase::Held));
    assert!(claim(&store, lane::PRINT_ORDER, worker, 1).await.is_empty(), "ordered without being asked to");

    store.advance(id).await.unwrap();
    let order = claim_one(&store, lane::PRINT_ORDER, worker).await;
    finish(&store, order, Ended::Succeeded).await;
    assert_eq!(store.job(JobRef::Id(id)).await.unwrap().state, state::ORDERED);
    ode_print::sql::delivered(&store, id).await.unwrap();
    let record = store.job(JobRef::Id(id)).await.unwrap();
    assert_eq!((record.state, record.phase), (state::FULFILLED, Phase::Done));
    let words = ["created", "processing", "complete", "advanced", "processing", "complete", "delivered"];
    assert_eq!(history(&store, id).await, words);
}

async fn a_print_job_that_wants_to_be_ordered_goes_on_by_itself(store: Store) {
    let mut new = job(pipeline::PRINT);
    new.advance = true;
    store.enqueue(new).await.unwrap();
    let worker = worker(&store).await;
    let export = claim_one(&store, lane::PRINT_EXPORT, worker).await;
    finish(&store, export, Ended::Succeeded).await;
    assert_eq!(claim(&store, lane::PRINT_ORDER, worker, 1).await.len(), 1);
}

async fn a_script_that_is_retried_waits_as_pending(store: Store) {
    let id = store.enqueue(job(pipeline::SCRIPT)).await.unwrap().id();
    let worker = worker(&store).await;
    let claimed = claim_one(&store, lane::SCRIPT, worker).await;
    finish(&store, claimed, Ended::Failed(Failure::retryable(ErrorCode::Unknown, "it broke"))).await;
    let record = store.job(JobRef::Id(id)).await.unwrap();
    assert_eq!((record.state, record.phase, record.retry_count), (state::PENDING, Phase::Held, 1));
    assert!(record.run_at.is_some());
}
