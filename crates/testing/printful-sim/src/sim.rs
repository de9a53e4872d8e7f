//! The running simulator: what its parts share, how a call meets its fault, and the sockets.

use crate::Error;
use crate::answer::{self, Answer, CutOff};
use crate::book::{Book, Call, FileStatus};
use crate::faults::{Fault, FaultKind, Faults, On};
use crate::hooks::{self, Hook};
use crate::ledger::{Ledger, LedgerLine};
use crate::rate::Rates;
use crate::{files, routes};
use axum::Router;
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service as _, service_fn};
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinHandle, JoinSet};

/// What the real Printful guarantees, and what happens where it would not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Switches {
    /// An external id names one order of the store.
    pub unique: bool,
    /// A confirmed order cannot be confirmed, and charged for, again.
    pub confirm_once: bool,
}

impl Default for Switches {
    fn default() -> Self {
        Switches { unique: true, confirm_once: true }
    }
}

/// How it behaves.
#[derive(Debug, Clone)]
pub struct Options {
    /// Where the ledger is written, beside memory.
    pub ledger: Option<PathBuf>,
    /// What is guaranteed.
    pub switches: Switches,
    /// The token that callers must bring; any will do where there is none.
    pub token: Option<String>,
    /// Calls a minute for each token; 0 counts nothing.
    pub rate_per_minute: u32,
    /// Whether files are fetched from where the order says; without, they count as fetched.
    pub fetch_files: bool,
    /// How long before a file is fetched.
    pub file_delay: Duration,
    /// How long before the cost of an order is known.
    pub cost_delay: Duration,
    /// How long after confirmation an order is shipped, and after that delivered; never by itself where absent.
    pub ship_after: Option<Duration>,
    /// How long a call that is not answered is kept open.
    pub hang: Duration,
    /// How long a minute is to whoever waits to deliver an event again.
    pub hook_minute: Duration,
    /// What is to go wrong from the start.
    pub faults: Vec<Fault>,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            ledger: None,
            switches: Switches::default(),
            token: None,
            rate_per_minute: 120,
            fetch_files: true,
            file_delay: Duration::from_millis(200),
            cost_delay: Duration::ZERO,
            ship_after: None,
            hang: Duration::from_secs(120),
            hook_minute: Duration::from_secs(60),
            faults: Vec::new(),
        }
    }
}

/// What the parts share.
#[derive(Debug)]
pub(crate) struct Inner {
    pub(crate) options: Options,
    pub(crate) http: reqwest::Client,
    book: Mutex<Book>,
    faults: Mutex<Faults>,
    rates: Mutex<Rates>,
    hook: Mutex<Option<Hook>>,
}

impl Inner {
    pub(crate) fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn faults(&self) -> MutexGuard<'_, Faults> {
        self.faults.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn rates(&self) -> MutexGuard<'_, Rates> {
        self.rates.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn hook(&self) -> Option<Hook> {
        self.hook.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn set_hook(&self, hook: Option<Hook>) {
        *self.hook.lock().unwrap_or_else(PoisonError::into_inner) = hook;
    }

    /// Carries a call out, and starts what follows from it.
    pub(crate) fn apply(self: &Arc<Self>, call: &Call) -> Answer {
        let answer = self.book().apply(call, Instant::now());
        if let (Call::Confirm(key), Some(after)) = (call, self.options.ship_after)
            && answer.status == StatusCode::OK
        {
            let (sim, key) = (self.clone(), key.clone());
            tokio::spawn(async move {
                for what in ["ship", "deliver"] {
                    tokio::time::sleep(after).await;
                    sim.book().act(&key, what);
                    sim.follow_up();
                }
            });
        }
        self.follow_up();
        answer
    }

    /// Fetches the files and delivers the events that the last change asked for.
    pub(crate) fn follow_up(self: &Arc<Self>) {
        let (news, wanted) = {
            let mut book = self.book();
            (std::mem::take(&mut book.news), std::mem::take(&mut book.wanted))
        };
        for news in news {
            tokio::spawn(hooks::deliver(self.clone(), news));
        }
        for wanted in wanted {
            tokio::spawn(files::fetch(self.clone(), wanted));
        }
    }

    /// Answers a call, or does with it what the fault that waits for it says.
    pub(crate) async fn answer(self: &Arc<Self>, call: Call) -> Response {
        let external_id = self.book().external_id(&call);
        let fault = self.faults().strike(call.on(), external_id.as_deref());
        let Some(fault) = fault else { return self.apply(&call).into_response() };
        tracing::debug!("{} strikes {}", fault.kind, call.on());
        self.go_wrong(call, fault, external_id.unwrap_or_default()).await
    }

    async fn go_wrong(self: &Arc<Self>, call: Call, fault: Fault, external_id: String) -> Response {
        const HTML: &str = "<html><body><h1>502 Bad Gateway</h1></body></html>";
        let html = || answer::plain(StatusCode::BAD_GATEWAY, "text/html", HTML.into());
        let broken = || Answer::refused(500, None, "Internal Server Error").into_response();
        match fault.kind {
            FaultKind::Lost => self.keep_waiting().await,
            FaultKind::Hang => {
                self.apply(&call);
                self.keep_waiting().await
            }
            FaultKind::ResetBefore => answer::nothing(),
            FaultKind::ResetAfter => {
                self.apply(&call);
                answer::nothing()
            }
            FaultKind::Truncated => {
                let whole = self.apply(&call);
                answer::half(whole.status, &whole.text())
            }
            FaultKind::Garbage => {
                self.apply(&call);
                answer::plain(StatusCode::OK, "application/json", "{\"code\":200,\"result\":[[[".into())
            }
            FaultKind::Html502 => {
                self.apply(&call);
                html()
            }
            FaultKind::Html502Before => html(),
            FaultKind::WrongType => {
                let whole = self.apply(&call);
                answer::plain(whole.status, "text/html", whole.text())
            }
            FaultKind::ErrorIn200 => {
                self.apply(&call);
                let refusal = Answer::refused(500, None, "Internal Server Error");
                Answer { status: StatusCode::OK, ..refusal }.into_response()
            }
            FaultKind::TooMany => too_many(429).after(fault.wait()).into_response(),
            FaultKind::TooManyBare => too_many(429).into_response(),
            FaultKind::Expired419 => too_many(419).into_response(),
            FaultKind::Error500Before => broken(),
            FaultKind::Error500After => {
                self.apply(&call);
                broken()
            }
            FaultKind::Refused => Answer::refused(400, None, "This call is refused.").into_response(),
            FaultKind::Unauthorized => {
                Answer::refused(401, None, "The access token provided is invalid.").into_response()
            }
            FaultKind::Forbidden => {
                Answer::refused(403, None, "This access token has no such scope.").into_response()
            }
            FaultKind::Late => {
                let sim = self.clone();
                tokio::spawn(async move {
                    tokio::time::sleep(fault.wait()).await;
                    sim.apply(&call);
                });
                answer::nothing()
            }
            FaultKind::Twice => {
                let first = self.apply(&call);
                self.apply(&call);
                first.into_response()
            }
            other => self.turn_out_badly(&call, other, fault.wait(), &external_id),
        }
    }

    /// The faults that lie in the order, not in the call.
    fn turn_out_badly(
        self: &Arc<Self>,
        call: &Call,
        kind: FaultKind,
        wait: Duration,
        external_id: &str,
    ) -> Response {
        if kind == FaultKind::Foreign {
            self.book().add_foreign(external_id, Instant::now());
        }
        // One that is confirmed already cannot fall back by being confirmed again: it was charged for.
        if let (Call::Confirm(key), FaultKind::BackToDraft | FaultKind::Fails) = (call, kind)
            && self.book().is_open(key)
        {
            // As if it had been confirmed: it was taken, nothing was charged, and now it is where it is.
            self.book().act(key, if kind == FaultKind::Fails { "fail" } else { "draft" });
            self.follow_up();
            return self.apply(&Call::Read(key.clone())).into_response();
        }
        let made = self.apply(call);
        let key = crate::book::Key::External(external_id.to_owned());
        match kind {
            FaultKind::Stale => self.book().hide(external_id, Instant::now() + wait),
            FaultKind::Cancelled => drop(self.book().act(&key, "cancel")),
            FaultKind::Dear => self.book().make_dear(external_id),
            FaultKind::Waiting | FaultKind::FileFailed => self.delay_file(external_id, kind, wait),
            _ => {}
        }
        self.follow_up();
        made.into_response()
    }

    /// Whatever the fetch says, the file waits this long, and has failed after it if that is the fault.
    fn delay_file(self: &Arc<Self>, external_id: &str, kind: FaultKind, wait: Duration) {
        let Some(order) = self.book().id_of(external_id) else { return };
        let (sim, until) = (self.clone(), Instant::now() + wait);
        let end = if kind == FaultKind::FileFailed { FileStatus::Failed } else { FileStatus::Fetched };
        tokio::spawn(async move {
            while Instant::now() < until {
                sim.book().file_is(order, FileStatus::Waiting);
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
            // Once more than the fetch, which may still be under way.
            for _ in 0..20 {
                sim.book().file_is(order, end);
                tokio::time::sleep(sim.options.file_delay / 10).await;
            }
        });
    }

    async fn keep_waiting(&self) -> Response {
        tokio::time::sleep(self.options.hang).await;
        answer::nothing()
    }
}

pub(crate) fn too_many(status: u16) -> Answer {
    Answer::refused(status, None, "Too many requests. Please try again later.")
}

/// A simulator that listens. Dropped, it stops.
#[derive(Debug)]
pub struct Simulator {
    inner: Arc<Inner>,
    address: SocketAddr,
    task: JoinHandle<()>,
}

impl Simulator {
    /// Starts one on this listener.
    pub fn start(listener: TcpListener, options: Options) -> Result<Self, Error> {
        let unavailable = |error: &dyn std::fmt::Display| Error::Unavailable(error.to_string());
        let address = listener.local_addr().map_err(|error| unavailable(&error))?;
        let http = reqwest::Client::builder().no_proxy().build().map_err(|error| unavailable(&error))?;
        let ledger = Ledger::open(options.ledger.as_deref())?;
        // Two simulators over one database must not use a number twice: each begins somewhere else.
        let mut random = [0; 4];
        getrandom::fill(&mut random).map_err(|error| unavailable(&error))?;
        let first_id = 1_000_000 + i64::from(u32::from_le_bytes(random)) * 1_000_000;
        let mut faults = Faults::default();
        options.faults.iter().cloned().for_each(|fault| faults.add(fault));
        let inner = Arc::new(Inner {
            http,
            book: Mutex::new(Book::new(ledger, options.switches, options.cost_delay, first_id)),
            faults: Mutex::new(faults),
            rates: Mutex::default(),
            hook: Mutex::default(),
            options,
        });
        let task = tokio::spawn(serve(listener, routes::router(inner.clone())));
        Ok(Simulator { inner, address, task })
    }

    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Lets something go wrong.
    pub fn add_fault(&self, fault: Fault) {
        self.inner.faults().add(fault);
    }

    /// The calls that faults of this order still wait for.
    #[must_use]
    pub fn waiting(&self, external_id: &str) -> Vec<On> {
        let is_its_own = |fault: &&Fault| fault.external_id.as_deref() == Some(external_id);
        self.inner.faults().waiting().iter().filter(is_its_own).map(|fault| fault.on).collect()
    }

    /// How often each fault has struck.
    #[must_use]
    pub fn struck(&self) -> BTreeMap<FaultKind, u64> {
        self.inner.faults().struck().clone()
    }

    /// Everything it was made to do.
    #[must_use]
    pub fn ledger(&self) -> Vec<LedgerLine> {
        self.inner.book().ledger.lines().to_vec()
    }

    /// Changes what is guaranteed.
    pub fn switch(&self, switches: Switches) {
        self.inner.book().switches = switches;
    }

    /// Waits for ever, or until the listener fails.
    pub async fn run(mut self) {
        // It ends only when it is aborted, which nobody can do meanwhile.
        let _ = (&mut self.task).await;
    }
}

impl Drop for Simulator {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn serve(listener: TcpListener, router: Router) {
    const PAUSE: Duration = Duration::from_millis(100);
    let mut open = JoinSet::new();
    loop {
        match listener.accept().await {
            Ok((stream, _)) => drop(open.spawn(converse(stream, router.clone()))),
            Err(error) => {
                tracing::warn!(%error, "a connection could not be taken");
                tokio::time::sleep(PAUSE).await;
            }
        }
        while open.try_join_next().is_some() {}
    }
}

/// Answers on one connection, until it is to be cut off.
async fn converse(stream: TcpStream, router: Router) {
    // Answers are written whole, so that waiting for more to send only costs time. It works without.
    let _ = stream.set_nodelay(true);
    let router = TowerToHyperService::new(router);
    let service = service_fn(move |request: hyper::Request<Incoming>| {
        let answered = router.call(request);
        async move {
            let response = match answered.await {
                Ok(response) => response,
                Err(never) => match never {},
            };
            match response.extensions().get::<CutOff>() {
                Some(_) => Err(std::io::Error::other("cut off on purpose")),
                None => Ok(response),
            }
        }
    });
    if let Err(error) = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await {
        tracing::debug!(%error, "a connection ended early");
    }
}
