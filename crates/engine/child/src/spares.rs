//! Children that are started before there is work, so that work does not wait for them.
//!
//! Each is used once, for one document or one attempt: what one does to its child can reach no other. This hides the
//! time a child takes to start, prepare and lock itself in; it does not save its cost.

use crate::Error;
use crate::supervisor::{Spec, Supervisor, Waiting};
use std::collections::VecDeque;
use std::fmt::Display;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// A few waiting children of one kind. Cheap to clone.
pub struct Spares<T = Waiting, E = Error> {
    shared: Arc<Shared<T, E>>,
}

/// Something that waits for work, and may have ended while it waited.
pub trait Wait: Send + 'static {
    /// Whether it is still there.
    fn is_alive(&self) -> bool;
}

impl Wait for Waiting {
    fn is_alive(&self) -> bool {
        Self::is_alive(self)
    }
}

type Starting<T, E> = Pin<Box<dyn Future<Output = Result<T, E>> + Send>>;

struct Shared<T, E> {
    start: Box<dyn Fn() -> Starting<T, E> + Send + Sync>,
    size: usize,
    line: Mutex<Line<T>>,
}

struct Line<T> {
    waiting: VecDeque<T>,
    used: Instant,
}

impl<T, E> Clone for Spares<T, E> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared) }
    }
}

impl Spares {
    /// Keeps `size` children waiting, the first of them right away.
    pub fn new(supervisor: Supervisor, spec: Spec, size: usize) -> Self {
        let start = move || {
            let (supervisor, spec) = (supervisor.clone(), spec.clone());
            async move { supervisor.start(&spec).await }
        };
        let spares = Self::of(size, start);
        spares.refill();
        spares
    }
}

impl<T: Wait, E: Display + Send + 'static> Spares<T, E> {
    /// Spares of whatever kind `start` starts, empty until it is [refilled](Self::refill).
    pub fn of<F>(size: usize, start: impl Fn() -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Result<T, E>> + Send + 'static,
    {
        let line = Mutex::new(Line { waiting: VecDeque::new(), used: Instant::now() });
        let start = Box::new(move || -> Starting<T, E> { Box::pin(start()) });
        Self { shared: Arc::new(Shared { start, size, line }) }
    }

    /// Takes a waiting child, or starts one if none is left, and sees to the next.
    pub async fn take(&self) -> Result<T, E> {
        let ready = self.take_waiting();
        let taken = match ready {
            Some(ready) => Ok(ready),
            None => (self.shared.start)().await,
        };
        self.refill();
        taken
    }

    /// Takes a waiting child, if there is one.
    pub fn take_waiting(&self) -> Option<T> {
        let mut line = self.line();
        line.used = Instant::now();
        // One that ended while it waited, by whatever hand, is of no use to anybody.
        std::iter::from_fn(|| line.waiting.pop_front()).find(T::is_alive)
    }

    pub fn count(&self) -> usize {
        self.line().waiting.len()
    }

    /// Ends those that wait, if none was asked for in so long, and says how many there were.
    pub fn close_idle(&self, idle: Duration) -> usize {
        let mut line = self.line();
        let closed =
            if line.used.elapsed() >= idle { std::mem::take(&mut line.waiting) } else { VecDeque::new() };
        drop(line);
        closed.len()
    }

    /// Starts children in the background until there are enough.
    pub fn refill(&self) {
        let spares = self.clone();
        tokio::spawn(async move {
            while spares.count() < spares.shared.size {
                match (spares.shared.start)().await {
                    Ok(started) => spares.add(started),
                    Err(error) => {
                        // Whoever needs a child next tries again and is told if that fails too.
                        tracing::warn!(%error, "could not start a child in advance: {error}");
                        return;
                    }
                }
            }
        });
    }

    fn line(&self) -> MutexGuard<'_, Line<T>> {
        self.shared.line.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a child, unless others have been added in the meantime.
    fn add(&self, started: T) {
        let mut line = self.line();
        if line.waiting.len() < self.shared.size {
            line.waiting.push_back(started);
        }
    }
}
