//! `GET /api/stream`: what happens to your jobs, as it happens.
//!
//! One reader in each process follows the journal for all who listen, and only while somebody does. What it finds is
//! turned into one line for each owner whom it concerns; each owner's listeners share a short queue, and who is too
//! slow for it is told to read the list again. The same reader tells the lists what to forget.

use crate::App;
use crate::caller::Caller;
use crate::jobs::{owners, views};
use crate::problem::{Problem, ProblemDocument};
use crate::view::JobView;
use axum::body::Body;
use axum::extract::{Extension, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures_util::stream;
use jiff::Timestamp;
use ode_job::{JobId, Owner, State as JobState};
use ode_store::{Store, Told};
use serde::Serialize;
use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};
use std::convert::Infallible;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::{Notify, broadcast, watch};
use utoipa::ToSchema;

/// Lines that wait for a listener.
const WAITING_MAX: usize = 32;
/// Streams of one owner: tabs and windows.
const STREAMS_MAX: usize = 32;
/// Lines kept for listeners who come back, of all owners.
const RECENT_MAX: usize = 4096;
/// Entries read at a time.
const ENTRIES_MAX: usize = 500;
/// Jobs looked up for one look. More at once is a bulk load, of which nobody watches each line.
const JOBS_MAX: usize = 2000;
/// How often the journal is looked at while somebody listens; sooner when this process wrote to it.
const LOOK_EVERY: Duration = Duration::from_millis(300);
/// The same while lists are kept and nobody listens: what is missed shows two seconds later at most.
const LOOK_SELDOM: Duration = Duration::from_secs(1);
/// Looks are no closer together than this.
const LOOK_PAUSE: Duration = Duration::from_millis(20);
/// How long the reader goes on after the last list was asked for.
const ATTENTION: Duration = Duration::from_secs(4);
/// Entries with lower numbers may be committed this much after ones with higher: see the journal's feed.
const LAG: jiff::SignedDuration = jiff::SignedDuration::from_secs(10);
/// So often something is sent, so that proxies keep the connection and we notice who is gone.
const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// Milliseconds after which a browser that lost us tries again.
const RECONNECT_MILLIS: u32 = 2000;

/// Something that happened to a job.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct JobEvent {
    /// Its place in the history of the whole installation, which is also the id of the line.
    seq: i64,
    /// What happened.
    #[schema(example = "complete")]
    event: &'static str,
    /// Before; absent at birth.
    #[schema(value_type = Option<String>)]
    from: Option<JobState>,
    /// After.
    #[schema(value_type = String)]
    to: JobState,
    /// When.
    #[schema(value_type = String, format = "date-time")]
    at: Timestamp,
    /// The job as it is now.
    job: JobView,
}

/// What was sent, to whom.
#[derive(Debug, Clone)]
struct Line {
    seq: i64,
    owner: Owner,
    text: Bytes,
}

/// Everybody who listens.
#[derive(Debug)]
pub(crate) struct Hub {
    listeners: Mutex<HashMap<Owner, broadcast::Sender<Bytes>>>,
    recent: Mutex<VecDeque<Line>>,
    attended_until: Mutex<Instant>,
    awake: Notify,
}

impl Default for Hub {
    fn default() -> Self {
        Hub {
            listeners: Mutex::default(),
            recent: Mutex::default(),
            attended_until: Mutex::new(Instant::now()),
            awake: Notify::new(),
        }
    }
}

impl Hub {
    /// Somebody reads lists: they want to know what changes.
    pub(crate) fn attend(&self) {
        let mut until = self.attended_until.lock().unwrap_or_else(PoisonError::into_inner);
        let was_over = *until < Instant::now();
        *until = Instant::now() + ATTENTION;
        if was_over {
            self.awake.notify_one();
        }
    }

    fn listen(&self, owner: Owner) -> Result<broadcast::Receiver<Bytes>, Problem> {
        let mut listeners = self.listeners.lock().unwrap_or_else(PoisonError::into_inner);
        let was_empty = listeners.is_empty();
        let sender = listeners.entry(owner).or_insert_with(|| broadcast::channel(WAITING_MAX).0);
        if sender.receiver_count() >= STREAMS_MAX {
            return Err(Problem::new(
                ode_job::ErrorCode::RateLimited,
                format!("{STREAMS_MAX} streams are open already. Close some of them."),
            )
            .after(KEEP_ALIVE));
        }
        let receiver = sender.subscribe();
        if was_empty {
            self.awake.notify_one();
        }
        Ok(receiver)
    }

    /// Sends a line to one owner, and keeps it for those who come back.
    fn send(&self, line: Line) {
        let mut recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        let mut listeners = self.listeners.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(sender) = listeners.get(&line.owner)
            && sender.send(line.text.clone()).is_err()
        {
            listeners.remove(&line.owner);
        }
        drop(listeners);
        if recent.len() == RECENT_MAX {
            recent.pop_front();
        }
        recent.push_back(line);
    }

    /// Tells everyone, or those of one owner, something that is no part of the history.
    pub(crate) fn tell(&self, owner: Option<Owner>, text: &'static str) {
        let listeners = self.listeners.lock().unwrap_or_else(PoisonError::into_inner);
        for (_, sender) in listeners.iter().filter(|(key, _)| owner.is_none_or(|owner| owner == **key)) {
            // Without listeners there is nobody to tell.
            let _ = sender.send(Bytes::from_static(text.as_bytes()));
        }
    }

    /// What was sent to this owner after a line, if that line is still known.
    fn recent_after(&self, owner: Owner, seq: i64) -> Option<Vec<Bytes>> {
        let recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        let at = recent.iter().rposition(|line| line.seq == seq && line.owner == owner)?;
        Some(
            recent
                .iter()
                .skip(at + 1)
                .filter(|line| line.owner == owner)
                .map(|line| line.text.clone())
                .collect(),
        )
    }

    /// How soon to look again, if at all.
    fn pace(&self) -> Option<Duration> {
        let mut listeners = self.listeners.lock().unwrap_or_else(PoisonError::into_inner);
        listeners.retain(|_, sender| sender.receiver_count() > 0);
        if !listeners.is_empty() {
            return Some(LOOK_EVERY);
        }
        let until = *self.attended_until.lock().unwrap_or_else(PoisonError::into_inner);
        (Instant::now() < until).then_some(LOOK_SELDOM)
    }

    fn has_listeners(&self, owner: Owner) -> bool {
        self.listeners.lock().unwrap_or_else(PoisonError::into_inner).contains_key(&owner)
    }
}

/// Says to read the list again: more happened than could be told.
const RESYNC: &str = "event: resync\ndata: {}\n\n";

/// Follows the journal for as long as somebody wants to know, until the process stops.
pub(crate) async fn follow(app: Arc<App>, mut stopping: watch::Receiver<bool>) {
    let mut nudges = app.store.nudges();
    let mut reader: Option<Reader> = None;
    while !*stopping.borrow_and_update() {
        let Some(pace) = app.hub.pace() else {
            reader = None;
            tokio::select! {
                () = app.hub.awake.notified() => {}
                _ = stopping.changed() => {}
            }
            continue;
        };
        let looked = match &mut reader {
            Some(reader) => reader.look(&app).await,
            None => Reader::start(&app.store).await.map(|started| {
                reader = Some(started);
                // What happened while nobody listened is in the lists, but not in those that are kept.
                app.lists.forget_all();
            }),
        };
        if let Err(error) = looked {
            tracing::warn!(%error, "the journal cannot be read; listeners hear of changes once it can");
        }
        tokio::time::sleep(LOOK_PAUSE).await;
        tokio::select! {
            _ = nudges.changed() => {}
            () = tokio::time::sleep(pace) => {}
            _ = stopping.changed() => {}
        }
    }
}

/// Where the process is in the journal.
struct Reader {
    /// Everything up to here has been seen.
    settled: i64,
    /// What has been seen after it.
    seen: BTreeSet<i64>,
    /// When the journal was last read to its end.
    read_at: Timestamp,
}

impl Reader {
    /// Begins with what comes next.
    async fn start(store: &Store) -> Result<Self, ode_store::Error> {
        let now = Timestamp::now();
        let settled = store.seq_at(now - LAG);
        let seen = store.told_numbers(settled, RECENT_MAX).await?.into_iter().collect();
        Ok(Reader { settled, seen, read_at: now })
    }

    /// Reads what is new and sends it on.
    async fn look(&mut self, app: &App) -> Result<(), ode_store::Error> {
        let now = Timestamp::now();
        let numbers = app.store.told_numbers(self.settled, RECENT_MAX).await?;
        if numbers.len() == RECENT_MAX {
            // So much in a few seconds is a bulk load. Nobody is told each line of it.
            *self = Reader::start(&app.store).await?;
            app.lists.forget_all();
            app.hub.tell(None, RESYNC);
            return Ok(());
        }
        let fresh: Vec<i64> = numbers.into_iter().filter(|seq| !self.seen.contains(seq)).collect();
        for part in fresh.chunks(ENTRIES_MAX) {
            let told = app.store.told(part).await?;
            spread(app, &told).await?;
            self.seen.extend(part);
        }
        // An entry may be older than it looks if the database was away meanwhile, and so were we.
        let settled = app.store.seq_at(self.read_at.min(now) - LAG);
        if settled > self.settled {
            self.settled = settled;
            self.seen = self.seen.split_off(&settled);
        }
        self.read_at = now;
        Ok(())
    }
}

/// Tells owners what happened to their jobs, and lists what to forget.
async fn spread(app: &App, told: &[Told]) -> Result<(), ode_store::Error> {
    let ids: HashSet<JobId> = told.iter().flat_map(|entry| &entry.jobs).copied().collect();
    if ids.len() > JOBS_MAX {
        app.lists.forget_all();
        app.hub.tell(None, RESYNC);
        return Ok(());
    }
    let jobs = app.store.jobs_by_id(ids.into_iter()).await?;
    for owner in jobs.iter().flat_map(|job| owners(&job.record)) {
        app.lists.forget(owner);
    }
    let heard: Vec<_> = jobs
        .into_iter()
        .filter(|job| owners(&job.record).any(|owner| app.hub.has_listeners(owner)))
        .collect();
    if heard.is_empty() {
        return Ok(());
    }
    let Ok(views) = views(app, &heard).await else {
        app.hub.tell(None, RESYNC);
        return Ok(());
    };
    let shown: HashMap<JobId, _> =
        heard.iter().zip(views).map(|(job, view)| (job.record.id, (job, view))).collect();
    for entry in told {
        for (job, view) in entry.jobs.iter().filter_map(|id| shown.get(id)) {
            let Some(text) = line(entry, view) else { continue };
            for owner in owners(&job.record) {
                app.hub.send(Line { seq: entry.seq, owner, text: text.clone() });
            }
        }
    }
    Ok(())
}

fn line(entry: &Told, job: &JobView) -> Option<Bytes> {
    let Told { seq, event, from_state, to_state, at, .. } = entry;
    let event = JobEvent {
        seq: *seq,
        event: event.as_str(),
        from: *from_state,
        to: *to_state,
        at: *at,
        job: job.clone(),
    };
    let data = serde_json::to_string(&event).ok()?;
    Some(format!("id: {seq}\nevent: job\ndata: {data}\n\n").into())
}

/// What happens to your jobs, as server-sent events.
///
/// `event: job` carries a `JobEvent`; its `id` is where a browser goes on after a break, by itself. `event: ready` comes
/// first: what happens from then on is told, so read the list after it. `event: resync` says that more happened than
/// could be told: read the list again. After a break across a restart of the server a line may come twice.
#[utoipa::path(get, path = "/api/stream", tag = "jobs",
    params(("Last-Event-ID" = Option<String>, Header, description = "The id of the last line that arrived")),
    responses(
        (status = 200, body = JobEvent, content_type = "text/event-stream"),
        (status = 401, body = ProblemDocument, content_type = "application/problem+json"),
        (status = 429, body = ProblemDocument, content_type = "application/problem+json")))]
pub(crate) async fn stream(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let receiver = app.hub.listen(caller.owner)?;
    let last = headers.get("last-event-id").and_then(|id| id.to_str().ok()?.trim().parse::<i64>().ok());
    let mut first = vec![Bytes::from(format!("retry: {RECONNECT_MILLIS}\n"))];
    let now = app.store.seq_at(Timestamp::now());
    first.push(Bytes::from(format!("id: {}\nevent: ready\ndata: {{}}\n\n", last.unwrap_or(now))));
    if let Some(last) = last {
        first.extend(missed(&app, caller.owner, last).await?);
    }
    let body = Body::from_stream(lines(first, receiver, app.stopping.clone()));
    let head = [
        (header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream")),
        (header::CACHE_CONTROL, HeaderValue::from_static("no-store")),
        (HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no")),
    ];
    Ok((head, body).into_response())
}

/// What somebody missed since a line: from memory where it is known there, else from the journal.
async fn missed(app: &App, owner: Owner, last: i64) -> Result<Vec<Bytes>, Problem> {
    if let Some(lines) = app.hub.recent_after(owner, last) {
        return Ok(lines);
    }
    // What was committed late may have a lower number than the line that arrived.
    let from =
        last.saturating_sub(app.store.seq_at(Timestamp::now()) - app.store.seq_at(Timestamp::now() - LAG));
    let numbers = app.store.told_numbers(from, RECENT_MAX).await?;
    if numbers.len() == RECENT_MAX {
        return Ok(vec![Bytes::from_static(RESYNC.as_bytes())]);
    }
    let mut lines = Vec::new();
    for part in numbers.chunks(ENTRIES_MAX) {
        let told = app.store.told(part).await?;
        let ids: HashSet<JobId> = told.iter().flat_map(|entry| &entry.jobs).copied().collect();
        let mut jobs = app.store.jobs_by_id(ids.into_iter()).await?;
        jobs.retain(|job| owners(&job.record).any(|found| found == owner));
        let shown: HashMap<JobId, JobView> =
            jobs.iter().map(|job| job.record.id).zip(views(app, &jobs).await?).collect();
        let of_entry = |entry| {
            let jobs = move |entry: &Told| entry.jobs.clone();
            (entry, jobs(entry))
        };
        for (entry, jobs) in told.iter().map(of_entry) {
            lines.extend(jobs.iter().filter_map(|id| line(entry, shown.get(id)?)));
        }
    }
    Ok(lines)
}

/// What a listener has yet to get.
struct Listening {
    first: VecDeque<Bytes>,
    receiver: broadcast::Receiver<Bytes>,
    stopping: watch::Receiver<bool>,
}

fn lines(
    first: Vec<Bytes>,
    receiver: broadcast::Receiver<Bytes>,
    stopping: watch::Receiver<bool>,
) -> impl futures_util::Stream<Item = Result<Bytes, Infallible>> {
    let listening = Listening { first: first.into(), receiver, stopping };
    stream::unfold(listening, async |mut listening| {
        let line = listening.next().await?;
        Some((Ok(line), listening))
    })
}

impl Listening {
    async fn next(&mut self) -> Option<Bytes> {
        if let Some(line) = self.first.pop_front() {
            return Some(line);
        }
        if *self.stopping.borrow() {
            return None;
        }
        tokio::select! {
            line = self.receiver.recv() => match line {
                Ok(line) => Some(line),
                Err(broadcast::error::RecvError::Lagged(_)) => Some(Bytes::from_static(RESYNC.as_bytes())),
                Err(broadcast::error::RecvError::Closed) => None,
            },
            () = tokio::time::sleep(KEEP_ALIVE) => Some(Bytes::from_static(b": still here\n\n")),
            _ = self.stopping.changed() => None,
        }
    }
}
