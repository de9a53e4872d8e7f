//! Processes as the kernel shows them: who is whose child, since when, and in which run.
//!
//! A process is named by its number and its start time together. The number alone comes back after a while, and
//! then belongs to somebody else.

use crate::setup::RUN_VARIABLE;
use rustix::process::{Pid, Signal};
use std::time::Duration;

/// One process at the moment it was looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Process {
    pub(crate) pid: i32,
    pub(crate) parent: i32,
    /// In clock ticks since boot.
    pub(crate) started: u64,
    /// It has ended and waits to be reaped.
    pub(crate) is_zombie: bool,
    /// It is a thread of the kernel itself.
    pub(crate) is_kernels: bool,
    /// Processor time, its own and that of the children it has reaped.
    pub(crate) cpu: Duration,
}

/// Whether a process is of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Belongs {
    /// Its environment says so.
    Yes,
    /// Its environment says otherwise, or is not ours to read.
    No,
    /// It shows none: it has none, or is just becoming another program.
    Unclear,
}

/// What the kernel counts processor time in for user space, on every platform that we build for.
#[cfg(target_os = "linux")]
const TICK: Duration = Duration::from_millis(10);
/// `PF_KTHREAD` among the flags of a process.
#[cfg(target_os = "linux")]
const KERNEL_THREAD: u64 = 0x0020_0000;

impl Process {
    /// Looks at one process.
    #[cfg(target_os = "linux")]
    pub(crate) fn look(pid: i32) -> Option<Self> {
        parse(pid, &std::fs::read(format!("/proc/{pid}/stat")).ok()?)
    }

    /// There is nothing to look at without /proc.
    #[cfg(not(target_os = "linux"))]
    pub(crate) fn look(_pid: i32) -> Option<Self> {
        None
    }

    /// Looks at every process; at none without /proc.
    pub(crate) fn all() -> Vec<Self> {
        let Ok(entries) = std::fs::read_dir("/proc") else { return Vec::new() };
        let numbers = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
        numbers.filter_map(Self::look).collect()
    }

    /// Whether it was started in this run. A process that has ended does not show it any more.
    pub(crate) fn belongs(&self, run: &str) -> Belongs {
        let Ok(environment) = std::fs::read(format!("/proc/{}/environ", self.pid)) else {
            return Belongs::No;
        };
        let wanted = format!("{RUN_VARIABLE}={run}");
        if environment.split(|&byte| byte == 0).any(|variable| variable == wanted.as_bytes()) {
            return Belongs::Yes;
        }
        if environment.is_empty() && !self.is_zombie { Belongs::Unclear } else { Belongs::No }
    }

    /// Memory in use, counting what is shared with others only in part.
    pub(crate) fn resident_bytes(&self) -> u64 {
        let Ok(text) = std::fs::read_to_string(format!("/proc/{}/smaps_rollup", self.pid)) else { return 0 };
        let line = text.lines().find_map(|line| line.strip_prefix("Pss:"));
        let kib = line.and_then(|rest| rest.split_whitespace().next()?.parse::<u64>().ok());
        kib.unwrap_or(0) * 1024
    }

    /// Sends a signal to this process and to no other that may have got its number since.
    #[cfg(target_os = "linux")]
    pub(crate) fn signal(&self, signal: Signal) {
        use rustix::process::{PidfdFlags, pidfd_open, pidfd_send_signal};
        let Some(pid) = Pid::from_raw(self.pid) else { return };
        let Ok(handle) = pidfd_open(pid, PidfdFlags::empty()) else { return };
        if Self::look(self.pid).is_some_and(|now| now.started == self.started) {
            // It has ended in the meantime, which is what the signal was for.
            let _ = pidfd_send_signal(handle, signal);
        }
    }

    #[cfg(not(target_os = "linux"))]
    pub(crate) fn signal(&self, signal: Signal) {
        if let Some(pid) = Pid::from_raw(self.pid) {
            // As above.
            let _ = rustix::process::kill_process(pid, signal);
        }
    }
}

/// Reads a line of `/proc/PID/stat`. The name in it is in parentheses and may itself contain any byte.
#[cfg(target_os = "linux")]
fn parse(pid: i32, line: &[u8]) -> Option<Process> {
    let name_end = line.iter().rposition(|&byte| byte == b')')?;
    let rest = std::str::from_utf8(line.get(name_end + 2..)?).ok()?;
    let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
    // The manual counts from 1 and counts the number and the name too.
    let number = |index: usize| fields.get(index - 3)?.parse::<u64>().ok();
    let ticks = number(14)? + number(15)? + number(16)? + number(17)?;
    Some(Process {
        pid,
        parent: fields.get(1)?.parse().ok()?,
        started: number(22)?,
        is_zombie: matches!(*fields.first()?, "Z" | "X"),
        is_kernels: number(9)? & KERNEL_THREAD != 0,
        cpu: TICK * u32::try_from(ticks).unwrap_or(u32::MAX),
    })
}

/// Of 1000: the higher, the sooner a process is killed when the whole machine is out of memory.
const OOM_SCORE: &str = "500";

/// Has the kernel end this process and its children before the supervisor, should memory run out everywhere.
pub(crate) fn offer_to_the_kernel() {
    // Where it cannot be said, the kernel chooses by size alone.
    let _ = std::fs::write("/proc/self/oom_score_adj", OOM_SCORE);
}

/// Names the time since the system was started: the numbers of processes mean nothing beyond it.
pub(crate) fn boot() -> String {
    let text = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    text.trim().to_owned()
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_parentheses_and_spaces_does_not_confuse() {
        let line = b"42 (a) b) (c) Z 7 42 42 0 -1 4194304 1 2 3 4 5 6 70 80 20 0 1 0 12345 0 0";
        let (is_zombie, is_kernels) = (true, false);
        let expected = Process { pid: 42, parent: 7, started: 12345, is_zombie, is_kernels, cpu: TICK * 161 };
        assert_eq!(parse(42, line), Some(expected));
    }

    #[test]
    fn a_thread_of_the_kernel_is_known_by_its_flags_whatever_its_number() {
        for (pid, flags, is_kernels) in [(2, 2_129_984, true), (2, 4_194_560, false), (77, 69_238_880, true)]
        {
            let line = format!("{pid} (a) S 0 0 0 0 -1 {flags} 0 0 0 0 0 0 0 0 20 0 1 0 5 0 0");
            assert_eq!(parse(pid, line.as_bytes()).unwrap().is_kernels, is_kernels, "{line}");
        }
    }

    #[test]
    fn a_short_line_is_no_process() {
        for line in [&b""[..], b"42", b"42 (a", b"42 (a)", b"42 (a) S", b"42 (a) S 1 2 3"] {
            assert_eq!(parse(42, line), None);
        }
    }

    #[test]
    fn this_process_is_seen_with_its_parent() {
        let own = Process::look(std::process::id().cast_signed()).unwrap();
        let parent = rustix::process::getppid().unwrap().as_raw_pid();
        assert!(own.parent == parent && !own.is_zombie && !own.is_kernels && own.resident_bytes() > 0);
        assert!(Process::all().iter().any(|seen| seen.pid == own.pid && seen.started == own.started));
        assert_eq!(own.belongs("nothing"), Belongs::No);
    }
}
