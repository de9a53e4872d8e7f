//! What was found out about a result.

use crate::App;
use crate::callers::caller::Caller;
use crate::jobs::find;
use crate::server::problem::{Problem, Reading};
use axum::Json;
use axum::extract::{Extension, Path, State};
use ode_job::Check;
use serde::Serialize;
use std::sync::Arc;
use utoipa::ToSchema;

/// What was found out about a result.
#[derive(Debug, Serialize, ToSchema)]
pub struct Checks {
    /// In the order it was found.
    checks: Vec<CheckView>,
}

/// One finding about a result.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Finding)]
pub struct CheckView {
    /// What found it: `arithmetic`, `schema`, `content` or `model`.
    kind: &'static str,
    /// How much it matters: `info`, `review` (a person should look) or `error`.
    severity: &'static str,
    /// Stable name; `ode explain CODE` says more.
    #[schema(example = "TOTAL_MISMATCH")]
    code: String,
    /// Field or column it is about, where there is one.
    field: Option<String>,
    /// A sentence.
    message: String,
    /// The language model that said so, where one was asked.
    model: Option<String>,
    /// How sure it was, 0 to 1.
    confidence: Option<f64>,
}

impl From<Check> for CheckView {
    fn from(Check { kind, severity, code, field, message, opinion }: Check) -> Self {
        let confidence = opinion.as_ref().and_then(|opinion| opinion.confidence);
        let model = opinion.map(|opinion| opinion.model);
        let (kind, severity) = (kind.as_str(), severity.as_str());
        CheckView { kind, severity, code, field, message, model, confidence }
    }
}

/// What was found out about a job's result: sums, rules, and what a language model said, where one was asked.
#[utoipa::path(get, path = "/api/jobs/{id}/checks", tag = "jobs",
    params(("id" = String, Path, description = "Its id or reference")),
    responses(
        (status = 200, body = Checks),
        Reading))]
pub async fn checks(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
) -> Result<Json<Checks>, Problem> {
    let job = find(&app, &caller, &id).await?;
    let checks = app.store.checks(job.id).await?;
    Ok(Json(Checks { checks: checks.into_iter().map(CheckView::from).collect() }))
}
