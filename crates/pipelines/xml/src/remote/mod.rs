//! Gateways elsewhere, in the order in which they are preferred, each behind a breaker of its own.
//!
//! The first that may be called is called. One that is away is left alone until a probe is due; a job whose probe fails
//! goes on to the next gateway, and waits unburned if there is none.

mod client;

pub use client::{Call, ClientLimits, GatewayAddressError, GatewayClient, Processed};

use crate::conversion::ask::Output;
use bytes::Bytes;
use jiff::Timestamp;
use ode_job::breaker::{Breaker, BreakerPolicy, Outcome, Permit, Standing};
use ode_metrics::{Family, Histogram};
use ode_worker::Readiness;
use std::sync::{Mutex, MutexGuard};
use std::time::Instant;

/// How the names of gateways' breakers begin.
pub(crate) const BREAKER_PREFIX: &str = "gateway ";
/// Upper ends of the buckets, in seconds: from a warm one-page invoice to the longest that a call may take.
const BUCKETS: [f64; 10] = [0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 15.0, 60.0, 180.0];

static CALLS: Histogram<2> = Histogram::new(
    "ode_gateway_call_duration_seconds",
    "How long calls to gateways elsewhere took, by status; none where there was no answer.",
    ["gateway", "status"],
    &BUCKETS,
);

/// What calls to gateways elsewhere count.
pub static METRICS: [&dyn Family; 1] = [&CALLS];

/// All gateways that may be called.
#[derive(Debug)]
pub struct Gateways {
    gateways: Vec<Gateway>,
    policy: BreakerPolicy,
}

#[derive(Debug)]
struct Gateway {
    client: GatewayClient,
    address: String,
    breaker: Mutex<Breaker>,
}

impl Gateway {
    fn breaker(&self) -> MutexGuard<'_, Breaker> {
        self.breaker.lock().expect("no code panics while holding this lock")
    }
}

impl Gateway {
    /// Tells the operator that it went away, or came back.
    fn tell(&self, was_away: bool, is_away: bool, call: &Call) {
        let address = &self.address;
        match (was_away, is_away) {
            (false, true) => {
                let failure = call.outcome.as_ref().err();
                let reason = failure.and_then(|failure| failure.detail.as_deref()).unwrap_or_default();
                tracing::warn!(gateway = %address, http_status = call.status, %reason,
                    "the gateway {address} is away: jobs wait or go to the next one ({reason})");
            }
            (true, false) => tracing::warn!(gateway = %address, "the gateway {address} is back"),
            (false, false) | (true, true) => {}
        }
    }
}

/// A gateway that may be called now.
pub(crate) struct Chosen<'a> {
    gateway: &'a Gateway,
    is_probe: bool,
}

/// One call and where it went.
pub(crate) struct Called {
    pub(crate) address: String,
    /// Whether it was to see if the gateway is back.
    pub(crate) is_probe: bool,
    pub(crate) call: Call,
}

impl Gateways {
    /// These gateways, the preferred one first.
    #[must_use]
    pub fn new(clients: impl IntoIterator<Item = GatewayClient>, policy: BreakerPolicy) -> Self {
        let gateway = |client: GatewayClient| Gateway {
            address: client.address(),
            client,
            breaker: Mutex::new(Breaker::new(policy)),
        };
        Gateways { gateways: clients.into_iter().map(gateway).collect(), policy }
    }

    pub(crate) fn policy(&self) -> BreakerPolicy {
        self.policy
    }

    /// Whether any of them may be called.
    pub(crate) fn readiness(&self, now: Timestamp) -> Readiness {
        let permits: Vec<Permit> = self.gateways.iter().map(|gateway| gateway.breaker().peek(now)).collect();
        if permits.contains(&Permit::Go) {
            return Readiness::Ready;
        }
        // All of them are away; since the last one that was there has been.
        let since = self.gateways.iter().filter_map(|gateway| gateway.breaker().away_since()).max();
        let since = since.unwrap_or(now);
        if permits.contains(&Permit::Probe) {
            return Readiness::Probe { since };
        }
        let waits = permits.iter().filter_map(|permit| match permit {
            Permit::Wait { until } => Some(*until),
            Permit::Go | Permit::Probe => None,
        });
        Readiness::Away { until: waits.min().unwrap_or(now), since }
    }

    pub(crate) fn standings(&self, now: Timestamp) -> Vec<Standing> {
        let standing = |gateway: &Gateway| {
            gateway.breaker().standing(&format!("{BREAKER_PREFIX}{}", gateway.address), now)
        };
        self.gateways.iter().map(standing).collect()
    }

    /// Those that may be called now, in order: whoever takes the next one calls it.
    pub(crate) fn choices(&self) -> impl Iterator<Item = Chosen<'_>> {
        self.gateways.iter().filter_map(|gateway| match gateway.breaker().permit(Timestamp::now()) {
            Permit::Go => Some(Chosen { gateway, is_probe: false }),
            Permit::Probe => Some(Chosen { gateway, is_probe: true }),
            Permit::Wait { .. } => None,
        })
    }
}

impl Chosen<'_> {
    /// Calls it, and remembers how that went.
    pub(crate) async fn process(self, document: Bytes, mapping: &str, output: Option<Output>) -> Called {
        let began = Instant::now();
        let call = self.gateway.client.process(document, mapping, output).await;
        let status = call.status.map_or("none".into(), |status| status.to_string().into());
        CALLS.observe([self.gateway.address.clone().into(), status], [began.elapsed()]);
        let outcome = if call.is_answered() { Outcome::Success } else { Outcome::Failure };
        let (was_away, is_away) = {
            let (now, mut breaker) = (Timestamp::now(), self.gateway.breaker());
            let was_away = breaker.away_since().is_some();
            breaker.record(now, outcome);
            (was_away, breaker.away_since().is_some())
        };
        self.gateway.tell(was_away, is_away, &call);
        Called { address: self.gateway.address.clone(), is_probe: self.is_probe, call }
    }
}
