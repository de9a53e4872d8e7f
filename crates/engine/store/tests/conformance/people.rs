//! What people ask of a job: try it again, call it off, stop it, give it up.

use crate::harness::{
    claim, claim_one, ending, finish, history, job, on_both, record, request, silence, worker,
};
use crate::machines::{lane, pipeline, state};
use futures_util::future::join;
use jiff::Timestamp;
use ode_job::{Claimed, Ended, ErrorCode, Failure, JobId, JobRef, Lease, Phase, Pipeline, Progress};
use ode_store::{Error, Finished, Store};
use std::time::Duration;
use uuid::Uuid;

on_both!(
    a_failed_job_is_retried_with_its_errors_cleared_and_its_history_kept,
    a_retried_job_may_use_all_its_retries_again,
    a_retried_script_is_ready_at_once,
    a_retried_order_is_ordered_again_not_rendered_again,
    a_retried_export_still_goes_on_to_its_order,
    a_zombie_from_before_the_retry_changes_nothing,
    only_a_failed_job_can_be_retried,
    of_two_people_who_retry_one_wins,
    a_ready_job_is_called_off,
    a_job_for_later_is_called_off,
    a_job_that_started_is_stopped_not_cancelled,
    a_job_that_is_past_calling_off_says_so,
    the_wish_to_stop_reaches_the_worker_that_holds_the_job,
    the_wish_to_stop_outlives_the_worker,
    the_wish_to_stop_outlives_an_attempt_that_did_not_hear_of_it,
    a_job_that_has_not_started_is_cancelled_not_stopped,
    of_a_cancel_and_a_claim_exactly_one_wins,
    a_waiting_job_is_given_up_with_its_reason,
    a_running_job_is_not_given_up_behind_its_workers_back,
    an_unknown_job_is_not_found_by_anyone,
);

fn rejected() -> Failure {
    Failure::rejected(ErrorCode::Gw4xx, "This mapping does not fit").with_detail("row 7")
}

/// Makes a job of the pipeline and claims it.
async fn started(store: &Store, pipeline: Pipeline) -> (JobId, Claimed) {
    let id = store.enqueue(job(pipeline)).await.unwrap().id();
    let lane = pipeline.lane(record(store, id).await.state).unwrap();
    let worker = worker(store).await;
    (id, claim_one(store, lane, worker).await)
}

/// Makes a job of the pipeline that has failed for good.
async fn failed(store: &Store, pipeline: Pipeline) -> JobId {
    let (id, claimed) = started(store, pipeline).await;
    finish(store, claimed, Ended::Failed(rejected())).await;
    id
}

async fn a_failed_job_is_retried_with_its_errors_cleared_and_its_history_kept(store: Store) {
    for (pipeline, ready) in [
        (pipeline::XML, state::QUEUED),
        (pipeline::HTML, state::PENDING),
        (pipeline::PRINT, state::PENDING_EXPORT),
        (pipeline::SCRIPT, state::QUEUED),
    ] {
        let id = failed(&store, pipeline).await;
        let before = history(&store, id).await;
        assert_eq!(store.retry(id).await.unwrap(), ready);
        let record = record(&store, id).await;
        assert_eq!((record.state, record.phase), (ready, Phase::Ready), "{pipeline}");
        let errors = (&record.error_code, &record.error_message, &record.error_detail);
        assert_eq!(errors, (&None, &None, &None), "{pipeline}");
        assert_eq!((record.worker_id, record.finished_at, record.started_at), (None, None, None));
        assert_eq!((record.attempt_count, record.retry_count), (1, 0), "{pipeline}");
        let after = history(&store, id).await;
        assert_eq!(after[..before.len()], before, "{pipeline} lost its history");
        let words: &[&str] = if pipeline == pipeline::SCRIPT { &["retry", "queued"] } else { &["retry"] };
        assert_eq!(after[before.len()..], *words, "{pipeline}");
    }
}

async fn a_retried_job_may_use_all_its_retries_again(store: Store) {
    let mut new = job(pipeline::HTML);
    new.retries_max = Some(1);
    let id = store.enqueue(new).await.unwrap().id();
    let worker = worker(&store).await;
    let broken = || Ended::Failed(Failure::from(ErrorCode::Gw5xx));
    for round in 0..2 {
        for retries in 0..2 {
            let claimed = claim_one(&store, lane::HTML, worker).await;
            assert_eq!((claimed.retries, claimed.retries_max), (retries, Some(1)), "round {round}");
            let mut end = ending(claimed, broken());
            end.retry.base = Duration::ZERO;
            store.finish(vec![end]).await.unwrap();
            crate::harness::until(async || {
                store.promote_due().await.unwrap();
                record(&store, id).await.phase != Phase::Held
            })
            .await;
        }
        assert_eq!(record(&store, id).await.phase, Phase::Failed, "round {round}");
        store.retry(id).await.unwrap();
    }
    assert_eq!(record(&store, id).await.attempt_count, 4, "tries are counted over the whole life of a job");
}

async fn a_retried_script_is_ready_at_once(store: Store) {
    let id = failed(&store, pipeline::SCRIPT).await;
    store.retry(id).await.unwrap();
    let worker = worker(&store).await;
    assert_eq!(claim_one(&store, lane::SCRIPT, worker).await.lease.job(), id);
}

async fn a_retried_order_is_ordered_again_not_rendered_again(store: Store) {
    let (id, export) = started(&store, pipeline::PRINT).await;
    finish(&store, export, Ended::Succeeded).await;
    store.advance(id).await.unwrap();
    let worker = worker(&store).await;
    let order = claim_one(&store, lane::PRINT_ORDER, worker).await;
    finish(&store, order, Ended::Failed(rejected())).await;
    assert_eq!(record(&store, id).await.state, state::ORDER_FAILED);
    assert_eq!(store.retry(id).await.unwrap(), state::EXPORT_COMPLETE);
    assert!(claim(&store, lane::PRINT_EXPORT, worker, 1).await.is_empty());
    assert_eq!(claim_one(&store, lane::PRINT_ORDER, worker).await.lease.job(), id);
}

async fn a_retried_export_still_goes_on_to_its_order(store: Store) {
    for advance in [true, false] {
        let mut new = job(pipeline::PRINT);
        new.advance = advance;
        let id = store.enqueue(new).await.unwrap().id();
        let worker = worker(&store).await;
        let export = claim_one(&store, lane::PRINT_EXPORT, worker).await;
        finish(&store, export, Ended::Failed(rejected())).await;
        store.retry(id).await.unwrap();
        let export = claim_one(&store, lane::PRINT_EXPORT, worker).await;
        finish(&store, export, Ended::Succeeded).await;
        let ordered = claim(&store, lane::PRINT_ORDER, worker, 1).await.len();
        assert_eq!(ordered, usize::from(advance), "asked for an order: {advance}");
    }
}

async fn a_zombie_from_before_the_retry_changes_nothing(store: Store) {
    let (id, zombie) = started(&store, pipeline::HTML).await;
    let (fence, worker) = (zombie.lease.fence(), zombie.lease.worker());
    let stale = || Lease::granted(id, fence, worker);
    // Its first word counts; it wakes up again after somebody retried the job.
    finish(&store, Claimed { lease: stale(), ..zombie }, Ended::Failed(rejected())).await;
    store.retry(id).await.unwrap();
    let twice = |lease| Claimed {
        lease,
        lane: lane::HTML,
        kind: "plain".into(),
        owner: ode_job::Owner::Operator,
        input: serde_json::json!({}),
        config: serde_json::json!({}),
        attempt: 1,
        retries: 0,
        retries_max: Some(3),
        crashes: 0,
        timeout: None,
    };
    assert_eq!(finish(&store, twice(stale()), Ended::Succeeded).await, Finished::LeaseLost, "ready");
    let current = claim_one(&store, lane::HTML, worker).await;
    assert_eq!((current.lease.fence(), current.attempt), (fence + 1, 2), "the fence went back");
    assert_eq!(finish(&store, twice(stale()), Ended::Succeeded).await, Finished::LeaseLost, "running");
    assert!(!store.progress(&stale(), &Progress::default()).await.unwrap());
    assert!(!store.process(&stale(), 1).await.unwrap());
    let leases = [(id, fence)];
    assert!(store.renew(worker, leases.iter(), Duration::from_secs(1)).await.unwrap().held.is_empty());
    finish(&store, current, Ended::Succeeded).await;
    assert_eq!(finish(&store, twice(stale()), Ended::Stopped).await, Finished::LeaseLost, "done");
    assert_eq!(record(&store, id).await.state, state::COMPLETED);
}

#[track_caller]
fn assert_refused<T: std::fmt::Debug>(answer: Result<T, Error>, advice: &str) {
    let error = answer.unwrap_err();
    assert!(matches!(error, Error::Refused { .. }), "{error:?}");
    assert_eq!(error.code(), ErrorCode::Conflict);
    assert!(error.to_string().contains(advice), "\"{error}\" does not help; expected \"{advice}\"");
}

async fn only_a_failed_job_can_be_retried(store: Store) {
    let ready = store.enqueue(job(pipeline::SCRIPT)).await.unwrap().id();
    assert_refused(
        store.retry(ready).await,
        "A script job that is queued cannot be retried. It has not ended yet.",
    );
    let worker = worker(&store).await;
    let claimed = claim_one(&store, lane::SCRIPT, worker).await;
    assert_refused(store.retry(ready).await, "It has not ended yet.");
    finish(&store, claimed, Ended::Succeeded).await;
    assert_refused(store.retry(ready).await, "It succeeded: there is nothing to retry.");
    let cancelled = store.enqueue(job(pipeline::SCRIPT)).await.unwrap().id();
    store.cancel(cancelled).await.unwrap();
    assert_refused(store.retry(cancelled).await, "It has already ended.");
    assert_eq!(history(&store, cancelled).await, ["created", "queued", "cancelled"]);
}

async fn of_two_people_who_retry_one_wins(store: Store) {
    for _ in 0..10 {
        let id = failed(&store, pipeline::XML).await;
        let (one, two) = join(store.retry(id), store.retry(id)).await;
        assert_eq!([&one, &two].iter().filter(|answer| answer.is_ok()).count(), 1, "{one:?}, {two:?}");
        let retries = history(&store, id).await.iter().filter(|word| *word == "retry").count();
        assert_eq!(retries, 1);
        store.cancel(id).await.unwrap();
    }
}

/// Calls a job off and checks how it ended.
async fn check_cancelled(store: &Store, id: JobId, pipeline: Pipeline) {
    let ended = match pipeline.as_str() {
        "print" => state::EXPORT_FAILED,
        "script" => state::CANCELLED,
        _ => state::FAILED,
    };
    assert_eq!(store.cancel(id).await.unwrap(), ended);
    let record = record(store, id).await;
    let is_script = pipeline == pipeline::SCRIPT;
    assert_eq!(record.phase, if is_script { Phase::Cancelled } else { Phase::Failed }, "{pipeline}");
    let code = (!is_script).then_some("CANCELLED");
    assert_eq!(record.error_code.as_deref(), code, "{pipeline}");
    assert_eq!(record.error_message.is_some(), !is_script, "{pipeline}");
    assert!(record.finished_at.is_some() && record.started_at.is_none());
    assert_eq!(record.attempt_count, 0);
    assert_eq!(history(store, id).await.last().unwrap(), "cancelled");
}

async fn a_ready_job_is_called_off(store: Store) {
    for pipeline in pipeline::ALL {
        let id = store.enqueue(job(*pipeline)).await.unwrap().id();
        check_cancelled(&store, id, *pipeline).await;
    }
    let worker = worker(&store).await;
    for lane in lane::ALL {
        assert!(claim(&store, *lane, worker, 1).await.is_empty(), "{lane}: ran although it was called off");
    }
}

async fn a_job_for_later_is_called_off(store: Store) {
    for pipeline in pipeline::ALL {
        let mut later = job(*pipeline);
        later.run_at = Some(Timestamp::now() + Duration::from_secs(3600));
        let id = store.enqueue(later).await.unwrap().id();
        check_cancelled(&store, id, *pipeline).await;
    }
    assert_eq!(store.look(&[]).await.unwrap().due_at, None);
}

async fn a_job_that_started_is_stopped_not_cancelled(store: Store) {
    for pipeline in pipeline::ALL {
        let (id, claimed) = started(&store, *pipeline).await;
        assert_refused(store.cancel(id).await, "It has started: use `ode jobs stop` instead.");
        assert_eq!(record(&store, id).await.phase, Phase::Running);
        store.stop(id).await.unwrap();
        finish(&store, claimed, Ended::Stopped).await;
        let record = record(&store, id).await;
        assert_eq!((record.phase, record.error_code.as_deref()), (Phase::Failed, Some("STOPPED")));
        assert_eq!(history(&store, id).await.last().unwrap(), "stopped");
    }
}

async fn a_job_that_is_past_calling_off_says_so(store: Store) {
    let id = failed(&store, pipeline::XML).await;
    assert_refused(store.cancel(id).await, "It has already ended.");
    assert_refused(store.stop(id).await, "It has already ended.");
    let (exported, claimed) = started(&store, pipeline::PRINT).await;
    finish(&store, claimed, Ended::Succeeded).await;
    assert_refused(store.cancel(exported).await, "A print job that is export_complete cannot be cancelled.");
    assert_refused(ode_print::sql::delivered(&store, exported).await, "cannot be delivered");
    assert_refused(store.advance(id).await, "It has already ended.");
}

async fn the_wish_to_stop_reaches_the_worker_that_holds_the_job(store: Store) {
    let (id, claimed) = started(&store, pipeline::SCRIPT).await;
    let (other, _kept) = started(&store, pipeline::SCRIPT).await;
    let (fence, worker) = (claimed.lease.fence(), claimed.lease.worker());
    let leases = [(id, fence), (other, 1)];
    assert_eq!(store.held(worker, leases.iter()).await.unwrap().stop, []);
    store.stop(id).await.unwrap();
    store.stop(id).await.unwrap();
    let held = store.held(worker, leases.iter()).await.unwrap();
    assert_eq!((held.held, held.stop), (vec![id], vec![id]));
    let renewed = store.renew(worker, leases.iter(), Duration::from_secs(60)).await.unwrap();
    assert_eq!((renewed.held, renewed.stop), (vec![id], vec![id]));
    assert_eq!(record(&store, id).await.phase, Phase::Running, "a wish is not yet an end");
    // Stopped, and then tried again by a person: the old wish must not end the new attempt.
    finish(&store, claimed, Ended::Stopped).await;
    store.retry(id).await.unwrap();
    let again = claim_one(&store, lane::SCRIPT, worker).await;
    let leases = [(id, again.lease.fence())];
    assert_eq!(store.held(worker, leases.iter()).await.unwrap().stop, []);
}

async fn the_wish_to_stop_outlives_the_worker(store: Store) {
    for pipeline in pipeline::ALL {
        let (id, claimed) = started(&store, *pipeline).await;
        store.stop(id).await.unwrap();
        silence(&store, claimed.lease.worker()).await;
        assert_eq!(store.rescue().await.unwrap(), 1);
        let record = record(&store, id).await;
        assert_eq!(record.phase, Phase::Failed, "{pipeline}: a job that was stopped runs again");
        assert_eq!(record.error_code.as_deref(), Some("STOPPED"));
    }
}

async fn the_wish_to_stop_outlives_an_attempt_that_did_not_hear_of_it(store: Store) {
    let away = Failure::away(ErrorCode::Gw5xx, "away", Duration::ZERO);
    for ended in [Ended::HandedBack, Ended::Failed(Failure::from(ErrorCode::Gw5xx)), Ended::Failed(away)] {
        let (id, claimed) = started(&store, pipeline::HTML).await;
        let (other, unasked) = started(&store, pipeline::HTML).await;
        store.stop(id).await.unwrap();
        let ends = [claimed, unasked].map(|job| ending(job, ended.clone()));
        store.finish(ends.into()).await.unwrap();
        assert_eq!(record(&store, id).await.error_code.as_deref(), Some("STOPPED"), "{ended:?}");
        assert_eq!(record(&store, other).await.state, state::PENDING, "{ended:?}");
        store.cancel(other).await.unwrap();
    }
    // What is done before anybody could stop it is done.
    let (id, claimed) = started(&store, pipeline::HTML).await;
    store.stop(id).await.unwrap();
    finish(&store, claimed, Ended::Succeeded).await;
    assert_eq!(record(&store, id).await.state, state::COMPLETED);
}

async fn a_job_that_has_not_started_is_cancelled_not_stopped(store: Store) {
    for pipeline in pipeline::ALL {
        let id = store.enqueue(job(*pipeline)).await.unwrap().id();
        assert_refused(store.stop(id).await, "It has not started: use `ode jobs cancel` instead.");
        assert_eq!(record(&store, id).await.phase, Phase::Ready);
    }
}

async fn of_a_cancel_and_a_claim_exactly_one_wins(store: Store) {
    let worker = worker(&store).await;
    for round in 0..60 {
        let id = store.enqueue(job(pipeline::SCRIPT)).await.unwrap().id();
        let (cancel, claim) = (store.cancel(id), store.claim(request(lane::SCRIPT, worker, 1)));
        // Each is polled first in half of the rounds.
        let (cancel, claim) = if round % 2 == 0 {
            join(cancel, claim).await
        } else {
            let (claim, cancel) = join(claim, cancel).await;
            (cancel, claim)
        };
        let state = record(&store, id).await.state;
        match (cancel, claim.unwrap().pop()) {
            (Ok(state::CANCELLED), None) => assert_eq!(state, state::CANCELLED),
            (Err(Error::Refused { .. }), Some(claimed)) => {
                assert_eq!(state, state::IN_PROGRESS);
                finish(&store, claimed, Ended::Succeeded).await;
            }
            (cancel, claim) => panic!("round {round}: cancel {cancel:?}, claim {claim:?}, it is {state}"),
        }
    }
}

async fn a_waiting_job_is_given_up_with_its_reason(store: Store) {
    let away = || Failure::from(ErrorCode::GatewayUnavailable);
    for pipeline in pipeline::ALL {
        let id = store.enqueue(job(*pipeline)).await.unwrap().id();
        store.fail_waiting(id, away()).await.unwrap();
        let record = record(&store, id).await;
        assert_eq!(record.phase, Phase::Failed, "{pipeline}");
        assert_eq!(record.error_code.as_deref(), Some("GATEWAY_UNAVAILABLE"), "{pipeline}");
        assert_eq!(record.error_message.as_deref(), Some(ErrorCode::GatewayUnavailable.sentence()));
        let told = store.events(id).await.unwrap().pop().unwrap();
        assert_eq!(told.meta.unwrap()["code"], "GATEWAY_UNAVAILABLE", "{pipeline}");
        assert_eq!(
            store.retry(id).await.unwrap(),
            pipeline.machine().states.iter().find(|s| s.phase == Phase::Ready).unwrap().state
        );
    }
}

async fn a_running_job_is_not_given_up_behind_its_workers_back(store: Store) {
    for pipeline in pipeline::ALL {
        let (id, claimed) = started(&store, *pipeline).await;
        assert_refused(store.fail_waiting(id, rejected()).await, "cannot be failed");
        let done = finish(&store, claimed, Ended::Succeeded).await;
        assert!(matches!(done, Finished::Written { .. }), "{pipeline}");
        assert_ne!(record(&store, id).await.phase, Phase::Failed);
    }
}

async fn an_unknown_job_is_not_found_by_anyone(store: Store) {
    let id = JobId(Uuid::now_v7());
    let answers = [
        store.retry(id).await.map(drop),
        store.cancel(id).await.map(drop),
        store.stop(id).await,
        store.advance(id).await.map(drop),
        store.delivered(id).await.map(drop),
        store.fail_waiting(id, rejected()).await.map(drop),
        store.job(JobRef::Id(id)).await.map(drop),
    ];
    for answer in answers {
        let error = answer.unwrap_err();
        assert!(matches!(error, Error::NotFound(_)), "{error:?}");
        assert_eq!(
            error.to_string(),
            format!("There is no job {id}. `ode jobs list` shows the ones there are.")
        );
    }
}
