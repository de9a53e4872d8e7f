//! Redis, where it is configured: hints for other systems and other processes, never the truth.
//!
//! `ode:jobs:queue` lists ids of new jobs, `ode:workers:active` the workers' last beats, and
//! `ode:job:progress:{id}` how far a job is. All of it can be lost at any moment without losing anything else:
//! hints are sent from a bounded queue by a task of their own, and are dropped when Redis is away.

use crate::attempts::wake::Wake;
use crate::error::Error;
use jiff::Timestamp;
use ode_job::{JobId, WorkerId};
use redis::aio::{ConnectionManager, ConnectionManagerConfig};
use std::time::Duration;
use tokio::sync::{broadcast, mpsc};

const QUEUE: &str = "ode:jobs:queue";
const WORKERS: &str = "ode:workers:active";
const PROGRESS_SECONDS: u64 = 3600;
/// Ids nobody took: older ones are dropped, since their jobs are found in the database anyway.
const QUEUE_MAX: isize = 10_000;
/// Hints waiting to be sent.
const WAITING_MAX: usize = 1_000;
/// A Redis that takes longer than this is treated as away.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(2);
const RECONNECT_PAUSE: Duration = Duration::from_secs(1);
/// How long one blocking pop waits; shorter than any idle limit of a server or proxy.
const POP_SECONDS: f64 = 5.0;

enum Hint {
    Enqueued(Vec<JobId>),
    Beat(WorkerId),
    Leave(WorkerId),
    Progress(JobId, u8),
}

/// A handle that costs nothing where Redis is not configured.
#[derive(Debug)]
pub(crate) struct Hints {
    client: Option<redis::Client>,
    sender: Option<mpsc::Sender<Hint>>,
}

impl Hints {
    pub(crate) fn open(url: Option<&str>) -> Result<Self, Error> {
        let Some(url) = url else { return Ok(Hints { client: None, sender: None }) };
        let client = client(url)?;
        let (sender, receiver) = mpsc::channel(WAITING_MAX);
        tokio::spawn(send_hints(client.clone(), receiver));
        Ok(Hints { client: Some(client), sender: Some(sender) })
    }

    pub(crate) fn enqueued(&self, ids: impl Iterator<Item = JobId>) {
        if self.sender.is_some() {
            // One hint wakes a worker, which then claims all it can: a bulk load need not send each id.
            self.send(Hint::Enqueued(ids.take(WAITING_MAX).collect()));
        }
    }

    pub(crate) fn beat(&self, worker: WorkerId) {
        self.send(Hint::Beat(worker));
    }

    pub(crate) fn leave(&self, worker: WorkerId) {
        self.send(Hint::Leave(worker));
    }

    pub(crate) fn progress(&self, job: JobId, percent: u8) {
        self.send(Hint::Progress(job, percent));
    }

    fn send(&self, hint: Hint) {
        if let Some(sender) = &self.sender {
            // Full means that Redis is slow or away; the hint is then late news, which is no news.
            let _ = sender.try_send(hint);
        }
    }

    /// Wakes this process when an id is pushed to the queue. Never ends; does nothing without Redis.
    pub(crate) fn listen(
        &self,
        sender: broadcast::Sender<Wake>,
    ) -> impl Future<Output = ()> + Send + 'static {
        let client = self.client.clone();
        async move {
            let Some(client) = client else { return std::future::pending().await };
            let mut is_told = false;
            loop {
                let since = tokio::time::Instant::now();
                let Err(error) = pop_hints(&client, &sender).await else { continue };
                // Once for each time it goes, not for each time it is looked for in vain.
                is_told &= since.elapsed() < RECONNECT_PAUSE;
                if !std::mem::replace(&mut is_told, true) {
                    tracing::warn!(%error, "Redis is away; wake-ups come by the database until it is back");
                }
                tokio::time::sleep(RECONNECT_PAUSE).await;
            }
        }
    }
}

async fn pop_hints(client: &redis::Client, sender: &broadcast::Sender<Wake>) -> redis::RedisResult<()> {
    let patience = Duration::from_secs_f64(POP_SECONDS) + ANSWER_TIMEOUT;
    let config = redis::AsyncConnectionConfig::new().set_response_timeout(Some(patience));
    let mut connection = client.get_multiplexed_async_connection_with_config(&config).await?;
    loop {
        let mut pop = redis::cmd("BLPOP");
        pop.arg(QUEUE).arg(POP_SECONDS);
        let popped: Option<(String, String)> = pop.query_async(&mut connection).await?;
        if popped.is_some() {
            // Any worker that hears of any job looks for all it can do; which id it was does not matter.
            let _ = sender.send(Wake::Changed);
        }
    }
}

async fn send_hints(client: redis::Client, mut receiver: mpsc::Receiver<Hint>) {
    let config = ConnectionManagerConfig::new()
        .set_connection_timeout(Some(ANSWER_TIMEOUT))
        .set_response_timeout(Some(ANSWER_TIMEOUT));
    let mut manager: Option<ConnectionManager> = None;
    while let Some(hint) = receiver.recv().await {
        if manager.is_none() {
            manager = ConnectionManager::new_with_config(client.clone(), config.clone()).await.ok();
        }
        let Some(connection) = &mut manager else { continue };
        if let Err(error) = command(hint).query_async::<()>(connection).await {
            tracing::debug!(%error, "a hint to Redis was lost");
        }
    }
}

fn command(hint: Hint) -> redis::Pipeline {
    let mut pipe = redis::pipe();
    match hint {
        Hint::Enqueued(ids) => {
            let ids: Vec<String> = ids.iter().map(JobId::to_string).collect();
            if !ids.is_empty() {
                pipe.rpush(QUEUE, ids).ignore().ltrim(QUEUE, -QUEUE_MAX, -1).ignore();
            }
        }
        Hint::Beat(worker) => {
            pipe.hset(WORKERS, worker.to_string(), Timestamp::now().to_string()).ignore();
        }
        Hint::Leave(worker) => {
            pipe.hdel(WORKERS, worker.to_string()).ignore();
        }
        Hint::Progress(job, percent) => {
            pipe.set_ex(format!("ode:job:progress:{job}"), percent, PROGRESS_SECONDS).ignore();
        }
    }
    pipe
}

/// The address is all that can be wrong here, and is not repeated: it may hold a password.
pub(crate) fn client(url: &str) -> Result<redis::Client, Error> {
    let invalid = |_| Error::Config("--redis is not understood. Use redis://host:port.".into());
    redis::Client::open(url).map_err(invalid)
}

/// Asks a Redis whether it is there.
pub async fn ping_redis(url: &str) -> Result<(), Error> {
    let away = |error: redis::RedisError| Error::Unavailable(format!("Redis: {error}"));
    let client = client(url)?;
    let config = redis::AsyncConnectionConfig::new()
        .set_connection_timeout(Some(ANSWER_TIMEOUT))
        .set_response_timeout(Some(ANSWER_TIMEOUT));
    let mut connection = client.get_multiplexed_async_connection_with_config(&config).await.map_err(away)?;
    redis::cmd("PING").query_async::<()>(&mut connection).await.map_err(away)
}
