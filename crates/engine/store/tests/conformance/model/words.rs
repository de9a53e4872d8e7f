//! What may happen to jobs, before and after it is decided to which, and what is told of it.

use ode_job::{Ended, ErrorCode, Event, Failure, Lane, Owner, Phase, Pipeline, RetryPolicy, State, WorkerId};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use uuid::Uuid;

pub(super) const WORKERS: usize = 2;

/// Who may own a job: nobody in particular, or one of two organisations.
pub(super) const OWNERS: [Owner; 3] = [
    Owner::Operator,
    Owner::Organisation(Uuid::from_u128(0x1111)),
    Owner::Organisation(Uuid::from_u128(0x2222)),
];

#[derive(Debug, Clone, Copy)]
pub(super) enum Command {
    Enqueue(Ask),
    /// Claims in one of the lanes, if possible in one where somebody waits.
    Claim {
        pick: usize,
        worker: usize,
        count: usize,
    },
    /// Ends an attempt under a lease that is still held.
    Finish {
        pick: usize,
        end: End,
        is_soon: bool,
    },
    /// Ends an attempt under a lease that was held once.
    FinishLate {
        pick: usize,
        end: End,
    },
    Cancel(usize),
    Retry(usize),
    Stop(usize),
    Advance(usize),
    Deliver(usize),
    GiveUp(usize),
    /// A worker falls silent, its jobs are rescued, and another takes its place.
    Lose(usize),
    /// A worker has forgotten everything that it holds.
    Forget(usize),
    /// A worker asks what it still holds, and what it is to stop.
    Held(usize),
    Promote,
}

/// What makes the life of one job differ from that of another.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ask {
    pub(super) pipeline: Pipeline,
    pub(super) owner: usize,
    pub(super) priority: i32,
    pub(super) retries_max: u32,
    pub(super) advance: bool,
    pub(super) is_later: bool,
}

/// [`Ended`], less what it carries.
#[derive(Debug, Clone, Copy)]
pub(super) enum End {
    Succeeded,
    Rejected,
    Broken,
    TimedOut,
    Stopped,
    HandedBack,
    Away,
}

impl End {
    pub(super) fn ended(self) -> Ended {
        match self {
            End::Succeeded => Ended::Succeeded,
            End::Rejected => Ended::Failed(Failure::from(ErrorCode::NotPdf)),
            End::Broken => Ended::Failed(Failure::from(ErrorCode::Gw5xx)),
            End::TimedOut => Ended::TimedOut(Failure::from(ErrorCode::TimedOut)),
            End::Stopped => Ended::Stopped,
            End::HandedBack => Ended::HandedBack,
            End::Away => Ended::Failed(Failure::away(ErrorCode::Gw5xx, "away", Duration::ZERO)),
        }
    }
}

/// Another try, at once or not within the time of a test.
pub(super) fn policy(is_soon: bool) -> RetryPolicy {
    let base = if is_soon { Duration::ZERO } else { Duration::from_secs(3600) };
    RetryPolicy { base, jitter_max: Duration::ZERO, ..RetryPolicy::default() }
}

/// What a step was answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Answer {
    Done,
    Is(State),
    Refused,
    LeaseLost,
    Claimed(BTreeMap<usize, Kept>),
    Held { held: BTreeSet<usize>, stop: BTreeSet<usize> },
    Count(usize),
}

/// What is kept of a lease, so that it can be used late.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Kept {
    pub(super) job: usize,
    pub(super) lane: Lane,
    pub(super) worker: WorkerId,
    pub(super) fence: i64,
    pub(super) attempt: u32,
    pub(super) retries: u32,
    pub(super) retries_max: Option<u32>,
    pub(super) crashes: u32,
}

/// What is compared of a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Story {
    pub(super) state: State,
    pub(super) phase: Phase,
    pub(super) attempts: u32,
    pub(super) retries: u32,
    pub(super) events: Vec<Event>,
}

/// A command with everything in it decided: which job, which lease, which worker.
#[derive(Debug, Clone, Copy)]
pub(super) enum Step {
    Enqueue(Ask),
    Claim { lane: Lane, worker: WorkerId, count: usize },
    Finish { kept: Kept, end: End, is_soon: bool },
    Person { job: usize, asks: Event },
    Stop(usize),
    Lose { worker: WorkerId, next: WorkerId },
    Forget(WorkerId),
    Held(WorkerId),
    Promote,
}
