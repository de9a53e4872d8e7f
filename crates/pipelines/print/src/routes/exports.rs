//! `GET /exports/{sha256}.png`: a finished picture by its content, to whoever brings a link that we signed.
//!
//! Print shops keep what they fetched from an address for ever, so that another picture must have another address.

use crate::sql;
use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, Uri};
use axum::response::Response;
use jiff::Timestamp;
use ode_http::App;
use ode_http::download::{LinkQuery, Sent, respond, wrong_link};
use ode_http::problem::{Fetching, Problem, ProblemDocument};
use ode_http::session::Signer;
use std::sync::Arc;
use std::time::Duration;

const PURPOSE: &str = "export";

/// Makes links to exports.
#[derive(Clone)]
pub struct ExportLinks {
    signer: Signer,
    base: String,
}

impl std::fmt::Debug for ExportLinks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ExportLinks").field("base", &self.base).finish_non_exhaustive()
    }
}

impl ExportLinks {
    /// Links below this address, such as `https://ode.example`, signed with the web side's shared secret.
    #[must_use]
    pub fn new(secret: Vec<u8>, base: String) -> Self {
        ExportLinks { signer: Signer::new(secret), base }
    }

    /// A link to the export with this digest, good for so long.
    #[must_use]
    pub fn url(&self, sha256: &str, lifetime: Duration) -> String {
        let expires = (Timestamp::now() + lifetime).as_second();
        let signature = self.signer.sign(PURPOSE, &signed_text(sha256, expires));
        format!("{}/exports/{sha256}.png?expires={expires}&signature={signature}", self.base)
    }
}

fn signed_text(sha256: &str, expires: i64) -> String {
    format!("{sha256} {expires}")
}

/// Links as they are given to those who ask here.
pub(crate) fn export_links(app: &App) -> ExportLinks {
    let base = app.settings.public_url.clone().unwrap_or_default();
    ExportLinks { signer: app.signer.clone(), base }
}

/// A finished picture, to whoever brings the link.
#[utoipa::path(get, path = "/exports/{file}", tag = "maps", security(()),
    params(("file" = String, Path, description = "The digest of the picture, and `.png`"), LinkQuery),
    responses(
        (status = 200, description = "The picture", content_type = "image/png", body = Vec<u8>),
        (status = 206, description = "The part that was asked for", content_type = "image/png", body = Vec<u8>),
        Fetching,
        (status = 404, body = ProblemDocument, content_type = "application/problem+json",
            description = "The link is wrong or too old, or the picture was removed")))]
pub(crate) async fn fetch(
    State(app): State<Arc<App>>,
    Path(file): Path<String>,
    uri: Uri,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let Query(query) = Query::<LinkQuery>::try_from_uri(&uri).map_err(|_| wrong_link())?;
    let sha256 = file.strip_suffix(".png").ok_or_else(wrong_link)?;
    if !query.is_good(&app.signer, PURPOSE, &signed_text(sha256, query.expires())) {
        return Err(wrong_link());
    }
    let found = sql::export(app.store.sql(), sha256).await?.ok_or_else(wrong_link)?;
    let sent = Sent {
        disposition: format!("inline; filename=\"{sha256}.png\""),
        cache: "public, max-age=31536000, immutable",
        counted_for: None,
    };
    respond(&app, &found, &headers, sent).await
}
