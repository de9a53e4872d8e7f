//! Addresses of both origins, the faults that requests meet, and the addresses that only tests use.

use crate::faults::{Fault, FaultKind};
use crate::pages::{account, connect, menu, onboarding, payments as pay, setup, website};
use crate::prepared;
use crate::site::Shared;
use crate::visitor::session_token;
use crate::world::World;
use axum::body::{Body, to_bytes};
use axum::extract::{Query, Request, State};
use axum::http::{Method, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{Html, IntoResponse as _, Response};
use axum::routing::{get, post};
use axum::{Form, Json, Router};
use serde::Deserialize;
use serde_json::{Value, json};
use std::time::Duration;

/// A form with a file in it is not longer.
const BODY_BYTES_MAX: usize = 2 << 20;

/// The restaurants' admin.
pub(crate) fn admin(site: Shared) -> Router {
    let pages = Router::new()
        .route("/", get(account::restaurants))
        .route("/sign-up", get(account::sign_up_page).post(account::sign_up))
        .route("/sign-in", get(account::sign_in_page).post(account::sign_in))
        .route("/two-factor", get(account::two_factor_page).post(account::two_factor))
        .route("/sign-out", post(account::sign_out))
        .route("/r/{slug}", get(onboarding::dashboard))
        .route("/r/{slug}/profile", get(setup::profile_page).post(setup::save_profile))
        .route("/r/{slug}/menu", get(menu::page))
        .route("/r/{slug}/menu/import", get(menu::import_page).post(menu::upload))
        .route("/r/{slug}/menu/import/{id}", get(menu::show_import))
        .route("/r/{slug}/menu/import/{id}/confirm", post(menu::confirm))
        .route("/r/{slug}/menu/import/{id}/status", get(menu::status))
        .route("/r/{slug}/tags", get(menu::tags_page).post(menu::add_tag))
        .route("/r/{slug}/option-sets", get(menu::option_sets_page).post(menu::add_option_set))
        .route("/r/{slug}/option-sets/new", get(menu::new_option_set_page))
        .route("/r/{slug}/website", get(website::page))
        .route("/r/{slug}/website/theme", post(website::save_theme))
        .route("/r/{slug}/website/texts", post(website::save_texts))
        .route("/r/{slug}/website/publish", post(website::publish))
        .route("/r/{slug}/services", get(setup::services_page).post(setup::save_service))
        .route("/r/{slug}/settings", get(setup::settings_page).post(setup::save_settings))
        .route("/r/{slug}/api-keys", get(setup::api_keys_page).post(setup::create_api_key))
        .route("/r/{slug}/api-keys/revoke", post(setup::revoke_api_key))
        .route("/r/{slug}/payments", get(pay::page).post(pay::save))
        .route("/r/{slug}/payments/connect", post(pay::connect))
        .route("/r/{slug}/payments/return", get(pay::come_back))
        .route("/r/{slug}/payments/link", post(pay::link))
        .route("/r/{slug}/onboarding", get(onboarding::page).post(onboarding::go_live));
    let tests = Router::new()
        .route("/__state", get(state))
        .route("/__owners", post(add_owner))
        .route("/__faults", get(faults).post(add_fault).delete(clear_faults));
    let assets = Router::new()
        .route("/app.js", get(|| async { asset("text/javascript", include_str!("../assets/app.js")) }))
        .route("/app.css", get(|| async { asset("text/css", include_str!("../assets/app.css")) }));
    with_faults(pages, &site).merge(tests).merge(assets).with_state(site)
}

pub(crate) fn payments(site: Shared) -> Router {
    let pages = Router::new().route("/connect/{state}", get(connect::page).post(connect::authorise));
    let assets = Router::new()
        .route("/app.css", get(|| async { asset("text/css", include_str!("../assets/app.css")) }));
    with_faults(pages, &site).merge(assets).with_state(site)
}

fn with_faults(pages: Router<Shared>, site: &Shared) -> Router<Shared> {
    let limit = axum::extract::DefaultBodyLimit::max(BODY_BYTES_MAX);
    pages.layer(middleware::from_fn_with_state(site.clone(), meet_faults)).layer(limit)
}

fn asset(kind: &'static str, text: &'static str) -> Response {
    ([(header::CONTENT_TYPE, kind)], text).into_response()
}

/// What goes wrong with this request, before and after it is answered.
async fn meet_faults(State(site): State<Shared>, request: Request, next: Next) -> Response {
    let token = session_token(request.headers()).map(str::to_owned);
    let path = request.uri().path().to_owned();
    let is_sent = request.method() == Method::POST;
    let (owner, request) = match owner_of(&site, token.as_deref(), request).await {
        Ok(known) => known,
        Err(refused) => return refused,
    };
    let strike = |kind| site.world().faults.strike(kind, &owner, &path);
    if let Some(slow) = strike(FaultKind::Slow) {
        tokio::time::sleep(Duration::from_millis(slow.milliseconds)).await;
    }
    if is_sent && strike(FaultKind::Endless).is_some() {
        // Until whoever asked hangs up.
        std::future::pending::<()>().await;
    }
    if is_sent && strike(FaultKind::Error).is_some() {
        return broken();
    }
    if let (true, Some(token)) = (is_sent, &token)
        && strike(FaultKind::Expire).is_some()
    {
        site.world().sessions.remove(token);
    }
    let response = next.run(request).await;
    if is_sent && strike(FaultKind::ErrorAfter).is_some() { broken() } else { response }
}

/// Whose request this is: by their session, by the connection that was begun for them, or by what they sign in with.
async fn owner_of(
    site: &Shared,
    token: Option<&str>,
    request: Request,
) -> Result<(String, Request), Response> {
    #[derive(Deserialize)]
    struct Who {
        email: String,
    }
    let path = request.uri().path();
    if let Some(state) = path.strip_prefix("/connect/") {
        let owner = site.world().connecting.get(state).map(|begun| begun.email.clone());
        return Ok((owner.unwrap_or_default(), request));
    }
    if request.method() == Method::POST && ["/sign-in", "/sign-up"].contains(&path) {
        let (parts, body) = request.into_parts();
        let bytes = to_bytes(body, BODY_BYTES_MAX).await;
        let bytes = bytes.map_err(|_| StatusCode::PAYLOAD_TOO_LARGE.into_response())?;
        let copy = Request::from_parts(parts.clone(), Body::from(bytes.clone()));
        let who = <Form<Who> as axum::extract::FromRequest<()>>::from_request(copy, &()).await;
        let owner = who.map(|Form(who)| who.email).unwrap_or_default();
        return Ok((owner, Request::from_parts(parts, Body::from(bytes))));
    }
    let owner = token.and_then(|token| site.world().sessions.get(token).map(|session| session.email.clone()));
    Ok((owner.unwrap_or_default(), request))
}

fn broken() -> Response {
    let page = Html(include_str!("../templates/broken.html"));
    (StatusCode::INTERNAL_SERVER_ERROR, page).into_response()
}

#[derive(Debug, Deserialize)]
struct Whose {
    owner: Option<String>,
}

/// What is stored: of one owner, or of all.
async fn state(State(site): State<Shared>, Query(whose): Query<Whose>) -> Json<Value> {
    let world = site.world();
    Json(match whose.owner {
        Some(owner) => state_of(&world, &owner),
        None => json!({ "accounts": world.accounts, "payment_accounts": world.payment_accounts }),
    })
}

pub(crate) fn state_of(world: &World, email: &str) -> Value {
    let payment_account = world.payment_accounts.get(email);
    match world.accounts.get(email) {
        Some(account) => json!({
            "restaurants": account.restaurants,
            "payment_account": payment_account,
        }),
        None => Value::Null,
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct NewOwner {
    email: String,
    password: String,
    restaurant: String,
    #[serde(default)]
    set_up: Vec<prepared::Part>,
}

async fn add_owner(State(site): State<Shared>, Json(owner): Json<NewOwner>) -> StatusCode {
    let mut world = site.world();
    prepared::set_up(world.sign_up(&owner.email, &owner.password, &owner.restaurant), &owner.set_up);
    StatusCode::NO_CONTENT
}

async fn faults(State(site): State<Shared>) -> Json<Vec<Fault>> {
    Json(site.world().faults.waiting().to_vec())
}

async fn add_fault(State(site): State<Shared>, Json(fault): Json<Fault>) -> StatusCode {
    site.world().faults.add(fault);
    StatusCode::NO_CONTENT
}

async fn clear_faults(State(site): State<Shared>) -> StatusCode {
    site.world().faults.clear();
    StatusCode::NO_CONTENT
}
