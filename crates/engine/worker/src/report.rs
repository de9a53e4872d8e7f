//! What is told of attempts: lines in the log, and counts for those who watch.
//!
//! Everything is done once for each batch of ended attempts and not once for each job: tens of thousands of trivial jobs
//! a second must not pay for being watched.

use ode_job::{Claimed, Ended, ErrorCode, Event, FailureKind, JobId, Lane, State};
use ode_metrics::{Counter, Family, Histogram};
use ode_store::{Finish, Finished};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Upper ends of the buckets, in seconds: from the shortest conversion to the longest that may be.
const BUCKETS: [f64; 12] = [0.01, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 15.0, 60.0, 180.0, 600.0];

static DURATION: Histogram<2> = Histogram::new(
    "ode_job_duration_seconds",
    "How long attempts took, by pipeline and outcome.",
    ["pipeline", "outcome"],
    &BUCKETS,
);
static ENDED: Counter<3> = Counter::new(
    "ode_jobs_ended_total",
    "Jobs, or stages of a print, that ended here, by state and error code.",
    ["pipeline", "state", "code"],
);
static RETRIES: Counter<2> = Counter::new(
    "ode_retries_total",
    "Attempts that failed and are made again, by the code of the error.",
    ["pipeline", "code"],
);
static RESCUED: Counter<0> =
    Counter::new("ode_rescued_total", "Jobs of lost workers that were taken back by this one.", []);

/// What workers count.
pub static METRICS: [&dyn Family; 4] = [&DURATION, &ENDED, &RETRIES, &RESCUED];

/// Where attempts are shorter than this on average, each of them is told at level `debug` only: a line would cost a good
/// part of the work. Reading a document takes longer, since a process is started for it.
const SHORT: Duration = Duration::from_millis(2);
/// Lines at level `info` that one batch of such attempts may still cause, for those that failed.
const LINES_MAX: usize = 20;

/// How long the attempts of a lane take lately.
#[derive(Debug, Default)]
pub(crate) struct Pace {
    /// A moving average in microseconds; zero before the first.
    average: AtomicU64,
}

impl Pace {
    /// Takes one more into account. Two at a time may cost one of them: it is an estimate.
    pub(crate) fn learn(&self, took: Duration) {
        let took = u64::try_from(took.as_micros()).unwrap_or(u64::MAX).max(1);
        let before = self.average.load(Ordering::Relaxed);
        let average = if before == 0 { took } else { before - before / 8 + took / 8 };
        self.average.store(average.max(1), Ordering::Relaxed);
    }

    /// Whether they are so short that single ones are not worth a line.
    pub(crate) fn is_brisk(&self) -> bool {
        let average = self.average.load(Ordering::Relaxed);
        average != 0 && u128::from(average) < SHORT.as_micros()
    }
}

/// An attempt that is over and not yet written.
pub(crate) struct Over {
    pub(crate) end: Finish,
    /// How long it took; nothing where it never began.
    pub(crate) took: Option<Duration>,
    /// Whether its lane is too quick for lines about single attempts.
    pub(crate) is_brisk: bool,
}

/// Says that an attempt begins.
pub(crate) fn started(job: &Claimed, is_brisk: bool) {
    let (id, lane, attempt) = (job.lease.job(), job.lane, job.attempt);
    if is_brisk {
        tracing::debug!(
            job.id = %id, job.pipeline = %lane.pipeline(), job.kind = job.kind, attempt,
            "attempt {attempt} of job {id} started"
        );
    } else {
        tracing::info!(
            job.id = %id, job.pipeline = %lane.pipeline(), job.kind = job.kind, attempt,
            "attempt {attempt} of job {id} started"
        );
    }
}

/// Counts jobs that were taken back from lost workers.
pub(crate) fn rescued(count: usize) {
    RESCUED.add([], u64::try_from(count).unwrap_or(u64::MAX));
}

/// Counts jobs that waited too long for something that is away, and failed.
pub(crate) fn given_up(lane: Lane, code: ErrorCode, count: usize) {
    let Ok(state) = lane.pipeline().next(lane.ready_state(), Event::Failed) else { return };
    let labels = [lane.pipeline().as_str().into(), state.as_str().into(), code.as_str().into()];
    ENDED.add(labels, u64::try_from(count).unwrap_or(u64::MAX));
}

/// How an attempt came out for its job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Outcome {
    Done,
    Failed,
    Retried,
    Postponed,
    HandedBack,
    LeaseLost,
    Unwritten,
}

impl Outcome {
    fn as_str(self) -> &'static str {
        match self {
            Outcome::Done => "done",
            Outcome::Failed => "failed",
            Outcome::Retried => "retried",
            Outcome::Postponed => "postponed",
            Outcome::HandedBack => "handed_back",
            Outcome::LeaseLost => "lease_lost",
            Outcome::Unwritten => "unwritten",
        }
    }
}

/// What is remembered of an attempt while its end is being written.
pub(crate) struct Memo {
    pub(crate) id: JobId,
    pub(crate) lane: Lane,
    attempt: u32,
    /// Only where a line may need it.
    kind: String,
    took: Option<Duration>,
    is_brisk: bool,
    /// What it will be if the lease still holds.
    outcome: Outcome,
    /// Why it did not work, in a sentence.
    reason: Option<String>,
}

impl Memo {
    pub(crate) fn of(over: &Over) -> Self {
        let Over { end, took, is_brisk } = over;
        let failure = match &end.ended {
            Ended::Failed(failure) | Ended::TimedOut(failure) => Some(failure),
            Ended::Succeeded | Ended::Stopped | Ended::HandedBack | Ended::Lost => None,
        };
        let outcome = match &end.ended {
            Ended::Succeeded => Outcome::Done,
            Ended::HandedBack => Outcome::HandedBack,
            Ended::Failed(failure) if matches!(failure.kind, FailureKind::Away { .. }) => Outcome::Postponed,
            // Whether it is tried again is known when it is written.
            Ended::Failed(_) | Ended::TimedOut(_) | Ended::Stopped | Ended::Lost => Outcome::Failed,
        };
        let is_long = took.is_some_and(|took| took >= SHORT);
        let is_told =
            !is_brisk || is_long || outcome != Outcome::Done || tracing::enabled!(tracing::Level::DEBUG);
        Memo {
            id: end.job.lease.job(),
            lane: end.job.lane,
            attempt: end.job.attempt,
            kind: if is_told { end.job.kind.clone() } else { String::new() },
            took: *took,
            is_brisk: *is_brisk,
            outcome,
            reason: failure.map(|failure| failure.message.clone()),
        }
    }
}

/// Tells and counts what became of a batch.
pub(crate) fn ended(memos: &[Memo], answers: &[Finished]) {
    let mut tally = Tally::default();
    let (mut lines, mut left_out) = (0, 0);
    for (memo, answer) in memos.iter().zip(answers) {
        let (outcome, state, code) = match answer {
            Finished::LeaseLost => (Outcome::LeaseLost, None, None),
            Finished::Unwritten(_) => (Outcome::Unwritten, None, None),
            Finished::Written { state, run_at, code } => {
                let outcome = match memo.outcome {
                    Outcome::Failed if run_at.is_some() => Outcome::Retried,
                    // A person had asked to stop it, and the attempt had not heard of that.
                    _ if *code == Some(ErrorCode::Stopped) => Outcome::Failed,
                    // The database refused what came of it.
                    Outcome::Done if code.is_some() => Outcome::Failed,
                    outcome => outcome,
                };
                (outcome, Some(*state), *code)
            }
        };
        tally.add(memo, outcome, state.zip(Some(code.map_or("", ErrorCode::as_str))));
        let is_news = !memo.is_brisk || memo.took.is_some_and(|took| took >= SHORT);
        let is_trouble = matches!(outcome, Outcome::Failed | Outcome::Retried | Outcome::Postponed);
        if is_news || is_trouble && lines < LINES_MAX || state.is_none() {
            lines += usize::from(!is_news);
            tell(memo, outcome, answer);
        } else {
            left_out += usize::from(is_trouble);
            whisper(memo, outcome, answer);
        }
    }
    if left_out > 0 {
        tracing::info!("{left_out} more short attempts failed in the same moment; level debug tells each");
    }
    tally.count();
}

/// One line about how an attempt ended.
fn tell(memo: &Memo, outcome: Outcome, answer: &Finished) {
    let Memo { id, lane, attempt, kind, took, reason, .. } = memo;
    let (pipeline, duration_ms) = (lane.pipeline(), took.map(millis));
    match answer {
        Finished::LeaseLost => tracing::warn!(
            job.id = %id, job.pipeline = %pipeline, job.kind = kind, attempt, duration_ms,
            "job {id} was taken over by another worker; our result was dropped"
        ),
        Finished::Unwritten(reason) => tracing::error!(
            job.id = %id, job.pipeline = %pipeline, job.kind = kind, attempt, duration_ms, reason,
            "what became of job {id} cannot be written; its lease runs out"
        ),
        Finished::Written { state, run_at: Some(run_at), code } => tracing::info!(
            job.id = %id, job.pipeline = %pipeline, job.kind = kind, attempt, duration_ms,
            code = code.map(ErrorCode::as_str), reason,
            outcome = outcome.as_str(), state = state.as_str(), %run_at,
            "job {id} will be tried again"
        ),
        Finished::Written { state, run_at: None, code } => tracing::info!(
            job.id = %id, job.pipeline = %pipeline, job.kind = kind, attempt, duration_ms,
            code = code.map(ErrorCode::as_str), outcome = outcome.as_str(), state = state.as_str(),
            "job {id} is {state}"
        ),
    }
}

/// The same for those who listen closely.
fn whisper(memo: &Memo, outcome: Outcome, answer: &Finished) {
    let Memo { id, lane, attempt, kind, took, reason, .. } = memo;
    let Finished::Written { state, code, .. } = answer else { return };
    tracing::debug!(
        job.id = %id, job.pipeline = %lane.pipeline(), job.kind = kind, attempt,
        duration_ms = took.map(millis), code = code.map(ErrorCode::as_str), reason, outcome = outcome.as_str(),
        state = state.as_str(),
        "job {id} is {state}"
    );
}

fn millis(took: Duration) -> u64 {
    u64::try_from(took.as_millis()).unwrap_or(u64::MAX)
}

/// Counts of one batch, so that each family is locked once for what is alike.
#[derive(Default)]
struct Tally {
    durations: BTreeMap<(&'static str, Outcome), Vec<Duration>>,
    ended: BTreeMap<(&'static str, &'static str, &'static str), u64>,
    retries: BTreeMap<(&'static str, &'static str), u64>,
}

impl Tally {
    /// `written` is the state and the code that were, where something was.
    fn add(&mut self, memo: &Memo, outcome: Outcome, written: Option<(State, &'static str)>) {
        let pipeline = memo.lane.pipeline().as_str();
        if let Some(took) = memo.took {
            self.durations.entry((pipeline, outcome)).or_default().push(took);
        }
        let Some((state, code)) = written else { return };
        match outcome {
            Outcome::Done | Outcome::Failed => {
                *self.ended.entry((pipeline, state.as_str(), code)).or_default() += 1;
            }
            Outcome::Retried => *self.retries.entry((pipeline, code)).or_default() += 1,
            Outcome::Postponed | Outcome::HandedBack | Outcome::LeaseLost | Outcome::Unwritten => {}
        }
    }

    fn count(self) {
        for ((pipeline, outcome), took) in self.durations {
            DURATION.observe([pipeline.into(), outcome.as_str().into()], took);
        }
        for ((pipeline, state, code), count) in self.ended {
            ENDED.add([pipeline.into(), state.into(), code.into()], count);
        }
        for ((pipeline, code), count) in self.retries {
            RETRIES.add([pipeline.into(), code.into()], count);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lane_is_brisk_once_its_attempts_are_short_and_not_before() {
        let pace = Pace::default();
        assert!(!pace.is_brisk(), "nothing is known yet");
        pace.learn(Duration::from_micros(20));
        assert!(pace.is_brisk());
        (0..8).for_each(|_| pace.learn(Duration::from_millis(40)));
        assert!(!pace.is_brisk(), "conversions of 40 ms are worth a line");
        (0..40).for_each(|_| pace.learn(Duration::ZERO));
        assert!(pace.is_brisk());
    }
}
