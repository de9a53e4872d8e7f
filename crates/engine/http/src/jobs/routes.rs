//! `/api/jobs` and below: documents and scripts of whoever asks, in one list and in the same words.

use super::{History, Listing, find, notice, remove, shown, views};
use crate::App;
use crate::callers::caller::Caller;
use crate::jobs;
use crate::jobs::lists::Listed;
use crate::jobs::view::JobView;
use crate::server::etag;
use crate::server::problem::{Acting, Problem, Reading};
use crate::server::query::{PAGE_MAX, query};
use axum::Json;
use axum::extract::{Extension, Path, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use jiff::Timestamp;
use ode_store::{OwnedFilter, OwnedPage};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use std::sync::Arc;
use utoipa::{IntoParams, ToSchema};

/// Which jobs to list.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct ListQuery {
    /// Only jobs that changed at this moment or later. Give the `as_of` of the answer before, and nothing is missed.
    #[param(value_type = Option<String>, format = "date-time")]
    since: Option<String>,
    /// Where the list goes on: the `next_cursor` of the part before.
    cursor: Option<String>,
    /// Only jobs in this state.
    #[serde(alias = "state")]
    #[param(example = "queued")]
    status: Option<String>,
    /// Only jobs with this mapping.
    mapping: Option<String>,
    /// How many at most; 100 unless said otherwise.
    #[param(value_type = Option<u16>, minimum = 1, maximum = 200)]
    limit: Option<String>,
}

impl ListQuery {
    fn listing(&self) -> Listing<'_> {
        let ListQuery { since, cursor, status, mapping, limit } = self;
        Listing {
            status: status.as_deref(),
            kind: mapping.as_deref(),
            since: since.as_deref(),
            cursor: cursor.as_deref(),
            limit: limit.as_deref(),
        }
    }
}

/// A part of a list, newest first.
#[derive(Debug, Serialize, ToSchema)]
pub struct JobList {
    /// The jobs.
    jobs: Vec<JobView>,
    /// How many of all your jobs have not ended. Polling can stop at zero.
    active_count: i64,
    /// Where the next part begins, if there is one.
    next_cursor: Option<String>,
    /// What keeps all that wait from being converted, where something does.
    notice: Option<&'static str>,
    /// When this was so: give it as `since` next time. A few seconds early, so that nothing can fall in between.
    #[schema(value_type = String, format = "date-time")]
    #[serde(serialize_with = "crate::jobs::view::moment")]
    as_of: Timestamp,
}

/// What was written when the clock was read may be committed a little later.
const COMMIT_LAG: jiff::SignedDuration = jiff::SignedDuration::from_secs(5);

/// Your jobs, newest first.
#[utoipa::path(get, path = "/api/jobs", tag = "jobs", params(ListQuery,
    ("If-None-Match" = Option<String>, Header, description = "The ETag of the answer that is there already")),
    responses(
        (status = 200, body = JobList, headers(("ETag" = String, description = "Changes when the list does"))),
        (status = 304, description = "Nothing has changed"),
        Reading))]
pub async fn list(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    uri: Uri,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let query: ListQuery = query(&uri, "since, cursor, status, mapping and limit")?;
    let filter = query.listing().filter(&caller, None, PAGE_MAX)?;
    app.hub.attend();
    let listed = app.lists.get(&filter, read_list(&app, &filter)).await?;
    let is_known = etag::is_known(&headers, &listed.etag);
    let cache = (header::CACHE_CONTROL, HeaderValue::from_static("private, no-cache"));
    let tag = HeaderValue::from_str(&listed.etag).expect("letters and digits are a header");
    let head = [cache, (header::ETAG, tag)];
    if is_known {
        return Ok((StatusCode::NOT_MODIFIED, head).into_response());
    }
    let json = [(header::CONTENT_TYPE, HeaderValue::from_static("application/json"))];
    Ok((head, json, listed.body).into_response())
}

async fn read_list(app: &App, filter: &OwnedFilter) -> Result<Listed, Problem> {
    let page = app.store.owned_jobs(filter, &app.kinds.unlisted()).await?;
    let notice = notice(app, page.active_count).await?;
    let etag = tag(&page, notice);
    let list = JobList {
        jobs: views(app, &page.jobs).await?,
        active_count: page.active_count,
        next_cursor: page.next_cursor.map(|id| id.to_string()),
        notice,
        as_of: page.as_of.checked_sub(COMMIT_LAG).unwrap_or(page.as_of),
    };
    let body = serde_json::to_vec(&list).map_err(|_| Problem::our_fault())?;
    Ok(Listed { body: body.into(), etag })
}

/// Weak, since the clock and the time left differ from one reading to the next, and nobody need read a list for those.
fn tag(page: &OwnedPage, notice: Option<&str>) -> String {
    let mut hash = Sha256::new();
    hash.update(notice.unwrap_or_default());
    hash.update(page.active_count.to_be_bytes());
    hash.update([u8::from(page.next_cursor.is_some())]);
    for job in &page.jobs {
        let record = &job.record;
        hash.update(record.id.0.as_bytes());
        hash.update(record.updated_at.as_microsecond().to_be_bytes());
        hash.update([
            record.progress.percent,
            u8::from(job.files.result_path.is_some()),
            u8::from(job.files.source_path.is_some()),
        ]);
        hash.update(record.state.as_str());
        hash.update(record.progress.message.as_deref().unwrap_or_default());
    }
    format!("W/\"{}\"", hex::encode(&hash.finalize()[..12]))
}

/// One job.
#[utoipa::path(get, path = "/api/jobs/{id}", tag = "jobs",
    params(("id" = String, Path, description = "Its id or reference")),
    responses(
        (status = 200, body = JobView),
        Reading))]
pub async fn detail(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
) -> Result<Json<JobView>, Problem> {
    let job = find(&app, &caller, &id).await?;
    shown(&app, job).await.map(Json)
}

/// What happened to a job.
#[utoipa::path(get, path = "/api/jobs/{id}/events", tag = "jobs",
    params(("id" = String, Path, description = "Its id or reference")),
    responses(
        (status = 200, body = History),
        Reading))]
pub async fn events(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
) -> Result<Json<History>, Problem> {
    let job = find(&app, &caller, &id).await?;
    History::of(&app, job.id).await
}

/// Tries a failed job again, with its attempts counted anew.
#[utoipa::path(post, path = "/api/jobs/{id}/retry", tag = "jobs",
    params(("id" = String, Path, description = "Its id or reference")),
    responses(
        (status = 200, body = JobView),
        Acting))]
pub async fn retry(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
) -> Result<Json<JobView>, Problem> {
    let job = find(&app, &caller, &id).await?;
    jobs::retry(&app, &job).await?;
    shown(&app, job).await.map(Json)
}

/// Calls off a job that has not started.
#[utoipa::path(post, path = "/api/jobs/{id}/cancel", tag = "jobs",
    params(("id" = String, Path, description = "Its id or reference")),
    responses(
        (status = 200, body = JobView),
        Acting))]
pub async fn cancel(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
) -> Result<Json<JobView>, Problem> {
    let job = find(&app, &caller, &id).await?;
    jobs::cancel(&app, &job).await?;
    shown(&app, job).await.map(Json)
}

/// Asks the worker of a running job to end it. The job is `failed` with code `STOPPED` once it has.
#[utoipa::path(post, path = "/api/jobs/{id}/stop", tag = "jobs",
    params(("id" = String, Path, description = "Its id or reference")),
    responses(
        (status = 200, body = JobView, description = "It was asked; the job ends a moment later"),
        Acting))]
pub async fn stop(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
) -> Result<Json<JobView>, Problem> {
    let job = find(&app, &caller, &id).await?;
    jobs::stop(&app, &job).await?;
    shown(&app, job).await.map(Json)
}

/// Removes a job that has ended, with its files and its history.
#[utoipa::path(delete, path = "/api/jobs/{id}", tag = "jobs",
    params(("id" = String, Path, description = "Its id or reference")),
    responses(
        (status = 204, description = "It is gone"),
        Acting))]
pub async fn delete(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
) -> Result<StatusCode, Problem> {
    let job = find(&app, &caller, &id).await?;
    remove(&app, &job).await?;
    Ok(StatusCode::NO_CONTENT)
}
