//! The machines of the pipelines that come with ODE, with one name for each thing.

pub(crate) mod pipeline {
    pub(crate) use ode_html::machine::HTML;
    pub(crate) use ode_print::machine::PRINT;
    pub(crate) use ode_script::machine::SCRIPT;
    pub(crate) use ode_xml::machine::XML;

    pub(crate) const ALL: &[ode_job::Pipeline] = &[XML, HTML, PRINT, SCRIPT];
}

pub(crate) mod state {
    pub(crate) use ode_html::machine::{COMPLETED, PENDING};
    pub(crate) use ode_print::machine::{
        EXPORT_COMPLETE, EXPORT_FAILED, FULFILLED, ORDER_FAILED, ORDERED, PENDING_EXPORT,
    };
    pub(crate) use ode_script::machine::{CANCELLED, IN_PROGRESS, TIMED_OUT};
    pub(crate) use ode_xml::machine::{COMPLETE, FAILED, PROCESSING, QUEUED, UPLOADED};
}

pub(crate) mod lane {
    pub(crate) use ode_html::machine::LANE as HTML;
    pub(crate) use ode_print::machine::{EXPORT as PRINT_EXPORT, ORDER as PRINT_ORDER};
    pub(crate) use ode_script::machine::LANE as SCRIPT;
    pub(crate) use ode_xml::machine::LANE as XML;

    pub(crate) const ALL: &[ode_job::Lane] = &[XML, HTML, PRINT_EXPORT, PRINT_ORDER, SCRIPT];
}

/// Makes them known to whatever parses names.
pub(crate) fn declare() {
    ode_store::declare(&[
        &ode_xml::DECLARATION,
        &ode_html::DECLARATION,
        &ode_print::DECLARATION,
        &ode_script::DECLARATION,
    ])
    .unwrap();
}
