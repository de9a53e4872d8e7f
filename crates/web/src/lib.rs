//! The web side: routes, and the errors they answer with.
//!
//! A route reads and writes through the store and never runs a pipeline.

mod problem;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use ode_store::{Blobs, Dialect, Store};
use problem::Problem;
use serde::Serialize;
use std::sync::Arc;
use tokio::net::TcpListener;

/// What the routes need.
#[derive(Debug, Clone)]
pub struct Web {
    /// Jobs.
    pub store: Store,
    /// Files.
    pub blobs: Blobs,
}

/// Serves until `stop` is done, then lets requests that are under way end.
pub async fn serve(
    listener: TcpListener,
    web: Web,
    stop: impl Future<Output = ()> + Send + 'static,
) -> std::io::Result<()> {
    axum::serve(listener, router(web)).with_graceful_shutdown(stop).await
}

fn router(web: Web) -> Router {
    Router::new()
        .route("/", get(front))
        .route("/api/healthz", get(healthz))
        .fallback(|| async { Problem::not_found() })
        .with_state(Arc::new(web))
}

async fn front() -> &'static str {
    concat!(
        "ODE ",
        env!("CARGO_PKG_VERSION"),
        " is running.\n\nIs it well?        GET /api/healthz\nWhat is it doing?  ode jobs list\n"
    )
}

#[derive(Serialize)]
struct Health {
    status: &'static str,
    version: &'static str,
    database: &'static str,
    schema: i64,
    checks: Vec<Check>,
}

#[derive(Serialize)]
struct Check {
    name: &'static str,
    ok: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<String>,
}

/// Whether this process can do its work: the database answers with the right schema, files can be stored.
/// 200 when it can, 503 when it cannot, with the reason for each part.
async fn healthz(State(web): State<Arc<Web>>) -> Response {
    let checks =
        vec![check("database", web.store.check_schema().await), check("files", web.blobs.check().await)];
    let is_ok = checks.iter().all(|check| check.ok);
    let health = Health {
        status: if is_ok { "ok" } else { "unavailable" },
        version: env!("CARGO_PKG_VERSION"),
        database: match web.store.dialect() {
            Dialect::Postgres => "postgresql",
            Dialect::Sqlite => "sqlite",
        },
        schema: ode_store::SCHEMA_NEWEST,
        checks,
    };
    let status = if is_ok { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    (status, Json(health)).into_response()
}

fn check(name: &'static str, outcome: Result<(), ode_store::Error>) -> Check {
    if let Err(error) = &outcome {
        tracing::warn!(%error, "health check of {name} failed");
    }
    // The database's own words may name hosts and users, which are not the public's business; the log has them.
    let message = outcome.as_ref().err().map(|error| error.code().sentence().to_owned());
    Check { name, ok: outcome.is_ok(), message }
}
