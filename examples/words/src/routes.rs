//! `GET /api/words/{id}` and the page of a count. Uploading, listing, downloading and the rest are the engine's.

use crate::count::Count;
use crate::kind::job_kind;
use crate::machine::WORDS;
use askama::Template;
use axum::extract::{Extension, Path, State};
use axum::response::Html;
use axum::routing::get;
use axum::{Json, Router};
use ode_http::caller::Caller;
use ode_http::pages::draw;
use ode_http::problem::Problem;
use ode_http::{App, Routes, jobs};
use ode_job::{JobRecord, SourceDocument};
use serde::Deserialize as _;
use serde_json::Value;
use std::sync::Arc;
use utoipa::OpenApi;

#[derive(OpenApi)]
#[openapi(paths(words), tags((name = "words", description = "Words of documents")))]
struct Api;

pub(crate) fn routes() -> Routes {
    let known = Router::new().route("/api/words/{id}", get(words)).route("/words/{id}", get(page));
    Routes { kind: Some(job_kind()), known, api: Api::openapi(), ..Routes::default() }
}

/// How many words a document has
#[utoipa::path(get, path = "/api/words/{id}", tag = "words", params(("id" = String, Path, description = "The job")),
    responses((status = 200, description = "The count", body = Object), (status = 404, description = "There is none")))]
async fn words(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
) -> Result<Json<Value>, Problem> {
    let job = jobs::find_of(&app, &caller, WORDS, &id).await?;
    job.result.map(Json).ok_or_else(Problem::no_job)
}

#[derive(Template)]
#[template(path = "words.html")]
struct Page {
    name: String,
    count: Count,
}

async fn page(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
) -> Result<Html<String>, Problem> {
    let job = jobs::find_of(&app, &caller, WORDS, &id).await?;
    let count = count_of(&job).ok_or_else(Problem::no_job)?;
    let name = SourceDocument::of(&job.input).and_then(|document| document.name);
    draw(&Page { name: name.unwrap_or_else(|| job.reference.clone()), count })
}

fn count_of(job: &JobRecord) -> Option<Count> {
    Count::deserialize(job.result.as_ref()?).ok()
}
