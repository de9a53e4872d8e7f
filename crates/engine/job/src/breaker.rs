//! A circuit breaker for one dependency (the gateway, the print provider, S3): it stops calls to
//! a peer that mostly fails, and lets one through now and then to see whether it is back.
//!
//! The breaker only decides. It makes no call, asks no clock and keeps no lock: the caller passes
//! the time, asks for a permit, makes the call, and records how it ended. While it says wait, a
//! job waits in the queue and uses up no attempt.
//!
//! Memory is bounded whatever the traffic: calls are counted in [`BUCKET_COUNT`] buckets and then
//! forgotten.

use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// The sliding window is counted in this many buckets. With the default window that is 10 s
/// each: fine enough that calls leave the window within 4 % of its length, small enough (half a
/// kilobyte) to keep one breaker per dependency and sum it on every call.
pub const BUCKET_COUNT: usize = 30;

/// When a breaker opens, and how long it stays open.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BreakerPolicy {
    /// How far back calls count. Rounded to buckets: a call counts for at least 29/30 of this and
    /// at most all of it.
    pub window: Duration,
    /// The breaker opens when at least this share of the calls in the window failed, 0..=1.
    pub failure_share: f64,
    /// Below this many calls in the window the breaker stays closed. A share of few calls says
    /// nothing: without a minimum, one failure on a quiet night is 100 % and stops everything.
    /// Of a dependency that fails one call in ten, twenty calls hold ten failures by chance less
    /// than once in 100,000 times; five calls hold three about once in 100.
    pub calls_min: u32,
    /// How long an open breaker waits before a probe, and how long it waits for that probe.
    pub cool_down: Duration,
}

impl BreakerPolicy {
    /// For a dependency that gets few calls: as everywhere, but on ten of them. Five uploads and their first retries are
    /// as many, so that a small installation notices an outage before its jobs have used up their tries. A dependency that
    /// fails one call in ten fails five of ten by chance less than twice in a thousand times.
    pub const FEW_CALLS: BreakerPolicy = BreakerPolicy {
        window: Duration::from_mins(5),
        failure_share: 0.5,
        calls_min: 10,
        cool_down: Duration::from_secs(30),
    };
}

impl Default for BreakerPolicy {
    /// Half of at least 20 calls within 5 minutes; a probe every 30 s.
    fn default() -> Self {
        Self {
            window: Duration::from_mins(5),
            failure_share: 0.5,
            calls_min: 20,
            cool_down: Duration::from_secs(30),
        }
    }
}

/// Where a breaker stands, for pages, metrics and logs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BreakerState {
    /// Calls go through and are counted.
    Closed,
    /// No call goes through before `until`.
    Open {
        /// When the next probe may be sent.
        until: Timestamp,
    },
    /// One probe at a time goes through; how it ends decides.
    HalfOpen,
}

impl BreakerState {
    /// The state's name, as metrics, pages and logs write it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Closed => "closed",
            Self::Open { .. } => "open",
            Self::HalfOpen => "half_open",
        }
    }
}

/// The answer to "may I call now?".
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use = "a permit says whether the call may be made"]
pub enum Permit {
    /// Make the call and record its outcome.
    Go,
    /// Make the call and record its outcome: everyone else waits for it.
    Probe,
    /// Do not call. Ask again at `until`.
    Wait {
        /// The earliest moment at which the answer can be different without a report.
        until: Timestamp,
    },
}

/// How a call ended, as far as the dependency's health is concerned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// The dependency answered. A refusal of one input (a 4xx) is an answer too: it must not
    /// stop everyone else's jobs.
    Success,
    /// The dependency did not do its part: no connection, no answer in time, or a 5xx.
    Failure,
}

/// What happened within the window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// All recorded calls.
    pub calls: u32,
    /// Those of them that failed.
    pub failures: u32,
}

impl Counts {
    fn add(&mut self, outcome: Outcome) {
        self.calls = self.calls.saturating_add(1);
        match outcome {
            Outcome::Success => {}
            Outcome::Failure => self.failures = self.failures.saturating_add(1),
        }
    }

    fn sum(self, other: Self) -> Self {
        Self {
            calls: self.calls.saturating_add(other.calls),
            failures: self.failures.saturating_add(other.failures),
        }
    }

    fn trip(self, policy: &BreakerPolicy) -> bool {
        let failures_allowed = policy.failure_share * f64::from(self.calls);
        self.calls >= policy.calls_min && f64::from(self.failures) >= failures_allowed
    }
}

/// A breaker as others see it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Standing {
    /// What it guards, such as `gateway http://127.0.0.1:8000`.
    pub name: String,
    /// `closed`, `open` or `half_open`.
    pub state: String,
    /// When the next probe may be sent, where it is open.
    pub until: Option<Timestamp>,
    /// Since when the dependency has been away, unless it is there.
    pub away_since: Option<Timestamp>,
    /// Calls in the window.
    pub calls: u32,
    /// Those of them that failed.
    pub failures: u32,
}

/// The circuit breaker of one dependency, as one process sees it.
#[derive(Debug, Clone)]
pub struct Breaker {
    policy: BreakerPolicy,
    phase: Phase,
    window: Window,
}

/// The stored side of [`BreakerState`]. An open breaker becomes half-open by being asked for a
/// permit, so a half-open one always has a probe out.
#[derive(Debug, Clone, Copy)]
enum Phase {
    Closed,
    Open { since: Timestamp, until: Timestamp },
    Probing { since: Timestamp, deadline: Timestamp },
}

impl Breaker {
    /// A closed breaker that has seen no call.
    #[must_use]
    pub fn new(policy: BreakerPolicy) -> Self {
        Self { policy, phase: Phase::Closed, window: Window::new(policy.window) }
    }

    /// Asks to make a call now. After [`Permit::Go`] and [`Permit::Probe`] the caller makes it and
    /// records the outcome.
    ///
    /// A probe that is not heard of within one cool-down is given up, and the next caller probes:
    /// a worker that dies with the probe in hand must not keep the breaker open for ever.
    pub fn permit(&mut self, now: Timestamp) -> Permit {
        let (since, until) = match self.phase {
            Phase::Closed => return Permit::Go,
            Phase::Open { since, until } => (since, until),
            Phase::Probing { since, deadline } => (since, deadline),
        };
        if self.is_still_ahead(until, now) {
            return Permit::Wait { until };
        }
        let deadline = self.one_cool_down_after(now);
        self.phase = Phase::Probing { since, deadline };
        Permit::Probe
    }

    /// What [`Breaker::permit`] would answer, without asking for the call.
    pub fn peek(&self, now: Timestamp) -> Permit {
        self.clone().permit(now)
    }

    /// Records how a call ended.
    ///
    /// While a probe is out, any report decides, also that of a slow call from before the breaker
    /// opened: a success shows as well as the probe's own that the dependency is back, and a
    /// failure costs one cool-down more. While the breaker is open, reports are counted and decide
    /// nothing, so that stragglers cannot keep it open.
    pub fn record(&mut self, now: Timestamp, outcome: Outcome) {
        self.window.add(now, outcome);
        match (self.phase, outcome) {
            (Phase::Closed, Outcome::Success | Outcome::Failure) => {
                if self.counts(now).trip(&self.policy) {
                    self.open(now, now);
                }
            }
            (Phase::Open { .. }, Outcome::Success | Outcome::Failure) => {}
            (Phase::Probing { since, .. }, Outcome::Failure) => self.open(since, now),
            (Phase::Probing { .. }, Outcome::Success) => {
                // The failures that opened it are forgotten, or the next one would trip it again.
                self.phase = Phase::Closed;
                self.window = Window::new(self.policy.window);
            }
        }
    }

    #[must_use]
    pub fn state(&self, now: Timestamp) -> BreakerState {
        match self.phase {
            Phase::Closed => BreakerState::Closed,
            Phase::Open { until, .. } if self.is_still_ahead(until, now) => BreakerState::Open { until },
            Phase::Open { .. } | Phase::Probing { .. } => BreakerState::HalfOpen,
        }
    }

    /// The calls in the window, and how many of them failed.
    #[must_use]
    pub fn counts(&self, now: Timestamp) -> Counts {
        self.window.counts(now)
    }

    /// Since when the dependency has been away: the moment the breaker first opened, kept through
    /// failed probes, or `None` while it is closed. Tells a long outage from a short one.
    #[must_use]
    pub fn away_since(&self) -> Option<Timestamp> {
        match self.phase {
            Phase::Closed => None,
            Phase::Open { since, .. } | Phase::Probing { since, .. } => Some(since),
        }
    }

    /// All of this for those who watch.
    #[must_use]
    pub fn standing(&self, name: &str, now: Timestamp) -> Standing {
        let (state, counts) = (self.state(now), self.counts(now));
        Standing {
            name: name.to_owned(),
            state: state.as_str().to_owned(),
            until: match state {
                BreakerState::Open { until } => Some(until),
                BreakerState::Closed | BreakerState::HalfOpen => None,
            },
            away_since: self.away_since(),
            calls: counts.calls,
            failures: counts.failures,
        }
    }

    fn open(&mut self, since: Timestamp, now: Timestamp) {
        let until = self.one_cool_down_after(now);
        self.phase = Phase::Open { since, until };
    }

    /// Whether there is still time to wait. A moment further off than one cool-down was set before
    /// the clock was turned back; waiting for it could take hours, so it counts as passed.
    fn is_still_ahead(&self, until: Timestamp, now: Timestamp) -> bool {
        now < until && until <= self.one_cool_down_after(now)
    }

    fn one_cool_down_after(&self, now: Timestamp) -> Timestamp {
        now.checked_add(self.policy.cool_down).unwrap_or(Timestamp::MAX)
    }
}

/// The last [`BUCKET_COUNT`] slices of time, as a ring. A bucket carries the number of the slice
/// it counts, so an old one is recognised when it is read or reused and nothing has to expire it.
#[derive(Debug, Clone)]
struct Window {
    bucket_ms: i64,
    buckets: [Bucket; BUCKET_COUNT],
}

#[derive(Debug, Clone, Copy, Default)]
struct Bucket {
    slice: i64,
    counts: Counts,
}

impl Window {
    fn new(length: Duration) -> Self {
        let bucket_ms = length.as_millis() / BUCKET_COUNT as u128;
        Self {
            bucket_ms: i64::try_from(bucket_ms).unwrap_or(i64::MAX).max(1),
            buckets: [Bucket::default(); BUCKET_COUNT],
        }
    }

    fn add(&mut self, now: Timestamp, outcome: Outcome) {
        let slice = self.slice_at(now);
        let bucket = &mut self.buckets[slice.rem_euclid(BUCKET_COUNT as i64) as usize];
        if bucket.slice != slice {
            *bucket = Bucket { slice, counts: Counts::default() };
        }
        bucket.counts.add(outcome);
    }

    fn counts(&self, now: Timestamp) -> Counts {
        let newest = self.slice_at(now);
        let oldest = newest - (BUCKET_COUNT as i64 - 1);
        self.buckets
            .iter()
            .filter(|bucket| (oldest..=newest).contains(&bucket.slice))
            .fold(Counts::default(), |sum, bucket| sum.sum(bucket.counts))
    }

    fn slice_at(&self, now: Timestamp) -> i64 {
        now.as_millisecond().div_euclid(self.bucket_ms)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_700_000_000 + second).unwrap()
    }

    fn record(breaker: &mut Breaker, now: Timestamp, failures: u32, successes: u32) {
        for _ in 0..failures {
            breaker.record(now, Outcome::Failure);
        }
        for _ in 0..successes {
            breaker.record(now, Outcome::Success);
        }
    }

    /// A breaker that opened at second 0, so that it may probe from second 30 on.
    fn opened() -> Breaker {
        let mut breaker = Breaker::new(BreakerPolicy::default());
        record(&mut breaker, at(0), 20, 0);
        assert_eq!(breaker.state(at(0)), BreakerState::Open { until: at(30) });
        breaker
    }

    #[test]
    fn opens_at_half_of_at_least_twenty_calls() {
        fn check(failures: u32, successes: u32, expected: BreakerState) {
            // Successes first: the share is then highest at the end, where the table looks.
            let mut breaker = Breaker::new(BreakerPolicy::default());
            record(&mut breaker, at(0), 0, successes);
            record(&mut breaker, at(0), failures, 0);
            let state = breaker.state(at(0));
            assert_eq!(state, expected, "{failures} failed, {successes} did not");
        }
        let open = BreakerState::Open { until: at(30) };
        check(0, 0, BreakerState::Closed);
        check(19, 0, BreakerState::Closed);
        check(20, 0, open);
        check(9, 11, BreakerState::Closed);
        check(10, 10, open);
        check(10, 11, BreakerState::Closed);
        check(0, 100, BreakerState::Closed);
        check(99, 100, BreakerState::Closed);
        check(100, 100, open);
    }

    #[test]
    fn a_success_that_completes_the_minimum_lets_the_failures_before_it_count() {
        let mut breaker = Breaker::new(BreakerPolicy::default());
        record(&mut breaker, at(0), 19, 1);
        assert_eq!(breaker.state(at(0)), BreakerState::Open { until: at(30) });
    }

    #[test]
    fn calls_leave_the_window_after_five_minutes() {
        // Second 0 begins a bucket here, so the call counts for the whole five minutes.
        let mut breaker = Breaker::new(BreakerPolicy::default());
        record(&mut breaker, at(0), 1, 2);
        let seen = Counts { calls: 3, failures: 1 };
        assert_eq!(breaker.counts(at(0)), seen);
        assert_eq!(breaker.counts(at(299)), seen);
        assert_eq!(breaker.counts(at(300)), Counts::default());
    }

    #[test]
    fn failures_spread_thinner_than_the_window_never_open_it() {
        let mut breaker = Breaker::new(BreakerPolicy::default());
        for minute in 0..60 {
            record(&mut breaker, at(60 * minute), 3, 0);
        }
        assert_eq!(breaker.state(at(3600)), BreakerState::Closed);
    }

    #[test]
    fn open_breaker_waits_one_cool_down_and_then_lets_one_probe_out() {
        let mut breaker = opened();
        assert_eq!(breaker.permit(at(29)), Permit::Wait { until: at(30) });
        assert_eq!(breaker.state(at(30)), BreakerState::HalfOpen);
        assert_eq!(breaker.permit(at(30)), Permit::Probe);
        assert_eq!(breaker.permit(at(31)), Permit::Wait { until: at(60) });
        assert_eq!(breaker.state(at(31)), BreakerState::HalfOpen);
    }

    #[test]
    fn successful_probe_closes_and_forgets_the_old_failures() {
        let mut breaker = opened();
        assert_eq!(breaker.permit(at(30)), Permit::Probe);
        breaker.record(at(31), Outcome::Success);
        assert_eq!(breaker.state(at(31)), BreakerState::Closed);
        assert_eq!(breaker.counts(at(31)), Counts::default());
        breaker.record(at(32), Outcome::Failure);
        assert_eq!(breaker.permit(at(32)), Permit::Go);
    }

    #[test]
    fn failed_probe_opens_for_another_cool_down() {
        let mut breaker = opened();
        assert_eq!(breaker.permit(at(30)), Permit::Probe);
        breaker.record(at(35), Outcome::Failure);
        assert_eq!(breaker.state(at(35)), BreakerState::Open { until: at(65) });
        assert_eq!(breaker.permit(at(64)), Permit::Wait { until: at(65) });
        assert_eq!(breaker.permit(at(65)), Permit::Probe);
    }

    #[test]
    fn probe_that_never_reports_is_replaced_after_one_cool_down() {
        let mut breaker = opened();
        assert_eq!(breaker.permit(at(30)), Permit::Probe);
        assert_eq!(breaker.permit(at(59)), Permit::Wait { until: at(60) });
        assert_eq!(breaker.permit(at(60)), Permit::Probe);
        assert_eq!(breaker.permit(at(60)), Permit::Wait { until: at(90) });
    }

    #[test]
    fn stragglers_neither_prolong_nor_end_an_open_breaker() {
        let mut breaker = opened();
        breaker.record(at(20), Outcome::Failure);
        breaker.record(at(21), Outcome::Success);
        assert_eq!(breaker.state(at(21)), BreakerState::Open { until: at(30) });
        // Nobody has asked for the probe yet, so these decide nothing either.
        breaker.record(at(40), Outcome::Failure);
        breaker.record(at(40), Outcome::Success);
        assert_eq!(breaker.permit(at(40)), Permit::Probe);
    }

    #[test]
    fn outage_is_dated_from_the_first_opening_through_failed_probes() {
        let mut breaker = Breaker::new(BreakerPolicy::default());
        assert_eq!(breaker.away_since(), None);
        record(&mut breaker, at(0), 20, 0);
        assert_eq!(breaker.away_since(), Some(at(0)));
        assert_eq!(breaker.permit(at(30)), Permit::Probe);
        assert_eq!(breaker.away_since(), Some(at(0)));
        breaker.record(at(31), Outcome::Failure);
        assert_eq!(breaker.away_since(), Some(at(0)));
        assert_eq!(breaker.permit(at(61)), Permit::Probe);
        breaker.record(at(62), Outcome::Success);
        assert_eq!(breaker.away_since(), None);
    }

    #[test]
    fn clock_turned_back_does_not_keep_it_open() {
        let mut breaker = opened();
        assert_eq!(breaker.state(at(-3600)), BreakerState::HalfOpen);
        assert_eq!(breaker.permit(at(-3600)), Permit::Probe);
        let deadline = at(-3570);
        assert_eq!(breaker.permit(at(-3600)), Permit::Wait { until: deadline });
    }

    #[test]
    fn extreme_policies_and_times_do_not_panic() {
        for length in [Duration::ZERO, Duration::MAX] {
            let mut breaker = Breaker::new(BreakerPolicy {
                window: length,
                cool_down: length,
                calls_min: 0,
                ..BreakerPolicy::default()
            });
            for now in [Timestamp::MIN, Timestamp::UNIX_EPOCH, Timestamp::MAX] {
                breaker.record(now, Outcome::Failure);
                assert_ne!(breaker.state(now), BreakerState::Closed);
                assert_ne!(breaker.permit(now), Permit::Go);
            }
        }
    }

    /// Small numbers, so that a few dozen random steps visit every corner. The bucket is 1 s.
    const SMALL: BreakerPolicy = BreakerPolicy {
        window: Duration::from_secs(30),
        failure_share: 0.5,
        calls_min: 4,
        cool_down: Duration::from_secs(3),
    };
    const SMALL_BUCKET_MS: i64 = 1000;

    /// The breaker as one would write it without a bound on memory: it keeps every call since it
    /// was last closed and derives everything from the dates. Its window is rounded to buckets as
    /// the breaker's is: a call counts while its bucket is one of the newest [`BUCKET_COUNT`].
    #[derive(Default)]
    struct Model {
        calls: Vec<(Timestamp, Outcome)>,
        opened_at: Option<Timestamp>,
        probed_at: Option<Timestamp>,
    }

    impl Model {
        fn counts(&self, now: Timestamp) -> Counts {
            let bucket_of = |time: Timestamp| time.as_millisecond().div_euclid(SMALL_BUCKET_MS);
            let recent = |time| bucket_of(now) - bucket_of(time) < BUCKET_COUNT as i64;
            let calls = self.calls.iter().filter(|(time, _)| recent(*time));
            let failures = calls.clone().filter(|(_, end)| *end == Outcome::Failure);
            Counts { calls: calls.count() as u32, failures: failures.count() as u32 }
        }

        fn state(&self, now: Timestamp) -> BreakerState {
            match (self.opened_at, self.probed_at) {
                (None, _) => BreakerState::Closed,
                (Some(opened_at), None) if now < opened_at + SMALL.cool_down => {
                    BreakerState::Open { until: opened_at + SMALL.cool_down }
                }
                (Some(_), _) => BreakerState::HalfOpen,
            }
        }

        fn permit(&mut self, now: Timestamp) -> Permit {
            match (self.state(now), self.probed_at) {
                (BreakerState::Closed, _) => Permit::Go,
                (BreakerState::Open { until }, _) => Permit::Wait { until },
                (BreakerState::HalfOpen, Some(sent)) if now < sent + SMALL.cool_down => {
                    Permit::Wait { until: sent + SMALL.cool_down }
                }
                (BreakerState::HalfOpen, _) => {
                    self.probed_at = Some(now);
                    Permit::Probe
                }
            }
        }

        fn record(&mut self, now: Timestamp, outcome: Outcome) {
            self.calls.push((now, outcome));
            let probe_is_out = self.probed_at.is_some();
            if probe_is_out && outcome == Outcome::Success {
                *self = Self::default();
            } else if probe_is_out {
                self.opened_at = Some(now);
                self.probed_at = None;
            } else if self.opened_at.is_none() {
                let Counts { calls, failures } = self.counts(now);
                let is_tripped = calls >= SMALL.calls_min && 2 * failures >= calls;
                self.opened_at = is_tripped.then_some(now);
            }
        }
    }

    #[derive(Debug, Clone)]
    enum Step {
        Pass { ms: u64 },
        Permit,
        Record(Outcome),
    }

    fn any_step() -> impl Strategy<Value = Step> {
        prop_oneof![
            3 => (0..1500_u64).prop_map(|ms| Step::Pass { ms }),
            2 => Just(Step::Pass { ms: 3000 }),
            1 => (0..40_000_u64).prop_map(|ms| Step::Pass { ms }),
            4 => Just(Step::Permit),
            4 => Just(Step::Record(Outcome::Success)),
            6 => Just(Step::Record(Outcome::Failure)),
        ]
    }

    proptest! {
        // About 100,000 steps, half of them calls.
        #![proptest_config(ProptestConfig::with_cases(1000))]

        #[test]
        fn breaker_agrees_with_a_model_that_keeps_every_call(
            start_ms in -1_000_000_i64..1_000_000,
            steps in prop::collection::vec(any_step(), 1..200),
        ) {
            let mut now = Timestamp::from_millisecond(start_ms).unwrap();
            let mut breaker = Breaker::new(SMALL);
            let mut model = Model::default();
            for step in steps {
                match step {
                    Step::Pass { ms } => now += Duration::from_millis(ms),
                    Step::Permit => prop_assert_eq!(breaker.permit(now), model.permit(now)),
                    Step::Record(outcome) => {
                        breaker.record(now, outcome);
                        model.record(now, outcome);
                    }
                }
                prop_assert_eq!(breaker.state(now), model.state(now));
                prop_assert_eq!(breaker.counts(now), model.counts(now));
            }
        }

        #[test]
        fn without_a_success_probes_are_at_least_one_cool_down_apart(
            steps in prop::collection::vec(any_step(), 1..200),
        ) {
            let mut now = at(0);
            let mut breaker = Breaker::new(SMALL);
            record(&mut breaker, now, SMALL.calls_min, 0);
            let mut quiet_until = now + SMALL.cool_down;
            for step in steps {
                match step {
                    Step::Pass { ms } => now += Duration::from_millis(ms),
                    Step::Record(_) => breaker.record(now, Outcome::Failure),
                    Step::Permit => match breaker.permit(now) {
                        Permit::Go => prop_assert!(false, "a call went through an open breaker"),
                        Permit::Wait { until } => prop_assert!(until > now),
                        Permit::Probe => {
                            prop_assert!(now >= quiet_until);
                            quiet_until = now + SMALL.cool_down;
                        }
                    },
                }
            }
        }
    }
}
