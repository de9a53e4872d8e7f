//! What holds for all pipelines together: their page, and that nothing below them names one.

#![expect(clippy::unwrap_used, reason = "in a test, a panic at the place is the report")]

mod layers;
mod state_machine_page;

use ode_job::Pipeline;

/// The pipelines that come with ODE.
pub(crate) const PIPELINES: [Pipeline; 4] =
    [ode_xml::machine::XML, ode_html::machine::HTML, ode_print::machine::PRINT, ode_script::machine::SCRIPT];

#[test]
fn the_machines_can_be_declared_together() {
    let machines = PIPELINES.map(|pipeline| pipeline.machine());
    ode_job::machines::declare(&machines).unwrap();
}
