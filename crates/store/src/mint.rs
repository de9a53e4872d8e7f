//! New names: ids of jobs and numbers of journal entries, made by this process without asking the database.

use jiff::Timestamp;
use ode_job::JobId;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use uuid::Uuid;

/// Makes names. One for each open store.
#[derive(Debug)]
pub(crate) struct Mint {
    counter: AtomicU32,
    last_seq: AtomicU64,
    salt: u64,
}

/// Entries are numbered from this moment on: 2020-01-01, in milliseconds since 1970.
const SEQ_EPOCH_MILLIS: i64 = 1_577_836_800_000;
/// Bits below the millisecond: room for four thousand entries a millisecond, from a start of this process's own.
const SEQ_BITS: u32 = 22;

impl Mint {
    pub(crate) fn new() -> Self {
        let random = Uuid::new_v4().as_u128();
        Mint {
            counter: AtomicU32::new(random as u32),
            last_seq: AtomicU64::new(0),
            salt: (random >> 64) as u64 & ((1 << SEQ_BITS) - 1),
        }
    }

    pub(crate) fn job_id(&self) -> JobId {
        let random = Uuid::new_v4().as_u128() as u32;
        JobId::build(Timestamp::now(), random, self.counter.fetch_add(1, Ordering::Relaxed))
    }

    /// The number of a new journal entry: grows with time, differs between processes, fits SQL's bigint.
    ///
    /// Two processes may in theory meet; the journal's primary key then refuses the second, which is tried
    /// again with a new number like any passing fault.
    pub(crate) fn seq(&self) -> i64 {
        let millis = (Timestamp::now().as_millisecond() - SEQ_EPOCH_MILLIS).max(0).cast_unsigned();
        let fresh = (millis << SEQ_BITS) | self.salt;
        let next = |last: u64| Some(fresh.max(last + 1));
        let last = self.last_seq.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next);
        let last = last.expect("the update never declines");
        fresh.max(last + 1).cast_signed()
    }
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
    fn references_made_in_one_second_differ() {
        let mint = Mint::new();
        let references: HashSet<String> = (0..10_000).map(|_| mint.job_id().reference()).collect();
        assert_eq!(references.len(), 10_000);
    }
}
