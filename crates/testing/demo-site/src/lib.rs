//! A restaurant's admin site of one's own, for automations to work on: sign-up and sign-in, menu, tags, option sets, an
//! import of CSV files, theme, services, settings, API keys, and payments that are connected on a second origin.
//!
//! It knows nothing of ODE. It keeps everything in memory, says what it has stored at `/__state`, and has a switch at
//! `/__faults` for everything that is known to go wrong between a site and an automation.

mod csv;
mod faults;
mod fields;
mod imports;
mod pages;
mod prepared;
mod routes;
mod site;
mod visitor;
mod world;

pub use faults::{Fault, FaultKind};
pub use site::{Options, Owner, Site};

/// What can keep the site from starting.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The system gives no sockets.
    #[error("The demo site cannot start: {0}.")]
    Unavailable(#[from] std::io::Error),
}
