//! What attempts at scripts record while they run: the process, the steps, what is done for good; and the types that
//! workers know. Every word of an attempt names its lease.

use crate::record::Run;
use crate::script::Script;
use ode_store::Error;
use ode_store::sql::{Held, Param, Sql, blank_nuls, micros, params, without_nul};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::Duration;

/// A type of script, as workers publish it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScriptType {
    pub name: String,
    /// What it does, for people.
    pub title: String,
    pub version: String,
    /// The digest of its files.
    pub digest: String,
    /// How long an attempt may take.
    pub timeout: Duration,
    /// How often it is tried again.
    pub retries_max: u32,
    /// How long before the first of these.
    pub retry_delay: Duration,
}

impl From<&Script> for ScriptType {
    fn from(script: &Script) -> Self {
        let manifest = &script.manifest;
        ScriptType {
            name: manifest.name.clone(),
            title: manifest.title.clone(),
            version: manifest.version.to_string(),
            digest: script.digest.clone(),
            timeout: manifest.timeout,
            retries_max: manifest.max_retries,
            retry_delay: manifest.retry_delay,
        }
    }
}

const RECORD: &str = "INSERT INTO script_run (job_id, attempt, worker, host, version, digest, pid, start_ticks, boot_id,
        timeout_at, steps, progress_percent, progress_message, current_step, total_steps, error_code)
    SELECT l.id, l.attempts, l.worker, coalesce(w.host, ''), $2, $3, $4, $5, $6, l.timeout_at, {json $7}, $8, $9, $10, $11,
        $12
    FROM job_live l LEFT JOIN worker w ON w.id = l.worker WHERE l.id = $1
    ON CONFLICT (job_id, attempt) DO UPDATE SET worker = excluded.worker, host = excluded.host,
        version = excluded.version, digest = excluded.digest, pid = excluded.pid,
        start_ticks = excluded.start_ticks, boot_id = excluded.boot_id, timeout_at = excluded.timeout_at,
        steps = excluded.steps, progress_percent = excluded.progress_percent,
        progress_message = excluded.progress_message, current_step = excluded.current_step,
        total_steps = excluded.total_steps, error_code = excluded.error_code";
const RUNS_AS: &str = "UPDATE job_live SET process_pid = $2 WHERE id = $1";
const CHECKPOINTS: &str = "SELECT c.key, c.data FROM script_checkpoint c JOIN job_live l ON l.id = c.job_id
    WHERE c.job_id = $1 AND l.fence = $2 AND l.worker = $3";
const CHECKPOINT: &str = "INSERT INTO script_checkpoint (job_id, key, data, attempt)
    SELECT id, $2, $3, attempts FROM job_live WHERE id = $1
    ON CONFLICT (job_id, key) DO UPDATE SET data = excluded.data, attempt = excluded.attempt";
const PUBLISH: &str = "INSERT INTO script_type (name, title, version, digest, timeout_ms, retries_max, retry_delay_ms)
    SELECT r.name, r.title, r.version, r.digest, r.timeout_ms, r.retries_max, r.retry_delay_ms
    FROM {rows $1: name text, title text, version text, digest text, timeout_ms int, retries_max int,
        retry_delay_ms int} WHERE TRUE
    ON CONFLICT (name) DO UPDATE SET title = excluded.title, version = excluded.version, digest = excluded.digest,
        timeout_ms = excluded.timeout_ms, retries_max = excluded.retries_max,
        retry_delay_ms = excluded.retry_delay_ms, published_at = {now}";

/// Says which types of scripts there are; one of the same name is replaced.
pub async fn publish_types(sql: Sql<'_>, types: &[ScriptType]) -> Result<(), Error> {
    let row = |script: &ScriptType| {
        json!({
            "name": script.name, "title": script.title, "version": script.version, "digest": script.digest,
            "timeout_ms": micros(script.timeout) / 1000, "retries_max": script.retries_max,
            "retry_delay_ms": micros(script.retry_delay) / 1000,
        })
    };
    sql.write(PUBLISH, &[Param::rows(types.iter().map(row))]).await.map(drop)
}

/// Records what an attempt runs and how far it is.
pub async fn record_run(held: Held<'_>, run: &Run) -> Result<(), Error> {
    let process = run.process.as_ref();
    let number = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
    let progress = &run.progress;
    let params = params![
        held.job(),
        run.version.as_str(),
        run.digest.as_str(),
        process.map(|process| i64::from(process.pid)),
        process.map(|process| number(process.started)),
        process.map(|process| process.boot.as_str()),
        without_nul(&json!(run.steps).to_string()),
        i64::from(progress.percent.min(100)),
        progress.message.as_deref().map(without_nul),
        i64::from(progress.step),
        i64::from(progress.steps),
        run.code.as_deref().map(without_nul),
    ];
    let mut tx = held.begin().await?;
    tx.run(RECORD, params).await?;
    if let Some(process) = process {
        tx.run(RUNS_AS, params![held.job(), i64::from(process.pid)]).await?;
    }
    tx.commit().await
}

/// What earlier attempts have done for good, for the worker that holds the job.
pub async fn checkpoints(held: Held<'_>) -> Result<BTreeMap<String, Value>, Error> {
    let rows = held.read(CHECKPOINTS, &held.params()).await?;
    rows.iter().map(|row| Ok((row.text("key")?, row.json("data")?))).collect()
}

/// Records that something is done for good, if the lease still holds.
pub async fn checkpoint(held: Held<'_>, key: &str, mut data: Value) -> Result<(), Error> {
    blank_nuls(&mut data);
    let mut tx = held.begin().await?;
    tx.run(CHECKPOINT, params![held.job(), without_nul(key), data]).await?;
    tx.commit().await
}
