//! Work that is done once for all processes: a dated right to do it, so that two do not, and one that died does not keep
//! the others from it.

use crate::database::db::{Row, Tx, params};
use crate::error::Error;
use crate::files::leftovers::LEFTOVERS;
use crate::{Store, micros};
use jiff::Timestamp;
use ode_job::WorkerId;
use std::time::Duration;

const KNOWN: &str = "INSERT INTO chore (name) VALUES ($1) ON CONFLICT (name) DO NOTHING";
const TAKE: &str = "UPDATE chore SET holder = $2, taken_at = {now}, until = {after $3}
    WHERE name = $1 AND (until IS NULL OR until < {now} OR holder = $2)
        AND (done_at IS NULL OR done_at <= {after $4}) RETURNING name";
const KEEP: &str = "UPDATE chore SET until = {after $3}
    WHERE name = $1 AND holder = $2 AND until >= {now} RETURNING name";
const DONE: &str = "UPDATE chore SET holder = NULL, until = NULL, done_at = taken_at
    WHERE name = $1 AND holder = $2 RETURNING name";
const LEAVE: &str =
    "UPDATE chore SET holder = NULL, until = NULL WHERE name = $1 AND holder = $2 RETURNING name";
/// A worker that is known to be gone is at nothing any more. Others, such as commands, are never known.
const FREE: &str = "UPDATE chore SET holder = NULL, until = NULL
    WHERE holder IN (SELECT w.id FROM worker w WHERE w.id = $1 OR w.alive_until < {now})";
const HELD: &str = "SELECT holder, taken_at FROM chore WHERE name = $1 AND until >= {now}";

/// How long one process is believed to be at a chore without saying so again: shorter for what others wait for.
fn held_for(name: &str) -> Duration {
    Duration::from_secs(if name == LEFTOVERS { 60 } else { 300 })
}
/// How often it says so in that time.
const KEPT_OFTEN: u32 = 4;

/// Somebody's time at a chore.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hold {
    /// Who is at it.
    pub holder: WorkerId,
    /// Since when: the same one may take it again.
    pub taken_at: Timestamp,
}

impl Store {
    /// Takes a chore that was not done for `every`. False if it was, or if another process is at it.
    pub async fn take_chore(&self, name: &str, who: WorkerId, every: Duration) -> Result<bool, Error> {
        self.db().write(KNOWN, params![name]).await?;
        let params = params![name, who, micros(held_for(name)), -micros(every)];
        Ok(!self.db().write(TAKE, params).await?.is_empty())
    }

    /// Works at a chore that was taken for as long as it is ours, keeping others from it meanwhile. Nothing if it was lost on
    /// the way; if the work fails, it is left to whoever comes next.
    pub async fn at_chore<T>(
        &self,
        name: &str,
        who: WorkerId,
        work: impl Future<Output = Result<T, Error>>,
    ) -> Result<Option<T>, Error> {
        let lost = async {
            loop {
                tokio::time::sleep(held_for(name) / KEPT_OFTEN).await;
                if !self.keep_chore(name, who).await? {
                    tracing::warn!("{name} was given up: this process had not been heard of for too long");
                    return Ok(None);
                }
            }
        };
        let done = tokio::select! {
            done = work => done.map(Some),
            lost = lost => lost,
        };
        if done.is_err() {
            // Where that fails as well, it is free in a while.
            let _ = self.leave_chore(name, who).await;
        }
        done
    }

    /// Says that it is still at it. False if it is another's by now, or may be.
    pub async fn keep_chore(&self, name: &str, who: WorkerId) -> Result<bool, Error> {
        Ok(!self.db().write(KEEP, params![name, who, micros(held_for(name))]).await?.is_empty())
    }

    /// Opens a transaction of whoever is at a chore: nobody can take it over before that ends. Nothing if it is another's by
    /// now, or may be.
    pub async fn begin_at_chore(&self, name: &str, who: WorkerId) -> Result<Option<Tx>, Error> {
        let mut tx = self.db().begin().await?;
        let kept = tx.run(KEEP, params![name, who, micros(held_for(name))]).await?;
        Ok(if kept.is_empty() { None } else { Some(tx) })
    }

    /// Frees the chores of lost workers, and those of this one, which takes its leave.
    pub(crate) async fn free_chores(&self, leaving: Option<WorkerId>) -> Result<(), Error> {
        self.db().write(FREE, params![leaving.map(|worker| worker.0)]).await.map(drop)
    }

    /// Who is at it, if anybody is.
    pub async fn chore_hold(&self, name: &str) -> Result<Option<Hold>, Error> {
        let rows = self.db().read(HELD, params![name]).await?;
        let hold =
            |row: &Row| Ok(Hold { holder: WorkerId(row.uuid("holder")?), taken_at: row.moment("taken_at")? });
        rows.first().map(hold).transpose()
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
