//! The web side: routes, and the errors they answer with.
//!
//! A route reads and writes through the store and never runs a pipeline.

mod again;
mod caller;
mod connections;
mod door;
mod download;
mod drawing;
mod etag;
mod exports;
mod form;
mod gateway;
mod health;
mod intake;
mod jobs;
mod limits;
mod lists;
mod live;
mod maps;
mod openapi;
mod orders;
mod pages;
mod print;
mod problem;
mod query;
mod requests;
mod review;
mod scripts;
mod seen;
mod service;
mod session;
mod sign_in;
mod site;
mod upload;
mod values;
mod view;
mod watch;

pub use drawing::{DrawMaps, Frozen, Undrawn};
pub use exports::ExportLinks;
pub use gateway::{Conversion, Convert, GatewayLimits, MappingInfo, Mappings, Order, Shadow, serve_gateway};
pub use limits::WebLimits;
pub use requests::METRICS;
pub use scripts::{AcceptedScript, Refusal, ScriptInfo, Scripts};
pub use service::{ConfigFault, ServiceSettings, WebhookCheck};
pub(crate) use site::App;
pub use site::{Dedupe, Site, WebSettings};
pub use watch::{Watcher, serve_watch};
