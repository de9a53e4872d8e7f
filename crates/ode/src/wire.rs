//! The pipelines of this program.

use ode_job::machines::DeclareError;
use ode_pipeline::{Codes, Command, Pipeline};
use ode_store::Publisher;
use std::sync::OnceLock;

/// The pipelines that ODE comes with, in the order in which lists show them. To add one is to add a line.
pub const PIPELINES: &[&dyn Pipeline] =
    &[&ode_xml::Xml, &ode_html::Html, &ode_print::Print, &ode_script::Scripts];

static PRESENT: OnceLock<Vec<&dyn Pipeline>> = OnceLock::new();

/// Makes these the pipelines of this program. To be called before any name is parsed.
pub(crate) fn declare(present: Vec<&'static dyn Pipeline>) -> Result<(), DeclareError> {
    let present = PRESENT.get_or_init(|| present);
    let declarations: Vec<_> = present.iter().map(|pipeline| pipeline.declaration()).collect();
    ode_store::declare(&declarations)
}

/// The pipelines of this program.
pub(crate) fn pipelines() -> &'static [&'static dyn Pipeline] {
    PRESENT.get().map_or(&[], Vec::as_slice)
}

/// The commands that are brought: those of the pipelines, and the trials.
pub(crate) fn commands() -> Vec<Command> {
    let brought = pipelines().iter().flat_map(|pipeline| pipeline.commands());
    brought.chain([ode_bench::command()]).collect()
}

/// The codes that pipelines have of their own.
pub(crate) fn codes() -> impl Iterator<Item = &'static Codes> + Send {
    pipelines().iter().filter_map(|pipeline| pipeline.codes())
}

/// The pipelines that put results outside our own storage.
pub(crate) fn publishers() -> Vec<Publisher> {
    pipelines().iter().filter_map(|pipeline| pipeline.publisher()).collect()
}
