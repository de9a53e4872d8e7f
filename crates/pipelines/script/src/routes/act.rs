//! What is done to scripts: called off, stopped, tried again, and their secrets shown once.

use super::find;
use super::read::shown;
use crate::intake::Intake;
use crate::sql;
use crate::view::ScriptJob;
use crate::{record::SecretPart, sql::secrets};
use axum::Json;
use axum::body::Body;
use axum::extract::{Extension, Path, State};
use ode_http::App;
use ode_http::body;
use ode_http::caller::Caller;
use ode_http::jobs::forget;
use ode_http::problem::{Acting, Problem, ProblemDocument};
use ode_job::{ErrorCode, JobRecord, JobRef, Phase};
use ode_store::sql::Tx;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::sync::Arc;
use utoipa::ToSchema;

/// Secrets are a few words each.
const SECRETS_BYTES_MAX: usize = 64 << 10;

/// Calls off a script that has not started: one that is pending or queued.
#[utoipa::path(post, path = "/v1/scripts/jobs/{id}/cancel", tag = "scripts", security(("key" = [])),
    params(("id" = String, Path, description = "Its id or reference")),
    responses((status = 200, body = ScriptJob), Acting))]
pub(crate) async fn cancel(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
) -> Result<Json<ScriptJob>, Problem> {
    let job = find(&app, &caller, &id).await?;
    app.store.cancel(job.id).await?;
    changed(&app, &caller, job).await
}

/// Asks the worker of a running script to end it. The job is `failed` with code `STOPPED` once it has.
#[utoipa::path(post, path = "/v1/scripts/jobs/{id}/stop", tag = "scripts", security(("key" = [])),
    params(("id" = String, Path, description = "Its id or reference")),
    responses((status = 200, body = ScriptJob, description = "It was asked; the job ends a moment later"), Acting))]
pub(crate) async fn stop(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
) -> Result<Json<ScriptJob>, Problem> {
    let job = find(&app, &caller, &id).await?;
    app.store.stop(job.id).await?;
    changed(&app, &caller, job).await
}

/// How to try again.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RetryRequest {
    /// The secrets by name, in place of those that were sent with the job. Needed once those are gone: an hour after it
    /// failed, unless the operator set another time.
    #[serde(default)]
    #[schema(value_type = Option<Object>)]
    secrets: Option<Map<String, Value>>,
}

/// Tries a script that failed again, with its attempts counted anew. What it had done for good is not done again.
#[utoipa::path(post, path = "/v1/scripts/jobs/{id}/retry", tag = "scripts", security(("key" = [])),
    params(("id" = String, Path, description = "Its id or reference")),
    request_body(content = Option<RetryRequest>, content_type = "application/json"),
    responses(
        (status = 200, body = ScriptJob),
        (status = 408, body = ProblemDocument, content_type = "application/problem+json"),
        (status = 413, body = ProblemDocument, content_type = "application/problem+json"),
        (status = 503, body = ProblemDocument, content_type = "application/problem+json"),
        Acting))]
pub(crate) async fn retry(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Extension(intake): Extension<Arc<Intake>>,
    Path(id): Path<String>,
    sent: Body,
) -> Result<Json<ScriptJob>, Problem> {
    let sent = body::whole(sent, SECRETS_BYTES_MAX).await?;
    let request: Option<RetryRequest> = if sent.is_empty() { None } else { body::parse(&sent)? };
    let job = find(&app, &caller, &id).await?;
    let again = match request.and_then(|request| request.secrets) {
        Some(secrets) if job.phase == Phase::Failed => {
            Some(intake.reseal(&app.store, &job, caller.owner.key(), secrets).await?)
        }
        _ => None,
    };
    let (again, id) = (&again, job.id);
    let keep = async |mut tx: Tx| {
        if let Some((sealed, keep_for)) = again {
            secrets::keep(&mut tx, id, SecretPart::Input, sealed, *keep_for).await?;
        }
        Ok(tx)
    };
    app.store.retry_beside(id, keep).await?;
    changed(&app, &caller, job).await
}

/// Secrets that came of a script.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Revealed {
    /// The secrets by name, as the result names them.
    #[schema(value_type = Object)]
    secrets: Value,
}

/// Shows the secrets that came of a script, such as a new API key. Once: they are shredded before they are sent.
#[utoipa::path(post, path = "/v1/scripts/jobs/{id}/secrets", tag = "scripts", security(("key" = [])),
    params(("id" = String, Path, description = "Its id or reference")),
    responses(
        (status = 200, body = Revealed),
        (status = 503, body = ProblemDocument, content_type = "application/problem+json"),
        Acting))]
pub(crate) async fn reveal(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Extension(intake): Extension<Arc<Intake>>,
    Path(id): Path<String>,
) -> Result<Json<Revealed>, Problem> {
    let job = find(&app, &caller, &id).await?;
    if matches!(job.phase, Phase::Held | Phase::Ready | Phase::Running) {
        let detail = format!("This script is {}. Ask again when it has completed.", job.state.as_str());
        return Err(Problem::new(ErrorCode::NotReady, detail).titled("The script has not ended yet"));
    }
    let sealed = sql::result_secret(app.store.sql(), job.id).await?.ok_or_else(no_secrets)?;
    // Opened first: what cannot be opened here is not taken from somebody who can.
    let secrets = intake.open(caller.owner.key(), &sealed)?;
    if !sql::take_result_secret(app.store.sql(), job.id, sealed.id).await? {
        return Err(no_secrets());
    }
    tracing::info!(job.id = %job.id, "the secrets of job {} were shown and shredded", job.id);
    Ok(Json(Revealed { secrets }))
}

fn no_secrets() -> Problem {
    let detail = "There is nothing to show: no secrets came of this script, or they were shown before, or waited too long.";
    Problem::new(ErrorCode::Conflict, detail)
}

/// The job after a change.
async fn changed(app: &App, caller: &Caller, job: JobRecord) -> Result<Json<ScriptJob>, Problem> {
    forget(app, &job);
    let job = app.store.job_of(caller.owner, JobRef::Id(job.id)).await?;
    shown(app, job).await.map(Json)
}
