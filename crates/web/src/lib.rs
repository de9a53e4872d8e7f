//! The web side: routes, and the errors they answer with.
//!
//! A route reads and writes through the store and never runs a pipeline.

mod gateway;
mod problem;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
pub use gateway::{Conversion, Convert, GatewayLimits, MappingInfo, Mappings, Order, Shadow, serve_gateway};
use ode_store::{Blobs, Dialect, Store};
use problem::Problem;
use serde::Serialize;
use std::sync::Arc;
use std::time::Duration;
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
        .method_not_allowed_fallback(|| async { Problem::method_not_allowed() })
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
    let (database, files) =
        tokio::join!(check("database", web.store.check_schema()), check("files", web.blobs.check()));
    let checks = vec![database, files];
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

/// Whoever asks for our health gives up after about as long, and would then not learn what is wrong.
const CHECK_TIMEOUT: Duration = Duration::from_secs(5);

async fn check(name: &'static str, outcome: impl Future<Output = Result<(), ode_store::Error>>) -> Check {
    // The database's own words may name hosts and users, which are not the public's business; the log has them.
    let message = match tokio::time::timeout(CHECK_TIMEOUT, outcome).await {
        Ok(Ok(())) => None,
        Ok(Err(error)) => {
            tracing::warn!(%error, "health check of {name} failed");
            Some(error.code().sentence().to_owned())
        }
        Err(_) => {
            tracing::warn!("health check of {name} got no answer within {CHECK_TIMEOUT:?}");
            Some(format!("No answer within {} seconds", CHECK_TIMEOUT.as_secs()))
        }
    };
    Check { name, ok: message.is_none(), message }
}
