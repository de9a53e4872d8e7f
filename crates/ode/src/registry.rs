//! The one place that knows which pipelines there are.

use ode_html::{Html, HtmlHandler};
use ode_print::Print;
use ode_script::Scripts;
use ode_store::Rules;
use ode_worker::Registry;
use ode_xml::XmlHandler;
use std::sync::Arc;

/// What the handlers are made of that the wiring decides.
#[derive(Clone)]
pub(crate) struct Handlers {
    /// PDF to XML.
    pub(crate) xml: XmlHandler,
    /// Frozen maps to PNGs, and those to orders.
    pub(crate) print: Print,
    /// PDF to HTML.
    pub(crate) html: HtmlHandler,
    /// Scripts.
    pub(crate) scripts: Scripts,
}

/// Every handler that ships, by the lane it serves. Jobs of other lanes are accepted and wait.
pub(crate) fn registry(handlers: Handlers) -> Registry {
    let html = Html { handler: Some(handlers.html), ..Html::default() };
    ode_pipeline::registry(&[Arc::new(html), Arc::new(handlers.print), Arc::new(handlers.scripts)])
        .with(ode_xml::machine::LANE, handlers.xml)
}

/// What pipelines have a say in of the store.
pub(crate) fn rules() -> Vec<&'static Rules> {
    vec![&ode_script::RULES]
}
