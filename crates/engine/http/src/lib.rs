//! The web side: routes, and the errors they answer with.
//!
//! A route reads and writes through the store and never runs a pipeline.

mod callers;
pub mod jobs;
pub mod pages;
mod server;
pub mod site;

pub use callers::{caller, session, sign_in};
pub use jobs::{checks, download, intake, kind, lists, live, logs, seen, upload, view};
pub use server::{body, connections, door, etag, form, idempotency, limits, problem, query, requests};
pub use site::{health, openapi, watcher};

pub use jobs::kind::{Download, Intake, JobKind, Offer, Output, Published};
pub use server::limits::WebLimits;
pub use server::requests::METRICS;
pub use site::App;
pub use site::routes::Routes;
pub use site::watcher::{Watcher, serve_watch};
pub use site::{Dedupe, Site, WebSettings, origin};
