//! Maps to print: the child process that draws them, the drawer that starts it, the handler of exports, orders, and
//! what is done about them by the clock.
//!
//! Drawing itself is `ode_atlas`. Nobody but the child reads a specification or GeoJSON that came from outside.

mod chores;
mod commands;
mod drawer;
mod drawing;
mod export;
pub mod machine;
pub mod order;
mod pages;
mod pipeline;
pub mod request;
mod routes;
mod setup;
pub mod sql;

pub use chores::reconcile;
pub use drawer::{Drawer, Drawn, Features, Frozen, Undrawn, pool_options};
pub use export::ExportHandler;
pub use pipeline::Print;
pub use routes::{ExportLinks, PrintSite};
pub use setup::{PrintfulArgs, SetupError, drawer};

use ode_store::{Declaration, Rules};

/// Maps belong to a session or a user, and an order that is tried again is within the limit of whoever pays.
pub static DECLARATION: Declaration = Declaration {
    migrations: &[ode_store::migration!("0001_print")],
    rules: Rules {
        renew: |tx, job| Box::pin(sql::caps::renew(tx, job)),
        adopt: |tx, session, user| Box::pin(sql::maps::adopt_maps(tx, session, user)),
        ..Rules::NONE
    },
    is_cancelled_in_sql: false,
    ..Declaration::new(machine::PRINT)
};
