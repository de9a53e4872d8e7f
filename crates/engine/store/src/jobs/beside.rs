//! Accepting jobs together with rows of their pipeline: one transaction takes the idempotency key, stores the jobs and lets the
//! pipeline store what belongs to them. Such a request has a transaction of its own and shares no commit with others.

use crate::Store;
use crate::database::db::{Param, Row, Tx, params};
use crate::error::Error;
use crate::jobs::enqueue::NewRow;
use crate::jobs::keyed::{BY_KEY, Claim, claim_key, same_request};
use crate::jobs::mint::unless_taken;
use jiff::Timestamp;
use ode_job::{JobId, NewJob, State};

/// What became of jobs that were asked for together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EnqueuedTogether {
    /// New jobs in the order asked for, each with the state it was born into.
    New(Vec<(JobId, State)>),
    /// A request under the same idempotency key made them before; this is the first of its jobs.
    Existing(JobId),
}

/// New jobs in the transaction that stores them, in the hands of their pipeline.
pub struct NewJobs {
    store: Store,
    tx: Tx,
    rows: Vec<NewRow>,
    is_inserted: bool,
}

impl NewJobs {
    /// Their ids in the order asked for, which is also the order of the ids.
    pub fn ids(&self) -> Vec<JobId> {
        self.rows.iter().map(|row| row.id).collect()
    }

    /// Runs a statement in the transaction.
    pub async fn run(&mut self, sql: &'static str, params: &[Param]) -> Result<Vec<Row>, Error> {
        self.tx.run(sql, params).await
    }

    /// The transaction.
    pub fn tx(&mut self) -> &mut Tx {
        &mut self.tx
    }

    /// Has the job at this place be born held: it waits for more than its moment. To be decided before [`NewJobs::insert`].
    pub fn hold(&mut self, place: usize) {
        self.rows[place].hold(Timestamp::now());
    }

    /// Stores the jobs: statements from here on may refer to them. Left out, they are stored last.
    pub async fn insert(&mut self) -> Result<(), Error> {
        if std::mem::replace(&mut self.is_inserted, true) {
            return Ok(());
        }
        for row in &mut self.rows {
            self.store.reserve_slot(row);
        }
        self.store.insert_in(&mut self.tx, &self.rows.iter().collect::<Vec<_>>()).await
    }
}

impl Store {
    /// Accepts jobs of one owner together with what `keep` stores for them, all or nothing. When this returns, they are durable.
    ///
    /// The idempotency key of the first job is that of the request, which `fingerprint` tells from others under the same key; other
    /// keys and dedupe keys are not looked at. `keep` gets the jobs in their transaction and returns them; it may be called
    /// again, for another transaction, and is not called where the request was made before.
    pub async fn enqueue_beside<F>(
        &self,
        jobs: &[NewJob],
        fingerprint: &str,
        keep: impl Fn(NewJobs) -> F,
    ) -> Result<EnqueuedTogether, Error>
    where
        F: Future<Output = Result<NewJobs, Error>>,
    {
        for job in jobs {
            job.check()?;
        }
        match unless_taken(|| self.try_enqueue_beside(jobs, fingerprint, &keep)).await {
            Err(error) => Err(self.explain_duplicate(jobs.iter(), error).await),
            enqueued => enqueued,
        }
    }

    async fn try_enqueue_beside<F>(
        &self,
        jobs: &[NewJob],
        fingerprint: &str,
        keep: impl Fn(NewJobs) -> F,
    ) -> Result<EnqueuedTogether, Error>
    where
        F: Future<Output = Result<NewJobs, Error>>,
    {
        let now = Timestamp::now();
        // Ids grow, so whoever lists the jobs sees them as they were sent.
        let rows: Vec<NewRow> =
            jobs.iter().map(|job| NewRow::new(self.inner.mint.job_id(), job.clone(), now)).collect();
        let mut tx = self.db().begin().await?;
        if let Some(row) = rows.first()
            && let Some(key) = &row.job.idempotency_key
        {
            let claim = Claim { owner: row.job.owner.key(), key, job: row.id, request: Some(fingerprint) };
            if let Some(first) = claim_key(&mut tx, claim).await? {
                return Ok(EnqueuedTogether::Existing(first));
            }
        }
        let mut new = keep(NewJobs { store: self.clone(), tx, rows, is_inserted: false }).await?;
        new.insert().await?;
        let NewJobs { tx, rows, .. } = new;
        tx.commit().await?;
        let born = rows.iter().map(|row| (row.id, row.state)).collect();
        self.tell(rows);
        Ok(EnqueuedTogether::New(born))
    }

    /// The job that an earlier request made under the idempotency key of this one; the key of another is refused.
    pub async fn enqueued_before(&self, job: &NewJob, fingerprint: &str) -> Result<Option<JobId>, Error> {
        let Some(key) = job.idempotency_key.as_deref() else { return Ok(None) };
        let rows = self.db().read(BY_KEY, params!["idempotency", job.owner.key(), key]).await?;
        rows.first().map(|first| same_request(first, Some(fingerprint))).transpose()
    }
}
