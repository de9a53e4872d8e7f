//! The one place that knows which pipelines there are.

use ode_html::{Html, HtmlHandler};
use ode_print::ExportHandler;
use ode_print::order::OrderHandler;
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
    /// Frozen maps to PNGs.
    pub(crate) export: ExportHandler,
    /// PDF to HTML.
    pub(crate) html: HtmlHandler,
    /// Exported maps to orders, where there is a provider.
    pub(crate) order: Option<OrderHandler>,
    /// Scripts.
    pub(crate) scripts: Scripts,
}

/// Every handler that ships, by the lane it serves. Jobs of other lanes are accepted and wait.
pub(crate) fn registry(handlers: Handlers) -> Registry {
    let html = Html { handler: Some(handlers.html), ..Html::default() };
    let mut registry = ode_pipeline::registry(&[Arc::new(html), Arc::new(handlers.scripts)])
        .with(ode_xml::machine::LANE, handlers.xml)
        .with(ode_print::machine::EXPORT, handlers.export);
    if let Some(order) = handlers.order {
        registry = registry.with(ode_print::machine::ORDER, order);
    }
    registry
}

/// What pipelines have a say in of the store.
pub(crate) fn rules() -> Vec<&'static Rules> {
    vec![&ode_script::RULES]
}
