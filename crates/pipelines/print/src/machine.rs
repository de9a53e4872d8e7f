//! The print pipeline's machine: its states, the steps between them, its lanes.

use ode_job::{Edge, Event, Lane, Machine, Pipeline, Standing, State};

/// A frozen map to a print-ready PNG, then to one order.
pub const PRINT: Pipeline = Pipeline::new(MACHINE);

/// Maps to be rendered.
pub const EXPORT: Lane = Lane::new(MACHINE, "print.export");

/// Rendered maps to be ordered.
pub const ORDER: Lane = Lane::new(MACHINE, "print.order");

/// Waits for its PNG.
pub const PENDING_EXPORT: State = State::new("pending_export");
/// A worker renders the PNG.
pub const EXPORTING: State = State::new("exporting");
/// The PNG could not be rendered.
pub const EXPORT_FAILED: State = State::new("export_failed");
/// The PNG is there.
pub const EXPORT_COMPLETE: State = State::new("export_complete");
/// A worker places the order.
pub const ORDERING: State = State::new("ordering");
/// The order could not be placed.
pub const ORDER_FAILED: State = State::new("order_failed");
/// The provider has the order, under a recorded id.
pub const ORDERED: State = State::new("ordered");
/// The provider confirmed delivery.
pub const FULFILLED: State = State::new("fulfilled");

const MACHINE: &Machine = &Machine {
    name: "print",
    article: "A",
    initial: PENDING_EXPORT,
    is_early_initial: false,
    states: &[
        Standing::ready(PENDING_EXPORT, "print.export"),
        Standing::running(EXPORTING, "print.export"),
        Standing::failed(EXPORT_FAILED),
        // Rests here until an order is asked for: only `Advanced` puts it in line for the second stage.
        Standing::ready(EXPORT_COMPLETE, "print.order"),
        Standing::running(ORDERING, "print.order").irreversible(),
        Standing::failed(ORDER_FAILED),
        Standing::held(ORDERED),
        Standing::done(FULFILLED),
    ],
    edges: &[
        Edge::new(PENDING_EXPORT, Event::Started, EXPORTING),
        Edge::new(PENDING_EXPORT, Event::Failed, EXPORT_FAILED),
        Edge::new(PENDING_EXPORT, Event::Cancelled, EXPORT_FAILED),
        Edge::new(EXPORTING, Event::Succeeded, EXPORT_COMPLETE),
        Edge::new(EXPORTING, Event::Failed, EXPORT_FAILED),
        Edge::new(EXPORTING, Event::TimedOut, EXPORT_FAILED),
        Edge::new(EXPORTING, Event::Stopped, EXPORT_FAILED),
        Edge::new(EXPORTING, Event::Released, PENDING_EXPORT),
        Edge::new(EXPORTING, Event::Rescued, PENDING_EXPORT),
        Edge::new(EXPORT_FAILED, Event::Retried, PENDING_EXPORT),
        Edge::new(EXPORT_COMPLETE, Event::Advanced, EXPORT_COMPLETE),
        Edge::new(EXPORT_COMPLETE, Event::Started, ORDERING),
        Edge::new(ORDERING, Event::Succeeded, ORDERED),
        Edge::new(ORDERING, Event::Failed, ORDER_FAILED),
        Edge::new(ORDERING, Event::TimedOut, ORDER_FAILED),
        Edge::new(ORDERING, Event::Stopped, ORDER_FAILED),
        Edge::new(ORDERING, Event::Released, EXPORT_COMPLETE),
        Edge::new(ORDERING, Event::Rescued, EXPORT_COMPLETE),
        Edge::new(ORDER_FAILED, Event::Retried, EXPORT_COMPLETE),
        Edge::new(ORDERED, Event::Delivered, FULFILLED),
    ],
};

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::Timestamp;
    use ode_job::settle::Spent;
    use ode_job::{Attempt, Ended, RetryPolicy, Verdict, settle};

    #[test]
    fn the_machine_is_sound() {
        PRINT.machine().check().unwrap();
    }

    #[test]
    fn a_new_job_is_born_ready() {
        assert_eq!(PRINT.path_to_ready(), None);
    }

    #[test]
    fn an_order_is_looked_up_however_many_workers_were_lost_on_it() {
        let policy = RetryPolicy::default();
        for crashes in [0, 2, 100] {
            let ordering = Attempt { pipeline: PRINT, state: ORDERING, retries: 0, retries_max: 3, crashes };
            let lost = settle(ordering, Ended::Lost, &policy, Timestamp::UNIX_EPOCH, 0.0).unwrap();
            assert_eq!(lost.state, EXPORT_COMPLETE);
            assert!(matches!(lost.verdict, Verdict::Again { spent: Spent::Crash, .. }));
        }
    }
}
