//! What a worker does beside its jobs: the daily cleanup, by one process at a time, and making room while the disk is
//! nearly full.

use crate::Shared;
use ode_store::disk::{Watermark, WatermarkConfig};
use ode_store::{Blobs, Error, LEFTOVERS};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::MissedTickBehavior;

/// How a worker looks after files and history.
#[derive(Debug, Clone, Copy)]
pub struct Chores {
    /// How often everything that was kept long enough is removed.
    pub cleanup_every: Duration,
    /// How often it is looked whether it is time, and how full the disk is.
    pub look_every: Duration,
    /// When the disk counts as nearly full.
    pub watermark: WatermarkConfig,
}

impl Default for Chores {
    /// Once a day; a look every half minute.
    fn default() -> Self {
        Chores {
            cleanup_every: Duration::from_hours(24),
            look_every: Duration::from_secs(30),
            watermark: WatermarkConfig::default(),
        }
    }
}

const CLEANUP: &str = "cleanup";
const RELIEF: &str = "relief";
/// How soon after its job has failed an unfinished result is gone from the place of a caller; at once where a worker was lost.
const LEFTOVERS_EVERY: Duration = Duration::from_secs(60);

/// Does what is due until it is aborted. Being aborted anywhere is fine: the next one goes on.
pub(crate) async fn run(shared: Arc<Shared>, blobs: Blobs, chores: Chores) {
    let watermark = Watermark::new(blobs.root(), chores.watermark);
    let mut ticks = tokio::time::interval(chores.look_every);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            _ = ticks.tick() => {}
            () = shared.rescued.notified() => {
                if let Err(error) = withdraw(&shared, Duration::ZERO).await {
                    tracing::warn!(%error, "what lost attempts left stays until the next look");
                }
                continue;
            }
        }
        let relieved = relieve(&shared, &blobs, &watermark).await;
        let withdrawn = withdraw(&shared, LEFTOVERS_EVERY).await;
        let cleaned = cleanup(&shared, &blobs, chores.cleanup_every).await;
        if let Err(error) = relieved.and(withdrawn).and(cleaned) {
            tracing::warn!(%error, "cleaning up was cut short; it goes on with the next look");
        }
    }
}

/// Takes away what jobs that failed left at places of callers, unless that was done a moment ago.
async fn withdraw(shared: &Shared, every: Duration) -> Result<(), Error> {
    if !shared.store.take_chore(LEFTOVERS, shared.id, every).await? {
        return Ok(());
    }
    let config = &shared.config;
    let withdrawn = shared.store.withdraw_failed(&config.places, &config.publishers, shared.id).await?;
    let Some(withdrawn) = withdrawn else { return Ok(()) };
    if withdrawn.removed > 0 {
        tracing::info!("removed {} files that failed jobs had left at output prefixes", withdrawn.removed);
    }
    if withdrawn.unreached == 0 {
        shared.store.end_chore(LEFTOVERS, shared.id).await?;
    } else {
        shared.store.leave_chore(LEFTOVERS, shared.id).await?;
    }
    Ok(())
}

async fn relieve(shared: &Shared, blobs: &Blobs, watermark: &Watermark) -> Result<(), Error> {
    let disk = watermark.state();
    if !disk.is_paused || !shared.store.take_chore(RELIEF, shared.id, Duration::ZERO).await? {
        return Ok(());
    }
    let cleaned = held(shared, RELIEF, shared.store.relieve(blobs, watermark)).await?;
    let Some(cleaned) = cleaned else { return Ok(()) };
    tracing::warn!(
        used_share = disk.used_share,
        files_removed = cleaned.files_removed,
        "the disk is {:.0} % full: uploads pause, {} files were removed to make room",
        disk.used_share * 100.0,
        cleaned.files_removed
    );
    Ok(())
}

async fn cleanup(shared: &Shared, blobs: &Blobs, every: Duration) -> Result<(), Error> {
    if !shared.store.take_chore(CLEANUP, shared.id, every).await? {
        return Ok(());
    }
    let cleaned = held(shared, CLEANUP, shared.store.cleanup(blobs)).await?;
    let Some(cleaned) = cleaned else { return Ok(()) };
    tracing::info!(
        sources = cleaned.sources,
        results = cleaned.results,
        files_removed = cleaned.files_removed,
        events_archived = cleaned.events_archived,
        orphans = cleaned.orphans,
        lost = cleaned.lost,
        "cleaned up: {} files removed, {} events archived",
        cleaned.files_removed,
        cleaned.events_archived
    );
    let unpublished = shared.config.places.sweep().await;
    if unpublished > 0 {
        tracing::info!("removed {unpublished} results that attempts had left unpublished");
    }
    Ok(())
}

/// Does a chore that was taken. Nothing if it was lost to another process on the way.
async fn held<T>(
    shared: &Shared,
    name: &str,
    work: impl Future<Output = Result<T, Error>>,
) -> Result<Option<T>, Error> {
    let done = shared.store.at_chore(name, shared.id, work).await?;
    if done.is_some() {
        shared.store.end_chore(name, shared.id).await?;
    }
    Ok(done)
}
