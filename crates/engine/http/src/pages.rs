//! The pages: drawn by the server, and whole without script.
//!
//! A page shows what the API shows, in the same words. Everything it lets people do is a form that is sent, answered by
//! sending them back to a page; the script of the queue page sends the same forms and exchanges what changed.

mod assets;
mod choices;
mod job;
mod queue;
mod row;
mod sign_in;
pub mod words;

pub use choices::{Choice, Choices};

use crate::App;
use crate::server::problem::Problem;
use askama::Template;
use axum::Router;
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::{Html, Response};
use axum::routing::{get, post};
use std::sync::Arc;

/// Pages that ask who is there.
pub fn routes() -> Router<Arc<App>> {
    Router::new()
        .route("/", get(queue::show))
        .route("/upload", get(queue::after_upload).post(queue::upload))
        .route("/jobs/{id}", get(job::show))
        .route("/jobs/{id}/{deed}", get(job::ask).post(job::act))
        .route("/sign-in", get(sign_in::show).post(sign_in::sign_in))
        .route("/sign-out", post(sign_in::sign_out))
}

/// Files that belong to the pages, the same for everybody.
pub fn assets() -> Router<Arc<App>> {
    Router::new().route("/assets/{name}", get(assets::serve))
}

/// A template as an answer.
pub fn draw(page: &impl Template) -> Result<Html<String>, Problem> {
    page.render().map(Html).map_err(|error| {
        tracing::error!(%error, "a page could not be drawn");
        Problem::our_fault()
    })
}

/// Whether somebody looks at this answer in a browser: they asked for a page, at an address that is one or that a page
/// leads to.
pub fn is_for_people(path: &str, headers: &HeaderMap) -> bool {
    let accepted =
        headers.get(header::ACCEPT).and_then(|accepted| accepted.to_str().ok()).unwrap_or_default();
    let is_file = path.ends_with("/download") || path.starts_with("/api/files/");
    let is_program = !is_file && ["/api/", "/v1/"].iter().any(|start| path.starts_with(start));
    accepted.contains("text/html") && !is_program
}

/// The answer that told a problem, as a page.
pub fn trouble(problem: &Problem, told: Response) -> Response {
    #[derive(Template)]
    #[template(path = "trouble.html")]
    struct Trouble {
        title: String,
        detail: String,
    }
    let document = problem.document();
    match draw(&Trouble { title: document.title, detail: document.detail }) {
        Ok(page) => {
            let (mut head, _) = told.into_parts();
            head.headers.remove(header::CONTENT_LENGTH);
            head.headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
            Response::from_parts(head, page.0.into())
        }
        Err(_) => told,
    }
}
