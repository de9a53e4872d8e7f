//! Lines of the log, written by a thread of their own: whoever reads them may be slow, or have stopped reading without
//! closing the pipe, and the work must not wait for that.

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;

/// Lines that wait to be written. Further ones are dropped, and their number is told.
const LINES_MAX: usize = 10_000;
/// How long the end of the program waits for lines to be written.
const FLUSH_PATIENCE: Duration = Duration::from_secs(1);

enum Word {
    Line(Vec<u8>),
    /// Everything before it is written when this is answered.
    Flush(SyncSender<()>),
}

/// Where lines go. Each write is one line, whole.
#[derive(Clone)]
pub(crate) struct LogLines {
    queue: SyncSender<Word>,
    dropped: Arc<AtomicU64>,
}

/// Sees to it that what was logged is written before the program ends.
pub(crate) struct Flush(LogLines);

impl LogLines {
    /// Starts the thread that writes to `out`.
    pub(crate) fn start(out: impl Write + Send + 'static) -> io::Result<(Self, Flush)> {
        let (queue, words) = sync_channel(LINES_MAX);
        let dropped = Arc::new(AtomicU64::new(0));
        let lines = LogLines { queue, dropped: dropped.clone() };
        std::thread::Builder::new().name("log".into()).spawn(move || write(out, &words, &dropped))?;
        Ok((lines.clone(), Flush(lines)))
    }
}

fn write(mut out: impl Write, words: &Receiver<Word>, dropped: &AtomicU64) {
    for word in words {
        match word {
            // A log that cannot be written (a closed pipe, a full disk) must not end the work it tells of.
            Word::Line(line) => drop(out.write_all(&line)),
            // Nobody waits any more, which is fine.
            Word::Flush(done) => drop(done.try_send(())),
        }
        let count = dropped.swap(0, Ordering::Relaxed);
        if count > 0 {
            drop(writeln!(out, "{count} lines of the log were dropped: nobody read them in time."));
        }
    }
}

impl Write for LogLines {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        if self.queue.try_send(Word::Line(line.to_vec())).is_err() {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for Flush {
    fn drop(&mut self) {
        let (done, written) = sync_channel(1);
        if self.0.queue.try_send(Word::Flush(done)).is_ok() {
            // Where nobody reads, the rest is lost with the program.
            let _ = written.recv_timeout(FLUSH_PATIENCE);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read as _;

    #[test]
    fn a_log_that_nobody_reads_holds_nothing_up_and_tells_what_it_dropped() {
        let (mut reader, writer) = io::pipe().unwrap();
        let (mut lines, flush) = LogLines::start(writer).unwrap();
        // More than the pipe and the queue hold together.
        let line = [b'x'; 100];
        for _ in 0..2 * LINES_MAX {
            lines.write_all(&line).unwrap();
        }
        assert!(lines.dropped.load(Ordering::Relaxed) > 0);
        let reading = std::thread::spawn(move || {
            let mut text = String::new();
            reader.read_to_string(&mut text).unwrap();
            text
        });
        drop((lines, flush));
        let text = reading.join().unwrap();
        assert!(text.contains(" lines of the log were dropped"), "{} bytes", text.len());
    }
}
