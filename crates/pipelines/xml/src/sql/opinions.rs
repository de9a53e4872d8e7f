//! Results that no language model has looked at.

use ode_job::JobId;
use ode_store::Error;
use ode_store::sql::{Sql, params};

/// Converted since this id, with a result, and not yet seen by a model.
const UNASKED: &str =
    "SELECT p.id FROM job_past p WHERE p.id >= $1 AND p.pipeline = 'xml' AND p.state = 'complete'
        AND EXISTS (SELECT 1 FROM job_artifact a WHERE a.job_id = p.id AND a.role = 'result')
        AND NOT EXISTS (SELECT 1 FROM checks c WHERE c.job_id = p.id AND c.kind = 'model')
    ORDER BY p.id LIMIT $2";

/// Conversions, from this one on, about which no model was asked yet; oldest first.
pub async fn without_opinion(sql: Sql<'_>, from: JobId, count: usize) -> Result<Vec<JobId>, Error> {
    let count = i64::try_from(count).unwrap_or(i64::MAX);
    sql.read(UNASKED, params![from, count]).await?.iter().map(|row| row.job("id")).collect()
}
