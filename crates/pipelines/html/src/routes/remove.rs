//! `DELETE /v1/jobs/{id}`: a job that waits is called off, one that runs is stopped, and everything of it goes.

use super::{Shared, find};
use crate::view::HtmlJob;
use axum::Json;
use axum::extract::{Extension, Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use ode_http::App;
use ode_http::caller::Caller;
use ode_http::jobs;
use ode_http::problem::{Acting, Problem, ProblemDocument};
use ode_job::{JobRecord, JobRef, Phase};
use ode_store::Error;
use std::sync::Arc;
use std::time::Duration;

/// A job that was asked to stop has ended by then, unless its worker is lost.
const STOP_PATIENCE: Duration = Duration::from_secs(5);
const STOP_LOOK: Duration = Duration::from_millis(100);

/// Removes a job: with its files here, what was published of it, its log and its history.
#[utoipa::path(delete, path = "/v1/jobs/{id}", tag = "html", security(("key" = [])),
    params(("id" = String, Path, description = "Its id or reference")),
    responses(
        (status = 204, description = "It is gone"),
        (status = 202, body = HtmlJob, description = "It was asked to stop and has not yet; ask again to remove it"),
        Acting,
        (status = 503, body = ProblemDocument, content_type = "application/problem+json",
            description = "The storage did not answer; nothing was removed")))]
pub(super) async fn remove(
    State(app): State<Arc<App>>,
    Extension(service): Shared,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
) -> Result<Response, Problem> {
    let job = find(&app, &caller, &id).await?;
    let job = end(&app, job).await?;
    if !matches!(job.phase, Phase::Done | Phase::Failed | Phase::Cancelled) {
        return Ok((StatusCode::ACCEPTED, Json(HtmlJob::new(&app, &service, &job))).into_response());
    }
    jobs::remove(&app, &job).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// Ends a job that has not ended, as far as it can be waited for.
async fn end(app: &App, job: JobRecord) -> Result<JobRecord, Problem> {
    let asked = match job.phase {
        Phase::Done | Phase::Failed | Phase::Cancelled => return Ok(job),
        Phase::Held | Phase::Ready => app.store.cancel(job.id).await.map(drop),
        Phase::Running => app.store.stop(job.id).await,
    };
    match asked {
        // It went on meanwhile: started, or ended.
        Err(Error::Refused { .. } | Error::Busy(_)) if job.phase != Phase::Running => {
            let now = app.store.job(JobRef::Id(job.id)).await?;
            if now.phase == Phase::Running {
                app.store.stop(job.id).await?;
            }
        }
        Ok(()) | Err(Error::Refused { .. } | Error::Busy(_)) => {}
        Err(error) => return Err(error.into()),
    }
    let deadline = tokio::time::Instant::now() + STOP_PATIENCE;
    loop {
        let now = app.store.job(JobRef::Id(job.id)).await?;
        let has_ended = matches!(now.phase, Phase::Done | Phase::Failed | Phase::Cancelled);
        if has_ended || tokio::time::Instant::now() >= deadline {
            return Ok(now);
        }
        tokio::time::sleep(STOP_LOOK).await;
    }
}
