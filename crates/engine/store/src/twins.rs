//! The same content from different owners, where an installation shares results between them.
//!
//! Nobody is given somebody else's job: whoever sends what another has sent gets a job of their own, which is done
//! when it is made, with copies of the files. It names the job whose result it has, and outlives it.

use crate::Store;
use crate::db::{Param, params};
use crate::dialect::Dialect;
use crate::enqueue::{Enqueued, owner_columns, unless_empty};
use crate::error::Error;
use crate::keyed::{Claim, STANDS_WITH_RESULT, claim_keys, find_twin, keep_files};
use ode_job::{Artifact, Event, JobId, NewJob, State};
use serde_json::{Value, json};
use std::collections::HashSet;

/// A job that has done already what is asked for.
#[derive(Debug, Clone, PartialEq)]
pub struct Twin {
    /// The job.
    pub id: JobId,
    /// What came of it.
    pub result: Option<Value>,
    /// The file with its result.
    pub file: Artifact,
}

pub(crate) const BY_CONTENT: &str = "SELECT jobs.id, jobs.result, a.role, a.name, a.storage, a.path, a.content_type, a.bytes,
        a.sha256
    FROM job_key k JOIN jobs ON jobs.id = k.job_id JOIN job_artifact a ON a.job_id = jobs.id AND a.role = 'result'
    WHERE k.kind = 'dedupe' AND k.key = $1 AND jobs.phase = 'done' ORDER BY jobs.id LIMIT 1";
const BORN_DONE: &str = "INSERT INTO job_past (id, created_at, fence, priority, attempts, retries, pipeline, kind, state,
        engine_version, session_id, user_id, organisation_id, created_by, history, input, config, metadata, result)
    VALUES ($1, {now}, 0, $2, 0, 0, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)";
const TELL: &str =
    "INSERT INTO job_journal (seq, event, to_state, actor, jobs, details) VALUES ($1, $2, $3, $4, $5, $6)";

impl Store {
    /// A finished job about this content, whoever owns it, whose result can still be fetched.
    pub async fn twin_of_anyone(&self, dedupe_key: &str) -> Result<Option<Twin>, Error> {
        let rows = self.db().read(BY_CONTENT, params![dedupe_key]).await?;
        let twin = rows.first().map(|row| {
            Ok(Twin {
                id: row.job("id")?,
                result: row.opt_json("result")?,
                file: crate::read::artifact(row)?,
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
        let done = State::Complete.as_str();
        let [session, user, organisation] = owner_columns(job.owner);
        let history = match self.dialect() {
            Dialect::Postgres => Param::History(vec![seq]),
            Dialect::Sqlite => seq.to_string().into(),
        };
        let row = params![
            id,
            i64::from(job.priority),
            job.pipeline.as_str(),
            job.kind.as_str(),
            done,
            env!("CARGO_PKG_VERSION"),
            session,
            user,
            organisation,
            job.created_by,
            history,
            job.input.clone(),
            unless_empty(&job.config).cloned(),
            unless_empty(&job.metadata).cloned(),
            twin.result.clone(),
        ];
        tx.run(BORN_DONE, row).await?;
        let details = json!({ id.to_string(): { "duplicate_of": twin.id } });
        let told =
            params![seq, Event::Created.as_str(), done, self.inner.actor.as_str(), vec![id.0], details];
        tx.run(TELL, told).await?;
        let files: Vec<(JobId, &Artifact)> = files.iter().map(|file| (id, file)).collect();
        keep_files(&mut tx, &files).await?;
        tx.commit().await?;
        self.nudge();
        Ok(Enqueued::New(id))
    }
}
