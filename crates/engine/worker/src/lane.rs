//! A lane in this process: the slots, what runs in them, what waits for one, and the dispatcher that claims.

use crate::context::LatestProgress;
use crate::report::{Over, Pace};
use crate::{Handler, Limits, Readiness};
use crate::{Shared, attempt};
use jiff::Timestamp;
use ode_job::{Claimed, Ended, JobId, Lane, WorkerId};
use ode_store::{BornClaimed, ClaimRequest, Slots, crash};
use std::collections::{HashMap, VecDeque};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, Weak};
use std::time::{Duration, Instant};
use tokio::sync::{Notify, watch};
use uuid::Uuid;

/// Why an attempt is ended from outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Interrupt {
    /// A person wants it stopped.
    Stop,
    /// Somebody else holds the job now.
    LeaseLost,
    /// The process ends.
    Shutdown,
}

/// Jobs are claimed ahead of the slots only while they are so short that a claim would cost more than they do:
/// as many as are worked off within this time, at the rate seen lately.
const AHEAD: Duration = Duration::from_millis(100);
/// And never more than this, which is what one statement handles well.
const BATCH_MAX: usize = 2_000;
/// The rate is looked at no more often than this, and before [`AHEAD`] is over only where so many ended: over a shorter
/// time it says little.
const RATE_OVER: Duration = Duration::from_millis(5);
const RATE_OF: usize = 16;
/// While a long line is worked off, those who come new are looked after this often at most.
const EXPRESS_EVERY: Duration = Duration::from_millis(1);
/// And for this long after others came, it is worked off in steps of this size: a large step keeps the database, and
/// the disk, from whoever comes next.
const CALM_FOR: Duration = Duration::from_millis(100);
const CALM_BATCH_MAX: usize = 32;
/// A job that was claimed to see whether something is back has begun within this time; asked sooner, the handler would
/// not know of it and send another one after it.
const PROBE_PAUSE: Duration = Duration::from_millis(100);
/// After a claim that failed, the next one waits this long.
const FAULT_PAUSE: Duration = Duration::from_millis(250);

pub(crate) struct LaneState {
    pub(crate) lane: Lane,
    pub(crate) handler: Arc<dyn Handler>,
    pub(crate) limits: Limits,
    /// Woken when somebody waits in the database, or a slot became free.
    pub(crate) wake: Notify,
    /// Woken when somebody waits in the database.
    call: Notify,
    /// How long attempts take lately.
    pub(crate) pace: Pace,
    inside: Mutex<Inside>,
}

#[derive(Default)]
struct Inside {
    /// Everything leased: running, waiting for a slot, or ended and not yet written.
    held: HashMap<JobId, Held>,
    waiting: VecDeque<Claimed>,
    running: usize,
    /// Room promised to jobs that are being born here.
    reserved: usize,
    /// How many to hold at a time; between the slots and [`BATCH_MAX`].
    target: usize,
    /// Attempts that ended since the rate was last looked at.
    ended: usize,
    /// Whether the dispatcher waits for a claim: it will not see who comes now.
    is_claiming: bool,
    /// How often somebody was said to wait here.
    calls: u64,
    /// Whether the last claim found nobody, and nobody was said to wait since.
    is_dry: bool,
    after: Uuid,
    /// Until when the long line goes in small steps, for the sake of others.
    calm_until: Option<Instant>,
}

impl Inside {
    /// How many jobs may be in hand at a time.
    fn target(&self) -> usize {
        let is_calm = self.calm_until.is_some_and(|until| Instant::now() < until);
        if is_calm { self.target.min(CALM_BATCH_MAX) } else { self.target }
    }
}

struct Held {
    fence: i64,
    interrupt: watch::Sender<Option<Interrupt>>,
    progress: Arc<LatestProgress>,
}

impl LaneState {
    pub(crate) fn new(lane: Lane, handler: Arc<dyn Handler>) -> Self {
        let limits = handler.limits();
        let inside = Inside { target: limits.concurrency, ..Inside::default() };
        LaneState {
            lane,
            handler,
            limits,
            wake: Notify::new(),
            call: Notify::new(),
            pace: Pace::default(),
            inside: Mutex::new(inside),
        }
    }

    /// Whether what its handler depends on is there.
    pub(crate) fn readiness(&self) -> Readiness {
        self.handler.readiness(Timestamp::now())
    }

    /// Waits until the handler can be asked again, or something happened here.
    async fn wait_until(&self, until: Timestamp) {
        let wait = Duration::try_from(until.duration_since(Timestamp::now())).unwrap_or_default();
        // Being woken early only means to ask again.
        let _ = tokio::time::timeout(wait.max(PROBE_PAUSE), self.wake.notified()).await;
    }

    fn inside(&self) -> MutexGuard<'_, Inside> {
        self.inside.lock().expect("no code panics while holding this lock")
    }

    /// How many jobs may be claimed now.
    fn room(&self) -> usize {
        let inside = self.inside();
        let in_hand = inside.running + inside.waiting.len() + inside.reserved;
        // Short jobs are claimed by the half batch, so that claiming overlaps with working.
        let target = inside.target().max(self.limits.concurrency);
        let room = target.saturating_sub(in_hand);
        if target > self.limits.concurrency && room < target / 2 { 0 } else { room }
    }

    /// Whether what ended in this time tells how fast the lane is.
    fn can_learn(&self, since: Duration) -> bool {
        since >= AHEAD || since >= RATE_OVER && self.inside().ended >= RATE_OF
    }

    /// Learns from the attempts that ended since it last did how far ahead to claim.
    fn learn(&self, since: Duration) {
        let mut inside = self.inside();
        let ended = std::mem::take(&mut inside.ended);
        let rate = ended as f64 / since.as_secs_f64().max(f64::EPSILON);
        let target = (rate * AHEAD.as_secs_f64()) as usize;
        inside.target = target.clamp(self.limits.concurrency, BATCH_MAX.max(self.limits.concurrency));
    }

    /// Whether who comes now would have to wait for others' short jobs, or for a claim that does not see them.
    /// Where jobs take longer nothing is claimed ahead, and everyone waits for a slot alike.
    fn is_busy(&self) -> bool {
        let inside = self.inside();
        inside.target > self.limits.concurrency && (inside.is_claiming || !inside.waiting.is_empty())
    }

    /// Notes that a claim is under way; answers how often somebody was said to wait before it.
    fn begin_claim(&self) -> u64 {
        let mut inside = self.inside();
        inside.is_claiming = true;
        inside.calls
    }

    /// Takes jobs into the lane and starts slots for them where some are free.
    fn accept(self: &Arc<Self>, shared: &Arc<Shared>, jobs: Vec<Claimed>, place: Place) {
        let mut starts = 0;
        {
            let mut inside = self.inside();
            for job in jobs {
                let held = Held {
                    fence: job.lease.fence(),
                    interrupt: watch::Sender::new(None),
                    progress: Arc::default(),
                };
                inside.held.insert(job.lease.job(), held);
                match place {
                    Place::Front => inside.waiting.push_front(job),
                    Place::Back | Place::Reserved => inside.waiting.push_back(job),
                }
            }
            if place == Place::Reserved {
                inside.reserved = inside.reserved.saturating_sub(1);
            }
            while inside.running < self.limits.concurrency && starts < inside.waiting.len() {
                inside.running += 1;
                starts += 1;
            }
        }
        for _ in 0..starts {
            tokio::spawn(work(shared.clone(), self.clone()));
        }
    }

    /// The next job for a slot; without one the slot closes.
    fn next(&self) -> Option<(Claimed, watch::Receiver<Option<Interrupt>>, Arc<LatestProgress>)> {
        let mut inside = self.inside();
        while let Some(job) = inside.waiting.pop_front() {
            if let Some(held) = inside.held.get(&job.lease.job()) {
                let (interrupt, told) = (held.interrupt.subscribe(), held.progress.clone());
                return Some((job, interrupt, told));
            }
        }
        inside.running -= 1;
        None
    }
}

/// Works in one slot until nothing waits for it.
async fn work(shared: Arc<Shared>, lane: Arc<LaneState>) {
    while let Some((job, interrupt, told)) = lane.next() {
        let over = attempt::run(&shared, &lane, job, interrupt, told).await;
        if shared.ended.send(over).await.is_err() {
            // The finisher is gone, so the process ends; the lease runs out by itself.
            return;
        }
        lane.inside().ended += 1;
        lane.wake.notify_one();
    }
    lane.wake.notify_one();
    shared.idle.notify_waiters();
}

/// Where in the lane a claimed job goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// Behind those that were claimed before it.
    Back,
    /// Before them: it was claimed for an owner whose turn it is.
    Front,
    /// Into the room that was kept for it.
    Reserved,
}

/// Looks after those who come new while a long line is worked off, until the worker stops.
///
/// Jobs that were claimed ahead are mostly those of whoever fills the line. A small claim at every call is fair
/// between owners like any other, and what it brings goes first: a single job does not wait for a batch.
pub(crate) async fn express(shared: Arc<Shared>, lane: Arc<LaneState>) {
    loop {
        lane.call.notified().await;
        if shared.is_stopping.load(Ordering::SeqCst) {
            return;
        }
        if lane.is_busy() && lane.readiness() == Readiness::Ready {
            if let Err(error) = claim(&shared, &lane, lane.limits.concurrency, Place::Front).await {
                tracing::debug!(%error, job.lane = %lane.lane, "could not claim for those who came new");
                shared.may_have_strays();
            }
            tokio::time::sleep(EXPRESS_EVERY).await;
        }
    }
}

/// Claims for the slots of one lane until the worker stops.
pub(crate) async fn dispatch(shared: Arc<Shared>, lane: Arc<LaneState>) {
    let mut learnt_at = Instant::now();
    loop {
        let room = lane.room();
        if shared.is_stopping.load(Ordering::SeqCst) {
            return;
        }
        if room == 0 {
            lane.wake.notified().await;
            continue;
        }
        if lane.inside().is_dry {
            lane.wake.notified().await;
            continue;
        }
        if lane.can_learn(learnt_at.elapsed()) {
            lane.learn(learnt_at.elapsed());
            learnt_at = Instant::now();
        }
        let readiness = lane.readiness();
        let count = match readiness {
            Readiness::Ready => room,
            Readiness::Probe { .. } => 1,
            Readiness::Away { until, .. } => {
                lane.wait_until(until).await;
                continue;
            }
        };
        let calls = lane.begin_claim();
        let outcome = claim(&shared, &lane, count, Place::Back).await;
        lane.inside().is_claiming = false;
        match outcome {
            Ok(0) => {
                // A call that came while we claimed may be about a job our claim could not see yet.
                let mut inside = lane.inside();
                inside.is_dry = inside.calls == calls;
            }
            Ok(_) if readiness != Readiness::Ready => tokio::time::sleep(PROBE_PAUSE).await,
            // What was claimed starts before the next claim is sent off.
            Ok(_) => tokio::task::yield_now().await,
            Err(error) => {
                tracing::warn!(%error, job.lane = %lane.lane, "could not claim; trying again");
                shared.may_have_strays();
                tokio::time::sleep(FAULT_PAUSE).await;
            }
        }
    }
}

async fn claim(
    shared: &Arc<Shared>,
    lane: &Arc<LaneState>,
    count: usize,
    place: Place,
) -> Result<usize, ode_store::Error> {
    let after = lane.inside().after;
    let request = ClaimRequest {
        lane: lane.lane,
        worker: shared.id,
        count,
        after,
        lease: shared.config.lease,
        attempt_timeout: lane.limits.attempt_timeout,
    };
    let jobs = shared.store.claim(request).await?;
    crash::point_of("after-claim", jobs.iter().map(|job| job.lease.job()));
    let count = jobs.len();
    if let Some(last) = jobs.last() {
        let mut inside = lane.inside();
        inside.after = last.owner.key();
        if place == Place::Front && jobs.iter().any(|job| job.owner != last.owner) {
            inside.calm_until = Some(Instant::now() + CALM_FOR);
        }
    }
    lane.accept(shared, jobs, place);
    Ok(count)
}

/// All lanes of a worker.
pub(crate) struct Lanes {
    lanes: Vec<Arc<LaneState>>,
}

impl Lanes {
    pub(crate) fn new(lanes: Vec<Arc<LaneState>>) -> Self {
        Lanes { lanes }
    }

    pub(crate) fn all(&self) -> &[Arc<LaneState>] {
        &self.lanes
    }

    pub(crate) fn names(&self) -> Vec<Lane> {
        self.lanes.iter().map(|lane| lane.lane).collect()
    }

    /// Says that somebody waits in these lanes.
    pub(crate) fn wake(&self, names: &[Lane]) {
        for lane in self.lanes.iter().filter(|lane| names.contains(&lane.lane)) {
            let mut inside = lane.inside();
            inside.calls += 1;
            inside.is_dry = false;
            drop(inside);
            // Only where somebody would have to wait: woken for nothing, it is in the dispatcher's way.
            if lane.is_busy() {
                lane.call.notify_one();
            }
            lane.wake.notify_one();
        }
    }

    /// Wakes every dispatcher, whether or not somebody waits.
    pub(crate) fn nudge(&self) {
        for lane in &self.lanes {
            lane.wake.notify_one();
            lane.call.notify_one();
        }
    }

    /// Every lease held: job and fence.
    pub(crate) fn held(&self) -> Vec<(JobId, i64)> {
        let leases = |lane: &Arc<LaneState>| {
            lane.inside().held.iter().map(|(id, held)| (*id, held.fence)).collect::<Vec<_>>()
        };
        self.lanes.iter().flat_map(leases).collect()
    }

    /// What attempts told of themselves since the last time it was asked.
    pub(crate) fn progress(&self) -> Vec<(JobId, i64, ode_job::Progress)> {
        let mut told = Vec::new();
        for lane in &self.lanes {
            for (id, held) in &lane.inside().held {
                told.extend(held.progress.take().map(|progress| (*id, held.fence, progress)));
            }
        }
        told
    }

    pub(crate) fn interrupt(&self, id: JobId, why: Interrupt) {
        for lane in &self.lanes {
            if let Some(held) = lane.inside().held.get(&id) {
                held.interrupt.send_replace(Some(why));
            }
        }
    }

    pub(crate) fn interrupt_all(&self, why: Interrupt) {
        for lane in &self.lanes {
            for held in lane.inside().held.values() {
                held.interrupt.send_replace(Some(why));
            }
        }
    }

    /// Forgets leases that are over.
    pub(crate) fn forget(&self, ids: &[(Lane, JobId)]) {
        for lane in &self.lanes {
            let mut inside = lane.inside();
            for (_, id) in ids.iter().filter(|(name, _)| *name == lane.lane) {
                inside.held.remove(id);
            }
        }
    }

    /// Hands back what was claimed ahead and has not begun.
    pub(crate) async fn hand_back_waiting(&self, shared: &Shared) {
        for lane in &self.lanes {
            let waiting: Vec<Claimed> = lane.inside().waiting.drain(..).collect();
            for job in waiting {
                let end = attempt::ending(&lane.limits, job, Ended::HandedBack);
                // It has not begun, so there is nothing to tell of it.
                if shared.ended.send(Over { end, took: None, is_brisk: true }).await.is_err() {
                    return;
                }
            }
        }
    }

    /// Waits until nothing runs and everything that ended is written.
    pub(crate) async fn drained(&self, idle: &Notify) {
        loop {
            // Registered before looking, so that a change in between is not missed.
            let changed = idle.notified();
            let is_drained = self.lanes.iter().all(|lane| {
                let inside = lane.inside();
                inside.held.is_empty() && inside.running == 0 && inside.reserved == 0
            });
            if is_drained {
                return;
            }
            // The notification is a hint like any other.
            let _ = tokio::time::timeout(FAULT_PAUSE, changed).await;
        }
    }
}

/// Room in this process for jobs that are born here.
pub(crate) struct Reservations {
    shared: Weak<Shared>,
}

impl Reservations {
    pub(crate) fn new(shared: &Arc<Shared>) -> Self {
        Reservations { shared: Arc::downgrade(shared) }
    }
}

impl Slots for Reservations {
    fn reserve(&self, name: Lane) -> Option<Box<dyn BornClaimed>> {
        let shared = self.shared.upgrade().filter(|shared| !shared.is_stopping.load(Ordering::SeqCst))?;
        let lane = shared.lanes.all().iter().find(|lane| lane.lane == name)?.clone();
        if lane.readiness() != Readiness::Ready {
            return None;
        }
        let mut inside = lane.inside();
        // Only while nobody waits: a job must not overtake those who were there before it.
        let is_free = inside.is_dry
            && inside.running + inside.waiting.len() + inside.reserved < lane.limits.concurrency;
        if !is_free {
            return None;
        }
        inside.reserved += 1;
        drop(inside);
        Some(Box::new(Reserved { shared, lane, is_used: false }))
    }
}

struct Reserved {
    shared: Arc<Shared>,
    lane: Arc<LaneState>,
    is_used: bool,
}

impl BornClaimed for Reserved {
    fn worker(&self) -> WorkerId {
        self.shared.id
    }

    fn terms(&self) -> (Duration, Duration) {
        (self.shared.config.lease, self.lane.limits.attempt_timeout)
    }

    fn start(mut self: Box<Self>, job: Claimed) {
        self.is_used = true;
        self.lane.accept(&self.shared, vec![job], Place::Reserved);
    }
}

impl Drop for Reserved {
    fn drop(&mut self) {
        if !self.is_used {
            let mut inside = self.lane.inside();
            inside.reserved = inside.reserved.saturating_sub(1);
            drop(inside);
            // Whether the job was written may be unknown; if it was, it is ours and we have never heard of it.
            self.shared.may_have_strays();
        }
    }
}
