//! A job's own page: what it is, what is to be looked at, and everything that happened to it.

use super::row::Row;
use super::words;
use crate::App;
use crate::caller::Caller;
use crate::jobs;
use crate::problem::Problem;
use crate::view::JobView;
use askama::Template;
use axum::extract::{Extension, Path, State};
use axum::http::{HeaderMap, header};
use axum::response::{Html, Redirect};
use jiff::Timestamp;
use ode_job::{EventRecord, Phase};
use serde_json::Value;
use std::sync::Arc;

#[derive(Template)]
#[template(path = "job.html")]
struct Page {
    row: Row,
    is_live: bool,
    code: Option<String>,
    facts: Vec<Fact>,
    findings: Vec<Finding>,
    events: Vec<Line>,
}

struct Fact {
    name: &'static str,
    value: String,
    kind: Kind,
}

enum Kind {
    Plain,
    Code,
    /// A moment, as a program writes it.
    At(String),
}

struct Finding {
    code: String,
    sentence: String,
}

struct Line {
    at: String,
    at_iso: String,
    sentence: &'static str,
    detail: Option<String>,
}

pub(super) async fn show(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
) -> Result<Html<String>, Problem> {
    let job = jobs::find(&app, &caller, &id).await?;
    let events = app.store.events(job.id).await?;
    let view = jobs::shown(&app, job).await?;
    super::draw(&Page {
        // This is where one reviews it.
        row: Row { can_review: false, ..Row::new(&view) },
        is_live: !matches!(view.phase, Phase::Done | Phase::Failed | Phase::Cancelled),
        code: view.error.as_ref().map(|error| error.code.clone()),
        facts: facts(&view),
        findings: findings(view.result.as_ref()),
        events: events.into_iter().map(Line::from).collect(),
    })
}

/// Does what a form asked for, and goes back to where it was asked.
pub(super) async fn act(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path((id, deed)): Path<(String, String)>,
    headers: HeaderMap,
) -> Result<Redirect, Problem> {
    let job = jobs::find(&app, &caller, &id).await?;
    match deed.as_str() {
        "retry" => app.store.retry(job.id).await.map(drop)?,
        "cancel" => app.store.cancel(job.id).await.map(drop)?,
        "stop" => app.store.stop(job.id).await.map(drop)?,
        "delete" => app.store.delete_job(job.id, &app.blobs).await.map(drop)?,
        _ => return Err(Problem::not_found()),
    }
    jobs::forget(&app, &job);
    let is_from_its_page = headers
        .get(header::REFERER)
        .and_then(|from| from.to_str().ok())
        .is_some_and(|from| from.ends_with(&format!("/jobs/{id}")));
    let is_there = deed != "delete";
    Ok(if is_from_its_page && is_there { Redirect::to(&format!("/jobs/{}", job.id)) } else { Redirect::to("/") })
}

fn facts(job: &JobView) -> Vec<Fact> {
    let plain = |name, value: Option<String>| value.map(|value| Fact { name, value, kind: Kind::Plain });
    let code = |name, value: Option<String>| value.map(|value| Fact { name, value, kind: Kind::Code });
    let moment = |name, at: Option<Timestamp>| {
        at.map(|at| Fact { name, value: words::moment(at), kind: Kind::At(at.to_string()) })
    };
    let facts = [
        plain("Mapping", Some(job.mapping.clone())),
        plain("Size", job.bytes.map(words::size)),
        plain("Pages", job.pages.map(|pages| pages.to_string())),
        moment("Sent", Some(job.created_at)),
        moment("Started", job.started_at),
        moment("Ready", job.completed_at),
        moment("Failed", job.failed_at),
        plain("Attempts", (job.attempt_count > 0).then(|| job.attempt_count.to_string())),
        code("Reference", Some(job.reference.clone())),
        code("SHA-256", job.sha256.clone()),
    ];
    facts.into_iter().flatten().collect()
}

fn findings(result: Option<&Value>) -> Vec<Finding> {
    let found = result.and_then(|result| result["findings"].as_array()).map(Vec::as_slice).unwrap_or_default();
    let text = |finding: &Value, name: &str| finding[name].as_str().unwrap_or_default().to_owned();
    found.iter().map(|one| Finding { code: text(one, "code"), sentence: text(one, "message") }).collect()
}

impl From<EventRecord> for Line {
    fn from(event: EventRecord) -> Self {
        Line {
            at: words::moment(event.at),
            at_iso: event.at.to_string(),
            sentence: words::event(event.event),
            detail: event.meta.as_ref().and_then(words::particulars),
        }
    }
}
