//! Connections to PostgreSQL, the one used last first.
//!
//! The driver's pool goes round all its connections and asks the server after each use whether the connection is
//! still good. A short statement notices both: a server process that ran it a moment ago has everything at hand, and
//! the question takes the processor from whoever was just woken. So a few connections are kept aside, on a stack.

use sqlx::pool::PoolConnection;
use sqlx::postgres::{PgConnection, PgPool};
use sqlx::{Postgres, raw_sql};
use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Mutex, MutexGuard};

/// Connections kept aside; the pool looks after the rest, and closes those that nobody needs for long.
const KEPT_MAX: usize = 4;

#[derive(Clone, Debug)]
pub(crate) struct Connections {
    pool: PgPool,
    kept: Arc<Mutex<Kept>>,
}

#[derive(Debug, Default)]
struct Kept {
    idle: Vec<PoolConnection<Postgres>>,
    /// Those who wait for the pool: while there are some, connections go back to it.
    waiting: usize,
}

impl Kept {
    /// Closes what lies idle. The pool's own way to take a connection back needs a runtime, which may be gone by now.
    fn clear(&mut self) {
        self.idle.drain(..).for_each(|connection| drop(connection.detach()));
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        self.clear();
    }
}

impl Connections {
    pub(crate) fn new(pool: PgPool) -> Self {
        Connections { pool, kept: Arc::default() }
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().expect("no code panics while holding this lock")
    }

    /// A connection for one statement or transaction.
    pub(crate) async fn take(&self) -> Result<Connection, sqlx::Error> {
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

    /// Closes those kept aside: they have prepared statements for tables that are others now.
    pub(crate) fn forget(&self) {
        self.kept().clear();
    }

    /// Ends all connections.
    pub(crate) async fn close(&self) {
        let closing = self.pool.close();
        self.forget();
        closing.await;
    }
}

/// Somebody who waits for the pool, until dropped.
struct Waiting<'a>(&'a Connections);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.kept().waiting -= 1;
    }
}

/// A connection in use. Dropped, it goes back to the pool, which finds out what state it is in.
#[derive(Debug)]
pub(crate) struct Connection {
    connection: Option<PoolConnection<Postgres>>,
    home: Connections,
}

impl Connection {
    /// Puts it back for the next statement: its last one succeeded.
    pub(crate) fn keep(mut self) {
        let mut kept = self.home.kept();
        if kept.waiting == 0 && kept.idle.len() < KEPT_MAX && !self.home.pool.is_closed() {
            kept.idle.extend(self.connection.take());
        }
    }

    pub(crate) async fn begin(mut self) -> Result<PgTx, sqlx::Error> {
        raw_sql("BEGIN").execute(&mut *self).await?;
        Ok(PgTx { connection: Some(self) })
    }
}

const TAKEN: &str = "a connection is there until it is given back";

impl Deref for Connection {
    type Target = PgConnection;

    fn deref(&self) -> &PgConnection {
        self.connection.as_ref().expect(TAKEN)
    }
}

impl DerefMut for Connection {
    fn deref_mut(&mut self) -> &mut PgConnection {
        self.connection.as_mut().expect(TAKEN)
    }
}

/// An open transaction; dropped, it is rolled back.
#[derive(Debug)]
pub(crate) struct PgTx {
    connection: Option<Connection>,
}

impl PgTx {
    pub(crate) async fn commit(mut self) -> Result<(), sqlx::Error> {
        raw_sql("COMMIT").execute(&mut *self).await?;
        if let Some(connection) = self.connection.take() {
            connection.keep();
        }
        Ok(())
    }
}

impl Deref for PgTx {
    type Target = PgConnection;

    fn deref(&self) -> &PgConnection {
        self.connection.as_ref().expect(TAKEN)
    }
}

impl DerefMut for PgTx {
    fn deref_mut(&mut self) -> &mut PgConnection {
        self.connection.as_mut().expect(TAKEN)
    }
}

impl Drop for PgTx {
    fn drop(&mut self) {
        let Some(mut connection) = self.connection.take() else { return };
        tokio::spawn(async move {
            // What cannot be rolled back is in a state that the pool looks into.
            if raw_sql("ROLLBACK").execute(&mut *connection).await.is_ok() {
                connection.keep();
            }
        });
    }
}
