//! Printful as one process sees it: behind a breaker, and paused when it does not know our token.

use super::printful::{Outcome, Printful};
use super::product::PrintArea;
use crate::sql::take_turn;
use jiff::{SignedDuration, Timestamp};
use ode_job::breaker::{self, Breaker, BreakerPolicy, Permit, Standing};
use ode_store::sql::Sql;
use ode_worker::Readiness;
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Under which name its turns are taken.
pub const PROVIDER: &str = "printful";
/// How much is asked of it, and when it counts as away.
#[derive(Debug, Clone, Copy)]
pub struct Pace {
    /// Calls a minute of all processes together.
    pub calls_a_minute: u32,
    /// When it counts as away.
    pub breaker: BreakerPolicy,
    /// After a refused token, one order is tried this much later.
    pub refused_pause: Duration,
}

impl Default for Pace {
    /// Printful allows 120 calls to a token; the rest is for people who use the same one.
    fn default() -> Self {
        Pace {
            calls_a_minute: 100,
            breaker: BreakerPolicy::FEW_CALLS,
            refused_pause: Duration::from_secs(60),
        }
    }
}

/// The client with what is known of how well it works.
#[derive(Debug)]
pub struct Provider {
    /// To call it.
    pub client: Printful,
    /// How much is asked of it.
    pub pace: Pace,
    breaker: Mutex<Breaker>,
    /// Since when our token is refused, and until when nobody tries.
    refused: Mutex<Option<(Timestamp, Timestamp)>>,
    /// What variants are printed from, and when that was asked.
    areas: Mutex<HashMap<i64, (PrintArea, Timestamp)>>,
}

/// A turn that comes sooner is waited for.
const TURN_WAIT_MAX: Duration = Duration::from_secs(5);
/// How often it is asked for before whoever wants to call makes room for others.
const TURNS_MAX: usize = 10;

/// Why a call may not be made now.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NoTurn {
    /// It may later.
    #[error("{why}")]
    NotNow {
        /// How much later.
        after: Duration,
        /// For the operator.
        why: &'static str,
    },
    /// The database could not be asked.
    #[error(transparent)]
    Store(#[from] ode_store::Error),
}

/// How long what a variant is printed from is taken to be the same.
const AREA_KEPT: SignedDuration = SignedDuration::from_hours(1);
/// Variants whose areas are kept.
const AREAS_MAX: usize = 1000;

impl Provider {
    /// A provider that nothing is known of.
    #[must_use]
    pub fn new(client: Printful, pace: Pace) -> Self {
        let breaker = Mutex::new(Breaker::new(pace.breaker));
        Provider { client, pace, breaker, refused: Mutex::default(), areas: Mutex::default() }
    }

    /// What a variant is printed from, if it was asked lately.
    pub(super) fn known_area(&self, variant_id: i64, now: Timestamp) -> Option<PrintArea> {
        let areas = self.areas.lock().unwrap_or_else(PoisonError::into_inner);
        areas.get(&variant_id).filter(|(_, at)| now.duration_since(*at) < AREA_KEPT).map(|(area, _)| *area)
    }

    pub(super) fn keep_area(&self, variant_id: i64, area: PrintArea, now: Timestamp) {
        let mut areas = self.areas.lock().unwrap_or_else(PoisonError::into_inner);
        if areas.len() >= AREAS_MAX {
            areas.clear();
        }
        areas.insert(variant_id, (area, now));
    }

    fn breaker(&self) -> MutexGuard<'_, Breaker> {
        self.breaker.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn refused(&self) -> MutexGuard<'_, Option<(Timestamp, Timestamp)>> {
        self.refused.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether orders may be tried.
    #[must_use]
    pub fn readiness(&self, now: Timestamp) -> Readiness {
        match *self.refused() {
            Some((since, until)) if now < until => return Readiness::Away { until, since },
            Some((since, _)) => return Readiness::Probe { since },
            None => {}
        }
        let breaker = self.breaker();
        let since = breaker.away_since().unwrap_or(now);
        match breaker.peek(now) {
            Permit::Go => Readiness::Ready,
            Permit::Probe => Readiness::Probe { since },
            Permit::Wait { until } => Readiness::Away { until, since },
        }
    }

    /// How it stands, for those who watch.
    #[must_use]
    pub fn standing(&self, now: Timestamp) -> Standing {
        let standing = self.breaker().standing(&format!("printful {}", self.client.address()), now);
        match *self.refused() {
            Some((since, until)) => {
                Standing { state: "open".into(), until: Some(until), away_since: Some(since), ..standing }
            }
            None => standing,
        }
    }

    /// Waits for a turn to call, which all processes share; not for long, and not while calls fail.
    pub(crate) async fn turn(&self, sql: Sql<'_>) -> Result<(), NoTurn> {
        if let Some(after) = self.wait(Timestamp::now()) {
            return Err(NoTurn::NotNow { after, why: "the provider fails too often" });
        }
        let not_now = |after| NoTurn::NotNow { after, why: "the rate limit" };
        let mut wait = Duration::ZERO;
        for _ in 0..TURNS_MAX {
            match take_turn(sql, PROVIDER, self.pace.calls_a_minute).await? {
                None => return Ok(()),
                Some(longer) if longer > TURN_WAIT_MAX => return Err(not_now(longer)),
                Some(shorter) => {
                    wait = shorter;
                    tokio::time::sleep(shorter).await;
                }
            }
        }
        Err(not_now(wait.max(TURN_WAIT_MAX)))
    }

    /// Makes a call when there is a turn for it, and remembers how it went.
    pub(crate) async fn call<T>(
        &self,
        sql: Sql<'_>,
        call: impl Future<Output = Outcome<T>>,
    ) -> Result<Outcome<T>, NoTurn> {
        self.turn(sql).await?;
        let outcome = call.await;
        self.learn(&outcome);
        Ok(outcome)
    }

    /// How long to wait before the next call, if one may not be made now.
    fn wait(&self, now: Timestamp) -> Option<Duration> {
        match self.breaker().permit(now) {
            Permit::Go | Permit::Probe => None,
            Permit::Wait { until } => Some(Duration::try_from(until.duration_since(now)).unwrap_or_default()),
        }
    }

    /// Remembers how a call went.
    pub fn learn<T>(&self, outcome: &Outcome<T>) {
        let now = Timestamp::now();
        let (is_well, is_refused) = match outcome {
            Outcome::Done(_) => (true, false),
            Outcome::Refused(refusal) => (true, refusal.is_unauthorised()),
            // Asking for patience is an answer; nobody being there is none.
            Outcome::NotExecuted { after, .. } => (after.is_some(), false),
            Outcome::Unknown { .. } => (false, false),
        };
        self.breaker()
            .record(now, if is_well { breaker::Outcome::Success } else { breaker::Outcome::Failure });
        let mut refused = self.refused();
        if is_refused {
            let since = refused.map_or(now, |(since, _)| since);
            if refused.is_none() {
                tracing::error!(
                    "Printful refuses our token: orders wait. Set one in ODE_PRINTFUL_TOKEN that is valid and may see and \
                     manage orders and read the catalogue, and restart."
                );
            }
            *refused = Some((since, now + self.pace.refused_pause));
        } else if is_well {
            *refused = None;
        }
    }
}
