//! A conversion as it is asked for, checked before it becomes a job.

use super::ConfigFault;
use crate::App;
use crate::body;
use crate::caller::Caller;
use crate::problem::Problem;
use ode_job::{Artifact, ErrorCode, Failure, JobRecord, NewJob, machines};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use utoipa::ToSchema;

/// The kind of HTML, of which there is one.
pub const KIND: &str = "html5";
/// Kept to the last byte. A configuration that is larger is data, and belongs beside the document.
const CONFIG_BYTES_MAX: usize = 50 << 10;

/// A document that is to be converted.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = NewHtmlJob)]
pub struct Request {
    /// Your own id for it, unique among your jobs. Sent again with the same content, it is answered with the same job.
    #[schema(example = "req_99283", min_length = 1, max_length = 255)]
    pub external_id: String,
    /// Where the document lies: `s3://bucket/key`, or `file:///path`, below a place that the operator opened. Leave it
    /// out in a form that brings the document along.
    #[schema(example = "s3://inbox/doc.pdf")]
    #[serde(default)]
    pub input_s3_path: Option<String>,
    /// SHA-256 of the document in hexadecimal digits, if it is to be checked.
    #[serde(default)]
    #[schema(min_length = 64, max_length = 64)]
    pub input_sha256: Option<String>,
    /// Where the files are to appear once all of them are there, beside being kept here.
    #[schema(example = "s3://outbox/req_99283")]
    #[serde(default)]
    pub output_s3_prefix: Option<String>,
    /// How to convert it: `zoom`, `embed_fonts`, `single_file`, `pages`, `format`, and `custom` for what is yours alone.
    /// Up to 50 KB, kept as it was sent.
    #[schema(value_type = Option<Object>)]
    #[serde(default)]
    pub config: Option<Box<RawValue>>,
    /// Higher goes first.
    #[serde(default)]
    #[schema(minimum = -1000, maximum = 1000)]
    pub priority: i32,
    /// Where to tell that it has ended, signed as Standard Webhooks has it.
    #[serde(default)]
    pub webhook_url: Option<String>,
}

impl Request {
    /// The job, if everything about it is right. `document` is what came along, if something did.
    pub(super) fn job(
        &self,
        app: &App,
        caller: &Caller,
        document: Option<&Artifact>,
    ) -> Result<NewJob, Problem> {
        let service = &app.settings.service;
        match (&self.input_s3_path, document) {
            (Some(_), Some(_)) => {
                return Err(Problem::invalid("Send the document or name its input_s3_path, not both."));
            }
            (None, None) => {
                return Err(Problem::invalid(
                    "input_s3_path is missing. Name where the document lies, or send it in a form as the field file.",
                )
                .at("input_s3_path"));
            }
            (Some(address), None) => {
                let checked = service.places.check_input(caller.owner, address);
                checked.map_err(|why| not_open(why, "input_s3_path"))?;
            }
            (None, Some(_)) => {}
        }
        if let Some(address) = &self.output_s3_prefix {
            let checked = service.places.check_output(caller.owner, address);
            checked.map_err(|why| not_open(why, "output_s3_prefix"))?;
        }
        if let Some(address) = &self.webhook_url {
            service.check_webhook.check(address)?;
        }
        let config = self.checked_config(app)?;
        let input = self.input(&config, document)?;
        let mut job = NewJob::new(machines::pipeline("html"), KIND, input).owned_by(caller.owner);
        (job.config, job.priority, job.external_id) = (config, self.priority, Some(self.external_id.clone()));
        job.check().map_err(ode_store::Error::from)?;
        Ok(job)
    }

    fn checked_config(&self, app: &App) -> Result<Value, Problem> {
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
        (app.settings.service.check_config)(&config)
            .map_err(|ConfigFault { path, why }| Problem::invalid(format!("{path}: {why}")).at(path))?;
        Ok(config)
    }

    /// What the job is to work on. The configuration stands here as it was sent: a database may write its own copy in
    /// another order.
    fn input(&self, config: &Value, document: Option<&Artifact>) -> Result<Value, Problem> {
        let sha256 = self.input_sha256.as_deref().map(checked_sha256).transpose()?;
        let mut input = json!({ "request": self.digest(config, document) });
        let optional = [
            ("input_s3_path", self.input_s3_path.as_deref()),
            ("input_sha256", sha256),
            ("output_s3_prefix", self.output_s3_prefix.as_deref()),
            ("webhook_url", self.webhook_url.as_deref()),
            ("config_text", self.config.as_ref().map(|config| config.get())),
        ];
        for (name, value) in optional {
            if let Some(value) = value {
                input[name] = value.into();
            }
        }
        if let Some(Artifact { name, sha256, bytes, .. }) = document {
            input["document"] = json!({ "name": name, "sha256": sha256, "bytes": bytes });
        }
        Ok(input)
    }

    /// What makes two requests the same.
    fn digest(&self, config: &Value, document: Option<&Artifact>) -> String {
        let Request { input_s3_path, input_sha256, output_s3_prefix, priority, webhook_url, .. } = self;
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
        hex::encode(Sha256::digest(text.to_string().as_bytes()))
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
fn not_open(why: Failure, field: &str) -> Problem {
    let why = Failure::rejected(why.code, format!("{field}: {}", why.message));
    let problem = Problem::from(why).at(field);
    match problem.code() {
        ErrorCode::Forbidden => problem.titled("This place isn't open to you. Ask the operator which are"),
        _ => problem,
    }
}

/// Whether this job came of such a request.
pub(super) fn is_of(job: &JobRecord, request: &NewJob) -> bool {
    job.input["request"].is_string() && job.input["request"] == request.input["request"]
}
