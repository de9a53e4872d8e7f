//! One attempt: the handler under its deadline, what it tells while it runs, and how it ends.

use crate::context::{Context, Gathered, LatestProgress, interrupted};
use crate::lane::{Interrupt, LaneState};
use crate::report::{self, Over};
use crate::{Limits, Shared};
use ode_job::{Claimed, Ended, ErrorCode, Failure};
use ode_store::{Finish, crash};
use serde_json::Value;
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::sync::watch;

/// Makes one attempt and says how it ended.
pub(crate) async fn run(
    shared: &Shared,
    lane: &LaneState,
    job: Claimed,
    mut interrupt: watch::Receiver<Option<Interrupt>>,
    latest: Arc<LatestProgress>,
) -> Over {
    let (began, is_brisk) = (Instant::now(), lane.pace.is_brisk());
    report::started(&job, is_brisk);
    let context = Context {
        lease: &job.lease,
        owner: job.owner,
        store: &shared.store,
        blobs: shared.blobs.as_ref(),
        places: &shared.config.places,
        latest: &latest,
        log: shared.logs.of(job.lease.job(), job.attempt),
        interrupt: interrupt.clone(),
        gathered: Mutex::default(),
    };
    let id = job.lease.job();
    crash::point_of("before-run", [id]);
    let limit = job.timeout.unwrap_or(lane.limits.attempt_timeout);
    let end_within = lane.handler.end_within();
    let attempt = tokio::time::timeout(limit + end_within, guarded(lane, &job, &context));
    let ended = unless_interrupted(attempt, &mut interrupt, end_within).await;
    crash::point_of("after-run", [id]);
    let took = began.elapsed();
    lane.pace.learn(took);
    let log = context.log.close().await;
    let shown = context.gathered.into_inner().expect("no code panics while holding this lock");
    let (ended, result) = match ended {
        Err(Interrupt::Stop) => (Ended::Stopped, None),
        // Nothing this attempt says will be written; handing back is the quietest thing to try.
        Err(Interrupt::LeaseLost | Interrupt::Shutdown) => (Ended::HandedBack, None),
        Ok(Err(_)) => (Ended::TimedOut(too_late(limit)), None),
        Ok(Ok(Ok(result))) => (Ended::Succeeded, Some(result)),
        Ok(Ok(Err(failure))) if failure.code == ErrorCode::TimedOut => (Ended::TimedOut(failure), None),
        Ok(Ok(Err(failure))) => (Ended::Failed(failure), None),
    };
    let Gathered { files: artifacts, checks, notes, .. } = shown;
    let end = Finish { artifacts, checks, notes, log, result, ..ending(&lane.limits, job, ended) };
    Over { end, took: Some(took), is_brisk }
}

/// How an attempt ended, or why it was ended.
async fn unless_interrupted<T>(
    attempt: impl Future<Output = T>,
    interrupt: &mut watch::Receiver<Option<Interrupt>>,
    end_within: Duration,
) -> Result<T, Interrupt> {
    let mut attempt = pin!(attempt);
    let ended = tokio::select! {
        biased;
        why = interrupted(interrupt) => Err(why),
        ended = attempt.as_mut() => Ok(ended),
    };
    if matches!(ended, Err(Interrupt::Stop | Interrupt::Shutdown)) {
        // Over only when nothing of it runs any more: the next job may need what this one holds. It knows by
        // `asked_to_end`; what it answers to that is of no interest.
        let _ = tokio::time::timeout(end_within, attempt).await;
    }
    ended
}

/// A handler that panics has failed; the worker has not.
async fn guarded(lane: &LaneState, job: &Claimed, context: &Context<'_>) -> Result<Value, Failure> {
    use futures_util::FutureExt as _;
    let run = std::panic::AssertUnwindSafe(lane.handler.run(job, context));
    run.catch_unwind().await.unwrap_or_else(|panic| {
        let said = panic.downcast_ref::<&str>().map(ToString::to_string);
        let said = said.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default();
        Err(Failure::retryable(ErrorCode::Unknown, ErrorCode::Unknown.sentence()).with_detail(said))
    })
}

/// An attempt that ends in this way, with nothing to show.
pub(crate) fn ending(limits: &Limits, job: Claimed, ended: Ended) -> Finish {
    // Asking the kernel for chance costs more than the rest of a short attempt, and a success needs none.
    let jitter = if ended == Ended::Succeeded { 0.0 } else { jitter() };
    Finish { retry: limits.retry, jitter, ..Finish::new(job, ended) }
}

/// Between 0 and 1. Spreads retries; nothing depends on its quality.
fn jitter() -> f64 {
    let random = uuid::Uuid::new_v4().as_u128() as u32;
    f64::from(random) / f64::from(u32::MAX)
}

fn too_late(limit: Duration) -> Failure {
    let message = format!("It took longer than the {} it may", said(limit));
    Failure::retryable(ErrorCode::TimedOut, message)
}

fn said(limit: Duration) -> String {
    // Rounded up: the limit was reached, and "0 s" would read like a fault of ours.
    match limit.as_millis() {
        millis @ ..1000 => format!("{} ms", millis.max(1)),
        millis @ ..120_000 => format!("{} s", millis.div_ceil(1000)),
        millis => format!("{} min", millis.div_ceil(60_000)),
    }
}
