//! What a pipeline has a say in beyond its own tables: when its held jobs get in line, what is renewed with a job that is tried
//! again, and where jobs go that ended long ago. Its [`Declaration`](crate::Declaration) has them.

use crate::Store;
use crate::database::db::Tx;
use crate::error::Error;
use crate::schema::declaration::declared;
use crate::sql::Sql;
use futures_util::future::BoxFuture;
use ode_job::{JobId, Pipeline};
use std::collections::HashMap;
use uuid::Uuid;

/// What is in the way of a held job whose moment has come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Gate {
    /// Nothing.
    Open,
    /// Something that will pass: whatever it waits for gives the job another moment.
    Closed,
    /// A job that it needs can no longer complete, so it is called off.
    Broken {
        needs: JobId,
        /// What became of it.
        why: String,
    },
}

/// The gates of those jobs that may wait for more than their moment.
pub type Gates = HashMap<JobId, Gate>;

/// What a rule returns.
pub type Ruling<'a, T> = BoxFuture<'a, Result<T, Error>>;

/// The rules of one pipeline.
#[derive(Debug, Clone, Copy)]
pub struct Rules {
    /// Looks at the gates of jobs whose moment has come. Jobs that are not among the answers get in line.
    pub look: for<'a> fn(Sql<'a>, &'a [JobId]) -> Ruling<'a, Gates>,
    /// Tells whether a job may wait for more than its moment, so that trying it again does not put it in line at once.
    pub may_wait: fn(Sql<'_>, JobId) -> Ruling<'_, bool>,
    /// Renews what belongs to a job that is tried again, in the same transaction; an error refuses the retry.
    pub renew: fn(&mut Tx, JobId) -> Ruling<'_, ()>,
    /// Gives what belongs to a session beside its jobs to a user as well, who signed in from it.
    pub adopt: fn(&mut Tx, session: Uuid, user: Uuid) -> Ruling<'_, ()>,
    /// Where jobs that ended long ago are archived below the storage's root, before they are removed with everything of theirs;
    /// they are kept where there is none.
    pub archive: Option<&'static str>,
}

impl Rules {
    /// Jobs that wait for nothing but their moment, have nothing to renew and are kept.
    pub const NONE: Rules = Rules {
        look: |_, _| Box::pin(async { Ok(HashMap::new()) }),
        may_wait: |_, _| Box::pin(async { Ok(false) }),
        renew: |_, _| Box::pin(async { Ok(()) }),
        adopt: |_, _, _| Box::pin(async { Ok(()) }),
        archive: None,
    };
}

impl Store {
    /// The gates of jobs whose moment has come.
    pub(crate) async fn gates(&self, due: &[(JobId, Pipeline)]) -> Result<Gates, Error> {
        let mut gates = Gates::new();
        for declaration in declared() {
            let own = due.iter().filter(|(_, pipeline)| *pipeline == declaration.pipeline);
            let ids: Vec<JobId> = own.map(|(id, _)| *id).collect();
            if !ids.is_empty() {
                gates.extend((declaration.rules.look)(self.sql(), &ids).await?);
            }
        }
        Ok(gates)
    }
}
