//! Random lives.

use super::words::{Ask, Command, End, OWNERS, WORKERS};
use crate::machines::pipeline;
use proptest::prelude::*;

const COMMANDS: std::ops::RangeInclusive<usize> = 1..=60;

fn enqueue() -> impl Strategy<Value = Command> {
    let pipeline = prop::sample::select(pipeline::ALL);
    let rest = (-1..=1, 0..=2_u32, any::<bool>(), prop::bool::weighted(0.1));
    (pipeline, 0..OWNERS.len(), rest).prop_map(|(pipeline, owner, rest)| {
        let (priority, retries_max, advance, is_later) = rest;
        Command::Enqueue(Ask { pipeline, owner, priority, retries_max, advance, is_later })
    })
}

fn command() -> impl Strategy<Value = Command> {
    const ENDS: &[End] = &[
        End::Succeeded,
        End::Succeeded,
        End::Rejected,
        End::Broken,
        End::Broken,
        End::TimedOut,
        End::Stopped,
        End::HandedBack,
        End::Away,
    ];
    let end = || prop::sample::select(ENDS);
    let pick = || 0..210_usize;
    let claim = (pick(), 0..WORKERS, 1..=3_usize).prop_map(|(pick, worker, count)| Command::Claim {
        pick,
        worker,
        count,
    });
    let finish = (pick(), end(), prop::bool::weighted(0.8))
        .prop_map(|(pick, end, is_soon)| Command::Finish { pick, end, is_soon });
    let late = (pick(), end()).prop_map(|(pick, end)| Command::FinishLate { pick, end });
    prop_oneof![
        5 => enqueue(),
        12 => claim,
        9 => finish,
        2 => late,
        2 => pick().prop_map(Command::Cancel),
        4 => pick().prop_map(Command::Retry),
        2 => pick().prop_map(Command::Stop),
        2 => pick().prop_map(Command::Advance),
        1 => pick().prop_map(Command::Deliver),
        1 => pick().prop_map(Command::GiveUp),
        2 => (0..WORKERS).prop_map(Command::Lose),
        1 => (0..WORKERS).prop_map(Command::Forget),
        1 => (0..WORKERS).prop_map(Command::Held),
        3 => Just(Command::Promote),
    ]
}

/// A few jobs, and then what becomes of them.
pub(super) fn life() -> impl Strategy<Value = Vec<Command>> {
    let commands = prop::collection::vec(command(), COMMANDS);
    (prop::collection::vec(enqueue(), 1..=6), commands).prop_map(|(jobs, commands)| [jobs, commands].concat())
}
