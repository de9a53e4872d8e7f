//! After the storm: every accepted job is there, has ended once, and its history tells of it without a gap.

use crate::harness::PATIENCE;
use ode_job::{Event, JobId, JobRef, Phase};
use ode_store::Store;
use serde_json::json;
use std::time::{Duration, Instant};

/// Waits until nothing is live, then checks every job. Answers how many were set aside as poison.
pub(crate) async fn all_ended_once(store: &Store, ids: &[JobId]) -> usize {
    wait_until_drained(store).await;
    let mut poisoned = 0;
    for id in ids {
        let job =
            store.job(JobRef::Id(*id)).await.unwrap_or_else(|error| panic!("job {id} is lost: {error}"));
        let events = store.events(*id).await.unwrap();
        let words: Vec<_> = events.iter().map(|event| event.event.as_str()).collect();
        assert_eq!(events[0].event, Event::Created, "{words:?}");
        let mut state = events[0].to_state;
        for event in &events[1..] {
            assert_eq!(event.from_state, Some(state), "the history of {id} has a gap: {words:?}");
            assert_eq!(
                job.pipeline.next(state, event.event),
                Ok(event.to_state),
                "{id} took an illegal step: {words:?}"
            );
            state = event.to_state;
        }
        assert_eq!(state, job.state, "the history of {id} ends elsewhere than the job: {words:?}");
        let ends = events.iter().filter(|event| job.pipeline.is_terminal(event.to_state)).count();
        assert_eq!(ends, 1, "{id} ended {ends} times: {words:?}");
        match job.phase {
            // The handler answers which try it was: a result of an earlier one came from a worker that had lost it.
            Phase::Done => {
                let by = job.result.as_ref().map(|result| result["attempt"].clone());
                assert_eq!(
                    by,
                    Some(json!(job.attempt_count)),
                    "{id} was ended by an attempt that had lost it: {words:?}"
                );
            }
            Phase::Failed if job.error_code.as_deref() == Some("POISON") => poisoned += 1,
            other => panic!("{id} is {other}: {job:#?}"),
        }
    }
    poisoned
}

async fn wait_until_drained(store: &Store) {
    let began = Instant::now();
    while store.live_count().await.ok() != Some(0) {
        assert!(began.elapsed() < PATIENCE, "{:?} jobs never ended", store.live_count().await);
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
