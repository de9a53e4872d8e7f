//! `POST /v1/scripts/{type}` and `/v1/scripts/batch`: one script, or a sequence of them.

use super::address;
use super::sequence::Sequence;
use crate::intake::Intake;
use crate::request::{BatchJobForm, BatchRequest, Request};
use crate::sql::{self, AcceptedScripts, Need, NewScript, NewScripts};
use axum::Json;
use axum::extract::{Extension, Path, Request as HttpRequest, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use ode_http::App;
use ode_http::body;
use ode_http::caller::Caller;
use ode_http::idempotency::idempotency_key;
use ode_http::problem::{Problem, ProblemDocument, Sending};
use ode_job::{JobId, State as JobState};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::HashMap;
use std::sync::Arc;
use utoipa::ToSchema;
use uuid::Uuid;

/// The largest input, and what stands around it.
const REQUEST_BYTES_MAX: usize = (1 << 20) + (128 << 10);
/// Onboarding takes a dozen steps; a hundred jobs that need each other are beyond what a person can follow.
const BATCH_MAX: usize = 100;
const BATCH_BYTES_MAX: usize = 10 << 20;

/// A script that was taken.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct AcceptedScriptJob {
    /// Its id.
    #[schema(value_type = String, format = "uuid")]
    id: JobId,
    /// The name people use for it; taken wherever an id is.
    #[schema(example = "JOB_20261115_093000_1a2b3c4d")]
    job_id: String,
    /// Which script.
    #[schema(example = "add-item-tags")]
    job_type: String,
    /// `pending`, `queued`, `in_progress`, `completed`, `failed`, `cancelled` or `timed_out`.
    #[schema(example = "queued")]
    status: &'static str,
    /// Where to look.
    links: ScriptLink,
}

/// Where a script is found.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ScriptLink {
    /// The job.
    #[serde(rename = "self")]
    itself: String,
}

/// Scripts that belong together.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = NewScriptBatch)]
pub(crate) struct Batch {
    /// Whether each needs the one before it, beside what it says itself.
    #[serde(default)]
    in_order: bool,
    /// The scripts, earlier ones first.
    #[schema(value_type = Vec<BatchJobForm>, min_items = 1, max_items = 100)]
    jobs: Vec<Map<String, Value>>,
}

/// A batch that was taken.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct AcceptedBatch {
    /// The batch, to list by.
    #[schema(value_type = String, format = "uuid")]
    batch_id: Uuid,
    /// Its jobs, in the order sent.
    jobs: Vec<AcceptedScriptJob>,
}

/// Asks for a script to be run.
#[utoipa::path(post, path = "/v1/scripts/{type}", tag = "scripts", security(("key" = [])),
    params(("type" = String, Path, description = "Which script", example = "add-item-tags"),
        ("Idempotency-Key" = Option<String>, Header,
            description = "A name for this request: sent again under it, it is answered with the same job. Secrets do not count")),
    request_body(content = Request, content_type = "application/json"),
    responses(
        (status = 202, body = AcceptedScriptJob, headers(("Location" = String, description = "The job"))),
        (status = 200, body = AcceptedScriptJob, description = "The same request was made before; this is its job"),
        (status = 415, body = ProblemDocument, content_type = "application/problem+json"),
        Sending))]
pub(crate) async fn submit(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Extension(intake): Extension<Arc<Intake>>,
    Path(kind): Path<String>,
    request: HttpRequest,
) -> Result<Response, Problem> {
    let idempotency_key = idempotency_key(request.headers())?;
    let request: Request = read(request, REQUEST_BYTES_MAX).await?;
    let script = request.script((&app, &intake), &caller, &kind, &HashMap::new()).await?;
    let scripts = NewScripts { owner: caller.owner, idempotency_key, batch: None, scripts: vec![script] };
    let accepted = sql::submit(&app.store, &scripts).await?;
    let status = accepted_status(&app, &caller, &accepted);
    let job = answers(&scripts, &accepted).pop().ok_or_else(Problem::our_fault)?;
    let location = HeaderValue::from_str(&job.links.itself).map_err(|_| Problem::our_fault())?;
    Ok((status, [(header::LOCATION, location)], Json(job)).into_response())
}

/// Asks for scripts to be run one after the other, or as they need each other: all are taken, or none.
///
/// A job waits, `pending`, until every job that it needs has completed. When one of those fails for good, is cancelled or
/// runs out of time, it is cancelled too, and `reason` says why.
#[utoipa::path(post, path = "/v1/scripts/batch", tag = "scripts", security(("key" = [])),
    params(("Idempotency-Key" = Option<String>, Header,
        description = "A name for this request: sent again under it, it is answered with the same jobs. Secrets do not count")),
    request_body(content = Batch, content_type = "application/json"),
    responses(
        (status = 202, body = AcceptedBatch),
        (status = 200, body = AcceptedBatch, description = "The same request was made before; these are its jobs"),
        (status = 415, body = ProblemDocument, content_type = "application/problem+json"),
        Sending))]
pub(crate) async fn batch(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Extension(intake): Extension<Arc<Intake>>,
    request: HttpRequest,
) -> Result<Response, Problem> {
    let idempotency_key = idempotency_key(request.headers())?;
    let batch: Batch = read(request, BATCH_BYTES_MAX).await?;
    let scripts = scripts(&app, &intake, &caller, batch).await?;
    let batch = Some(Uuid::now_v7());
    let scripts = NewScripts { owner: caller.owner, idempotency_key, batch, scripts };
    let accepted = sql::submit(&app.store, &scripts).await?;
    let status = accepted_status(&app, &caller, &accepted);
    let jobs = answers(&scripts, &accepted);
    // A key under which a single script was asked for was refused as another request before.
    let batch_id = accepted.batch.ok_or_else(Problem::our_fault)?;
    Ok((status, Json(AcceptedBatch { batch_id, jobs })).into_response())
}

async fn read<T: serde::de::DeserializeOwned>(request: HttpRequest, bytes_max: usize) -> Result<T, Problem> {
    if !body::is_of_type(request.headers(), "application/json") {
        return Err(body::wrong_type("application/json"));
    }
    body::parse(&body::whole(request.into_body(), bytes_max).await?)
}

/// The scripts of a batch, each with what it needs.
async fn scripts(
    app: &App,
    intake: &Intake,
    caller: &Caller,
    batch: Batch,
) -> Result<Vec<NewScript>, Problem> {
    if batch.jobs.is_empty() || batch.jobs.len() > BATCH_MAX {
        let detail = format!("jobs has 1 to {BATCH_MAX} scripts. Send more in another batch.");
        return Err(Problem::invalid(detail).at("jobs"));
    }
    let within = |place: usize| move |problem: Problem| problem.within(&format!("jobs[{place}]"));
    let read = |(place, fields)| BatchRequest::read(fields).map_err(within(place));
    let requests = batch.jobs.into_iter().enumerate().map(read).collect::<Result<Vec<_>, _>>()?;
    let sequence = Sequence::read(&requests, batch.in_order)?;
    let mut scripts = Vec::with_capacity(requests.len());
    for (place, BatchRequest { kind, request, .. }) in requests.into_iter().enumerate() {
        let script = request.script((app, intake), caller, &kind, &sequence.names).await;
        let mut script: NewScript = script.map_err(within(place))?;
        if let Some(before) = place.checked_sub(1).filter(|_| batch.in_order) {
            script.needs.push(Need::Earlier(before));
        }
        scripts.push(script);
    }
    Ok(scripts)
}

fn accepted_status(app: &App, caller: &Caller, accepted: &AcceptedScripts) -> StatusCode {
    if accepted.is_known {
        return StatusCode::OK;
    }
    app.lists.forget(caller.owner);
    for id in &accepted.ids {
        tracing::info!(job.id = %id, job.pipeline = "script", "accepted job {id}");
    }
    StatusCode::ACCEPTED
}

/// What is said of the jobs of a request. Whether a new one has started meanwhile is told where it is looked for.
fn answers(scripts: &NewScripts, accepted: &AcceptedScripts) -> Vec<AcceptedScriptJob> {
    let jobs = accepted.ids.iter().zip(&accepted.states).zip(&scripts.scripts);
    let answer = |((id, state), script): ((&JobId, &JobState), &NewScript)| AcceptedScriptJob {
        id: *id,
        job_id: id.reference(),
        job_type: script.job.kind.clone(),
        status: state.as_str(),
        links: ScriptLink { itself: address(&id.to_string()) },
    };
    jobs.map(answer).collect()
}
