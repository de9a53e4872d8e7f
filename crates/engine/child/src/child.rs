//! The child's side, for our own binary: take what was handed down, lock the door, work, answer once.
//!
//! ```no_run
//! use ode_child::child::{Reporter, serve};
//! use ode_child::Failure;
//!
//! // The hidden command of the binary that a supervisor re-executes.
//! fn main() -> std::process::ExitCode {
//!     serve(
//!         || Ok("settings, read while files can still be opened"),
//!         |_settings, payload: String, reporter: &mut Reporter| {
//!             let document = reporter.input().map_err(|error| Failure::rejected("read", error.to_string()))?;
//!             Ok(format!("{payload}: {} bytes", document.len()))
//!         },
//!     )
//! }
//! ```

use crate::Error;
use crate::handover;
use crate::protocol::{Failure, Level};
use crate::sandbox::{self, Descriptors, Enforcement, Sandbox};
use crate::setup::{PROTOCOL, Setup};
use ode_job::ErrorCode;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::fd::AsRawFd;
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// Progress is told at most this often, so that a loop may report every turn.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(100);

/// The kernel's lines about a process; what is looked for stands in their first half.
const STATUS_BYTES_MAX: usize = 4096;

/// Serves one run and says with which code to exit.
///
/// `prepare` runs first, with the rights of the parent: it may read settings and must touch nothing that came
/// from outside. Then the child locks itself in, as far as its supervisor asked, waits for the payload, and hands
/// both to `work`. What `work` returns is the one answer. A panic in it ends the process as a panic does.
///
/// Call it from the main thread, before any other thread exists: the sandbox binds the thread that enters it.
pub fn serve<S, P: DeserializeOwned, R: Serialize>(
    prepare: impl FnOnce() -> Result<S, Failure>,
    work: impl FnOnce(S, P, &mut Reporter) -> Result<R, Failure>,
) -> ExitCode {
    let answered = Entrance::open().and_then(|entrance| {
        let prepared = prepare();
        let mut reporter = entrance.enter()?;
        let answer = prepared.and_then(|prepared| {
            check_enforcement(reporter.setup.sandbox, &reporter.enforcement)?;
            let payload = reporter.read_payload()?;
            work(prepared, payload, &mut reporter)
        });
        reporter.answer(answer)
    });
    match answered {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // There is no channel to say it on; the supervisor shows the last lines of stderr.
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

/// Failure to report under one of our codes.
pub fn failed(code: ErrorCode, message: impl ToString) -> Failure {
    let (code, is_retryable) = (code.to_string(), code.is_retryable());
    Failure { code, message: message.to_string(), retryable: is_retryable, stack: None }
}

/// A child that has taken what was handed down to it and is not locked in yet.
struct Entrance {
    setup: Setup,
    payload: File,
    events: File,
    input: File,
    output: File,
    /// What the kernel says of this process; nothing without /proc.
    status: Option<File>,
}

impl Entrance {
    fn open() -> Result<Self, Error> {
        let setup = Setup::from_environment()?;
        die_with(setup.parent)?;
        crate::process::offer_to_the_kernel();
        let received = handover::receive(io::stdin()).map_err(Error::Descriptor)?;
        let [payload, events, input, output] = received.map(File::from);
        let status = File::open("/proc/self/status").ok();
        Ok(Self { setup, payload, events, input, output, status })
    }

    fn enter(self) -> Result<Reporter, Error> {
        let descriptors = Descriptors {
            payload: self.payload.as_raw_fd(),
            events: self.events.as_raw_fd(),
            input: self.input.as_raw_fd(),
            output: self.output.as_raw_fd(),
            status: self.status.as_ref().map(AsRawFd::as_raw_fd),
        };
        let enforcement = match self.setup.sandbox {
            Sandbox::Off => Enforcement::None,
            Sandbox::Required | Sandbox::BestEffort => sandbox::enter(&self.setup.limits, descriptors),
        };
        let mut reporter = Reporter {
            payload: self.payload,
            events: self.events,
            input: self.input,
            output: self.output,
            status: self.status,
            setup: self.setup,
            enforcement,
            written: 0,
            told: None,
        };
        reporter.say(&Said::Hello { protocol: PROTOCOL, enforcement: &reporter.enforcement.clone() })?;
        Ok(reporter)
    }
}

/// Asks the kernel to end this process with its parent, and checks that the parent is still there.
fn die_with(parent: i32) -> Result<(), Error> {
    #[cfg(target_os = "linux")]
    rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL))
        .map_err(|error| Error::Descriptor(error.into()))?;
    // It may have died before the kernel was asked.
    if rustix::process::Pid::as_raw(rustix::process::getppid()) == parent {
        Ok(())
    } else {
        Err(Error::Orphaned)
    }
}

/// How a child tells its supervisor things, and reads what it was given.
pub struct Reporter {
    payload: File,
    events: File,
    input: File,
    output: File,
    status: Option<File>,
    setup: Setup,
    enforcement: Enforcement,
    written: u64,
    told: Option<Instant>,
}

#[derive(Serialize)]
#[serde(tag = "t", rename_all = "snake_case")]
enum Said<'a> {
    Hello { protocol: u32, enforcement: &'a Enforcement },
    Progress { percent: f32, message: &'a str, step: Option<u32>, steps: Option<u32> },
    Log { level: Level, msg: &'a str },
    Artifact { name: &'a str, offset: u64, bytes: u64 },
    Result(Answer<'a>),
}

#[derive(Serialize)]
#[serde(untagged)]
enum Answer<'a> {
    Success { success: bool, data: &'a RawValue },
    Failure { success: bool, message: &'a str, error: &'a Failure },
}

impl Reporter {
    /// How far the sandbox came.
    pub fn enforcement(&self) -> &Enforcement {
        &self.enforcement
    }

    /// The whole input. Empty if the supervisor gave none.
    pub fn input(&mut self) -> io::Result<Vec<u8>> {
        // Its length by seeking: asking for it by name is not allowed any more.
        let length = self.input.seek(SeekFrom::End(0))?;
        self.input.seek(SeekFrom::Start(0))?;
        let mut bytes = vec![0; usize::try_from(length).map_err(io::Error::other)?];
        self.input.read_exact(&mut bytes)?;
        Ok(bytes)
    }

    /// Tells how far the work is, in percent.
    pub fn progress(&mut self, percent: f32, message: &str) -> io::Result<()> {
        self.tell_progress(percent, message, None)
    }

    /// Tells in which of how many steps the work is, counted from 1.
    pub fn step(&mut self, step: u32, steps: u32, message: &str) -> io::Result<()> {
        let percent = 100.0 * step.saturating_sub(1) as f32 / steps.max(1) as f32;
        self.tell_progress(percent, message, Some((step, steps)))
    }

    /// Writes a line to the log.
    pub fn log(&mut self, level: Level, message: &str) -> io::Result<()> {
        self.say(&Said::Log { level, msg: message })
    }

    /// Adds a file to the output, under a name that is unique in this run.
    pub fn artifact(&mut self, name: &str, contents: &[u8]) -> io::Result<()> {
        let (offset, bytes) = (self.written, contents.len() as u64);
        self.output.write_all(contents)?;
        self.written += bytes;
        self.say(&Said::Artifact { name, offset, bytes })
    }

    /// The most memory that this process has used so far, in bytes; nothing where the kernel does not say.
    pub fn peak_memory_bytes(&mut self) -> Option<u64> {
        let mut text = [0; STATUS_BYTES_MAX];
        let file = self.status.as_mut()?;
        file.seek(SeekFrom::Start(0)).ok()?;
        let length = file.read(&mut text).ok()?;
        peak(std::str::from_utf8(&text[..length]).ok()?)
    }

    fn tell_progress(&mut self, percent: f32, message: &str, step: Option<(u32, u32)>) -> io::Result<()> {
        let now = Instant::now();
        if self.told.is_some_and(|told| now.duration_since(told) < PROGRESS_INTERVAL) {
            return Ok(());
        }
        self.told = Some(now);
        self.say(&Said::Progress {
            percent,
            message,
            step: step.map(|(step, _)| step),
            steps: step.map(|(_, steps)| steps),
        })
    }

    fn read_payload<P: DeserializeOwned>(&self) -> Result<P, Failure> {
        let mut text = Vec::new();
        let bytes_max = self.setup.limits.payload_bytes;
        let read = (&self.payload).take(bytes_max).read_to_end(&mut text);
        read.map_err(|error| {
            Failure::retryable("payload", format!("The payload could not be read: {error}."))
        })?;
        serde_json::from_slice(&text).map_err(|error| {
            Failure::rejected("payload", format!("The payload was not understood: {error}."))
        })
    }

    fn answer<R: Serialize>(mut self, answer: Result<R, Failure>) -> Result<(), Error> {
        match &answer {
            Ok(value) => {
                let data = serde_json::value::to_raw_value(value).map_err(io::Error::from)?;
                self.say(&Said::Result(Answer::Success { success: true, data: &data }))?;
            }
            Err(error) => {
                let message = &error.message;
                self.say(&Said::Result(Answer::Failure { success: false, message, error }))?;
            }
        }
        Ok(())
    }

    /// Writes one line, in one call where the pipe has room.
    fn say(&mut self, said: &Said<'_>) -> io::Result<()> {
        let mut line = serde_json::to_vec(said)?;
        line.push(b'\n');
        self.events.write_all(&line)
    }
}

/// Reads the line `VmHWM:  1234 kB`.
fn peak(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.split_whitespace().next()?.parse::<u64>().ok().map(|kib| kib * 1024)
}

/// Refuses to work behind a door that does not lock, if it has to.
fn check_enforcement(sandbox: Sandbox, enforcement: &Enforcement) -> Result<(), Failure> {
    let missing = match (sandbox, enforcement) {
        (Sandbox::Off | Sandbox::BestEffort, _) | (Sandbox::Required, Enforcement::Full) => return Ok(()),
        (Sandbox::Required, Enforcement::None) => "this system has none".to_owned(),
        (Sandbox::Required, Enforcement::Partial { missing }) => missing.join("; "),
    };
    Err(Failure::rejected("sandbox_unavailable", format!("The sandbox could not be set up: {missing}.")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_peak_of_memory_is_read_where_the_kernel_tells_it() {
        assert_eq!(peak("Name:\tode\nVmPeak:\t 9 kB\nVmHWM:\t   12 kB\n"), Some(12 * 1024));
        assert_eq!(peak("Name:\tode\n"), None);
    }

    #[test]
    fn only_a_child_that_needs_the_whole_sandbox_refuses_without_it() {
        let partial = Enforcement::Partial { missing: vec!["landlock: not here".to_owned()] };
        for (sandbox, enforcement, is_refused) in [
            (Sandbox::Required, &Enforcement::Full, false),
            (Sandbox::Required, &partial, true),
            (Sandbox::Required, &Enforcement::None, true),
            (Sandbox::BestEffort, &partial, false),
            (Sandbox::BestEffort, &Enforcement::None, false),
            (Sandbox::Off, &Enforcement::None, false),
        ] {
            let checked = check_enforcement(sandbox, enforcement);
            assert_eq!(checked.is_err(), is_refused, "{sandbox:?} {enforcement:?}");
        }
        let refusal = check_enforcement(Sandbox::Required, &partial).unwrap_err();
        assert!(refusal.message.contains("landlock: not here") && !refusal.retryable);
    }
}
