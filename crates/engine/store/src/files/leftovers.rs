//! What attempts left at places of callers. The next attempt takes it away before it does anything else; when the job failed
//! there is none, so that somebody else has to.
//!
//! A job that failed may be tried again by hand at any moment, and the new attempt may publish while what the last one left is
//! being taken away. A storage cannot delete a file only if it is still the one that was looked at, so the two are kept
//! apart here: only who holds the chore [`LEFTOVERS`] takes away what attempts left, and reads how things are once it holds
//! it; an attempt that is not the first publishes only when it has seen that nobody holds it, or that whoever did has gone
//! ([`Store::leftovers_gone`]). Whoever takes the chore after that attempt has begun leaves its job alone: who looks for jobs
//! that failed finds it running, and an attempt that takes away what those before it left sees that it is not the last one
//! ([`Store::is_last_attempt`]). A result goes with its job when that is deleted, which is refused until the job has ended;
//! where it failed, by who holds the chore ([`Store::at_leftovers`]).

use crate::Store;
use crate::attempts::claim::owner;
use crate::database::db::{Row, params};
use crate::error::Error;
use crate::files::places::{Destination, Places};
use jiff::Timestamp;
use ode_job::{FailureKind, JobId, Pipeline, WorkerId};
use serde_json::Value;
use std::time::Duration;
use uuid::Uuid;

/// The chore of looking. Its date says from when on jobs may not have been looked at.
pub const LEFTOVERS: &str = "leftovers";
/// Jobs that failed shortly before the last look may have been committed after it.
const COMMIT_LAG: Duration = Duration::from_secs(60);
/// Jobs looked at with one statement.
const PART: i64 = 500;
/// How often it is looked whether the chore is done.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// How often it is tried to be the next at it.
const TRY_EVERY: Duration = Duration::from_millis(50);
/// What takes longer to be taken away is waited for in line, not in a slot.
const PATIENCE: Duration = Duration::from_secs(30);

const DONE_AT: &str = "SELECT done_at FROM chore WHERE name = $1 AND done_at IS NOT NULL";
const FAILED: &str = "SELECT id, fence, input, session_id, user_id, organisation_id FROM job_past
    WHERE error_code IS NOT NULL AND id > $1 AND pipeline = $4 AND attempts > 0 AND finished_at >= $2
    ORDER BY id LIMIT $3";
const LAST: &str = "SELECT id FROM job_live WHERE id = $1 AND fence = $2";

/// A pipeline whose jobs publish files at places of callers.
#[derive(Debug, Clone, Copy)]
pub struct Publisher {
    pub pipeline: Pipeline,
    /// Returns the prefix that the input of a job names, if it names one.
    pub prefix: fn(&Value) -> Option<&str>,
}

/// What was taken away.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Withdrawn {
    /// Files or folders.
    pub removed: u64,
    /// Jobs whose place could not be reached; they are looked at again.
    pub unreached: u64,
}

impl Store {
    /// Returns once whoever takes away what attempts left has gone; those who come after do not matter. False if that takes
    /// longer than somebody may wait.
    pub async fn leftovers_gone(&self) -> Result<bool, Error> {
        let began = tokio::time::Instant::now();
        let first = self.chore_hold(LEFTOVERS).await?;
        let mut there = first;
        while there.is_some() && there == first {
            if began.elapsed() >= PATIENCE {
                return Ok(false);
            }
            tokio::time::sleep(LOOK_EVERY).await;
            there = self.chore_hold(LEFTOVERS).await?;
        }
        Ok(true)
    }

    /// Whether no attempt at a job has begun after this one, and the job has not ended.
    pub async fn is_last_attempt(&self, job: JobId, fence: i64) -> Result<bool, Error> {
        Ok(!self.db().read(LAST, params![job, fence]).await?.is_empty())
    }

    /// Works while nobody else takes away what attempts left, and no attempt that is not the first publishes. Nothing if
    /// another was at it for longer than this.
    pub async fn at_leftovers<T>(
        &self,
        patience: Duration,
        work: impl Future<Output = Result<T, Error>>,
    ) -> Result<Option<T>, Error> {
        let (who, began) = (WorkerId(Uuid::now_v7()), tokio::time::Instant::now());
        while !self.take_chore(LEFTOVERS, who, Duration::ZERO).await? {
            if began.elapsed() >= patience {
                return Ok(None);
            }
            tokio::time::sleep(TRY_EVERY).await;
        }
        let done = self.at_chore(LEFTOVERS, who, work).await;
        self.leave_chore(LEFTOVERS, who).await?;
        done
    }

    /// Takes away what jobs that failed since [`LEFTOVERS`] was last done left at places of callers. Only who holds that
    /// chore may. Nothing is told if it was lost on the way.
    pub async fn withdraw_failed(
        &self,
        places: &Places,
        publishers: &[Publisher],
        who: WorkerId,
    ) -> Result<Option<Withdrawn>, Error> {
        let withdraw = async {
            let mut withdrawn = Withdrawn::default();
            let since = self.looked_since().await?;
            for publisher in publishers {
                self.withdraw_each(places, publisher, since, &mut withdrawn).await?;
            }
            Ok(withdrawn)
        };
        self.at_chore(LEFTOVERS, who, withdraw).await
    }

    /// The moment from which on jobs that failed may not have been looked at.
    async fn looked_since(&self) -> Result<Timestamp, Error> {
        let rows = self.db().read(DONE_AT, params![LEFTOVERS]).await?;
        let done_at = rows.first().map(|row| row.moment("done_at")).transpose()?;
        Ok(done_at.and_then(|at| at.checked_sub(COMMIT_LAG).ok()).unwrap_or(Timestamp::UNIX_EPOCH))
    }

    async fn withdraw_each(
        &self,
        places: &Places,
        publisher: &Publisher,
        since: Timestamp,
        withdrawn: &mut Withdrawn,
    ) -> Result<(), Error> {
        let mut after = Uuid::nil();
        loop {
            let params = params![after, since, PART, publisher.pipeline.as_str()];
            let rows = self.db().read(FAILED, params).await?;
            for row in &rows {
                after = row.uuid("id")?;
                let input = row.json("input")?;
                if let Some(address) = (publisher.prefix)(&input) {
                    withdraw(places, row, address, withdrawn).await?;
                }
            }
            if rows.is_empty() {
                return Ok(());
            }
        }
    }
}

async fn withdraw(places: &Places, row: &Row, address: &str, withdrawn: &mut Withdrawn) -> Result<(), Error> {
    let job = row.job("id")?;
    // Were it tried again meanwhile, it would be under a higher fence.
    let from = Destination { owner: owner(row)?, job, fence: row.int("fence")?, address };
    match places.withdraw(from).await {
        Ok(removed) => withdrawn.removed += removed,
        Err(failure) if matches!(failure.kind, FailureKind::Rejected) => tell(job, &failure),
        Err(failure) => {
            withdrawn.unreached += 1;
            tell(job, &failure);
        }
    }
    Ok(())
}

fn tell(job: JobId, failure: &ode_job::Failure) {
    tracing::warn!(job.id = %job, detail = failure.detail, "what job {job} left at its output prefix could not be taken away: {failure}");
}
