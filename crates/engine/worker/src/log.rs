//! The logs of attempts: written in batches while handlers go on, the last lines with the end of the attempt. What had to
//! be left out is counted.

use ode_job::{JobId, LogLevel, NewLogLine};
use ode_store::Store;
use std::sync::{Arc, Mutex, MutexGuard};
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
/// Lines wait this long for others. Most attempts at documents are over by then, and take theirs along.
const GATHER_FOR: Duration = Duration::from_millis(100);
/// How long the end of an attempt waits for the lines before its last ones.
const WRITTEN_WITHIN: Duration = Duration::from_secs(10);

/// Makes the two ends of the way from attempts to the store.
pub(crate) fn channel() -> (Logs, Pads) {
    let (sender, receiver) = mpsc::unbounded_channel();
    (Logs { sender }, receiver)
}

/// Pads with lines on them.
pub(crate) type Pads = mpsc::UnboundedReceiver<Arc<Pad>>;

/// Where attempts get their logs from.
#[derive(Debug)]
pub(crate) struct Logs {
    /// A pad is in it once, whatever is on it.
    sender: mpsc::UnboundedSender<Arc<Pad>>,
}

impl Logs {
    pub(crate) fn of(&self, job: JobId, attempt: u32) -> Log {
        Log { job, attempt, sender: self.sender.clone(), pad: Arc::default() }
    }
}

/// The log of one attempt.
#[derive(Debug)]
pub(crate) struct Log {
    job: JobId,
    attempt: u32,
    sender: mpsc::UnboundedSender<Arc<Pad>>,
    pad: Arc<Pad>,
}

/// What of a log is not written.
#[derive(Debug, Default)]
pub(crate) struct Pad {
    notes: Mutex<Notes>,
    /// Lines were written.
    is_settled: Notify,
}

#[derive(Debug, Default)]
struct Notes {
    waiting: Vec<NewLogLine>,
    /// Lines that are being written.
    on_their_way: usize,
    /// What all of these count for.
    bytes: usize,
    /// Whether the writer knows of those that wait.
    is_told: bool,
    /// Lines that were left out and not told of.
    missing: u64,
}

impl Log {
    /// Adds a line, unless too many wait.
    pub(crate) fn add(&self, level: LogLevel, message: &str) {
        let message: String = message.chars().filter(|c| *c != '\0').take(LINE_CHARS_MAX).collect();
        let mut notes = self.pad.notes();
        if notes.bytes + cost(&message) > WAITING_BYTES_MAX {
            return notes.miss(self.job);
        }
        notes.bytes += cost(&message);
        notes.waiting.push(NewLogLine { job: self.job, attempt: self.attempt, level, message });
        if !std::mem::replace(&mut notes.is_told, true) {
            // Nobody writes any more once the worker has stopped, and by then no attempt runs.
            let _ = self.sender.send(self.pad.clone());
        }
    }

    /// The lines that are to be written with the end of the attempt, after all others. The last one says how many are
    /// missing, unless none is.
    pub(crate) async fn close(&self) -> Vec<NewLogLine> {
        let last = tokio::time::timeout(WRITTEN_WITHIN, self.pad.last()).await;
        let (mut last, missing) = last.unwrap_or_else(|_| {
            tracing::warn!(job.id = %self.job, "the log of job {} is still being written as it ends", self.job);
            self.pad.notes().take_last()
        });
        if missing > 0 {
            let lines = if missing == 1 { "1 line is".to_owned() } else { format!("{missing} lines are") };
            let message = format!(
                "{lines} missing from the log of this attempt: they came faster than they could be written"
            );
            last.push(NewLogLine { job: self.job, attempt: self.attempt, level: LogLevel::Warn, message });
        }
        last
    }
}

impl Pad {
    fn notes(&self) -> MutexGuard<'_, Notes> {
        self.notes.lock().expect("no code panics while holding this lock")
    }

    /// What is left, once it is no more than the end of an attempt may take along, and how many lines are missing.
    async fn last(&self) -> (Vec<NewLogLine>, u64) {
        loop {
            let is_settled = self.is_settled.notified();
            {
                let mut notes = self.notes();
                if notes.on_their_way == 0 && notes.waiting.len() <= BATCH_MAX {
                    return notes.take_last();
                }
            }
            is_settled.await;
        }
    }

    /// Hands out the lines that wait, to be written.
    fn take(&self) -> Vec<NewLogLine> {
        let mut notes = self.notes();
        notes.is_told = false;
        let lines = std::mem::take(&mut notes.waiting);
        notes.on_their_way += lines.len();
        lines
    }

    /// A line that was handed out is written, or is not and will not be.
    fn settle(&self, line: &NewLogLine, is_written: bool) {
        let mut notes = self.notes();
        notes.on_their_way -= 1;
        notes.bytes -= cost(&line.message);
        if !is_written {
            notes.miss(line.job);
        }
        if notes.on_their_way == 0 {
            self.is_settled.notify_waiters();
        }
    }
}

impl Notes {
    fn take_last(&mut self) -> (Vec<NewLogLine>, u64) {
        (std::mem::take(&mut self.waiting), std::mem::take(&mut self.missing))
    }

    fn miss(&mut self, job: JobId) {
        self.missing += 1;
        if self.missing == 1 {
            tracing::warn!(job.id = %job, "lines are missing from the log of job {job}: it has too many at once");
        }
    }
}

fn cost(message: &str) -> usize {
    message.len().max(LINE_BYTES_MIN)
}

/// Writes lines until nobody can send more.
pub(crate) async fn write(store: Store, mut pads: Pads) {
    let mut told = Vec::new();
    while pads.recv_many(&mut told, BATCH_MAX).await > 0 {
        tokio::time::sleep(GATHER_FOR).await;
        while let Ok(pad) = pads.try_recv() {
            told.push(pad);
        }
        let taken =
            told.drain(..).flat_map(|pad| pad.take().into_iter().map(move |line| (line, pad.clone())));
        let (lines, pads): (Vec<_>, Vec<_>) = taken.unzip();
        for (lines, pads) in lines.chunks(BATCH_MAX).zip(pads.chunks(BATCH_MAX)) {
            let written = store.log_all(lines).await;
            if let Err(error) = &written {
                tracing::warn!(%error, "{} log lines could not be written", lines.len());
            }
            lines.iter().zip(pads).for_each(|(line, pad)| pad.settle(line, written.is_ok()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use uuid::Uuid;

    fn messages(lines: Vec<NewLogLine>) -> Vec<String> {
        lines.into_iter().map(|line| line.message).collect()
    }

    #[tokio::test]
    async fn a_flood_is_bounded_and_the_log_says_how_many_lines_are_missing() {
        let (logs, mut pads) = channel();
        let log = logs.of(JobId(Uuid::from_u128(1)), 1);
        let fitting = WAITING_BYTES_MAX / LINE_BYTES_MIN;
        for number in 0..fitting + 3 {
            log.add(LogLevel::Info, &format!("line {number}"));
        }
        let other = logs.of(JobId(Uuid::from_u128(2)), 1);
        other.add(LogLevel::Info, "of another, which does not suffer");
        let (pad, closed) = (pads.try_recv().unwrap(), log.close());
        let taken = pad.take();
        taken.iter().for_each(|line| pad.settle(line, true));
        assert_eq!((taken[0].message.as_str(), taken.len()), ("line 0", fitting));
        assert_eq!(taken[fitting - 1].message, format!("line {}", fitting - 1));
        let last = messages(closed.await);
        assert!(last.len() == 1 && last[0].starts_with("3 lines are missing"), "{last:?}");
        assert_eq!(messages(other.close().await), ["of another, which does not suffer"]);
        assert_eq!(messages(log.close().await), [""; 0]);
    }

    #[tokio::test]
    async fn the_end_of_an_attempt_takes_its_last_lines_along_after_those_on_their_way() {
        let (logs, mut pads) = channel();
        let log = logs.of(JobId(Uuid::from_u128(1)), 1);
        log.add(LogLevel::Info, "a\0b");
        let pad = pads.try_recv().unwrap();
        let first = pad.take();
        log.add(LogLevel::Info, "last");
        let closed = tokio::spawn(async move { log.close().await });
        tokio::task::yield_now().await;
        assert!(!closed.is_finished());
        first.iter().for_each(|line| pad.settle(line, true));
        assert_eq!(messages(first), ["ab"]);
        assert_eq!(messages(closed.await.unwrap()), ["last"]);
        assert_eq!(messages(pads.try_recv().unwrap().take()), [""; 0]);
    }

    #[tokio::test]
    async fn lines_that_could_not_be_written_are_counted() {
        let (logs, mut pads) = channel();
        let log = logs.of(JobId(Uuid::from_u128(1)), 1);
        log.add(LogLevel::Info, "lost");
        let pad = pads.try_recv().unwrap();
        pad.take().iter().for_each(|line| pad.settle(line, false));
        let last = messages(log.close().await);
        assert!(last.len() == 1 && last[0].starts_with("1 line is missing"), "{last:?}");
    }
}
