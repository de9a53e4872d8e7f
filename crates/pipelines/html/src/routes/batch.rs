//! `POST /v1/jobs/batch`: thousands of documents in one call.
//!
//! Each is looked at by itself: those that are right become jobs in one transaction, those that were sent before are
//! answered with their jobs, and those that are wrong with a problem. So a batch whose answer was lost can be sent again.

use super::new_job::{self, NewHtmlJob};
use super::submit::taken;
use super::{Service, Shared};
use axum::Json;
use axum::extract::{Extension, Request, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use ode_http::App;
use ode_http::body;
use ode_http::caller::Caller;
use ode_http::problem::{Problem, ProblemDocument, Sending};
use ode_job::{ErrorCode, JobId, NewJob};
use ode_store::Error;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use utoipa::ToSchema;

/// Documents in one call.
const JOBS_MAX: usize = 10_000;
/// About two kilobytes for each of them.
const BATCH_BYTES_MAX: usize = 20 << 20;
/// Others may take names while we look; a batch that meets that so often is one of two that are sent at once.
const TRIES_MAX: usize = 4;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Batch {
    jobs: Vec<Box<RawValue>>,
}

/// Documents that are to be converted.
#[derive(ToSchema)]
#[schema(as = NewHtmlJobs)]
pub(super) struct BatchForm {
    /// The documents, each by its address.
    #[expect(dead_code, reason = "only describes the request")]
    jobs: Vec<NewHtmlJob>,
}

/// What became of a batch.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct BatchAnswer {
    /// Jobs that are new.
    accepted: usize,
    /// Jobs that were there already, of the same requests.
    existing: usize,
    /// Requests that were refused.
    refused: usize,
    /// What became of each request, in the order sent.
    jobs: Vec<BatchOutcome>,
}

/// What became of one request.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct BatchOutcome {
    /// 202 for a new job, 200 for one that was there, or the status of the problem.
    status: u16,
    /// Its external id, as far as it could be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    external_id: Option<String>,
    /// Its job.
    #[schema(value_type = Option<String>, format = "uuid")]
    #[serde(skip_serializing_if = "Option::is_none")]
    job_id: Option<JobId>,
    /// Why it was refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<ProblemDocument>,
}

/// Asks for many documents to be converted.
#[utoipa::path(post, path = "/v1/jobs/batch", tag = "html", security(("key" = [])),
    request_body(content = BatchForm, content_type = "application/json"),
    responses(
        (status = 202, body = BatchAnswer, description = "At least one new job; perhaps not all requests were taken"),
        (status = 200, body = BatchAnswer, description = "All that was taken was there before"),
        Sending,
        (status = 400, body = ProblemDocument, content_type = "application/problem+json",
            description = "None was taken; the problem is that of the first")))]
pub(super) async fn submit(
    State(app): State<Arc<App>>,
    Extension(service): Shared,
    Extension(caller): Extension<Caller>,
    request: Request,
) -> Result<Response, Problem> {
    if !body::is_of_type(request.headers(), "application/json") {
        return Err(body::wrong_type("application/json"));
    }
    let body = body::whole(request.into_body(), BATCH_BYTES_MAX).await?;
    let batch: Batch = body::parse_outline(&body)?;
    if batch.jobs.is_empty() || batch.jobs.len() > JOBS_MAX {
        let detail =
            format!("jobs: a batch holds 1 to {JOBS_MAX} requests, and this one {}.", batch.jobs.len());
        return Err(Problem::new(ErrorCode::Invalid, detail));
    }
    let checked = batch.jobs.iter().map(|json| check(&service, &caller, json)).collect();
    let outcomes = settle(&app, &caller, checked).await?;
    app.lists.forget(caller.owner);
    answer(outcomes)
}

/// One request of a batch: its name as far as it could be read, and the job, or what is wrong with it.
struct Checked {
    external_id: Option<String>,
    job: Result<NewJob, Problem>,
}

fn check(service: &Service, caller: &Caller, json: &RawValue) -> Checked {
    let request = body::parse::<NewHtmlJob>(json.get().as_bytes());
    let external_id = request.as_ref().ok().map(|request| request.external_id.clone());
    Checked { external_id, job: request.and_then(|request| request.job(service, caller, None)) }
}

/// What became of a request.
enum Outcome {
    New(JobId),
    Existing(JobId),
    Refused(Problem),
}

/// Makes jobs of what is right and new, all of it or none.
async fn settle(
    app: &App,
    caller: &Caller,
    mut checked: Vec<Checked>,
) -> Result<Vec<(Option<String>, Outcome)>, Problem> {
    refuse_repeated(&mut checked);
    for _ in 0..TRIES_MAX {
        let names = checked.iter().filter(|one| one.job.is_ok()).filter_map(|one| one.external_id.as_deref());
        let there = app.store.find_externals(caller.owner, names).await?;
        let is_new = |one: &&Checked| one.external_id.as_ref().is_some_and(|name| !there.contains_key(name));
        let new = checked.iter().filter(is_new).filter_map(|one| one.job.as_ref().ok().cloned()).collect();
        match app.store.enqueue_many(new).await {
            Ok(ids) => return outcomes(app, checked, &there, ids).await,
            // Somebody took one of the names meanwhile.
            Err(Error::Duplicate { .. }) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Err(Problem::new(
        ErrorCode::Busy,
        "The same jobs are being sent by somebody else. Try again in a moment.",
    ))
}

/// The second of two requests with one name is wrong, whatever it says.
fn refuse_repeated(checked: &mut [Checked]) {
    let mut seen = HashSet::new();
    for one in checked {
        if let (Some(name), Ok(_)) = (&one.external_id, &one.job)
            && !seen.insert(name.clone())
        {
            one.job = Err(Problem::from(Error::Repeated(name.clone())));
        }
    }
}

async fn outcomes(
    app: &App,
    checked: Vec<Checked>,
    there: &HashMap<String, JobId>,
    ids: Vec<JobId>,
) -> Result<Vec<(Option<String>, Outcome)>, Problem> {
    let known = app.store.jobs_by_id(there.values().copied()).await?;
    let known: HashMap<JobId, _> = known.iter().map(|job| (job.record.id, &job.record)).collect();
    let mut ids = ids.into_iter();
    let mut outcome = |one: Checked| {
        let existing = one.external_id.as_ref().and_then(|name| Some((name, *there.get(name)?)));
        let outcome = match (one.job, existing) {
            (Err(problem), _) => Outcome::Refused(problem),
            (Ok(job), Some((name, id))) => match known.get(&id) {
                Some(record) if new_job::is_of(record, &job) => Outcome::Existing(id),
                _ => Outcome::Refused(taken(name, id)),
            },
            (Ok(_), None) => ids.next().map_or_else(|| Outcome::Refused(Problem::our_fault()), Outcome::New),
        };
        (one.external_id, outcome)
    };
    Ok(checked.into_iter().map(&mut outcome).collect())
}

fn answer(outcomes: Vec<(Option<String>, Outcome)>) -> Result<Response, Problem> {
    let mut answer =
        BatchAnswer { accepted: 0, existing: 0, refused: 0, jobs: Vec::with_capacity(outcomes.len()) };
    let mut first = None;
    for (external_id, outcome) in outcomes {
        let (status, job_id, problem) = match outcome {
            Outcome::New(id) => {
                answer.accepted += 1;
                (StatusCode::ACCEPTED, Some(id), None)
            }
            Outcome::Existing(id) => {
                answer.existing += 1;
                (StatusCode::OK, Some(id), None)
            }
            Outcome::Refused(problem) => {
                answer.refused += 1;
                let (status, document) = (problem.status(), problem.document());
                first.get_or_insert(problem);
                (status, None, Some(document))
            }
        };
        answer.jobs.push(BatchOutcome { status: status.as_u16(), external_id, job_id, problem });
    }
    let status = match (answer.accepted, answer.existing, first) {
        (0, 0, Some(problem)) => return Err(problem),
        (0, _, _) => StatusCode::OK,
        _ => StatusCode::ACCEPTED,
    };
    Ok((status, Json(answer)).into_response())
}
