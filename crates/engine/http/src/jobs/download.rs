//! `GET /api/jobs/{id}/download`: the result, to whoever owns the job or brings a link that we signed.

use crate::App;
use crate::callers::caller::Caller;
use crate::callers::session::Signer;
use crate::jobs::find;
use crate::server::etag;
use crate::server::problem::{Acting, Fetching, Problem, ProblemDocument, sentence};
use axum::Json;
use axum::body::Body;
use axum::extract::{Extension, Path, Query, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use futures_util::stream::{self, StreamExt as _};
use jiff::Timestamp;
use ode_job::{Artifact, ErrorCode, JobId, JobRecord, JobRef, Phase};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde::{Deserialize, Serialize};
use std::ops::Range;
use std::sync::Arc;
use utoipa::{IntoParams, ToSchema};

/// A job's result, as a file.
#[utoipa::path(get, path = "/api/jobs/{id}/download", tag = "jobs",
    params(("id" = String, Path, description = "Its id or reference"),
        ("Range" = Option<String>, Header, description = "Only a part of it: `bytes=0-499`")),
    responses(
        (status = 200, description = "The file; a zip of a document that became a page",
            content((String = "application/xml"), (String = "application/zip"))),
        (status = 206, description = "The part that was asked for", content_type = "application/xml", body = String),
        Fetching,
        (status = 404, body = ProblemDocument, content_type = "application/problem+json",
            description = "No such job of yours, or its file was removed (EXPIRED)"),
        (status = 409, body = ProblemDocument, content_type = "application/problem+json", description = "Not ready yet")))]
pub async fn download(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let job = find(&app, &caller, &id).await?;
    match &app.kinds.of(job.pipeline).download {
        Some(download) => download.send(app.clone(), job).await,
        None => send(&app, &job, &headers).await,
    }
}

/// A link that needs no cookie and no key.
#[derive(Debug, Serialize, ToSchema)]
pub struct Link {
    /// Where the file can be fetched, by whoever has this.
    url: String,
    /// Until when.
    #[schema(value_type = String, format = "date-time")]
    #[serde(serialize_with = "crate::jobs::view::moment")]
    expires_at: Timestamp,
}

/// Makes a link to a job's result that works without a cookie or a key, for a short while.
#[utoipa::path(post, path = "/api/jobs/{id}/link", tag = "jobs",
    params(("id" = String, Path, description = "Its id or reference")),
    responses(
        (status = 201, body = Link),
        Acting))]
pub async fn link(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
) -> Result<(StatusCode, Json<Link>), Problem> {
    let job = find(&app, &caller, &id).await?;
    result_of(&app, &job).await?;
    let expires_at = Timestamp::now() + app.settings.link_ttl;
    let expires = expires_at.as_second();
    let signature = app.signer.sign(LINK, &link_text(job.id, expires));
    let base = app.settings.public_url.as_deref().unwrap_or_default();
    let url = format!("{base}/api/files/{}?expires={expires}&signature={signature}", job.id);
    Ok((StatusCode::CREATED, Json(Link { url, expires_at })))
}

const LINK: &str = "link";

fn link_text(job: JobId, expires: i64) -> String {
    format!("{job} {expires}")
}

/// What a link carries.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct LinkQuery {
    /// Until when it works, in seconds since 1970.
    expires: i64,
    /// That we made it.
    signature: String,
}

impl LinkQuery {
    pub fn expires(&self) -> i64 {
        self.expires
    }

    /// Whether we made it, for this and for this long.
    pub fn is_good(&self, signer: &Signer, purpose: &str, text: &str) -> bool {
        signer.is_signed(purpose, text, &self.signature) && self.expires >= Timestamp::now().as_second()
    }
}

/// A job's result, to whoever brings the link.
#[utoipa::path(get, path = "/api/files/{id}", tag = "jobs", security(()),
    params(("id" = String, Path, description = "The job's id"), LinkQuery),
    responses(
        (status = 200, description = "The file", content_type = "application/xml", body = String),
        (status = 206, description = "The part that was asked for", content_type = "application/xml", body = String),
        Fetching,
        (status = 404, body = ProblemDocument, content_type = "application/problem+json",
            description = "The link is wrong or too old, or the file was removed")))]
pub async fn by_link(
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
    uri: Uri,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let Query(query) = Query::<LinkQuery>::try_from_uri(&uri).map_err(|_| wrong_link())?;
    let id = id.parse().map(JobId).map_err(|_| wrong_link())?;
    if !query.is_good(&app.signer, LINK, &link_text(id, query.expires)) {
        return Err(wrong_link());
    }
    let job = app.store.job(JobRef::Id(id)).await.map_err(|_| wrong_link())?;
    send(&app, &job, &headers).await
}

pub fn wrong_link() -> Problem {
    Problem::new(
        ErrorCode::NotFound,
        "This link does not work, or no longer. Ask whoever gave it to you for a new one.",
    )
}

/// The file with a job's result, or why there is none.
async fn result_of(app: &App, job: &JobRecord) -> Result<Artifact, Problem> {
    check_done(job)?;
    let mut files = app.store.artifacts(job.id).await?;
    files.retain(|file| file.role == "result");
    if files.is_empty() { Err(ErrorCode::Expired.into()) } else { Ok(files.swap_remove(0)) }
}

/// Says why there is no result, where there is none.
pub fn check_done(job: &JobRecord) -> Result<(), Problem> {
    match job.phase {
        Phase::Done => Ok(()),
        Phase::Failed | Phase::Cancelled => Err(failed(job)),
        Phase::Held | Phase::Ready | Phase::Running => Err(ErrorCode::NotReady.into()),
    }
}

/// There is no result and will be none, unless it is tried again.
fn failed(job: &JobRecord) -> Problem {
    let code = job.error_code.as_deref().and_then(|code| code.parse().ok()).unwrap_or(ErrorCode::Conflict);
    let why = sentence(job.error_message.as_deref().unwrap_or_default());
    let detail = format!("This document was not converted: {why}");
    Problem::with_status(StatusCode::CONFLICT, code, detail).titled("The conversion failed")
}

async fn send(app: &Arc<App>, job: &JobRecord, headers: &HeaderMap) -> Result<Response, Problem> {
    let file = result_of(app, job).await?;
    let sent = Sent {
        disposition: attachment(&result_name(job, &file)),
        cache: "private, no-store",
        counted_for: Some(job.id),
    };
    respond(app, &file, headers, sent).await
}

/// How a file is sent.
pub struct Sent {
    /// To be saved or to be shown, and under which name.
    pub disposition: String,
    /// Who may keep it.
    pub cache: &'static str,
    /// The job whose downloads are counted.
    pub counted_for: Option<JobId>,
}

/// Sends a file, or the part of it that is asked for.
pub async fn respond(
    app: &Arc<App>,
    file: &Artifact,
    headers: &HeaderMap,
    sent: Sent,
) -> Result<Response, Problem> {
    let bytes = u64::try_from(file.bytes).unwrap_or_default();
    let tag = format!("\"{}\"", file.sha256);
    if etag::is_known(headers, &tag) {
        return Ok((StatusCode::NOT_MODIFIED, [(header::ETAG, text(&tag))]).into_response());
    }
    let is_same = headers.get(header::IF_RANGE).is_none_or(|known| known.as_bytes() == tag.as_bytes());
    let wanted = headers.get(header::RANGE).filter(|_| is_same).and_then(|range| range.to_str().ok());
    let range = match wanted.map(|wanted| part(wanted, bytes)) {
        None | Some(Part::All) => None,
        Some(Part::Of(range)) => Some(range),
        Some(Part::Nowhere) => return Ok(unsatisfiable(bytes)),
    };
    let (start, end) = range.as_ref().map_or((0, bytes), |range| (range.start, range.end));
    let body = content(app, file, start..end).await?;
    let body = match sent.counted_for.filter(|_| range.is_none()) {
        Some(job) => counted(app, job, body, bytes),
        None => body,
    };
    let mut response = (
        [
            (header::CONTENT_TYPE, text(&file.content_type)),
            (header::CONTENT_LENGTH, HeaderValue::from(end - start)),
            (header::CONTENT_DISPOSITION, text(&sent.disposition)),
            (header::ACCEPT_RANGES, HeaderValue::from_static("bytes")),
            (header::CACHE_CONTROL, HeaderValue::from_static(sent.cache)),
            (header::ETAG, text(&tag)),
        ],
        body,
    )
        .into_response();
    if range.is_some() {
        *response.status_mut() = StatusCode::PARTIAL_CONTENT;
        let told = format!("bytes {start}-{}/{bytes}", end - 1);
        response.headers_mut().insert(header::CONTENT_RANGE, text(&told));
    }
    Ok(response)
}

/// What is small is read whole and checked before the first byte of it is sent.
const CHECKED_BYTES_MAX: u64 = 4 << 20;

async fn content(app: &App, file: &Artifact, range: Range<u64>) -> Result<Body, Problem> {
    if u64::try_from(file.bytes).unwrap_or(u64::MAX) <= CHECKED_BYTES_MAX {
        let content = app.blobs.get(&file.path, &file.sha256).await?;
        let at = |end: u64| usize::try_from(end).unwrap_or(usize::MAX).min(content.len());
        return Ok(content.slice(at(range.start)..at(range.end)).into());
    }
    Ok(Body::from_stream(app.blobs.stream(&file.path, range).await?))
}

/// Counts a download once all of it was handed on: a result that goes with its first download must have been one.
fn counted(app: &Arc<App>, job: JobId, body: Body, bytes: u64) -> Body {
    let sending = Sending { app: app.clone(), job, left: bytes };
    let pieces = stream::unfold((body.into_data_stream(), sending), async |(mut pieces, mut sending)| {
        let piece = pieces.next().await?;
        if let Ok(piece) = &piece {
            sending.left = sending.left.saturating_sub(piece.len() as u64);
        }
        Some((piece, (pieces, sending)))
    });
    Body::from_stream(pieces)
}

/// A result on its way to somebody.
struct Sending {
    app: Arc<App>,
    job: JobId,
    left: u64,
}

impl Drop for Sending {
    /// The end of it is not asked for once as much was sent as was announced, so this is where it shows.
    fn drop(&mut self) {
        if self.left > 0 {
            return;
        }
        let (app, job) = (self.app.clone(), self.job);
        tokio::spawn(async move {
            match app.store.record_download(job).await {
                Ok(_) => {}
                Err(error) => {
                    tracing::warn!(job.id = %job, %error, "a download of job {job} was not counted")
                }
            }
        });
    }
}

fn unsatisfiable(bytes: u64) -> Response {
    let problem = Problem::with_status(
        StatusCode::RANGE_NOT_SATISFIABLE,
        ErrorCode::Invalid,
        format!("The file has {bytes} bytes, and what was asked for lies beyond them."),
    );
    let mut response = problem.into_response();
    response.headers_mut().insert(header::CONTENT_RANGE, text(&format!("bytes */{bytes}")));
    response
}

/// Which part of a file is wanted.
#[derive(Debug, PartialEq, Eq)]
enum Part {
    All,
    Of(Range<u64>),
    Nowhere,
}

/// Reads a range. Several at once, and what is not understood, are answered with the whole, as is allowed.
fn part(range: &str, bytes: u64) -> Part {
    let Some((from, to)) = range.strip_prefix("bytes=").and_then(|range| range.split_once('-')) else {
        return Part::All;
    };
    let range = match (from.trim().parse::<u64>(), to.trim().parse::<u64>()) {
        (Ok(from), Ok(to)) if from <= to => from..to.saturating_add(1).min(bytes),
        (Ok(from), Err(_)) if to.trim().is_empty() => from..bytes,
        (Err(_), Ok(last)) if from.trim().is_empty() => bytes.saturating_sub(last)..bytes,
        _ => return Part::All,
    };
    if range.is_empty() { Part::Nowhere } else { Part::Of(range) }
}

/// The document's name with the result's ending.
fn result_name(job: &JobRecord, file: &Artifact) -> String {
    let ending = file.name.rsplit_once('.').map_or("xml", |(_, ending)| ending);
    match job.document().as_ref().and_then(|document| document.stem()) {
        Some(stem) => format!("{stem}.{ending}"),
        None => file.name.clone(),
    }
}

/// All but the characters that RFC 8187 lets stand for themselves in a parameter (`attr-char`).
const NOT_ATTR_CHAR: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'!')
    .remove(b'#')
    .remove(b'$')
    .remove(b'&')
    .remove(b'+')
    .remove(b'-')
    .remove(b'.')
    .remove(b'^')
    .remove(b'_')
    .remove(b'`')
    .remove(b'|')
    .remove(b'~');

/// To be saved, never shown, under this name: as RFC 6266 has it, with a plain form for old browsers.
pub fn attachment(name: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || " ._-()".contains(c) { c } else { '_' };
    let plain: String = name.chars().map(plain).collect();
    format!("attachment; filename=\"{plain}\"; filename*=UTF-8''{}", utf8_percent_encode(name, NOT_ATTR_CHAR))
}

/// All but the characters that stand for themselves in an address (RFC 3986, `unreserved`) and the slash between folders.
const NOT_PATH: &AsciiSet =
    &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~').remove(b'/');

/// A name as a part of an address.
pub fn encoded(name: &str) -> String {
    utf8_percent_encode(name, NOT_PATH).to_string()
}

fn text(value: &str) -> HeaderValue {
    HeaderValue::from_str(value).unwrap_or(HeaderValue::from_static("application/octet-stream"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_read_as_they_are_meant() {
        fn check(range: &str, expected: Part) {
            assert_eq!(part(range, 100), expected, "{range}");
        }
        check("bytes=0-0", Part::Of(0..1));
        check("bytes=10-19", Part::Of(10..20));
        check("bytes=90-", Part::Of(90..100));
        check("bytes=90-1000", Part::Of(90..100));
        check("bytes=-10", Part::Of(90..100));
        check("bytes=-1000", Part::Of(0..100));
        check("bytes=100-", Part::Nowhere);
        check("bytes=100-200", Part::Nowhere);
        check("bytes=-0", Part::Nowhere);
        for whole in ["", "bytes=", "bytes=5-2", "bytes=a-b", "bytes=0-1,5-6", "lines=0-1", "bytes=--"] {
            check(whole, Part::All);
        }
    }

    #[test]
    fn any_name_makes_one_safe_line() {
        for c in (0..=u32::from(char::MAX)).filter_map(char::from_u32) {
            let line = attachment(&format!("a{c}b.xml"));
            assert!(HeaderValue::from_str(&line).is_ok(), "{c:?}");
            assert_eq!(line.matches('"').count(), 2, "{c:?}");
            assert!(!line.contains(['\r', '\n', '\\']), "{c:?}");
        }
        assert_eq!(
            attachment("März \"1\".xml"),
            "attachment; filename=\"M_rz _1_.xml\"; filename*=UTF-8''M%C3%A4rz%20%221%22.xml"
        );
    }
}
