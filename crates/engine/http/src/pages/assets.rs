//! Style, script and icon: part of the program, so that a page and its parts are always of one version.

use crate::server::etag;
use crate::server::problem::Problem;
use axum::extract::Path;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use sha2::{Digest as _, Sha256};

/// Name, media type, content.
const ASSETS: [(&str, &str, &str); 3] = [
    ("ode.css", "text/css; charset=utf-8", include_str!("../../assets/ode.css")),
    ("ode.js", "text/javascript; charset=utf-8", include_str!("../../assets/ode.js")),
    ("icon.svg", "image/svg+xml", include_str!("../../assets/icon.svg")),
];

/// Asked for again with every page, and answered with nothing while it is the same.
pub(super) async fn serve(Path(name): Path<String>, headers: HeaderMap) -> Result<Response, Problem> {
    let (_, kind, content) =
        ASSETS.iter().find(|(known, ..)| *known == name).ok_or_else(Problem::not_found)?;
    let tag = format!("\"{}\"", hex::encode(&Sha256::digest(content)[..12]));
    let is_known = etag::is_known(&headers, &tag);
    let tag = HeaderValue::from_str(&tag).expect("letters and digits are a header");
    let head = [(header::ETAG, tag), (header::CACHE_CONTROL, HeaderValue::from_static("no-cache"))];
    if is_known {
        return Ok((StatusCode::NOT_MODIFIED, head).into_response());
    }
    Ok((head, [(header::CONTENT_TYPE, *kind)], *content).into_response())
}
