//! `GET /v1/jobs` and below: where jobs stand, what they said and what happened to them.

use super::{Shared, find};
use crate::machine::HTML;
use crate::request::{KIND, TELEMETRY};
use crate::view::HtmlJob;
use axum::Json;
use axum::extract::{Extension, Path, State};
use axum::http::Uri;
use ode_http::App;
use ode_http::caller::Caller;
use ode_http::jobs::{History, Listing};
use ode_http::logs::{Log, LogQuery};
use ode_http::problem::{Problem, Reading};
use ode_http::query::{PART_MAX, query};
use ode_job::{JobId, JobRecord, Phase};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::Arc;
use utoipa::{IntoParams, ToSchema};

/// One conversion.
#[utoipa::path(get, path = "/v1/jobs/{id}", tag = "html", security(("key" = [])),
    params(("id" = String, Path, description = "Its id or reference")),
    responses(
        (status = 200, body = HtmlJob),
        Reading))]
pub(super) async fn detail(
    State(app): State<Arc<App>>,
    Extension(service): Shared,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
) -> Result<Json<HtmlJob>, Problem> {
    let job = find(&app, &caller, &id).await?;
    let mut shown = HtmlJob::new(&app, &service, &job);
    if job.phase == Phase::Failed {
        shown.telemetry = last_telemetry(&app, job.id).await?;
    }
    Ok(Json(shown))
}

/// What the last attempt cost that ended without a result.
async fn last_telemetry(app: &App, job: JobId) -> Result<Option<Value>, Problem> {
    let mut events = app.store.events(job).await?;
    Ok(events.iter_mut().rev().find_map(|event| Some(event.meta.as_mut()?.get_mut(TELEMETRY)?.take())))
}

/// Which conversions to list.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct HtmlListQuery {
    /// Only jobs in this state: `pending`, `processing`, `completed` or `failed`.
    #[param(example = "completed")]
    status: Option<String>,
    /// Only the job with this id of yours.
    external_id: Option<String>,
    /// Only jobs that changed at this moment or later.
    #[param(value_type = Option<String>, format = "date-time")]
    since: Option<String>,
    /// Where the list goes on: the `next_cursor` of the part before.
    cursor: Option<String>,
    /// How many at most; 100 unless said otherwise.
    #[param(value_type = Option<u16>, minimum = 1, maximum = 1000)]
    limit: Option<String>,
}

impl HtmlListQuery {
    fn listing(&self) -> Listing<'_> {
        let HtmlListQuery { status, external_id: _, since, cursor, limit } = self;
        Listing {
            status: status.as_deref(),
            kind: Some(KIND),
            since: since.as_deref(),
            cursor: cursor.as_deref(),
            limit: limit.as_deref(),
        }
    }
}

/// A part of a list, newest first.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct HtmlJobs {
    /// The jobs.
    jobs: Vec<HtmlJob>,
    /// Where the next part begins, if there is one.
    next_cursor: Option<String>,
}

/// Your conversions, newest first.
#[utoipa::path(get, path = "/v1/jobs", tag = "html", security(("key" = [])), params(HtmlListQuery),
    responses(
        (status = 200, body = HtmlJobs),
        Reading))]
pub(super) async fn list(
    State(app): State<Arc<App>>,
    Extension(service): Shared,
    Extension(caller): Extension<Caller>,
    uri: Uri,
) -> Result<Json<HtmlJobs>, Problem> {
    let query: HtmlListQuery = query(&uri, "status, external_id, since, cursor and limit")?;
    let filter = query.listing().filter(&caller, Some(HTML), PART_MAX)?;
    if let Some(name) = &query.external_id {
        let id = app.store.find_external(caller.owner, name).await?;
        let found = app.store.jobs_by_id(id.into_iter()).await?;
        let is_meant =
            |job: &JobRecord| job.pipeline == HTML && filter.state.is_none_or(|state| state == job.state);
        let jobs = found.iter().map(|job| &job.record).filter(|job| is_meant(job));
        return Ok(Json(HtmlJobs {
            jobs: jobs.map(|job| HtmlJob::new(&app, &service, job)).collect(),
            next_cursor: None,
        }));
    }
    let page = app.store.owned_jobs(&filter, &[]).await?;
    let jobs = page.jobs.iter().map(|job| &job.record).filter(|job| job.pipeline == HTML);
    Ok(Json(HtmlJobs {
        jobs: jobs.map(|job| HtmlJob::new(&app, &service, job)).collect(),
        next_cursor: page.next_cursor.map(|id| id.to_string()),
    }))
}

/// What the converter had to say.
#[utoipa::path(get, path = "/v1/jobs/{id}/logs", tag = "html", security(("key" = [])),
    params(("id" = String, Path, description = "Its id or reference"), LogQuery),
    responses(
        (status = 200, body = Log),
        Reading))]
pub(super) async fn logs(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
    uri: Uri,
) -> Result<Json<Log>, Problem> {
    let lines = LogQuery::read(&uri)?;
    let job = find(&app, &caller, &id).await?;
    Log::of(&app, job.id, lines).await
}

/// What happened to a conversion.
#[utoipa::path(get, path = "/v1/jobs/{id}/events", tag = "html", security(("key" = [])),
    params(("id" = String, Path, description = "Its id or reference")),
    responses(
        (status = 200, body = History),
        Reading))]
pub(super) async fn events(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
) -> Result<Json<History>, Problem> {
    let job = find(&app, &caller, &id).await?;
    History::of(&app, job.id).await
}
