//! Errors as RFC 9457 problem documents, with our codes.

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use ode_job::{ErrorCode, Failure};
use serde_json::json;

/// An answer that says what went wrong and what to do next.
#[derive(Debug)]
pub(crate) struct Problem {
    status: StatusCode,
    code: ErrorCode,
    detail: String,
}

/// When whoever is told that we are busy should come back: about as long as a few conversions take.
const RETRY_AFTER_SECONDS: &str = "2";

impl Problem {
    pub(crate) fn not_found() -> Self {
        Problem {
            status: StatusCode::NOT_FOUND,
            code: ErrorCode::NotFound,
            detail: "There is nothing at this address.".into(),
        }
    }

    pub(crate) fn method_not_allowed() -> Self {
        Problem {
            status: StatusCode::METHOD_NOT_ALLOWED,
            code: ErrorCode::Invalid,
            detail: "This address does not take this method. The header Allow names those it takes.".into(),
        }
    }

    /// The request itself is wrong.
    pub(crate) fn invalid(detail: impl Into<String>) -> Self {
        Problem { status: StatusCode::BAD_REQUEST, code: ErrorCode::Invalid, detail: detail.into() }
    }

    /// The request did not arrive in the time it had.
    pub(crate) fn too_slow(detail: impl Into<String>) -> Self {
        Problem { status: StatusCode::REQUEST_TIMEOUT, code: ErrorCode::Invalid, detail: detail.into() }
    }

    /// What it is called, also in counts.
    pub(crate) fn code(&self) -> ErrorCode {
        self.code
    }
}

impl From<Failure> for Problem {
    /// What failed by our own fault is told without how: that is for the log.
    fn from(failure: Failure) -> Self {
        match status(failure.code) {
            StatusCode::INTERNAL_SERVER_ERROR => Problem {
                status: StatusCode::INTERNAL_SERVER_ERROR,
                code: ErrorCode::Unknown,
                detail:
                    "This is our fault, not yours. Try again; if it stays so, the operator's log says why."
                        .into(),
            },
            status => Problem { status, code: failure.code, detail: sentence(&failure.message) },
        }
    }
}

/// With the full stop that the codes leave to the page.
fn sentence(message: &str) -> String {
    if message.ends_with(['.', '!', '?', '…']) { message.to_owned() } else { format!("{message}.") }
}

/// The status a code is told with. An unknown mapping is 422 and not 404: the address is right, a value in what was
/// sent is not.
fn status(code: ErrorCode) -> StatusCode {
    match code {
        ErrorCode::Invalid => StatusCode::BAD_REQUEST,
        ErrorCode::Forbidden => StatusCode::FORBIDDEN,
        ErrorCode::NotFound => StatusCode::NOT_FOUND,
        ErrorCode::NotReady
        | ErrorCode::Conflict
        | ErrorCode::Duplicate
        | ErrorCode::Cancelled
        | ErrorCode::Stopped => StatusCode::CONFLICT,
        ErrorCode::Expired => StatusCode::GONE,
        ErrorCode::TooLarge | ErrorCode::PayloadTooLarge => StatusCode::PAYLOAD_TOO_LARGE,
        ErrorCode::NotPdf => StatusCode::UNSUPPORTED_MEDIA_TYPE,
        ErrorCode::Unreadable | ErrorCode::UnknownMapping | ErrorCode::NoMapping | ErrorCode::NoText => {
            StatusCode::UNPROCESSABLE_ENTITY
        }
        ErrorCode::RateLimited => StatusCode::TOO_MANY_REQUESTS,
        ErrorCode::Busy | ErrorCode::DatabaseUnavailable | ErrorCode::DatabaseReadOnly => {
            StatusCode::SERVICE_UNAVAILABLE
        }
        ErrorCode::DiskFull => StatusCode::INSUFFICIENT_STORAGE,
        ErrorCode::Gw4xx
        | ErrorCode::Gw5xx
        | ErrorCode::GwTimeout
        | ErrorCode::IoError
        | ErrorCode::Unknown
        | ErrorCode::GatewayUnavailable
        | ErrorCode::TimedOut
        | ErrorCode::Poison
        | ErrorCode::SchemaMismatch => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let body = json!({
            "type": format!("urn:ode:error:{}", self.code),
            "title": self.code.sentence(),
            "status": self.status.as_u16(),
            "code": self.code,
            "detail": self.detail,
        });
        let headers = [(header::CONTENT_TYPE, "application/problem+json")];
        let mut response = (self.status, headers, body.to_string()).into_response();
        if self.status == StatusCode::SERVICE_UNAVAILABLE {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static(RETRY_AFTER_SECONDS));
        }
        response
    }
}
