//! What is found out at most once in a while, however many ask: those who ask meanwhile are told what was found.

use std::time::{Duration, Instant};
use tokio::sync::Mutex;

/// The last finding and when it was made.
pub struct Seen<T> {
    fresh_for: Duration,
    last: Mutex<Option<(Instant, T)>>,
}

impl<T: Clone> Seen<T> {
    pub fn new(fresh_for: Duration) -> Self {
        Seen { fresh_for, last: Mutex::new(None) }
    }

    /// What was found last, or by `find_out` where that is too old. Many who ask at once wait for one finding.
    pub async fn get(&self, find_out: impl Future<Output = T>) -> T {
        let mut last = self.last.lock().await;
        if let Some((at, found)) = &*last
            && at.elapsed() < self.fresh_for
        {
            return found.clone();
        }
        let found = find_out.await;
        *last = Some((Instant::now(), found.clone()));
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::future::join_all;
    use std::sync::atomic::{AtomicUsize, Ordering};

    const FOR_LONG: Duration = Duration::from_secs(3600);

    /// Asks a hundred times at once, and then once more; answers how often it was found out.
    async fn times_found_out(fresh_for: Duration) -> usize {
        let (seen, times) = (Seen::new(fresh_for), AtomicUsize::new(0));
        let ask = || {
            seen.get(async {
                tokio::task::yield_now().await;
                times.fetch_add(1, Ordering::Relaxed)
            })
        };
        let told = join_all((0..100).map(|_| ask())).await;
        assert!(fresh_for.is_zero() || told.iter().all(|told| *told == 0), "all are told the same: {told:?}");
        ask().await;
        times.into_inner()
    }

    #[tokio::test]
    async fn what_is_fresh_is_found_out_once_for_all_who_ask() {
        assert_eq!(times_found_out(FOR_LONG).await, 1);
    }

    #[tokio::test]
    async fn what_is_old_is_found_out_anew() {
        assert_eq!(times_found_out(Duration::ZERO).await, 101);
    }

    #[tokio::test]
    async fn one_who_gives_up_leaves_nothing_half_found() {
        let seen = Seen::new(FOR_LONG);
        let given_up = tokio::time::timeout(Duration::from_millis(1), seen.get(std::future::pending::<u8>()));
        assert!(given_up.await.is_err());
        assert_eq!(seen.get(async { 7 }).await, 7);
    }
}
