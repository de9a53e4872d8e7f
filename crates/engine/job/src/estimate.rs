//! How long a job will still take: from how long jobs like it took, and from who is before it.
//!
//! Everything here is computed from what it is given. Conversions take some time whatever their size and some for each
//! byte; the line through what was measured is the median of the slopes between all pairs, so that a few documents that
//! took absurdly long do not move it.

use crate::JobId;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::time::Duration;
use uuid::Uuid;

/// Fewer measurements than this say nothing.
pub const SAMPLES_MIN: usize = 3;
/// More are not looked at: the newest are the likest, and all pairs of them are compared.
pub const SAMPLES_MAX: usize = 50;

/// A job that was done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sample {
    /// Its document's size.
    pub bytes: u64,
    /// From its claim to its end.
    pub took: Duration,
}

/// How fast jobs of one kind are.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Speed {
    base_s: f64,
    per_byte_s: f64,
    least_s: f64,
}

impl Speed {
    /// What these tell, if they are enough to tell anything.
    #[must_use]
    pub fn learn(samples: &[Sample]) -> Option<Self> {
        let samples = &samples[..samples.len().min(SAMPLES_MAX)];
        if samples.len() < SAMPLES_MIN {
            return None;
        }
        let points: Vec<(f64, f64)> =
            samples.iter().map(|sample| (sample.bytes as f64, sample.took.as_secs_f64())).collect();
        let pairs = points.iter().enumerate().flat_map(|(i, a)| points[i + 1..].iter().map(move |b| (a, b)));
        let mut slopes: Vec<f64> =
            pairs.filter(|(a, b)| (a.0 - b.0).abs() >= 1.0).map(|(a, b)| (b.1 - a.1) / (b.0 - a.0)).collect();
        let per_byte_s = median(&mut slopes).unwrap_or_default().max(0.0);
        let mut rests: Vec<f64> = points.iter().map(|(bytes, took)| took - per_byte_s * bytes).collect();
        let base_s = median(&mut rests)?;
        let least_s = points.iter().map(|(_, took)| *took).fold(f64::INFINITY, f64::min);
        Some(Speed { base_s, per_byte_s, least_s })
    }

    /// How long a document of this size will take.
    #[must_use]
    pub fn expect(&self, bytes: u64) -> Duration {
        let seconds = (self.base_s + self.per_byte_s * bytes as f64).max(self.least_s);
        Duration::try_from_secs_f64(seconds).unwrap_or_default()
    }
}

fn median(values: &mut [f64]) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}

/// A job that waits or runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    pub id: JobId,
    /// Whose turn it takes.
    pub owner: Uuid,
    /// Higher goes first.
    pub priority: i64,
    /// How long it takes once it has begun; unknown where nothing like it was done yet.
    pub takes: Option<Duration>,
    pub stage: Stage,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// It has run for this long.
    Running(Duration),
    /// It is in line.
    Waiting,
    /// It will be in line after this long.
    Held(Duration),
}

/// How long a job will still take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TimeLeft {
    /// About this long.
    About(Duration),
    /// It runs for half as long again as jobs like it; when it ends cannot be said.
    Overdue,
}

/// How long each of these jobs will still take, where that can be said: what runs ends, and what waits takes the slots
/// as they become free, highest priority first, turn by turn between owners, oldest first.
#[must_use]
pub fn times_left(line: &[Place], slots: usize) -> HashMap<JobId, TimeLeft> {
    let mut left = HashMap::new();
    if slots == 0 {
        return left;
    }
    let mut free: BinaryHeap<Reverse<Duration>> = BinaryHeap::new();
    for place in line {
        if let Stage::Running(elapsed) = place.stage {
            // One that takes longer than expected is not about to end just because it should have.
            let rest = place.takes.map(|takes| takes.saturating_sub(elapsed).max(elapsed / 10));
            let is_overdue = place.takes.is_some_and(|takes| elapsed > takes + takes / 2);
            let told = |rest| if is_overdue { TimeLeft::Overdue } else { TimeLeft::About(rest) };
            left.extend(rest.map(|rest| (place.id, told(rest))));
            free.push(Reverse(rest.unwrap_or_default()));
        }
    }
    while free.len() < slots {
        free.push(Reverse(Duration::ZERO));
    }
    for place in in_turn(line) {
        let Some(Reverse(at)) = free.pop() else { break };
        let begins = match place.stage {
            Stage::Held(until) => at.max(until),
            Stage::Waiting | Stage::Running(_) => at,
        };
        let ends = begins + place.takes.unwrap_or_default();
        left.extend(place.takes.map(|_| (place.id, TimeLeft::About(ends))));
        free.push(Reverse(ends));
    }
    left
}

/// What does not run yet, in the order in which it will be claimed.
fn in_turn(line: &[Place]) -> Vec<&Place> {
    let mut waiting: Vec<&Place> =
        line.iter().filter(|place| !matches!(place.stage, Stage::Running(_))).collect();
    waiting.sort_by_key(|place| (Reverse(place.priority), place.id));
    let mut rounds: HashMap<(i64, Uuid), usize> = HashMap::new();
    let mut in_turn: Vec<(bool, i64, usize, &Place)> = Vec::with_capacity(waiting.len());
    for place in waiting {
        let round = rounds.entry((place.priority, place.owner)).or_default();
        in_turn.push((matches!(place.stage, Stage::Held(_)), -place.priority, *round, place));
        *round += 1;
    }
    in_turn.sort_by_key(|(is_held, priority, round, place)| (*is_held, *priority, *round, place.id));
    in_turn.into_iter().map(|(.., place)| place).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(kilobytes: u64, ms: u64) -> Sample {
        Sample { bytes: kilobytes * 1000, took: Duration::from_millis(ms) }
    }

    fn is_near(expected: Duration, actual: Duration) -> bool {
        let (expected, actual) = (expected.as_secs_f64(), actual.as_secs_f64());
        (expected - actual).abs() <= actual / 2.0
    }

    #[test]
    fn nothing_is_said_before_something_was_seen() {
        assert_eq!(Speed::learn(&[]), None);
        assert_eq!(Speed::learn(&[sample(1, 10), sample(2, 20)]), None);
    }

    #[test]
    fn sizes_that_were_never_seen_are_guessed_from_those_that_were() {
        // 200 ms for anything, 1 ms for each kilobyte, up to a quarter more or less by chance.
        let jitter = |i: u64| 875 + (i * 7919) % 250;
        let samples: Vec<Sample> =
            (1..=10).map(|i| sample(i * 100, (200 + i * 100) * jitter(i) / 1000)).collect();
        let speed = Speed::learn(&samples).unwrap();
        for kilobytes in [50, 150, 1000, 3000, 20_000] {
            let actual = Duration::from_millis(200 + kilobytes);
            let expected = speed.expect(kilobytes * 1000);
            assert!(is_near(expected, actual), "{kilobytes} kB: {expected:?} for {actual:?}");
        }
    }

    #[test]
    fn a_few_that_took_absurdly_long_do_not_move_it() {
        let mut samples: Vec<Sample> = (1..=10).map(|i| sample(i * 100, 1000)).collect();
        samples[3].took = Duration::from_secs(180);
        samples[7].took = Duration::from_secs(90);
        let expected = Speed::learn(&samples).unwrap().expect(500_000);
        assert!(is_near(expected, Duration::from_secs(1)), "{expected:?}");
    }

    #[test]
    fn files_of_one_size_take_what_they_took() {
        let samples: Vec<Sample> = [900, 1000, 1100, 1000].map(|ms| sample(100, ms)).to_vec();
        assert_eq!(Speed::learn(&samples).unwrap().expect(100_000), Duration::from_secs(1));
    }

    fn place(id: u128, owner: u128, stage: Stage) -> Place {
        Place {
            id: JobId(Uuid::from_u128(id)),
            owner: Uuid::from_u128(owner),
            priority: 0,
            takes: Some(Duration::from_secs(10)),
            stage,
        }
    }

    fn seconds(line: &[Place], slots: usize) -> Vec<Option<u64>> {
        let left = times_left(line, slots);
        let seconds = |left: &TimeLeft| match left {
            TimeLeft::About(left) => Some(left.as_secs()),
            TimeLeft::Overdue => None,
        };
        line.iter().map(|place| left.get(&place.id).and_then(seconds)).collect()
    }

    #[test]
    fn who_waits_waits_for_those_before() {
        let running = Stage::Running(Duration::from_secs(4));
        let line = [place(1, 1, running), place(2, 1, Stage::Waiting), place(3, 1, Stage::Waiting)];
        assert_eq!(seconds(&line, 1), [Some(6), Some(16), Some(26)]);
        assert_eq!(seconds(&line, 3), [Some(6), Some(10), Some(10)]);
        assert_eq!(seconds(&line, 0), [None, None, None], "nobody works");
    }

    #[test]
    fn owners_take_turns_and_what_is_held_waits_for_its_moment() {
        let held = Stage::Held(Duration::from_secs(45));
        let line = [
            place(1, 1, Stage::Waiting),
            place(2, 1, Stage::Waiting),
            place(3, 2, Stage::Waiting),
            place(4, 3, held),
        ];
        assert_eq!(seconds(&line, 1), [Some(10), Some(30), Some(20), Some(55)]);
    }

    #[test]
    fn a_job_that_is_late_is_not_said_to_end_at_once() {
        let running = |seconds| [place(1, 1, Stage::Running(Duration::from_secs(seconds)))];
        assert_eq!(seconds(&running(12), 3), [Some(1)]);
        let late = running(60);
        assert_eq!(times_left(&late, 3)[&late[0].id], TimeLeft::Overdue);
    }
}
