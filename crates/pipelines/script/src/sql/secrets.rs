//! Secrets of scripts, under seal: who may be given them, and when they go.
//!
//! Nothing here can open one. Shredding forgets the content's own key together with the content.

use crate::record::{Sealed, SecretPart};
use ode_job::{ErrorCode, JobId};
use ode_store::Error;
use ode_store::sql::{Held, Param, Row, Sql, Tx, micros, owner, params};
use std::time::Duration;
use uuid::Uuid;

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
pub(crate) const SEALED_TO: &str = "SELECT s.job_id, s.part, s.id, s.key_id, s.wrapped, s.content,
        j.session_id, j.user_id, j.organisation_id
    FROM script_secret s JOIN jobs j ON j.id = s.job_id
    WHERE s.key_id = $1 AND s.shredded_at IS NULL AND s.job_id > $2 ORDER BY s.job_id LIMIT $3";
/// Only where it is still the seal that was opened: it may have been shredded or replaced meanwhile.
const REWRAP: &str = "UPDATE script_secret SET key_id = $4, wrapped = $5
    WHERE job_id = $1 AND part = $2 AND id = $3 AND shredded_at IS NULL RETURNING job_id";

/// How many seals are turned to another key at a time.
const REWRAP_MAX: i64 = 500;

/// Keeps secrets of a job, in place of those of the same part that it has.
pub async fn keep(
    tx: &mut Tx,
    job: JobId,
    part: SecretPart,
    sealed: &Sealed,
    keep_for: Duration,
) -> Result<(), Error> {
    tx.run(KEEP, &sealed_params(job, part, sealed, keep_for)).await.map(drop)
}

/// Keeps the secrets of a job that is tried again, and refuses the retry where they are gone and no new ones were kept.
pub(crate) async fn renew(tx: &mut Tx, job: JobId) -> Result<(), Error> {
    if !tx.run(IS_SHREDDED, params![job]).await?.is_empty() {
        let reason = format!(
            "The secrets of job {job} are gone. Send all of them with the request to try it again, as `secrets`, by the names \
             that its input has under $secret."
        );
        return Err(Error::declined(ErrorCode::Conflict, reason));
    }
    tx.run(KEEP_ON, params![job]).await.map(drop)
}

/// The secrets that were sent with a job, for the worker that holds it.
pub async fn held_secret(held: Held<'_>) -> Result<Option<Sealed>, Error> {
    let rows = held.read(HELD, &held.params()).await?;
    rows.first().map(sealed).transpose()
}

/// Keeps secrets that came of a job, if the lease still holds. They are shown until `keep_for` after its end.
pub async fn keep_result_secret(held: Held<'_>, secret: &Sealed, keep_for: Duration) -> Result<(), Error> {
    let mut tx = held.begin().await?;
    keep(&mut tx, held.job(), SecretPart::Result, secret, keep_for).await?;
    tx.commit().await
}

/// The secrets that came of a job, as long as nobody has taken them.
pub async fn result_secret(sql: Sql<'_>, job: JobId) -> Result<Option<Sealed>, Error> {
    sql.read(OF_RESULT, params![job]).await?.first().map(sealed).transpose()
}

/// Shreds the secrets that came of a job. False if somebody else was quicker: then they are not to be shown.
pub async fn take_result_secret(sql: Sql<'_>, job: JobId, id: Uuid) -> Result<bool, Error> {
    let params = params![job, SecretPart::Result.as_str(), id];
    Ok(!sql.write(SHRED_ONE, params).await?.is_empty())
}

/// Shreds secrets that have been kept long enough; answers how many.
pub async fn shred_due(sql: Sql<'_>) -> Result<usize, Error> {
    Ok(sql.write(SHRED_DUE, params![]).await?.len())
}

/// Turns what is sealed to a key to another one, as `turn` does it for whose it is and what part; what it leaves alone
/// stays. Answers how many were turned.
pub async fn turn_secrets<E: From<Error>>(
    sql: Sql<'_>,
    key_id: &str,
    turn: impl Fn(Uuid, SecretPart, &Sealed) -> Result<Option<Sealed>, E>,
) -> Result<usize, E> {
    let (mut count, mut after) = (0, JobId(Uuid::nil()));
    loop {
        let rows = sql.read(SEALED_TO, params![key_id, after, REWRAP_MAX]).await?;
        let Some(last) = rows.last() else { return Ok(count) };
        after = last.job("job_id")?;
        for row in &rows {
            let part = if row.text("part")? == "input" { SecretPart::Input } else { SecretPart::Result };
            let whose = owner(row)?.key();
            let Some(turned) = turn(whose, part, &sealed(row)?)? else { continue };
            let (job, wrapped) = (row.job("job_id")?, Param::Bytes(turned.wrapped));
            let params = [job.into(), part.as_str().into(), turned.id.into(), turned.key_id.into(), wrapped];
            count += sql.write(REWRAP, &params).await?.len();
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

/// A seal as parameters, in the order of the columns.
fn sealed_params(job: JobId, part: SecretPart, sealed: &Sealed, keep: Duration) -> [Param; 7] {
    [
        job.into(),
        part.as_str().into(),
        sealed.id.into(),
        sealed.key_id.as_str().into(),
        Param::Bytes(sealed.wrapped.clone()),
        Param::Bytes(sealed.content.clone()),
        micros(keep).into(),
    ]
}
