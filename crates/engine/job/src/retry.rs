//! When a failed attempt may be tried again: exponential back-off with jitter, up to a number of
//! retries and a longest wait.
//!
//! This module only computes. It does not know which failures are worth a retry (that is
//! [`crate::failure`]), it asks no clock, and it draws no random number: both are passed in.

use std::time::Duration;

use jiff::Timestamp;

/// How often, and how far apart, a job is tried again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetryPolicy {
    /// The wait before the first retry; each later one doubles it.
    pub base: Duration,
    /// The most that jitter adds. It spreads out jobs that failed together, so that they do not
    /// all come back in the same second.
    pub jitter_max: Duration,
    /// How many retries follow the first attempt. Zero means one attempt only.
    pub retries_max: u32,
    /// No wait is longer than this, jitter included: doubling is without limit, patience is not.
    pub delay_max: Duration,
}

impl Default for RetryPolicy {
    /// 5 s × 2^retry plus up to 5 s, three times, and never more than an hour apart.
    fn default() -> Self {
        Self {
            base: Duration::from_secs(5),
            jitter_max: Duration::from_secs(5),
            retries_max: 3,
            delay_max: Duration::from_hours(1),
        }
    }
}

impl RetryPolicy {
    /// How long to wait before retry number `retry`, which is 0 for the first one.
    ///
    /// `jitter` is a random share of [`RetryPolicy::jitter_max`] in 0..1. A share outside that
    /// range is clamped, and one that is not a number waits the longest: a broken source of
    /// randomness must not hurry a retry.
    #[must_use]
    pub fn delay(&self, retry: u32, jitter: f64) -> Duration {
        let doublings = 1_u128.checked_shl(retry).unwrap_or(u128::MAX);
        let backoff_ns = self.base.as_nanos().saturating_mul(doublings);
        // Capped before it becomes a Duration again, since that conversion panics past its range.
        let backoff = Duration::from_nanos_u128(backoff_ns.min(self.delay_max.as_nanos()));

        let jitter_s = self.jitter_max.as_secs_f64() * jitter.clamp(0.0, 1.0);
        let jitter = Duration::try_from_secs_f64(jitter_s).unwrap_or(self.delay_max);
        backoff.saturating_add(jitter).min(self.delay_max)
    }

    /// When the next attempt may start, or `None` when the retries are spent.
    #[must_use]
    pub fn next(&self, retries_done: u32, now: Timestamp, jitter: f64) -> Option<Timestamp> {
        if retries_done >= self.retries_max {
            return None;
        }
        let delay = self.delay(retries_done, jitter);
        Some(now.checked_add(delay).unwrap_or(Timestamp::MAX))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check(retry: u32, jitter: f64, expected_s: f64) {
        let delay = RetryPolicy::default().delay(retry, jitter);
        assert_eq!(
            delay,
            Duration::from_secs_f64(expected_s),
            "delay before retry {retry} with jitter {jitter}"
        );
    }

    #[test]
    fn delays_double_and_jitter_adds_up_to_five_seconds() {
        check(0, 0.0, 5.0);
        check(1, 0.0, 10.0);
        check(2, 0.0, 20.0);
        check(0, 0.5, 7.5);
        check(2, 1.0, 25.0);
    }

    #[test]
    fn delay_is_capped_however_many_retries_went_before() {
        check(9, 0.0, 2560.0);
        check(10, 0.0, 3600.0);
        check(10, 1.0, 3600.0);
        check(127, 0.0, 3600.0);
        check(128, 0.0, 3600.0);
        check(u32::MAX, 1.0, 3600.0);
    }

    #[test]
    fn jitter_out_of_range_is_clamped_and_nonsense_waits_longest() {
        check(0, -1.0, 5.0);
        check(0, 7.0, 10.0);
        check(0, f64::NEG_INFINITY, 5.0);
        check(0, f64::INFINITY, 10.0);
        check(0, f64::NAN, 3600.0);
    }

    #[test]
    fn a_base_of_zero_stays_zero() {
        let policy = RetryPolicy { base: Duration::ZERO, ..RetryPolicy::default() };
        assert_eq!(policy.delay(200, 0.0), Duration::ZERO);
    }

    #[test]
    fn next_is_none_once_the_retries_are_spent() {
        let policy = RetryPolicy::default();
        let now = Timestamp::UNIX_EPOCH;
        let waits_s: Vec<_> =
            (0..5).map(|done| policy.next(done, now, 0.0).map(Timestamp::as_second)).collect();
        assert_eq!(waits_s, [Some(5), Some(10), Some(20), None, None]);
    }

    #[test]
    fn a_policy_without_retries_never_tries_again() {
        let policy = RetryPolicy { retries_max: 0, ..RetryPolicy::default() };
        assert_eq!(policy.next(0, Timestamp::UNIX_EPOCH, 0.0), None);
    }

    #[test]
    fn next_stops_at_the_end_of_time() {
        let next = RetryPolicy::default().next(0, Timestamp::MAX, 0.0);
        assert_eq!(next, Some(Timestamp::MAX));
    }

    fn any_duration() -> impl Strategy<Value = Duration> {
        (any::<u64>(), 0..1_000_000_000_u32).prop_map(|(s, ns)| Duration::new(s, ns))
    }

    fn any_policy() -> impl Strategy<Value = RetryPolicy> {
        (any_duration(), any_duration(), any_duration()).prop_map(|(base, jitter_max, delay_max)| {
            RetryPolicy { base, jitter_max, delay_max, retries_max: 3 }
        })
    }

    proptest! {
        #[test]
        fn delay_never_panics_never_passes_the_cap_and_never_shrinks(
            policy in any_policy(),
            retry in 0..200_u32,
            jitter in any::<f64>(),
        ) {
            let delay = policy.delay(retry, jitter);
            prop_assert!(delay <= policy.delay_max);
            prop_assert!(delay >= policy.base.min(policy.delay_max));
            prop_assert!(policy.delay(retry + 1, jitter) >= delay);
        }
    }
}
