//! How much a child may use, and how patiently it is ended.

use serde::{Deserialize, Serialize};
use std::time::Duration;

const MIB: u64 = 1024 * 1024;

/// What one run may use. [`Limits::default`] is for a conversion in our own binary, [`Limits::program`] for a
/// foreign program with a tree of processes, such as a browser.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// Time from the payload's first byte to the end of the process. Default 60 s; ends as [`TimedOut`].
    ///
    /// [`TimedOut`]: crate::Outcome::TimedOut
    pub wall_clock: Duration,
    /// Processor time of each process, in whole seconds because the kernel counts so. Default 20 s; ends as
    /// [`CpuExceeded`](crate::Outcome::CpuExceeded).
    pub cpu_seconds: Option<u64>,
    /// Address space of each process. Default 512 MiB; an allocation past it aborts the child, which ends as
    /// [`OutOfMemory`](crate::Outcome::OutOfMemory). None for programs that reserve far more than they use, as
    /// browsers do.
    pub address_space_bytes: Option<u64>,
    /// Memory of the whole tree that is really in use, looked at every half second. Default none: a single
    /// process is bound more tightly by its address space.
    pub resident_bytes: Option<u64>,
    /// How far the stack of the child's main thread may grow. Default 64 MiB: enough for the deepest nesting
    /// that our parsers accept, and counted in the address space only once it is used.
    pub stack_bytes: u64,
    /// Size of the payload on stdin. Default 1 MiB; a larger one is refused before anything starts.
    pub payload_bytes: u64,
    /// Size of the input. Default 50 MiB; a larger one is refused before anything starts.
    pub input_bytes: u64,
    /// Size of the output, and of every other file the child writes. Default 200 MiB; ends as
    /// [`OutputTooLarge`](crate::Outcome::OutputTooLarge).
    pub output_bytes: u64,
    /// Bytes of stdout and stderr together that are passed on. Default 256 KiB; what follows is read, counted
    /// and dropped, so that a chatty child neither blocks nor fills a log. A line counts for at least 64.
    pub log_bytes: u64,
    /// Bytes of the end of a log that is longer than that, told when the program has ended. Default none.
    pub log_tail_bytes: u64,
    /// Length of one line of a log. Default 4 KiB; the rest of a longer line is cut.
    pub log_line_bytes: usize,
    /// Lines on the event channel. Default 10,000; one more is a protocol violation.
    pub events: u32,
    /// Length of one line on the event channel, the result included. Default 4 MiB; a longer one is a protocol
    /// violation. What is larger belongs into the output.
    pub event_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            wall_clock: Duration::from_secs(60),
            cpu_seconds: Some(20),
            address_space_bytes: Some(512 * MIB),
            resident_bytes: None,
            stack_bytes: 64 * MIB,
            payload_bytes: MIB,
            input_bytes: 50 * MIB,
            output_bytes: 200 * MIB,
            log_bytes: MIB / 4,
            log_tail_bytes: 0,
            log_line_bytes: 4096,
            events: 10_000,
            event_bytes: 4 * 1024 * 1024,
        }
    }
}

impl Limits {
    /// For a foreign program: ten minutes, 1 GiB in use over its whole tree, no bound on address space or
    /// processor time, a megabyte each of the beginning and the end of its log, and 100,000 events.
    pub fn program() -> Self {
        Self {
            wall_clock: Duration::from_secs(600),
            cpu_seconds: None,
            address_space_bytes: None,
            resident_bytes: Some(1024 * MIB),
            log_bytes: MIB,
            log_tail_bytes: MIB,
            events: 100_000,
            ..Self::default()
        }
    }
}

/// How long a child that must end is given before the next, harder signal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grace {
    /// Between SIGINT and SIGTERM. SIGINT goes to the program alone, so that it can close what it started.
    pub interrupt: Duration,
    /// Between SIGTERM and SIGKILL, which go to the whole tree.
    pub terminate: Duration,
}

impl Grace {
    /// SIGKILL at once: right for a child that owns nothing outside its own memory.
    pub const NONE: Self = Self { interrupt: Duration::ZERO, terminate: Duration::ZERO };

    /// Five seconds to close in order, two more to obey: longer than a browser needs (one to three seconds).
    pub const PATIENT: Self = Self { interrupt: Duration::from_secs(5), terminate: Duration::from_secs(2) };

    /// The time after which everything should be gone.
    pub(crate) fn total(self) -> Duration {
        self.interrupt + self.terminate
    }
}
