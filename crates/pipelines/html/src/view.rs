//! Conversions as the html service shows them.

use crate::request::{HtmlInput, TELEMETRY};
use crate::routes::Service;
use jiff::Timestamp;
use ode_http::App;
use ode_http::download::encoded;
use ode_http::view::ErrorView;
use ode_job::{JobId, JobRecord, Phase};
use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;
use utoipa::ToSchema;

/// The page of a result.
pub(super) const PAGE: &str = "index.html";
/// The purpose of signed links.
pub(super) const LINK: &str = "view";

/// A conversion as its owner sees it.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct HtmlJob {
    /// Its id.
    #[schema(value_type = String, format = "uuid")]
    job_id: JobId,
    /// Your own id for it.
    external_id: Option<String>,
    /// `pending`, `processing`, `completed` or `failed`.
    #[schema(example = "processing")]
    status: &'static str,
    /// How far it is, in percent.
    #[schema(maximum = 100)]
    progress: u8,
    /// What it is doing.
    progress_message: Option<String>,
    /// Higher goes first.
    priority: i32,
    /// Tries after the first, so far.
    retry_count: u32,
    /// Which engine converted it, or would now.
    engine_version: String,
    /// Where the document lies, if it was not sent along.
    input_s3_path: Option<String>,
    /// Where the files appear, beside being kept here.
    output_s3_prefix: Option<String>,
    /// How it is converted, as it was sent.
    #[schema(value_type = Object)]
    config: Box<RawValue>,
    /// Why it failed.
    error: Option<ErrorView>,
    /// What it cost: `pages`, `cpu_ms`, `peak_memory_bytes`, `bytes_in`, `bytes_out`, `duration_ms`, `stages_ms`. Of a
    /// job that failed, what its last attempt came to, and not in lists.
    #[schema(value_type = Option<Object>)]
    pub(super) telemetry: Option<Value>,
    /// Accepted.
    #[schema(value_type = String, format = "date-time")]
    #[serde(serialize_with = "ode_http::view::moment")]
    created_at: Timestamp,
    /// The last try began.
    #[schema(value_type = Option<String>, format = "date-time")]
    #[serde(serialize_with = "ode_http::view::moments")]
    started_at: Option<Timestamp>,
    /// Ended.
    #[schema(value_type = Option<String>, format = "date-time")]
    #[serde(serialize_with = "ode_http::view::moments")]
    finished_at: Option<Timestamp>,
    /// Where to look further.
    links: HtmlLinks,
}

/// Where the parts of a job are found.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct HtmlLinks {
    /// The job.
    #[serde(rename = "self")]
    itself: String,
    /// Its files.
    assets: String,
    /// Its log.
    logs: String,
    /// What happened to it.
    events: String,
    /// The page, for a browser; a link that needs no key, once there is something to see.
    #[serde(skip_serializing_if = "Option::is_none")]
    view: Option<String>,
    /// All files as one archive, once they are there.
    #[serde(skip_serializing_if = "Option::is_none")]
    download: Option<String>,
}

impl HtmlJob {
    pub(super) fn new(app: &App, service: &Service, job: &JobRecord) -> Self {
        let HtmlInput { input_s3_path, output_s3_prefix, config_text, .. } = HtmlInput::of(&job.input);
        let itself = address(job.id);
        let is_done = job.phase == Phase::Done;
        let result = job.result.as_ref();
        HtmlJob {
            job_id: job.id,
            external_id: job.external_id.clone(),
            status: job.state.as_str(),
            progress: job.progress.percent,
            progress_message: job.progress.message.clone(),
            priority: job.priority,
            retry_count: job.retry_count,
            engine_version: job
                .engine_version
                .clone()
                .unwrap_or_else(|| env!("CARGO_PKG_VERSION").to_owned()),
            input_s3_path,
            output_s3_prefix,
            config: config(config_text, job),
            error: ode_http::view::error(job),
            telemetry: result.and_then(|result| result.get(TELEMETRY)).cloned(),
            created_at: job.created_at,
            started_at: job.started_at,
            finished_at: job.finished_at,
            links: HtmlLinks {
                assets: format!("{itself}/assets"),
                logs: format!("{itself}/logs"),
                events: format!("{itself}/events"),
                view: is_done.then(|| link(app, service, job.id, PAGE).0),
                download: is_done.then(|| format!("{itself}/download")),
                itself,
            },
        }
    }
}

/// The configuration as it was sent; as the database has it where it was not sent to us.
fn config(sent: Option<String>, job: &JobRecord) -> Box<RawValue> {
    let text = sent.unwrap_or_else(|| job.config.to_string());
    RawValue::from_string(text).unwrap_or_else(|_| RawValue::from_string("{}".into()).expect("{} is JSON"))
}

pub(super) fn address(id: JobId) -> String {
    format!("/v1/jobs/{id}")
}

/// A link to a file of a job that works without a key for a while, and until when it does.
pub(super) fn link(app: &App, service: &Service, job: JobId, name: &str) -> (String, Timestamp) {
    let expires_at = Timestamp::now() + app.settings.link_ttl;
    let expires = expires_at.as_second();
    let signature = app.signer.sign(LINK, &format!("{job} {expires}"));
    let base = service.view_origin.as_deref().or(app.settings.public_url.as_deref()).unwrap_or_default();
    (format!("{base}/v1/view/{job}/{expires}-{signature}/{}", encoded(name)), expires_at)
}
