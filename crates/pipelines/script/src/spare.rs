//! Spares: processes that have started before there is work for them, each with a browser of its own. One is used
//! for one attempt, then it ends; what it saves is the time that node and a browser take to start.

use crate::Error;
use crate::run::Shared;
use crate::scratch::Scratch;
use ode_child::{Spares, Wait, Waiting};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// A new one is started this long after one was taken: by then a short job is over, and a long one is not disturbed.
const REFILL_DELAY: Duration = Duration::from_secs(2);

/// A process that waits for its payload, in its private directory.
pub(crate) struct Spare {
    pub(crate) waiting: Waiting,
    pub(crate) scratch: Scratch,
}

impl Wait for Spare {
    fn is_alive(&self) -> bool {
        self.waiting.is_alive()
    }
}

/// The processes that wait, by the command that started them.
#[derive(Default)]
pub(crate) struct SparesByCommand {
    kinds: Mutex<HashMap<Vec<String>, Spares<Spare, Error>>>,
}

impl SparesByCommand {
    /// Those that this command starts, `size` of them once they are asked for.
    pub(crate) fn of(&self, shared: &Arc<Shared>, command: Vec<String>, size: usize) -> Spares<Spare, Error> {
        let shared = Arc::downgrade(shared);
        let start = {
            let command = command.clone();
            move || {
                let (shared, command) = (shared.clone(), command.clone());
                async move {
                    let shared = shared.upgrade().ok_or(ode_child::Error::Closed)?;
                    shared.start(&command, None).await
                }
            }
        };
        self.kinds().entry(command).or_insert_with(|| Spares::of(size, start)).clone()
    }

    pub(crate) fn count(&self) -> usize {
        self.kinds().values().map(Spares::count).sum()
    }

    /// Closes those that nobody has asked for in so long.
    pub(crate) fn close_idle(&self, idle: Duration) {
        let count: usize = self.kinds().values().map(|kind| kind.close_idle(idle)).sum();
        if count > 0 {
            tracing::info!(count, "closed {count} spare processes that nobody needed");
        }
    }

    fn kinds(&self) -> MutexGuard<'_, HashMap<Vec<String>, Spares<Spare, Error>>> {
        self.kinds.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Takes a process that waits, and sees to the next when this one's first moments are over.
pub(crate) fn take(spares: &Spares<Spare, Error>) -> Option<Spare> {
    let taken = spares.take_waiting();
    let spares = spares.clone();
    tokio::spawn(async move {
        tokio::time::sleep(REFILL_DELAY).await;
        spares.refill();
    });
    taken
}
