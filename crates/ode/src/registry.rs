//! The one place that knows which pipelines there are.

use ode_html::HtmlHandler;
use ode_job::Lane;
use ode_print::ExportHandler;
use ode_print::order::OrderHandler;
use ode_script::ScriptHandler;
use ode_worker::Registry;
use ode_xml::XmlHandler;

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
    /// Scripts, where there are keys for their secrets.
    pub(crate) script: Option<ScriptHandler>,
}

/// Every handler that ships, by the lane it serves. Jobs of other lanes are accepted and wait.
pub(crate) fn registry(handlers: Handlers) -> Registry {
    let mut registry = Registry::new()
        .with(Lane::Xml, handlers.xml)
        .with(Lane::Html, handlers.html)
        .with(Lane::PrintExport, handlers.export);
    if let Some(order) = handlers.order {
        registry = registry.with(Lane::PrintOrder, order);
    }
    if let Some(script) = handlers.script {
        registry = registry.with(Lane::Script, script);
    }
    registry
}
