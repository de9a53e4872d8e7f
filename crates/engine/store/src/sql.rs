//! The door through which pipelines run SQL: statements written once for both databases, with their parameters by what they
//! mean, and transactions. A worker's attempt gets [`Held`], which names its lease; routes, chores and commands get [`Sql`].

pub use crate::database::db::{Param, Row, Tx, blank_nuls, params, without_nul};
pub use crate::database::dialect::names::Named;
pub use crate::jobs::enqueue::owner_columns;
pub use crate::jobs::owned::{ByOwner, by_owner};
pub use crate::jobs::read::{LIST_MAX, artifact, record};

use crate::database::db::Db;
use crate::{Dialect, Error, Store};
use ode_job::{JobId, Lease, Owner};
use std::time::Duration;

/// A duration as the microseconds that statements take.
pub fn micros(duration: Duration) -> i64 {
    i64::try_from(duration.as_micros()).unwrap_or(i64::MAX)
}

/// The owner of a job, from the three columns that may name one.
pub fn owner(row: &Row) -> Result<Owner, Error> {
    crate::attempts::claim::owner(row)
}

/// The database of a store.
#[derive(Debug, Clone, Copy)]
pub struct Sql<'a>(pub(crate) &'a Db);

impl Sql<'_> {
    pub fn dialect(&self) -> Dialect {
        self.0.dialect()
    }

    /// Runs one reading statement.
    pub async fn read(&self, sql: &'static str, params: &[Param]) -> Result<Vec<Row>, Error> {
        self.0.read(sql, params).await
    }

    /// Runs one writing statement, which is its own transaction.
    pub async fn write(&self, sql: &'static str, params: &[Param]) -> Result<Vec<Row>, Error> {
        self.0.write(sql, params).await
    }

    /// Opens a transaction that may write.
    pub async fn begin(&self) -> Result<Tx, Error> {
        self.0.begin().await
    }
}

/// The database as one attempt reaches it.
#[derive(Debug, Clone, Copy)]
pub struct Held<'a> {
    store: &'a Store,
    lease: &'a Lease,
}

/// Holds the row: a claim that would take the job over waits until this is written, or has been before it.
const HOLD: &str =
    "UPDATE job_live SET updated_at = {now} WHERE id = $1 AND fence = $2 AND worker = $3 RETURNING id";

impl<'a> Held<'a> {
    /// The database under this lease.
    pub fn new(store: &'a Store, lease: &'a Lease) -> Self {
        Held { store, lease }
    }

    /// The database beside the lease, for what belongs to no job.
    pub fn sql(&self) -> Sql<'a> {
        self.store.sql()
    }

    pub fn job(&self) -> JobId {
        self.lease.job()
    }

    /// The lease's fence.
    pub fn fence(&self) -> i64 {
        self.lease.fence()
    }

    /// Parameters that name the lease: `$1` the job, `$2` the fence, `$3` the worker.
    pub fn params(&self) -> [Param; 3] {
        [self.lease.job().into(), self.lease.fence().into(), self.lease.worker().into()]
    }

    /// Runs a reading statement about the job.
    pub async fn read(&self, sql: &'static str, params: &[Param]) -> Result<Vec<Row>, Error> {
        self.store.db().read(sql, params).await
    }

    /// Runs a writing statement, which must name the lease: under one that is lost it changes nothing.
    pub async fn write(&self, sql: &'static str, params: &[Param]) -> Result<Vec<Row>, Error> {
        self.store.db().write(sql, params).await
    }

    /// Opens a transaction under the lease: nobody can take the job over before it ends.
    pub async fn begin(&self) -> Result<Tx, Error> {
        let mut tx = self.store.db().begin().await?;
        let held = tx.run(HOLD, &self.params()).await?;
        if held.is_empty() { Err(Error::LeaseLost(self.job())) } else { Ok(tx) }
    }
}

impl Store {
    /// The database, for the statements of a pipeline.
    pub fn sql(&self) -> Sql<'_> {
        Sql(self.db())
    }
}
