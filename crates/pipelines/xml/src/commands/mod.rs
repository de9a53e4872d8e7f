//! The pipeline's commands.

mod export;
pub(crate) mod findings;
pub(crate) mod gateway;
mod mapping;

use ode_pipeline::Command;

const HEADING: &str = "Documents";

pub(super) fn commands() -> Vec<Command> {
    vec![
        Command::new("mapping", HEADING, mapping::run).without_settings(),
        Command::new("export", HEADING, export::run),
        Command::new("gateway", "Services", gateway::run).without_settings(),
    ]
}
