//! `GET /v1/jobs` and below: where jobs stand, what they said and what happened to them.

use super::find;
use super::request::KIND;
use super::submit::address;
use crate::App;
use crate::caller::Caller;
use crate::jobs::{History, Listing};
use crate::logs::{Log, LogQuery};
use crate::problem::{Problem, Reading};
use crate::query::{PART_MAX, query};
use crate::view::ErrorView;
use axum::Json;
use axum::extract::{Extension, Path, State};
use axum::http::Uri;
use jiff::Timestamp;
use ode_job::{JobId, JobRecord, Phase, machines};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;
use std::sync::Arc;
use utoipa::{IntoParams, ToSchema};

/// A conversion as its owner sees it.
#[derive(Debug, Serialize, ToSchema)]
pub struct HtmlJob {
    /// Its id.
    #[schema(value_type = String, format = "uuid")]
    job_id: JobId,
    /// Your own id for it.
    external_id: Option<String>,
    /// `pending`, `processing`, `completed` or `failed`.
    #[schema(example = "processing")]
    status: &'static str,
    /// How far it is, in percent.
    #[schema(maximum = 100)]
    progress: u8,
    /// What it is doing.
    progress_message: Option<String>,
    /// Higher goes first.
    priority: i32,
    /// Tries after the first, so far.
    retry_count: u32,
    /// Which engine converted it, or would now.
    engine_version: String,
    /// Where the document lies, if it was not sent along.
    input_s3_path: Option<String>,
    /// Where the files appear, beside being kept here.
    output_s3_prefix: Option<String>,
    /// How it is converted, as it was sent.
    #[schema(value_type = Object)]
    config: Box<RawValue>,
    /// Why it failed.
    error: Option<ErrorView>,
    /// What it cost: `pages`, `cpu_ms`, `peak_memory_bytes`, `bytes_in`, `bytes_out`, `duration_ms`, `stages_ms`. Of a
    /// job that failed, what its last attempt came to, and not in lists.
    #[schema(value_type = Option<Object>)]
    telemetry: Option<Value>,
    /// Accepted.
    #[schema(value_type = String, format = "date-time")]
    #[serde(serialize_with = "crate::view::moment")]
    created_at: Timestamp,
    /// The last try began.
    #[schema(value_type = Option<String>, format = "date-time")]
    #[serde(serialize_with = "crate::view::moments")]
    started_at: Option<Timestamp>,
    /// Ended.
    #[schema(value_type = Option<String>, format = "date-time")]
    #[serde(serialize_with = "crate::view::moments")]
    finished_at: Option<Timestamp>,
    /// Where to look further.
    links: HtmlLinks,
}

/// Where the parts of a job are found.
#[derive(Debug, Serialize, ToSchema)]
pub struct HtmlLinks {
    /// The job.
    #[serde(rename = "self")]
    itself: String,
    /// Its files.
    assets: String,
    /// Its log.
    logs: String,
    /// What happened to it.
    events: String,
    /// The page, for a browser; a link that needs no key, once there is something to see.
    #[serde(skip_serializing_if = "Option::is_none")]
    view: Option<String>,
    /// All files as one archive, once they are there.
    #[serde(skip_serializing_if = "Option::is_none")]
    download: Option<String>,
}

impl HtmlJob {
    pub(super) fn new(app: &App, job: &JobRecord) -> Self {
        let text = |name: &str| job.input[name].as_str().map(str::to_owned);
        let itself = address(job.id);
        let is_done = job.phase == Phase::Done;
        let result = job.result.as_ref();
        HtmlJob {
            job_id: job.id,
            external_id: job.external_id.clone(),
            status: job.state.as_str(),
            progress: job.progress.percent,
            progress_message: job.progress.message.clone(),
            priority: job.priority,
            retry_count: job.retry_count,
            engine_version: job
                .engine_version
                .clone()
                .unwrap_or_else(|| env!("CARGO_PKG_VERSION").to_owned()),
            input_s3_path: text("input_s3_path"),
            output_s3_prefix: text("output_s3_prefix"),
            config: config(job),
            error: crate::view::error(job),
            telemetry: result.and_then(|result| result.get("telemetry")).cloned(),
            created_at: job.created_at,
            started_at: job.started_at,
            finished_at: job.finished_at,
            links: HtmlLinks {
                assets: format!("{itself}/assets"),
                logs: format!("{itself}/logs"),
                events: format!("{itself}/events"),
                view: is_done.then(|| super::files::signed(app, job.id, super::files::PAGE).0),
                download: is_done.then(|| format!("{itself}/download")),
                itself,
            },
        }
    }
}

/// The configuration as it was sent; as the database has it where it was not sent to us.
fn config(job: &JobRecord) -> Box<RawValue> {
    let sent = job.input["config_text"].as_str().map(str::to_owned);
    let text = sent.unwrap_or_else(|| job.config.to_string());
    RawValue::from_string(text).unwrap_or_else(|_| RawValue::from_string("{}".into()).expect("{} is JSON"))
}

/// One conversion.
#[utoipa::path(get, path = "/v1/jobs/{id}", tag = "html", security(("key" = [])),
    params(("id" = String, Path, description = "Its id or reference")),
    responses(
        (status = 200, body = HtmlJob),
        Reading))]
pub async fn detail(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
) -> Result<Json<HtmlJob>, Problem> {
    let job = find(&app, &caller, &id).await?;
    let mut shown = HtmlJob::new(&app, &job);
    if job.phase == Phase::Failed {
        shown.telemetry = last_telemetry(&app, job.id).await?;
    }
    Ok(Json(shown))
}

/// What the last attempt cost that ended without a result.
async fn last_telemetry(app: &App, job: JobId) -> Result<Option<Value>, Problem> {
    let mut events = app.store.events(job).await?;
    Ok(events.iter_mut().rev().find_map(|event| Some(event.meta.as_mut()?.get_mut("telemetry")?.take())))
}

/// Which conversions to list.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct HtmlListQuery {
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
pub struct HtmlJobs {
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
pub async fn list(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    uri: Uri,
) -> Result<Json<HtmlJobs>, Problem> {
    let query: HtmlListQuery = query(&uri, "status, external_id, since, cursor and limit")?;
    let filter = query.listing().filter(&caller, Some(machines::pipeline("html")), PART_MAX)?;
    if let Some(name) = &query.external_id {
        let id = app.store.find_external(caller.owner, name).await?;
        let found = app.store.jobs_by_id(id.into_iter()).await?;
        let is_meant = |job: &JobRecord| {
            job.pipeline.as_str() == "html" && filter.state.is_none_or(|state| state == job.state)
        };
        let jobs = found.iter().map(|job| &job.record).filter(|job| is_meant(job));
        return Ok(Json(HtmlJobs {
            jobs: jobs.map(|job| HtmlJob::new(&app, job)).collect(),
            next_cursor: None,
        }));
    }
    let page = app.store.owned_jobs(&filter).await?;
    let jobs = page.jobs.iter().map(|job| &job.record).filter(|job| job.pipeline.as_str() == "html");
    Ok(Json(HtmlJobs {
        jobs: jobs.map(|job| HtmlJob::new(&app, job)).collect(),
        next_cursor: page.next_cursor.map(|id| id.to_string()),
    }))
}

/// What the converter had to say.
#[utoipa::path(get, path = "/v1/jobs/{id}/logs", tag = "html", security(("key" = [])),
    params(("id" = String, Path, description = "Its id or reference"), LogQuery),
    responses(
        (status = 200, body = Log),
        Reading))]
pub async fn logs(
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
pub async fn events(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
) -> Result<Json<History>, Problem> {
    let job = find(&app, &caller, &id).await?;
    History::of(&app, job.id).await
}
