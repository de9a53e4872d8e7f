//! What keeps a script from getting in line beside its moment: jobs that it needs, and a turn that another has.
//!
//! A script that waits is `pending` and has no moment. Whatever it waits for gives it one when it ends (a trigger on
//! `job_past`), and whoever promotes due jobs looks here. Looking takes the turn first and the job's row second, as the
//! trigger does: what happens meanwhile comes after it, and gives the job another moment.

use super::submit::TAKE_TURN;
use ode_job::JobId;
use ode_store::sql::{Param, Row, Sql, params};
use ode_store::{Error, Gate, Gates};
use serde_json::json;
use std::collections::HashMap;
use uuid::Uuid;

/// What a script may wait for.
#[derive(Debug)]
struct Wait {
    owner: Uuid,
    turn: Option<String>,
}

/// One that only has a moment has a row, too, but waits for nobody.
const WAITS: &str =
    "SELECT o.job_id, o.owner, o.turn FROM {rows $1: id uuid} JOIN script_order o ON o.job_id = r.id
    WHERE o.turn IS NOT NULL OR EXISTS (SELECT 1 FROM script_need n WHERE n.job_id = o.job_id)";
/// Locks the row, if it still waits for somebody to look.
const LOCK: &str = "UPDATE job_live SET updated_at = {now} WHERE id = $1 AND lane IS NULL AND run_at <= {now}
    RETURNING id";
const NEEDS: &str =
    "SELECT n.needs, p.state, p.kind, p.error_message, CASE WHEN l.id IS NULL THEN 0 ELSE 1 END AS live
    FROM script_need n LEFT JOIN job_live l ON l.id = n.needs LEFT JOIN job_past p ON p.id = n.needs
    WHERE n.job_id = $1 ORDER BY n.needs";
const HOLDER: &str = "SELECT holder FROM script_turn WHERE owner = $1 AND turn = $2";
const LEAVE_TURN: &str = "DELETE FROM script_turn WHERE holder = $1";
const WAIT: &str = "UPDATE job_live SET run_at = NULL, updated_at = {now} WHERE id = $1";

/// The gates of those of these scripts that may wait for more than their moment, which has come.
pub(crate) async fn look(sql: Sql<'_>, ids: &[JobId]) -> Result<Gates, Error> {
    let mut gates = Gates::new();
    let waits = waits(sql, ids).await?;
    // In the order in which they came due: the first takes a turn that is free.
    for id in ids {
        if let Some(wait) = waits.get(id) {
            gates.insert(*id, pass(sql, *id, wait).await?);
        }
    }
    Ok(gates)
}

/// Whether a script may wait for more than its moment.
pub(crate) async fn may_wait(sql: Sql<'_>, id: JobId) -> Result<bool, Error> {
    Ok(!waits(sql, &[id]).await?.is_empty())
}

/// Those of these jobs that may wait for more than their moment.
async fn waits(sql: Sql<'_>, ids: &[JobId]) -> Result<HashMap<JobId, Wait>, Error> {
    if ids.is_empty() {
        return Ok(HashMap::new());
    }
    let rows = Param::rows(ids.iter().map(|id| json!({ "id": id })));
    let wait =
        |row: &Row| Ok((row.job("job_id")?, Wait { owner: row.uuid("owner")?, turn: row.opt_text("turn")? }));
    sql.read(WAITS, &[rows]).await?.iter().map(wait).collect()
}

/// Looks what is in the way of a script. Where nothing is, it has its turn from now on.
async fn pass(sql: Sql<'_>, id: JobId, wait: &Wait) -> Result<Gate, Error> {
    let mut tx = sql.begin().await?;
    if let Some(turn) = &wait.turn {
        tx.run(TAKE_TURN, params![wait.owner, turn.as_str(), id]).await?;
    }
    if tx.run(LOCK, params![id]).await?.is_empty() {
        return Ok(Gate::Closed);
    }
    let mut is_closed = false;
    for need in tx.run(NEEDS, params![id]).await? {
        if let Some(why) = broken(&need)? {
            return Ok(Gate::Broken { needs: need.job("needs")?, why });
        }
        is_closed |= need.int("live")? == 1;
    }
    if let Some(turn) = &wait.turn {
        let holder = tx.run(HOLDER, params![wait.owner, turn.as_str()]).await?;
        is_closed |= holder.first().map(|row| row.job("holder")).transpose()? != Some(id);
    }
    if is_closed {
        tx.run(LEAVE_TURN, params![id]).await?;
        tx.run(WAIT, params![id]).await?;
    }
    tx.commit().await?;
    Ok(if is_closed { Gate::Closed } else { Gate::Open })
}

/// Why a needed job cannot complete any more, unless it can or has.
fn broken(need: &Row) -> Result<Option<String>, Error> {
    if need.int("live")? == 1 {
        return Ok(None);
    }
    let reference = need.job("needs")?.reference();
    let Some(state) = need.opt_text("state")? else {
        return Ok(Some(format!("It needs job {reference}, which was removed")));
    };
    let how = match state.as_str() {
        "completed" => return Ok(None),
        "cancelled" => "was cancelled",
        "timed_out" => "ran out of time",
        _ => "failed",
    };
    let kind = need.text("kind")?;
    let said = need.opt_text("error_message")?.map(|said| format!(": {said}")).unwrap_or_default();
    Ok(Some(format!("It needs job {reference} ({kind}), which {how}{said}")))
}
