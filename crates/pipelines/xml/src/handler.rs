//! What the xml pipeline does with a claimed job: the document in, its XML kept as the job's result.
//!
//! The conversion happens here, in a child process, or at a gateway elsewhere. Either way a document that cannot be
//! converted ends the job, and everything else is tried again.

use crate::conversion::ask::{Converted, Finding};
use crate::conversion::live::LiveConverter;
use crate::remote::Gateways;
use crate::request::Request;
use async_trait::async_trait;
use jiff::Timestamp;
use ode_job::breaker::Standing;
use ode_job::{Check, CheckKind, Claimed, ErrorCode, Failure, FailureKind, Progress, RetryPolicy, Severity};
use ode_job::{File, Source};
use ode_worker::{Context, Handler, Limits, Readiness};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Where conversions happen.
#[derive(Clone)]
pub enum Route {
    BuiltIn(Arc<LiveConverter>),
    /// At gateways elsewhere.
    Remote(Arc<Gateways>),
}

/// How long a call to a gateway may take unless told otherwise.
const CALL_TIMEOUT: Duration = Duration::from_secs(180);
/// What an attempt needs beside its calls: to fetch the document and to store the result.
const AROUND: Duration = Duration::from_secs(60);

/// The handler of the xml lane.
#[derive(Clone)]
pub struct XmlHandler {
    route: Route,
    at_once: usize,
    retry: RetryPolicy,
    call_timeout: Duration,
}

impl XmlHandler {
    /// Conversions by this route, so many at a time.
    #[must_use]
    pub fn new(route: Route, at_once: usize) -> Self {
        let (retry, call_timeout) = (RetryPolicy::default(), CALL_TIMEOUT);
        XmlHandler { route, at_once: at_once.max(1), retry, call_timeout }
    }

    /// The same with gateways that may take this long.
    #[must_use]
    pub fn with_call_timeout(self, call_timeout: Duration) -> Self {
        XmlHandler { call_timeout, ..self }
    }

    /// The same with another policy of trying again.
    #[must_use]
    pub fn with_retry(self, retry: RetryPolicy) -> Self {
        XmlHandler { retry, ..self }
    }
}

#[async_trait]
impl Handler for XmlHandler {
    fn limits(&self) -> Limits {
        // Two calls: a probe that fails goes on to the second gateway.
        let attempt_timeout = self.call_timeout * 2 + AROUND;
        Limits { concurrency: self.at_once, attempt_timeout, retry: self.retry }
    }

    fn readiness(&self, now: Timestamp) -> Readiness {
        match &self.route {
            Route::BuiltIn(_) => Readiness::Ready,
            Route::Remote(gateways) => gateways.readiness(now),
        }
    }

    fn breakers(&self, now: Timestamp) -> Vec<Standing> {
        match &self.route {
            Route::BuiltIn(_) => Vec::new(),
            Route::Remote(gateways) => gateways.standings(now),
        }
    }

    async fn run(&self, job: &Claimed, context: &Context<'_>) -> Result<Value, Failure> {
        let began = Instant::now();
        context.note("attempt_count", job.attempt.into());
        let request = Request::read(job)?;
        let made = match &self.route {
            Route::BuiltIn(converter) => here(converter, &request, context).await,
            Route::Remote(gateways) => elsewhere(gateways, &request, context).await,
        };
        let duration_ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
        context.note("duration_ms", duration_ms.into());
        let made = made.map_err(in_the_gateways_terms)?;
        context.progress(Progress::at(95, "Storing the XML"));
        let file = File {
            role: "result".into(),
            name: result_name(&made.name),
            content_type: "application/xml".into(),
            content: made.xml.into(),
        };
        // By itself: others know the result by its path.
        context.keep(vec![file]).await?;
        if let Some(places) = made.places {
            context.keep(vec![places_file(places)]).await?;
        }
        made.findings.iter().for_each(|finding| context.check(check(finding)));
        Ok(json!({
            "mapping": made.mapping, "output": request.output.to_string(), "pages": made.pages,
            "findings": made.findings, "gateway": made.gateway, "duration_ms": duration_ms,
        }))
    }
}

/// What a conversion made, wherever it happened.
struct Made {
    /// The document's own name.
    name: String,
    xml: Vec<u8>,
    mapping: Option<String>,
    pages: Option<usize>,
    findings: Vec<Finding>,
    /// Where each value stands, where that is known: JSON.
    places: Option<Vec<u8>>,
    gateway: String,
}

/// What the history calls the converter that is not elsewhere.
const BUILT_IN: &str = "built-in";

async fn here(converter: &LiveConverter, request: &Request, context: &Context<'_>) -> Result<Made, Failure> {
    context.note("gateway", BUILT_IN.into());
    let source = fetch(context).await?;
    let Converted { document, provenance, summary } =
        converter.convert(&request.ask(), source.content).await?;
    Ok(Made {
        name: source.name,
        xml: document,
        mapping: Some(summary.source),
        pages: Some(summary.pages),
        findings: summary.findings,
        places: provenance,
        gateway: BUILT_IN.to_owned(),
    })
}

async fn elsewhere(gateways: &Gateways, request: &Request, context: &Context<'_>) -> Result<Made, Failure> {
    let mut source: Option<Source> = None;
    let (mut probed, mut absent) = (None, None);
    // Lazy: a gateway is asked for a permit only when those before it could not do the work.
    for chosen in gateways.choices() {
        let document = match source.take() {
            Some(source) => source,
            None => fetch(context).await?,
        };
        let called = chosen.process(document.content.clone(), &request.mapping, Some(request.output)).await;
        context.note("gateway", called.address.clone().into());
        context.note("http_status", called.call.status.into());
        let is_answered = called.call.is_answered();
        match called.call.outcome {
            Err(failure) if called.is_probe && !is_answered => probed = Some(failure),
            // Nobody was there: the next one can be asked at once, and the document is none the worse for it.
            Err(failure) if !called.call.is_connected => absent = Some(failure),
            outcome => {
                let processed = outcome?;
                return Ok(Made {
                    name: document.name,
                    xml: processed.xml,
                    mapping: processed.mapping,
                    pages: processed.pages,
                    findings: processed.findings,
                    places: None,
                    gateway: called.address,
                });
            }
        }
        source = Some(document);
    }
    Err(absent.unwrap_or_else(|| away(gateways, probed)))
}

/// No gateway is there. The job waits for one, and has used up nothing.
fn away(gateways: &Gateways, probed: Option<Failure>) -> Failure {
    let wait = gateways.policy().cool_down;
    let message = "The converter is away. The job waits until it is back";
    let detail = probed.and_then(|failure| failure.detail);
    let failure = Failure::away(ErrorCode::Gw5xx, message, wait);
    match detail {
        Some(detail) => failure.with_detail(detail),
        None => failure,
    }
}

async fn fetch(context: &Context<'_>) -> Result<Source, Failure> {
    context.progress(Progress::at(5, "Fetching the document"));
    let source = context.source().await?;
    context.progress(Progress::at(10, "Converting"));
    Ok(source)
}

/// A mapping that does not exist is, to the owner of a job, a gateway that refused: the same code for both ways.
fn in_the_gateways_terms(failure: Failure) -> Failure {
    match (failure.code, failure.kind) {
        (ErrorCode::UnknownMapping, FailureKind::Rejected) => {
            Failure::rejected(ErrorCode::Gw4xx, &failure.message).with_detail("UNKNOWN_MAPPING")
        }
        // Turns are given by the worker's slots; whoever still has to wait is to try again.
        _ => failure,
    }
}

/// A name of this many characters is shown whole everywhere; some file systems take no more bytes than 255.
const STEM_CHARS_MAX: usize = 120;

/// `invoice.pdf` becomes `invoice.xml`, whatever its owner called it.
fn result_name(name: &str) -> String {
    let name = name.rsplit(['/', '\\']).next().unwrap_or_default();
    let stem = name.rsplit_once('.').map_or(name, |(stem, _)| stem);
    let stem: String = stem.chars().filter(|c| !c.is_control()).take(STEM_CHARS_MAX).collect();
    let stem = stem.trim().trim_start_matches('.');
    format!("{}.xml", if stem.is_empty() { "document" } else { stem })
}

/// The file that says where each value stands.
fn places_file(content: Vec<u8>) -> File {
    File {
        role: "asset".into(),
        name: "places.json".into(),
        content_type: "application/json".into(),
        content: content.into(),
    }
}

fn check(finding: &Finding) -> Check {
    let kind = if finding.code.ends_with("_MISMATCH") {
        CheckKind::Arithmetic
    } else if finding.code.ends_with("_MISSING") || finding.code == "CHECK_FAILED" {
        CheckKind::Schema
    } else {
        CheckKind::Content
    };
    Check {
        kind,
        severity: finding.severity.parse().unwrap_or(Severity::Review),
        code: finding.code.clone(),
        field: finding.field.clone(),
        message: finding.message.clone(),
        opinion: None,
    }
}

#[cfg(test)]
mod tests;
