//! Connections to the database, the one used last first.
//!
//! The driver's pool goes round all its connections and asks before or after each use whether the connection is still
//! good. A short statement notices both: whoever ran one a moment ago has everything at hand, and the question takes
//! the processor from whoever was just woken. So a few connections are kept aside, on a stack.

use crate::database::db::{Param, Row};
use crate::error::Error;
use sqlx::pool::PoolConnection;
use sqlx::{Database, Pool};
use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Mutex, MutexGuard};

/// Connections kept aside; the pool looks after the rest, and closes those that nobody needs for long.
const KEPT_MAX: usize = 4;

/// How a database is spoken to.
pub(crate) trait Backend: Database {
    /// Runs a statement with nothing to bind and nothing to answer.
    fn run(
        connection: &mut Self::Connection,
        sql: &'static str,
    ) -> impl Future<Output = Result<(), sqlx::Error>> + Send;

    /// Runs a statement and answers its rows.
    fn fetch(
        connection: &mut Self::Connection,
        sql: &'static str,
        params: &[Param],
    ) -> impl Future<Output = Result<Vec<Row>, Error>> + Send;
}

#[derive(Debug)]
pub(crate) struct Connections<D: Backend> {
    pool: Pool<D>,
    kept: Arc<Mutex<Kept<D>>>,
}

impl<D: Backend> Clone for Connections<D> {
    fn clone(&self) -> Self {
        Connections { pool: self.pool.clone(), kept: self.kept.clone() }
    }
}

#[derive(Debug)]
struct Kept<D: Backend> {
    idle: Vec<PoolConnection<D>>,
    /// Those who wait for the pool: while there are some, connections go back to it.
    waiting: usize,
}

impl<D: Backend> Kept<D> {
    /// Closes what lies idle. The pool's own way to take a connection back needs a runtime, which may be gone by now.
    fn clear(&mut self) {
        self.idle.drain(..).for_each(|connection| drop(connection.detach()));
    }
}

impl<D: Backend> Drop for Kept<D> {
    fn drop(&mut self) {
        self.clear();
    }
}

impl<D: Backend> Connections<D> {
    pub(crate) fn new(pool: Pool<D>) -> Self {
        let kept = Kept { idle: Vec::new(), waiting: 0 };
        Connections { pool, kept: Arc::new(Mutex::new(kept)) }
    }

    fn kept(&self) -> MutexGuard<'_, Kept<D>> {
        self.kept.lock().expect("no code panics while holding this lock")
    }

    /// A connection for one statement or transaction.
    pub(crate) async fn take(&self) -> Result<Connection<D>, sqlx::Error> {
        let kept = {
            let mut kept = self.kept();
            let idle = kept.idle.pop();
            kept.waiting += usize::from(idle.is_none());
            idle
        };
        let connection = match kept {
            Some(connection) => connection,
            None => {
                let _waiting = Waiting(self);
                self.pool.acquire().await?
            }
        };
        Ok(Connection { connection: Some(connection), home: self.clone() })
    }

    /// Runs a statement that is its own transaction.
    pub(crate) async fn fetch(&self, sql: &'static str, params: &[Param]) -> Result<Vec<Row>, Error> {
        let mut connection = self.take().await?;
        let rows = D::fetch(&mut connection, sql, params).await?;
        connection.keep();
        Ok(rows)
    }

    /// Opens a transaction with this statement.
    pub(crate) async fn begin(&self, statement: &'static str) -> Result<Transaction<D>, sqlx::Error> {
        let mut tx = self.transaction().await?;
        D::run(&mut tx, statement).await?;
        Ok(tx)
    }

    /// A connection on which a transaction is opened next. A caller that goes away meanwhile leaves none open.
    pub(crate) async fn transaction(&self) -> Result<Transaction<D>, sqlx::Error> {
        Ok(Transaction { connection: Some(self.take().await?) })
    }

    /// Closes those kept aside: they have prepared statements for tables that are others now.
    pub(crate) fn forget(&self) {
        self.kept().clear();
    }

    /// Ends all connections, and waits until they have ended.
    pub(crate) async fn close(&self) {
        let closing = self.pool.close();
        // They go back to the pool, which closes what comes from now on.
        let kept = std::mem::take(&mut self.kept().idle);
        drop(kept);
        closing.await;
    }
}

/// Somebody who waits for the pool, until dropped.
struct Waiting<'a, D: Backend>(&'a Connections<D>);

impl<D: Backend> Drop for Waiting<'_, D> {
    fn drop(&mut self) {
        self.0.kept().waiting -= 1;
    }
}

/// A connection in use. Dropped, it goes back to the pool, which closes it if it is broken.
#[derive(Debug)]
pub(crate) struct Connection<D: Backend> {
    connection: Option<PoolConnection<D>>,
    home: Connections<D>,
}

impl<D: Backend> Connection<D> {
    /// Puts it back for the next statement: its last one succeeded.
    pub(crate) fn keep(mut self) {
        let mut kept = self.home.kept();
        if kept.waiting == 0 && kept.idle.len() < KEPT_MAX && !self.home.pool.is_closed() {
            kept.idle.extend(self.connection.take());
        }
    }
}

const TAKEN: &str = "a connection is there until it is given back";

impl<D: Backend> Deref for Connection<D> {
    type Target = D::Connection;

    fn deref(&self) -> &D::Connection {
        self.connection.as_ref().expect(TAKEN)
    }
}

impl<D: Backend> DerefMut for Connection<D> {
    fn deref_mut(&mut self) -> &mut D::Connection {
        self.connection.as_mut().expect(TAKEN)
    }
}

/// An open transaction; dropped, it is rolled back.
#[derive(Debug)]
pub(crate) struct Transaction<D: Backend> {
    connection: Option<Connection<D>>,
}

impl<D: Backend> Transaction<D> {
    pub(crate) async fn commit(mut self) -> Result<(), sqlx::Error> {
        D::run(&mut self, "COMMIT").await?;
        self.ended();
        Ok(())
    }

    /// Takes note that its last statement ended it.
    pub(crate) fn ended(mut self) {
        if let Some(connection) = self.connection.take() {
            connection.keep();
        }
    }
}

impl<D: Backend> Deref for Transaction<D> {
    type Target = D::Connection;

    fn deref(&self) -> &D::Connection {
        self.connection.as_ref().expect(TAKEN)
    }
}

impl<D: Backend> DerefMut for Transaction<D> {
    fn deref_mut(&mut self) -> &mut D::Connection {
        self.connection.as_mut().expect(TAKEN)
    }
}

impl<D: Backend> Drop for Transaction<D> {
    fn drop(&mut self) {
        let Some(mut connection) = self.connection.take() else { return };
        tokio::spawn(async move {
            // It fails where no transaction is open any more, or the connection is broken: the pool knows which.
            if D::run(&mut connection, "ROLLBACK").await.is_ok() {
                connection.keep();
            }
        });
    }
}
