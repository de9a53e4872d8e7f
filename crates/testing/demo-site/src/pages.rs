//! The pages: drawn by the server. What they let people do is a form that is sent and answered by going to a page.

pub(crate) mod account;
pub(crate) mod connect;
pub(crate) mod menu;
pub(crate) mod onboarding;
pub(crate) mod payments;
pub(crate) mod setup;
pub(crate) mod website;

use askama::Template;
use axum::http::StatusCode;
use axum::response::{Html, IntoResponse, Response};

/// Why there is no page to show.
#[derive(Debug)]
pub(crate) enum NoPage {
    /// What was asked for is not there.
    Missing(&'static str),
    /// The page could not be drawn.
    Broken,
}

impl IntoResponse for NoPage {
    fn into_response(self) -> Response {
        match self {
            NoPage::Missing(text) => (StatusCode::NOT_FOUND, text).into_response(),
            NoPage::Broken => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
        }
    }
}

/// A page, or why there is none.
type Page = Result<Response, NoPage>;

/// A template as an answer.
fn draw(page: &impl Template) -> Page {
    let drawn = page.render().map(|text| Html(text).into_response());
    drawn.map_err(|error| {
        tracing::error!(%error, "a page could not be drawn");
        NoPage::Broken
    })
}
