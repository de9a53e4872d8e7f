//! Calls a gateway elsewhere, with the same answers as a conversion here.
//!
//! The gateway is not trusted: how long it takes and how much it says is bounded, it is not followed anywhere else,
//! and what it gives as XML is looked at before anybody else reads it.

use crate::conversion::ask::{Finding, Output};
use bytes::{Bytes, BytesMut};
use ode_child::Subject;
use ode_job::failure::causes;
use ode_job::{ErrorCode, Failure, FailureKind};
use quick_xml::Reader;
use quick_xml::events::Event;
use reqwest::header::{CONTENT_TYPE, HeaderMap, RETRY_AFTER};
use reqwest::{Response, StatusCode, Url, redirect};
use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::time::Duration;

/// What one call may use.
#[derive(Debug, Clone, Copy)]
pub struct ClientLimits {
    /// From the first byte sent to the last one received. Default 180 s.
    pub total: Duration,
    /// For the connection alone. Default 10 s.
    pub connect: Duration,
    /// Size of a document. Default 50 MB, which is what gateways take: a larger one is not sent, since who refuses it
    /// may hang up before all of it has arrived, and the reason would be lost.
    pub document_bytes: u64,
    /// Size of the answer. Default 100 MB.
    pub answer_bytes: usize,
}

impl Default for ClientLimits {
    fn default() -> Self {
        ClientLimits {
            total: Duration::from_secs(180),
            connect: Duration::from_secs(10),
            document_bytes: 50 << 20,
            answer_bytes: 100_000_000,
        }
    }
}

/// The gateway's address cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GatewayAddressError {
    /// It is not an address that we can call.
    #[error("The gateway's address must look like http://127.0.0.1:8000.")]
    Unusable,
    /// The machine has no certificates, or TLS cannot start.
    #[error("Nothing can be called from here: {0}.")]
    Unavailable(String),
}

/// A gateway elsewhere. Cheap to clone.
#[derive(Debug, Clone)]
pub struct GatewayClient {
    http: reqwest::Client,
    process: Url,
    limits: ClientLimits,
}

/// What came of a call.
#[derive(Debug)]
pub struct Call {
    /// The status that was answered, where one was.
    pub status: Option<u16>,
    /// Whether anybody was there to be asked. If not, another gateway can be asked as if this had not happened.
    pub is_connected: bool,
    /// The XML, or what to make of having none.
    pub outcome: Result<Processed, Failure>,
}

impl Call {
    /// Whether the gateway did its part. Refusing one document is doing it.
    #[must_use]
    pub fn is_answered(&self) -> bool {
        let is_rejected = |failure: &Failure| failure.kind == FailureKind::Rejected;
        let asks_for_patience = matches!(self.status, Some(408 | 425 | 429));
        asks_for_patience || self.outcome.as_ref().map_or_else(is_rejected, |_| true)
    }
}

/// A document that a gateway converted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Processed {
    pub xml: Vec<u8>,
    /// Which mapping was used, if the gateway says so.
    pub mapping: Option<String>,
    /// Pages in the document, likewise.
    pub pages: Option<usize>,
    /// What a person should look at, likewise.
    pub findings: Vec<Finding>,
}

/// A peer that wants to be left alone for longer than this is asked again all the same.
const RETRY_AFTER_MAX: Duration = Duration::from_secs(3600);
/// Shorter than gateways keep silent connections: one that is closed as it is used again looks like trouble.
const IDLE_MAX: Duration = Duration::from_secs(5);
/// A name or a number; more is something else.
const HEADER_BYTES_MAX: usize = 255;
/// A problem document longer than this is something else.
const PROBLEM_BYTES_MAX: usize = 64 << 10;

impl GatewayClient {
    /// Gets ready to call the gateway at this address, such as `http://127.0.0.1:8000`.
    pub fn new(address: &str, limits: ClientLimits) -> Result<Self, GatewayAddressError> {
        let mut process: Url = address.parse().map_err(|_| GatewayAddressError::Unusable)?;
        if !matches!(process.scheme(), "http" | "https") || !process.has_host() || process.query().is_some() {
            return Err(GatewayAddressError::Unusable);
        }
        let mut segments = process.path_segments_mut().map_err(|()| GatewayAddressError::Unusable)?;
        segments.pop_if_empty().push("process");
        drop(segments);
        let http = reqwest::Client::builder()
            .redirect(redirect::Policy::none())
            // The address is the operator's word; the environment must not lead elsewhere.
            .no_proxy()
            .timeout(limits.total)
            .connect_timeout(limits.connect)
            .pool_idle_timeout(IDLE_MAX)
            .build()
            .map_err(|error| GatewayAddressError::Unavailable(causes(&error)))?;
        Ok(GatewayClient { http, process, limits })
    }

    /// Its address, as it may be shown: without a password.
    #[must_use]
    pub fn address(&self) -> String {
        let mut shown = self.process.clone();
        // Neither fails for an address with a host, and only such are taken.
        let _ = shown.set_username("");
        let _ = shown.set_password(None);
        shown.as_str().trim_end_matches("process").trim_end_matches('/').to_owned()
    }

    /// Has a document converted. The mapping is a name or `auto`.
    pub async fn process(&self, document: Bytes, mapping: &str, output: Option<Output>) -> Call {
        let (bytes, bytes_max) = (document.len() as u64, self.limits.document_bytes);
        if bytes > bytes_max {
            let failure = Subject::PDF.too_large(bytes, bytes_max);
            return Call { status: None, is_connected: true, outcome: Err(failure) };
        }
        let (content_type, body) = form(&document, mapping, output);
        let request = self.http.post(self.process.clone()).header(CONTENT_TYPE, content_type).body(body);
        match request.send().await {
            Ok(response) => {
                let status = Some(response.status().as_u16());
                Call { status, is_connected: true, outcome: self.read_answer(response).await }
            }
            Err(error) => {
                Call { status: None, is_connected: !error.is_connect(), outcome: Err(lost(&error)) }
            }
        }
    }

    async fn read_answer(&self, mut response: Response) -> Result<Processed, Failure> {
        if response.status() != StatusCode::OK {
            return Err(refused(response).await);
        }
        let mapping = header(response.headers(), "ode-mapping").map(str::to_owned);
        let pages = header(response.headers(), "ode-pages").and_then(|pages| pages.parse().ok());
        let findings = findings(response.headers());
        if !is_type(response.headers(), &["application/xml", "text/xml"]) {
            return Err(unlike("The gateway answered with something that is not XML"));
        }
        let answer = read(&mut response, self.limits.answer_bytes).await?;
        check_xml(&answer).map_err(|reason| unlike(&format!("The gateway's XML {reason}")))?;
        Ok(Processed { xml: answer.into(), mapping, pages, findings })
    }
}

/// The document as a form: its content type and its body.
fn form(document: &[u8], mapping: &str, output: Option<Output>) -> (String, Bytes) {
    // 128 random bits are in no document by chance, and nobody can foresee them to put them there.
    let random = || RandomState::new().build_hasher().finish();
    let boundary = format!("ode-{:016x}{:016x}", random(), random());
    let mut body = BytesMut::with_capacity(document.len() + 1024);
    let mut text = |name: &str, value: &str| {
        let part =
            format!("--{boundary}\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n");
        body.extend_from_slice(part.as_bytes());
    };
    text("mapping", mapping);
    if let Some(output) = output {
        text("output", &output.to_string());
    }
    // The document's own name stays here: the conversion does not depend on it.
    let head = format!(
        "--{boundary}\r\nContent-Disposition: form-data; name=\"file\"; filename=\"document.pdf\"\r\n\
         Content-Type: application/pdf\r\n\r\n"
    );
    body.extend_from_slice(head.as_bytes());
    body.extend_from_slice(document);
    body.extend_from_slice(format!("\r\n--{boundary}--\r\n").as_bytes());
    (format!("multipart/form-data; boundary={boundary}"), body.freeze())
}

/// Reads an answer, but no more of it than may be.
async fn read(response: &mut Response, bytes_max: usize) -> Result<BytesMut, Failure> {
    let too_long = || unlike(&format!("The gateway's answer is longer than {bytes_max} bytes"));
    if response.content_length().is_some_and(|bytes| bytes > bytes_max as u64) {
        return Err(too_long());
    }
    let mut answer = BytesMut::new();
    while let Some(chunk) = response.chunk().await.map_err(|error| lost(&error))? {
        if answer.len() + chunk.len() > bytes_max {
            return Err(too_long());
        }
        answer.extend_from_slice(&chunk);
    }
    Ok(answer)
}

/// No answer, or only part of one.
fn lost(error: &reqwest::Error) -> Failure {
    let code =
        if error.is_timeout() && !error.is_connect() { ErrorCode::GwTimeout } else { ErrorCode::Gw5xx };
    Failure::retryable(code, code.sentence()).with_detail(causes(error))
}

/// An answer that no gateway gives: something else is there, or it is broken.
fn unlike(detail: &str) -> Failure {
    Failure::from(ErrorCode::Gw5xx).with_detail(detail)
}

/// What a status other than 200 means.
async fn refused(mut response: Response) -> Failure {
    let status = response.status();
    let wait = retry_after(response.headers());
    let problem = if is_type(response.headers(), &["application/problem+json"]) {
        // Whatever it wanted to say, the status stands.
        let body = read(&mut response, PROBLEM_BYTES_MAX).await.unwrap_or_default();
        serde_json::from_slice::<Problem>(&body).unwrap_or_default()
    } else {
        Problem::default()
    };
    let wait_told = wait.map(|wait| format!(", Retry-After {} s", wait.as_secs())).unwrap_or_default();
    let detail = format!("The gateway answered {status}{wait_told}: {}", problem.detail);
    classify(status, &problem, wait).with_detail(detail)
}

/// Whether to try again, and under which code. The status decides the first, and an ODE gateway's own code is
/// carried on where it fits that.
fn classify(status: StatusCode, problem: &Problem, wait: Option<Duration>) -> Failure {
    let passes =
        matches!(status, StatusCode::REQUEST_TIMEOUT | StatusCode::TOO_EARLY | StatusCode::TOO_MANY_REQUESTS);
    if status.is_client_error() && !passes {
        let about_document = [
            ErrorCode::NotPdf,
            ErrorCode::TooLarge,
            ErrorCode::Unreadable,
            ErrorCode::Encrypted,
            ErrorCode::NoPages,
            ErrorCode::Truncated,
            ErrorCode::UnknownMapping,
            ErrorCode::NoMapping,
            ErrorCode::NoText,
        ];
        return match problem.code.parse::<ErrorCode>() {
            Ok(code) if about_document.contains(&code) => Failure::rejected(code, &problem.detail),
            // Only a gateway answers in these terms. Anything else is in between or in its place: a wrong address, a
            // proxy with limits of its own. That is the operator's to mend, and says nothing about the document.
            Err(_) if problem.code.is_empty() && is_not_the_gateways(status) => {
                Failure::retryable(ErrorCode::Gw5xx, ErrorCode::Gw5xx.sentence())
            }
            Ok(_) | Err(_) => Failure::rejected(ErrorCode::Gw4xx, ErrorCode::Gw4xx.sentence()),
        };
    }
    let is_busy = status == StatusCode::SERVICE_UNAVAILABLE && problem.code == ErrorCode::Busy.as_str();
    let code = if is_busy { ErrorCode::Busy } else { ErrorCode::Gw5xx };
    match wait {
        Some(wait) => Failure::retryable_after(code, code.sentence(), wait),
        None => Failure::retryable(code, code.sentence()),
    }
}

/// Statuses that a gateway gives with a code of its own, if it gives them at all.
fn is_not_the_gateways(status: StatusCode) -> bool {
    matches!(
        status,
        StatusCode::UNAUTHORIZED
            | StatusCode::FORBIDDEN
            | StatusCode::NOT_FOUND
            | StatusCode::METHOD_NOT_ALLOWED
            | StatusCode::PROXY_AUTHENTICATION_REQUIRED
            | StatusCode::PAYLOAD_TOO_LARGE
    )
}

/// What we read of a problem document.
#[derive(Debug, Default, serde::Deserialize)]
#[serde(default)]
struct Problem {
    code: String,
    detail: String,
}

/// How long the gateway wants to be left alone, if it says so in seconds. A date would need clocks that agree.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let seconds = headers.get(RETRY_AFTER)?.to_str().ok()?.trim().parse().ok()?;
    Some(Duration::from_secs(seconds).min(RETRY_AFTER_MAX))
}

/// A header of ours, if it is there and no longer than such things are.
fn header<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let value = headers.get(name)?.to_str().ok()?;
    (!value.is_empty() && value.len() <= HEADER_BYTES_MAX).then_some(value)
}

/// More than a gateway tells; what is longer is none of ours.
const FINDINGS_BYTES_MAX: usize = 64 << 10;

/// What the gateway found, if it says so in the way of ours.
fn findings(headers: &HeaderMap) -> Vec<Finding> {
    let told = headers.get("ode-findings-told").map(reqwest::header::HeaderValue::as_bytes);
    let told = told.filter(|told| told.len() <= FINDINGS_BYTES_MAX);
    told.and_then(|told| serde_json::from_slice(told).ok()).unwrap_or_default()
}

fn is_type(headers: &HeaderMap, types: &[&str]) -> bool {
    let given = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let given = given.split(';').next().unwrap_or_default().trim();
    types.iter().any(|known| given.eq_ignore_ascii_case(known))
}

/// Deeper than any document we write, by far; a parser that goes down by calls would not come back from more.
const XML_DEPTH_MAX: usize = 200;

/// Whether this is one whole XML document in UTF-8 without a document type, through which it could name files.
fn check_xml(bytes: &[u8]) -> Result<(), &'static str> {
    let text = std::str::from_utf8(bytes).map_err(|_| "is not UTF-8")?;
    let mut reader = Reader::from_str(text.trim_start_matches('\u{feff}'));
    reader.config_mut().expand_empty_elements = true;
    let (mut depth, mut roots) = (0_usize, 0_usize);
    loop {
        match reader.read_event().map_err(|_| "is not well-formed")? {
            Event::Start(_) => {
                roots += usize::from(depth == 0);
                depth += 1;
                if depth > XML_DEPTH_MAX {
                    return Err("is nested too deeply");
                }
            }
            Event::End(_) => depth = depth.saturating_sub(1),
            Event::DocType(_) => return Err("declares a document type"),
            Event::Text(text) if depth == 0 && !text.iter().all(u8::is_ascii_whitespace) => {
                return Err("has text outside its root");
            }
            Event::CData(_) | Event::GeneralRef(_) if depth == 0 => return Err("has text outside its root"),
            Event::Eof => break,
            Event::Text(_)
            | Event::CData(_)
            | Event::GeneralRef(_)
            | Event::Comment(_)
            | Event::Decl(_)
            | Event::PI(_)
            | Event::Empty(_) => {}
        }
    }
    if depth == 0 && roots == 1 { Ok(()) } else { Err("has no root, more than one, or ends early") }
}

#[cfg(test)]
mod tests;
