//! How it is: `/api/healthz` for everybody, in few words, and the same with all particulars for operators.
//!
//! Unavailable is what cannot serve: the database or the file store. Everything else that is not as it should be is
//! named as degraded, and does not keep anybody from sending requests.

use crate::App;
use crate::site::watcher::Watcher;
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use ode_store::{Dialect, Error, Finding};
use serde::Serialize;
use std::sync::Arc;
use std::time::Duration;
use utoipa::ToSchema;

/// How it is.
#[derive(Debug, Serialize, ToSchema)]
pub struct Health {
    /// `ok`, `degraded` or `unavailable`.
    status: &'static str,
    /// The program's version.
    version: &'static str,
    /// What serving needs.
    checks: Vec<Check>,
    /// Parts that do not work as they should although requests are answered: `workers`, `uploads`, `gateway`, `redis`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    degraded: Vec<String>,
}

/// One thing that was checked.
#[derive(Debug, Serialize, ToSchema)]
pub struct Check {
    /// Which one.
    name: &'static str,
    /// Whether it is as it should be.
    ok: bool,
    /// What is wrong.
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<String>,
}

impl Check {
    fn new(name: &'static str, message: Option<String>) -> Self {
        Check { name, ok: message.is_none(), message }
    }
}

/// That the process lives: it answers.
#[derive(Debug, Serialize, ToSchema)]
pub struct Alive {
    /// Always `ok`.
    status: &'static str,
}

/// How it is, for those who may know everything.
#[derive(Debug, Serialize)]
struct Details {
    #[serde(flatten)]
    health: Health,
    database: &'static str,
    schema: i64,
    findings: Vec<Finding>,
}

/// How it is: whether this process can do its work, and what does not work as it should.
#[utoipa::path(get, path = "/api/healthz", tag = "health", security(()), responses(
    (status = 200, body = Health), (status = 503, body = Health, description = "It cannot serve")))]
pub async fn healthz(State(app): State<Arc<App>>) -> Response {
    let (health, _) = examine(&app.watcher).await;
    answer(&health, &health)
}

/// Whether this process can do its work. For whoever sends it requests.
#[utoipa::path(get, path = "/api/healthz/ready", tag = "health", security(()), responses(
    (status = 200, body = Health), (status = 503, body = Health, description = "It cannot serve")))]
pub async fn ready(State(app): State<Arc<App>>) -> Response {
    let health = check_all(&app.watcher).await;
    answer(&health, &health)
}

/// Whether this process lives. For whoever would start it anew.
#[utoipa::path(get, path = "/api/healthz/live", tag = "health", security(()), responses((status = 200, body = Alive)))]
pub async fn live() -> Json<Alive> {
    Json(Alive { status: "ok" })
}

/// How it is, with everything that an operator would ask next.
pub async fn details(watcher: &Watcher) -> Response {
    let (health, findings) = examine(watcher).await;
    let details = Details {
        database: match watcher.store.dialect() {
            Dialect::Postgres => "postgresql",
            Dialect::Sqlite => "sqlite",
        },
        schema: ode_store::schema_newest(),
        findings,
        health,
    };
    answer(&details.health, &details)
}

/// 503 keeps requests away, so it is for those cases alone in which they would fail.
fn answer(health: &Health, told: &impl Serialize) -> Response {
    let is_serving = health.checks.iter().all(|check| check.ok);
    let status = if is_serving { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    (status, Json(told)).into_response()
}

async fn examine(watcher: &Watcher) -> (Health, Vec<Finding>) {
    let (mut health, look) = tokio::join!(check_all(watcher), watcher.look());
    let findings = watcher.findings(&look);
    // Of a gateway the public learns that there is one, not where.
    let part = |finding: &Finding| finding.name.split(' ').next().unwrap_or_default().to_owned();
    health.degraded = findings.iter().filter(|finding| !finding.is_ok).map(part).collect();
    health.degraded.dedup();
    if health.status == "ok" && !health.degraded.is_empty() {
        health.status = "degraded";
    }
    (health, findings)
}

async fn check_all(watcher: &Watcher) -> Health {
    let (database, files) =
        tokio::join!(trouble("database", watcher.store.check_schema()), watcher.files_trouble());
    let checks = vec![Check::new("database", database), Check::new("files", files)];
    Health {
        status: if checks.iter().all(|check| check.ok) { "ok" } else { "unavailable" },
        version: env!("CARGO_PKG_VERSION"),
        checks,
        degraded: Vec::new(),
    }
}

/// Whoever asks for our health gives up after about as long, and would then not learn what is wrong.
pub const CHECK_TIMEOUT: Duration = Duration::from_secs(5);

/// What is wrong, in words for everybody.
pub async fn trouble(name: &str, outcome: impl Future<Output = Result<(), Error>>) -> Option<String> {
    // The database's own words may name hosts and users, which are not the public's business; the log has them.
    match tokio::time::timeout(CHECK_TIMEOUT, outcome).await {
        Ok(Ok(())) => None,
        Ok(Err(error)) => {
            tracing::warn!(%error, "health check of {name} failed");
            Some(error.code().sentence().to_owned())
        }
        Err(_) => {
            tracing::warn!("health check of {name} got no answer within {CHECK_TIMEOUT:?}");
            Some(format!("No answer within {} seconds", CHECK_TIMEOUT.as_secs()))
        }
    }
}
