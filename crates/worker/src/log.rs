//! The logs of attempts: written in batches while handlers go on, and what had to be left out is counted.

use ode_job::{JobId, LogLevel, NewLogLine};
use ode_store::Store;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;
use tokio::sync::{Notify, mpsc};

/// A log message longer than this is cut: a log is for reading.
const LINE_CHARS_MAX: usize = 8_000;
/// Lines of one attempt that wait to be written. All that is kept of the log of a script fits, though it were said at once;
/// past it the database is too slow or away, and lines are left out rather than the handler slowed down.
const WAITING_BYTES_MAX: usize = 4 * 1024 * 1024;
/// What a line counts for at least while it waits.
const LINE_BYTES_MIN: usize = 64;
/// Lines written in one commit.
const BATCH_MAX: usize = 1_000;
/// How long an attempt whose log must be whole waits for it.
const WRITTEN_WITHIN: Duration = Duration::from_secs(10);

/// Makes the two ends of the way from attempts to the store.
pub(crate) fn channel() -> (Logs, mpsc::UnboundedReceiver<Line>) {
    let (sender, receiver) = mpsc::unbounded_channel();
    (Logs { sender }, receiver)
}

/// Where attempts get their logs from.
#[derive(Debug)]
pub(crate) struct Logs {
    /// Bounded by what each attempt may have in it.
    sender: mpsc::UnboundedSender<Line>,
}

impl Logs {
    pub(crate) fn of(&self, job: JobId, attempt: u32) -> Log {
        Log { job, attempt, sender: self.sender.clone(), backlog: Arc::default() }
    }
}

/// The log of one attempt.
#[derive(Debug)]
pub(crate) struct Log {
    job: JobId,
    attempt: u32,
    sender: mpsc::UnboundedSender<Line>,
    backlog: Arc<Backlog>,
}

/// What of a log is not written.
#[derive(Debug, Default)]
struct Backlog {
    /// Lines that wait count for so much.
    bytes: AtomicUsize,
    /// Lines that were left out and not told of.
    missing: AtomicU64,
    /// No line waits any more.
    is_written: Notify,
}

/// A line on its way to the store.
#[derive(Debug)]
pub(crate) struct Line {
    line: NewLogLine,
    backlog: Arc<Backlog>,
}

impl Log {
    /// Adds a line, unless too many wait.
    pub(crate) fn add(&self, level: LogLevel, message: &str) {
        let message: String = message.chars().filter(|c| *c != '\0').take(LINE_CHARS_MAX).collect();
        if self.backlog.bytes.load(Ordering::Relaxed) + cost(&message) > WAITING_BYTES_MAX {
            return self.backlog.miss(self.job);
        }
        self.send(level, message);
    }

    /// Adds, after the last line, how many are missing. Nothing is added to a log that is whole.
    pub(crate) fn close(&self) {
        let missing = self.backlog.missing.swap(0, Ordering::Relaxed);
        if missing > 0 {
            let lines = if missing == 1 { "1 line is".to_owned() } else { format!("{missing} lines are") };
            let message = format!(
                "{lines} missing from the log of this attempt: they came faster than they could be written"
            );
            self.send(LogLevel::Warn, message);
        }
    }

    /// Waits until all of it is written, or for as long as makes sense.
    pub(crate) async fn written(&self) {
        let written = async {
            loop {
                let is_written = self.backlog.is_written.notified();
                if self.backlog.bytes.load(Ordering::Acquire) == 0 {
                    return;
                }
                is_written.await;
            }
        };
        if tokio::time::timeout(WRITTEN_WITHIN, written).await.is_err() {
            tracing::warn!(job.id = %self.job, "the log of job {} is still being written as it ends", self.job);
        }
    }

    fn send(&self, level: LogLevel, message: String) {
        let backlog = self.backlog.clone();
        backlog.bytes.fetch_add(cost(&message), Ordering::Relaxed);
        let line = NewLogLine { job: self.job, attempt: self.attempt, level, message };
        // Nobody writes any more once the worker has stopped, and by then no attempt runs.
        let _ = self.sender.send(Line { line, backlog });
    }
}

impl Backlog {
    fn miss(&self, job: JobId) {
        if self.missing.fetch_add(1, Ordering::Relaxed) == 0 {
            tracing::warn!(job.id = %job, "lines are missing from the log of job {job}: it has too many at once");
        }
    }

    /// A line waits no more.
    fn settle(&self, cost: usize) {
        if self.bytes.fetch_sub(cost, Ordering::Release) == cost {
            self.is_written.notify_waiters();
        }
    }
}

fn cost(message: &str) -> usize {
    message.len().max(LINE_BYTES_MIN)
}

/// Writes lines until nobody can send more.
pub(crate) async fn write(store: Store, mut lines: mpsc::UnboundedReceiver<Line>) {
    let mut batch = Vec::new();
    while lines.recv_many(&mut batch, BATCH_MAX).await > 0 {
        let (lines, backlogs): (Vec<_>, Vec<_>) =
            batch.drain(..).map(|Line { line, backlog }| (line, backlog)).unzip();
        let written = store.log_all(&lines).await;
        if let Err(error) = &written {
            tracing::warn!(%error, "{} log lines could not be written", lines.len());
        }
        for (line, backlog) in lines.iter().zip(backlogs) {
            if written.is_err() {
                backlog.miss(line.job);
            }
            backlog.settle(cost(&line.message));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use uuid::Uuid;

    fn messages(lines: &mut mpsc::UnboundedReceiver<Line>) -> Vec<String> {
        std::iter::from_fn(|| lines.try_recv().ok()).map(|line| line.line.message).collect()
    }

    #[test]
    fn a_flood_is_bounded_and_the_log_says_how_many_lines_are_missing() {
        let (logs, mut lines) = channel();
        let log = logs.of(JobId(Uuid::from_u128(1)), 1);
        let fitting = WAITING_BYTES_MAX / LINE_BYTES_MIN;
        for number in 0..fitting + 3 {
            log.add(LogLevel::Info, &format!("line {number}"));
        }
        let other = logs.of(JobId(Uuid::from_u128(2)), 1);
        other.add(LogLevel::Info, "of another, which does not suffer");
        log.close();
        log.close();
        other.close();
        let messages = messages(&mut lines);
        assert_eq!((messages[0].as_str(), messages.len()), ("line 0", fitting + 2));
        assert_eq!(messages[fitting - 1], format!("line {}", fitting - 1));
        assert_eq!(messages[fitting], "of another, which does not suffer");
        assert!(messages[fitting + 1].starts_with("3 lines are missing"), "{}", messages[fitting + 1]);
    }

    #[test]
    fn a_log_that_is_whole_ends_with_its_own_last_line() {
        let (logs, mut lines) = channel();
        let log = logs.of(JobId(Uuid::from_u128(1)), 1);
        log.add(LogLevel::Info, "a\0b");
        log.close();
        assert_eq!(messages(&mut lines), ["ab"]);
    }
}
