//! `/v1/scripts`: long automations as jobs, for programs that come with an API key.
//!
//! Secrets are taken out of a request and sealed before anything of it is stored.

mod act;
mod artifacts;
mod logs;
mod read;
mod sequence;
mod submit;

use crate::PIPELINE;
use crate::intake::Intake;
use axum::routing::{get, post};
use axum::{Extension, Router};
use ode_http::caller::Caller;
use ode_http::problem::Problem;
use ode_http::{App, Routes};
use ode_job::JobRecord;
use std::sync::Arc;
use utoipa::OpenApi;

#[derive(OpenApi)]
#[openapi(
    paths(read::types, submit::submit, submit::batch, read::list, read::detail, read::events, logs::logs, artifacts::list,
        artifacts::fetch, act::cancel, act::stop, act::retry, act::reveal),
    tags((name = "scripts", description = "Long automations as jobs, for programs with an API key"))
)]
struct Api;

/// Routes for callers with a key.
pub(crate) fn routes(intake: Arc<Intake>) -> Routes {
    let keyed = Router::new()
        .route("/v1/scripts", get(read::types))
        .route("/v1/scripts/batch", post(submit::batch))
        .route("/v1/scripts/jobs", get(read::list))
        .route("/v1/scripts/jobs/{id}", get(read::detail))
        .route("/v1/scripts/jobs/{id}/events", get(read::events))
        .route("/v1/scripts/jobs/{id}/logs", get(logs::logs))
        .route("/v1/scripts/jobs/{id}/artifacts", get(artifacts::list))
        .route("/v1/scripts/jobs/{id}/artifacts/{*name}", get(artifacts::fetch))
        .route("/v1/scripts/jobs/{id}/cancel", post(act::cancel))
        .route("/v1/scripts/jobs/{id}/stop", post(act::stop))
        .route("/v1/scripts/jobs/{id}/retry", post(act::retry))
        .route("/v1/scripts/jobs/{id}/secrets", post(act::reveal))
        .route("/v1/scripts/{type}", post(submit::submit))
        .layer(Extension(intake));
    Routes { keyed, api: Api::openapi(), ..Routes::default() }
}

/// A script of the caller's.
pub(crate) async fn find(app: &App, caller: &Caller, id: &str) -> Result<JobRecord, Problem> {
    let job = ode_http::jobs::find(app, caller, id).await?;
    if job.pipeline == PIPELINE { Ok(job) } else { Err(Problem::no_job()) }
}

/// Where a job is found.
pub(crate) fn address(job: &str) -> String {
    format!("/v1/scripts/jobs/{job}")
}
