//! What owners are told when their jobs end: to which addresses, signed with what, and what became of each message.
//!
//! Messages are made by the database in the transaction that ends a job, so that none is missing and none is made up.
//! Whoever sends them takes some for a while; if nothing is heard of them, somebody else takes them again.

use crate::Store;
use crate::access::keys::{OwnerKind, fill};
use crate::database::db::{Param, Row, params, without_nul};
use crate::error::Error;
use jiff::Timestamp;
use ode_job::{JobId, Pipeline};
use std::time::Duration;
use uuid::Uuid;

/// An address that an owner wants to be told at.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Endpoint {
    pub id: Uuid,
    pub owner: String,
    pub url: String,
    /// Since when.
    pub created_at: Timestamp,
    /// Since when it is told nothing, if it said that nobody is there any more.
    pub gone_at: Option<Timestamp>,
}

/// One message to one address.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Delivery {
    /// The same however often it is sent.
    pub id: Uuid,
    /// Who is told.
    pub owner: Uuid,
    pub job_id: JobId,
    /// What that job is for, while it is known.
    pub pipeline: Option<Pipeline>,
    /// The owner's own id for it.
    pub external_id: Option<String>,
    pub state: String,
    /// Why, if it failed.
    pub error_code: Option<String>,
    pub url: String,
    /// `pending`, `delivered` or `failed`.
    pub status: String,
    /// How often it was sent.
    pub attempts: u32,
    /// When it is sent next, while it is pending.
    pub due_at: Timestamp,
    /// The last answer's status.
    pub answer: Option<i64>,
    /// What went wrong last.
    pub problem: Option<String>,
    pub created_at: Timestamp,
    /// When it arrived.
    pub delivered_at: Option<Timestamp>,
}

/// How sending a message went.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Sent {
    /// It arrived.
    Delivered {
        /// The status of the answer.
        answer: u16,
    },
    /// It did not, or was not taken.
    Failed {
        /// The status of the answer, if there was one.
        answer: Option<u16>,
        /// What went wrong.
        problem: String,
        /// How long to wait before the next try; none if there is none.
        again: Option<Duration>,
    },
    /// Nobody is there any more: it is given up, and the address told nothing more.
    Gone {
        /// The status of the answer.
        answer: u16,
    },
}

const OWNER: &str = "SELECT id FROM owner WHERE kind = $1 AND name = $2";
const ADD_ENDPOINT: &str = "INSERT INTO webhook_endpoint (id, owner, url) VALUES ($1, $2, $3)
    ON CONFLICT (owner, url) DO UPDATE SET gone_at = NULL";
const ENDPOINTS: &str = "SELECT e.id, o.name AS owner, e.url, e.created_at, e.gone_at
    FROM webhook_endpoint e JOIN owner o ON o.id = e.owner ORDER BY e.created_at, e.id";
const REMOVE_ENDPOINT: &str = "DELETE FROM webhook_endpoint WHERE id = $1 RETURNING id";
const ADD_SECRET: &str =
    "INSERT INTO webhook_secret (owner, secret) VALUES ($1, $2) ON CONFLICT (owner) DO NOTHING";
const SECRETS: &str = "SELECT secret, CASE WHEN earlier_until > {now} THEN earlier END AS earlier
    FROM webhook_secret WHERE owner = $1";
const RENEW_SECRET: &str =
    "UPDATE webhook_secret SET earlier = secret, earlier_until = {after $3}, secret = $2
    WHERE owner = $1 AND (earlier_until IS NULL OR earlier_until <= {now} OR {after $3} <= {now}) RETURNING owner";
const EARLIER_UNTIL: &str = "SELECT earlier_until FROM webhook_secret WHERE owner = $1";
/// The condition stands twice: whoever waited for another's update looks again.
pub(crate) const TAKE: &str = "UPDATE webhook_delivery SET attempts = attempts + 1, due_at = {after $1}
    WHERE id IN (SELECT id FROM webhook_delivery WHERE status = 'pending' AND due_at <= {now} ORDER BY due_at LIMIT $2)
        AND status = 'pending' AND due_at <= {now}
    RETURNING id, owner, job_id, (SELECT pipeline FROM jobs WHERE jobs.id = webhook_delivery.job_id) AS pipeline, external_id, state,
        error_code, url, status, attempts, due_at, answer, problem, created_at, delivered_at";
// A message is settled only as it was taken: one that was asked for again, or taken by another, is due at another moment.
const DELIVERED: &str = "UPDATE webhook_delivery SET status = 'delivered', delivered_at = {now}, answer = $3,
    problem = NULL WHERE id = $1 AND due_at = $2 AND status = 'pending'";
const AGAIN: &str = "UPDATE webhook_delivery SET due_at = {after $5}, answer = $3, problem = $4
    WHERE id = $1 AND due_at = $2 AND status = 'pending'";
const GIVEN_UP: &str = "UPDATE webhook_delivery SET status = 'failed', answer = $3, problem = $4
    WHERE id = $1 AND due_at = $2 AND status = 'pending'";
const GONE: &str = "UPDATE webhook_endpoint SET gone_at = {now}
    WHERE gone_at IS NULL AND (owner, url) IN (SELECT owner, url FROM webhook_delivery WHERE id = $1)";
pub(crate) const LIST: &str =
    "SELECT id, owner, job_id, (SELECT pipeline FROM jobs WHERE jobs.id = webhook_delivery.job_id) AS pipeline, external_id, state,
        error_code, url, status, attempts, due_at, answer, problem, created_at, delivered_at FROM webhook_delivery
    WHERE ($1 IS NULL OR job_id = $1) AND ($2 IS NULL OR status = $2) ORDER BY created_at DESC, id LIMIT $3";
const REPLAY: &str =
    "UPDATE webhook_delivery SET status = 'pending', delivered_at = NULL, attempts = 0, due_at = {now}
    WHERE id = $1 OR job_id = $1 RETURNING id";
const FORGET: &str = "DELETE FROM webhook_delivery WHERE status <> 'pending' AND created_at < {after $1}";

impl Store {
    /// Tells an owner's address of every job of theirs from now on, also one that was gone.
    pub async fn add_endpoint(&self, kind: OwnerKind, owner: &str, url: &str) -> Result<(), Error> {
        let owner = self.owner_named(kind, owner).await?;
        self.db().write(ADD_ENDPOINT, params![Uuid::now_v7(), owner, url]).await.map(drop)
    }

    /// The owner by that name, who has been given a key.
    pub async fn owner_named(&self, kind: OwnerKind, name: &str) -> Result<Uuid, Error> {
        let rows = self.db().read(OWNER, params![kind.as_str(), name]).await?;
        let unknown = || {
            Error::Config(format!(
                "There is no {} \"{name}\". `ode keys list` shows who there is.",
                kind.as_str()
            ))
        };
        rows.first().ok_or_else(unknown)?.uuid("id")
    }

    /// Every address, oldest first.
    pub async fn endpoints(&self) -> Result<Vec<Endpoint>, Error> {
        let rows = self.db().read(ENDPOINTS, params![]).await?;
        let endpoint = |row: &Row| {
            Ok(Endpoint {
                id: row.uuid("id")?,
                owner: row.opt_text("owner")?.unwrap_or_default(),
                url: row.text("url")?,
                created_at: row.moment("created_at")?,
                gone_at: row.opt_moment("gone_at")?,
            })
        };
        rows.iter().map(endpoint).collect()
    }

    /// Tells an address nothing more. False if there is none by that id.
    pub async fn remove_endpoint(&self, id: Uuid) -> Result<bool, Error> {
        Ok(!self.db().write(REMOVE_ENDPOINT, params![id]).await?.is_empty())
    }

    /// What messages to an owner are signed with, made by whoever asks first: the secret, and the one before it for as long
    /// as that is kept.
    pub async fn webhook_secrets(&self, owner: Uuid) -> Result<(Vec<u8>, Option<Vec<u8>>), Error> {
        self.db().write(ADD_SECRET, &[owner.into(), Param::Bytes(fresh_secret()?)]).await?;
        let rows = self.db().read(SECRETS, params![owner]).await?;
        let row = rows.first().ok_or_else(|| Error::Corrupt("a secret that was just made".into()))?;
        Ok((row.bytes("secret")?, row.opt_bytes("earlier")?))
    }

    /// Makes a new secret for an owner. Messages are signed with the one before it as well, for as long as this. Refused while
    /// that is so of another, unless neither is to be kept.
    pub async fn renew_webhook_secret(&self, owner: Uuid, keep: Duration) -> Result<Vec<u8>, Error> {
        self.webhook_secrets(owner).await?;
        let fresh = fresh_secret()?;
        let params = [owner.into(), Param::Bytes(fresh.clone()), crate::micros(keep).into()];
        if self.db().write(RENEW_SECRET, &params).await?.is_empty() {
            let rows = self.db().read(EARLIER_UNTIL, &[owner.into()]).await?;
            let gone = || Error::Corrupt("a secret that was just read".into());
            return Err(Error::SecretKept(rows.first().ok_or_else(gone)?.moment("earlier_until")?));
        }
        Ok(fresh)
    }

    /// Takes messages that are due. Those that are not settled within `hold` are due again.
    pub async fn take_deliveries(&self, count: usize, hold: Duration) -> Result<Vec<Delivery>, Error> {
        let count = i64::try_from(count).unwrap_or(i64::MAX);
        let rows = self.db().write(TAKE, params![crate::micros(hold), count]).await?;
        rows.iter().map(delivery).collect()
    }

    /// Records how sending a message went that was taken. Nothing is recorded if it was asked for again meanwhile, or is
    /// another's by now.
    pub async fn settle_delivery(&self, taken: &Delivery, sent: &Sent) -> Result<(), Error> {
        let (db, id, due_at) = (self.db(), taken.id, taken.due_at);
        let written = match sent {
            Sent::Delivered { answer } => db.write(DELIVERED, params![id, due_at, i64::from(*answer)]).await,
            Sent::Failed { answer, problem, again } => {
                let (answer, problem) = (answer.map(i64::from), without_nul(problem));
                let problem = problem.as_str();
                match again {
                    None => db.write(GIVEN_UP, params![id, due_at, answer, problem]).await,
                    Some(wait) => {
                        let wait = crate::micros(*wait);
                        db.write(AGAIN, params![id, due_at, answer, problem, wait]).await
                    }
                }
            }
            Sent::Gone { answer } => {
                db.write(GONE, params![id]).await?;
                let told = params![id, due_at, i64::from(*answer), "nobody is there any more"];
                db.write(GIVEN_UP, told).await
            }
        };
        written.map(drop)
    }

    /// Messages, newest first: of one job, in one status, or all.
    pub async fn deliveries(
        &self,
        job: Option<JobId>,
        status: Option<&str>,
        count: usize,
    ) -> Result<Vec<Delivery>, Error> {
        let count = i64::try_from(count).unwrap_or(i64::MAX);
        let rows = self.db().read(LIST, params![job.map(|job| job.0), status, count]).await?;
        rows.iter().map(delivery).collect()
    }

    /// Sends a message, or all messages of a job, once more from the beginning. Answers how many.
    pub async fn replay_deliveries(&self, message_or_job: Uuid) -> Result<usize, Error> {
        Ok(self.db().write(REPLAY, params![message_or_job]).await?.len())
    }

    /// Forgets settled messages that are older than this.
    pub(crate) async fn forget_deliveries(&self, age: Duration) -> Result<(), Error> {
        self.db().write(FORGET, params![-crate::micros(age)]).await.map(drop)
    }
}

fn fresh_secret() -> Result<Vec<u8>, Error> {
    let mut fresh = vec![0; 32];
    fill(&mut fresh)?;
    Ok(fresh)
}

fn delivery(row: &Row) -> Result<Delivery, Error> {
    Ok(Delivery {
        id: row.uuid("id")?,
        owner: row.uuid("owner")?,
        job_id: row.job("job_id")?,
        pipeline: row.opt_text("pipeline")?.and_then(|name| name.parse().ok()),
        external_id: row.opt_text("external_id")?,
        state: row.text("state")?,
        error_code: row.opt_text("error_code")?,
        url: row.text("url")?,
        status: row.text("status")?,
        attempts: u32::try_from(row.int("attempts")?).unwrap_or(u32::MAX),
        due_at: row.moment("due_at")?,
        answer: row.opt_int("answer")?,
        problem: row.opt_text("problem")?,
        created_at: row.moment("created_at")?,
        delivered_at: row.opt_moment("delivered_at")?,
    })
}
