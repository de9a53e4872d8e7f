//! The part of a job's page in which its result is reviewed: what was read, what people corrected in it, and how its document
//! can be converted once more.

mod values;

use crate::request::Config;
use crate::routes::BODY_BYTES_MAX;
use crate::routes::again::{self, Again};
use crate::routes::revisions;
use crate::sql::{self, Revised, Revision};
use askama::Template;
use axum::extract::rejection::FormRejection;
use axum::extract::{DefaultBodyLimit, Extension, Path, State};
use axum::response::Redirect;
use axum::routing::post;
use axum::{Form, Router};
use futures_util::future::BoxFuture;
use ode_http::App;
use ode_http::caller::Caller;
use ode_http::jobs;
use ode_http::pages::{Choices, draw, words};
use ode_http::problem::Problem;
use ode_http::view::JobView;
use ode_job::{JobRecord, Phase};
use serde::Deserialize;
use std::sync::Arc;
use values::Value;

/// Forms on the page of a job.
pub(crate) fn routes() -> Router<Arc<App>> {
    Router::new()
        .route("/jobs/{id}/revisions", post(revise))
        .route("/jobs/{id}/convert", post(convert))
        .layer(DefaultBodyLimit::max(BODY_BYTES_MAX))
}

#[derive(Template)]
#[template(path = "review.html")]
struct Review {
    id: String,
    can_correct: bool,
    values: Vec<Value>,
    corrections: Vec<Correction>,
    /// How its document can be converted once more, where it can.
    again: Option<Choices>,
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

/// Writes what the page of a job shows of its result.
pub(crate) fn review<'a>(
    app: &'a App,
    job: &'a JobRecord,
    view: &'a JobView,
) -> BoxFuture<'a, Result<String, Problem>> {
    Box::pin(async move {
        let can_correct = job.phase == Phase::Done;
        let (mut values, mut revised) = (Vec::new(), Vec::new());
        if can_correct {
            revised = sql::revisions(app.store.sql(), job.id).await?;
            let read = crate::values::read_values(app, job.id).await?;
            values = read.map(|read| values::listed(read, &revised)).unwrap_or_default();
        }
        let output = Config::read(&job.config).unwrap_or_default().output;
        let output = output.filter(|output| output != "own").unwrap_or_default();
        let intake = app.kinds.of(job.pipeline).intake.as_ref().filter(|_| view.can_convert());
        let page = Review {
            id: view.id.to_string(),
            can_correct,
            values,
            corrections: revised.into_iter().map(Correction::from).collect(),
            again: intake.map(|intake| Choices::new(&[intake], &view.mapping, &output)),
        };
        Ok(draw(&page)?.0)
    })
}

/// A correction as a form has it.
#[derive(Debug, Deserialize)]
struct Corrected {
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
    fn revision(self) -> Result<Revision, Problem> {
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
        Ok(Revision { field: self.field, before, after, page, area })
    }
}

/// Records what somebody corrected, and shows it.
async fn revise(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
    form: Result<Form<Corrected>, FormRejection>,
) -> Result<Redirect, Problem> {
    let job = jobs::find(&app, &caller, &id).await?;
    let Form(form) = form.map_err(|_| not_understood())?;
    revisions::correct(&app, &caller, &job, form.revision()?).await?;
    Ok(Redirect::to(&format!("/jobs/{}#values", job.id)))
}

/// Converts a document once more, and goes to the job that does.
async fn convert(
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
