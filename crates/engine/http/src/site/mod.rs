//! The site: what its routes share, what surrounds each of them, and how it is served.

pub mod health;
pub mod openapi;
pub(crate) mod routes;
pub mod watcher;

use crate::callers::caller;
use crate::callers::caller::Keys;
use crate::callers::session::Signer;
use crate::jobs::checks;
use crate::jobs::download;
use crate::jobs::kind::Kinds;
use crate::jobs::lists::Lists;
use crate::jobs::live::{self, Hub};
use crate::jobs::upload;
use crate::server::connections::{self, Bounds, Peer};
use crate::server::form;
use crate::server::limits::{Limits, WebLimits};
use crate::server::problem::Problem;
use crate::server::requests;
use crate::site::routes::Routes;
use crate::site::watcher::Watcher;
use crate::{jobs, pages};
use axum::Router;
use axum::extract::{DefaultBodyLimit, Extension, Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use futures_util::FutureExt as _;
use ode_job::ErrorCode;
use ode_store::disk::{Watermark, WatermarkConfig};
use ode_store::{Blobs, Error, Store};
use std::net::IpAddr;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::watch;

/// Whose twins of a document are looked for, so that it need not be converted again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dedupe {
    /// Those of the same owner.
    Owner,
    /// Those of anybody, where it is fine that one sees from the speed of it that another had the same document.
    Everyone,
}

/// How the site behaves.
#[derive(Debug, Clone)]
pub struct WebSettings {
    /// The largest file that is taken.
    pub upload_bytes_max: u64,
    /// The mapping where none is named. A pipeline may bring it ([`Routes::type_default`]).
    pub mapping_default: Option<String>,
    /// When the disk is too full for uploads.
    pub watermark: WatermarkConfig,
    /// Whose twins of a document are looked for.
    pub dedupe: Dedupe,
    /// How often one visitor may ask.
    pub limits: WebLimits,
    /// Redis, to count together with other processes; each counts by itself without.
    pub redis_url: Option<String>,
    /// Where people reach it, such as `https://ode.example`, where that is not the address it listens on.
    pub public_url: Option<String>,
    /// Whether a proxy stands in front, whose word about addresses and encryption is taken.
    pub is_behind_proxy: bool,
    /// How long a list that was read is good for.
    pub lists_kept_for: Duration,
    /// How long a link to a file works.
    pub link_ttl: Duration,
    /// Connections at a time, streams included.
    pub connections: usize,
    /// How long requests that are under way get to end.
    pub grace: Duration,
}

impl Default for WebSettings {
    /// 50 MB, ten uploads and a thousand requests a minute, lists for two seconds, links for ten minutes.
    fn default() -> Self {
        WebSettings {
            upload_bytes_max: 50_000_000,
            mapping_default: None,
            watermark: WatermarkConfig::default(),
            dedupe: Dedupe::Owner,
            limits: WebLimits::default(),
            redis_url: None,
            public_url: None,
            is_behind_proxy: false,
            lists_kept_for: Duration::from_secs(2),
            link_ttl: Duration::from_secs(600),
            connections: 8192,
            grace: Duration::from_secs(30),
        }
    }
}

/// Reads an origin as browsers send it: scheme, host, perhaps a port, and nothing after them.
pub fn origin(text: &str) -> Result<String, String> {
    let url = text.trim_end_matches('/');
    let authority = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://"));
    match authority {
        Some(authority) if !authority.is_empty() && !authority.contains(['/', '?', '#', '@', ' ']) => {
            Ok(url.to_lowercase())
        }
        _ => Err("write it like https://ode.example, with nothing after the host".into()),
    }
}

/// Time for the head of a request. Also how long a connection may stay silent between two.
const HEADER_READ: Duration = Duration::from_secs(30);
/// Enough for an answer that is ready to be sent.
const GRACE_MIN: Duration = Duration::from_millis(100);

/// What the routes share.
pub struct App {
    pub store: Store,
    pub blobs: Blobs,
    pub settings: WebSettings,
    pub signer: Signer,
    pub limits: Limits,
    pub lists: Lists,
    pub hub: Hub,
    pub keys: Keys,
    pub disk: Watermark,
    pub watcher: Arc<Watcher>,
    pub kinds: Kinds,
    pub stopping: watch::Receiver<bool>,
}

/// A site that can be served.
pub struct Site {
    app: Arc<App>,
    router: Router,
    stop: watch::Sender<bool>,
}

impl Site {
    /// Opens a site on this store and these files.
    pub async fn open(
        store: Store,
        blobs: Blobs,
        mut settings: WebSettings,
        added: Vec<Routes>,
    ) -> Result<Self, Error> {
        let signer = Signer::new(store.shared_secret("web").await?);
        let limits = Limits::open(settings.limits, settings.redis_url.as_deref())?;
        let (stop, stopping) = watch::channel(false);
        let lists = Lists::new(settings.lists_kept_for);
        let (hub, keys) = (Hub::default(), Keys::default());
        let disk = Watermark::new(blobs.root(), settings.watermark);
        let redis_url = settings.redis_url.clone();
        let watcher = Arc::new(Watcher::new(store.clone(), blobs.clone(), disk.clone(), redis_url));
        if let Some(name) = added.iter().find_map(|routes| routes.type_default.clone()) {
            settings.mapping_default = Some(name);
        }
        let kinds = Kinds::new(added.iter().filter_map(|routes| routes.kind.clone()));
        let app =
            App { store, blobs, settings, signer, limits, lists, hub, keys, disk, watcher, kinds, stopping };
        let app = Arc::new(app);
        let router = router(app.clone(), added);
        Ok(Site { app, router, stop })
    }

    /// What looks after this site, to be asked by operators too.
    pub fn watcher(&self) -> Arc<Watcher> {
        self.app.watcher.clone()
    }

    /// Serves until `stop` is done, then lets requests that are under way end.
    pub async fn serve(self, listener: TcpListener, stop: impl Future<Output = ()> + Send + 'static) {
        let Site { app, router, stop: stopping } = self;
        let bounds = Bounds {
            connections: app.settings.connections,
            header_read: HEADER_READ,
            grace: app.settings.grace.max(GRACE_MIN),
        };
        let feed = tokio::spawn(live::follow(app.clone(), app.stopping.clone()));
        let stop = async {
            stop.await;
            stopping.send_replace(true);
        };
        connections::serve(listener, router, bounds, stop).await;
        feed.abort();
    }
}

impl App {
    /// Whether people reach this request's address by TLS.
    pub fn is_tls(&self, headers: &HeaderMap) -> bool {
        let is_public = self.settings.public_url.as_deref().is_some_and(|url| url.starts_with("https:"));
        let is_told = || headers.get("x-forwarded-proto").is_some_and(|scheme| scheme.as_bytes() == b"https");
        is_public || self.settings.is_behind_proxy && is_told()
    }

    /// Where a request comes from: what the proxy says last, if there is one, else the other end of the connection.
    pub fn address(&self, headers: &HeaderMap, peer: Option<Peer>) -> Option<IpAddr> {
        let told = || {
            let line = headers.get_all("x-forwarded-for").iter().next_back()?.to_str().ok()?;
            line.rsplit(',').next()?.trim().parse().ok()
        };
        let told = if self.settings.is_behind_proxy { told() } else { None };
        told.or(peer.map(|Peer(address)| address))
    }

    /// Whether a page from there is one of ours.
    pub fn is_our_origin(&self, origin: &str, host: Option<&str>) -> bool {
        let is_public = self.settings.public_url.as_deref() == Some(origin);
        let is_host = || origin.split_once("://").is_some_and(|(_, authority)| Some(authority) == host);
        is_public || is_host()
    }

    /// Refuses uploads while there is no room for them.
    pub fn check_disk(&self) -> Result<(), Problem> {
        if self.disk.allows_uploads() {
            return Ok(());
        }
        Err(Problem::from(ErrorCode::DiskFull).after(DISK_LOOK))
    }
}

/// When somebody who found the disk full may try again.
const DISK_LOOK: Duration = Duration::from_secs(60);

fn router(app: Arc<App>, added: Vec<Routes>) -> Router {
    let mut routes = Routes::default();
    for Routes { kind: _, type_default: _, known, keyed, open, api } in added {
        routes.known = routes.known.merge(known);
        routes.keyed = routes.keyed.merge(keyed);
        routes.open = routes.open.merge(open);
        routes.api.merge(api);
    }
    let described = Arc::new(openapi::Described::new(routes.api));
    let known = Router::new()
        .route("/api/upload", post(upload::upload))
        .route("/api/jobs", get(jobs::routes::list))
        .route("/api/jobs/{id}", get(jobs::routes::detail).delete(jobs::routes::delete))
        .route("/api/jobs/{id}/events", get(jobs::routes::events))
        .route("/api/jobs/{id}/checks", get(checks::checks))
        .route("/api/jobs/{id}/download", get(download::download))
        .route("/api/jobs/{id}/link", post(download::link))
        .route("/api/jobs/{id}/retry", post(jobs::routes::retry))
        .route("/api/jobs/{id}/cancel", post(jobs::routes::cancel))
        .route("/api/jobs/{id}/stop", post(jobs::routes::stop))
        .route("/api/stream", get(live::stream))
        .merge(pages::routes())
        .merge(routes.known)
        // Files have a limit of their own, which is kept while they come.
        .layer(DefaultBodyLimit::disable())
        .route_layer(middleware::from_fn_with_state(app.clone(), caller::know));
    let mut keyed = routes.keyed.layer(DefaultBodyLimit::disable());
    if keyed.has_routes() {
        keyed = keyed.route_layer(middleware::from_fn_with_state(app.clone(), caller::know_key));
    }
    let open = Router::new()
        .route("/api/files/{id}", get(download::by_link))
        .route("/api/healthz", get(health::healthz))
        .route("/api/healthz/live", get(health::live))
        .route("/api/healthz/ready", get(health::ready))
        .route("/api/openapi.json", get(openapi::document))
        .route("/api/docs", get(openapi::page))
        .merge(pages::assets())
        .merge(routes.open)
        .layer(Extension(described));
    known
        .merge(keyed)
        .merge(open)
        .fallback(|| async { Problem::not_found() })
        .method_not_allowed_fallback(|| async { Problem::method_not_allowed() })
        .layer(middleware::from_fn_with_state(app.clone(), surround))
        .with_state(app)
}

/// What holds for every answer, whatever it is: a panic is an answer too, and browsers are told what not to do with it.
async fn surround(State(app): State<Arc<App>>, request: Request, next: Next) -> Response {
    let is_tls = app.is_tls(request.headers());
    let is_for_people = pages::is_for_people(request.uri().path(), request.headers());
    let asked = requests::Asked::of(&request);
    let run = async {
        // Routes take the parts of an address as texts.
        match form::decoded(request.uri().path()) {
            Some(_) => next.run(request).await,
            None => Problem::not_found().into_response(),
        }
    };
    let answered = AssertUnwindSafe(run).catch_unwind().await;
    let mut response = answered.unwrap_or_else(|_| {
        tracing::error!("a request made its route panic");
        Problem::our_fault().into_response()
    });
    if let Some(problem) = response.extensions_mut().remove::<Problem>().filter(|_| is_for_people) {
        response = pages::trouble(&problem, response);
    }
    let headers = response.headers_mut();
    for (name, value) in PROTECTIONS {
        headers.entry(name).or_insert(HeaderValue::from_static(value));
    }
    if is_tls {
        headers.insert(header::STRICT_TRANSPORT_SECURITY, HeaderValue::from_static("max-age=31536000"));
    }
    asked.answered(response.status());
    response
}

/// Headers of every answer, unless a route has set another.
const PROTECTIONS: [(HeaderName, &str); 6] = [
    (
        header::CONTENT_SECURITY_POLICY,
        "default-src 'self'; object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
    ),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::REFERRER_POLICY, "same-origin"),
    (header::CACHE_CONTROL, "private, no-store"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
];

#[cfg(test)]
pub mod tests {
    use super::*;
    use ode_store::{BlobsConfig, Config};
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpStream;

    pub async fn app(files: &std::path::Path, change: impl FnOnce(&mut WebSettings)) -> Arc<App> {
        ode_store::declare(&[
            &ode_xml::DECLARATION,
            &ode_html::DECLARATION,
            &ode_print::DECLARATION,
            &ode_script::DECLARATION,
        ])
        .unwrap();
        let store = Store::open(Config::new("sqlite::memory:")).await.unwrap();
        store.migrate_up().await.unwrap();
        let blobs = Blobs::open(&BlobsConfig::Local(files.to_owned())).unwrap();
        let mut settings = WebSettings::default();
        change(&mut settings);
        Site::open(store, blobs, settings, Vec::new()).await.unwrap().app
    }

    #[tokio::test]
    async fn a_panic_is_told_as_a_problem_and_takes_nothing_along() {
        let files = tempfile::tempdir().unwrap();
        let app = app(files.path(), |_| ()).await;
        let routes = Router::new()
            .route(
                "/boom",
                get(|| async {
                    if true {
                        panic!("boom")
                    }
                }),
            )
            .layer(middleware::from_fn_with_state(app, surround));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let bounds = Bounds { connections: 4, header_read: HEADER_READ, grace: GRACE_MIN };
        tokio::spawn(connections::serve(listener, routes, bounds, std::future::pending()));
        for _ in 0..2 {
            let mut stream = TcpStream::connect(address).await.unwrap();
            stream.write_all(b"GET /boom HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").await.unwrap();
            let mut answer = String::new();
            stream.read_to_string(&mut answer).await.unwrap();
            assert!(answer.starts_with("HTTP/1.1 500"), "{answer}");
            assert!(
                answer.contains("application/problem+json") && answer.contains("\"code\":\"UNKNOWN\""),
                "{answer}"
            );
            assert!(answer.contains("nosniff") && !answer.contains("boom"), "{answer}");
        }
    }

    #[tokio::test]
    async fn a_proxys_word_is_taken_only_where_there_is_one() {
        let files = tempfile::tempdir().unwrap();
        let mut headers = HeaderMap::new();
        headers.append("x-forwarded-for", HeaderValue::from_static("192.0.2.1, 192.0.2.2"));
        headers.append("x-forwarded-for", HeaderValue::from_static("192.0.2.3"));
        headers.append("x-forwarded-proto", HeaderValue::from_static("https"));
        let peer = Some(Peer("127.0.0.1".parse().unwrap()));
        let open = app(files.path(), |_| ()).await;
        assert_eq!((open.address(&headers, peer), open.is_tls(&headers)), ("127.0.0.1".parse().ok(), false));
        let behind = app(files.path(), |settings| settings.is_behind_proxy = true).await;
        assert_eq!(
            (behind.address(&headers, peer), behind.is_tls(&headers)),
            ("192.0.2.3".parse().ok(), true)
        );
    }
}
