//! `/v1`: PDFs into HTML for other systems, who come with an API key.

pub mod batch;
pub mod files;
pub mod read;
pub mod remove;
pub mod request;
pub mod submit;
mod zip;

use crate::App;
use crate::caller::Caller;
use crate::problem::Problem;
use axum::Router;
use axum::routing::{get, post};
use ode_job::{JobRecord, Pipeline};
use ode_store::Places;
use serde_json::Value;
use std::fmt;
use std::sync::Arc;

/// What the wiring decides about the html service.
#[derive(Debug, Clone)]
pub struct ServiceSettings {
    /// Where documents may be fetched from and results be put.
    pub places: Places,
    /// Says what is wrong with a configuration. The converter knows.
    pub check_config: fn(&Value) -> Result<(), ConfigFault>,
    /// Says why nobody can be told at an address.
    pub check_webhook: WebhookCheck,
    /// Where converted documents are shown, if they are to have an origin of their own, such as
    /// `https://views.example`.
    pub view_origin: Option<String>,
}

/// What is wrong with a configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigFault {
    /// Where, such as `config.zoom`.
    pub path: String,
    /// What to write there, in a sentence.
    pub why: String,
}

type Check = dyn Fn(&str) -> Result<(), String> + Send + Sync;

/// Says why nobody can be told at an address. Cheap to clone.
#[derive(Clone)]
pub struct WebhookCheck(Arc<Check>);

impl WebhookCheck {
    /// Asks this.
    pub fn new(check: impl Fn(&str) -> Result<(), String> + Send + Sync + 'static) -> Self {
        WebhookCheck(Arc::new(check))
    }

    fn check(&self, address: &str) -> Result<(), Problem> {
        (self.0)(address).map_err(|why| Problem::invalid(format!("webhook_url: {why}")).at("webhook_url"))
    }
}

impl fmt::Debug for WebhookCheck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WebhookCheck")
    }
}

impl Default for ServiceSettings {
    /// Uploads only; every configuration is left to the conversion.
    fn default() -> Self {
        ServiceSettings {
            places: Places::default(),
            check_config: |_| Ok(()),
            check_webhook: WebhookCheck::new(|_| Err("nobody is told anything here.".into())),
            view_origin: None,
        }
    }
}

/// Routes for callers with a key.
pub fn routes() -> Router<Arc<App>> {
    Router::new()
        .route("/v1/jobs", get(read::list).post(submit::submit))
        .route("/v1/jobs/batch", post(batch::submit))
        .route("/v1/jobs/{id}", get(read::detail).delete(remove::remove))
        .route("/v1/jobs/{id}/assets", get(files::assets))
        .route("/v1/jobs/{id}/logs", get(read::logs))
        .route("/v1/jobs/{id}/events", get(read::events))
        .route("/v1/jobs/{id}/view", get(files::view))
        .route("/v1/jobs/{id}/download", get(files::download))
}

/// Routes for whoever brings a link that we signed.
pub fn open_routes() -> Router<Arc<App>> {
    Router::new().route("/v1/view/{id}/{pass}/{*path}", get(files::by_link))
}

/// A job of the html service that is the caller's.
pub async fn find(app: &App, caller: &Caller, id: &str) -> Result<JobRecord, Problem> {
    let job = crate::jobs::find(app, caller, id).await?;
    if job.pipeline == Pipeline::Html { Ok(job) } else { Err(Problem::no_job()) }
}
