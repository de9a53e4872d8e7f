//! The queue: send files, see what becomes of them, fetch what they became.

use super::choices::Choices;
use super::row::Row;
use super::words;
use crate::App;
use crate::callers::caller::Caller;
use crate::jobs;
use crate::jobs::upload;
use crate::server::problem::Problem;
use askama::Template;
use axum::extract::{Extension, Query, Request, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Redirect, Response};
use ode_job::{ErrorCode, JobRef, Phase};
use ode_store::OwnedFilter;
use serde::Deserialize;
use std::sync::Arc;

/// Lines of one page; more are slow to draw, and tiring to listen to.
const ROWS_MAX: usize = 100;

#[derive(Template)]
#[template(path = "queue.html")]
struct Queue {
    notices: Vec<Notice>,
    paused: Option<String>,
    waits: Option<&'static str>,
    limit: String,
    choices: Choices,
    active: i64,
    filters: Vec<Filter>,
    rows: Vec<Row>,
    empty: &'static str,
    first: Option<String>,
    next: Option<String>,
}

/// Something to know about a file that was just sent.
struct Notice {
    name: String,
    detail: String,
}

struct Filter {
    name: &'static str,
    link: String,
    is_chosen: bool,
}

/// Which part of the queue to show.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Part {
    show: Option<String>,
    cursor: Option<String>,
}

/// The words of the filters, and what is behind them: the same for documents that become XML and pages.
const FILTERS: [(&str, &str, Option<Phase>); 5] = [
    ("All", "", None),
    ("Waiting", "waiting", Some(Phase::Ready)),
    ("Converting", "converting", Some(Phase::Running)),
    ("Ready", "ready", Some(Phase::Done)),
    ("Failed", "failed", Some(Phase::Failed)),
];

pub(super) async fn show(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Query(part): Query<Part>,
) -> Result<Response, Problem> {
    let page = read(&app, &caller, &part, Vec::new()).await?;
    Ok(super::draw(&page)?.into_response())
}

/// Takes files from a form that a browser sent without script.
pub(super) async fn upload(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    request: Request,
) -> Result<Response, Problem> {
    let (outcomes, _) = upload::take(&app, &caller, request).await?;
    let notices: Vec<Notice> = outcomes
        .into_iter()
        .filter_map(|outcome| {
            let detail = match outcome.problem {
                Some(problem) => problem.detail,
                None if outcome.is_duplicate => "You sent this file before: it is in the list below.".into(),
                None => return None,
            };
            Some(Notice { name: outcome.filename, detail })
        })
        .collect();
    if notices.is_empty() {
        return Ok(Redirect::to("/").into_response());
    }
    let page = read(&app, &caller, &Part::default(), notices).await?;
    Ok((StatusCode::OK, super::draw(&page)?).into_response())
}

/// Whoever reloads the page that answered their form.
pub(super) async fn after_upload() -> Redirect {
    Redirect::to("/")
}

async fn read(app: &App, caller: &Caller, part: &Part, notices: Vec<Notice>) -> Result<Queue, Problem> {
    let show = part.show.as_deref().unwrap_or_default();
    let (_, _, phase) = FILTERS.into_iter().find(|(_, word, _)| *word == show).unwrap_or(FILTERS[0]);
    let before = match part.cursor.as_deref().map(str::parse) {
        Some(Ok(JobRef::Id(id))) => Some(id),
        _ => None,
    };
    let filter = OwnedFilter {
        owner: caller.owner,
        state: None,
        phase,
        kind: None,
        since: None,
        before,
        limit: ROWS_MAX,
    };
    app.hub.attend();
    let page = app.store.owned_jobs(&filter, &app.kinds.unlisted()).await?;
    let rows = jobs::views(app, &page.jobs).await?.iter().map(Row::new).collect();
    let paused = (!app.disk.allows_uploads()).then(|| Problem::from(ErrorCode::DiskFull).document().detail);
    Ok(Queue {
        notices,
        paused,
        waits: jobs::notice(app, page.active_count).await?,
        limit: words::size(i64::try_from(app.settings.upload_bytes_max).unwrap_or(i64::MAX)),
        choices: Choices::new(
            &app.kinds.intakes().collect::<Vec<_>>(),
            app.settings.mapping_default.as_deref().unwrap_or_default(),
            "",
        ),
        active: page.active_count,
        filters: filters(show),
        rows,
        empty: if phase.is_none() {
            "No files yet. Drop PDFs here to convert"
        } else {
            "None at the moment."
        },
        first: before.map(|_| link(show, None)),
        next: page.next_cursor.map(|cursor| link(show, Some(cursor.to_string()))),
    })
}

fn filters(show: &str) -> Vec<Filter> {
    let filter = |(name, word, _)| Filter { name, link: link(word, None), is_chosen: word == show };
    FILTERS.into_iter().map(filter).collect()
}

/// Where a part of the queue is.
fn link(show: &str, cursor: Option<String>) -> String {
    let show = (!show.is_empty()).then(|| format!("show={show}"));
    let cursor = cursor.map(|cursor| format!("cursor={cursor}"));
    let query: Vec<String> = show.into_iter().chain(cursor).collect();
    if query.is_empty() { "/".into() } else { format!("/?{}", query.join("&")) }
}
