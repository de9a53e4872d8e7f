//! Reviewing results below `/api/jobs`: corrections, and converting a document once more. Any job of the caller's can be
//! addressed; what is shown on its page is for the pipeline's own.

pub(crate) mod again;
pub(crate) mod revisions;

use crate::pages;
use axum::Router;
use axum::body::to_bytes;
use axum::extract::Request;
use axum::http::StatusCode;
use axum::routing::{get, post};
use ode_http::body::is_of_type;
use ode_http::problem::Problem;
use ode_http::{JobKind, Routes};
use ode_job::ErrorCode;
use serde::de::DeserializeOwned;
use utoipa::OpenApi;

/// A correction is a few lines.
pub(crate) const BODY_BYTES_MAX: usize = 64 << 10;

#[derive(OpenApi)]
#[openapi(paths(revisions::revisions, revisions::revise, again::convert))]
struct Api;

/// Addresses of a site on which jobs of this kind are shown.
pub(crate) fn routes(kind: JobKind) -> Routes {
    let known = Router::new()
        .route("/api/jobs/{id}/revisions", get(revisions::revisions).post(revisions::revise))
        .route("/api/jobs/{id}/convert", post(again::convert))
        .merge(pages::routes());
    Routes { kind: Some(kind), known, api: Api::openapi(), ..Routes::default() }
}

/// A few lines of JSON; where they are not what was expected, `form` says what that is.
async fn read_json<T: DeserializeOwned>(request: Request, form: &'static str) -> Result<T, Problem> {
    if !is_of_type(request.headers(), "application/json") {
        let detail = "Send it as JSON, with Content-Type: application/json.";
        return Err(Problem::with_status(StatusCode::UNSUPPORTED_MEDIA_TYPE, ErrorCode::Invalid, detail));
    }
    let body = to_bytes(request.into_body(), BODY_BYTES_MAX).await.map_err(|_| {
        let detail = format!("It has {} kB at most, and must arrive whole.", BODY_BYTES_MAX >> 10);
        Problem::with_status(StatusCode::PAYLOAD_TOO_LARGE, ErrorCode::Invalid, detail)
    })?;
    serde_json::from_slice(&body).map_err(|_| Problem::invalid(form))
}

#[cfg(test)]
mod tests {
    use super::*;
    use ode_http::openapi::Described;

    #[test]
    fn what_is_to_be_sent_is_told_field_by_field() {
        let page = Described::new(Api::openapi()).page;
        let assert_told = |address: &str, told: &[&str]| {
            let (_, rest) = page.split_once(&format!("<h2><code>{address}</code></h2>")).unwrap();
            let (section, _) = rest.split_once("</section>").unwrap();
            for told in told {
                assert!(section.contains(told), "{told:?} is not told of {address}:\n{section}");
            }
        };
        assert_told(
            "POST /api/jobs/{id}/convert",
            &["Body, as application/json", "string, needed. Which mapping"],
        );
        assert_told("POST /api/jobs/{id}/revisions", &["<code>before</code></th><td>", "list of number"]);
    }
}
