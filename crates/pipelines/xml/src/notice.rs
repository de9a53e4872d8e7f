//! What keeps documents from being converted at this moment, as the workers say.

use crate::machine::LANE;
use crate::remote::BREAKER_PREFIX;
use ode_job::WorkerRecord;

/// The sentence for people whose documents wait, where nobody converts them.
pub(crate) fn notice(workers: &[WorkerRecord]) -> Option<&'static str> {
    let is_away = |worker: &WorkerRecord| {
        let gateways =
            worker.about.breakers.iter().filter(|standing| standing.name.starts_with(BREAKER_PREFIX));
        let mut gateways = gateways.peekable();
        gateways.peek().is_some() && gateways.all(|gateway| gateway.away_since.is_some())
    };
    let mut there = workers.iter().filter(|worker| worker.serves(LANE)).peekable();
    if there.peek().is_none() {
        Some("Nothing is converted at the moment. Your files wait and go on by themselves.")
    } else if there.all(is_away) {
        Some("The converter is not answering. Your files wait and go on by themselves.")
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::{PROCESSING, QUEUED};
    use jiff::Timestamp;
    use ode_job::breaker;
    use ode_job::record::About;
    use ode_job::{Breaker, BreakerPolicy, Lane, Machine, Standing, WorkerId};

    /// A lane that is not ours.
    const OTHER: Lane = Lane::new(
        &Machine {
            name: "other",
            article: "An",
            initial: QUEUED,
            is_early_initial: false,
            states: &[Standing::ready(QUEUED, "other"), Standing::running(PROCESSING, "other")],
            edges: &[],
        },
        "other",
    );

    fn worker(slots: &[Lane], breakers: Vec<breaker::Standing>) -> WorkerRecord {
        let slots = slots.iter().map(|lane| (*lane, 3)).collect();
        WorkerRecord {
            id: WorkerId(uuid::Uuid::nil()),
            host: "here".into(),
            pid: 1,
            version: "0".into(),
            started_at: Timestamp::UNIX_EPOCH,
            beat_at: Timestamp::UNIX_EPOCH,
            running: 0,
            is_draining: false,
            is_alive: true,
            about: About { slots, breakers },
        }
    }

    fn standing(away_since: Option<Timestamp>) -> breaker::Standing {
        let standing =
            Breaker::new(BreakerPolicy::default()).standing("gateway http://there", Timestamp::UNIX_EPOCH);
        breaker::Standing { away_since, ..standing }
    }

    #[test]
    fn documents_are_converted_while_one_worker_reaches_one_gateway() {
        let (there, away) = (standing(None), standing(Some(Timestamp::UNIX_EPOCH)));
        let check = |workers: &[WorkerRecord], expected: Option<&str>| {
            let told = notice(workers);
            assert_eq!(told.map(|told| told.split('.').next().unwrap()), expected, "{workers:?}");
        };
        let (works, nobody) = (None, Some("Nothing is converted at the moment"));
        check(&[], nobody);
        check(&[worker(&[OTHER], vec![])], nobody);
        check(&[WorkerRecord { is_alive: false, ..worker(&[LANE], vec![]) }], nobody);
        check(&[worker(&[LANE], vec![])], works);
        check(&[worker(&[], vec![])], works);
        let cut_off = worker(&[LANE], vec![away.clone(), away.clone()]);
        check(std::slice::from_ref(&cut_off), Some("The converter is not answering"));
        check(&[worker(&[LANE], vec![away, there])], works);
        check(&[cut_off, worker(&[LANE], vec![])], works);
    }
}
