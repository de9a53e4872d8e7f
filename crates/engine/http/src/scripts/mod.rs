//! `/v1/scripts`: long automations as jobs, for programs that come with an API key.
//!
//! Secrets are taken out of a request and sealed before anything of it is stored. No route knows how a script is run, or
//! how a seal is made: the wiring hands in somebody who does.

pub mod act;
pub mod artifacts;
pub mod logs;
pub mod read;
pub mod request;
mod sequence;
pub mod submit;
pub mod view;

use crate::App;
use crate::caller::Caller;
use crate::problem::Problem;
use axum::Router;
use axum::routing::{get, post};
use futures_util::future::BoxFuture;
use ode_job::{ErrorCode, Failure, JobRecord, Sealed};
use serde_json::{Map, Value};
use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;
use uuid::Uuid;

/// What the web side asks of whoever knows scripts.
pub trait Scripts: Debug + Send + Sync {
    /// Every type there is, by name.
    fn types(&self) -> Vec<ScriptInfo>;

    /// Checks what is sent to a script, and takes the secrets out of it under seal.
    fn accept<'a>(
        &'a self,
        kind: &'a str,
        owner: Uuid,
        input: Value,
    ) -> BoxFuture<'a, Result<AcceptedScript, Refusal>>;

    /// Seals other secrets for a job that was sent with this input: all of them, by name.
    fn reseal<'a>(
        &'a self,
        job: &'a JobRecord,
        owner: Uuid,
        secrets: Map<String, Value>,
    ) -> BoxFuture<'a, Result<(Sealed, Duration), Refusal>>;

    /// Opens secrets that came of a job.
    fn open(&self, owner: Uuid, sealed: &Sealed) -> Result<Value, Failure>;
}

/// A type of script.
#[derive(Debug, Clone)]
pub struct ScriptInfo {
    /// Its name.
    pub name: String,
    /// What it does, for people.
    pub title: String,
    /// Its version.
    pub version: u32,
    /// The JSON Schema of what is sent to it.
    pub payload: Value,
    /// Its steps: names and titles.
    pub steps: Vec<(String, String)>,
}

/// A script that can become a job.
#[derive(Debug, Clone)]
pub struct AcceptedScript {
    /// What was sent, with the names of secrets in place of the secrets.
    pub input: Value,
    /// Those, if there were some.
    pub secret: Option<Sealed>,
    /// How long they are kept for somebody who tries the job again after it failed.
    pub keep_secret: Duration,
    /// How long an attempt may take.
    pub timeout: Duration,
    /// How often it is tried again.
    pub retries_max: u32,
    /// Jobs with the same do not run at once.
    pub turn: Option<String>,
}

/// Why a script cannot become a job.
#[derive(Debug, Clone)]
pub enum Refusal {
    /// There is no such type.
    Unknown,
    /// What was sent to it is wrong: where and why, for each.
    Invalid(Vec<(String, String)>),
    /// Not exactly the secrets that the job has were sent along: the name of the first that is wrong, and a sentence.
    Secrets(Option<String>, String),
    /// Something else.
    Failed(Failure),
}

impl From<Refusal> for Problem {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::Unknown => Problem::new(
                ErrorCode::NotFound,
                "There is no script of that type. GET /v1/scripts lists those there are.",
            ),
            Refusal::Invalid(wrong) => {
                let wrong: Vec<_> =
                    wrong.into_iter().map(|(pointer, why)| (written(&pointer), why)).collect();
                let each: Vec<String> = wrong.iter().map(|(path, why)| format!("{path} {why}")).collect();
                let first = wrong.into_iter().next().map_or_else(String::new, |(path, _)| path);
                Problem::invalid(format!("{}.", each.join("; "))).at(first)
            }
            Refusal::Secrets(name, why) => {
                let path = name.map_or_else(|| "secrets".to_owned(), |name| format!("secrets.{name}"));
                Problem::invalid(why).at(path)
            }
            Refusal::Failed(failure) => failure.into(),
        }
    }
}

/// The place in the input that a JSON pointer names, written as in every problem: `input.itemTags[0].name`.
fn written(pointer: &str) -> String {
    let part = |name: &str| match name.parse::<usize>() {
        Ok(place) => format!("[{place}]"),
        Err(_) => format!(".{}", name.replace("~1", "/").replace("~0", "~")),
    };
    format!("input{}", pointer.split('/').skip(1).map(part).collect::<String>())
}

impl App {
    /// Whoever knows scripts here.
    fn scripts(&self) -> Result<&dyn Scripts, Problem> {
        let none =
            "No scripts are run here. Start ODE with `ode serve`, or with `ode web` beside `ode worker`.";
        self.settings.scripts.as_deref().ok_or_else(|| Problem::new(ErrorCode::Busy, none))
    }
}

/// Routes for callers with a key.
pub fn routes() -> Router<Arc<App>> {
    Router::new()
        .route("/v1/scripts", get(read::types))
        .route("/v1/scripts/batch", post(submit::batch))
        .route("/v1/scripts/jobs", get(read::list))
        .route("/v1/scripts/jobs/{id}", get(read::detail))
        .route("/v1/scripts/jobs/{id}/events", get(read::events))
        .route("/v1/scripts/jobs/{id}/logs", get(logs::logs))
        .route("/v1/scripts/jobs/{id}/artifacts", get(artifacts::list))
        .route("/v1/scripts/jobs/{id}/artifacts/{*name}", get(artifacts::fetch))
        .route("/v1/scripts/jobs/{id}/cancel", post(act::cancel))
        .route("/v1/scripts/jobs/{id}/stop", post(act::stop))
        .route("/v1/scripts/jobs/{id}/retry", post(act::retry))
        .route("/v1/scripts/jobs/{id}/secrets", post(act::reveal))
        .route("/v1/scripts/{type}", post(submit::submit))
}

/// A script of the caller's.
async fn find(app: &App, caller: &Caller, id: &str) -> Result<JobRecord, Problem> {
    let job = crate::jobs::find(app, caller, id).await?;
    if job.pipeline.as_str() == "script" { Ok(job) } else { Err(Problem::no_job()) }
}

/// Where a job is found.
fn address(job: &str) -> String {
    format!("/v1/scripts/jobs/{job}")
}
