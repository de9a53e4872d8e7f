//! The web side: routes, and the errors they answer with.
//!
//! A route reads and writes through the store and never runs a pipeline.

mod caller;
mod connections;
mod door;
mod download;
mod gateway;
mod health;
mod jobs;
mod limits;
mod lists;
mod live;
mod openapi;
mod pages;
mod problem;
mod session;
mod site;
mod upload;
mod view;

pub use gateway::{Conversion, Convert, GatewayLimits, MappingInfo, Mappings, Order, serve_gateway};
pub use limits::WebLimits;
pub(crate) use site::App;
pub use site::{Site, WebSettings};
