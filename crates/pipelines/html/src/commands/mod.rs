//! The pipeline's commands, and its part of `ode convert`.

mod client;
mod convert;

pub use convert::{ConvertArgs, page, write};

use ode_pipeline::Command;

pub(super) fn commands() -> Vec<Command> {
    vec![Command::new("client", "Documents", client::run).without_settings()]
}
