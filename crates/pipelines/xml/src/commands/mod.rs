//! The pipeline's commands.

pub(crate) mod gateway;

use ode_pipeline::Command;

pub(super) fn commands() -> Vec<Command> {
    vec![Command::new("gateway", "Services", gateway::run).without_settings()]
}
