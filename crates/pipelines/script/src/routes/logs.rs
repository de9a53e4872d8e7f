//! The log of a script: read in parts, from its end, or as it is written.

use super::find;
use axum::Json;
use axum::body::Body;
use axum::extract::{Extension, Path, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Uri, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures_util::stream;
use ode_http::App;
use ode_http::caller::Caller;
use ode_http::logs::{Log, LogView};
use ode_http::problem::{Problem, Reading};
use ode_http::query::{PART_MAX, after, limit, query};
use ode_job::{JobId, JobRef, LogLine, Phase};
use serde::Deserialize;
use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;
use utoipa::IntoParams;

/// How often a log that is followed is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// Proxies close what is silent for longer.
const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// Lines read at a time.
const LINES_MAX: usize = 500;

/// Which lines of a log.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct ScriptLogQuery {
    /// Only lines after this one, by its `id`.
    #[param(value_type = Option<i64>)]
    after: Option<String>,
    /// Only so many of the last lines.
    #[param(value_type = Option<u16>, minimum = 1, maximum = 1000)]
    tail: Option<String>,
    /// How many at most; 100 unless said otherwise.
    #[param(value_type = Option<u16>, minimum = 1, maximum = 1000)]
    limit: Option<String>,
}

/// What a script had to say; secrets are hidden in it.
///
/// With `Accept: text/event-stream` lines come as they are written: `event: log` carries a line, whose `id` is where to go on
/// after a break; `event: end` comes when the job has ended, and nothing after it.
#[utoipa::path(get, path = "/v1/scripts/jobs/{id}/logs", tag = "scripts", security(("key" = [])),
    params(("id" = String, Path, description = "Its id or reference"), ScriptLogQuery,
        ("Last-Event-ID" = Option<String>, Header, description = "The id of the last line that arrived, in a stream")),
    responses(
        (status = 200, content((Log = "application/json"), (String = "text/event-stream"))),
        Reading))]
pub(crate) async fn logs(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
    uri: Uri,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let query: ScriptLogQuery = query(&uri, "after, tail and limit")?;
    let after = after(query.after.as_deref())?;
    let tail = query.tail.as_deref().map(|tail| limit(Some(tail), PART_MAX)).transpose();
    let tail = tail.map_err(|_| Problem::invalid("tail is a number from 1 to 1000."))?;
    let limit = limit(query.limit.as_deref(), PART_MAX)?;
    let job = find(&app, &caller, &id).await?;
    let first = match tail {
        Some(tail) => app.store.last_logs(job.id, tail).await?,
        None => Vec::new(),
    };
    if wants_stream(&headers) {
        let last = headers.get("last-event-id").and_then(|id| id.to_str().ok()?.trim().parse::<i64>().ok());
        // Who comes back after a break has seen the end of the log before, and wants what came since.
        return Ok(match last {
            Some(last) => follow(app, job.id, Vec::new(), last),
            None => {
                let after = first.last().map_or(after, |line| line.id);
                follow(app, job.id, first, after)
            }
        });
    }
    let lines = if tail.is_some() { first } else { app.store.logs(job.id, after, limit).await? };
    Ok(Json(Log { logs: lines.into_iter().map(LogView::from).collect() }).into_response())
}

fn wants_stream(headers: &HeaderMap) -> bool {
    let accepted = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
    accepted.flat_map(|value| value.split(',')).any(|kind| kind.trim().starts_with("text/event-stream"))
}

/// What somebody who follows a log has yet to get.
struct Following {
    app: Arc<App>,
    job: JobId,
    after: i64,
    waiting: VecDeque<Bytes>,
    /// How long nothing was sent.
    silent_for: Duration,
    is_over: bool,
}

fn follow(app: Arc<App>, job: JobId, first: Vec<LogLine>, after: i64) -> Response {
    let mut waiting = VecDeque::from([Bytes::from_static(b": the log follows\n\n")]);
    waiting.extend(first.into_iter().filter_map(event));
    let following = Following { app, job, after, waiting, silent_for: Duration::ZERO, is_over: false };
    let lines = stream::unfold(following, async |mut following| {
        let line = following.next().await?;
        Some((Ok::<_, Infallible>(line), following))
    });
    let head = [
        (header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream")),
        (header::CACHE_CONTROL, HeaderValue::from_static("no-store")),
        (HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no")),
    ];
    (head, Body::from_stream(lines)).into_response()
}

fn event(line: LogLine) -> Option<Bytes> {
    let id = line.id;
    let data = serde_json::to_string(&LogView::from(line)).ok()?;
    Some(format!("id: {id}\nevent: log\ndata: {data}\n\n").into())
}

impl Following {
    async fn next(&mut self) -> Option<Bytes> {
        let mut stopping = self.app.stopping.clone();
        loop {
            if let Some(line) = self.waiting.pop_front() {
                self.silent_for = Duration::ZERO;
                return Some(line);
            }
            if self.is_over || *stopping.borrow() {
                return None;
            }
            if self.silent_for >= KEEP_ALIVE {
                self.waiting.push_back(Bytes::from_static(b": still here\n\n"));
                continue;
            }
            // Whether it has ended is asked before the lines are read: those that it wrote last are then among them.
            let has_ended = self.has_ended().await?;
            let lines = self.app.store.logs(self.job, self.after, LINES_MAX).await.ok()?;
            self.after = lines.last().map_or(self.after, |line| line.id);
            let is_all = lines.len() < LINES_MAX;
            self.waiting.extend(lines.into_iter().filter_map(event));
            if has_ended && is_all {
                self.is_over = true;
                self.waiting.push_back(Bytes::from_static(b"event: end\ndata: {}\n\n"));
            } else if self.waiting.is_empty() {
                self.silent_for += LOOK_EVERY;
                tokio::select! {
                    () = tokio::time::sleep(LOOK_EVERY) => {}
                    _ = stopping.changed() => return None,
                }
            }
        }
    }

    /// Whether nothing more will be written; none if the job is gone.
    async fn has_ended(&self) -> Option<bool> {
        let job = self.app.store.job(JobRef::Id(self.job)).await.ok()?;
        Some(matches!(job.phase, Phase::Done | Phase::Failed | Phase::Cancelled))
    }
}
