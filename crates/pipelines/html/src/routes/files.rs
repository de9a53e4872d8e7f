//! The files of a conversion: listed with links, shown to a browser behind bars, and all at once.
//!
//! A link carries in its path what shows that we made it, so that a page finds its style sheet and its fonts by names
//! relative to its own. Whatever is served like that runs in a sandbox without an origin: it cannot reach this site as
//! its reader, and nothing outside it.

use super::{Service, Shared, find, zip};
use crate::request::HtmlInput;
use crate::view::{self, LINK, PAGE};
use axum::Json;
use axum::extract::{Extension, Path, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Redirect, Response};
use jiff::Timestamp;
use ode_http::App;
use ode_http::caller::Caller;
use ode_http::download::{attachment, check_done};
use ode_http::etag;
use ode_http::problem::{Fetching, Problem, ProblemDocument, Reading};
use ode_job::{Artifact, ErrorCode, JobId, JobRecord, JobRef};
use serde::Serialize;
use std::sync::Arc;
use utoipa::ToSchema;

const ROLE: &str = "asset";
/// Nothing but what belongs to the page, in no origin at all.
const POLICY: &str = "sandbox allow-popups; default-src 'none'; style-src 'self' 'unsafe-inline'; \
                      img-src 'self' data:; font-src 'self' data:; base-uri 'none'; form-action 'none'; \
                      frame-ancestors 'self'";

/// A file of a conversion.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Asset {
    /// `html`, `css`, `js`, `svg`, `font` or `image`.
    #[schema(example = "html")]
    asset_type: &'static str,
    /// Its name, relative to the page.
    path: String,
    /// Where it was published, if that was asked for.
    s3_path: Option<String>,
    /// Its size.
    file_size_bytes: i64,
    /// SHA-256, in hexadecimal digits.
    content_hash: String,
    /// A link that needs no key.
    url: String,
    /// Until when the link works.
    #[schema(value_type = String, format = "date-time")]
    #[serde(serialize_with = "ode_http::view::moment")]
    expires_at: Timestamp,
}

/// The files of a conversion.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Assets {
    /// The files.
    assets: Vec<Asset>,
}

/// The files of a conversion; none before it has ended well.
#[utoipa::path(get, path = "/v1/jobs/{id}/assets", tag = "html", security(("key" = [])),
    params(("id" = String, Path, description = "Its id or reference")),
    responses(
        (status = 200, body = Assets),
        Reading))]
pub(super) async fn assets(
    State(app): State<Arc<App>>,
    Extension(service): Shared,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
) -> Result<Json<Assets>, Problem> {
    let job = find(&app, &caller, &id).await?;
    let prefix = HtmlInput::of(&job.input).output_s3_prefix;
    let prefix = prefix.as_deref().map(|prefix| prefix.trim_end_matches('/'));
    let asset = |file: Artifact| {
        let (url, expires_at) = view::link(&app, &service, job.id, &file.name);
        Asset {
            asset_type: asset_type(&file.content_type),
            s3_path: prefix.map(|prefix| format!("{prefix}/{}", file.name)),
            path: file.name,
            file_size_bytes: file.bytes,
            content_hash: file.sha256,
            url,
            expires_at,
        }
    };
    let assets = stored(&app, job.id).await?.into_iter().map(asset).collect();
    Ok(Json(Assets { assets }))
}

async fn stored(app: &App, job: JobId) -> Result<Vec<Artifact>, Problem> {
    let mut files = app.store.artifacts(job).await?;
    files.retain(|file| file.role == ROLE);
    Ok(files)
}

fn asset_type(content_type: &str) -> &'static str {
    match content_type.split(';').next().unwrap_or_default() {
        "text/html" => "html",
        "text/css" => "css",
        "text/javascript" => "js",
        "image/svg+xml" => "svg",
        font if font.starts_with("font/") => "font",
        _ => "image",
    }
}

/// The page of a conversion, for a browser: leads to a link that needs no key.
#[utoipa::path(get, path = "/v1/jobs/{id}/view", tag = "html", security(("key" = [])),
    params(("id" = String, Path, description = "Its id or reference")),
    responses(
        (status = 303, description = "The page", headers(("Location" = String, description = "The page"))),
        Fetching,
        (status = 409, body = ProblemDocument, content_type = "application/problem+json", description = "Not ready yet")))]
pub(super) async fn view(
    State(app): State<Arc<App>>,
    Extension(service): Shared,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
) -> Result<Response, Problem> {
    let job = find(&app, &caller, &id).await?;
    let location =
        HeaderValue::from_str(&page_link(&app, &service, &job)?).map_err(|_| Problem::our_fault())?;
    Ok((StatusCode::SEE_OTHER, [(header::LOCATION, location)]).into_response())
}

/// Leads to the page that a document became. It is shown behind bars, and elsewhere if the operator wants that.
pub(super) async fn page(
    State(app): State<Arc<App>>,
    Extension(service): Shared,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
) -> Result<Redirect, Problem> {
    let job = find(&app, &caller, &id).await?;
    page_link(&app, &service, &job).map(|address| Redirect::to(&address))
}

/// A link to the page of a conversion that has ended well.
fn page_link(app: &App, service: &Service, job: &JobRecord) -> Result<String, Problem> {
    check_done(job)?;
    Ok(view::link(app, service, job.id, PAGE).0)
}

/// A file of a conversion, to whoever brings the link.
#[utoipa::path(get, path = "/v1/view/{id}/{pass}/{path}", tag = "html", security(()),
    params(("id" = String, Path, description = "The job's id"),
        ("pass" = String, Path, description = "What shows that the link was made here"),
        ("path" = String, Path, description = "The file's name")),
    responses(
        (status = 200, description = "The file", content_type = "text/html", body = String),
        (status = 304, description = "It is the one that is there already"),
        Fetching,
        (status = 404, body = ProblemDocument, content_type = "application/problem+json",
            description = "The link is wrong or too old, or the file was removed")))]
pub(super) async fn by_link(
    State(app): State<Arc<App>>,
    Path((id, pass, name)): Path<(String, String, String)>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let job = check_pass(&app, &id, &pass)?;
    // A job that was removed is as gone as a link that is too old.
    app.store.job(JobRef::Id(job)).await.map_err(|_| wrong_link())?;
    let file = stored(&app, job).await?.into_iter().find(|file| file.name == name).ok_or_else(wrong_link)?;
    let tag = format!("\"{}\"", file.sha256);
    let head = [
        (header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY)),
        // The page has no origin, so that its own fonts and pictures come from elsewhere in the browser's eyes. Who has
        // the link may have the file.
        (header::ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*")),
        (HeaderName::from_static("cross-origin-resource-policy"), HeaderValue::from_static("cross-origin")),
        (header::CACHE_CONTROL, HeaderValue::from_static("private, max-age=600")),
        (header::ETAG, HeaderValue::from_str(&tag).map_err(|_| Problem::our_fault())?),
    ];
    if etag::is_known(&headers, &tag) {
        return Ok((StatusCode::NOT_MODIFIED, head).into_response());
    }
    let content = app.blobs.get(&file.path, &file.sha256).await?;
    let kind = HeaderValue::from_str(&file.content_type).map_err(|_| Problem::our_fault())?;
    Ok((head, [(header::CONTENT_TYPE, kind)], content).into_response())
}

fn wrong_link() -> Problem {
    let detail = "This link does not work, or no longer. Ask for the job again to get a new one.";
    Problem::new(ErrorCode::NotFound, detail)
}

fn check_pass(app: &App, id: &str, pass: &str) -> Result<JobId, Problem> {
    let id: JobId = id.parse().map(JobId).map_err(|_| wrong_link())?;
    let (expires, signature) = pass.split_once('-').ok_or_else(wrong_link)?;
    let expires: i64 = expires.parse().map_err(|_| wrong_link())?;
    let is_signed = app.signer.is_signed(LINK, &format!("{id} {expires}"), signature);
    if is_signed && expires >= Timestamp::now().as_second() { Ok(id) } else { Err(wrong_link()) }
}

/// All files of a conversion as one archive.
#[utoipa::path(get, path = "/v1/jobs/{id}/download", tag = "html", security(("key" = [])),
    params(("id" = String, Path, description = "Its id or reference")),
    responses(
        (status = 200, description = "The archive", content_type = "application/zip", body = String),
        Fetching,
        (status = 404, body = ProblemDocument, content_type = "application/problem+json",
            description = "No such job of yours, or its files were removed (EXPIRED)"),
        (status = 409, body = ProblemDocument, content_type = "application/problem+json", description = "Not ready yet")))]
pub(super) async fn download(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
) -> Result<Response, Problem> {
    let job = find(&app, &caller, &id).await?;
    send_archive(&app, &job).await
}

/// Sends the files of a job that was found.
pub(crate) async fn send_archive(app: &App, job: &JobRecord) -> Result<Response, Problem> {
    check_done(job)?;
    let files = stored(app, job.id).await?;
    if files.is_empty() {
        return Err(ErrorCode::Expired.into());
    }
    let mut contents = Vec::with_capacity(files.len());
    for file in files {
        let content = app.blobs.get(&file.path, &file.sha256).await?;
        contents.push((file.name, content));
    }
    let archive = tokio::task::spawn_blocking(move || zip::pack(&contents));
    let archive = archive.await.ok().and_then(Result::ok).ok_or_else(Problem::our_fault)?;
    let document = job.document().and_then(|document| document.name);
    let sent = document.as_deref().map(|name| name.trim_end_matches(".pdf"));
    let name = job.external_id.as_deref().or(sent).unwrap_or("document");
    let name = HeaderValue::from_str(&attachment(&format!("{name}.zip")));
    let head = [
        (header::CONTENT_TYPE, HeaderValue::from_static("application/zip")),
        (header::CONTENT_DISPOSITION, name.map_err(|_| Problem::our_fault())?),
    ];
    Ok((head, archive).into_response())
}
