//! The worker with real databases and, where it is about dying, with real processes.

#![expect(clippy::unwrap_used, reason = "in a test, a panic at the place is the report")]

mod audit;
mod behaviour;
mod child;
mod crashes;
mod harness;
