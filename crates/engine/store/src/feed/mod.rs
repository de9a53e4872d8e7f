//! The journal as a feed: what has been told since a moment, for whoever wants to know at once.
//!
//! Entries are numbered by the processes that write them and not in the order in which they are committed: one with a
//! lower number may appear after one with a higher. Who follows the feed looks again at the last few seconds of it now and
//! then, and drops what it has seen; see [`Store::seq_at`].

pub(crate) mod webhooks;

use crate::Store;
use crate::database::db::{Param, Row, params};
use crate::error::Error;
use crate::jobs::documents::ids_as_rows;
use jiff::Timestamp;
use ode_job::{Event, JobId, Owner, State};
use serde_json::json;
use tokio::sync::watch;

/// One entry of the journal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Told {
    pub seq: i64,
    pub event: Event,
    /// Before; absent at birth.
    pub from_state: Option<State>,
    /// After.
    pub to_state: State,
    pub at: Timestamp,
    /// To which jobs.
    pub jobs: Vec<JobId>,
}

/// In one row: they are read again and again, and each row costs more than its number.
const NUMBERS: &str = "SELECT {joined seq} AS numbers
    FROM (SELECT seq FROM job_journal WHERE seq > $1 ORDER BY seq LIMIT $2) AS j";
const TOLD: &str = "SELECT j.seq, j.event, j.from_state, j.to_state, j.at, j.jobs
    FROM {rows $1: number int} JOIN job_journal j ON j.seq = r.number ORDER BY j.seq";
pub(crate) const OWNERS: &str = "SELECT id, session_id, user_id, organisation_id FROM jobs
    WHERE id IN (SELECT r.key FROM {rows $1: key uuid})";

impl Store {
    /// The numbers of the entries after `seq`, lowest first: all that looking costs while nothing happens.
    pub async fn told_numbers(&self, seq: i64, limit: usize) -> Result<Vec<i64>, Error> {
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let rows = self.db().read(NUMBERS, params![seq, limit]).await?;
        let joined = rows.first().map_or(Ok(None), |row| row.opt_text("numbers"))?.unwrap_or_default();
        let numbers = joined.split(',').filter(|number| !number.is_empty());
        let number = |number: &str| {
            number.parse().map_err(|_| Error::Corrupt(format!("{number} is no number of an entry")))
        };
        numbers.map(number).collect()
    }

    /// Who owns these jobs, as far as they exist; some belong to two.
    pub async fn owners_of(&self, ids: impl Iterator<Item = JobId>) -> Result<Vec<(JobId, Owner)>, Error> {
        let mut owners = Vec::new();
        for row in &self.db().read(OWNERS, &[ids_as_rows(ids)]).await? {
            let id = row.job("id")?;
            let (session, user) = (row.opt_uuid("session_id")?, row.opt_uuid("user_id")?);
            let found = Owner::of(session, user, row.opt_uuid("organisation_id")?);
            owners.extend(found.map(|owner| (id, owner)));
        }
        Ok(owners)
    }

    /// The entries with these numbers, lowest first.
    pub async fn told(&self, numbers: &[i64]) -> Result<Vec<Told>, Error> {
        let numbers = numbers.iter().map(|number| json!({ "number": number }));
        let rows = self.db().read(TOLD, &[Param::rows(numbers)]).await?;
        // What a newer version wrote is for newer readers; it must not hold up the rest.
        let known = rows.iter().filter_map(|row| {
            told(row)
                .inspect_err(|error| tracing::warn!(%error, "an entry of the journal is not understood"))
                .ok()
        });
        Ok(known.collect())
    }

    /// The number that an entry of this moment would have at least.
    pub fn seq_at(&self, moment: Timestamp) -> i64 {
        crate::jobs::mint::seq_at(moment)
    }

    /// Changes whenever this process has written something. A hint: others write too.
    pub fn nudges(&self) -> watch::Receiver<()> {
        self.inner.told.subscribe()
    }

    /// Says that something was written.
    pub(crate) fn nudge(&self) {
        self.inner.told.send_replace(());
    }
}

fn told(row: &Row) -> Result<Told, Error> {
    Ok(Told {
        seq: row.int("seq")?,
        event: row.name("event")?,
        from_state: row.opt_text("from_state")?.and_then(|state| state.parse().ok()),
        to_state: row.name("to_state")?,
        at: row.moment("at")?,
        jobs: row.jobs("jobs")?,
    })
}
