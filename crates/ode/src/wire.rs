//! What this program is made of: the pipelines that it knows.

use ode_job::machines::DeclareError;

/// Makes the pipelines known. To be called before any name is parsed.
pub(crate) fn declare() -> Result<(), DeclareError> {
    ode_store::declare(&[
        &ode_xml::DECLARATION,
        &ode_html::DECLARATION,
        &ode_print::DECLARATION,
        &ode_script::DECLARATION,
    ])
}
