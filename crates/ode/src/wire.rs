//! What this program is made of: the pipelines that it knows.

use ode_job::machines::{self, DeclareError};
use ode_store::Rules;

/// Makes the pipelines known. To be called before any name is parsed.
pub(crate) fn declare() -> Result<(), DeclareError> {
    machines::declare(&[
        ode_xml::machine::XML.machine(),
        ode_html::machine::HTML.machine(),
        ode_print::machine::PRINT.machine(),
        ode_script::machine::SCRIPT.machine(),
    ])
}

/// What pipelines have a say in of the store.
pub(crate) fn rules() -> Vec<&'static Rules> {
    vec![&ode_script::RULES]
}
