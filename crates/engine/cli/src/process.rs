//! Processes that run until they are asked to stop: listening, signals, announcements.

use crate::{WrongUse, line, tell};
use anyhow::Context as _;
use std::pin::pin;
use std::process::ExitCode;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Says something on standard output. Nobody need listen: the work goes on if the reader is gone.
pub fn announce(text: String) {
    let _ = line(text);
}

/// Listens where this option says.
pub async fn listen(address: &str, option: &str) -> anyhow::Result<TcpListener> {
    listen_or(address, option, "").await
}

/// Listens where this option says. `otherwise` ends the advice about an address that is taken.
pub async fn listen_or(address: &str, option: &str, otherwise: &str) -> anyhow::Result<TcpListener> {
    TcpListener::bind(address).await.map_err(|error| {
        let refused = format!(
            "Cannot listen on {address}: {error}. Give {option} an address of this machine, such as 127.0.0.1:8080."
        );
        match error.kind() {
            std::io::ErrorKind::AddrInUse => anyhow::anyhow!(
                "Another program listens on {address}; perhaps ODE is running already. Stop it, or choose another \
                 address with {option}{otherwise}."
            ),
            std::io::ErrorKind::InvalidInput => WrongUse(refused).into(),
            _ => anyhow::anyhow!(refused),
        }
    })
}

/// Files and connections that a busy site may have open.
const DESCRIPTORS: u64 = 65_536;

/// Raises the limit that programs begin with, which is often 1,024, as far as this process may.
pub fn raise_descriptors() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let wanted = maximum.map_or(DESCRIPTORS, |maximum| maximum.min(DESCRIPTORS));
    if current.is_some_and(|current| current < wanted) {
        // A refusal leaves the old limit in force.
        let _ = setrlimit(Resource::Nofile, Rlimit { current: Some(wanted), maximum });
    }
}

/// Stopping for longer than this asks for a word.
const SILENCE_MAX: Duration = Duration::from_secs(1);

/// Ctrl-C and SIGTERM, heard from the moment this is made.
pub struct Signals {
    interrupt: Signal,
    terminate: Signal,
}

impl Signals {
    pub fn listen() -> anyhow::Result<Self> {
        let hear = |kind| signal(kind).context("Signals cannot be listened for");
        Ok(Signals { interrupt: hear(SignalKind::interrupt())?, terminate: hear(SignalKind::terminate())? })
    }

    /// Returns when the process is asked to stop.
    pub async fn asked(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }

    /// Waits until everything has ended. Who asks a second time does not want to wait.
    pub async fn wait_for(
        &mut self,
        drained: impl Future<Output = anyhow::Result<()>>,
        grace: Duration,
    ) -> anyhow::Result<ExitCode> {
        let mut drained = pin!(drained);
        let outcome = tokio::select! {
            outcome = &mut drained => outcome,
            () = self.asked() => return Ok(cut_short()),
            () = tokio::time::sleep(SILENCE_MAX) => {
                tell(format!(
                    "Waiting up to {} s for what is running. Press ctrl-C again to stop at once.",
                    grace.as_secs()
                ));
                tokio::select! {
                    outcome = &mut drained => outcome,
                    () = self.asked() => return Ok(cut_short()),
                }
            }
        };
        outcome?;
        announce("Stopped.".into());
        Ok(ExitCode::SUCCESS)
    }
}

fn cut_short() -> ExitCode {
    tell("Stopped at once. What was running is given to another worker, or tried again at the next start.");
    // The code that shells report for a process ended by ctrl-C.
    ExitCode::from(130)
}
