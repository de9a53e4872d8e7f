//! The gateway: a document in over HTTP, XML out, without a job.
//!
//! | request | answer |
//! | --- | --- |
//! | `POST /process`, a form with `file` and perhaps `mapping`, `output`, `provenance` | the XML |
//! | `GET /mappings` | which mappings there are, and what is wrong with newer ones |
//! | `GET /healthz` | that it is here |
//! | `GET /metrics` | counts, for Prometheus |
//!
//! Everything that a peer can make it hold or wait for has a bound; names and contents of documents go into no log.

mod form;
mod metrics;

use crate::conversion::ask::{Converted, Finding};
use crate::conversion::live::LiveConverter;
use axum::extract::{Request, State};
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use metrics::{Gauges, Metrics};
use ode_http::connections::{self, Bounds};
use ode_http::problem::Problem;
use ode_invoice::Mapping;
use ode_invoice::mapping::file::Status;
use ode_job::{ErrorCode, Failure, FailureKind};
use serde::Serialize;
use serde_json::json;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;

/// The mappings in use.
#[derive(Debug, Clone, Serialize)]
struct Mappings {
    /// Each of them.
    mappings: Vec<MappingView>,
    /// Why files that are newer are not in use; empty when all is well.
    mistakes: Vec<String>,
}

impl Mappings {
    fn of(converter: &LiveConverter) -> Self {
        let (mappings, mistakes) = converter.mappings(MappingView::new);
        Mappings { mappings, mistakes }
    }
}

#[derive(Debug, Clone, Serialize)]
struct MappingView {
    /// Name and version, as `name_v1`.
    id: String,
    name: String,
    version: u32,
    /// `draft`, `canary`, `live` or `retired`.
    status: &'static str,
    /// The kind of document it reads.
    kind: String,
    /// Which XML it can be written as.
    outputs: &'static [&'static str],
}

impl MappingView {
    fn new(mapping: &Mapping) -> Self {
        MappingView {
            id: mapping.id.clone(),
            name: mapping.name.clone(),
            version: mapping.version,
            status: match mapping.status {
                Status::Draft => "draft",
                Status::Canary => "canary",
                Status::Live => "live",
                Status::Retired => "retired",
            },
            kind: mapping.kind.clone(),
            // The two standards are about invoices; our own XML takes any kind of document.
            outputs: if mapping.kind == "invoice" { &["own", "ubl", "cii"] } else { &["own"] },
        }
    }
}

/// What peers may make the gateway hold and wait for.
#[derive(Debug, Clone, Copy)]
pub struct GatewayLimits {
    /// Requests to convert that are taken at a time, those that wait for their turn included; each may hold one
    /// document in memory. Further ones are told that we are busy before anything of them is read.
    pub requests: usize,
    /// Connections at a time.
    pub connections: usize,
    /// Time for the head of a request. Also how long a connection may stay silent.
    pub header_read: Duration,
    /// Time for all of a form to arrive.
    pub body_read: Duration,
    /// Time that requests get to end when the gateway is stopped.
    pub grace: Duration,
}

impl Default for GatewayLimits {
    /// 16 requests, 256 connections, 15 s for a head, two minutes for a form, 30 s to end.
    fn default() -> Self {
        GatewayLimits {
            requests: 16,
            connections: 256,
            header_read: Duration::from_secs(15),
            body_read: Duration::from_secs(120),
            grace: Duration::from_secs(30),
        }
    }
}

/// Serves the gateway until `stop` is done, then lets requests that are under way end, within the grace period. Mappings are
/// followed no more once it returns.
pub async fn serve_gateway(
    listener: TcpListener,
    converter: Arc<LiveConverter>,
    limits: GatewayLimits,
    stop: impl Future<Output = ()>,
) {
    let bounds =
        Bounds { connections: limits.connections, header_read: limits.header_read, grace: limits.grace };
    connections::serve(listener, router(converter.clone(), limits), bounds, stop).await;
    converter.stop().await;
}

struct Gateway {
    converter: Arc<LiveConverter>,
    limits: GatewayLimits,
    places: Semaphore,
    metrics: Metrics,
}

fn router(converter: Arc<LiveConverter>, limits: GatewayLimits) -> Router {
    let places = Semaphore::new(limits.requests);
    let gateway = Gateway { converter, limits, places, metrics: Metrics::default() };
    Router::new()
        .route("/process", post(process))
        .route("/mappings", get(mappings))
        .route("/healthz", get(healthz))
        .route("/metrics", get(counts))
        .fallback(|| async { Problem::not_found() })
        .method_not_allowed_fallback(|| async { Problem::method_not_allowed() })
        .with_state(Arc::new(gateway))
}

async fn process(State(gateway): State<Arc<Gateway>>, request: Request) -> Response {
    let Ok(_place) = gateway.places.try_acquire() else {
        gateway.metrics.refused(ErrorCode::Busy.as_str());
        return Problem::from(Failure::from(ErrorCode::Busy)).into_response();
    };
    let started = Instant::now();
    let outcome = answer(&gateway, request).await;
    let took = started.elapsed();
    let code = outcome.as_ref().map_or_else(|problem| problem.code().as_str(), |_| "OK");
    gateway.metrics.answered(code, took);
    if let Ok(converted) = &outcome {
        gateway.metrics.shadowed(&converted.summary.shadows);
    }
    tracing::info!(code, duration_ms = took.as_millis(), "answered a request to convert: {code}");
    outcome.map_or_else(IntoResponse::into_response, xml)
}

async fn answer(gateway: &Gateway, request: Request) -> Result<Converted, Problem> {
    let (patience, reading) = (gateway.limits.body_read, form::read(request, &gateway.converter));
    let (ask, document) = tokio::time::timeout(patience, reading).await.map_err(|_| {
        Problem::too_slow(format!("The form did not arrive within {} seconds.", patience.as_secs()))
    })??;
    gateway.converter.convert(&ask, document).await.map_err(told)
}

/// What a person is told; the operator is told the rest, unless it is about the document: it might quote it.
fn told(failure: Failure) -> Problem {
    if let (FailureKind::Retryable { .. }, Some(detail)) = (&failure.kind, &failure.detail) {
        tracing::error!(code = %failure.code, %detail, "a conversion failed by our own fault");
    }
    failure.into()
}

/// The answer, with what there is to say about it in headers.
fn xml(Converted { document, summary, .. }: Converted) -> Response {
    // The name of an embedded file is somebody else's text, and a header takes only some of it.
    let plain = |c: char| if c.is_ascii_graphic() || c == ' ' { c } else { '?' };
    let source: String = summary.source.chars().map(plain).collect();
    let source = HeaderValue::from_str(&source).unwrap_or(HeaderValue::from_static(""));
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static("application/xml")),
        (header::HeaderName::from_static("ode-mapping"), source),
        (header::HeaderName::from_static("ode-findings"), HeaderValue::from(summary.findings.len())),
        (header::HeaderName::from_static("ode-findings-told"), findings(&summary.findings)),
        (header::HeaderName::from_static("ode-pages"), HeaderValue::from(summary.pages)),
    ];
    (headers, document).into_response()
}

/// So much is told of findings; a header is no place for more.
const FINDINGS_BYTES_MAX: usize = 16 << 10;

/// The findings as JSON in letters that a header takes; the last ones are left out where they are too many.
fn findings(findings: &[Finding]) -> HeaderValue {
    let mut told = String::from("[");
    for finding in findings {
        let mut text = String::new();
        for c in json!(finding).to_string().chars() {
            match c {
                ' '..='~' => text.push(c),
                _ => c
                    .encode_utf16(&mut [0; 2])
                    .iter()
                    .for_each(|unit| text.push_str(&format!("\\u{unit:04x}"))),
            }
        }
        if told.len() + text.len() + 2 > FINDINGS_BYTES_MAX {
            break;
        }
        if told.len() > 1 {
            told.push(',');
        }
        told.push_str(&text);
    }
    told.push(']');
    HeaderValue::from_str(&told).unwrap_or(HeaderValue::from_static("[]"))
}

async fn mappings(State(gateway): State<Arc<Gateway>>) -> Json<Mappings> {
    Json(Mappings::of(&gateway.converter))
}

async fn healthz() -> Json<serde_json::Value> {
    Json(json!({ "status": "ok", "version": env!("CARGO_PKG_VERSION") }))
}

async fn counts(State(gateway): State<Arc<Gateway>>) -> Response {
    let mappings = Mappings::of(&gateway.converter);
    let gauges = Gauges {
        in_flight: gateway.limits.requests.saturating_sub(gateway.places.available_permits()),
        mappings: mappings.mappings.len(),
        mistakes: mappings.mistakes.len(),
    };
    let headers = [(header::CONTENT_TYPE, ode_metrics::CONTENT_TYPE)];
    (headers, gateway.metrics.text(gauges)).into_response()
}

#[cfg(test)]
mod tests;
