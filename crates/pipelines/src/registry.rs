//! The one place that knows which pipelines there are.

use crate::html::HtmlHandler;
use crate::print::ExportHandler;
use crate::print::order::OrderHandler;
use crate::script::ScriptHandler;
use crate::xml::XmlHandler;
use ode_job::{Lane, Registry};

/// What the handlers are made of that the wiring decides.
#[derive(Clone)]
pub struct Handlers {
    /// PDF to XML.
    pub xml: XmlHandler,
    /// Frozen maps to PNGs.
    pub export: ExportHandler,
    /// PDF to HTML.
    pub html: HtmlHandler,
    /// Exported maps to orders, where there is a provider.
    pub order: Option<OrderHandler>,
    /// Scripts, where there are keys for their secrets.
    pub script: Option<ScriptHandler>,
}

/// Every handler that ships, by the lane it serves. Jobs of other lanes are accepted and wait.
pub fn registry(handlers: Handlers) -> Registry {
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
