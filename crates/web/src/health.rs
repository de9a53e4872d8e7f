//! `GET /api/healthz`: whether this process lives and can do its work, and what an operator would ask next.

use crate::App;
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use ode_job::Phase;
use ode_store::{Dialect, Error};
use serde::Serialize;
use std::sync::Arc;
use std::time::Duration;
use utoipa::ToSchema;

/// How it is.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Health {
    /// `ok` or `unavailable`.
    status: &'static str,
    /// The program's version.
    version: &'static str,
    /// `postgresql` or `sqlite`.
    database: &'static str,
    /// The schema's version.
    schema: i64,
    /// What was checked.
    checks: Vec<Check>,
    /// What is going on, as far as the database says.
    #[serde(skip_serializing_if = "Option::is_none")]
    work: Option<Work>,
}

/// One thing that was checked.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Check {
    /// Which one.
    name: &'static str,
    /// Whether it is as it should be.
    ok: bool,
    /// What is wrong.
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<String>,
}

/// What is going on.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Work {
    /// Workers that are alive.
    workers: usize,
    /// Jobs that wait.
    waiting: i64,
    /// Jobs that run.
    running: i64,
}

/// That the process lives: it answers.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Alive {
    /// Always `ok`.
    status: &'static str,
}

/// Whether this process can do its work, with the reason for each part that cannot, and what is going on.
#[utoipa::path(get, path = "/api/healthz", tag = "health", security(()), responses(
    (status = 200, body = Health), (status = 503, body = Health, description = "Some part cannot")))]
pub(crate) async fn healthz(State(app): State<Arc<App>>) -> Response {
    let (mut health, work) = tokio::join!(look(&app), work(&app));
    health.work = work;
    answer(health)
}

/// Whether this process can do its work. For whoever sends it requests.
#[utoipa::path(get, path = "/api/healthz/ready", tag = "health", security(()), responses(
    (status = 200, body = Health), (status = 503, body = Health, description = "Some part cannot")))]
pub(crate) async fn ready(State(app): State<Arc<App>>) -> Response {
    answer(look(&app).await)
}

/// Whether this process lives. For whoever would start it anew.
#[utoipa::path(get, path = "/api/healthz/live", tag = "health", security(()), responses((status = 200, body = Alive)))]
pub(crate) async fn live() -> Json<Alive> {
    Json(Alive { status: "ok" })
}

fn answer(health: Health) -> Response {
    let status = if health.status == "ok" { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    (status, Json(health)).into_response()
}

async fn look(app: &App) -> Health {
    let (database, files) =
        tokio::join!(check("database", app.store.check_schema()), check("files", app.blobs.check()));
    let checks = vec![database, files];
    Health {
        status: if checks.iter().all(|check| check.ok) { "ok" } else { "unavailable" },
        version: env!("CARGO_PKG_VERSION"),
        database: match app.store.dialect() {
            Dialect::Postgres => "postgresql",
            Dialect::Sqlite => "sqlite",
        },
        schema: ode_store::SCHEMA_NEWEST,
        checks,
        work: None,
    }
}

async fn work(app: &App) -> Option<Work> {
    let counted = async {
        let (workers, counts) = tokio::try_join!(app.store.workers(), app.store.live_counts())?;
        let of = |wanted: Phase| {
            counts.iter().filter(|(phase, _)| *phase == wanted).map(|(_, count)| count).sum::<i64>()
        };
        Ok::<_, Error>(Work {
            workers: workers.iter().filter(|worker| worker.is_alive).count(),
            waiting: of(Phase::Ready) + of(Phase::Held),
            running: of(Phase::Running),
        })
    };
    tokio::time::timeout(CHECK_TIMEOUT, counted).await.ok()?.ok()
}

/// Whoever asks for our health gives up after about as long, and would then not learn what is wrong.
const CHECK_TIMEOUT: Duration = Duration::from_secs(5);

async fn check(name: &'static str, outcome: impl Future<Output = Result<(), Error>>) -> Check {
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
