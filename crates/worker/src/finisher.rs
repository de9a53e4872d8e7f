//! Ends attempts in batches: while one commit is under way, the next batch gathers.

use crate::Shared;
use ode_job::{JobId, Lane};
use ode_store::{Finish, Finished, Store, crash};
use std::sync::Weak;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

/// Attempts ended in one commit.
const BATCH_MAX: usize = 2_000;

/// Commits under way at a time: while one waits for the disk, another can be written.
const FLUSHES_MAX: usize = 2;

/// Writes ended attempts until nobody can send more.
pub(crate) async fn run(store: Store, shared: Weak<Shared>, mut ended: mpsc::Receiver<Finish>) {
    let mut flushes = JoinSet::new();
    let mut batch = Vec::with_capacity(BATCH_MAX);
    while ended.recv_many(&mut batch, BATCH_MAX).await > 0 {
        flushes.spawn(flush(store.clone(), shared.clone(), std::mem::take(&mut batch)));
        if flushes.len() >= FLUSHES_MAX {
            check(flushes.join_next().await);
        }
    }
    while !flushes.is_empty() {
        check(flushes.join_next().await);
    }
}

fn check(flushed: Option<Result<(), tokio::task::JoinError>>) {
    if let Some(Err(error)) = flushed {
        tracing::error!(%error, "a batch of ended attempts was not written; their leases run out");
    }
}

async fn flush(store: Store, shared: Weak<Shared>, batch: Vec<Finish>) {
    let ids: Vec<(Lane, JobId)> = batch.iter().map(|end| (end.job.lane, end.job.lease.job())).collect();
    crash::point("before-finish");
    match store.finish(batch).await {
        Ok(answers) => report(&ids, &answers),
        // The store has tried for as long as the leases could live. They run out, and others take over.
        Err(error) => tracing::error!(%error, "{} ended attempts could not be written", ids.len()),
    }
    crash::point("after-finish");
    if let Some(shared) = shared.upgrade() {
        shared.lanes.forget(&ids);
        shared.idle.notify_waiters();
    }
}

fn report(ids: &[(Lane, JobId)], answers: &[Finished]) {
    for ((lane, id), answer) in ids.iter().zip(answers) {
        match answer {
            Finished::LeaseLost => {
                tracing::warn!(job.id = %id, "job {id} was taken over by another worker; our result was dropped");
            }
            Finished::Written { state, run_at: Some(run_at) } => {
                tracing::info!(job.id = %id, job.lane = %lane, %state, %run_at, "job {id} will be tried again");
            }
            Finished::Written { state, run_at: None } => {
                tracing::debug!(job.id = %id, job.lane = %lane, %state, "job {id} is {state}");
            }
        }
    }
}
