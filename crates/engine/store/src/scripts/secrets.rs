//! Secrets of scripts, under seal: who may be given them, when they go, and the keys they are sealed to.
//!
//! Nothing here can open one. Shredding forgets the content's own key together with the content.

use super::sealed_params;
use crate::Store;
use crate::db::{Param, Row, Tx, params};
use crate::error::Error;
use crate::sql::Held;
use jiff::Timestamp;
use ode_job::{JobId, Lease, Sealed, SecretPart};
use std::time::Duration;
use uuid::Uuid;

/// Who has the private half of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SealSide {
    /// Workers: what is sent with jobs is sealed to them.
    Worker,
    /// The web side: what comes of jobs is sealed to it, to be shown once.
    Web,
}

impl SealSide {
    /// The stable name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            SealSide::Worker => "worker",
            SealSide::Web => "web",
        }
    }
}

/// The public half of a key.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct SealKey {
    /// Its name.
    pub id: String,
    /// Who has the other half.
    pub side: SealSide,
    /// The key.
    #[serde(skip)]
    pub public: Vec<u8>,
    /// Since when it is used.
    pub created_at: Timestamp,
    /// Since when nothing new is sealed to it.
    pub retired_at: Option<Timestamp>,
    /// How many secrets need it.
    pub in_use: i64,
}

const KEEP: &str = "INSERT INTO script_secret (job_id, part, id, key_id, wrapped, content, keep_micros)
    VALUES ($1, $2, $3, $4, $5, $6, $7)
    ON CONFLICT (job_id, part) DO UPDATE SET id = excluded.id, key_id = excluded.key_id, wrapped = excluded.wrapped,
        content = excluded.content, keep_micros = excluded.keep_micros, shred_at = NULL, shredded_at = NULL";
/// The secrets of a job, for the one who holds it.
const HELD: &str =
    "SELECT s.id, s.key_id, s.wrapped, s.content FROM script_secret s JOIN job_live l ON l.id = s.job_id
    WHERE s.job_id = $1 AND s.part = 'input' AND s.shredded_at IS NULL AND l.fence = $2 AND l.worker = $3";
const OF_RESULT: &str = "SELECT id, key_id, wrapped, content FROM script_secret
    WHERE job_id = $1 AND part = 'result' AND shredded_at IS NULL AND shred_at > {now}";
const SHRED_ONE: &str = "UPDATE script_secret SET wrapped = NULL, content = NULL, shredded_at = {now}
    WHERE job_id = $1 AND part = $2 AND id = $3 AND shredded_at IS NULL RETURNING job_id";
const SHRED_DUE: &str = "UPDATE script_secret SET wrapped = NULL, content = NULL, shredded_at = {now}
    WHERE shredded_at IS NULL AND shred_at <= {now} RETURNING job_id";
const KEEP_ON: &str = "UPDATE script_secret SET shred_at = NULL WHERE job_id = $1 AND shredded_at IS NULL";
const IS_SHREDDED: &str =
    "SELECT 1 FROM script_secret WHERE job_id = $1 AND part = 'input' AND shredded_at IS NOT NULL";
const PUBLISH: &str = "INSERT INTO seal_key (id, side, public) VALUES ($1, $2, $3)
    ON CONFLICT (id) DO UPDATE SET retired_at = NULL";
const RETIRE: &str =
    "UPDATE seal_key SET retired_at = {now} WHERE side = $1 AND id <> $2 AND retired_at IS NULL";
const NEWEST: &str = "SELECT id, side, public, created_at, retired_at, 0 AS in_use FROM seal_key
    WHERE side = $1 AND retired_at IS NULL ORDER BY created_at DESC, id LIMIT 1";
const KEYS: &str = "SELECT k.id, k.side, k.public, k.created_at, k.retired_at,
        (SELECT count(*) FROM script_secret s WHERE s.key_id = k.id AND s.shredded_at IS NULL) AS in_use
    FROM seal_key k ORDER BY k.created_at, k.id";
pub(crate) const SEALED_TO: &str = "SELECT s.job_id, s.part, s.id, s.key_id, s.wrapped, s.content,
        j.session_id, j.user_id, j.organisation_id
    FROM script_secret s JOIN jobs j ON j.id = s.job_id
    WHERE s.key_id = $1 AND s.shredded_at IS NULL AND s.job_id > $2 ORDER BY s.job_id LIMIT $3";
/// Only where it is still the seal that was opened: it may have been shredded or replaced meanwhile.
const REWRAP: &str = "UPDATE script_secret SET key_id = $4, wrapped = $5
    WHERE job_id = $1 AND part = $2 AND id = $3 AND shredded_at IS NULL RETURNING job_id";

/// How many seals are turned to another key at a time.
const REWRAP_MAX: i64 = 500;

pub(super) async fn keep(
    tx: &mut Tx,
    job: JobId,
    part: SecretPart,
    sealed: &Sealed,
    keep_for: Duration,
) -> Result<(), Error> {
    tx.run(KEEP, &sealed_params(job, part, sealed, keep_for)).await.map(drop)
}

/// Sees to it that a job which is tried again has its secrets: those it has, or new ones.
pub(crate) async fn renew(tx: &mut Tx, job: JobId, again: Option<&(Sealed, Duration)>) -> Result<(), Error> {
    if let Some((sealed, keep_for)) = again {
        return keep(tx, job, SecretPart::Input, sealed, *keep_for).await;
    }
    if !tx.run(IS_SHREDDED, params![job]).await?.is_empty() {
        return Err(Error::SecretsGone(job));
    }
    tx.run(KEEP_ON, params![job]).await.map(drop)
}

impl Store {
    /// The secrets that were sent with a job, for the worker that holds it.
    pub async fn held_secret(&self, lease: &Lease) -> Result<Option<Sealed>, Error> {
        let rows = self.db().read(HELD, params![lease.job(), lease.fence(), lease.worker()]).await?;
        rows.first().map(sealed).transpose()
    }

    /// Keeps secrets that came of a job, if the lease still holds. They are shown until `keep_for` after its end.
    pub async fn keep_result_secret(
        &self,
        lease: &Lease,
        secret: &Sealed,
        keep_for: Duration,
    ) -> Result<(), Error> {
        let mut tx = Held::new(self, lease).begin().await?;
        keep(&mut tx, lease.job(), SecretPart::Result, secret, keep_for).await?;
        tx.commit().await
    }

    /// The secrets that came of a job, as long as nobody has taken them.
    pub async fn result_secret(&self, job: JobId) -> Result<Option<Sealed>, Error> {
        self.db().read(OF_RESULT, params![job]).await?.first().map(sealed).transpose()
    }

    /// Shreds the secrets that came of a job. False if somebody else was quicker: then they are not to be shown.
    pub async fn take_result_secret(&self, job: JobId, id: Uuid) -> Result<bool, Error> {
        let params = params![job, SecretPart::Result.as_str(), id];
        Ok(!self.db().write(SHRED_ONE, params).await?.is_empty())
    }

    /// Shreds secrets that have been kept long enough; answers how many.
    pub async fn shred_due(&self) -> Result<usize, Error> {
        Ok(self.db().write(SHRED_DUE, params![]).await?.len())
    }

    /// Lets everybody seal to this key from now on, and to no other of its side.
    pub async fn publish_seal_key(&self, side: SealSide, id: &str, public: &[u8; 32]) -> Result<(), Error> {
        let mut tx = self.db().begin().await?;
        let key = [id.into(), side.as_str().into(), Param::Bytes(public.to_vec())];
        tx.run(PUBLISH, &key).await?;
        tx.run(RETIRE, params![side.as_str(), id]).await?;
        tx.commit().await
    }

    /// The key to seal to, if there is one.
    pub async fn seal_key(&self, side: SealSide) -> Result<Option<SealKey>, Error> {
        self.db().read(NEWEST, params![side.as_str()]).await?.first().map(key).transpose()
    }

    /// Every key there is and was, oldest first.
    pub async fn seal_keys(&self) -> Result<Vec<SealKey>, Error> {
        self.db().read(KEYS, params![]).await?.iter().map(key).collect()
    }

    /// Turns what is sealed to a key to another one, as `turn` does it for whose it is and what part; what it leaves alone
    /// stays. Answers how many were turned.
    pub async fn turn_secrets<E: From<Error>>(
        &self,
        key_id: &str,
        turn: impl Fn(Uuid, SecretPart, &Sealed) -> Result<Option<Sealed>, E>,
    ) -> Result<usize, E> {
        let (mut count, mut after) = (0, JobId(Uuid::nil()));
        loop {
            let rows = self.db().read(SEALED_TO, params![key_id, after, REWRAP_MAX]).await?;
            let Some(last) = rows.last() else { return Ok(count) };
            after = last.job("job_id")?;
            for row in &rows {
                let part = if row.text("part")? == "input" { SecretPart::Input } else { SecretPart::Result };
                let owner = crate::claim::owner(row)?.key();
                let Some(turned) = turn(owner, part, &sealed(row)?)? else { continue };
                let (job, wrapped) = (row.job("job_id")?, Param::Bytes(turned.wrapped));
                let params =
                    [job.into(), part.as_str().into(), turned.id.into(), turned.key_id.into(), wrapped];
                count += self.db().write(REWRAP, &params).await?.len();
            }
        }
    }
}

fn sealed(row: &Row) -> Result<Sealed, Error> {
    Ok(Sealed {
        id: row.uuid("id")?,
        key_id: row.text("key_id")?,
        wrapped: row.bytes("wrapped")?,
        content: row.bytes("content")?,
    })
}

fn key(row: &Row) -> Result<SealKey, Error> {
    let side = match row.text("side")?.as_str() {
        "worker" => SealSide::Worker,
        _ => SealSide::Web,
    };
    Ok(SealKey {
        id: row.text("id")?,
        side,
        public: row.bytes("public")?,
        created_at: row.moment("created_at")?,
        retired_at: row.opt_moment("retired_at")?,
        in_use: row.int("in_use")?,
    })
}
