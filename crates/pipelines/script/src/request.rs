//! A script as it is asked for, checked before it becomes a job.

use crate::PIPELINE;
use crate::intake::{AcceptedPayload, Intake};
use crate::sql::{Need, NewScript};
use jiff::Timestamp;
use ode_http::App;
use ode_http::body;
use ode_http::caller::Caller;
use ode_http::problem::Problem;
use ode_job::new::{PRIORITY, RETRIES_MAX};
use ode_job::{ErrorCode, JobId, JobRef, NewJob};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};
use std::collections::HashMap;
use std::time::Duration;
use utoipa::openapi::schema::{ObjectBuilder, Type};
use utoipa::openapi::{RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};
use uuid::Uuid;

/// Under this name a job's labels say which restaurant it is about.
const RESTAURANT: &str = "restaurant_id";
/// A job that needs more others than this is not a step but a whole plan.
const NEEDS_MAX: usize = 50;

/// A script that is to be run.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = NewScriptJob)]
pub(crate) struct Request {
    /// What the script is to do, as its type has it. What is marked there as secret is sealed and never shown again.
    #[schema(value_type = Object)]
    pub(crate) input: Map<String, Value>,
    /// Higher goes first.
    #[serde(default)]
    #[schema(minimum = -1000, maximum = 1000)]
    pub(crate) priority: i32,
    /// Not before then.
    #[serde(default, deserialize_with = "moment")]
    #[schema(value_type = Option<String>, format = "date-time")]
    pub(crate) run_at: Option<Timestamp>,
    /// Labels of yours, up to 64 KB.
    #[serde(default)]
    #[schema(value_type = Option<Object>)]
    pub(crate) metadata: Option<Map<String, Value>>,
    /// The restaurant it is about, to list by.
    #[serde(default, deserialize_with = "id")]
    #[schema(value_type = Option<String>, format = "uuid")]
    pub(crate) restaurant_id: Option<Uuid>,
    /// The person who asks for it, to list by.
    #[serde(default, deserialize_with = "id")]
    #[schema(value_type = Option<String>, format = "uuid")]
    pub(crate) created_by: Option<Uuid>,
    /// Jobs of yours with the same key do not run at once; the type's own key where there is none.
    #[serde(default)]
    #[schema(min_length = 1, max_length = 200)]
    pub(crate) concurrency_key: Option<String>,
    /// How often it is tried again after something failed that may pass; as often as its type says where absent.
    #[serde(default)]
    #[schema(maximum = 100)]
    pub(crate) max_retries: Option<u32>,
    /// Milliseconds that one attempt may take, up to what its type says; that where absent.
    #[serde(default)]
    #[schema(minimum = 1, maximum = 604_800_000)]
    pub(crate) timeout_ms: Option<u64>,
    /// Jobs that must have completed before it starts: ids or references, in a batch also names of earlier jobs.
    #[serde(default)]
    #[schema(max_items = 50)]
    pub(crate) depends_on: Vec<String>,
}

fn moment<'de, D: Deserializer<'de>>(reader: D) -> Result<Option<Timestamp>, D::Error> {
    body::written(reader, "must be a moment with its zone, such as 2026-12-01T06:00:00Z")
}

fn id<'de, D: Deserializer<'de>>(reader: D) -> Result<Option<Uuid>, D::Error> {
    body::written(reader, "must be a UUID, such as 0190a0a0-0000-7000-8000-000000000001")
}

/// How a script of a batch is described: a [`Request`] with two fields more. Two schemas of which each refuses what it
/// does not know would refuse each other's.
pub(crate) struct BatchJobForm;

impl PartialSchema for BatchJobForm {
    fn schema() -> RefOr<Schema> {
        let text = |says: &str| ObjectBuilder::new().schema_type(Type::String).description(Some(says)).into();
        let mut schema = Request::schema();
        if let RefOr::T(Schema::Object(form)) = &mut schema {
            form.properties.insert("type".into(), text("Which script."));
            let name = "A name by which later jobs of the batch say that they need it.";
            form.properties.insert("name".into(), text(name));
            form.required.push("type".into());
        }
        schema
    }
}

impl ToSchema for BatchJobForm {
    fn name() -> std::borrow::Cow<'static, str> {
        "NewScriptBatchJob".into()
    }
}

/// A script of a batch: which, what others call it, and the rest.
pub(crate) struct BatchRequest {
    pub(crate) kind: String,
    pub(crate) name: Option<String>,
    pub(crate) request: Request,
}

impl BatchRequest {
    pub(crate) fn read(mut fields: Map<String, Value>) -> Result<Self, Problem> {
        let mut text = |name: &str| match fields.shift_remove(name) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(_) => Err(Problem::invalid(format!("{name} is a text.")).at(name)),
        };
        let none = || Problem::invalid("type is missing: it names the script.").at("type");
        let kind = text("type")?.ok_or_else(none)?;
        let name = text("name")?;
        let request = body::parse(Value::Object(fields).to_string().as_bytes());
        // Read by then, these two are not among the fields that are listed.
        let request = request.map_err(|problem: Problem| {
            problem.reworded(|detail| detail.replacen("there are: ", "there are: type, name, ", 1))
        })?;
        Ok(BatchRequest { kind, name, request })
    }
}

impl Request {
    /// The script, if everything about it is right. `earlier` are the names of jobs of the batch that it may need.
    pub(crate) async fn script(
        self,
        (app, intake): (&App, &Intake),
        caller: &Caller,
        kind: &str,
        earlier: &HashMap<String, usize>,
    ) -> Result<NewScript, Problem> {
        let metadata = self.labels()?;
        self.check()?;
        let needs = needs(app, caller, &self.depends_on, earlier).await?;
        let input = Value::Object(self.input);
        let accepted = intake.accept(&app.store, kind, caller.owner.key(), input).await?;
        let AcceptedPayload { script, input, secret, keep_secret, turn } = accepted;
        let manifest = &script.manifest;
        let mut job = NewJob::new(PIPELINE, kind, input).owned_by(caller.owner);
        (job.priority, job.run_at, job.created_by) = (self.priority, self.run_at, self.created_by);
        job.metadata = Value::Object(metadata);
        job.retries_max = Some(self.max_retries.unwrap_or(manifest.max_retries));
        job.timeout = Some(shorter(self.timeout_ms.map(Duration::from_millis), manifest.timeout)?);
        job.check().map_err(ode_store::Error::from)?;
        // A caller's own key is told from a type's by its beginning, whatever it says.
        let turn = self.concurrency_key.map(|key| format!("key:{key}")).or(turn);
        Ok(NewScript { job, secret, keep_secret, turn, needs })
    }

    /// What can be told to be wrong before anybody looks at the payload.
    fn check(&self) -> Result<(), Problem> {
        if !PRIORITY.contains(&self.priority) {
            let (least, most) = (PRIORITY.start(), PRIORITY.end());
            return Err(wrong("priority", format!("is a number from {least} to {most}")));
        }
        if self.max_retries.is_some_and(|count| count > RETRIES_MAX) {
            return Err(wrong("max_retries", format!("is a number up to {RETRIES_MAX}")));
        }
        let is_key = |key: &String| !key.is_empty() && key.chars().count() <= 200 && !key.contains('\0');
        if !self.concurrency_key.iter().all(is_key) {
            return Err(wrong("concurrency_key", "is a text of 1 to 200 characters"));
        }
        if self.depends_on.len() > NEEDS_MAX {
            return Err(wrong("depends_on", format!("names up to {NEEDS_MAX} jobs")));
        }
        Ok(())
    }

    /// The caller's labels, and which restaurant it is about.
    fn labels(&self) -> Result<Map<String, Value>, Problem> {
        let mut labels = self.metadata.clone().unwrap_or_default();
        let Some(id) = self.restaurant_id else { return Ok(labels) };
        let id = Value::from(id.to_string());
        match labels.insert(RESTAURANT.to_owned(), id.clone()) {
            Some(other) if other != id => {
                Err(wrong("restaurant_id", "and metadata.restaurant_id differ. Give one of them"))
            }
            _ => Ok(labels),
        }
    }
}

/// How long an attempt may take: as long as was asked for, if its type allows that.
fn shorter(asked: Option<Duration>, of_type: Duration) -> Result<Duration, Problem> {
    match asked {
        Some(time) if time.is_zero() || time > of_type => Err(wrong(
            "timeout_ms",
            format!(
                "is a number from 1 to {}, which is what this script's manifest allows",
                of_type.as_millis()
            ),
        )),
        Some(time) => Ok(time),
        None => Ok(of_type),
    }
}

fn wrong(field: &str, why: impl std::fmt::Display) -> Problem {
    Problem::invalid(format!("{field} {why}.")).at(field)
}

/// The restaurant that a job's labels name.
pub(crate) fn restaurant(metadata: &Value) -> Option<Uuid> {
    metadata[RESTAURANT].as_str()?.parse().ok()
}

/// The jobs that one needs: earlier ones of its batch, or others of the same owner.
async fn needs(
    app: &App,
    caller: &Caller,
    names: &[String],
    earlier: &HashMap<String, usize>,
) -> Result<Vec<Need>, Problem> {
    let mut needs = Vec::with_capacity(names.len());
    for (place, name) in names.iter().enumerate() {
        let unknown = || unknown_need(name).at(format!("depends_on[{place}]"));
        let need = match (earlier.get(name), name.parse::<JobRef>()) {
            (Some(place), _) => Need::Earlier(*place),
            (None, Ok(_)) => Need::Job(of_caller(app, caller, name).await?.ok_or_else(unknown)?),
            (None, Err(_)) => return Err(unknown()),
        };
        if !needs.contains(&need) {
            needs.push(need);
        }
    }
    Ok(needs)
}

/// A job of the caller's, if there is one by that name.
async fn of_caller(app: &App, caller: &Caller, name: &str) -> Result<Option<JobId>, Problem> {
    match crate::routes::find(app, caller, name).await {
        Ok(job) => Ok(Some(job.id)),
        Err(problem) if problem.code() == ErrorCode::NotFound => Ok(None),
        Err(problem) => Err(problem),
    }
}

fn unknown_need(name: &str) -> Problem {
    let name: String = name.chars().take(60).collect();
    Problem::invalid(format!(
        "depends_on names {name:?}, which is neither a job of yours nor the name of an earlier job of the batch."
    ))
}
