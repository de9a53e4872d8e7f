//! Reading scripts: which there are, and where jobs stand.

use super::find;
use crate::PIPELINE;
use crate::intake::Intake;
use crate::script::Script;
use crate::sql::{self, ScriptFilter};
use crate::view::ScriptJob;
use axum::Json;
use axum::extract::{Extension, Path, State};
use axum::http::Uri;
use ode_http::App;
use ode_http::caller::Caller;
use ode_http::jobs::History;
use ode_http::problem::{Problem, Reading};
use ode_http::query::{PART_MAX, cursor, limit, query, since};
use ode_job::{JobRecord, State as JobState};
use ode_store::OwnedFilter;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::Arc;
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

/// Scripts that can be asked for.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ScriptTypes {
    /// The types.
    types: Vec<ScriptTypeView>,
}

/// A type of script.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ScriptType)]
pub(crate) struct ScriptTypeView {
    /// Its name.
    #[serde(rename = "type")]
    #[schema(example = "add-item-tags")]
    kind: String,
    /// What it does.
    title: String,
    /// Its version.
    version: u32,
    /// The JSON Schema of its input. Fields with `x-ode-secret` are sealed.
    #[schema(value_type = Object)]
    input_schema: Value,
    /// The titles of its steps.
    steps: Vec<String>,
}

/// Which scripts there are.
#[utoipa::path(get, path = "/v1/scripts", tag = "scripts", security(("key" = [])),
    responses((status = 200, body = ScriptTypes), Reading))]
pub(crate) async fn types(Extension(intake): Extension<Arc<Intake>>) -> Json<ScriptTypes> {
    let types = intake.catalog.iter().map(|script| ScriptTypeView::new(script)).collect();
    Json(ScriptTypes { types })
}

impl ScriptTypeView {
    fn new(script: &Script) -> Self {
        let manifest = &script.manifest;
        ScriptTypeView {
            kind: manifest.name.clone(),
            title: manifest.title.clone(),
            version: manifest.version,
            input_schema: script.payload.document().clone(),
            steps: manifest.steps.iter().map(|step| step.title.clone()).collect(),
        }
    }
}

/// One script.
#[utoipa::path(get, path = "/v1/scripts/jobs/{id}", tag = "scripts", security(("key" = [])),
    params(("id" = String, Path, description = "Its id or reference")),
    responses((status = 200, body = ScriptJob), Reading))]
pub(crate) async fn detail(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
) -> Result<Json<ScriptJob>, Problem> {
    let job = find(&app, &caller, &id).await?;
    shown(&app, job).await.map(Json)
}

/// The job as it is shown.
pub(super) async fn shown(app: &App, job: JobRecord) -> Result<ScriptJob, Problem> {
    views(app, vec![job]).await?.pop().ok_or_else(Problem::no_job)
}

async fn views(app: &App, jobs: Vec<JobRecord>) -> Result<Vec<ScriptJob>, Problem> {
    let mut facts = sql::script_facts(app.store.sql(), &jobs).await?;
    let view = |job: JobRecord| {
        let facts = facts.remove(&job.id).unwrap_or_default();
        ScriptJob::new(job, facts)
    };
    Ok(jobs.into_iter().map(view).collect())
}

/// Which scripts to list.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct ScriptListQuery {
    /// Only of this type.
    #[serde(rename = "type")]
    #[param(example = "add-item-tags")]
    kind: Option<String>,
    /// Only in this state.
    #[param(example = "failed")]
    status: Option<String>,
    /// Only about this restaurant.
    #[param(value_type = Option<String>, format = "uuid")]
    restaurant_id: Option<String>,
    /// Only those that this person asked for.
    #[param(value_type = Option<String>, format = "uuid")]
    created_by: Option<String>,
    /// Only of this batch.
    #[param(value_type = Option<String>, format = "uuid")]
    batch_id: Option<String>,
    /// Only jobs that changed at this moment or later.
    #[param(value_type = Option<String>, format = "date-time")]
    since: Option<String>,
    /// Where the list goes on: the `next_cursor` of the part before.
    cursor: Option<String>,
    /// How many at most; 100 unless said otherwise.
    #[param(value_type = Option<u16>, minimum = 1, maximum = 1000)]
    limit: Option<String>,
}

impl ScriptListQuery {
    fn filter(self, caller: &Caller) -> Result<ScriptFilter, Problem> {
        let state = match self.status.as_deref().map(str::parse::<JobState>) {
            None => None,
            Some(Ok(state)) if PIPELINE.phase(state).is_some() => Some(state),
            Some(_) => {
                let detail =
                    "status is pending, queued, in_progress, completed, failed, cancelled or timed_out.";
                return Err(Problem::invalid(detail));
            }
        };
        let owned = OwnedFilter {
            owner: caller.owner,
            kind: self.kind,
            state,
            phase: None,
            since: since(self.since.as_deref())?,
            before: cursor(self.cursor.as_deref())?,
            limit: limit(self.limit.as_deref(), PART_MAX)?,
        };
        Ok(ScriptFilter {
            owned,
            restaurant: id("restaurant_id", self.restaurant_id.as_deref())?,
            created_by: id("created_by", self.created_by.as_deref())?,
            batch: id("batch_id", self.batch_id.as_deref())?,
        })
    }
}

fn id(name: &str, text: Option<&str>) -> Result<Option<Uuid>, Problem> {
    let id = text.map(str::parse).transpose();
    id.map_err(|_| Problem::invalid(format!("{name} is not an id. Write it as a UUID.")))
}

/// A part of a list, newest first.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ScriptJobs {
    /// The jobs.
    jobs: Vec<ScriptJob>,
    /// Where the next part begins, if there is one.
    next_cursor: Option<String>,
}

/// Your scripts, newest first.
#[utoipa::path(get, path = "/v1/scripts/jobs", tag = "scripts", security(("key" = [])), params(ScriptListQuery),
    responses((status = 200, body = ScriptJobs), Reading))]
pub(crate) async fn list(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    uri: Uri,
) -> Result<Json<ScriptJobs>, Problem> {
    let form = "type, status, restaurant_id, created_by, batch_id, since, cursor and limit";
    let query: ScriptListQuery = query(&uri, form)?;
    let page = sql::scripts(app.store.sql(), &query.filter(&caller)?).await?;
    let next_cursor = page.next_cursor.map(|id| id.to_string());
    Ok(Json(ScriptJobs { jobs: views(&app, page.jobs).await?, next_cursor }))
}

/// What happened to a script.
#[utoipa::path(get, path = "/v1/scripts/jobs/{id}/events", tag = "scripts", security(("key" = [])),
    params(("id" = String, Path, description = "Its id or reference")),
    responses((status = 200, body = History), Reading))]
pub(crate) async fn events(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
) -> Result<Json<History>, Problem> {
    let job = find(&app, &caller, &id).await?;
    History::of(&app, job.id).await
}
