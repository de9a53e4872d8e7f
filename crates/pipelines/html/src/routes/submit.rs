//! `POST /v1/jobs`: one document, by its address or in a form.

use super::new_job::{self, NewHtmlJob};
use super::{Service, Shared};
use crate::view::address;
use axum::Json;
use axum::extract::{Extension, Request, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use ode_http::App;
use ode_http::body;
use ode_http::caller::Caller;
use ode_http::form::{self, Form};
use ode_http::intake::Received;
use ode_http::problem::{Problem, ProblemDocument, Sending};
use ode_http::upload;
use ode_job::{JobId, JobRef, NewJob};
use ode_store::{Enqueued, Error};
use serde::Serialize;
use serde_json::value::RawValue;
use std::sync::Arc;
use utoipa::ToSchema;

/// A request without its document: a configuration, two addresses and a few names.
const REQUEST_BYTES_MAX: usize = 128 << 10;
/// The longest field of a form beside the document: the configuration.
const FIELD_BYTES_MAX: usize = 64 << 10;
const FORM: &str = "The form takes file, external_id, input_sha256, output_s3_prefix, config, priority and webhook_url, \
                    each once.";

/// A job that was taken.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Accepted {
    /// Its id.
    #[schema(value_type = String, format = "uuid")]
    pub(super) job_id: JobId,
    /// `pending`, `processing`, `completed` or `failed`.
    #[schema(example = "pending")]
    pub(super) status: &'static str,
    /// Where to look.
    pub(super) links: SelfLink,
}

/// Where a job is found.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct SelfLink {
    /// The job.
    #[serde(rename = "self")]
    pub(super) itself: String,
}

/// A form with a document. Its other fields are those of the JSON request.
#[derive(ToSchema)]
pub(super) struct HtmlForm {
    /// The PDF.
    #[expect(dead_code, reason = "only describes the form")]
    #[schema(value_type = String, format = Binary)]
    file: (),
    /// Your own id for it.
    #[expect(dead_code, reason = "only describes the form")]
    external_id: String,
    /// How to convert it, as JSON.
    #[expect(dead_code, reason = "only describes the form")]
    config: Option<String>,
    /// Higher goes first.
    #[expect(dead_code, reason = "only describes the form")]
    priority: Option<i32>,
    /// Where the files are to appear as well.
    #[expect(dead_code, reason = "only describes the form")]
    output_s3_prefix: Option<String>,
}

/// Asks for a document to be converted into HTML.
#[utoipa::path(post, path = "/v1/jobs", tag = "html", security(("key" = [])),
    request_body(content((NewHtmlJob = "application/json"), (HtmlForm = "multipart/form-data"))),
    responses(
        (status = 202, body = Accepted, headers(("Location" = String, description = "The job"))),
        (status = 200, body = Accepted, description = "The same request was made before; this is its job"),
        Sending,
        (status = 403, body = ProblemDocument, content_type = "application/problem+json",
            description = "The place is not open to you"),
        (status = 409, body = ProblemDocument, content_type = "application/problem+json",
            description = "Another request has this external_id; `job_id` names its job")))]
pub(super) async fn submit(
    State(app): State<Arc<App>>,
    Extension(service): Shared,
    Extension(caller): Extension<Caller>,
    request: Request,
) -> Result<Response, Problem> {
    if body::is_of_type(request.headers(), "multipart/form-data") {
        return from_form(&app, &service, &caller, request).await;
    }
    if !body::is_of_type(request.headers(), "application/json") {
        return Err(body::wrong_type("application/json, or multipart/form-data with the document in it"));
    }
    let body = body::whole(request.into_body(), REQUEST_BYTES_MAX).await?;
    let request: NewHtmlJob = body::parse(&body)?;
    let job = request.job(&service, &caller, None)?;
    let enqueued = app.store.enqueue(job.clone()).await;
    answer(&app, &caller, job, enqueued).await
}

async fn from_form(
    app: &App,
    service: &Service,
    caller: &Caller,
    request: Request,
) -> Result<Response, Problem> {
    app.check_disk()?;
    let form = Form::of(request, form::UNBOUNDED);
    let form = form.ok_or_else(|| body::wrong_type("multipart/form-data with a boundary"))?;
    let (request, filename, received) = read_form(app, form).await?;
    let source = received.artifact("source", &filename, "application/pdf");
    let job = request.job(service, caller, Some(&source))?;
    let lent = received.lend();
    let enqueued = app.store.enqueue_file(job.clone(), source).await.map(|accepted| accepted.enqueued);
    lent.settle(enqueued.as_ref().copied());
    answer(app, caller, job, enqueued).await
}

async fn read_form(app: &App, mut form: Form) -> Result<(NewHtmlJob, String, Received), Problem> {
    let (mut file, mut fields) = (None, serde_json::Map::new());
    while let Some(mut field) = upload::patient(form.next_field()).await? {
        let name = field.name().to_owned();
        let is_first = match name.as_str() {
            "file" => {
                let filename = upload::plain_name(field.filename().unwrap_or_default());
                file.replace((filename, upload::take_in(app, &mut field).await?)).is_none()
            }
            "config" => {
                // Kept as the text it is: what it says is looked at with the rest of the request.
                let text = upload::text(&mut field, FIELD_BYTES_MAX).await?;
                fields.insert(name.clone(), text.into()).is_none()
            }
            "priority" => {
                let text = upload::text(&mut field, FIELD_BYTES_MAX).await?;
                let number = text.trim().parse::<i32>();
                let number =
                    number.map_err(|_| Problem::invalid("priority: write a whole number.").at("priority"))?;
                fields.insert(name.clone(), number.into()).is_none()
            }
            "external_id" | "input_sha256" | "output_s3_prefix" | "webhook_url" => {
                let text = upload::text(&mut field, FIELD_BYTES_MAX).await?;
                fields.insert(name.clone(), text.into()).is_none()
            }
            _ => return Err(upload::unknown_field(&name, FORM)),
        };
        if !is_first {
            return Err(Problem::invalid(format!("The form has the field {name} twice. {FORM}")));
        }
    }
    let (filename, received) =
        file.ok_or_else(|| Problem::invalid("The form has no field named file, which holds a PDF."))?;
    let config = fields.shift_remove("config");
    let mut request: NewHtmlJob = body::parse(serde_json::Value::Object(fields).to_string().as_bytes())?;
    request.config = config.as_ref().and_then(|config| config.as_str()).map(form_config).transpose()?;
    Ok((request, filename, received))
}

/// The configuration that a form brings, as the text it is.
fn form_config(text: &str) -> Result<Box<RawValue>, Problem> {
    body::refuse_repeated(text.as_bytes(), "config")?;
    RawValue::from_string(text.to_owned()).map_err(|error| body::not_json("config", &error).at("config"))
}

/// The answer to a request: its job, new or not, or the job of another that has the same name.
async fn answer(
    app: &App,
    caller: &Caller,
    job: NewJob,
    enqueued: Result<Enqueued, Error>,
) -> Result<Response, Problem> {
    match enqueued {
        Ok(Enqueued::New(id)) => {
            app.lists.forget(caller.owner);
            tracing::info!(job.id = %id, job.pipeline = %job.pipeline, "accepted job {id}");
            // Whether it has started already is told where it is looked for.
            Ok(accepted(StatusCode::ACCEPTED, id, "pending"))
        }
        Ok(Enqueued::Existing(id)) | Err(Error::Duplicate { existing: id, .. }) => {
            let there = app.store.job_of(caller.owner, JobRef::Id(id)).await?;
            if new_job::is_of(&there, &job) {
                return Ok(accepted(StatusCode::OK, id, there.state.as_str()));
            }
            Err(taken(job.external_id.as_deref().unwrap_or_default(), id))
        }
        Err(error) => Err(error.into()),
    }
}

/// Another request has this name.
pub(super) fn taken(external_id: &str, id: JobId) -> Problem {
    let error = Error::Duplicate { external_id: external_id.to_owned(), existing: id };
    Problem::from(error).about(id)
}

fn accepted(status: StatusCode, job_id: JobId, state: &'static str) -> Response {
    let body = Accepted { job_id, status: state, links: SelfLink { itself: address(job_id) } };
    let location = HeaderValue::from_str(&body.links.itself).expect("an id in an address is a header");
    (status, [(header::LOCATION, location)], Json(body)).into_response()
}
