//! Lists that were read a moment ago: a page that polls costs the database one reading every two seconds, and less
//! if nothing happened, whatever the number of its tabs.
//!
//! What is kept is forgotten as soon as something happens to a job of its owner, so nobody waits two seconds for news.

use crate::server::problem::Problem;
use bytes::Bytes;
use ode_job::Owner;
use ode_store::OwnedFilter;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// A list as it is sent.
#[derive(Debug, Clone)]
pub struct Listed {
    pub body: Bytes,
    pub etag: String,
}

/// What is known of one owner. Held while the database is asked: who asks the same meanwhile waits for the answer.
#[derive(Debug, Default)]
struct Known {
    lists: HashMap<OwnedFilter, (Instant, Listed)>,
}

/// Owners whose lists are kept. Past it, all are forgotten, which costs a reading each.
const OWNERS_MAX: usize = 10_000;
/// Different lists of one owner.
const LISTS_MAX: usize = 16;

#[derive(Debug)]
pub struct Lists {
    owners: Mutex<HashMap<Owner, Arc<tokio::sync::Mutex<Known>>>>,
    kept_for: Duration,
}

impl Lists {
    pub fn new(kept_for: Duration) -> Self {
        Lists { owners: Mutex::default(), kept_for }
    }

    /// The list, from memory or by `read`.
    pub async fn get(
        &self,
        filter: &OwnedFilter,
        read: impl Future<Output = Result<Listed, Problem>>,
    ) -> Result<Listed, Problem> {
        let known = self.known(filter.owner);
        let mut known = known.lock().await;
        let now = Instant::now();
        if let Some((at, listed)) = known.lists.get(filter)
            && now - *at < self.kept_for
        {
            return Ok(listed.clone());
        }
        known.lists.retain(|_, (at, _)| now - *at < self.kept_for);
        let listed = read.await?;
        if known.lists.len() < LISTS_MAX {
            // From before it was read: it is no newer than that.
            known.lists.insert(filter.clone(), (now, listed.clone()));
        }
        Ok(listed)
    }

    fn known(&self, owner: Owner) -> Arc<tokio::sync::Mutex<Known>> {
        let mut owners = self.owners.lock().unwrap_or_else(PoisonError::into_inner);
        if owners.len() >= OWNERS_MAX {
            owners.clear();
        }
        owners.entry(owner).or_default().clone()
    }

    /// Something happened to a job of this owner. A reading that is under way is not kept either: it goes into what is
    /// dropped here.
    pub fn forget(&self, owner: Owner) {
        self.owners.lock().unwrap_or_else(PoisonError::into_inner).remove(&owner);
    }

    /// Something happened, and it is not known to whom.
    pub fn forget_all(&self) {
        self.owners.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}
