//! The files of a script: screenshots of failures, and what it made.

use super::{address, find};
use axum::Json;
use axum::extract::{Extension, Path, State};
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use ode_http::App;
use ode_http::caller::Caller;
use ode_http::download::attachment;
use ode_http::download::encoded;
use ode_http::problem::{Problem, Reading};
use ode_job::{Artifact, ErrorCode};
use serde::Serialize;
use std::sync::Arc;
use utoipa::ToSchema;

/// A file of a script.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ScriptArtifact {
    /// Its name: the attempt that made it, and what the script calls it.
    #[schema(example = "1/failure.png")]
    name: String,
    /// `screenshot`, `log` or `asset`.
    #[schema(example = "screenshot")]
    kind: String,
    /// Media type.
    content_type: String,
    /// Its size.
    bytes: i64,
    /// SHA-256, in hexadecimal digits.
    sha256: String,
    /// Where it is fetched, with your key.
    url: String,
}

/// The files of a script.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ScriptArtifacts {
    /// The files.
    artifacts: Vec<ScriptArtifact>,
}

/// The files of a script. Those that show why an attempt failed are there as soon as it has.
#[utoipa::path(get, path = "/v1/scripts/jobs/{id}/artifacts", tag = "scripts", security(("key" = [])),
    params(("id" = String, Path, description = "Its id or reference")),
    responses((status = 200, body = ScriptArtifacts), Reading))]
pub(crate) async fn list(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
) -> Result<Json<ScriptArtifacts>, Problem> {
    let job = find(&app, &caller, &id).await?;
    let view = |file: Artifact| ScriptArtifact {
        url: format!("{}/artifacts/{}", address(&job.id.to_string()), encoded(&file.name)),
        name: file.name,
        kind: file.role,
        content_type: file.content_type,
        bytes: file.bytes,
        sha256: file.sha256,
    };
    let artifacts = app.store.artifacts(job.id).await?.into_iter().map(view).collect();
    Ok(Json(ScriptArtifacts { artifacts }))
}

/// A file of a script.
#[utoipa::path(get, path = "/v1/scripts/jobs/{id}/artifacts/{name}", tag = "scripts", security(("key" = [])),
    params(("id" = String, Path, description = "Its id or reference"),
        ("name" = String, Path, description = "The file's name")),
    responses(
        (status = 200, description = "The file", content_type = "application/octet-stream", body = Vec<u8>),
        Reading))]
pub(crate) async fn fetch(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path((id, name)): Path<(String, String)>,
) -> Result<Response, Problem> {
    let job = find(&app, &caller, &id).await?;
    let none = || Problem::new(ErrorCode::NotFound, "This job has no file of that name. List those it has.");
    let file =
        app.store.artifacts(job.id).await?.into_iter().find(|file| file.name == name).ok_or_else(none)?;
    let content = app.blobs.get(&file.path, &file.sha256).await?;
    let text = |text: &str| HeaderValue::from_str(text).map_err(|_| Problem::our_fault());
    // Never shown by a browser as a page of ours: what a script saw is somebody else's.
    let head = [
        (header::CONTENT_TYPE, text(&file.content_type)?),
        (header::CONTENT_DISPOSITION, text(&attachment(&name.replace('/', "-")))?),
    ];
    Ok((head, content).into_response())
}
