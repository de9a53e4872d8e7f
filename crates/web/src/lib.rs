//! The web side: routes, and the errors they answer with.
//!
//! A route reads and writes through the store and never runs a pipeline.

mod caller;
mod connections;
mod door;
mod download;
mod gateway;
mod health;
mod intake;
mod jobs;
mod limits;
mod lists;
mod live;
mod openapi;
mod pages;
mod problem;
mod requests;
mod service;
mod session;
mod site;
mod upload;
mod view;
mod watch;

pub use gateway::{Conversion, Convert, GatewayLimits, MappingInfo, Mappings, Order, Shadow, serve_gateway};
pub use limits::WebLimits;
pub use requests::METRICS;
pub use service::ServiceSettings;
pub(crate) use site::App;
pub use site::{Dedupe, Site, WebSettings};
pub use watch::{Watcher, serve_watch};
