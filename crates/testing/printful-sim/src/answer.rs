//! Answers in Printful's two shapes.

use axum::body::Body;
use axum::http::{HeaderName, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};
use std::time::Duration;

/// What is answered, before anything goes wrong with it.
#[derive(Debug, Clone)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) body: Value,
    pub(crate) retry_after: Option<Duration>,
}

impl Answer {
    /// Success, as version 1 wraps it.
    pub(crate) fn v1(result: Value) -> Self {
        Answer { status: StatusCode::OK, body: json!({ "code": 200, "result": result }), retry_after: None }
    }

    /// A page of a list, as version 1 wraps it.
    pub(crate) fn v1_page(result: Vec<Value>, total: usize, offset: usize, limit: usize) -> Self {
        let paging = json!({ "total": total, "offset": offset, "limit": limit });
        let body = json!({ "code": 200, "result": result, "paging": paging });
        Answer { status: StatusCode::OK, body, retry_after: None }
    }

    /// Success, as version 2 wraps it.
    pub(crate) fn v2(data: Value) -> Self {
        Answer { status: StatusCode::OK, body: json!({ "data": data, "_links": {} }), retry_after: None }
    }

    /// A refusal of version 1, with its own code where it has one.
    pub(crate) fn refused(status: u16, code: Option<&str>, message: &str) -> Self {
        let status = StatusCode::from_u16(status).expect("the simulator uses valid statuses");
        let reason: String = status.canonical_reason().unwrap_or("Error").split(' ').collect();
        let mut body = json!({
            "code": status.as_u16(), "result": message, "error": { "reason": reason, "message": message },
        });
        if let Some(code) = code {
            body["api_error_code"] = code.into();
        }
        Answer { status, body, retry_after: None }
    }

    /// A refusal of version 2.
    pub(crate) fn problem(status: u16, title: &str, detail: &str) -> Self {
        let status = StatusCode::from_u16(status).expect("the simulator uses valid statuses");
        let body = json!({
            "type": format!("https://api.printful.com/errors/{}", status.as_u16()), "status": status.as_u16(),
            "title": title, "detail": detail, "instance": "",
        });
        Answer { status, body, retry_after: None }
    }

    pub(crate) fn not_found() -> Self {
        Answer::refused(404, None, "Not Found")
    }

    /// The same, to be asked again after a while.
    pub(crate) fn after(self, wait: Duration) -> Self {
        Answer { retry_after: Some(wait), ..self }
    }

    pub(crate) fn text(&self) -> String {
        self.body.to_string()
    }
}

impl IntoResponse for Answer {
    fn into_response(self) -> Response {
        let mut response = plain(self.status, "application/json; charset=utf-8", self.text());
        if let Some(wait) = self.retry_after {
            response.headers_mut().insert(header::RETRY_AFTER, wait.as_secs().into());
        }
        response
    }
}

/// Any text under any name.
pub(crate) fn plain(status: StatusCode, content_type: &'static str, text: String) -> Response {
    (status, [(header::CONTENT_TYPE, content_type)], text).into_response()
}

/// The first half of a text that was announced whole; then the connection ends.
pub(crate) fn half(status: StatusCode, text: &str) -> Response {
    let cut = text.floor_char_boundary(text.len() / 2);
    let first = bytes::Bytes::copy_from_slice(&text.as_bytes()[..cut]);
    let chunks = [Ok(first), Err(std::io::Error::other("cut off on purpose"))];
    let mut response = Response::new(Body::from_stream(futures_util::stream::iter(chunks)));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_LENGTH, text.len().into());
    headers.insert(
        header::CONTENT_TYPE,
        axum::http::HeaderValue::from_static("application/json; charset=utf-8"),
    );
    response
}

/// Says to whoever serves the connection that it is to end without an answer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CutOff;

/// No answer at all.
pub(crate) fn nothing() -> Response {
    let mut response = Response::new(Body::empty());
    response.extensions_mut().insert(CutOff);
    response
}

/// How the limit stands, as Printful tells it with every answer.
pub(crate) const RATE_HEADERS: [HeaderName; 4] = [
    HeaderName::from_static("x-ratelimit-limit"),
    HeaderName::from_static("x-ratelimit-remaining"),
    HeaderName::from_static("x-ratelimit-reset"),
    HeaderName::from_static("x-ratelimit-policy"),
];
