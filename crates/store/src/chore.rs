//! Work that is done once for all processes: a dated right to do it, so that two do not, and one that died does not keep
//! the others from it.

use crate::db::params;
use crate::error::Error;
use crate::{Store, micros};
use ode_job::WorkerId;
use std::time::Duration;

const KNOWN: &str = "INSERT INTO chore (name) VALUES ($1) ON CONFLICT (name) DO NOTHING";
const TAKE: &str = "UPDATE chore SET holder = $2, taken_at = {now}, until = {after $3}
    WHERE name = $1 AND (until IS NULL OR until < {now} OR holder = $2)
        AND (done_at IS NULL OR done_at <= {after $4}) RETURNING name";
const KEEP: &str = "UPDATE chore SET until = {after $3} WHERE name = $1 AND holder = $2 RETURNING name";
const DONE: &str = "UPDATE chore SET holder = NULL, until = NULL, done_at = taken_at
    WHERE name = $1 AND holder = $2 RETURNING name";
const LEAVE: &str =
    "UPDATE chore SET holder = NULL, until = NULL WHERE name = $1 AND holder = $2 RETURNING name";
const HELD: &str = "SELECT name FROM chore WHERE name = $1 AND until >= {now}";

/// How long one process is believed to be at it without saying so again.
const HELD_FOR: Duration = Duration::from_secs(300);

impl Store {
    /// Takes a chore that was not done for `every`. False if it was, or if another process is at it.
    pub async fn take_chore(&self, name: &str, who: WorkerId, every: Duration) -> Result<bool, Error> {
        self.db().write(KNOWN, params![name]).await?;
        let params = params![name, who, micros(HELD_FOR), -micros(every)];
        Ok(!self.db().write(TAKE, params).await?.is_empty())
    }

    /// Says that it is still at it. False if it is another's by now.
    pub async fn keep_chore(&self, name: &str, who: WorkerId) -> Result<bool, Error> {
        Ok(!self.db().write(KEEP, params![name, who, micros(HELD_FOR)]).await?.is_empty())
    }

    /// Whether somebody is at it.
    pub async fn is_chore_held(&self, name: &str) -> Result<bool, Error> {
        Ok(!self.db().read(HELD, params![name]).await?.is_empty())
    }

    /// Leaves it to whoever comes next: it is not done.
    pub async fn leave_chore(&self, name: &str, who: WorkerId) -> Result<bool, Error> {
        Ok(!self.db().write(LEAVE, params![name, who]).await?.is_empty())
    }

    /// Says that it is done, as of when it was taken.
    pub async fn end_chore(&self, name: &str, who: WorkerId) -> Result<bool, Error> {
        Ok(!self.db().write(DONE, params![name, who]).await?.is_empty())
    }
}
