//! Printing maps: `POST /api/export`, and the jobs that come of it under `/api/print-jobs`.

use super::exports::export_links;
use super::maps::{PreviewQuery, arrived, map_id, no_map, read};
use super::orders::{OrderView, payer};
use super::previews::{PrintSite, Site};
use crate::Frozen;
use crate::machine::{EXPORT_FAILED, EXPORTING, PENDING_EXPORT, PRINT};
use crate::request::{OrderAsk, PrintInput};
use crate::sql::{self, FrozenMap, PaidOrder, PrintFacts, Printing};
use axum::Json;
use axum::body::Body;
use axum::extract::{Extension, Path, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use jiff::Timestamp;
use ode_http::App;
use ode_http::caller::Caller;
use ode_http::download::{Sent, attachment, respond};
use ode_http::idempotency::idempotency_key;
use ode_http::jobs::{find, forget};
use ode_http::kind::{self, JobKind};
use ode_http::problem::{Acting, Problem, ProblemDocument, Reading, Sending};
use ode_http::query::{PAGE_MAX, limit, query};
use ode_http::view::{ErrorView, ProgressView, error, moment, moments};
use ode_job::{ErrorCode, JobId, JobRecord, JobRef, Phase, State as JobState};
use ode_store::{Enqueued, ListFilter};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::sync::Arc;
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

/// What to print.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct ExportRequest<'a> {
    /// One of your maps, whose features are drawn: in the first layer that has none, or else as a layer of their own on
    /// top.
    #[serde(alias = "user_map_id")]
    #[schema(value_type = Option<String>, format = "uuid")]
    user_map_id: Option<Uuid>,
    /// The specification of the map; `docs/map.schema.json` describes it.
    #[serde(alias = "spec", borrow)]
    #[schema(value_type = Option<Object>)]
    data: Option<&'a RawValue>,
    /// Orders the print as well, with a key of an organisation that may: what `/api/print-jobs/{id}/order` takes.
    #[schema(value_type = Option<Object>)]
    order: Option<OrderAsk>,
}

const EXPORT_FORM: &str = "{\"userMapId\": …, \"data\": a map's specification}, or one of the two, and \"order\" to order it as well";
/// A specification in which everything is as it is unless told.
const PLAIN_MAP: &str = "{\"schema\": 1}";

/// A map that is about to be frozen.
struct Draft {
    frozen: Frozen,
    made_of: Option<(Uuid, i64)>,
    order: Option<OrderAsk>,
}

/// Checks what is asked for, and takes the features of the map it is made of as they are now.
async fn draft(app: &App, site: &PrintSite, caller: &Caller, body: Body) -> Result<Draft, Problem> {
    let body = arrived(body.into_data_stream()).await?;
    let ExportRequest { user_map_id, data, order } = read(&body, EXPORT_FORM)?;
    if let Some(ask) = &order {
        payer(caller)?;
        ask.check().map_err(Problem::invalid)?;
    }
    if user_map_id.is_none() && data.is_none() {
        return Err(Problem::invalid(format!("There is nothing to print. Send {EXPORT_FORM}.")));
    }
    let kept = match user_map_id {
        Some(id) => Some(sql::user_map(app.store.sql(), caller.owner, id).await?),
        None => None,
    };
    let made_of = kept.as_ref().map(|map| (map.id, map.version));
    let features = kept.map(|map| (map.name, map.data.unwrap_or_default()));
    let features = features.as_ref().map(|(name, features)| (name.as_str(), features.as_str()));
    let spec = Bytes::copy_from_slice(data.map_or(PLAIN_MAP, RawValue::get).as_bytes());
    let frozen = site.drawer.freeze(spec, features).await?;
    Ok(Draft { frozen, made_of, order })
}

/// What was made of a request to print.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Exported {
    /// The frozen map.
    #[schema(value_type = String, format = "uuid")]
    printable_map_id: Uuid,
    /// The job that prints it.
    #[schema(value_type = String, format = "uuid")]
    print_job_id: JobId,
    /// What you should know about the map, such as features that are not on it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<String>,
}

/// Freezes a map and makes the job that exports it as a PNG for print, both or neither.
///
/// With `order`, the print is ordered in the same step; an order that is refused leaves nothing behind.
#[utoipa::path(post, path = "/api/export", tag = "maps", request_body = ExportRequest,
    params(("Idempotency-Key" = Option<String>, Header,
        description = "A name for this request: sent again under it, it makes nothing new")),
    responses(
        (status = 201, body = Exported),
        (status = 200, body = Exported, description = "The same request came before; this is what it made"),
        Sending))]
pub(crate) async fn export(
    State(app): State<Arc<App>>,
    Extension(site): Site,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Problem> {
    app.check_disk()?;
    app.limits.upload(&caller).await?;
    let key = idempotency_key(&headers)?;
    let Draft { frozen, made_of, order } = draft(&app, &site, &caller, body).await?;
    let order = match order {
        Some(ask) => Some(PaidOrder { organisation: payer(&caller)?, ask }),
        None => None,
    };
    let printing = print(&app, &caller, FrozenMap::new(frozen.text, made_of), key, order).await?;
    let status = if printing.is_known { StatusCode::OK } else { StatusCode::CREATED };
    let (printable_map_id, print_job_id) = (printing.map, printing.job);
    answer(status, Exported { printable_map_id, print_job_id, warnings: frozen.warnings })
}

/// Freezes a map and makes its job.
pub(crate) async fn print(
    app: &App,
    caller: &Caller,
    map: FrozenMap,
    key: Option<String>,
    order: Option<PaidOrder>,
) -> Result<Printing, Problem> {
    let printing = sql::print_map(&app.store, caller.owner, &map, key, order).await?;
    app.lists.forget(caller.owner);
    let (job, map) = (printing.job, printing.map);
    tracing::info!(job.id = %job, job.pipeline = %PRINT, "accepted job {job} (map {map})");
    Ok(printing)
}

fn answer(status: StatusCode, exported: Exported) -> Result<Response, Problem> {
    let address = format!("/api/print-jobs/{}", exported.print_job_id);
    let address = HeaderValue::from_str(&address).map_err(|_| Problem::our_fault())?;
    Ok((status, [(header::LOCATION, address)], Json(exported)).into_response())
}

/// A small picture of a map that is not kept.
#[utoipa::path(post, path = "/api/export/preview", tag = "maps", request_body = ExportRequest, params(PreviewQuery),
    responses((status = 200, content_type = "image/png", body = Vec<u8>), Sending))]
pub(crate) async fn preview(
    State(app): State<Arc<App>>,
    Extension(site): Site,
    Extension(caller): Extension<Caller>,
    uri: Uri,
    body: Body,
) -> Result<Response, Problem> {
    let width = PreviewQuery::read(&uri)?;
    let Draft { frozen, .. } = draft(&app, &site, &caller, body).await?;
    let sha256 = ode_store::sha256_hex(&frozen.text);
    let png = site.preview(&sha256, frozen.text, width).await?;
    Ok(([(header::CONTENT_TYPE, "image/png")], png).into_response())
}

/// A job that prints a map.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = PrintJob)]
pub(crate) struct PrintJobView {
    /// Its id.
    #[schema(value_type = String, format = "uuid")]
    id: JobId,
    /// The name people use for it; taken wherever an id is.
    reference: String,
    /// The map it prints.
    #[schema(value_type = Option<String>, format = "uuid")]
    printable_map_id: Option<Uuid>,
    /// Where it stands: `pending_export`, `exporting`, `export_failed`, `export_complete`, `ordering`, `order_failed`,
    /// `ordered` or `fulfilled`.
    #[schema(value_type = String, example = "pending_export")]
    state: JobState,
    /// Where it stands, in the same words for every kind of work.
    #[schema(value_type = String, example = "ready")]
    phase: Phase,
    /// How far its attempt is.
    progress: ProgressView,
    /// Its picture, once it is there.
    export: Option<ExportView>,
    /// What you should know about the picture, such as features that are not on it.
    warnings: Vec<String>,
    /// Its order, if one was asked for.
    order: Option<OrderView>,
    /// Why it failed.
    error: Option<ErrorView>,
    /// How many attempts were made.
    attempt_count: u32,
    /// How many of them because one before had failed.
    retry_count: u32,
    /// When it will be tried again, where it waits for that.
    #[schema(value_type = Option<String>, format = "date-time")]
    #[serde(serialize_with = "moments")]
    retry_at: Option<Timestamp>,
    /// When it was asked for.
    #[schema(value_type = String, format = "date-time")]
    #[serde(serialize_with = "moment")]
    created_at: Timestamp,
    /// When it last changed.
    #[schema(value_type = String, format = "date-time")]
    #[serde(serialize_with = "moment")]
    updated_at: Timestamp,
}

/// A picture for print.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Export)]
pub(crate) struct ExportView {
    /// The digest of the file, hexadecimal.
    sha256: String,
    /// Its size.
    bytes: i64,
    /// Where it can be fetched for a while, by whoever has this.
    url: String,
}

impl PrintJobView {
    fn new(app: &App, job: &JobRecord, known: &mut PrintFacts) -> Self {
        let url = |sha256: &str| export_links(app).url(sha256, app.settings.link_ttl);
        PrintJobView {
            id: job.id,
            reference: job.reference.clone(),
            printable_map_id: PrintInput::of(&job.input).printable_map_id,
            state: job.state,
            phase: job.phase,
            progress: ProgressView { percent: job.progress.percent, message: job.progress.message.clone() },
            export: known.exports.get(&job.id).map(|file| ExportView {
                sha256: file.sha256.clone(),
                bytes: file.bytes,
                url: url(&file.sha256),
            }),
            warnings: known.warnings.remove(&job.id).unwrap_or_default(),
            order: known.orders.remove(&job.id).map(OrderView::from),
            error: error(job),
            attempt_count: job.attempt_count,
            retry_count: job.retry_count,
            retry_at: job.run_at,
            created_at: job.created_at,
            updated_at: job.updated_at,
        }
    }
}

/// Which print jobs to list.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct PrintJobQuery {
    /// Where the list goes on: the `next_cursor` of the part before.
    #[param(value_type = Option<String>, format = "uuid")]
    cursor: Option<Uuid>,
    /// Only jobs in this state.
    #[param(value_type = Option<String>, example = "export_complete")]
    state: Option<JobState>,
    /// How many at most; 100 unless said otherwise.
    #[param(value_type = Option<u16>, minimum = 1, maximum = 200)]
    limit: Option<String>,
}

/// Print jobs at the addresses that all pipelines share.
pub(crate) fn job_kind() -> JobKind {
    // One that was ordered rests until it is delivered.
    let label = |job: &JobRecord| match job.phase {
        Phase::Held => "Ready",
        phase => kind::label(phase),
    };
    // One that was exported rests as well, and would keep everybody waiting who waits until nothing is under way.
    JobKind { label, is_listed: false, ..JobKind::new(PRINT) }
}

/// A part of a list of print jobs, newest first.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct PrintJobList {
    /// The jobs.
    print_jobs: Vec<PrintJobView>,
    /// Where the next part begins, if there is one.
    #[schema(value_type = Option<String>, format = "uuid")]
    next_cursor: Option<JobId>,
}

/// Your print jobs, newest first.
#[utoipa::path(get, path = "/api/print-jobs", tag = "maps", params(PrintJobQuery),
    responses((status = 200, body = PrintJobList), Reading))]
pub(crate) async fn list(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    uri: Uri,
) -> Result<Json<PrintJobList>, Problem> {
    let asked: PrintJobQuery = query(&uri, "cursor, state and limit")?;
    let filter = ListFilter {
        owner: Some(caller.owner),
        pipeline: Some(PRINT),
        state: asked.state,
        before: asked.cursor.map(JobId),
        limit: limit(asked.limit.as_deref(), PAGE_MAX)?,
        ..ListFilter::default()
    };
    let page = app.store.jobs(&filter).await?;
    let ids: Vec<JobId> = page.jobs.iter().map(|job| job.id).collect();
    let mut known = PrintFacts::of(app.store.sql(), &ids).await?;
    let view = |job: &JobRecord| PrintJobView::new(&app, job, &mut known);
    Ok(Json(PrintJobList { print_jobs: page.jobs.iter().map(view).collect(), next_cursor: page.next_cursor }))
}

/// One of your print jobs.
#[utoipa::path(get, path = "/api/print-jobs/{id}", tag = "maps",
    params(("id" = String, Path, description = "Its id or reference")),
    responses((status = 200, body = PrintJobView), Reading))]
pub(crate) async fn detail(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
) -> Result<Json<PrintJobView>, Problem> {
    let job = find_print(&app, &caller, &id).await?;
    shown(&app, &job).await.map(Json)
}

/// A print job of the caller's; another job of theirs is not found here.
pub(crate) async fn find_print(app: &App, caller: &Caller, id: &str) -> Result<JobRecord, Problem> {
    let job = find(app, caller, id).await?;
    if job.pipeline == PRINT { Ok(job) } else { Err(Problem::no_job()) }
}

async fn shown(app: &App, job: &JobRecord) -> Result<PrintJobView, Problem> {
    Ok(PrintJobView::new(app, job, &mut PrintFacts::of(app.store.sql(), &[job.id]).await?))
}

/// The picture of one of your print jobs, as a file.
#[utoipa::path(get, path = "/api/print-jobs/{id}/download", tag = "maps",
    params(("id" = String, Path, description = "Its id or reference"),
        ("Range" = Option<String>, Header, description = "Only a part of it: `bytes=0-499`")),
    responses(
        (status = 200, description = "The picture", content_type = "image/png", body = Vec<u8>),
        (status = 206, description = "The part that was asked for", content_type = "image/png", body = Vec<u8>),
        (status = 409, body = ProblemDocument, content_type = "application/problem+json", description = "Not ready yet"),
        (status = 416, body = ProblemDocument, content_type = "application/problem+json"),
        Reading))]
pub(crate) async fn download(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let job = find_print(&app, &caller, &id).await?;
    let exports = sql::exports(app.store.sql(), &[job.id]).await?;
    let missing = match job.state {
        PENDING_EXPORT | EXPORTING => ErrorCode::NotReady,
        EXPORT_FAILED => ErrorCode::Conflict,
        _ => ErrorCode::Expired,
    };
    let file = exports.get(&job.id).ok_or_else(|| Problem::from(missing))?;
    let sent = Sent {
        disposition: attachment(&format!("{}.png", job.reference)),
        cache: "private, no-store",
        counted_for: None,
    };
    respond(&app, file, &headers, sent).await
}

/// Tries a failed print job again, at the stage that failed.
#[utoipa::path(post, path = "/api/print-jobs/{id}/retry", tag = "maps",
    params(("id" = String, Path, description = "Its id or reference")),
    responses((status = 200, body = PrintJobView), Acting))]
pub(crate) async fn retry(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
) -> Result<Json<PrintJobView>, Problem> {
    let job = try_again(&app, &caller, &id).await?;
    let job = app.store.job(JobRef::Id(job)).await?;
    shown(&app, &job).await.map(Json)
}

/// Tries a failed print job of the caller's again.
pub(crate) async fn try_again(app: &App, caller: &Caller, id: &str) -> Result<JobId, Problem> {
    let job = find_print(app, caller, id).await?;
    app.store.retry(job.id).await?;
    forget(app, &job);
    Ok(job.id)
}

/// Prints the map of a job once more, as a job of its own.
#[utoipa::path(post, path = "/api/print-jobs/{id}/reprint", tag = "maps",
    params(("id" = String, Path, description = "Its id or reference"),
        ("Idempotency-Key" = Option<String>, Header,
            description = "A name for this request: sent again under it, it makes nothing new")),
    responses(
        (status = 201, body = Exported),
        (status = 200, body = Exported, description = "The same request came before; this is what it made"),
        Acting))]
pub(crate) async fn reprint(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let job = find_print(&app, &caller, &id).await?;
    let map = PrintInput::of(&job.input).printable_map_id.ok_or_else(no_map)?;
    printed_again(&app, &caller, map, &headers).await
}

/// Prints a frozen map once more.
#[utoipa::path(post, path = "/api/printable-maps/{id}/export", tag = "maps",
    params(("id" = String, Path, description = "The id of the frozen map"),
        ("Idempotency-Key" = Option<String>, Header,
            description = "A name for this request: sent again under it, it makes nothing new")),
    responses(
        (status = 201, body = Exported),
        (status = 200, body = Exported, description = "The same request came before; this is what it made"),
        Acting))]
pub(crate) async fn export_again(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    printed_again(&app, &caller, map_id(&id)?, &headers).await
}

/// Prints a frozen map of the caller's once more.
pub(crate) async fn print_again(
    app: &App,
    caller: &Caller,
    map: Uuid,
    key: Option<String>,
) -> Result<Enqueued, Problem> {
    app.limits.upload(caller).await?;
    let enqueued = sql::reprint(&app.store, caller.owner, map, key).await?;
    app.lists.forget(caller.owner);
    Ok(enqueued)
}

async fn printed_again(
    app: &App,
    caller: &Caller,
    map: Uuid,
    headers: &HeaderMap,
) -> Result<Response, Problem> {
    let enqueued = print_again(app, caller, map, idempotency_key(headers)?).await?;
    let status = match enqueued {
        Enqueued::New(_) => StatusCode::CREATED,
        Enqueued::Existing(_) => StatusCode::OK,
    };
    answer(status, Exported { printable_map_id: map, print_job_id: enqueued.id(), warnings: Vec::new() })
}
