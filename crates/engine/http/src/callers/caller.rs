//! Who asks: a program with an API key, a browser that signed in with one, or a browser with a session cookie, which it
//! gets here if it has none.
//!
//! A cookie is sent along by the browser whoever made it send the request, so what changes something must come from
//! our own pages: the browser says where a request is from. A key is only sent by who knows it.

use crate::App;
use crate::callers::session::Session;
use crate::callers::sign_in::SignIn;
use crate::server::connections::Peer;
use crate::server::problem::Problem;
use axum::extract::{Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, Method, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use jiff::Timestamp;
use ode_job::{ErrorCode, Owner};
use ode_store::{KeyText, Principal};
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use uuid::Uuid;

/// Who made a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    /// Whose jobs they see and make.
    pub owner: Owner,
    /// Under which name their requests are counted: their own, or the address of who brings no name.
    pub counted_as: String,
    /// The key that they showed, now or when they signed in, by its id.
    pub key_id: Option<String>,
}

impl Caller {
    fn with_key(owner: Owner, key_id: String) -> Self {
        Caller { owner, counted_as: format!("key:{}", owner.key()), key_id: Some(key_id) }
    }

    /// Whether what they showed still counts, for what lasts longer than a request. While the database is away nobody can say.
    pub async fn is_revoked(&self, app: &App) -> bool {
        match &self.key_id {
            Some(key_id) => matches!(app.store.speaks_for(key_id).await, Ok(None)),
            None => false,
        }
    }
}

/// Finds out who asks, and refuses what they may not ask.
pub async fn know(State(app): State<Arc<App>>, request: Request, next: Next) -> Response {
    let (mut parts, body) = request.into_parts();
    let (caller, cookie) = match find(&app, &parts).await {
        Ok(found) => found,
        Err(problem) => return problem.into_response(),
    };
    if let Err(problem) = app.limits.poll(&caller).await {
        return problem.into_response();
    }
    parts.extensions.insert(caller);
    let mut response = next.run(Request::from_parts(parts, body)).await;
    if let Some(cookie) = cookie {
        response.headers_mut().append(header::SET_COOKIE, cookie);
    }
    response
}

/// The same for routes that only a program with a key may use.
pub async fn know_key(State(app): State<Arc<App>>, mut request: Request, next: Next) -> Response {
    let key = bearer(request.headers()).and_then(|key| key.ok_or_else(no_key));
    let known = async {
        let key = key?;
        let owner = app.keys.find(&app, &key).await?;
        let caller = Caller::with_key(owner, key.id().to_owned());
        app.limits.poll(&caller).await?;
        Ok::<_, Problem>(caller)
    };
    match known.await {
        Ok(caller) => {
            request.extensions_mut().insert(caller);
            next.run(request).await
        }
        Err(problem) => problem.into_response(),
    }
}

fn no_key() -> Problem {
    let detail =
        "Send an API key as Authorization: Bearer ode_…. The operator makes one with `ode keys create`.";
    Problem::new(ErrorCode::Unauthorized, detail).titled("An API key is needed here")
}

async fn find(app: &App, request: &Parts) -> Result<(Caller, Option<HeaderValue>), Problem> {
    let (headers, now) = (&request.headers, Timestamp::now());
    let is_tls = app.is_tls(headers);
    let session =
        cookie(headers, cookie_name(is_tls)).and_then(|value| Session::read(value, &app.signer, now));
    let key = bearer(headers)?;
    if key.is_none() && !is_safe(&request.method) && !is_from_our_pages(app, headers) {
        return Err(ErrorCode::CrossSite.into());
    }
    let known = match key {
        Some(key) => Some(Caller::with_key(app.keys.find(app, &key).await?, key.id().to_owned())),
        None => signed_in(app, headers, now).await?,
    };
    if let Some(caller) = known {
        if let (Owner::User(user), Some(session)) = (caller.owner, &session) {
            adopt(app, session, user).await?;
        }
        return Ok((caller, None));
    }
    let peer = request.extensions.get::<Peer>().copied();
    match session {
        Some(session) => {
            let caller = Caller {
                owner: Owner::Session(session.id()),
                counted_as: format!("session:{}", session.id()),
                key_id: None,
            };
            let newer = session.renewed(now).map(|session| set_cookie(app, &session, is_tls));
            Ok((caller, newer))
        }
        None => {
            let session = Session::fresh(now).map_err(|error| {
                tracing::error!(%error, "the system has no random numbers");
                Problem::our_fault()
            })?;
            let counted_as = format!("address:{}", network(app.address(headers, peer)));
            let caller = Caller { owner: Owner::Session(session.id()), counted_as, key_id: None };
            Ok((caller, Some(set_cookie(app, &session, is_tls))))
        }
    }
}

/// Who a browser signed in as, if the key that it showed is still good.
async fn signed_in(app: &App, headers: &HeaderMap, now: Timestamp) -> Result<Option<Caller>, Problem> {
    let cookie = cookie(headers, sign_in_name(app.is_tls(headers)));
    let Some(sign_in) = cookie.and_then(|value| SignIn::read(value, &app.signer, now)) else {
        return Ok(None);
    };
    let owner = app.store.speaks_for(sign_in.key_id()).await?;
    Ok(owner.map(|owner| Caller::with_key(owner, sign_in.key_id().to_owned())))
}

async fn adopt(app: &App, session: &Session, user: Uuid) -> Result<(), Problem> {
    if !app.keys.is_adoption_due(session.id(), user) {
        return Ok(());
    }
    let adopted = app.store.adopt(session.id(), user).await?;
    if adopted > 0 {
        tracing::info!("a user took over {adopted} jobs of their earlier session");
        app.lists.forget(Owner::User(user));
    }
    Ok(())
}

/// Where browsers allow it, a name that no other site and no unencrypted page can set.
fn cookie_name(is_tls: bool) -> &'static str {
    if is_tls { "__Host-ode_session" } else { "ode_session" }
}

fn sign_in_name(is_tls: bool) -> &'static str {
    if is_tls { "__Host-ode_sign_in" } else { "ode_sign_in" }
}

fn set_cookie(app: &App, session: &Session, is_tls: bool) -> HeaderValue {
    made_cookie(cookie_name(is_tls), &session.cookie(&app.signer), Session::max_age_seconds(), is_tls)
}

/// The cookie of a browser that showed this key.
pub fn sign_in_cookie(app: &App, headers: &HeaderMap, key_id: &str) -> HeaderValue {
    let (is_tls, sign_in) = (app.is_tls(headers), SignIn::new(key_id, Timestamp::now()));
    made_cookie(sign_in_name(is_tls), &sign_in.cookie(&app.signer), SignIn::max_age_seconds(), is_tls)
}

/// Takes that cookie away.
pub fn sign_out_cookie(app: &App, headers: &HeaderMap) -> HeaderValue {
    let is_tls = app.is_tls(headers);
    made_cookie(sign_in_name(is_tls), "", 0, is_tls)
}

fn made_cookie(name: &str, value: &str, age_seconds: i64, is_tls: bool) -> HeaderValue {
    let secure = if is_tls { "; Secure" } else { "" };
    let cookie = format!("{name}={value}; Path=/; Max-Age={age_seconds}; HttpOnly; SameSite=Lax{secure}");
    HeaderValue::from_str(&cookie).expect("a cookie of letters and digits is a header")
}

fn cookie<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let lines = headers.get_all(header::COOKIE).into_iter().filter_map(|line| line.to_str().ok());
    lines.flat_map(|line| line.split(';')).find_map(|pair| pair.trim().strip_prefix(name)?.strip_prefix('='))
}

/// The key of a request that brings one. Anything else in its place is refused, not ignored: who sends a key does not
/// want to be taken for somebody without.
fn bearer(headers: &HeaderMap) -> Result<Option<KeyText>, Problem> {
    let Some(value) = headers.get(header::AUTHORIZATION) else { return Ok(None) };
    let refused = || Problem::from(ErrorCode::Unauthorized);
    let (scheme, key) = value.to_str().ok().and_then(|value| value.split_once(' ')).ok_or_else(refused)?;
    if !scheme.eq_ignore_ascii_case("bearer") {
        return Err(refused());
    }
    key.trim().parse().map(Some).map_err(|_| refused())
}

fn is_safe(method: &Method) -> bool {
    matches!(*method, Method::GET | Method::HEAD | Method::OPTIONS)
}

/// Whether the browser says that one of our own pages made it send this. Browsers say so with everything that changes
/// something; who says nothing is no browser, and nobody could have made it send a cookie.
fn is_from_our_pages(app: &App, headers: &HeaderMap) -> bool {
    let text = |name| headers.get(name).map(|value| value.to_str().unwrap_or("not text"));
    match (text(header::HeaderName::from_static("sec-fetch-site")), text(header::ORIGIN)) {
        (Some(site), _) if site != "same-origin" && site != "none" => false,
        (_, Some(origin)) => app.is_our_origin(origin, text(header::HOST)),
        (_, None) => true,
    }
}

/// Who has a whole network of version 6 counts once.
fn network(address: Option<IpAddr>) -> String {
    match address {
        Some(IpAddr::V6(address)) => match address.to_ipv4_mapped() {
            Some(mapped) => mapped.to_string(),
            None => {
                let [a, b, c, d, ..] = address.segments();
                format!("{a:x}:{b:x}:{c:x}:{d:x}::/64")
            }
        },
        Some(address) => address.to_string(),
        None => "unknown".to_owned(),
    }
}

/// Keys that were looked up a moment ago, so that a program that polls costs one look a second.
#[derive(Debug, Default)]
pub struct Keys {
    known: Mutex<HashMap<String, KnownKey>>,
    adopted: Mutex<HashMap<(Uuid, Uuid), Instant>>,
}

/// What the database said about a key.
#[derive(Debug)]
struct KnownKey {
    at: Instant,
    /// Shows that the same secret came with it.
    proof: String,
    owner: Owner,
}

/// A key that is revoked is refused by every process within this time.
pub const KEY_KNOWN_FOR: Duration = Duration::from_secs(1);
/// Keys used within a second.
const KEYS_MAX: usize = 10_000;

impl Keys {
    /// Whether it is a while since this session's jobs were given to this user.
    fn is_adoption_due(&self, session: Uuid, user: Uuid) -> bool {
        let now = Instant::now();
        let mut adopted = self.adopted.lock().unwrap_or_else(PoisonError::into_inner);
        if adopted.len() >= KEYS_MAX {
            adopted.clear();
        }
        let last = adopted.entry((session, user)).or_insert(now - KEY_KNOWN_FOR);
        let is_due = now - *last >= KEY_KNOWN_FOR;
        if is_due {
            *last = now;
        }
        is_due
    }

    async fn find(&self, app: &App, key: &KeyText) -> Result<Owner, Problem> {
        let now = Instant::now();
        let proof = app.signer.sign("key", key.secret());
        let known = |known: &KnownKey| now - known.at < KEY_KNOWN_FOR && known.proof == proof;
        if let Some(key) =
            self.known.lock().unwrap_or_else(PoisonError::into_inner).get(key.id()).filter(|key| known(key))
        {
            return Ok(key.owner);
        }
        let Principal { owner } =
            app.store.authenticate(key).await?.ok_or_else(|| Problem::from(ErrorCode::Unauthorized))?;
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= KEYS_MAX {
            known.clear();
        }
        known.insert(key.id().to_owned(), KnownKey { at: now, proof, owner });
        Ok(owner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cookie_is_found_among_others() {
        let mut headers = HeaderMap::new();
        headers.append(header::COOKIE, HeaderValue::from_static("a=1; ode_sessionx=2;ode_session=3"));
        headers.append(header::COOKIE, HeaderValue::from_static("b=4"));
        assert_eq!(cookie(&headers, "ode_session"), Some("3"));
        assert_eq!(cookie(&headers, "b"), Some("4"));
        assert_eq!(cookie(&headers, "c"), None);
    }

    #[test]
    fn a_network_of_version_six_counts_once() {
        let of = |text: &str| network(text.parse().ok());
        assert_eq!(of("2001:db8:1:2:3:4:5:6"), of("2001:db8:1:2::9"));
        assert_ne!(of("2001:db8:1:2::1"), of("2001:db8:1:3::1"));
        assert_eq!(of("::ffff:10.0.0.1"), of("10.0.0.1"));
    }
}
