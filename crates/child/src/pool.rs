//! Children that are started before there is work, so that work does not wait for them.
//!
//! Each is used once, for one document: what one document does to its child can reach no other. The pool hides
//! the time a child takes to start, prepare and lock itself in; it does not save its cost.

use crate::Error;
use crate::supervisor::{Spec, Supervisor, Waiting};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A few waiting children of one kind. Cheap to clone.
#[derive(Clone)]
pub struct Pool {
    shared: Arc<Shared>,
}

struct Shared {
    supervisor: Supervisor,
    spec: Spec,
    size: usize,
    waiting: Mutex<VecDeque<Waiting>>,
}

impl Pool {
    /// A pool that keeps `size` children waiting, the first of them right away.
    pub fn new(supervisor: Supervisor, spec: Spec, size: usize) -> Self {
        let shared = Shared { supervisor, spec, size, waiting: Mutex::default() };
        let pool = Self { shared: Arc::new(shared) };
        pool.refill();
        pool
    }

    /// Takes a waiting child, or starts one if none is left, and sees to the next.
    pub async fn take(&self) -> Result<Waiting, Error> {
        let ready = self.take_waiting();
        let taken = match ready {
            Some(ready) => Ok(ready),
            None => self.shared.supervisor.start(&self.shared.spec).await,
        };
        self.refill();
        taken
    }

    fn take_waiting(&self) -> Option<Waiting> {
        let mut waiting = self.waiting();
        // One that ended while it waited, by whatever hand, is of no use to anybody.
        std::iter::from_fn(|| waiting.pop_front()).find(Waiting::is_alive)
    }

    fn waiting(&self) -> MutexGuard<'_, VecDeque<Waiting>> {
        self.shared.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a child, unless others have filled the pool in the meantime.
    fn add(&self, started: Waiting) {
        let mut waiting = self.waiting();
        if waiting.len() < self.shared.size {
            waiting.push_back(started);
        }
    }

    /// Starts children in the background until the pool is full.
    fn refill(&self) {
        let pool = self.clone();
        tokio::spawn(async move {
            while pool.waiting().len() < pool.shared.size {
                match pool.shared.supervisor.start(&pool.shared.spec).await {
                    Ok(started) => pool.add(started),
                    Err(error) => {
                        // Whoever needs a child next tries again and is told if that fails too.
                        tracing::warn!(%error, "could not start a child in advance: {error}");
                        return;
                    }
                }
            }
        });
    }
}
