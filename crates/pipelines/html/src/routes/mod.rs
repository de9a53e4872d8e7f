//! `/v1`: PDFs into HTML for other systems, who come with an API key.

mod batch;
mod files;
mod new_job;
mod read;
mod remove;
mod submit;
mod zip;

use crate::kind::job_kind;
use crate::machine::HTML;
use axum::Router;
use axum::extract::Extension;
use axum::routing::{get, post};
use ode_http::caller::Caller;
use ode_http::problem::Problem;
use ode_http::{App, Routes};
use ode_job::JobRecord;
use ode_store::Places;
use ode_webhooks::Guard;
use std::sync::Arc;
use utoipa::OpenApi;

pub(super) use files::send_archive;

/// What the addresses of the html service share.
#[derive(Debug, Clone, Default)]
pub struct Service {
    /// Where documents may be fetched from and files be put.
    pub places: Places,
    /// Where messages about jobs may go.
    pub webhooks: Guard,
    /// Where converted documents are shown, if they are to have an origin of their own, such as
    /// `https://views.example`.
    pub view_origin: Option<String>,
}

/// The state that routes extract.
type Shared = Extension<Arc<Service>>;

#[derive(OpenApi)]
#[openapi(
    paths(
        submit::submit,
        batch::submit,
        read::list,
        read::detail,
        remove::remove,
        files::assets,
        read::logs,
        read::events,
        files::view,
        files::download,
        files::by_link
    ),
    tags((name = "html", description = "PDFs into HTML, for programs with an API key"))
)]
struct Api;

/// Addresses of the html service.
pub(super) fn routes(service: Service) -> Routes {
    let keyed = Router::new()
        .route("/v1/jobs", get(read::list).post(submit::submit))
        .route("/v1/jobs/batch", post(batch::submit))
        .route("/v1/jobs/{id}", get(read::detail).delete(remove::remove))
        .route("/v1/jobs/{id}/assets", get(files::assets))
        .route("/v1/jobs/{id}/logs", get(read::logs))
        .route("/v1/jobs/{id}/events", get(read::events))
        .route("/v1/jobs/{id}/view", get(files::view))
        .route("/v1/jobs/{id}/download", get(files::download));
    let known = Router::new().route("/jobs/{id}/view", get(files::page));
    let open = Router::new().route("/v1/view/{id}/{pass}/{*path}", get(files::by_link));
    let kind = Some(job_kind(service.places.clone()));
    let shared = Extension(Arc::new(service));
    Routes {
        kind,
        known: known.layer(shared.clone()),
        keyed: keyed.layer(shared),
        open,
        api: Api::openapi(),
        ..Routes::default()
    }
}

/// A job of the html service that is the caller's.
async fn find(app: &App, caller: &Caller, id: &str) -> Result<JobRecord, Problem> {
    ode_http::jobs::find_of(app, caller, HTML, id).await
}
