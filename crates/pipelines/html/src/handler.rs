//! What the html pipeline does with a claimed job: the document in, its page and files kept and, where the caller asked
//! for it, put at a place of theirs.

use super::converter::{Converted, Converter, Unconverted};
use super::request::{self, HtmlInput, HtmlResult};
use super::telemetry::Telemetry;
use async_trait::async_trait;
use bytes::Bytes;
use ode_job::File;
use ode_job::{Claimed, ErrorCode, Failure, LogLevel, Progress, RetryPolicy};
use ode_pdf_html::{AssetKind, Manifest};
use ode_worker::{Context, Handler, Limits};
use serde_json::{Value, json};
use std::time::Duration;

/// Fetching, converting, storing and publishing together; each has a limit of its own well below it.
const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(300);

/// The handler of the html lane.
#[derive(Clone)]
pub struct HtmlHandler {
    converter: Converter,
    at_once: usize,
    retry: RetryPolicy,
}

impl HtmlHandler {
    /// So many documents at a time.
    #[must_use]
    pub fn new(converter: Converter, at_once: usize) -> Self {
        HtmlHandler { converter, at_once: at_once.max(1), retry: RetryPolicy::default() }
    }

    /// The same with another policy of trying again.
    #[must_use]
    pub fn with_retry(self, retry: RetryPolicy) -> Self {
        HtmlHandler { retry, ..self }
    }

    /// The document, wherever it lies.
    async fn document(&self, input: &HtmlInput, context: &Context<'_>) -> Result<Bytes, Failure> {
        let document = match &input.input_s3_path {
            Some(address) => {
                context.check_input(address).map_err(|why| request::in_field(request::INPUT, &why))?;
                context.fetch(address, self.converter.bytes_max()).await?
            }
            None => context.source().await?.content,
        };
        if input
            .input_sha256
            .as_deref()
            .is_some_and(|expected| !expected.eq_ignore_ascii_case(&ode_store::sha256_hex(&document)))
        {
            let message =
                "The document is not the one that input_sha256 names. Store it again, or correct the digest";
            return Err(Failure::rejected(ErrorCode::Invalid, message));
        }
        Ok(document)
    }
}

#[async_trait]
impl Handler for HtmlHandler {
    fn limits(&self) -> Limits {
        Limits { concurrency: self.at_once, attempt_timeout: ATTEMPT_TIMEOUT, retry: self.retry }
    }

    async fn run(&self, job: &Claimed, context: &Context<'_>) -> Result<Value, Failure> {
        context.note("attempt_count", job.attempt.into());
        let (input, config) = request::read(job)?;
        let output = input.output_s3_prefix.as_deref();
        if let Some(address) = output {
            context.clear(address).await;
        }
        let mut telemetry = Telemetry::begin(context, "read");
        context.progress(Progress::at(5, "Fetching the document"));
        let document = self.document(&input, context).await?;
        telemetry.tell("bytes_in", document.len());
        telemetry.stage("convert");
        context.progress(Progress::at(10, "Converting"));
        let converted = self.converter.convert(&config, document).await;
        let Converted { manifest, files, cost } = converted.map_err(|Unconverted { failure, cost }| {
            cost.into_iter().for_each(|cost| telemetry.tell_cost(cost));
            context.log(LogLevel::Error, &failure.message);
            failure
        })?;
        telemetry.tell_cost(cost);
        telemetry.tell("pages", manifest.pages);
        telemetry.tell("bytes_out", manifest.assets.iter().map(|asset| asset.bytes).sum::<usize>());
        telemetry.stage("store");
        log(context, &manifest);
        context.progress(Progress::at(80, "Storing the files"));
        let files = named(&manifest, files);
        context.keep(files.clone()).await?;
        if let Some(address) = output {
            telemetry.stage("publish");
            context.progress(Progress::at(95, "Publishing"));
            context.check_output(address).map_err(|why| request::in_field(request::OUTPUT, &why))?;
            context.publish(address, &files).await?;
        }
        context.note("duration_ms", telemetry.duration_ms().into());
        let result = HtmlResult {
            pages: manifest.pages,
            files: files.len(),
            warnings: manifest.warnings.len(),
            output_s3_prefix: input.output_s3_prefix,
            telemetry: telemetry.finish(),
        };
        Ok(json!(result))
    }
}

/// The files as a job has them. The page is the first.
fn named(manifest: &Manifest, files: Vec<Vec<u8>>) -> Vec<File> {
    let file = |(entry, content): (&ode_pdf_html::Entry, Bytes)| File {
        role: "asset".into(),
        name: entry.path.clone(),
        content_type: content_type(entry.kind, &entry.path).into(),
        content,
    };
    // An empty style sheet or script says nothing, and storages have no place for it.
    let files = manifest.assets.iter().zip(files.into_iter().map(Bytes::from));
    let files = files.filter(|(_, content)| !content.is_empty());
    files.map(file).collect()
}

/// What the converter found, for the job's log.
fn log(context: &Context<'_>, manifest: &Manifest) {
    for warning in &manifest.warnings {
        context.log(LogLevel::Warn, warning);
    }
    let (pages, files) = (manifest.pages, manifest.assets.len());
    let bytes: usize = manifest.assets.iter().map(|asset| asset.bytes).sum();
    let message = format!("Converted {pages} pages into {files} files with {bytes} bytes.");
    context.log(LogLevel::Info, &message);
}

/// What browsers are told that a file is.
fn content_type(kind: AssetKind, path: &str) -> &'static str {
    match (kind, path.rsplit('.').next().unwrap_or_default()) {
        (AssetKind::Html, _) => "text/html; charset=utf-8",
        (AssetKind::Css, _) => "text/css; charset=utf-8",
        (AssetKind::Js, _) => "text/javascript; charset=utf-8",
        (AssetKind::Svg, _) => "image/svg+xml",
        (AssetKind::Font, "woff2") => "font/woff2",
        (AssetKind::Font, _) => "font/otf",
        (AssetKind::Image, "jpg" | "jpeg") => "image/jpeg",
        (AssetKind::Image, "webp") => "image/webp",
        (AssetKind::Image, _) => "image/png",
    }
}
