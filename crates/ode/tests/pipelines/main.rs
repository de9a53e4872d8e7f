//! What holds for all pipelines together: their page, and that nothing below them names one.

#![expect(clippy::unwrap_used, reason = "in a test, a panic at the place is the report")]

mod layers;
mod state_machine_page;

use ode_job::Pipeline;
use std::sync::LazyLock;

/// The pipelines that come with ODE.
pub(crate) static PIPELINES: LazyLock<Vec<Pipeline>> =
    LazyLock::new(|| ode::PIPELINES.iter().map(|pipeline| pipeline.declaration().pipeline).collect());

#[test]
fn the_machines_can_be_declared_together() {
    let machines: Vec<_> = PIPELINES.iter().map(|pipeline| pipeline.machine()).collect();
    ode_job::machines::declare(&machines).unwrap();
}
