//! `POST /api/jobs/{id}/convert`: the same document once more, with another mapping or in another form.
//!
//! It makes a job of its own from a copy of the document, as if that had been sent again: the first job and its result
//! stay as they are.

use super::read_json;
use axum::Json;
use axum::extract::{Extension, Path, Request, State};
use axum::http::StatusCode;
use futures_util::StreamExt as _;
use ode_http::App;
use ode_http::caller::Caller;
use ode_http::intake::{self, Received, Wanted};
use ode_http::jobs::{find, shown};
use ode_http::problem::{Problem, Sending};
use ode_http::upload::{check_mapping, check_output};
use ode_http::view::JobView;
use ode_job::{ErrorCode, JobId, JobRecord, SourceDocument};
use ode_store::Enqueued;
use serde::Deserialize;
use std::pin::pin;
use std::sync::Arc;
use utoipa::ToSchema;

/// How a document is to be converted once more.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Again {
    /// Which mapping makes the XML, or `auto`.
    #[schema(max_length = 100, example = "generic_invoice_v1")]
    pub(crate) mapping: String,
    /// Which XML: `own`, `ubl` or `cii`.
    pub(crate) output: Option<String>,
}

/// Converts a job's document once more, with another mapping or in another form. The job itself stays as it is.
#[utoipa::path(post, path = "/api/jobs/{id}/convert", tag = "jobs",
    params(("id" = String, Path, description = "Its id or reference")),
    request_body = Again,
    responses(
        (status = 201, body = JobView, description = "A new job"),
        (status = 200, body = JobView, description = "The job that did, or does, the same"),
        Sending))]
pub(crate) async fn convert(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
    request: Request,
) -> Result<(StatusCode, Json<JobView>), Problem> {
    const FORM: &str =
        "It is not understood how to convert it. Send a JSON object with mapping and, if you like, output.";
    let job = find(&app, &caller, &id).await?;
    let again = read_json(request, FORM).await?;
    let enqueued = once_more(&app, &caller, &job, &again).await?;
    let status = match enqueued {
        Enqueued::New(_) => StatusCode::CREATED,
        Enqueued::Existing(_) => StatusCode::OK,
    };
    let job = find(&app, &caller, &enqueued.id().to_string()).await?;
    Ok((status, Json(shown(&app, job).await?)))
}

/// Makes the job that converts a document once more.
pub(crate) async fn once_more(
    app: &App,
    caller: &Caller,
    job: &JobRecord,
    Again { mapping, output }: &Again,
) -> Result<Enqueued, Problem> {
    let output = output.as_deref().filter(|output| !output.is_empty());
    check_mapping(mapping)?;
    check_output(app, output)?;
    app.check_disk()?;
    app.limits.upload(caller).await?;
    let (name, received) = copy(app, job.id).await?;
    Ok(intake::accept(app, caller, &name, received, Wanted { mapping, output }).await?.enqueued)
}

/// A copy of a job's document, under the name that it had.
async fn copy(app: &App, job: JobId) -> Result<(String, Received), Problem> {
    let jobs = app.store.jobs_by_id(std::iter::once(job)).await?;
    let document =
        jobs.first().filter(|job| job.files.source_path.is_some()).and_then(|job| job.record.document());
    let Some(SourceDocument { name: Some(name), path: Some(path), bytes: Some(bytes), .. }) = document else {
        let detail = "The document was removed, so it cannot be converted again. Send it once more.";
        return Err(Problem::with_status(StatusCode::CONFLICT, ErrorCode::Expired, detail));
    };
    let mut incoming = app.blobs.receive();
    let mut content = pin!(app.blobs.stream(&path, 0..u64::try_from(bytes).unwrap_or_default()).await?);
    while let Some(piece) = content.next().await {
        incoming.write(&piece?).await?;
    }
    Ok((name, Received::new(&app.blobs, incoming.finish().await?)))
}
