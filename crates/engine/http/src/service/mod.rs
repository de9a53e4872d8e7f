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
use crate::intake::Wanted;
use crate::kind::{Download, Intake, JobKind, Offer, Published};
use crate::problem::Problem;
use crate::view::Links;
use axum::Router;
use axum::routing::{get, post};
use ode_job::{JobRecord, NewJob, Phase, SourceDocument, machines};
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

/// Conversions at the addresses that all pipelines share.
pub fn kind(settings: &ServiceSettings) -> JobKind {
    let offer = Offer {
        name: request::KIND.into(),
        label: "A page to look at (HTML)".into(),
        about: "The document as a web page, with its fonts and pictures".into(),
    };
    let take = |document: SourceDocument, wanted: Wanted<'_>| {
        NewJob::new(machines::pipeline("html"), wanted.mapping, document.into_input())
    };
    let intake = Intake { offers: vec![offer], ..Intake::new(&[request::KIND], take) };
    let address: fn(&JobRecord) -> Option<&str> = |job| job.input["output_s3_prefix"].as_str();
    JobKind {
        filename: |job| {
            let address = job.input["input_s3_path"].as_str().and_then(|address| address.rsplit('/').next());
            job.document().and_then(|document| document.name).or_else(|| address.map(str::to_owned))
        },
        links: |job, links| {
            if job.record.phase != Phase::Done {
                return links;
            }
            let id = job.record.id;
            let (download, view) = (Some(Links::to(id, "/download")), Some(format!("/jobs/{id}/view")));
            Links { checks: None, revisions: None, download, view, ..links }
        },
        download: Some(Download::new(async |app: Arc<App>, job: JobRecord| files::archive(&app, &job).await)),
        intake: Some(intake),
        published: Some(Published { address, places: settings.places.clone() }),
        ..JobKind::new(machines::pipeline("html"))
    }
}

/// Pages for whoever has a session.
pub fn pages() -> Router<Arc<App>> {
    Router::new().route("/jobs/{id}/view", get(files::page))
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
    crate::jobs::find_of(app, caller, machines::pipeline("html"), id).await
}
