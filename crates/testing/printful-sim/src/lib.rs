//! A Printful of one's own: the documented part of its API over real sockets, with a ledger of what it was made to do
//! and a switch for everything that is known to go wrong between it and a shop.
//!
//! It knows nothing of ODE. What it answers follows Printful's documentation: orders (v1), shipments and signed
//! webhooks (v2), both shapes of errors, external ids that are unique in the store, files that are fetched later, costs
//! that are known later, and a rate limit. What it must never do is forget: each order, confirmation and charge is a
//! line of the ledger, written before it is answered.

mod answer;
mod book;
mod catalog;
mod faults;
mod files;
mod hooks;
mod ledger;
mod rate;
mod routes;
mod sim;

pub use faults::{Fault, FaultKind, NotAFault, On};
pub use ledger::{Entry, LedgerLine};
pub use sim::{Options, Simulator, Switches};

/// What can keep a simulator from starting.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The ledger's file cannot be written.
    #[error("The ledger {path} cannot be written: {reason}. Choose another file with --ledger.")]
    Ledger {
        path: String,
        /// What the system says.
        reason: std::io::Error,
    },
    /// The system gives no random numbers or no sockets.
    #[error("The simulator cannot start: {0}.")]
    Unavailable(String),
}
