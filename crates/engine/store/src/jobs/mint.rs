//! New names: ids of jobs and numbers of journal entries, made by this process without asking the database.

use crate::error::Error;
use jiff::Timestamp;
use ode_job::JobId;
use ode_job::id::tick_of;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use uuid::Uuid;

/// Makes names. One for each open store.
#[derive(Debug)]
pub(crate) struct Mint {
    counter: AtomicU32,
    last_tick: AtomicU64,
    last_seq: AtomicU64,
    salt: u64,
    /// Spreads the ids of this process; asking the kernel for each id would cost more than the rest of it.
    seed: u64,
}

/// Entries are numbered from this moment on: 2026-01-01, in milliseconds since 1970.
const SEQ_EPOCH_MILLIS: i64 = 1_767_225_600_000;
/// Bits below the millisecond: this process's own place among those that write in the same one. Few, because
/// every job carries the numbers of its entries.
const SEQ_BITS: u32 = 12;

impl Mint {
    pub(crate) fn new() -> Self {
        let random = Uuid::new_v4().as_u128();
        Mint {
            counter: AtomicU32::new(random as u32),
            last_tick: AtomicU64::new(0),
            last_seq: AtomicU64::new(0),
            salt: (random >> 64) as u64 & ((1 << SEQ_BITS) - 1),
            seed: (random >> 32) as u64,
        }
    }

    /// The id of a new job: greater than those made before it, also where the clock stood still between them.
    pub(crate) fn job_id(&self) -> JobId {
        let counter = self.counter.fetch_add(1, Ordering::Relaxed);
        let tick = later_than(&self.last_tick, tick_of(Timestamp::now()));
        JobId::at_tick(tick, mixed(self.seed.wrapping_add(u64::from(counter))), counter)
    }

    /// The number of a new journal entry: grows with time, differs between processes, fits SQL's bigint.
    ///
    /// Two processes may meet; the journal's primary key then refuses the second, which is written again with a
    /// new number (see [`unless_taken`]).
    pub(crate) fn seq(&self) -> i64 {
        let fresh = seq_at(Timestamp::now()).cast_unsigned() | self.salt;
        later_than(&self.last_seq, fresh).cast_signed()
    }
}

/// Raises `last` to this number, or to the next one where it is as high already, and returns it.
fn later_than(last: &AtomicU64, fresh: u64) -> u64 {
    let next = |last: u64| Some(fresh.max(last + 1));
    let before = last.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next);
    fresh.max(before.expect("the update never declines") + 1)
}

/// Two processes that number an entry alike try again; a third time is as unlikely as it sounds.
const TAKEN_MAX: usize = 5;

/// Makes a write that tells of itself under new numbers: again where another process was quicker to take one of them,
/// since nothing is written then.
pub(crate) async fn unless_taken<T, F>(write: impl Fn() -> F) -> Result<T, Error>
where
    F: Future<Output = Result<T, Error>>,
{
    for _ in 1..TAKEN_MAX {
        match write().await {
            Err(Error::Collision) => {}
            answer => return answer,
        }
    }
    write().await
}

/// The least number that an entry of this moment can have.
pub(crate) fn seq_at(moment: Timestamp) -> i64 {
    (moment.as_millisecond() - SEQ_EPOCH_MILLIS).max(0) << SEQ_BITS
}

/// The finaliser of splitmix64: neighbouring numbers become unrelated ones.
fn mixed(number: u64) -> u32 {
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (number >> 32) as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn numbers_grow_and_never_repeat() {
        let mint = Mint::new();
        let seqs: Vec<i64> = (0..10_000).map(|_| mint.seq()).collect();
        assert!(seqs.is_sorted_by(|a, b| a < b));
    }

    #[test]
    fn ids_grow_however_quickly_they_are_made() {
        let mint = Mint::new();
        let ids: Vec<JobId> = (0..10_000).map(|_| mint.job_id()).collect();
        assert!(ids.is_sorted_by(|a, b| a < b));
    }

    #[test]
    fn references_made_in_one_second_differ() {
        let mint = Mint::new();
        let references: HashSet<String> = (0..10_000).map(|_| mint.job_id().reference()).collect();
        assert_eq!(references.len(), 10_000);
    }
}
