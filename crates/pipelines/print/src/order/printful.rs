//! Calls Printful, and says of each call what is known of it: that it was carried out, that it was refused, that it was
//! not carried out, or that nobody can say.
//!
//! Nothing is tried again here and nobody is followed elsewhere: whoever calls decides what a doubt means. Both shapes of
//! Printful's errors are read whichever version was called, and an answer that is not clearly Printful's is a doubt.

use super::money::Money;
use super::product::PrintArea;
use super::remote::{RemoteOrder, Shipment};
use bytes::BytesMut;
use ode_job::failure::causes;
use reqwest::header::{CONTENT_TYPE, HeaderMap, RETRY_AFTER};
use reqwest::{Method, RequestBuilder, Response, StatusCode, Url, redirect};
use serde_json::{Value, json};
use std::time::Duration;

/// How Printful is reached.
#[derive(Debug, Clone)]
pub struct PrintfulSettings {
    pub url: String,
    /// The token that it gave us.
    pub token: String,
    /// The store, where the token is for more than one.
    pub store: Option<String>,
    /// From the first byte sent to the last one received.
    pub timeout: Duration,
}

pub const PRINTFUL_URL: &str = "https://api.printful.com";
/// How long a call may take: a fraction of any lease, so that whoever holds one hears of it in time.
pub const CALL_TIMEOUT: Duration = Duration::from_secs(30);
/// For the connection alone.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// An answer longer than this is not about orders.
const ANSWER_BYTES_MAX: usize = 4 << 20;
/// Orders in one page of a list.
pub const PAGE: usize = 100;
/// Words of a refusal that are kept.
const MESSAGE_CHARS_MAX: usize = 300;
/// A provider that wants to be left alone for longer than this is asked again all the same.
const RETRY_AFTER_MAX: Duration = Duration::from_secs(3600);

/// Printful's address cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PrintfulError {
    /// It is not an address that we can call.
    #[error("Printful's address must look like https://api.printful.com.")]
    Unusable,
    /// The token cannot be sent.
    #[error(
        "The Printful token has letters that no token has. Copy it again from Printful's developer page."
    )]
    Token,
    /// The machine has no certificates, or TLS cannot start.
    #[error("Nothing can be called from here: {0}.")]
    Unavailable(String),
}

/// What is known of a call.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome<T> {
    /// It was carried out, and this is the answer.
    Done(T),
    /// Printful says clearly that it will not.
    Refused(Refusal),
    /// It was not carried out: nobody was there, or it came too soon.
    NotExecuted {
        /// When to come back, if that was said.
        after: Option<Duration>,
        /// For the operator.
        why: String,
    },
    /// Nobody can say whether it was carried out.
    Unknown {
        /// For the operator.
        why: String,
    },
}

/// What Printful says when it refuses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// The status.
    pub status: u16,
    /// Its own code, such as `OR-13`.
    pub code: Option<String>,
    /// In its words.
    pub message: String,
}

impl Refusal {
    /// Another order has the external id.
    #[must_use]
    pub fn is_id_taken(&self) -> bool {
        let names_it = || {
            let words = self.message.to_lowercase();
            words.contains("external id") || words.contains("external_id")
        };
        self.code.as_deref() == Some("OR-13") || matches!(self.status, 400 | 409) && names_it()
    }

    /// The token is not known, or may not do this.
    #[must_use]
    pub fn is_unauthorised(&self) -> bool {
        matches!(self.status, 401 | 403)
    }

    /// There is no such thing.
    #[must_use]
    pub fn is_missing(&self) -> bool {
        self.status == 404
    }
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Refusal { status, code, message } = self;
        match code {
            Some(code) => write!(f, "{message} ({code}, {status})"),
            None => write!(f, "{message} ({status})"),
        }
    }
}

/// Printful. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Printful {
    http: reqwest::Client,
    base: Url,
    timeout: Duration,
}

impl Printful {
    /// Gets ready to call it.
    pub fn new(settings: &PrintfulSettings) -> Result<Self, PrintfulError> {
        let base: Url = settings.url.parse().map_err(|_| PrintfulError::Unusable)?;
        if !matches!(base.scheme(), "http" | "https") || !base.has_host() || base.query().is_some() {
            return Err(PrintfulError::Unusable);
        }
        let mut headers = HeaderMap::new();
        let mut bearer: reqwest::header::HeaderValue =
            format!("Bearer {}", settings.token).parse().map_err(|_| PrintfulError::Token)?;
        bearer.set_sensitive(true);
        headers.insert(reqwest::header::AUTHORIZATION, bearer);
        if let Some(store) = &settings.store {
            headers.insert("x-pf-store-id", store.parse().map_err(|_| PrintfulError::Token)?);
        }
        let http = reqwest::Client::builder()
            .default_headers(headers)
            .redirect(redirect::Policy::none())
            .retry(reqwest::retry::never())
            // The address is the operator's word; the environment must not lead elsewhere.
            .no_proxy()
            .timeout(settings.timeout)
            .connect_timeout(CONNECT_TIMEOUT)
            // A kept connection that is closed as it is used again looks like a doubt, and doubts are dear.
            .pool_max_idle_per_host(0)
            .build()
            .map_err(|error| PrintfulError::Unavailable(causes(&error)))?;
        Ok(Printful { http, base, timeout: settings.timeout })
    }

    /// The time after which a call that another process made has ended, whatever became of that process: the time limit of
    /// calls, and half as much again for a machine that is busy.
    #[must_use]
    pub fn answer_max(&self) -> Duration {
        self.timeout * 3 / 2
    }

    /// Its address, as it may be shown.
    #[must_use]
    pub fn address(&self) -> &str {
        self.base.as_str().trim_end_matches('/')
    }

    /// Asks for a draft.
    pub async fn create(&self, request: &Value) -> Outcome<RemoteOrder> {
        let call = with_json(self.request(Method::POST, &["orders"]), request);
        order(send(call).await)
    }

    /// Looks an order up by the name that we gave it.
    pub async fn find(&self, external_id: &str) -> Outcome<RemoteOrder> {
        order(send(self.request(Method::GET, &["orders", &format!("@{external_id}")])).await)
    }

    /// Confirms an order, which is then made and paid for.
    pub async fn confirm(&self, external_id: &str) -> Outcome<RemoteOrder> {
        order(send(self.request(Method::POST, &["orders", &format!("@{external_id}"), "confirm"])).await)
    }

    /// What an order would cost, in hundredths.
    pub async fn estimate(&self, request: &Value) -> Outcome<Money> {
        let call = with_json(self.request(Method::POST, &["orders", "estimate-costs"]), request);
        let total = |answer: &Value| super::remote::amount(&answer["costs"]["total"]);
        send(call).await.and(|answer| total(answer).ok_or("the estimate has no total"))
    }

    /// The number of the product that a variant belongs to.
    pub async fn product_of(&self, variant_id: i64) -> Outcome<i64> {
        let call = self.request(Method::GET, &["products", "variant", &variant_id.to_string()]);
        send(call)
            .await
            .and(|answer| answer["variant"]["product_id"].as_i64().ok_or("the variant has no product"))
    }

    /// What a variant of a product is printed from; nothing if that is not one file.
    pub async fn print_area(&self, product_id: i64, variant_id: i64) -> Outcome<Option<PrintArea>> {
        let call = self.request(Method::GET, &["mockup-generator", "printfiles", &product_id.to_string()]);
        send(call).await.and(|answer| super::remote::print_area(answer, variant_id))
    }

    /// A page of all orders, newest first, and how many there are.
    pub async fn list(&self, offset: usize) -> Outcome<Vec<RemoteOrder>> {
        let page = [("offset", offset.to_string()), ("limit", PAGE.to_string())];
        let call = with_query(self.request(Method::GET, &["orders"]), &page);
        send(call).await.and(|answer| {
            let orders = answer.as_array().ok_or("the list is none")?;
            orders.iter().map(|order| RemoteOrder::read(order).ok_or("the list holds no orders")).collect()
        })
    }

    /// The shipments of an order.
    pub async fn shipments(&self, order_id: i64) -> Outcome<Vec<Shipment>> {
        let call = self.request(Method::GET, &["v2", "orders", &order_id.to_string(), "shipments"]);
        send(call).await.and(|answer| {
            let shipments = answer.as_array().ok_or("the shipments are no list")?;
            Ok(shipments.iter().map(Shipment::read).collect())
        })
    }

    /// Has events told to an address; answers the key under which they are signed, which is shown this once.
    pub async fn set_webhook(&self, url: &str) -> Outcome<String> {
        let body = json!({ "default_url": url, "events": EVENTS });
        let call = with_json(self.request(Method::POST, &["v2", "webhooks"]), &body);
        let key = |answer: &Value| answer["secret_key"].as_str().map(str::to_owned);
        send(call).await.and(|answer| key(answer).ok_or("no key was given"))
    }

    fn request(&self, method: Method, path: &[&str]) -> RequestBuilder {
        let mut url = self.base.clone();
        // Only an address that cannot be a base has none, and such were refused.
        if let Ok(mut segments) = url.path_segments_mut() {
            segments.pop_if_empty().extend(path);
        }
        self.http.request(method, url)
    }
}

/// The events that say something about an order.
const EVENTS: [&str; 10] = [
    "order_created",
    "order_updated",
    "order_failed",
    "order_canceled",
    "order_put_hold",
    "order_remove_hold",
    "shipment_sent",
    "shipment_delivered",
    "shipment_returned",
    "shipment_canceled",
];

/// Adds a body. The features of `reqwest` that would do this and the next bring more along.
fn with_json(request: RequestBuilder, body: &Value) -> RequestBuilder {
    request.header(CONTENT_TYPE, "application/json").body(body.to_string())
}

fn with_query(request: RequestBuilder, pairs: &[(&str, String)]) -> RequestBuilder {
    let (client, request) = request.build_split();
    match request {
        Ok(mut request) => {
            request.url_mut().query_pairs_mut().extend_pairs(pairs);
            RequestBuilder::from_parts(client, request)
        }
        // It fails again, with the same reason, when it is sent.
        Err(_) => client.request(Method::GET, ""),
    }
}

impl<T> Outcome<T> {
    /// Makes something of an answer; one that makes no sense is a doubt.
    fn and<U>(self, read: impl FnOnce(&T) -> Result<U, &'static str>) -> Outcome<U> {
        match self {
            Outcome::Done(answer) => match read(&answer) {
                Ok(read) => Outcome::Done(read),
                Err(why) => Outcome::Unknown { why: why.to_owned() },
            },
            Outcome::Refused(refusal) => Outcome::Refused(refusal),
            Outcome::NotExecuted { after, why } => Outcome::NotExecuted { after, why },
            Outcome::Unknown { why } => Outcome::Unknown { why },
        }
    }
}

fn order(outcome: Outcome<Value>) -> Outcome<RemoteOrder> {
    outcome.and(|answer| RemoteOrder::read(answer).ok_or("the answer is no order"))
}

async fn send(call: RequestBuilder) -> Outcome<Value> {
    match call.send().await {
        Ok(response) => read(response).await,
        // Before there was a connection, nothing can have been sent.
        Err(error) if error.is_connect() => Outcome::NotExecuted { after: None, why: causes(&error) },
        Err(error) => Outcome::Unknown { why: causes(&error) },
    }
}

async fn read(mut response: Response) -> Outcome<Value> {
    let (status, after) = (response.status(), retry_after(response.headers()));
    if matches!(status.as_u16(), 419 | 429) {
        let why = format!("Printful asks for patience ({status})");
        return Outcome::NotExecuted { after, why };
    }
    let is_json = response.headers().get(CONTENT_TYPE).is_some_and(|kind| {
        let kind = kind.to_str().unwrap_or_default().split(';').next().unwrap_or_default().trim();
        kind == "application/json" || kind == "application/problem+json"
    });
    if !is_json {
        return Outcome::Unknown { why: format!("something that is not Printful answered {status}") };
    }
    let body = match body(&mut response).await {
        Ok(body) => body,
        Err(why) => return Outcome::Unknown { why },
    };
    match serde_json::from_slice::<Value>(&body) {
        Ok(answer) => understand(status, answer),
        Err(_) => Outcome::Unknown { why: format!("the answer ({status}) is broken") },
    }
}

async fn body(response: &mut Response) -> Result<BytesMut, String> {
    let mut body = BytesMut::new();
    while let Some(chunk) = response.chunk().await.map_err(|error| causes(&error))? {
        if body.len() + chunk.len() > ANSWER_BYTES_MAX {
            return Err(format!("the answer is longer than {ANSWER_BYTES_MAX} bytes"));
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}

/// Both shapes of answers: version 1 repeats the status as `code` and wraps a `result`, version 2 wraps `data` and tells
/// problems with a `status`. Where the body and the status disagree, nobody can say what happened.
fn understand(status: StatusCode, mut answer: Value) -> Outcome<Value> {
    let code = answer["code"].as_u64().or_else(|| answer["status"].as_u64());
    let agrees = code.is_none_or(|code| code == u64::from(status.as_u16()));
    if status.is_success() && agrees {
        let inside = if answer["data"].is_null() { answer["result"].take() } else { answer["data"].take() };
        return match inside {
            Value::Null => Outcome::Unknown { why: "the answer is empty".to_owned() },
            inside => Outcome::Done(inside),
        };
    }
    if status.is_client_error() && agrees && code.is_some() {
        return Outcome::Refused(refusal(status.as_u16(), &answer));
    }
    Outcome::Unknown { why: format!("Printful answered {status}, and {code:?} in the answer itself") }
}

fn refusal(status: u16, answer: &Value) -> Refusal {
    let code = ["api_error_code", "error_code"]
        .iter()
        .flat_map(|name| [&answer[*name], &answer["error"][*name], &answer["result"][*name]])
        .find_map(Value::as_str);
    let said = [&answer["error"]["message"], &answer["result"], &answer["detail"], &answer["title"]];
    let message = said.into_iter().find_map(Value::as_str).unwrap_or("no reason was given");
    let message: String = message.chars().filter(|c| !c.is_control()).take(MESSAGE_CHARS_MAX).collect();
    Refusal { status, code: code.map(str::to_owned), message }
}

/// How long to wait, if it is said in seconds. A date would need clocks that agree.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let seconds = headers.get(RETRY_AFTER)?.to_str().ok()?.trim().parse().ok()?;
    Some(Duration::from_secs(seconds).min(RETRY_AFTER_MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_believed_only_where_its_parts_agree() {
        let is_done = |status: u16, body: Value| {
            matches!(understand(StatusCode::from_u16(status).unwrap(), body), Outcome::Done(_))
        };
        assert!(is_done(200, json!({ "code": 200, "result": { "id": 1 } })));
        assert!(is_done(200, json!({ "data": { "id": 1 } })));
        assert!(!is_done(200, json!({ "code": 500, "result": "Internal Server Error" })));
        assert!(!is_done(200, json!({ "code": 200 })));
        assert!(!is_done(502, json!({ "code": 502, "result": { "id": 1 } })));
    }

    #[test]
    fn a_refusal_is_read_from_either_version() {
        fn check(status: u16, body: Value, expected: Option<(Option<&str>, &str)>) {
            let status = StatusCode::from_u16(status).unwrap();
            let found = match understand(status, body.clone()) {
                Outcome::Refused(refusal) => Some((refusal.code, refusal.message)),
                _ => None,
            };
            let expected = expected.map(|(code, message)| (code.map(str::to_owned), message.to_owned()));
            assert_eq!(found, expected, "{status} {body}");
        }
        let v1 = json!({ "code": 400, "result": "Taken", "error": { "reason": "BadRequest", "message": "Taken" },
            "api_error_code": "OR-13" });
        check(400, v1, Some((Some("OR-13"), "Taken")));
        let v2 = json!({ "type": "x", "status": 404, "title": "Not Found", "detail": "No such order." });
        check(404, v2, Some((None, "No such order.")));
        // What a proxy says about a path it does not know is no word about orders.
        check(404, json!({ "message": "no route" }), None);
        check(500, json!({ "code": 500, "result": "Internal Server Error" }), None);
        check(400, json!({ "code": 500, "result": "?" }), None);
    }

    #[test]
    fn a_taken_id_is_known_by_its_code_or_its_words() {
        let refusal = |status, code: Option<&str>, message: &str| Refusal {
            status,
            code: code.map(str::to_owned),
            message: message.to_owned(),
        };
        assert!(refusal(400, Some("OR-13"), "x").is_id_taken());
        assert!(refusal(400, None, "Order with such External ID already exists").is_id_taken());
        assert!(refusal(409, None, "external_id is in use").is_id_taken());
        assert!(!refusal(400, Some("OR-4"), "Invalid shipping method").is_id_taken());
        assert!(!refusal(404, None, "external_id").is_id_taken());
    }
}
