//! Errors as RFC 9457 problem documents, with our codes.

use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use ode_job::ErrorCode;
use serde_json::json;

/// An answer that says what went wrong and what to do next.
#[derive(Debug)]
pub(crate) struct Problem {
    status: StatusCode,
    code: ErrorCode,
    detail: String,
}

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
        (self.status, headers, body.to_string()).into_response()
    }
}
