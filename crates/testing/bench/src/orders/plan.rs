//! What goes wrong with each order, by number: a seed and a number are the same plan again.

use ode_printful_sim::{Fault, FaultKind, On};
use std::time::Duration;

/// Where a worker dies.
const POINTS: [&str; 13] = [
    "after-claim",
    "before-run",
    "order-frozen",
    "order-before-intent",
    "order-intent",
    "order-answered",
    "order-recorded",
    "order-confirm-intent",
    "order-confirmed",
    "order-placed",
    "after-run",
    "before-finish",
    "after-finish",
];

/// What goes wrong with a call and passes.
const CALL_FAULTS: [FaultKind; 17] = [
    FaultKind::Lost,
    FaultKind::Hang,
    FaultKind::ResetBefore,
    FaultKind::ResetAfter,
    FaultKind::Truncated,
    FaultKind::Garbage,
    FaultKind::Html502,
    FaultKind::Html502Before,
    FaultKind::WrongType,
    FaultKind::ErrorIn200,
    FaultKind::TooMany,
    FaultKind::TooManyBare,
    FaultKind::Expired419,
    FaultKind::Error500Before,
    FaultKind::Error500After,
    FaultKind::Late,
    FaultKind::Twice,
];

/// What goes wrong with an order and passes.
const ORDER_FAULTS: [FaultKind; 5] =
    [FaultKind::Stale, FaultKind::BackToDraft, FaultKind::Fails, FaultKind::Waiting, FaultKind::Unauthorized];

/// Something that happens to an order on its way.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Trouble {
    /// Its worker dies at a named point.
    KilledAt(&'static str),
    /// Its worker dies after so long.
    KilledAfter(Duration),
    /// Its worker sleeps past its lease, while another takes over.
    Asleep,
    /// The provider, or the way to it, misbehaves.
    Provider(FaultKind, On),
}

impl Trouble {
    /// Every single one.
    fn all() -> Vec<Trouble> {
        let mut all: Vec<Trouble> = POINTS.iter().map(|point| Trouble::KilledAt(point)).collect();
        all.extend([20, 60, 150].map(|ms| Trouble::KilledAfter(Duration::from_millis(ms))));
        all.push(Trouble::Asleep);
        for on in [On::Create, On::Confirm, On::Read] {
            all.extend(CALL_FAULTS.map(|kind| Trouble::Provider(kind, on)));
        }
        all.extend(ORDER_FAULTS.map(|kind| Trouble::Provider(kind, Fault::new(kind).on)));
        all
    }

    pub(super) fn name(&self) -> String {
        match self {
            Trouble::KilledAt(point) => format!("kill@{point}"),
            Trouble::KilledAfter(after) => format!("kill@{}ms", after.as_millis()),
            Trouble::Asleep => "asleep".into(),
            Trouble::Provider(kind, on) => format!("{kind}:{on}"),
        }
    }

    pub(super) fn is_of_the_worker(&self) -> bool {
        !matches!(self, Trouble::Provider(..))
    }
}

/// What happens to one order, one after the other.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Plan(pub(super) Vec<Trouble>);

impl Plan {
    pub(super) fn name(&self) -> String {
        self.0.iter().map(Trouble::name).collect::<Vec<_>>().join(" + ")
    }

    /// What happens to its workers. Orders share workers, so those with the same troubles go together.
    pub(super) fn of_workers(&self) -> Vec<&Trouble> {
        self.0.iter().filter(|trouble| trouble.is_of_the_worker()).collect()
    }

    /// What the provider does wrong before the trouble of workers with this number, and after the one before it.
    pub(super) fn of_provider(&self, stage: usize) -> Vec<(FaultKind, On)> {
        let mut stages = self.0.split(Trouble::is_of_the_worker);
        let faults = stages.nth(stage).unwrap_or_default().iter();
        faults
            .filter_map(|trouble| match trouble {
                Trouble::Provider(kind, on) => Some((*kind, *on)),
                Trouble::KilledAt(_) | Trouble::KilledAfter(_) | Trouble::Asleep => None,
            })
            .collect()
    }
}

/// All plans of a seed, by number: every trouble alone, every ordered pair, and then so many by chance.
pub(super) struct Plans {
    all: Vec<Trouble>,
    seed: u64,
    faults: usize,
}

impl Plans {
    pub(super) fn new(seed: u64, faults: usize) -> Self {
        Plans { all: Trouble::all(), seed, faults: faults.max(1) }
    }

    /// How many are not left to chance: single ones and pairs.
    pub(super) fn systematic(&self) -> usize {
        if self.faults < 2 { self.all.len() } else { self.all.len() * (self.all.len() + 1) }
    }

    pub(super) fn plan(&self, number: usize) -> Plan {
        if let Some(one) = self.all.get(number) {
            return Plan(vec![one.clone()]);
        }
        let (pair, count) = (number - self.all.len(), self.all.len());
        if number < self.systematic() {
            // A walk through all pairs, in steps that share no factor with their number, so that a part of it has
            // some of every kind.
            let place = (pair * STRIDE + self.seed as usize % (count * count)) % (count * count);
            return Plan(vec![self.all[place / count].clone(), self.all[place % count].clone()]);
        }
        let mut dice = Dice(self.seed ^ (number as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15));
        dice.roll(1);
        Plan((0..self.faults).map(|_| self.all[dice.roll(count)].clone()).collect())
    }
}

/// A prime that does not divide the number of pairs.
const STRIDE: usize = 7919;

/// Chance that can be repeated.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        // The constants are Knuth's; nothing depends on their quality.
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from((self.0 >> 33) % sides.max(1) as u64).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn every_trouble_alone_and_every_ordered_pair_has_a_number() {
        let plans = Plans::new(7, 3);
        let names: HashSet<String> =
            (0..plans.systematic()).map(|number| plans.plan(number).name()).collect();
        let count = plans.all.len();
        assert_eq!(names.len(), count + count * count);
        let beyond = plans.plan(plans.systematic() + 5);
        assert_eq!((beyond.0.len(), &beyond), (3, &Plans::new(7, 3).plan(plans.systematic() + 5)));
    }

    #[test]
    fn faults_of_the_provider_come_before_or_after_those_of_workers() {
        let net = |on| Trouble::Provider(FaultKind::Hang, on);
        let plan = Plan(vec![net(On::Create), Trouble::Asleep, net(On::Confirm)]);
        assert_eq!(plan.of_provider(0), [(FaultKind::Hang, On::Create)]);
        assert_eq!(plan.of_provider(1), [(FaultKind::Hang, On::Confirm)]);
        assert_eq!(plan.of_provider(2), []);
        assert_eq!(plan.of_workers(), [&Trouble::Asleep]);
    }
}
