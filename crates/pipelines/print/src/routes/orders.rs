//! Ordering prints: `/api/print-jobs/{id}/order`, and what Printful tells us by itself at `/webhooks/printful`.

use super::previews::Site;
use crate::request::OrderAsk;
use crate::sql::{self, Asked, OrderRecord};
use axum::Json;
use axum::body::Body;
use axum::extract::{Extension, Path, State};
use axum::http::{HeaderMap, StatusCode};
use bytes::Bytes;
use hmac::{Hmac, KeyInit as _, Mac as _};
use jiff::Timestamp;
use ode_http::App;
use ode_http::body;
use ode_http::caller::Caller;
use ode_http::jobs::{find, forget};
use ode_http::problem::{Problem, ProblemDocument, Reading, Sending};
use ode_job::{ErrorCode, JobId, JobRecord, Owner, State as JobState};
use serde::Serialize;
use serde_json::Value;
use sha2::Sha256;
use std::sync::Arc;
use utoipa::ToSchema;
use uuid::Uuid;

/// An order is an address and a few numbers.
const ORDER_BYTES_MAX: usize = 64 << 10;
/// An event tells of one order.
const EVENT_BYTES_MAX: usize = 1 << 20;

/// The order of a print.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Order)]
pub(crate) struct OrderView {
    /// The job it belongs to.
    #[schema(value_type = String, format = "uuid")]
    job_id: JobId,
    /// Where the job stands.
    #[schema(value_type = String, example = "ordered")]
    state: JobState,
    /// How far placing it is known to have come: none, create_sent, draft, confirm_sent or confirmed.
    #[schema(example = "confirmed")]
    phase: String,
    /// Its name at the provider.
    external_id: String,
    /// Its number there.
    provider_order_id: Option<i64>,
    /// How it stands there, in the provider's word.
    provider_status: Option<String>,
    /// The currency of its amounts.
    #[schema(example = "USD")]
    currency: String,
    /// What it may cost.
    #[schema(example = "30.00")]
    cost_max: String,
    /// What it costs, once that is known.
    cost: Option<String>,
    /// Why a person should look at it, where one should.
    needs_attention: Option<String>,
    /// When it was asked for.
    #[schema(value_type = String, format = "date-time")]
    created_at: Timestamp,
    /// When it was confirmed.
    #[schema(value_type = Option<String>, format = "date-time")]
    placed_at: Option<Timestamp>,
    /// When all of it was on its way.
    #[schema(value_type = Option<String>, format = "date-time")]
    shipped_at: Option<Timestamp>,
    /// When it was delivered.
    #[schema(value_type = Option<String>, format = "date-time")]
    delivered_at: Option<Timestamp>,
}

impl From<OrderRecord> for OrderView {
    fn from(order: OrderRecord) -> Self {
        OrderView {
            job_id: order.job_id,
            state: order.state,
            phase: order.phase.to_string(),
            external_id: order.external_id,
            provider_order_id: order.provider_order_id,
            provider_status: order.provider_status,
            currency: order.currency,
            cost_max: order.cost_max.to_string(),
            cost: order.cost.map(|cost| cost.to_string()),
            needs_attention: order.attention_message,
            created_at: order.created_at,
            placed_at: order.placed_at,
            shipped_at: order.shipped_at,
            delivered_at: order.delivered_at,
        }
    }
}

/// The organisation that would pay for an order of this caller's.
pub(crate) fn payer(caller: &Caller) -> Result<Uuid, Problem> {
    match caller.owner {
        Owner::Organisation(organisation) => Ok(organisation),
        Owner::Session(_) | Owner::User(_) | Owner::Operator => Err(Problem::new(
            ErrorCode::Forbidden,
            "Only an organisation orders prints: with a key made by `ode keys create --organisation`, or signed in with it at /sign-in.",
        )
        .titled("Only an organisation may order prints")),
    }
}

/// Orders a print: it is placed at the provider exactly once, and only within your organisation's limit.
///
/// Asking for the same order again changes nothing. One job is one order; reprint the map to order it again.
#[utoipa::path(post, path = "/api/print-jobs/{id}/order", tag = "maps",
    params(("id" = String, Path, description = "The job's id or reference")),
    request_body(content = Object, description = "`recipient` with `name`, `address1`, `city`, `country_code` and the rest of an address, `variant_id` (the provider's number for a product), and if need be `quantity`, `shipping` and `cost_max`"),
    responses(
        (status = 201, body = OrderView),
        (status = 200, body = OrderView, description = "The same was asked for before"),
        Sending,
        (status = 403, body = ProblemDocument, content_type = "application/problem+json",
            description = "Only organisations order, and only within their limit")))]
pub(crate) async fn order(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
    body: Body,
) -> Result<(StatusCode, Json<OrderView>), Problem> {
    let job = find(&app, &caller, &id).await?;
    payer(&caller)?;
    let wanted: OrderAsk = body::parse(&body::whole(body, ORDER_BYTES_MAX).await?)?;
    let asked = ask(&app, &caller, &job, &wanted).await?;
    let order = sql::order_of(app.store.sql(), job.id).await?.ok_or_else(Problem::our_fault)?;
    let status = if asked == Asked::New { StatusCode::CREATED } else { StatusCode::OK };
    Ok((status, Json(order.into())))
}

/// Asks for the order of a print of the caller's.
pub(crate) async fn ask(
    app: &App,
    caller: &Caller,
    job: &JobRecord,
    wanted: &OrderAsk,
) -> Result<Asked, Problem> {
    let asked = sql::ask_order(&app.store, job.id, payer(caller)?, wanted).await?;
    forget(app, job);
    Ok(asked)
}

/// The order of a print, and how it stands.
#[utoipa::path(get, path = "/api/print-jobs/{id}/order", tag = "maps",
    params(("id" = String, Path, description = "The job's id or reference")),
    responses(
        (status = 200, body = OrderView),
        Reading))]
pub(crate) async fn show(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
) -> Result<Json<OrderView>, Problem> {
    let job = find(&app, &caller, &id).await?;
    let none =
        || Problem::new(ErrorCode::NotFound, "No order was asked for with this print. Ask for one by POST.");
    Ok(Json(sql::order_of(app.store.sql(), job.id).await?.ok_or_else(none)?.into()))
}

/// Takes note of an event. Nothing that it says is believed: the order that it names is looked at, soon.
pub(crate) async fn hook(
    State(app): State<Arc<App>>,
    Extension(site): Site,
    headers: HeaderMap,
    body: Body,
) -> Result<StatusCode, Problem> {
    let Some(secret) = &site.hook_secret else { return Err(Problem::not_found()) };
    let body = body::whole(body, EVENT_BYTES_MAX).await?;
    if !is_signed(secret, &headers, &body) {
        tracing::warn!("an event came to /webhooks/printful under a signature that is not Printful's");
        let detail = "The signature is not that of this body. Check the secret that it is signed with.";
        return Err(Problem::new(ErrorCode::Unauthorized, detail).titled("This signature isn't valid"));
    }
    let event: Value =
        serde_json::from_slice(&body).map_err(|_| Problem::invalid("An event is a JSON document."))?;
    let kind = event["type"].as_str().unwrap_or("unknown");
    let external_id = event["data"]["order"]["external_id"].as_str();
    let is_new = sql::note_event(app.store.sql(), &digest(&event), kind, external_id).await?;
    tracing::info!(event.kind = kind, is_new, "Printful told of {kind}");
    Ok(StatusCode::OK)
}

/// Whether the body was signed with our secret: HMAC-SHA256 of the bytes as they came, in hexadecimal.
fn is_signed(secret: &[u8], headers: &HeaderMap, body: &Bytes) -> bool {
    let given = headers.get("x-pf-webhook-signature").and_then(|value| value.to_str().ok());
    let Some(given) = given.and_then(|given| hex::decode(given).ok()) else { return false };
    let mut mac = Hmac::<Sha256>::new_from_slice(secret).expect("HMAC takes keys of any length");
    mac.update(body);
    mac.verify_slice(&given).is_ok()
}

/// Printful gives events no id, and signs no time: the same event is known by what it is about.
fn digest(event: &Value) -> String {
    let data = &event["data"];
    let parts = [&event["type"], &event["occurred_at"], &data["order"]["id"], &data["shipment"]["id"]];
    let about: Vec<String> = parts.iter().map(|part| part.to_string()).collect();
    ode_store::sha256_hex(about.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_the_right_signature_of_the_very_bytes_is_taken() {
        let (secret, body) = (b"secret".as_slice(), Bytes::from_static(b"{\"type\":\"a\"}"));
        let mut mac = Hmac::<Sha256>::new_from_slice(secret).unwrap();
        mac.update(&body);
        let signature = hex::encode(mac.finalize().into_bytes());
        let signed = |signature: &str, body: &Bytes| {
            let mut headers = HeaderMap::new();
            headers.insert("x-pf-webhook-signature", signature.parse().unwrap());
            is_signed(secret, &headers, body)
        };
        assert!(signed(&signature, &body));
        assert!(!signed(&signature, &Bytes::from_static(b"{\"type\": \"a\"}")));
        assert!(!signed(&signature[2..], &body));
        assert!(!signed("not hexadecimal", &body));
        assert!(!is_signed(secret, &HeaderMap::new(), &body));
    }

    #[test]
    fn an_event_told_again_is_the_same_event() {
        let event = |retries: u32, order: u32| {
            digest(
                &json!({ "type": "order_updated", "occurred_at": "2026-01-01T00:00:00Z", "retries": retries,
                "data": { "order": { "id": order } } }),
            )
        };
        assert_eq!(event(0, 1), event(3, 1));
        assert_ne!(event(0, 1), event(0, 2));
    }
}
