//! Reading jobs and acting on them: `/api/jobs` and below.

use crate::App;
use crate::caller::Caller;
use crate::etag;
use crate::lists::Listed;
use crate::problem::{Acting, Problem, Reading};
use crate::query::{PAGE_MAX, cursor, limit, query, since};
use crate::view::{EventView, JobView, why_no_retry};
use axum::Json;
use axum::extract::{Extension, Path, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use jiff::Timestamp;
use ode_job::{ErrorCode, Event, JobId, JobRecord, JobRef, Phase, State as JobState};
use ode_store::{Converting, Destination, OwnedFilter, OwnedJob, OwnedPage};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use std::sync::Arc;
use std::time::Duration;
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
    fn filter(self, caller: &Caller) -> Result<OwnedFilter, Problem> {
        let state = self.status.map(|state| state.parse::<JobState>());
        let state = state.transpose().map_err(|error| Problem::invalid(error.to_string()))?;
        let (since, before) = (since(self.since.as_deref())?, cursor(self.cursor.as_deref())?);
        let limit = limit(self.limit.as_deref(), PAGE_MAX)?;
        Ok(OwnedFilter { owner: caller.owner, state, phase: None, kind: self.mapping, since, before, limit })
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
    #[serde(serialize_with = "crate::view::moment")]
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
    let filter = query.filter(&caller)?;
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
    let page = app.store.owned_jobs(filter).await?;
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

/// Jobs as they are shown.
pub async fn views(app: &App, jobs: &[OwnedJob]) -> Result<Vec<JobView>, Problem> {
    let is_live = |job: &&OwnedJob| matches!(job.record.phase, Phase::Held | Phase::Ready | Phase::Running);
    let ids: Vec<JobId> = jobs.iter().filter(is_live).map(|job| job.record.id).collect();
    let left = app.store.times_left(&ids).await?;
    Ok(jobs.iter().map(|job| JobView::new(job, left.get(&job.record.id).copied())).collect())
}

/// What keeps documents from being converted, where some wait.
pub async fn notice(app: &App, active_count: i64) -> Result<Option<&'static str>, Problem> {
    if active_count == 0 {
        return Ok(None);
    }
    Ok(match app.store.converting().await? {
        Converting::Works => None,
        Converting::Away => Some("The converter is not answering. Your files wait and go on by themselves."),
        Converting::Nobody => {
            Some("Nothing is converted at the moment. Your files wait and go on by themselves.")
        }
    })
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
        hash.update([record.progress.percent, u8::from(job.has_result()), u8::from(job.has_source())]);
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

/// A job of the caller's; somebody else's is not found, like one that does not exist.
pub async fn find(app: &App, caller: &Caller, id: &str) -> Result<JobRecord, Problem> {
    let name: JobRef = id.parse().map_err(|_| Problem::no_job())?;
    Ok(app.store.job_of(caller.owner, name).await?)
}

/// The job as it is shown.
pub async fn shown(app: &App, job: JobRecord) -> Result<JobView, Problem> {
    let jobs = app.store.jobs_by_id(std::iter::once(job.id)).await?;
    views(app, &jobs).await?.pop().ok_or_else(Problem::no_job)
}

/// A job's history.
#[derive(Debug, Serialize, ToSchema)]
pub struct History {
    /// What happened, oldest first.
    events: Vec<EventView>,
}

impl History {
    /// That of this job.
    pub async fn of(app: &App, job: JobId) -> Result<Json<Self>, Problem> {
        let events = app.store.events(job).await?;
        Ok(Json(History { events: events.into_iter().map(EventView::from).collect() }))
    }
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
    try_again(&app, &job).await?;
    changed(&app, job).await
}

/// Tries a job again, unless that cannot help.
pub async fn try_again(app: &App, job: &JobRecord) -> Result<(), Problem> {
    let jobs = app.store.jobs_by_id(std::iter::once(job.id)).await?;
    let failed = jobs.first().filter(|job| job.record.phase == Phase::Failed);
    if let Some(code) = failed.and_then(why_no_retry) {
        let detail = format!("Trying again cannot help: {}.", code.sentence());
        return Err(Problem::with_status(StatusCode::CONFLICT, code, detail));
    }
    app.store.retry(job.id).await?;
    Ok(())
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
    app.store.cancel(job.id).await?;
    changed(&app, job).await
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
    app.store.stop(job.id).await?;
    changed(&app, job).await
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

/// Removes a job, with what was published of it, and tells whoever has it on the screen.
pub async fn remove(app: &Arc<App>, job: &JobRecord) -> Result<(), Problem> {
    if published_at(job).is_some() && job.pipeline.next(job.state, Event::Retried).is_ok() {
        take_away_alone(app, job.id).await?;
    } else {
        take_away(app, job).await?;
    }
    forget(app, job);
    // Its history is gone with it, so that nothing else would tell other tabs.
    owners(job).for_each(|owner| app.hub.resync_of(owner));
    Ok(())
}

/// Who removes a failed job waits this long for others who do the same.
const REMOVAL_PATIENCE: Duration = Duration::from_secs(30);

/// Where files of a job may lie beside our own storage.
fn published_at(job: &JobRecord) -> Option<Destination<'_>> {
    let (address, owner) = (job.input["output_s3_prefix"].as_str()?, owners(job).last()?);
    Some(Destination { owner, job: job.id, fence: i64::MAX, address })
}

async fn take_away(app: &App, job: &JobRecord) -> Result<(), Problem> {
    // What lies at the prefix of a job that is not over is still being put together.
    job.pipeline.next(job.state, Event::Expired).map_err(ode_store::Error::from)?;
    if let Some(from) = published_at(job) {
        // First what others see. While the storage is away, the job stays, and can be removed later.
        app.settings.service.places.withdraw(from).await?;
    }
    Ok(app.store.delete_job(job.id, &app.blobs).await?)
}

/// The same for a job that somebody may retry meanwhile: what its next attempt publishes stays. It goes on when who asked for
/// it has left, since others wait for its end.
async fn take_away_alone(app: &Arc<App>, id: JobId) -> Result<(), Problem> {
    let app = app.clone();
    let removal = async move {
        let now = async { Ok(take_away(&app, &app.store.job(JobRef::Id(id)).await?).await) };
        app.store.at_leftovers(REMOVAL_PATIENCE, now).await
    };
    let busy = "What jobs left at output prefixes is being taken away. Try again in a moment.";
    let removed = tokio::spawn(removal).await.map_err(|_| Problem::our_fault())??;
    removed.unwrap_or_else(|| Err(Problem::new(ErrorCode::Busy, busy)))
}

/// The job after a change.
async fn changed(app: &App, job: JobRecord) -> Result<Json<JobView>, Problem> {
    forget(app, &job);
    shown(app, job).await.map(Json)
}

/// No list may hide from now on what changed with this job.
pub fn forget(app: &App, job: &JobRecord) {
    for owner in owners(job) {
        app.lists.forget(owner);
    }
}

/// Everyone who sees a job: after a session's jobs were given to a user, both.
pub fn owners(job: &JobRecord) -> impl Iterator<Item = ode_job::Owner> + use<> {
    ode_job::Owner::of(job.session_id, job.user_id, job.organisation_id)
}
