//! The web side: routes, and the errors they answer with.
//!
//! A route reads and writes through the store and never runs a pipeline.

pub mod body;
pub mod caller;
pub mod checks;
pub mod connections;
pub mod door;
pub mod download;
pub mod etag;
pub mod form;
pub mod health;
pub mod idempotency;
pub mod intake;
pub mod jobs;
pub mod kind;
pub mod limits;
pub mod lists;
pub mod live;
pub mod logs;
pub mod openapi;
pub mod pages;
pub mod problem;
pub mod query;
pub mod requests;
mod routes;
pub mod seen;
pub mod session;
pub mod sign_in;
pub mod site;
pub mod upload;
pub mod view;
pub mod watch;

pub use kind::{Download, Intake, JobKind, Offer, Output, Published};
pub use limits::WebLimits;
pub use requests::METRICS;
pub use routes::Routes;
pub use site::App;
pub use site::{Dedupe, Site, WebSettings, origin};
pub use watch::{Watcher, serve_watch};
