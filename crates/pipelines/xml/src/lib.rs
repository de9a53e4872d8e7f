//! The xml pipeline: what is asked for, the conversion itself, and the child process it runs in.
//!
//! The whole conversion is a function of bytes. Nobody calls it on a document from outside but the child, which
//! [`Converter`] starts for each one and [`serve`] is inside. [`XmlHandler`] is what the worker knows of it.
//!
//! A document with scans takes three steps: a child tells which pages are scans, a child each draws them and tesseract
//! reads them, a last child converts with what was read.

mod ask;
mod client;
mod conversion;
mod converter;
mod gateway;
mod gateways;
mod handler;
mod hocr;
mod kind;
mod live;
pub mod machine;
mod model;
mod ocr;
mod request;
mod scans;
#[cfg(test)]
mod stub;
mod study;

pub use ask::{Ask, Converted, Finding, Output, Places, Shadow, Summary, To};
pub use client::{Call, ClientLimits, GatewayAddressError, GatewayClient, Processed};
pub use conversion::serve;
pub use converter::{Converter, Options};
pub use gateway::{GatewayLimits, serve_gateway};
pub use gateways::{Gateways, METRICS};
pub use handler::{Route, XmlHandler};
pub use kind::job_kind;
pub use live::{LiveConverter, StartError};
pub use model::{Model, ModelError, ModelSettings};
pub use ocr::OcrOptions;
pub use study::{Differences, Study};

use ode_http::{JobKind, Routes};
use ode_job::Lane;
use ode_metrics::Family;
use ode_pipeline::Pipeline;
use ode_store::Declaration;
use ode_worker::Handler;
use std::sync::Arc;

/// What it brings to the database.
pub static DECLARATION: Declaration = Declaration::new(machine::XML);

/// The xml pipeline, ready for what this process does.
#[derive(Clone, Default)]
pub struct Xml {
    /// The handler, where this process works.
    pub handler: Option<XmlHandler>,
    /// How its jobs appear at the shared addresses, where this process serves them.
    pub kind: Option<JobKind>,
}

impl Pipeline for Xml {
    fn lanes(&self) -> Vec<(Lane, Arc<dyn Handler>)> {
        let handler = self.handler.clone().into_iter();
        handler.map(|handler| (machine::LANE, Arc::new(handler) as Arc<dyn Handler>)).collect()
    }

    fn routes(&self) -> Routes {
        Routes { kind: self.kind.clone(), ..Routes::default() }
    }

    fn metrics(&self) -> &'static [&'static dyn Family] {
        &METRICS
    }
}
