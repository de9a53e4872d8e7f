//! How an attempt ends: from what happened to the steps the job takes, and whether it is tried again.

use crate::machine::{Pipeline, Refused};
use crate::state::{Event, State};
use crate::{ErrorCode, Failure, FailureKind, RetryPolicy};
use jiff::Timestamp;

/// A job that took this many workers down with it is set aside: the fault is likelier in the job than in them.
pub const CRASHES_MAX: u32 = 3;

/// What must be known of an attempt to decide how it ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Attempt {
    /// Whose machine applies.
    pub pipeline: Pipeline,
    /// Where the job stands; a running state.
    pub state: State,
    /// Retries used before this attempt.
    pub retries: u32,
    /// Retries it may use.
    pub retries_max: u32,
    /// Workers lost on it before this attempt ended.
    pub crashes: u32,
}

/// How the attempt ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ended {
    /// It worked.
    Succeeded,
    /// It did not.
    Failed(Failure),
    /// It ran out of time.
    TimedOut(Failure),
    /// A person ended it.
    Stopped,
    /// Its worker hands it back while shutting down; the try does not count.
    HandedBack,
    /// Its worker was lost; the try counts.
    Lost,
}

/// One step of the machine, already found legal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Step {
    pub event: Event,
    /// Before.
    pub from: State,
    /// After.
    pub to: State,
}

/// Where the steps leave the job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It has ended.
    End,
    /// It goes on to a state that is neither ended nor a new try: the next stage, or a wait for news from outside.
    GoOn,
    /// It is tried again, not before then.
    Again {
        run_at: Timestamp,
        /// The kind of try this attempt used up.
        spent: Spent,
    },
}

/// What an attempt that leads to another one has used up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Spent {
    /// One of its retries.
    Retry,
    /// One of the workers it may take down.
    Crash,
    /// Not even the try itself: it was handed back.
    HandedBack,
    /// Not even the try itself: it waits for something that is away.
    Postponed,
    /// Nothing: it only waited for its moment.
    Nothing,
}

/// The decision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settled {
    /// The steps, in order; each becomes an event.
    pub steps: Vec<Step>,
    /// The state after the last of them.
    pub state: State,
    /// What becomes of the job.
    pub verdict: Verdict,
    /// Why it failed, where it did.
    pub failure: Option<Failure>,
}

/// Decides how an attempt ends. Pure: the same arguments always give the same answer.
pub fn settle(
    attempt: Attempt,
    ended: Ended,
    policy: &RetryPolicy,
    now: Timestamp,
    jitter: f64,
) -> Result<Settled, Refused> {
    let mut walk = Walk { pipeline: attempt.pipeline, state: attempt.state, steps: Vec::new() };
    match ended {
        Ended::Succeeded => {
            walk.step(Event::Succeeded)?;
            let verdict = if attempt.pipeline.is_terminal(walk.state) { Verdict::End } else { Verdict::GoOn };
            Ok(walk.settled(verdict, None))
        }
        Ended::HandedBack => {
            walk.step(Event::Released)?;
            Ok(walk.settled(Verdict::Again { run_at: now, spent: Spent::HandedBack }, None))
        }
        Ended::Lost if attempt.crashes + 1 < CRASHES_MAX || !may_be_set_aside(attempt) => {
            walk.step(Event::Rescued)?;
            Ok(walk.settled(Verdict::Again { run_at: now, spent: Spent::Crash }, None))
        }
        Ended::Lost => fail(walk, Event::Failed, poison()),
        Ended::Stopped => {
            fail(walk, Event::Stopped, Failure::rejected(ErrorCode::Stopped, ErrorCode::Stopped.sentence()))
        }
        Ended::TimedOut(failure) => {
            walk.step(Event::TimedOut)?;
            let next = next_try(attempt, &failure, policy, now, jitter);
            Ok(fail_or_retry(walk, failure, next))
        }
        Ended::Failed(failure) => {
            if let FailureKind::Away { after } = failure.kind {
                walk.step(Event::Released)?;
                let run_at = now.checked_add(after).unwrap_or(Timestamp::MAX);
                return Ok(walk.settled(Verdict::Again { run_at, spent: Spent::Postponed }, Some(failure)));
            }
            walk.step(Event::Failed)?;
            let next = next_try(attempt, &failure, policy, now, jitter);
            Ok(fail_or_retry(walk, failure, next))
        }
    }
}

/// Whether a job may be given up for the number of workers it took down. What cannot be undone may have happened, an
/// order may have been paid for: setting it aside would leave an order that nobody knows of, so it is looked up for as
/// long as it takes.
fn may_be_set_aside(attempt: Attempt) -> bool {
    !attempt.pipeline.is_irreversible(attempt.state)
}

fn poison() -> Failure {
    Failure::rejected(ErrorCode::Poison, ErrorCode::Poison.sentence())
}

fn fail(mut walk: Walk, event: Event, failure: Failure) -> Result<Settled, Refused> {
    walk.step(event)?;
    Ok(walk.settled(Verdict::End, Some(failure)))
}

/// When the policy allows another try, if it does.
fn next_try(
    attempt: Attempt,
    failure: &Failure,
    policy: &RetryPolicy,
    now: Timestamp,
    jitter: f64,
) -> Option<Timestamp> {
    let FailureKind::Retryable { after } = failure.kind else { return None };
    let base = failure.pace.unwrap_or(policy.base);
    // Jitter spreads retries out; it must not make a short wait a long one.
    let jitter_max = policy.jitter_max.min(base);
    let policy = RetryPolicy { base, jitter_max, retries_max: attempt.retries_max, ..*policy };
    let planned = policy.next(attempt.retries, now, jitter)?;
    // The other side may know better than the policy when it will be back, but not that it will be sooner.
    let asked = after.and_then(|after| now.checked_add(after).ok());
    Some(asked.map_or(planned, |asked| asked.max(planned)))
}

fn fail_or_retry(mut walk: Walk, failure: Failure, next: Option<Timestamp>) -> Settled {
    let Some(run_at) = next else { return walk.settled(Verdict::End, Some(failure.given_up())) };
    // Not every state has a way back: the machine, not the policy, has the last word.
    if walk.step(Event::Retried).is_err() {
        return walk.settled(Verdict::End, Some(failure.given_up()));
    }
    walk.settled(Verdict::Again { run_at, spent: Spent::Retry }, Some(failure))
}

struct Walk {
    pipeline: Pipeline,
    state: State,
    steps: Vec<Step>,
}

impl Walk {
    fn step(&mut self, event: Event) -> Result<(), Refused> {
        let to = self.pipeline.next(self.state, event)?;
        self.steps.push(Step { event, from: self.state, to });
        self.state = to;
        Ok(())
    }

    fn settled(self, verdict: Verdict, failure: Option<Failure>) -> Settled {
        Settled { state: self.state, steps: self.steps, verdict, failure }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::tests::*;
    use std::time::Duration;

    const NOW: Timestamp = Timestamp::UNIX_EPOCH;

    fn attempt(pipeline: Pipeline, state: State) -> Attempt {
        Attempt { pipeline, state, retries: 0, retries_max: 3, crashes: 0 }
    }

    fn settled(attempt: Attempt, ended: Ended) -> Settled {
        settle(attempt, ended, &RetryPolicy::default(), NOW, 0.0).unwrap()
    }

    fn broken() -> Failure {
        Failure::retryable(ErrorCode::Gw5xx, "no answer")
    }

    #[test]
    fn success_ends_a_job_or_moves_it_to_its_next_stage() {
        let plain = settled(attempt(PLAIN, WORKING), Ended::Succeeded);
        assert_eq!((plain.state, plain.verdict), (MADE, Verdict::End));
        let staged = settled(attempt(STAGED, WORKING), Ended::Succeeded);
        assert_eq!((staged.state, staged.verdict), (MADE, Verdict::GoOn));
    }

    #[test]
    fn a_retryable_failure_passes_through_failed_and_waits() {
        let settled = settled(attempt(PLAIN, WORKING), Ended::Failed(broken()));
        let events: Vec<_> = settled.steps.iter().map(|step| (step.event, step.to)).collect();
        assert_eq!(events, [(Event::Failed, BROKEN), (Event::Retried, WAITING)]);
        let run_at = NOW + Duration::from_secs(5);
        assert_eq!(settled.verdict, Verdict::Again { run_at, spent: Spent::Retry });
    }

    #[test]
    fn a_job_whose_converter_is_away_waits_and_has_used_nothing_up() {
        let away = Failure::away(ErrorCode::Gw5xx, "away", Duration::from_secs(30));
        let attempt = Attempt { retries: 3, ..attempt(PLAIN, WORKING) };
        let settled = settled(attempt, Ended::Failed(away));
        let events: Vec<_> = settled.steps.iter().map(|step| (step.event, step.to)).collect();
        assert_eq!(events, [(Event::Released, WAITING)]);
        let run_at = NOW + Duration::from_secs(30);
        assert_eq!(settled.verdict, Verdict::Again { run_at, spent: Spent::Postponed });
    }

    #[test]
    fn spent_retries_and_permanent_errors_end_the_job() {
        let spent = Attempt { retries: 3, ..attempt(PLAIN, WORKING) };
        assert_eq!(settled(spent, Ended::Failed(broken())).verdict, Verdict::End);
        let rejected = Failure::rejected(ErrorCode::NotPdf, "not a PDF");
        assert_eq!(settled(attempt(PLAIN, WORKING), Ended::Failed(rejected)).verdict, Verdict::End);
    }

    #[test]
    fn a_job_that_failed_for_good_promises_no_retry() {
        let message = |retries| {
            let attempt = Attempt { retries, ..attempt(PLAIN, WORKING) };
            settled(attempt, Ended::Failed(ErrorCode::Gw5xx.into())).failure.map(|failure| failure.message)
        };
        assert_eq!(message(2).as_deref(), Some("Converter is having an issue. We'll retry"));
        assert_eq!(message(3).as_deref(), Some("Converter is having an issue. Retry it later"));
    }

    #[test]
    fn a_job_with_no_way_back_from_running_out_of_time_ends_there() {
        let late = Failure::retryable(ErrorCode::TimedOut, "too long");
        let settled = settled(attempt(PLAIN, WORKING), Ended::TimedOut(late));
        assert_eq!((settled.state, settled.verdict), (LATE, Verdict::End));
    }

    #[test]
    fn the_third_lost_worker_sets_the_job_aside() {
        let lost = |crashes| settled(Attempt { crashes, ..attempt(PLAIN, WORKING) }, Ended::Lost);
        assert_eq!(lost(0).verdict, Verdict::Again { run_at: NOW, spent: Spent::Crash });
        assert_eq!(lost(1).state, WAITING);
        assert_eq!(lost(2).verdict, Verdict::End);
        assert_eq!(lost(2).failure.unwrap().code, ErrorCode::Poison);
    }

    #[test]
    fn what_cannot_be_undone_is_looked_up_however_many_workers_were_lost_on_it() {
        let sending = attempt(STAGED, SENDING);
        for crashes in [0, 2, 100] {
            let lost = settled(Attempt { crashes, ..sending }, Ended::Lost);
            assert_eq!(lost.state, MADE);
            assert_eq!(lost.verdict, Verdict::Again { run_at: NOW, spent: Spent::Crash });
        }
    }

    #[test]
    fn a_job_that_is_not_running_cannot_end_an_attempt() {
        let refused = settle(attempt(PLAIN, WAITING), Ended::Succeeded, &RetryPolicy::default(), NOW, 0.0);
        assert!(refused.is_err());
    }

    #[test]
    fn the_other_side_may_ask_for_more_patience_but_not_less() {
        let mut asked = broken();
        asked.kind = FailureKind::Retryable { after: Some(Duration::from_secs(60)) };
        let late = settled(attempt(PLAIN, WORKING), Ended::Failed(asked.clone()));
        assert!(
            matches!(late.verdict, Verdict::Again { run_at, .. } if run_at == NOW + Duration::from_secs(60))
        );
        asked.kind = FailureKind::Retryable { after: Some(Duration::ZERO) };
        let soon = settled(attempt(PLAIN, WORKING), Ended::Failed(asked));
        assert!(
            matches!(soon.verdict, Verdict::Again { run_at, .. } if run_at == NOW + Duration::from_secs(5))
        );
    }

    #[test]
    fn work_is_tried_again_at_its_own_pace_where_it_has_one() {
        let check = |seconds: u64, retries: u32, expected: std::ops::RangeInclusive<u64>| {
            let attempt = Attempt { retries, ..attempt(PLAIN, WORKING) };
            let failed = Ended::Failed(broken().paced(Duration::from_secs(seconds)));
            for (jitter, expected) in [(0.0, expected.start()), (1.0, expected.end())] {
                let settled = settle(attempt, failed.clone(), &RetryPolicy::default(), NOW, jitter).unwrap();
                let at = NOW + Duration::from_secs(*expected);
                assert!(
                    matches!(settled.verdict, Verdict::Again { run_at, .. } if run_at == at),
                    "{seconds} s, {retries}: {settled:?}"
                );
            }
        };
        check(0, 2, 0..=0);
        check(1, 0, 1..=2);
        check(1, 1, 2..=3);
        check(60, 0, 60..=65);
    }
}
