//! The pulse of a worker: it says that it is alive, renews its leases, listens for wake-ups, puts due jobs in
//! line and gives the jobs of lost workers to others.

use crate::lane::Interrupt;
use crate::{STRAY_AFTER, Shared, report};
use jiff::Timestamp;
use ode_job::record::About;
use ode_job::{ErrorCode, Failure, JobId, Lease};
use ode_store::{Error, Wake, crash};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::time::{Instant, MissedTickBehavior};

/// Leases that ran out while their worker still lives are looked for this often: it reads the whole live table.
const EXPIRY_CHECK: Duration = Duration::from_secs(30);
/// Progress is written this often, and only where it changed.
const PROGRESS_EVERY: Duration = Duration::from_secs(1);
/// The next due job is waited for no longer than this: another process may schedule an earlier one.
const DUE_WAIT_MAX: Duration = Duration::from_secs(5);

/// Beats, looks and renews until it is aborted.
pub(crate) async fn beat(shared: Arc<Shared>) {
    let mut ticks = tokio::time::interval(shared.config.beat_every.min(PROGRESS_EVERY));
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let now = Instant::now();
    let (mut beat_at, mut renew_at, mut expiry_at) = (now, now + shared.config.renew_every, now);
    let mut steady_since = now;
    let mut described = None;
    loop {
        ticks.tick().await;
        let now = Instant::now();
        let mut outcome = tell_progress(&shared).await;
        if now >= beat_at {
            beat_at = now + shared.config.beat_every;
            let alive = say_alive(&shared).await;
            if alive.is_err() {
                steady_since = Instant::now();
            }
            let care = care(&shared, steady_since, expiry_at);
            if care == Care::Thorough {
                expiry_at = now + EXPIRY_CHECK;
            }
            // Given up before it is looked for what is due: a job that waits alone would be put in line anew each time,
            // and seem to have waited for no time at all.
            outcome = outcome.and(alive).and(give_up(&shared).await);
            outcome = outcome.and(look_around(&shared, care).await);
            outcome = outcome.and(describe(&shared, &mut described).await);
        }
        if now >= renew_at {
            renew_at = now + shared.config.renew_every;
            outcome = outcome.and(renew(&shared).await);
        }
        if let Err(error) = outcome {
            tracing::warn!(%error, "the database did not answer the worker's pulse; trying again");
        }
    }
}

/// How closely to look after the jobs of others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Care {
    /// Not at all: the database was away, and the others may not have had the time to say that they live.
    None,
    /// Where a worker is known to be silent.
    Silent,
    /// Also where a lease ran out although its worker lives.
    Thorough,
}

fn care(shared: &Shared, steady_since: Instant, expiry_at: Instant) -> Care {
    let now = Instant::now();
    if now < steady_since + shared.store.silence_max() {
        Care::None
    } else if now >= expiry_at {
        Care::Thorough
    } else {
        Care::Silent
    }
}

async fn say_alive(shared: &Shared) -> Result<(), Error> {
    let held = shared.lanes.held();
    let is_draining = shared.is_stopping.load(Ordering::SeqCst);
    let silence = shared.store.silence_max();
    if !shared.store.beat(shared.id, silence, held.len(), is_draining).await? {
        // We were silent for too long and others took our jobs over. What we run is not ours any more.
        tracing::warn!(worker.id = %shared.id, "worker {} was given up by the others; starting over", shared.id);
        drop_lost(shared, &held).await?;
        shared.store.register(shared.id, &shared.config.host, env!("CARGO_PKG_VERSION")).await?;
    }
    if shared.strays_are_due() {
        let known: Vec<JobId> = shared.lanes.held().into_iter().map(|(id, _)| id).collect();
        let count = shared.store.release_strays(shared.id, &known, STRAY_AFTER).await?;
        if count > 0 {
            tracing::info!("{count} jobs whose claim went unanswered were handed back");
        }
    }
    Ok(())
}

/// Ends attempts whose lease is somebody else's, and those that a person wants stopped.
async fn drop_lost(shared: &Shared, held: &[(JobId, i64)]) -> Result<(), Error> {
    let still = shared.store.held(shared.id, held.iter()).await?;
    apply(shared, held, &still);
    Ok(())
}

async fn renew(shared: &Shared) -> Result<(), Error> {
    let held = shared.lanes.held();
    if held.is_empty() {
        return Ok(());
    }
    crash::point("before-renew");
    let still = shared.store.renew(shared.id, held.iter(), shared.config.lease).await?;
    apply(shared, &held, &still);
    Ok(())
}

fn apply(shared: &Shared, held: &[(JobId, i64)], still: &ode_store::Renewed) {
    // An attempt may have ended since `held` was read; interrupting what is over does nothing.
    for (id, _) in held.iter().filter(|(id, _)| !still.held.contains(id)) {
        shared.lanes.interrupt(*id, Interrupt::LeaseLost);
    }
    for id in &still.stop {
        shared.lanes.interrupt(*id, Interrupt::Stop);
    }
}

/// Looks for work nobody told us of, and for jobs that nobody looks after.
async fn look_around(shared: &Shared, care: Care) -> Result<(), Error> {
    let look = shared.store.look(&shared.lanes.names()).await?;
    if care == Care::Thorough || (care == Care::Silent && look.has_lost) {
        crash::point("in-rescue");
        let count = shared.store.rescue().await?;
        if count > 0 {
            report::rescued(count);
            shared.rescued.notify_one();
            tracing::warn!(count, "jobs of lost workers were given to others");
        }
    }
    if let Some(due_at) = look.due_at {
        let wait = Duration::try_from(due_at.duration_since(look.now)).unwrap_or(Duration::ZERO);
        if wait.is_zero() {
            promote(shared).await?;
        } else if wait < shared.config.beat_every.min(DUE_WAIT_MAX) {
            // Due before the next look: wait for it here, so that it starts on time.
            tokio::time::sleep(wait).await;
            promote(shared).await?;
        }
    }
    if !shared.is_stopping.load(Ordering::SeqCst) {
        shared.lanes.wake(&look.ready);
    }
    Ok(())
}

/// Says what there is to see of us, where that has changed.
async fn describe(shared: &Shared, described: &mut Option<About>) -> Result<(), Error> {
    let now = Timestamp::now();
    let lanes = shared.lanes.all();
    let about = About {
        slots: lanes.iter().map(|lane| (lane.lane, lane.limits.concurrency)).collect(),
        breakers: lanes.iter().flat_map(|lane| lane.handler.breakers(now)).collect(),
    };
    if described.as_ref() != Some(&about) {
        shared.store.describe(shared.id, &about).await?;
        *described = Some(about);
    }
    Ok(())
}

/// Fails jobs that have waited too long for something that is away.
async fn give_up(shared: &Shared) -> Result<(), Error> {
    let limit = shared.config.away_max;
    for lane in shared.lanes.all() {
        let Some(since) = lane.readiness().away_since() else { continue };
        let away = Duration::try_from(Timestamp::now().duration_since(since)).unwrap_or_default();
        if away < limit {
            continue;
        }
        let failure = Failure::from(ErrorCode::GatewayUnavailable);
        let count = shared.store.give_up_waiting(lane.lane, limit, &failure).await?;
        if count > 0 {
            report::given_up(lane.lane, failure.code, count);
            tracing::warn!(
                job.lane = %lane.lane,
                "{count} jobs failed: what they wait for has been away for {} s",
                away.as_secs()
            );
        }
    }
    Ok(())
}

async fn promote(shared: &Shared) -> Result<(), Error> {
    while shared.store.promote_due().await? > 0 {
        shared.lanes.wake(&shared.lanes.names());
    }
    Ok(())
}

async fn tell_progress(shared: &Shared) -> Result<(), Error> {
    for (id, fence, progress) in shared.lanes.progress() {
        let lease = Lease::granted(id, fence, shared.id);
        if !shared.store.progress(&lease, &progress).await? {
            shared.lanes.interrupt(id, Interrupt::LeaseLost);
        }
    }
    Ok(())
}

/// Passes wake-ups on to the lanes until it is aborted.
pub(crate) async fn listen(shared: Arc<Shared>) {
    let mut wakes = shared.store.wakes();
    loop {
        match wakes.next().await {
            Wake::Ready(lane) => shared.lanes.wake(&[lane]),
            Wake::Stop(id) => shared.lanes.interrupt(id, Interrupt::Stop),
            Wake::Changed => {
                let held = shared.lanes.held();
                if let Err(error) = drop_lost(&shared, &held).await {
                    tracing::debug!(%error, "could not check our leases; the pulse will");
                }
                shared.lanes.wake(&shared.lanes.names());
            }
        }
    }
}
