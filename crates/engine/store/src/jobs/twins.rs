//! The same content from different owners, where an installation shares results between them.
//!
//! Nobody is given somebody else's job: whoever sends what another has sent gets a job of their own, which is done
//! when it is made, with copies of the files. It names the job whose result it has, and outlives it.

use crate::Store;
use crate::database::db::params;
use crate::database::dialect::names::Named;
use crate::error::Error;
use crate::jobs::enqueue::{Enqueued, NewRow};
use crate::jobs::keyed::{Claim, STANDS_WITH_RESULT, claim_keys, find_twin, keep_files};
use crate::schema::columns::{self, Birth};
use ode_job::{Artifact, Event, JobId, NewJob, State};
use serde_json::{Value, json};
use std::collections::HashSet;

/// A job that has done already what is asked for.
#[derive(Debug, Clone, PartialEq)]
pub struct Twin {
    pub id: JobId,
    /// The state in which it is done.
    pub state: State,
    pub result: Option<Value>,
    /// The file with its result.
    pub file: Artifact,
}

pub(crate) const BY_CONTENT: &str = "SELECT jobs.id, jobs.state, jobs.result, a.role, a.name, a.storage, a.path, a.content_type, a.bytes,
        a.sha256
    FROM job_key k JOIN jobs ON jobs.id = k.job_id JOIN job_artifact a ON a.job_id = jobs.id AND a.role = 'result'
    WHERE k.kind = 'dedupe' AND k.key = $1 AND jobs.phase = 'done' ORDER BY jobs.id LIMIT 1";
const BORN_DONE: &str = "INSERT INTO job_past ({done_columns}) VALUES ({done_values})";
const TELL: &str =
    "INSERT INTO job_journal (seq, event, to_state, actor, jobs, details) VALUES ($1, $2, $3, $4, $5, $6)";

impl Store {
    /// A finished job about this content, whoever owns it, whose result can still be fetched.
    pub async fn twin_of_anyone(&self, dedupe_key: &str) -> Result<Option<Twin>, Error> {
        let rows = self.db().read(BY_CONTENT, params![dedupe_key]).await?;
        let twin = rows.first().map(|row| {
            Ok(Twin {
                id: row.job("id")?,
                state: row.name("state")?,
                result: row.opt_json("result")?,
                file: crate::jobs::read::artifact(row)?,
            })
        });
        twin.transpose()
    }

    /// Makes a job that is done already, because its twin is. `files` are its own: the source, and a copy of the
    /// result. Where [`Enqueued::Existing`] is answered, nothing points to them.
    pub async fn enqueue_done(
        &self,
        job: NewJob,
        twin: &Twin,
        files: &[Artifact],
    ) -> Result<Enqueued, Error> {
        job.check()?;
        let (id, seq) = (self.inner.mint.job_id(), self.inner.mint.seq());
        let mut tx = self.db().begin().await?;
        if let Some(key) = &job.dedupe_key {
            let claim = Claim { owner: job.owner.key(), key, job: id, request: None };
            let is_taken = claim_keys(&mut tx, "dedupe", &[claim]).await?.is_empty();
            if is_taken
                && let Some(own) = find_twin(&mut tx, claim, &HashSet::new(), STANDS_WITH_RESULT).await?
            {
                return Ok(Enqueued::Existing(own));
            }
        }
        let dialect = self.dialect();
        let row = NewRow::done(id, job, twin.state);
        let birth = Birth { row: &row, group: 0, seqs: &[seq] };
        let values = columns::given().map(|(name, _, read)| (name, read(&birth).into_param(dialect)));
        let past: Named = values.collect();
        let past = past.with("result", twin.result.clone()).with("version", env!("CARGO_PKG_VERSION"));
        tx.run(BORN_DONE, &past.order(dialect, BORN_DONE)).await?;
        let details = json!({ id.to_string(): { "duplicate_of": twin.id } });
        let told = params![
            seq,
            Event::Created.as_str(),
            row.state.as_str(),
            self.inner.actor.as_str(),
            vec![id.0],
            details
        ];
        tx.run(TELL, told).await?;
        let files: Vec<(JobId, &Artifact)> = files.iter().map(|file| (id, file)).collect();
        keep_files(&mut tx, &files).await?;
        tx.commit().await?;
        self.nudge();
        Ok(Enqueued::New(id))
    }
}
