//! Ends attempts in batches: while one commit is under way, the next batch gathers.

use crate::Shared;
use crate::report::{self, Memo, Over};
use ode_job::{JobId, Lane};
use ode_store::{Store, crash};
use std::sync::Weak;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

/// Attempts ended in one commit.
const BATCH_MAX: usize = 2_000;

/// Commits under way at a time: while one waits for the disk, another can be written.
const FLUSHES_MAX: usize = 2;

/// Writes ended attempts until nobody can send more.
pub(crate) async fn run(store: Store, shared: Weak<Shared>, mut ended: mpsc::Receiver<Over>) {
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

async fn flush(store: Store, shared: Weak<Shared>, batch: Vec<Over>) {
    let memos: Vec<Memo> = batch.iter().map(Memo::of).collect();
    let ids = || memos.iter().map(|memo| memo.id);
    crash::point_of("before-finish", ids());
    match store.finish(batch.into_iter().map(|over| over.end).collect()).await {
        Ok(answers) => report::ended(&memos, &answers),
        // The store has tried for as long as the leases could live. They run out, and others take over.
        Err(error) => tracing::error!(%error, "{} ended attempts could not be written", memos.len()),
    }
    crash::point_of("after-finish", ids());
    if let Some(shared) = shared.upgrade() {
        let ids: Vec<(Lane, JobId)> = memos.iter().map(|memo| (memo.lane, memo.id)).collect();
        shared.lanes.forget(&ids);
        shared.idle.notify_waiters();
    }
}
