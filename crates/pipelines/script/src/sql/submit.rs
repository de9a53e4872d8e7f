//! Scripts as they are asked for: alone or as a batch in which later ones need earlier ones, with their secrets under
//! seal, and with a turn that one job at a time has.

use super::secrets;
use crate::record::{Sealed, SecretPart};
use jiff::Timestamp;
use ode_job::{JobId, NewJob, Owner, State};
use ode_store::sql::{Sql, Tx, params};
use ode_store::{EnqueuedTogether, Error, NewJobs, Store, fingerprint};
use serde_json::json;
use std::time::Duration;
use uuid::Uuid;

/// A script that is asked for.
#[derive(Debug, Clone)]
pub struct NewScript {
    /// The job, without its secrets.
    pub job: NewJob,
    pub secret: Option<Sealed>,
    /// How long they are kept for whoever tries the job again after it failed.
    pub keep_secret: Duration,
    /// While another job of the same owner has this turn, it waits.
    pub turn: Option<String>,
    /// It waits until all of these have completed, and is called off when one of them cannot.
    pub needs: Vec<Need>,
}

/// A job that another one needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub enum Need {
    Job(JobId),
    /// One of the same batch, by its place in it.
    Earlier(usize),
}

/// Scripts that are asked for together: all become jobs, or none.
#[derive(Debug, Clone)]
pub struct NewScripts {
    pub owner: Owner,
    /// A second request with the same key is answered with the first one's jobs.
    pub idempotency_key: Option<String>,
    /// The name of the batch, if it is one.
    pub batch: Option<Uuid>,
    /// The scripts, earlier ones first.
    pub scripts: Vec<NewScript>,
}

/// What became of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AcceptedScripts {
    /// The jobs, in the order asked for.
    pub ids: Vec<JobId>,
    /// Where each of them stands.
    pub states: Vec<State>,
    /// The name of their batch.
    pub batch: Option<Uuid>,
    /// Whether an earlier request under the same key made them.
    pub is_known: bool,
}

pub(crate) const TAKE_TURN: &str = "INSERT INTO script_turn (owner, turn, holder) VALUES ($1, $2, $3)
    ON CONFLICT DO NOTHING RETURNING holder";
const ADD_ORDER: &str =
    "INSERT INTO script_order (job_id, owner, turn, batch, place, run_at) VALUES ($1, $2, $3, $4, $5, $6)";
const ADD_NEED: &str = "INSERT INTO script_need (job_id, needs) VALUES ($1, $2) ON CONFLICT DO NOTHING";
/// The place is selected, too: sorted by what is not, SQLite makes the whole view of jobs first.
pub(crate) const OF_BATCH: &str = "SELECT o.job_id, o.batch, o.place, j.state
    FROM script_order k JOIN script_order o ON o.batch = k.batch JOIN jobs j ON j.id = o.job_id
    WHERE k.job_id = $1 ORDER BY o.place";
const ALONE: &str = "SELECT id AS job_id, state FROM jobs WHERE id = $1";

/// Accepts scripts, all or none. When this returns, they are durable.
pub async fn submit(store: &Store, scripts: &NewScripts) -> Result<AcceptedScripts, Error> {
    let mut jobs: Vec<NewJob> = scripts.scripts.iter().map(|script| script.job.clone()).collect();
    if let Some(first) = jobs.first_mut() {
        first.idempotency_key = scripts.idempotency_key.clone();
    }
    let keep = |new| keep_scripts(scripts, new);
    match store.enqueue_beside(&jobs, &scripts.fingerprint(), keep).await? {
        EnqueuedTogether::New(jobs) => {
            let (ids, states) = jobs.into_iter().unzip();
            Ok(AcceptedScripts { ids, states, batch: scripts.batch, is_known: false })
        }
        EnqueuedTogether::Existing(first) => known_scripts(store.sql(), first).await,
    }
}

/// Stores what belongs to new jobs beside their rows, and decides which of them are held.
async fn keep_scripts(scripts: &NewScripts, mut new: NewJobs) -> Result<NewJobs, Error> {
    let ids = new.ids();
    for (place, script) in scripts.scripts.iter().enumerate() {
        if script.waits(new.tx(), scripts.owner.key(), ids[place]).await? {
            new.hold(place);
        }
    }
    new.insert().await?;
    for (place, script) in scripts.scripts.iter().enumerate() {
        script.keep(new.tx(), scripts, &ids, place).await?;
    }
    Ok(new)
}

/// The jobs that a request under the same key made, of which this is the first.
async fn known_scripts(sql: Sql<'_>, first: JobId) -> Result<AcceptedScripts, Error> {
    let mut rows = sql.read(OF_BATCH, params![first]).await?;
    let batch = rows.first().map_or(Ok(None), |row| row.opt_uuid("batch"))?;
    if rows.is_empty() {
        rows = sql.read(ALONE, params![first]).await?;
    }
    let ids = rows.iter().map(|row| row.job("job_id")).collect::<Result<_, _>>()?;
    let states = rows.iter().map(|row| row.name("state")).collect::<Result<_, _>>()?;
    Ok(AcceptedScripts { ids, states, batch, is_known: true })
}

impl NewScripts {
    /// What makes two requests the same. Secrets do not count: nothing that would tell them apart is kept.
    fn fingerprint(&self) -> String {
        let each = |script: &NewScript| json!([fingerprint(&script.job), script.turn, script.needs]);
        let text = json!([self.batch.is_some(), self.scripts.iter().map(each).collect::<Vec<_>>()]);
        ode_store::sha256_hex(text.to_string())
    }
}

impl NewScript {
    /// Whether something is in the way of a new script. Where nothing is, it has its turn from now on.
    async fn waits(&self, tx: &mut Tx, owner: Uuid, id: JobId) -> Result<bool, Error> {
        let is_later = self.job.run_at.is_some_and(|at| at > Timestamp::now());
        if is_later || !self.needs.is_empty() {
            return Ok(true);
        }
        let Some(turn) = &self.turn else { return Ok(false) };
        Ok(tx.run(TAKE_TURN, params![owner, turn.as_str(), id]).await?.is_empty())
    }

    /// Keeps what belongs to the job beside its row.
    async fn keep(
        &self,
        tx: &mut Tx,
        scripts: &NewScripts,
        ids: &[JobId],
        place: usize,
    ) -> Result<(), Error> {
        let id = ids[place];
        let run_at = self.job.run_at;
        if self.turn.is_some() || scripts.batch.is_some() || run_at.is_some() || !self.needs.is_empty() {
            let number = i64::try_from(place).unwrap_or(i64::MAX);
            let owner = scripts.owner.key();
            tx.run(ADD_ORDER, params![id, owner, self.turn.as_deref(), scripts.batch, number, run_at])
                .await?;
        }
        for need in &self.needs {
            let needed = match need {
                Need::Job(job) => *job,
                Need::Earlier(place) => ids[*place],
            };
            tx.run(ADD_NEED, params![id, needed]).await?;
        }
        if let Some(sealed) = &self.secret {
            secrets::keep(tx, id, SecretPart::Input, sealed, self.keep_secret).await?;
        }
        Ok(())
    }
}
