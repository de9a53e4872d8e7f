//! Maps to print: the child process that draws them, the drawer that starts it, the handler of exports, orders, and
//! what is done about them by the clock.
//!
//! Drawing itself is `ode_atlas`. Nobody but the child reads a specification or GeoJSON that came from outside.

mod chores;
mod drawer;
mod drawing;
mod export;
pub mod machine;
pub mod order;
mod pages;
mod pipeline;
mod routes;
mod setup;

pub use chores::reconcile;
pub use drawer::{Drawer, Drawn, Features, Frozen, Undrawn, pool_options};
pub use export::ExportHandler;
pub use pipeline::Print;
pub use routes::{ExportLinks, PrintSite};
pub use setup::{PrintfulArgs, SetupError, drawer};

use ode_store::Declaration;

/// What the pipeline brings to the database.
pub static DECLARATION: Declaration =
    Declaration { migrations: &[ode_store::migration!("0001_print")], ..Declaration::new(machine::PRINT) };
