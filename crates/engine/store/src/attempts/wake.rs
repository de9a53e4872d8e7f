//! Waking workers: within the process by a channel, between processes by NOTIFY or by watching the file.
//!
//! A wake-up is a hint. Losing every one of them costs latency only: workers look for themselves now and then.

use crate::Store;
use crate::database::connections::Connections;
use crate::database::db::{Db, params};
use crate::database::dialect::postgres::{READY_CHANNEL, STOP_CHANNEL};
use ode_job::{JobId, Lane};
use sqlx::Sqlite;
use sqlx::postgres::PgListener;
use std::time::Duration;
use tokio::sync::broadcast;
use uuid::Uuid;

/// Why a worker is woken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wake {
    /// Somebody waits in this lane.
    Ready(Lane),
    /// A person wants this running job stopped.
    Stop(JobId),
    /// Something changed; look.
    Changed,
}

/// Wake-ups kept for a listener that is busy. When it has missed some, it looks instead.
const KEPT_MAX: usize = 256;
/// How often a SQLite file is checked for changes by other processes. The check reads one number.
const FILE_CHECK: Duration = Duration::from_millis(100);
/// A listener that lost its connection tries again this often.
const RECONNECT_PAUSE: Duration = Duration::from_millis(500);

#[derive(Debug)]
pub(crate) struct Hub {
    sender: broadcast::Sender<Wake>,
}

impl Hub {
    pub(crate) fn new() -> Self {
        Hub { sender: broadcast::channel(KEPT_MAX).0 }
    }

    pub(crate) fn ready(&self, lane: Lane) {
        self.send(Wake::Ready(lane));
    }

    fn send(&self, wake: Wake) {
        // Nobody listening is fine: whoever comes later looks first.
        let _ = self.sender.send(wake);
    }
}

/// A stream of wake-ups.
#[derive(Debug)]
pub struct Wakes {
    receiver: broadcast::Receiver<Wake>,
    listener: tokio::task::JoinHandle<()>,
}

impl Wakes {
    /// Waits for the next wake-up.
    pub async fn next(&mut self) -> Wake {
        match self.receiver.recv().await {
            Ok(wake) => wake,
            Err(broadcast::error::RecvError::Lagged(_)) => Wake::Changed,
            // The store holds the sender for as long as anyone can ask; without it there is nothing to wait for.
            Err(broadcast::error::RecvError::Closed) => std::future::pending().await,
        }
    }
}

impl Drop for Wakes {
    fn drop(&mut self) {
        self.listener.abort();
    }
}

const NOTIFY: &str = "SELECT pg_notify($1, $2)";
const DATA_VERSION: &str = "PRAGMA data_version";

impl Store {
    /// Starts listening for wake-ups.
    pub fn wakes(&self) -> Wakes {
        let receiver = self.inner.wake.sender.subscribe();
        let sender = self.inner.wake.sender.clone();
        let hints = self.inner.hints.listen(sender.clone());
        let (db, url) = (self.db().clone(), self.inner.url.clone());
        let listener = tokio::spawn(async move {
            let watch = async {
                match db {
                    Db::Postgres(_) => listen(&url, &sender).await,
                    // Nobody else can reach a database in memory.
                    Db::Sqlite { .. } if url.contains(":memory:") => std::future::pending().await,
                    Db::Sqlite { read, .. } => watch_file(&read, &sender).await,
                }
            };
            tokio::join!(watch, hints);
        });
        Wakes { receiver, listener }
    }

    /// Tells every process that somebody waits in this lane.
    pub(crate) async fn wake_everyone(&self, lane: Lane) {
        self.inner.wake.ready(lane);
        self.notify(READY_CHANNEL, lane.as_str()).await;
    }

    pub(crate) async fn wake_stop(&self, job: JobId) {
        self.inner.wake.send(Wake::Stop(job));
        self.notify(STOP_CHANNEL, &job.to_string()).await;
    }

    async fn notify(&self, channel: &str, payload: &str) {
        if let Db::Postgres(_) = self.db()
            && let Err(error) = self.db().read(NOTIFY, params![channel, payload]).await
        {
            tracing::debug!(%error, "could not wake other processes; they will look for themselves");
        }
    }
}

/// Forwards PostgreSQL's notifications, for ever.
async fn listen(url: &str, sender: &broadcast::Sender<Wake>) {
    loop {
        match PgListener::connect(url).await {
            Ok(mut listener) => {
                let channels = [READY_CHANNEL, STOP_CHANNEL];
                if listener.listen_all(channels).await.is_ok() {
                    // What was notified before we listened is found by looking.
                    let _ = sender.send(Wake::Changed);
                    forward(&mut listener, sender).await;
                }
            }
            Err(error) => tracing::debug!(%error, "cannot listen for wake-ups; polling until it works"),
        }
        tokio::time::sleep(RECONNECT_PAUSE).await;
    }
}

async fn forward(listener: &mut PgListener, sender: &broadcast::Sender<Wake>) {
    // `None` says that the connection was lost, and with it perhaps a notification.
    while let Ok(Some(told)) = listener.try_recv().await {
        let wake = if told.channel() == STOP_CHANNEL {
            Uuid::parse_str(told.payload()).map(|id| Wake::Stop(JobId(id))).ok()
        } else {
            told.payload().parse().map(Wake::Ready).ok()
        };
        let _ = sender.send(wake.unwrap_or(Wake::Changed));
    }
    let _ = sender.send(Wake::Changed);
}

/// Watches a SQLite file for commits, for ever. The number is the connection's own view of the file, so one
/// connection is kept for asking.
async fn watch_file(connections: &Connections<Sqlite>, sender: &broadcast::Sender<Wake>) {
    loop {
        if let Ok(mut connection) = connections.take().await {
            let mut seen = None;
            while let Ok(version) =
                sqlx::query_scalar::<_, i64>(DATA_VERSION).fetch_one(&mut *connection).await
            {
                if seen.replace(version).is_some_and(|seen| seen != version) {
                    let _ = sender.send(Wake::Changed);
                }
                tokio::time::sleep(FILE_CHECK).await;
            }
        }
        tokio::time::sleep(RECONNECT_PAUSE).await;
    }
}
