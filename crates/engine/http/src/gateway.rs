//! The gateway: a document in over HTTP, XML out, without a job.
//!
//! | request | answer |
//! | --- | --- |
//! | `POST /process`, a form with `file` and perhaps `mapping`, `output`, `provenance` | the XML |
//! | `GET /mappings` | which mappings there are, and what is wrong with newer ones |
//! | `GET /healthz` | that it is here |
//! | `GET /metrics` | counts, for Prometheus |
//!
//! It knows nothing about conversions: [`Convert`] is handed in. Everything that a peer can make it hold or wait for
//! has a bound; names and contents of documents go into no log.

mod form;
mod metrics;

use crate::connections::{self, Bounds};
use crate::problem::Problem;
use axum::extract::{Request, State};
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use bytes::Bytes;
use metrics::{Gauges, Metrics};
use ode_job::{ErrorCode, Failure, FailureKind};
use serde::Serialize;
use serde_json::json;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;

/// What the gateway needs to convert.
pub trait Convert: Send + Sync + 'static {
    /// Converts one document. Dropping the future ends the conversion.
    fn convert(&self, order: Order) -> impl Future<Output = Result<Conversion, Failure>> + Send;
    /// The mappings in use.
    fn mappings(&self) -> Mappings;
    /// The largest document that is taken.
    fn document_bytes_max(&self) -> u64;
}

/// What somebody wants converted. Not to be printed: it holds a document.
#[derive(Clone)]
pub struct Order {
    /// The PDF.
    pub document: Bytes,
    /// The mapping by name, or `auto`.
    pub mapping: Option<String>,
    /// Which XML.
    pub output: Option<String>,
    /// Whether the XML says where each value stands.
    pub provenance: bool,
}

/// A converted document. Not to be printed either.
#[derive(Clone)]
pub struct Conversion {
    /// The XML.
    pub xml: Vec<u8>,
    /// Where the values are from: a mapping's id, or the embedded file that was passed on.
    pub source: String,
    /// What a person should look at: each with `severity`, `code`, `field` and `message`.
    pub findings: Vec<serde_json::Value>,
    /// Pages in the document.
    pub pages: usize,
    /// How draft and canary versions of the mapping came out beside it.
    pub shadows: Vec<Shadow>,
}

/// A version of a mapping that ran beside the one that was used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shadow {
    /// Its id.
    pub mapping: String,
    /// Fields that it reads differently, cells as `lines.0.total`; empty where all is the same.
    pub different: Vec<String>,
}

/// The mappings in use.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Mappings {
    /// Each of them.
    pub mappings: Vec<MappingInfo>,
    /// Why files that are newer are not in use; empty when all is well.
    pub mistakes: Vec<String>,
}

/// One mapping.
#[derive(Debug, Clone, Serialize)]
pub struct MappingInfo {
    /// Name and version, as `name_v1`.
    pub id: String,
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: u32,
    /// `draft`, `canary`, `live` or `retired`.
    pub status: &'static str,
    /// The kind of document it reads.
    pub kind: String,
    /// Which XML it can be written as.
    pub outputs: &'static [&'static str],
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

/// Serves the gateway until `stop` is done, then lets requests that are under way end, within the grace period.
pub async fn serve_gateway<C: Convert>(
    listener: TcpListener,
    converter: Arc<C>,
    limits: GatewayLimits,
    stop: impl Future<Output = ()>,
) {
    let bounds =
        Bounds { connections: limits.connections, header_read: limits.header_read, grace: limits.grace };
    connections::serve(listener, router(converter, limits), bounds, stop).await;
}

struct Gateway<C> {
    converter: Arc<C>,
    limits: GatewayLimits,
    places: Semaphore,
    metrics: Metrics,
}

fn router<C: Convert>(converter: Arc<C>, limits: GatewayLimits) -> Router {
    let places = Semaphore::new(limits.requests);
    let gateway = Gateway { converter, limits, places, metrics: Metrics::default() };
    Router::new()
        .route("/process", post(process::<C>))
        .route("/mappings", get(mappings::<C>))
        .route("/healthz", get(healthz))
        .route("/metrics", get(counts::<C>))
        .fallback(|| async { Problem::not_found() })
        .method_not_allowed_fallback(|| async { Problem::method_not_allowed() })
        .with_state(Arc::new(gateway))
}

async fn process<C: Convert>(State(gateway): State<Arc<Gateway<C>>>, request: Request) -> Response {
    let Ok(_place) = gateway.places.try_acquire() else {
        gateway.metrics.refused(ErrorCode::Busy.as_str());
        return Problem::from(Failure::from(ErrorCode::Busy)).into_response();
    };
    let started = Instant::now();
    let outcome = answer(&gateway, request).await;
    let took = started.elapsed();
    let code = outcome.as_ref().map_or_else(|problem| problem.code().as_str(), |_| "OK");
    gateway.metrics.answered(code, took);
    if let Ok(conversion) = &outcome {
        gateway.metrics.shadowed(&conversion.shadows);
    }
    tracing::info!(code, duration_ms = took.as_millis(), "answered a request to convert: {code}");
    outcome.map_or_else(IntoResponse::into_response, xml)
}

async fn answer<C: Convert>(gateway: &Gateway<C>, request: Request) -> Result<Conversion, Problem> {
    let (patience, bytes_max) = (gateway.limits.body_read, gateway.converter.document_bytes_max());
    let order = tokio::time::timeout(patience, form::read(request, bytes_max)).await.map_err(|_| {
        Problem::too_slow(format!("The form did not arrive within {} seconds.", patience.as_secs()))
    })??;
    gateway.converter.convert(order).await.map_err(told)
}

/// What a person is told; the operator is told the rest, unless it is about the document: it might quote it.
fn told(failure: Failure) -> Problem {
    if let (FailureKind::Retryable { .. }, Some(detail)) = (&failure.kind, &failure.detail) {
        tracing::error!(code = %failure.code, %detail, "a conversion failed by our own fault");
    }
    failure.into()
}

/// The answer, with what there is to say about it in headers.
fn xml(conversion: Conversion) -> Response {
    // The name of an embedded file is somebody else's text, and a header takes only some of it.
    let plain = |c: char| if c.is_ascii_graphic() || c == ' ' { c } else { '?' };
    let source: String = conversion.source.chars().map(plain).collect();
    let source = HeaderValue::from_str(&source).unwrap_or(HeaderValue::from_static(""));
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static("application/xml")),
        (header::HeaderName::from_static("ode-mapping"), source),
        (header::HeaderName::from_static("ode-findings"), HeaderValue::from(conversion.findings.len())),
        (header::HeaderName::from_static("ode-findings-told"), findings(&conversion.findings)),
        (header::HeaderName::from_static("ode-pages"), HeaderValue::from(conversion.pages)),
    ];
    (headers, conversion.xml).into_response()
}

/// So much is told of findings; a header is no place for more.
const FINDINGS_BYTES_MAX: usize = 16 << 10;

/// The findings as JSON in letters that a header takes; the last ones are left out where they are too many.
fn findings(findings: &[serde_json::Value]) -> HeaderValue {
    let mut told = String::from("[");
    for finding in findings {
        let mut text = String::new();
        for c in finding.to_string().chars() {
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

async fn mappings<C: Convert>(State(gateway): State<Arc<Gateway<C>>>) -> Json<Mappings> {
    Json(gateway.converter.mappings())
}

async fn healthz() -> Json<serde_json::Value> {
    Json(json!({ "status": "ok", "version": env!("CARGO_PKG_VERSION") }))
}

async fn counts<C: Convert>(State(gateway): State<Arc<Gateway<C>>>) -> Response {
    let mappings = gateway.converter.mappings();
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
