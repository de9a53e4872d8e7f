//! A job's own page: what it is, what is to be looked at, what was read and corrected, and everything that happened.

use super::choices::Choices;
use super::row::Row;
use super::values::{self, Value};
use super::words;
use crate::App;
use crate::again::{self, Again};
use crate::caller::Caller;
use crate::jobs;
use crate::problem::Problem;
use crate::review::{self, NewRevision};
use crate::view::JobView;
use askama::Template;
use axum::Form;
use axum::extract::rejection::FormRejection;
use axum::extract::{Extension, Path, State};
use axum::http::{HeaderMap, header};
use axum::response::{Html, IntoResponse as _, Redirect, Response};
use jiff::Timestamp;
use ode_job::{Check, EventRecord, Phase};
use ode_store::Revised;
use serde::Deserialize;
use std::sync::Arc;

#[derive(Template)]
#[template(path = "job.html")]
struct Page {
    row: Row,
    is_live: bool,
    code: Option<String>,
    facts: Vec<Fact>,
    findings: Vec<Finding>,
    values: Vec<Value>,
    can_correct: bool,
    corrections: Vec<Correction>,
    /// How its document can be converted once more, where it can.
    again: Option<Choices>,
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

/// What somebody corrected.
struct Correction {
    at: String,
    at_iso: String,
    field: String,
    before: Option<String>,
    after: Option<String>,
    place: Option<String>,
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
    let revised = app.store.revisions(job.id).await?;
    let said = match job.phase {
        Phase::Done => crate::values::of(&app, job.id).await?,
        Phase::Held | Phase::Ready | Phase::Running | Phase::Failed | Phase::Cancelled => None,
    };
    let values = said.map(|said| values::listed(said, &revised)).unwrap_or_default();
    let output =
        job.config["output"].as_str().filter(|output| *output != "own").unwrap_or_default().to_owned();
    let intake = app.kinds.of(job.pipeline).intake.as_ref();
    let view = jobs::shown(&app, job).await?;
    super::draw(&Page {
        // This is where one reviews it, and chooses.
        row: Row { can_review: false, can_choose: false, ..Row::new(&view) },
        is_live: !matches!(view.phase, Phase::Done | Phase::Failed | Phase::Cancelled),
        code: view.error.as_ref().or(view.last_error.as_ref()).map(|error| error.code.clone()),
        facts: facts(&app, &view),
        findings: checks.into_iter().map(Finding::from).collect(),
        values,
        can_correct: view.phase == Phase::Done && view.page().is_none(),
        corrections: revised.into_iter().map(Correction::from).collect(),
        again: intake
            .filter(|_| view.can_convert())
            .map(|intake| Choices::new(&[intake], &view.mapping, &output)),
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

/// A correction as a form has it.
#[derive(Debug, Deserialize)]
pub(super) struct Corrected {
    field: String,
    #[serde(default)]
    before: String,
    #[serde(default)]
    after: String,
    #[serde(default)]
    page: String,
    /// Left, top, right and bottom.
    #[serde(default, rename = "box")]
    area: String,
}

impl Corrected {
    fn revision(self) -> Result<NewRevision, Problem> {
        let odd =
            |what| Problem::invalid(format!("{what} Go back, and leave both places empty if in doubt."));
        let page = (!self.page.trim().is_empty()).then(|| self.page.trim().parse());
        let page = page.transpose().map_err(|_| odd("The page is not a number."))?;
        let sides = self.area.split([' ', ',']).filter(|side| !side.is_empty());
        let sides: Vec<f64> = sides.map(str::parse).collect::<Result<_, _>>().unwrap_or_default();
        let area = match (self.area.trim(), <[f64; 4]>::try_from(sides)) {
            ("", _) => None,
            (_, Ok(sides)) if sides.iter().all(|side| side.is_finite()) => Some(sides),
            _ => return Err(odd("The place on the page is not four numbers.")),
        };
        // Browsers send the ends of lines as two characters, whatever they were.
        let [before, after] = [self.before, self.after].map(|text| Some(text.replace("\r\n", "\n")));
        Ok(NewRevision { field: self.field, before, after, page, area })
    }
}

/// Records what somebody corrected, and shows it.
pub(super) async fn revise(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
    form: Result<Form<Corrected>, FormRejection>,
) -> Result<Redirect, Problem> {
    let job = jobs::find(&app, &caller, &id).await?;
    let Form(form) = form.map_err(|_| not_understood())?;
    review::correct(&app, &caller, &job, form.revision()?).await?;
    Ok(Redirect::to(&format!("/jobs/{}#values", job.id)))
}

/// Converts a document once more, and goes to the job that does.
pub(super) async fn convert(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
    form: Result<Form<Again>, FormRejection>,
) -> Result<Redirect, Problem> {
    let job = jobs::find(&app, &caller, &id).await?;
    let Form(again) = form.map_err(|_| not_understood())?;
    let enqueued = again::once_more(&app, &caller, &job, &again).await?;
    Ok(Redirect::to(&format!("/jobs/{}", enqueued.id())))
}

fn not_understood() -> Problem {
    Problem::invalid("The form is not understood. Go back and send it again.")
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

impl From<Revised> for Correction {
    fn from(Revised { revision, created_at, .. }: Revised) -> Self {
        Correction {
            at: words::moment(created_at),
            at_iso: created_at.to_string(),
            field: values::label(&revision.field),
            before: revision.before,
            after: revision.after,
            place: revision.page.map(|page| match revision.area {
                Some(area) => format!("page {page}, {}", area.map(|side| format!("{side:.0}")).join(" ")),
                None => format!("page {page}"),
            }),
        }
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
