//! The documented addresses, and below `/sim` those that only a simulator has.

use crate::answer::{Answer, RATE_HEADERS};
use crate::book::{Call, Key};
use crate::faults::Fault;
use crate::hooks::Hook;
use crate::rate::WINDOW;
use crate::sim::{Inner, Switches, too_many};
use axum::extract::{Path, Query, Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use bytes::Bytes;
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Instant;

type Sim = State<Arc<Inner>>;

pub(crate) fn router(sim: Arc<Inner>) -> Router {
    let documented = Router::new()
        .route("/orders", post(create).get(list))
        .route("/orders/estimate-costs", post(estimate))
        .route("/orders/{key}", get(read).put(edit).delete(cancel))
        .route("/orders/{key}/confirm", post(confirm))
        .route("/products/variant/{id}", get(variant))
        .route("/mockup-generator/printfiles/{id}", get(print_files))
        .route("/v2/orders/{key}/shipments", get(shipments))
        .route("/v2/webhooks", get(show_hook).post(set_hook).delete(remove_hook))
        .route_layer(middleware::from_fn_with_state(sim.clone(), guard));
    let own = Router::new()
        .route("/sim/ledger", get(ledger))
        .route("/sim/faults", get(faults).post(add_fault).delete(clear_faults))
        .route("/sim/switches", get(switches).put(set_switches))
        .route("/sim/orders/{key}/{what}", post(act));
    documented.merge(own).fallback(|| async { Answer::not_found() }).with_state(sim)
}

/// Knows the token and counts its calls.
async fn guard(State(sim): Sim, request: Request, next: Next) -> Response {
    let Some(token) = bearer(request.headers()) else {
        return Answer::refused(401, None, "This endpoint requires Oauth authentication!").into_response();
    };
    if sim.options.token.as_deref().is_some_and(|known| known != token) {
        return Answer::refused(401, None, "The access token provided is invalid.").into_response();
    }
    let per_minute = sim.options.rate_per_minute;
    if per_minute == 0 {
        return next.run(request).await;
    }
    let level = sim.rates().take(&token, per_minute, Instant::now());
    let mut response = match level.wait {
        Some(wait) => too_many(429).after(wait.max(std::time::Duration::from_secs(1))).into_response(),
        None => next.run(request).await,
    };
    let policy = format!("{per_minute};w={};", WINDOW.as_secs());
    let told = [
        per_minute.to_string(),
        level.remaining.to_string(),
        level.full_in.as_secs_f64().ceil().to_string(),
        policy,
    ];
    for (name, value) in RATE_HEADERS.into_iter().zip(told) {
        let value = value.parse().expect("numbers are a header");
        response.headers_mut().insert(name, value);
    }
    response
}

fn bearer(headers: &HeaderMap) -> Option<String> {
    let value = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    let token = value.strip_prefix("Bearer ")?.trim();
    (!token.is_empty()).then(|| token.to_owned())
}

fn body(bytes: &Bytes) -> Result<Value, Answer> {
    serde_json::from_slice(bytes).map_err(|_| Answer::refused(430, None, "Invalid JSON"))
}

/// Switches in an address, as Printful writes them.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Flags {
    confirm: Option<String>,
    update_existing: Option<String>,
}

fn is_on(flag: Option<&str>) -> bool {
    matches!(flag, Some("1" | "true"))
}

async fn create(State(sim): Sim, Query(flags): Query<Flags>, bytes: Bytes) -> Response {
    let body = match body(&bytes) {
        Ok(body) => body,
        Err(answer) => return answer.into_response(),
    };
    let (confirm, update_existing) =
        (is_on(flags.confirm.as_deref()), is_on(flags.update_existing.as_deref()));
    sim.answer(Call::Create { body, confirm, update_existing }).await
}

#[derive(Debug, Deserialize)]
struct Listing {
    status: Option<String>,
    #[serde(default)]
    offset: usize,
    #[serde(default = "twenty")]
    limit: usize,
}

fn twenty() -> usize {
    20
}

async fn list(State(sim): Sim, Query(listing): Query<Listing>) -> Response {
    let Listing { status, offset, limit } = listing;
    sim.answer(Call::List { status, offset, limit }).await
}

/// Makes a call about the order that a path names.
async fn about(sim: &Arc<Inner>, key: &str, call: impl FnOnce(Key) -> Call) -> Response {
    match Key::read(key) {
        Some(key) => sim.answer(call(key)).await,
        None => Answer::not_found().into_response(),
    }
}

async fn read(State(sim): Sim, Path(key): Path<String>) -> Response {
    about(&sim, &key, Call::Read).await
}

async fn confirm(State(sim): Sim, Path(key): Path<String>) -> Response {
    about(&sim, &key, Call::Confirm).await
}

async fn cancel(State(sim): Sim, Path(key): Path<String>) -> Response {
    about(&sim, &key, Call::Cancel).await
}

async fn shipments(State(sim): Sim, Path(key): Path<String>) -> Response {
    about(&sim, &key, Call::Shipments).await
}

async fn variant(State(sim): Sim, Path(id): Path<i64>) -> Response {
    sim.answer(Call::Variant(id)).await
}

async fn print_files(State(sim): Sim, Path(product): Path<i64>) -> Response {
    sim.answer(Call::PrintFiles(product)).await
}

async fn edit(
    State(sim): Sim,
    Path(key): Path<String>,
    Query(flags): Query<Flags>,
    bytes: Bytes,
) -> Response {
    match body(&bytes) {
        Ok(body) => {
            let confirm = is_on(flags.confirm.as_deref());
            about(&sim, &key, |key| Call::Edit { key, body, confirm }).await
        }
        Err(answer) => answer.into_response(),
    }
}

async fn estimate(State(sim): Sim, bytes: Bytes) -> Response {
    match body(&bytes) {
        Ok(body) => sim.answer(Call::Estimate(body)).await,
        Err(answer) => answer.into_response(),
    }
}

#[derive(Debug, Deserialize)]
struct HookAsk {
    default_url: String,
}

async fn set_hook(State(sim): Sim, bytes: Bytes) -> Answer {
    let Ok(HookAsk { default_url: url }) = serde_json::from_slice(&bytes) else {
        return Answer::problem(400, "Validation failed", "default_url is required.");
    };
    let mut keys = [0; 48];
    if getrandom::fill(&mut keys).is_err() {
        return Answer::problem(500, "Internal Server Error", "There are no random numbers.");
    }
    let (public, secret) = keys.split_at(16);
    let hook = Hook { url: url.clone(), public_key: hex::encode(public), secret: secret.to_vec() };
    let shown = json!({ "default_url": url, "public_key": hook.public_key, "secret_key": hook.secret_hex() });
    sim.set_hook(Some(hook));
    Answer::v2(shown)
}

async fn show_hook(State(sim): Sim) -> Answer {
    match sim.hook() {
        Some(hook) => Answer::v2(json!({ "default_url": hook.url, "public_key": hook.public_key })),
        None => Answer::problem(404, "Not Found", "There are no webhooks."),
    }
}

async fn remove_hook(State(sim): Sim) -> StatusCode {
    sim.set_hook(None);
    StatusCode::NO_CONTENT
}

async fn ledger(State(sim): Sim) -> Json<Value> {
    Json(json!(sim.book().ledger.lines()))
}

async fn faults(State(sim): Sim) -> Json<Value> {
    let faults = sim.faults();
    Json(json!({ "waiting": faults.waiting(), "struck": faults.struck() }))
}

/// A fault as JSON, or as it is written on the command line.
async fn add_fault(State(sim): Sim, text: String) -> Result<StatusCode, (StatusCode, String)> {
    let refused = |reason: String| (StatusCode::BAD_REQUEST, reason);
    let fault = if text.trim_start().starts_with('{') {
        serde_json::from_str::<Fault>(&text).map_err(|error| refused(error.to_string()))?
    } else {
        text.trim().parse::<Fault>().map_err(|error| refused(error.to_string()))?
    };
    sim.faults().add(fault);
    Ok(StatusCode::NO_CONTENT)
}

async fn clear_faults(State(sim): Sim) -> StatusCode {
    sim.faults().clear();
    StatusCode::NO_CONTENT
}

async fn switches(State(sim): Sim) -> Json<Switches> {
    Json(sim.book().switches)
}

async fn set_switches(State(sim): Sim, Json(switches): Json<Switches>) -> StatusCode {
    sim.book().switches = switches;
    StatusCode::NO_CONTENT
}

async fn act(State(sim): Sim, Path((key, what)): Path<(String, String)>) -> StatusCode {
    let is_done = Key::read(&key).is_some_and(|key| sim.book().act(&key, &what));
    sim.follow_up();
    if is_done { StatusCode::NO_CONTENT } else { StatusCode::NOT_FOUND }
}
