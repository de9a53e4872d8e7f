//! The worker with real databases and, where it is about dying, with real processes.

mod audit;
mod behaviour;
mod child;
mod crashes;
mod harness;
mod servers;
