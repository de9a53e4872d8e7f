//! The rate limit: so many calls a minute for each token, in a bucket that fills up again evenly.

use std::collections::HashMap;
use std::time::{Duration, Instant};

/// Calls and the time in which they come back.
pub(crate) const WINDOW: Duration = Duration::from_secs(60);

#[derive(Debug, Default)]
pub(crate) struct Rates {
    full_at: HashMap<String, Instant>,
}

/// How a token's bucket stands after a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Level {
    pub(crate) remaining: u32,
    pub(crate) full_in: Duration,
    /// When to come back, if there was nothing left.
    pub(crate) wait: Option<Duration>,
}

impl Rates {
    pub(crate) fn take(&mut self, token: &str, per_minute: u32, now: Instant) -> Level {
        let interval = WINDOW / per_minute.max(1);
        let full_at = self.full_at.entry(token.to_owned()).or_insert(now);
        let next = (*full_at).max(now) + interval;
        let wait = (next - now).checked_sub(WINDOW).filter(|wait| !wait.is_zero());
        if wait.is_none() {
            *full_at = next;
        }
        let full_in = full_at.saturating_duration_since(now);
        let used = full_in.as_micros().div_ceil(interval.as_micros().max(1));
        let remaining = per_minute.saturating_sub(u32::try_from(used).unwrap_or(u32::MAX));
        Level { remaining, full_in, wait }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_is_let_through_and_then_one_every_half_second() {
        let (mut rates, start) = (Rates::default(), Instant::now());
        for left in (0..120).rev() {
            assert_eq!(rates.take("a", 120, start).remaining, left);
        }
        assert!(rates.take("a", 120, start).wait.is_some());
        assert_eq!(rates.take("b", 120, start).wait, None, "another token has another bucket");
        assert_eq!(rates.take("a", 120, start + Duration::from_millis(500)).wait, None);
        assert!(rates.take("a", 120, start + Duration::from_millis(500)).wait.is_some());
    }
}
