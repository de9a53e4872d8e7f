//! What was found out about results: written with the end of the attempt, or later by whoever looked again.

use crate::Store;
use crate::database::db::{Param, Row, params, without_nul};
use crate::error::Error;
use ode_job::check::Opinion;
use ode_job::{Check, JobId};
use serde_json::{Value, json};
use uuid::Uuid;

pub(crate) const ADD_CHECKS: &str =
    "INSERT INTO checks (id, job_id, kind, severity, code, field, message, model, prompt_version, confidence, output)
    SELECT r.id, r.job_id, r.kind, r.severity, r.code, r.field, r.message, r.model, r.prompt_version, r.confidence, r.output
    FROM {rows $1: id uuid, job_id uuid, kind text, severity text, code text, field text, message text, model text,
        prompt_version text, confidence float8, output json}";
const CHECKS: &str = "SELECT kind, severity, code, field, message, model, prompt_version, confidence, output
    FROM checks WHERE job_id = $1 ORDER BY id";

/// A check as the row it becomes.
pub(crate) fn check_row(job: JobId, check: &Check) -> Value {
    let opinion = check.opinion.as_ref();
    let mut output = opinion.map(|opinion| opinion.output.clone());
    output.iter_mut().for_each(crate::database::db::blank_nuls);
    json!({
        "id": Uuid::now_v7(), "job_id": job, "kind": check.kind, "severity": check.severity,
        "code": without_nul(&check.code), "field": check.field.as_deref().map(without_nul),
        "message": without_nul(&check.message), "model": opinion.map(|opinion| without_nul(&opinion.model)),
        "prompt_version": opinion.map(|opinion| without_nul(&opinion.prompt_version)),
        "confidence": opinion.and_then(|opinion| opinion.confidence), "output": output,
    })
}

impl Store {
    /// What was found out about a job's result, in the order it was found.
    pub async fn checks(&self, job: JobId) -> Result<Vec<Check>, Error> {
        self.db().read(CHECKS, params![job]).await?.iter().map(check).collect()
    }

    /// Adds what was found out after the job had ended.
    pub async fn add_checks(&self, job: JobId, checks: &[Check]) -> Result<(), Error> {
        let rows = checks.iter().map(|check| check_row(job, check));
        self.db().write(ADD_CHECKS, &[Param::rows(rows)]).await.map(drop)
    }
}

fn check(row: &Row) -> Result<Check, Error> {
    let opinion = match row.opt_text("model")? {
        None => None,
        Some(model) => Some(Opinion {
            model,
            prompt_version: row.opt_text("prompt_version")?.unwrap_or_default(),
            confidence: row.opt_real("confidence")?,
            output: row.opt_json("output")?.unwrap_or_default(),
        }),
    };
    Ok(Check {
        kind: row.name("kind")?,
        severity: row.name("severity")?,
        code: row.text("code")?,
        field: row.opt_text("field")?,
        message: row.text("message")?,
        opinion,
    })
}
