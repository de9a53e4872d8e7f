//! A job's own page: what it is, what is to be looked at, what its pipeline adds, and everything that happened.

use super::row::Row;
use super::words;
use crate::App;
use crate::callers::caller::Caller;
use crate::jobs;
use crate::jobs::view::JobView;
use crate::server::problem::Problem;
use askama::Template;
use axum::extract::{Extension, Path, State};
use axum::http::{HeaderMap, header};
use axum::response::{Html, IntoResponse as _, Redirect, Response};
use jiff::Timestamp;
use ode_job::{Check, EventRecord, Phase};
use std::sync::Arc;

#[derive(Template)]
#[template(path = "job.html")]
struct Page {
    row: Row,
    is_live: bool,
    code: Option<String>,
    facts: Vec<Fact>,
    findings: Vec<Finding>,
    /// What the pipeline adds, as HTML.
    sections: String,
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
    severity: &'static str,
    code: String,
    sentence: String,
    /// Who says so, where that is a language model.
    by: Option<String>,
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
    let (events, checks) = (app.store.events(job.id).await?, app.store.checks(job.id).await?);
    let kind = app.kinds.of(job.pipeline);
    let view = jobs::shown(&app, job.clone()).await?;
    let sections = match kind.sections {
        Some(write) => write(&app, &job, &view).await?,
        None => String::new(),
    };
    super::draw(&Page {
        // This is where one reviews it, and chooses.
        row: Row { can_review: false, can_choose: false, ..Row::new(&view) },
        is_live: !matches!(view.phase, Phase::Done | Phase::Failed | Phase::Cancelled),
        code: view.error.as_ref().or(view.last_error.as_ref()).map(|error| error.code.clone()),
        facts: facts(&app, &view),
        findings: checks.into_iter().map(Finding::from).collect(),
        sections,
        events: events.into_iter().map(Line::from).collect(),
    })
}

/// Asks before something that cannot be undone; everything else is asked for on the job's own page.
pub(super) async fn ask(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path((id, deed)): Path<(String, String)>,
) -> Result<Response, Problem> {
    #[derive(Template)]
    #[template(path = "ask.html")]
    struct Ask {
        id: String,
        name: String,
    }
    let job = jobs::find(&app, &caller, &id).await?;
    let view = jobs::shown(&app, job).await?;
    let id = view.id.to_string();
    if deed != "delete" || !view.can_delete() {
        return Ok(Redirect::to(&format!("/jobs/{id}")).into_response());
    }
    Ok(super::draw(&Ask { id, name: Row::new(&view).name })?.into_response())
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
        "retry" => jobs::retry(&app, &job).await?,
        "cancel" => jobs::cancel(&app, &job).await?,
        "stop" => jobs::stop(&app, &job).await?,
        "delete" => jobs::remove(&app, &job).await?,
        _ => return Err(Problem::not_found()),
    }
    let is_from_its_page = headers
        .get(header::REFERER)
        .and_then(|from| from.to_str().ok())
        .is_some_and(|from| from.ends_with(&format!("/jobs/{id}")));
    let is_there = deed != "delete";
    Ok(if is_from_its_page && is_there {
        Redirect::to(&format!("/jobs/{}", job.id))
    } else {
        Redirect::to("/")
    })
}

fn facts(app: &App, job: &JobView) -> Vec<Fact> {
    let plain = |name, value: Option<String>| value.map(|value| Fact { name, value, kind: Kind::Plain });
    let code = |name, value: Option<String>| value.map(|value| Fact { name, value, kind: Kind::Code });
    let moment = |name, at: Option<Timestamp>| {
        at.map(|at| Fact { name, value: words::moment(at), kind: Kind::At(at.to_string()) })
    };
    let facts = [
        plain("Mapping", job.page().is_none().then(|| app.kinds.label(&job.mapping).to_owned())),
        plain("Read by", read_by(job).map(|mapping| app.kinds.label(mapping).to_owned())),
        plain("Size", job.bytes.map(words::size)),
        plain("Pages", job.pages.map(|pages| pages.to_string())),
        moment("Sent", Some(job.created_at)),
        moment("Started", job.started_at),
        moment("Ready", job.completed_at),
        moment(words::end(job).unwrap_or("Failed"), job.failed_at),
        plain("Attempts", (job.attempt_count > 0).then(|| job.attempt_count.to_string())),
        code("Reference", Some(job.reference.clone())),
        code("SHA-256", job.sha256.clone()),
    ];
    facts.into_iter().flatten().collect()
}

/// The mapping that was used, where that is another than was asked for.
fn read_by(job: &JobView) -> Option<&str> {
    let used = job.result.as_ref()?["mapping"].as_str()?;
    (used != job.mapping).then_some(used)
}

impl From<Check> for Finding {
    fn from(Check { severity, code, message, opinion, .. }: Check) -> Self {
        let by = opinion.map(|opinion| opinion.model);
        Finding { severity: severity.as_str(), code, sentence: message, by }
    }
}

impl From<EventRecord> for Line {
    fn from(event: EventRecord) -> Self {
        Line {
            at: words::moment(event.at),
            at_iso: event.at.to_string(),
            sentence: words::event(event.event, event.meta.as_ref()),
            detail: event.meta.as_ref().and_then(words::particulars),
        }
    }
}
