//! Turns to call somebody who allows so many calls a minute to all processes together.

use ode_store::Error;
use ode_store::sql::{Sql, params};
use std::time::Duration;

/// A turn that others took this often between reading and writing is left to them.
const TRIES_MAX: usize = 5;

const TURN: &str = "SELECT full_at, {now} AS now FROM provider_turns WHERE name = $1";
const TURN_FIRST: &str = "INSERT INTO provider_turns (name, full_at) VALUES ($1, {now})
    ON CONFLICT (name) DO NOTHING";
const TURN_TAKE: &str =
    "UPDATE provider_turns SET full_at = $3 WHERE name = $1 AND full_at = $2 RETURNING name";

/// Takes a turn with a provider that allows so many calls a minute; returns how long to wait if there is none.
pub async fn take_turn(sql: Sql<'_>, name: &str, calls_a_minute: u32) -> Result<Option<Duration>, Error> {
    const CROWDED: Duration = Duration::from_millis(100);
    let (window, interval) = (Duration::from_secs(60), Duration::from_secs(60) / calls_a_minute.max(1));
    for _ in 0..TRIES_MAX {
        let rows = sql.read(TURN, params![name]).await?;
        let Some(row) = rows.first() else {
            sql.write(TURN_FIRST, params![name]).await?;
            continue;
        };
        let (full_at, now) = (row.moment("full_at")?, row.moment("now")?);
        let next = full_at.max(now) + interval;
        let wait = Duration::try_from(next.duration_since(now)).unwrap_or_default().saturating_sub(window);
        if !wait.is_zero() {
            return Ok(Some(wait));
        }
        if !sql.write(TURN_TAKE, params![name, full_at, next]).await?.is_empty() {
            return Ok(None);
        }
    }
    Ok(Some(CROWDED))
}
