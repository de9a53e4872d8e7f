//! Names of requests: one that is sent again under its name makes nothing new.

use crate::server::problem::Problem;
use axum::http::HeaderMap;

/// The name of a request, if it has one.
pub fn idempotency_key(headers: &HeaderMap) -> Result<Option<String>, Problem> {
    let Some(key) = headers.get("idempotency-key") else { return Ok(None) };
    let key = key.to_str().ok().filter(|key| !key.is_empty() && key.len() <= 255);
    let wrong =
        "Idempotency-Key is a text of 1 to 255 printable characters. Use a new UUID for each new request.";
    key.map(|key| Some(key.to_owned())).ok_or_else(|| Problem::invalid(wrong))
}
