//! `GET /api/stream`: what happens to your jobs, as it happens.
//!
//! One reader in each process follows the journal for all who listen, and only while somebody does. What it finds is
//! turned into one line for each owner whom it concerns; each owner's listeners share a short queue, and who is too
//! slow for it is told to read the list again. The same reader tells the lists what to forget.

use crate::App;
use crate::callers::caller::{Caller, KEY_KNOWN_FOR};
use crate::jobs::view::JobView;
use crate::jobs::{owners, views};
use crate::server::problem::{Problem, Reading};
use axum::body::Body;
use axum::extract::{Extension, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures_util::stream;
use jiff::Timestamp;
use ode_job::{ErrorCode, JobId, Owner, State as JobState};
use ode_store::{Store, Told};
use serde::Serialize;
use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};
use std::convert::Infallible;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
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
/// Jobs looked up for them. More at once is a bulk load, of which nobody watches each line.
const JOBS_MAX: usize = 2000;
/// New entries told after one look. More are a bulk load, too.
const FRESH_MAX: usize = 4096;
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
/// Where clocks agree, nearly all of them are there after this. A look goes back so far, since under load ten seconds are
/// thousands of entries.
const LAG_MOSTLY: jiff::SignedDuration = jiff::SignedDuration::from_secs(1);
/// So often one goes back all the way.
const LOOK_BACK_EVERY: jiff::SignedDuration = jiff::SignedDuration::from_secs(1);
/// Numbers of entries read for one look. No database writes so many in ten seconds; after it was away there may be more.
const NUMBERS_MAX: usize = 1 << 17;
/// The reader has begun by then, or the database is away.
const START_MAX: Duration = Duration::from_secs(5);
/// So often something is sent, so that proxies keep the connection and we notice who is gone.
const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// Milliseconds after which a browser that lost us tries again.
const RECONNECT_MILLIS: u32 = 2000;

/// Something that happened to a job.
#[derive(Debug, Serialize, ToSchema)]
pub struct JobEvent {
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
    #[serde(serialize_with = "crate::jobs::view::moment")]
    at: Timestamp,
    /// The job as it is now.
    job: JobView,
}

/// Something that was said to listeners. What is part of the history has its number there.
#[derive(Debug, Clone)]
struct Said {
    seq: Option<i64>,
    text: Bytes,
}

impl Said {
    const fn aside(text: &'static str) -> Self {
        Said { seq: None, text: Bytes::from_static(text.as_bytes()) }
    }
}

/// Everybody who listens.
#[derive(Debug)]
pub struct Hub {
    room: Mutex<Room>,
    /// Whether the journal is being followed: what is committed from then on is told.
    following: watch::Sender<bool>,
    awake: Notify,
}

#[derive(Debug)]
struct Room {
    listeners: HashMap<Owner, broadcast::Sender<Said>>,
    recent: VecDeque<(Owner, Kept)>,
    attended_until: Instant,
}

/// What is kept for somebody who comes back.
#[derive(Debug)]
enum Kept {
    /// This was said to them, or begins what is said.
    Said(Said),
    /// From here on nobody of theirs listened, so that what happened is in the journal only.
    Gap,
    /// The lines with these numbers were read for them from the journal, once that has been done.
    Read(Arc<OnceLock<Vec<i64>>>),
}

impl Kept {
    /// What it holds, line by line: the number of each, and its text where that is still known.
    fn lines(&self) -> Vec<(Option<i64>, Option<Bytes>)> {
        match self {
            Kept::Said(said) => vec![(said.seq, Some(said.text.clone()))],
            Kept::Gap => vec![(None, None)],
            Kept::Read(numbers) => {
                numbers.get().into_iter().flatten().map(|seq| (Some(*seq), None)).collect()
            }
        }
    }
}

impl Room {
    fn keep(&mut self, owner: Owner, kept: Kept) {
        if self.recent.len() == RECENT_MAX {
            self.recent.pop_front();
        }
        self.recent.push_back((owner, kept));
    }

    /// What somebody missed who heard everything up to the line `last`.
    fn missed(&self, owner: Owner, last: i64) -> Missed {
        let theirs = self.recent.iter().filter(|(to, _)| *to == owner);
        let theirs: Vec<_> = theirs.flat_map(|(_, kept)| kept.lines()).collect();
        // One that was read from the journal may have been said a moment later, too: the first time counts.
        let until = theirs.iter().position(|(seq, _)| *seq == Some(last)).map_or(0, |at| at + 1);
        let (heard, since) = theirs.split_at(until);
        let heard: HashSet<i64> = heard.iter().filter_map(|(seq, _)| *seq).collect();
        let is_new = |seq: &Option<i64>| seq.is_none_or(|seq| !heard.contains(&seq));
        let lines = since.iter().filter(|(seq, _)| is_new(seq)).map(|(_, text)| text.clone());
        match lines.collect() {
            Some(lines) if until > 0 => Missed::Lines(lines),
            _ => Missed::Unknown { heard, read: Arc::default() },
        }
    }
}

impl Default for Hub {
    fn default() -> Self {
        let room =
            Room { listeners: HashMap::new(), recent: VecDeque::new(), attended_until: Instant::now() };
        Hub { room: Mutex::new(room), following: watch::Sender::new(false), awake: Notify::new() }
    }
}

/// What was said since somebody heard a line.
enum Missed {
    Lines(Vec<Bytes>),
    /// Only the journal knows, in which they heard these already. What is read there is told for the next time.
    Unknown {
        heard: HashSet<i64>,
        read: Arc<OnceLock<Vec<i64>>>,
    },
}

/// What somebody who begins to listen gets: what was said since the line they name, and what is said next.
struct Seat {
    missed: Missed,
    receiver: broadcast::Receiver<Said>,
}

impl Hub {
    fn room(&self) -> MutexGuard<'_, Room> {
        self.room.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Somebody reads lists: they want to know what changes.
    pub fn attend(&self) {
        self.room().attended_until = Instant::now() + ATTENTION;
        self.awake.notify_one();
    }

    /// Begins to listen, after the line `last` if there was one, else at `begins`. Nothing is said in between: it is one
    /// step.
    fn listen(&self, owner: Owner, last: Option<i64>, begins: i64) -> Result<Seat, Problem> {
        let mut room = self.room();
        let sender = room.listeners.entry(owner).or_insert_with(|| broadcast::channel(WAITING_MAX).0);
        if sender.receiver_count() >= STREAMS_MAX {
            let detail = format!("{STREAMS_MAX} streams are open already. Close some of them.");
            return Err(Problem::new(ErrorCode::RateLimited, detail).after(KEEP_ALIVE));
        }
        let receiver = sender.subscribe();
        let missed = match last {
            Some(last) => room.missed(owner, last),
            None => {
                room.keep(owner, Kept::Said(Said { seq: Some(begins), text: Bytes::new() }));
                Missed::Lines(Vec::new())
            }
        };
        if let Missed::Unknown { read, .. } = &missed {
            room.keep(owner, Kept::Read(read.clone()));
        }
        self.awake.notify_one();
        Ok(Seat { missed, receiver })
    }

    /// Waits until what is committed is told.
    async fn followed(&self) -> Result<(), Problem> {
        let mut following = self.following.subscribe();
        let is_so = following.wait_for(|is_so| *is_so);
        match tokio::time::timeout(START_MAX, is_so).await {
            Ok(Ok(_)) => Ok(()),
            _ => Err(ErrorCode::DatabaseUnavailable.into()),
        }
    }

    /// Says something to one owner, and keeps it for those who come back.
    fn send(&self, owner: Owner, said: Said) {
        let mut room = self.room();
        if let Some(sender) = room.listeners.get(&owner) {
            // Nobody may be there any more; it is kept for when they are back.
            let _ = sender.send(said.clone());
        }
        room.keep(owner, Kept::Said(said));
    }

    /// Tells one owner to read the list again: something happened that is no part of any history.
    pub fn resync_of(&self, owner: Owner) {
        if let Some(sender) = self.room().listeners.get(&owner) {
            // Nobody may be there any more, and then nobody need know.
            let _ = sender.send(Said::aside(RESYNC));
        }
    }

    /// Tells everyone that more happened than is told line by line.
    fn resync(&self) {
        let mut room = self.room();
        room.recent.clear();
        for sender in room.listeners.values() {
            let _ = sender.send(Said::aside(RESYNC));
        }
    }

    /// How soon to look again, if at all.
    fn pace(&self) -> Option<Duration> {
        let mut room = self.room();
        let is_gone = |(_, sender): &(&Owner, &broadcast::Sender<Said>)| sender.receiver_count() == 0;
        let gone: Vec<Owner> = room.listeners.iter().filter(is_gone).map(|(owner, _)| *owner).collect();
        for owner in gone {
            room.listeners.remove(&owner);
            room.keep(owner, Kept::Gap);
        }
        let is_attended = Instant::now() < room.attended_until;
        if room.listeners.is_empty() && !is_attended {
            // In the same step: who comes from now on waits until it is followed again.
            self.following.send_replace(false);
            return None;
        }
        Some(if room.listeners.is_empty() { LOOK_SELDOM } else { LOOK_EVERY })
    }

    fn has_listeners(&self, owner: Owner) -> bool {
        self.room().listeners.contains_key(&owner)
    }
}

/// Says to read the list again: more happened than could be told.
const RESYNC: &str = "event: resync\ndata: {}\n\n";

/// Follows the journal for as long as somebody wants to know, until the process stops.
pub async fn follow(app: Arc<App>, mut stopping: watch::Receiver<bool>) {
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
            Some(reader) => reader.look(&app, Timestamp::now()).await,
            None => Reader::start(&app.store, Timestamp::now()).await.map(|started| {
                reader = Some(started);
                app.hub.following.send_replace(true);
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
    /// When it was last read from `settled` on.
    looked_back_at: Timestamp,
}

impl Reader {
    /// Begins with what comes next.
    async fn start(store: &Store, now: Timestamp) -> Result<Self, ode_store::Error> {
        let settled = store.seq_at(now - LAG);
        let seen = store.told_numbers(settled, NUMBERS_MAX).await?.into_iter().collect();
        Ok(Reader { settled, seen, read_at: now, looked_back_at: now })
    }

    /// Begins anew, where nobody is told each line of what happened.
    async fn start_again(&mut self, app: &App, now: Timestamp) -> Result<(), ode_store::Error> {
        *self = Reader::start(&app.store, now).await?;
        app.lists.forget_all();
        app.hub.resync();
        Ok(())
    }

    /// Reads what is new and sends it on.
    async fn look(&mut self, app: &App, now: Timestamp) -> Result<(), ode_store::Error> {
        if now < self.read_at - LAG {
            // The clock was set back: what others write has lower numbers than what counts as seen.
            return self.start_again(app, now).await;
        }
        // An entry may be older than it looks if the database was away meanwhile, and so were we.
        let read_at = self.read_at.min(now);
        let looks_back = now.duration_since(self.looked_back_at).abs() >= LOOK_BACK_EVERY;
        let near = self.settled.max(app.store.seq_at(read_at - LAG_MOSTLY));
        let from = if looks_back { self.settled } else { near };
        let numbers = app.store.told_numbers(from, NUMBERS_MAX).await?;
        let is_whole = numbers.len() < NUMBERS_MAX;
        let fresh: Vec<i64> = numbers.into_iter().filter(|seq| !self.seen.contains(seq)).collect();
        if !is_whole || fresh.len() > FRESH_MAX {
            return self.start_again(app, now).await;
        }
        for part in fresh.chunks(ENTRIES_MAX) {
            let told = app.store.told(part).await?;
            spread(app, &told).await?;
            self.seen.extend(part);
        }
        if looks_back {
            self.settled = self.settled.max(app.store.seq_at(read_at - LAG));
            self.seen = self.seen.split_off(&self.settled);
            self.looked_back_at = now;
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
        app.hub.resync();
        return Ok(());
    }
    let owners_of = app.store.owners_of(ids.into_iter()).await?;
    for (_, owner) in &owners_of {
        app.lists.forget(*owner);
    }
    let heard = owners_of.iter().filter(|(_, owner)| app.hub.has_listeners(*owner)).map(|(id, _)| *id);
    let heard: HashSet<JobId> = heard.collect();
    if heard.is_empty() {
        return Ok(());
    }
    let heard = app.store.jobs_by_id(heard.into_iter()).await?;
    let Ok(views) = views(app, &heard).await else {
        app.hub.resync();
        return Ok(());
    };
    let shown: HashMap<JobId, _> =
        heard.iter().zip(views).map(|(job, view)| (job.record.id, (job, view))).collect();
    for entry in told {
        for (job, view) in entry.jobs.iter().filter_map(|id| shown.get(id)) {
            let Some(text) = line(entry, view) else { continue };
            for owner in owners(&job.record) {
                app.hub.send(owner, Said { seq: Some(entry.seq), text: text.clone() });
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
/// could be told: read the list again. Lines of the last ten seconds before a break may come twice. The stream of a key
/// that is revoked ends.
#[utoipa::path(get, path = "/api/stream", tag = "jobs",
    params(("Last-Event-ID" = Option<String>, Header, description = "The id of the last line that arrived")),
    responses(
        (status = 200, body = JobEvent, content_type = "text/event-stream"),
        Reading))]
pub async fn stream(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let last = headers.get("last-event-id").and_then(|id| id.to_str().ok()?.trim().parse::<i64>().ok());
    let begins = last.unwrap_or_else(|| app.store.seq_at(Timestamp::now()));
    let seat = app.hub.listen(caller.owner, last, begins)?;
    app.hub.followed().await?;
    let ready = format!("retry: {RECONNECT_MILLIS}\nid: {begins}\nevent: ready\ndata: {{}}\n\n");
    let mut listening = Listening {
        first: VecDeque::from([ready.into()]),
        repeated: HashSet::new(),
        receiver: seat.receiver,
        stopping: app.stopping.clone(),
        known_at: Instant::now(),
        app: app.clone(),
        caller: caller.clone(),
    };
    match seat.missed {
        Missed::Lines(missed) => listening.first.extend(missed.into_iter().filter(|line| !line.is_empty())),
        Missed::Unknown { heard, read } => {
            let numbers = listening.catch_up(&app, caller.owner, begins, &heard).await?;
            // It is set here and nowhere else.
            let _ = read.set(numbers);
        }
    }
    let body = Body::from_stream(lines(listening));
    let head = [
        (header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream")),
        (header::CACHE_CONTROL, HeaderValue::from_static("no-store")),
        (HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no")),
    ];
    Ok((head, body).into_response())
}

/// What a listener has yet to get.
struct Listening {
    first: VecDeque<Bytes>,
    /// What is among the first and may be said again.
    repeated: HashSet<i64>,
    receiver: broadcast::Receiver<Said>,
    stopping: watch::Receiver<bool>,
    /// When it was last known that they may listen.
    known_at: Instant,
    app: Arc<App>,
    caller: Caller,
}

fn lines(listening: Listening) -> impl futures_util::Stream<Item = Result<Bytes, Infallible>> {
    stream::unfold(listening, async |mut listening| {
        let line = listening.next().await?;
        Some((Ok(line), listening))
    })
}

impl Listening {
    /// Reads from the journal what somebody missed since a line, besides what they `heard` before it; answers which
    /// lines that were.
    async fn catch_up(
        &mut self,
        app: &App,
        owner: Owner,
        last: i64,
        heard: &HashSet<i64>,
    ) -> Result<Vec<i64>, Problem> {
        // What was committed late may have a lower number than the line that arrived.
        let now = Timestamp::now();
        let from = last.saturating_sub(app.store.seq_at(now) - app.store.seq_at(now - LAG));
        let mut numbers = app.store.told_numbers(from, RECENT_MAX).await?;
        if numbers.len() == RECENT_MAX {
            self.first.push_back(Bytes::from_static(RESYNC.as_bytes()));
            return Ok(Vec::new());
        }
        let mut read = Vec::new();
        numbers.retain(|seq| !heard.contains(seq));
        for part in numbers.chunks(ENTRIES_MAX) {
            let told = app.store.told(part).await?;
            let ids: HashSet<JobId> = told.iter().flat_map(|entry| &entry.jobs).copied().collect();
            let mut jobs = app.store.jobs_by_id(ids.into_iter()).await?;
            jobs.retain(|job| owners(&job.record).any(|found| found == owner));
            let ids = jobs.iter().map(|job| job.record.id);
            let shown: HashMap<JobId, JobView> = ids.zip(views(app, &jobs).await?).collect();
            for entry in &told {
                let before = self.first.len();
                self.first.extend(entry.jobs.iter().filter_map(|id| line(entry, shown.get(id)?)));
                if self.first.len() > before {
                    read.push(entry.seq);
                }
                self.repeated.insert(entry.seq);
            }
        }
        Ok(read)
    }

    async fn next(&mut self) -> Option<Bytes> {
        if let Some(line) = self.first.pop_front() {
            return Some(line);
        }
        let line = self.said().await?;
        if self.known_at.elapsed() >= KEY_KNOWN_FOR {
            // In a place of its own while it is asked: each of thousands of streams would keep room for it.
            if Box::pin(self.caller.is_revoked(&self.app)).await {
                return None;
            }
            self.known_at = Instant::now();
        }
        Some(line)
    }

    /// What is said next; none once the process stops.
    async fn said(&mut self) -> Option<Bytes> {
        loop {
            if *self.stopping.borrow() {
                return None;
            }
            tokio::select! {
                said = self.receiver.recv() => match said {
                    Ok(said) if said.seq.is_some_and(|seq| self.repeated.contains(&seq)) => {}
                    Ok(said) => return Some(said.text),
                    Err(broadcast::error::RecvError::Lagged(_)) => return Some(Bytes::from_static(RESYNC.as_bytes())),
                    Err(broadcast::error::RecvError::Closed) => return None,
                },
                () = tokio::time::sleep(KEEP_ALIVE) => return Some(Bytes::from_static(b": still here\n\n")),
                _ = self.stopping.changed() => return None,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ode_job::NewJob;
    use uuid::Uuid;

    const OWNER: Owner = Owner::Session(Uuid::nil());
    const OTHER: Owner = Owner::Session(Uuid::max());

    /// A room where somebody heard the lines 11 and 12, and left.
    fn left(hub: &Hub) {
        let seat = hub.listen(OWNER, None, 10).unwrap();
        for seq in [11, 12] {
            hub.send(OWNER, Said { seq: Some(seq), text: seq.to_string().into() });
        }
        drop(seat);
    }

    #[track_caller]
    fn missed(hub: &Hub, last: i64) -> Result<Vec<Bytes>, Vec<i64>> {
        match hub.listen(OWNER, Some(last), last).unwrap().missed {
            Missed::Lines(lines) => Ok(lines),
            Missed::Unknown { heard, read } => {
                read.set(vec![20, 21]).unwrap();
                Err(BTreeSet::from_iter(heard).into_iter().collect())
            }
        }
    }

    #[test]
    fn who_is_back_before_it_was_noticed_gets_what_was_said_since() {
        let hub = Hub::default();
        left(&hub);
        assert_eq!(missed(&hub, 12), Ok(vec![]));
        assert_eq!(missed(&hub, 11), Ok(vec!["12".into()]));
        assert_eq!(missed(&hub, 10), Ok(vec!["11".into(), "12".into()]), "where they began");
        assert_eq!(missed(&hub, 9), Err(vec![]), "nobody was told that");
    }

    #[test]
    fn who_listened_alone_gets_what_the_journal_has_besides_what_they_heard() {
        let hub = Hub::default();
        left(&hub);
        assert_eq!(hub.pace(), None, "nobody listens");
        assert_eq!(missed(&hub, 12), Err(vec![10, 11, 12]));
        assert_eq!(missed(&hub, 11), Err(vec![10, 11]), "12 may have been lost on its way");
        assert_eq!(missed(&hub, 20), Err(vec![10, 11, 12, 20]), "what was read for them was heard");
        assert_eq!(missed(&hub, 21), Ok(vec![]), "nothing was said since");
    }

    #[test]
    fn what_was_read_and_then_said_is_heard_once_and_nothing_between_is_lost() {
        let hub = Hub::default();
        left(&hub);
        assert_eq!(hub.pace(), None, "nobody listens");
        assert_eq!(missed(&hub, 12), Err(vec![10, 11, 12]));
        for seq in [30, 21] {
            hub.send(OWNER, Said { seq: Some(seq), text: seq.to_string().into() });
        }
        assert_eq!(missed(&hub, 21), Ok(vec!["30".into()]));
    }

    #[test]
    fn while_only_others_listen_nothing_counts_as_told() {
        let hub = Hub::default();
        let _others = hub.listen(OTHER, None, 1).unwrap();
        left(&hub);
        assert_eq!(hub.pace(), Some(LOOK_EVERY));
        assert!(!hub.has_listeners(OWNER));
        assert_eq!(missed(&hub, 12), Err(vec![10, 11, 12]));
    }

    /// A site, and somebody who listens there.
    async fn listening() -> (tempfile::TempDir, Arc<App>, broadcast::Receiver<Said>) {
        let files = tempfile::tempdir().unwrap();
        let app = crate::site::tests::app(files.path(), |_| ()).await;
        let receiver = app.hub.listen(OWNER, None, 0).unwrap().receiver;
        (files, app, receiver)
    }

    fn told(receiver: &mut broadcast::Receiver<Said>) -> Vec<Said> {
        std::iter::from_fn(|| receiver.try_recv().ok()).collect()
    }

    fn job_of(owner: Owner) -> NewJob {
        NewJob::new(ode_html::machine::HTML, "html5", serde_json::json!({})).owned_by(owner)
    }

    #[tokio::test]
    async fn who_listens_hears_of_their_job_however_long_others_have_been_busy() {
        let (_files, app, mut receiver) = listening().await;
        let mut reader = Reader::start(&app.store, Timestamp::now()).await.unwrap();
        for number in 0..=FRESH_MAX {
            app.store.enqueue(job_of(OTHER)).await.unwrap();
            if number % ENTRIES_MAX == 0 {
                reader.look(&app, Timestamp::now()).await.unwrap();
            }
        }
        app.store.enqueue(job_of(OWNER)).await.unwrap();
        reader.look(&app, Timestamp::now()).await.unwrap();
        let said = told(&mut receiver);
        assert!(matches!(&said[..], [Said { seq: Some(_), .. }]), "{said:?}");
        for _ in 0..=FRESH_MAX {
            app.store.enqueue(job_of(OTHER)).await.unwrap();
        }
        reader.look(&app, Timestamp::now()).await.unwrap();
        let said = told(&mut receiver);
        assert!(matches!(&said[..], [Said { seq: None, text }] if text == RESYNC), "{said:?}");
    }

    #[tokio::test]
    async fn an_entry_that_is_committed_late_is_told_when_looks_go_back() {
        let (_files, app, mut receiver) = listening().await;
        let began = Timestamp::now();
        let after = |millis| began + jiff::SignedDuration::from_millis(millis);
        let mut reader = Reader::start(&app.store, began).await.unwrap();
        reader.look(&app, after(9_000)).await.unwrap();
        // Its number is of the beginning, before what a look mostly reads.
        app.store.enqueue(job_of(OWNER)).await.unwrap();
        reader.look(&app, after(9_900)).await.unwrap();
        assert_eq!(told(&mut receiver).len(), 0);
        reader.look(&app, after(10_000)).await.unwrap();
        assert_eq!(told(&mut receiver).len(), 1);
        reader.look(&app, after(11_000)).await.unwrap();
        assert_eq!(told(&mut receiver).len(), 0, "it is told once");
    }

    #[tokio::test]
    async fn a_clock_that_was_wrong_for_a_while_mutes_nobody() {
        let (_files, app, mut receiver) = listening().await;
        let began = Timestamp::now();
        let mut reader = Reader::start(&app.store, began).await.unwrap();
        for ahead in [3600, 3602] {
            reader.look(&app, began + jiff::SignedDuration::from_secs(ahead)).await.unwrap();
        }
        reader.look(&app, Timestamp::now()).await.unwrap();
        let said = told(&mut receiver);
        assert!(matches!(&said[..], [Said { seq: None, text }] if text == RESYNC), "{said:?}");
        app.store.enqueue(job_of(OWNER)).await.unwrap();
        reader.look(&app, Timestamp::now()).await.unwrap();
        assert_eq!(told(&mut receiver).len(), 1);
    }
}
