//! A conversion as it is asked for, checked before it becomes a job.

use super::Service;
use crate::machine::HTML;
use crate::request::{BadConfig, HtmlInput, INPUT, KIND, OUTPUT, in_field, read_config};
use ode_http::body;
use ode_http::caller::Caller;
use ode_http::problem::Problem;
use ode_job::{Artifact, ErrorCode, Failure, JobRecord, NewJob, SourceDocument};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use utoipa::ToSchema;

/// Kept to the last byte. A configuration that is larger is data, and belongs beside the document.
const CONFIG_BYTES_MAX: usize = 50 << 10;

/// A document that is to be converted.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct NewHtmlJob {
    /// Your own id for it, unique among your jobs. Sent again with the same content, it is answered with the same job.
    #[schema(example = "req_99283", min_length = 1, max_length = 255)]
    pub(super) external_id: String,
    /// Where the document lies: `s3://bucket/key`, or `file:///path`, below a place that the operator opened. Leave it
    /// out in a form that brings the document along.
    #[schema(example = "s3://inbox/doc.pdf")]
    #[serde(default)]
    pub(super) input_s3_path: Option<String>,
    /// SHA-256 of the document in hexadecimal digits, if it is to be checked.
    #[serde(default)]
    #[schema(min_length = 64, max_length = 64)]
    pub(super) input_sha256: Option<String>,
    /// Where the files are to appear once all of them are there, beside being kept here.
    #[schema(example = "s3://outbox/req_99283")]
    #[serde(default)]
    pub(super) output_s3_prefix: Option<String>,
    /// How to convert it: `zoom`, `embed_fonts`, `single_file`, `pages`, `format`, and `custom` for what is yours alone.
    /// Up to 50 KB, kept as it was sent.
    #[schema(value_type = Option<Object>)]
    #[serde(default)]
    pub(super) config: Option<Box<RawValue>>,
    /// Higher goes first.
    #[serde(default)]
    #[schema(minimum = -1000, maximum = 1000)]
    pub(super) priority: i32,
    /// Where to tell that it has ended, signed as Standard Webhooks has it.
    #[serde(default)]
    pub(super) webhook_url: Option<String>,
}

impl NewHtmlJob {
    /// The job, if everything about it is right. `document` is what came along, if something did.
    pub(super) fn job(
        &self,
        service: &Service,
        caller: &Caller,
        document: Option<&Artifact>,
    ) -> Result<NewJob, Problem> {
        match (&self.input_s3_path, document) {
            (Some(_), Some(_)) => {
                return Err(Problem::invalid("Send the document or name its input_s3_path, not both."));
            }
            (None, None) => {
                return Err(Problem::invalid(
                    "input_s3_path is missing. Name where the document lies, or send it in a form as the field file.",
                )
                .at(INPUT));
            }
            (Some(address), None) => {
                let checked = service.places.check_input(caller.owner, address);
                checked.map_err(|why| not_open(&why, INPUT))?;
            }
            (None, Some(_)) => {}
        }
        if let Some(address) = &self.output_s3_prefix {
            let checked = service.places.check_output(caller.owner, address);
            checked.map_err(|why| not_open(&why, OUTPUT))?;
        }
        if let Some(address) = &self.webhook_url {
            service
                .webhooks
                .check(address)
                .map_err(|why| Problem::invalid(format!("webhook_url: {why}")).at("webhook_url"))?;
        }
        let config = self.checked_config()?;
        let input = self.input(&config, document)?;
        let mut job = NewJob::new(HTML, KIND, input.to_json()).owned_by(caller.owner);
        (job.config, job.priority, job.external_id) = (config, self.priority, Some(self.external_id.clone()));
        job.check().map_err(ode_store::Error::from)?;
        Ok(job)
    }

    fn checked_config(&self) -> Result<Value, Problem> {
        let Some(config) = &self.config else { return Ok(json!({})) };
        let bytes = config.get().len();
        if bytes > CONFIG_BYTES_MAX {
            let detail = format!(
                "config has {bytes} bytes and the limit is {CONFIG_BYTES_MAX}. Store what is large as a file and refer \
                 to it."
            );
            return Err(Problem::new(ErrorCode::PayloadTooLarge, detail).at("config"));
        }
        let config: Value = serde_json::from_str(config.get())
            .map_err(|error| body::not_json("config", &error).at("config"))?;
        read_config(&config)
            .map_err(|BadConfig { path, why }| Problem::invalid(format!("{path}: {why}")).at(path))?;
        Ok(config)
    }

    /// Returns what the job is to work on.
    fn input(&self, config: &Value, document: Option<&Artifact>) -> Result<HtmlInput, Problem> {
        let sha256 = self.input_sha256.as_deref().map(checked_sha256).transpose()?;
        Ok(HtmlInput {
            request: Some(self.digest(config, document)),
            input_s3_path: self.input_s3_path.clone(),
            input_sha256: sha256.map(str::to_owned),
            output_s3_prefix: self.output_s3_prefix.clone(),
            webhook_url: self.webhook_url.clone(),
            config_text: self.config.as_ref().map(|config| config.get().to_owned()),
            document: document.map(|Artifact { name, sha256, bytes, .. }| SourceDocument {
                name: Some(name.clone()),
                sha256: Some(sha256.clone()),
                bytes: Some(*bytes),
                ..SourceDocument::default()
            }),
        })
    }

    /// What makes two requests the same.
    fn digest(&self, config: &Value, document: Option<&Artifact>) -> String {
        let NewHtmlJob { input_s3_path, input_sha256, output_s3_prefix, priority, webhook_url, .. } = self;
        let document = document.map(|document| &document.sha256);
        let text = json!([
            input_s3_path,
            input_sha256,
            document,
            output_s3_prefix,
            sorted(config),
            priority,
            webhook_url
        ]);
        ode_store::sha256_hex(text.to_string())
    }
}

/// The same document with the keys of its objects in order, so that two that mean the same read the same.
fn sorted(json: &Value) -> Value {
    match json {
        Value::Object(fields) => {
            let mut fields: Vec<(&String, Value)> =
                fields.iter().map(|(name, value)| (name, sorted(value))).collect();
            fields.sort_by_key(|(name, _)| name.as_str());
            Value::Object(fields.into_iter().map(|(name, value)| (name.clone(), value)).collect())
        }
        Value::Array(items) => Value::Array(items.iter().map(sorted).collect()),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => json.clone(),
    }
}

fn checked_sha256(text: &str) -> Result<&str, Problem> {
    if text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Ok(text);
    }
    Err(Problem::invalid("input_sha256: write the digest in 64 hexadecimal digits.").at("input_sha256"))
}

/// An address that is none, or one of a place that is not open.
fn not_open(why: &Failure, field: &str) -> Problem {
    let problem = Problem::from(in_field(field, why)).at(field);
    match problem.code() {
        ErrorCode::Forbidden => problem.titled("This place isn't open to you. Ask the operator which are"),
        _ => problem,
    }
}

/// Whether this job came of such a request.
pub(super) fn is_of(job: &JobRecord, request: &NewJob) -> bool {
    let there = HtmlInput::of(&job.input).request;
    there.is_some() && there == HtmlInput::of(&request.input).request
}
