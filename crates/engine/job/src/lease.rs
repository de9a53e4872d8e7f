//! A worker's dated, numbered right to make one attempt, and the job it was granted for.

use crate::{JobId, Lane, Owner, WorkerId};
use serde_json::Value;
use std::time::Duration;

/// The right to make one attempt at one job.
///
/// Only a claim makes one. It is not `Clone` and ending the attempt takes it by value, so ending twice does
/// not compile. Its fence grows with every claim of the job: a write that names an old fence changes nothing.
#[derive(Debug, PartialEq, Eq)]
pub struct Lease {
    job: JobId,
    fence: i64,
    worker: WorkerId,
}

impl Lease {
    /// Turns a claimed row into the right it grants. For stores only.
    pub fn granted(job: JobId, fence: i64, worker: WorkerId) -> Self {
        Lease { job, fence, worker }
    }

    /// The job it is for.
    pub fn job(&self) -> JobId {
        self.job
    }

    /// Its number; every write made under the lease names it.
    pub fn fence(&self) -> i64 {
        self.fence
    }

    pub fn worker(&self) -> WorkerId {
        self.worker
    }
}

/// A job as a worker gets it: the lease, and what it needs to make the attempt.
#[derive(Debug)]
pub struct Claimed {
    /// The right to try.
    pub lease: Lease,
    /// Where it was claimed.
    pub lane: Lane,
    /// Mapping, script type or format.
    pub kind: String,
    pub owner: Owner,
    /// What to work on.
    pub input: Value,
    /// How to work on it.
    pub config: Value,
    /// Which try this is, from 1.
    pub attempt: u32,
    /// Retries used so far.
    pub retries: u32,
    /// Retries it may use; as many as its handler allows where it does not say.
    pub retries_max: Option<u32>,
    /// How many workers it has outlived.
    pub crashes: u32,
    /// How long this attempt may take, if it has its own limit.
    pub timeout: Option<Duration>,
}
