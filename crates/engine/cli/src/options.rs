//! Options that several commands have.

use clap::Args;
use ode_child::Sandbox;
use std::time::Duration;

/// Options about the sandbox of children.
#[derive(Debug, Clone, Copy, Args)]
pub struct SandboxArgs {
    /// Convert without locking the child in. Only to look for a fault, and only with files you trust
    #[arg(long)]
    no_sandbox: bool,
}

impl SandboxArgs {
    pub fn sandbox(self) -> Sandbox {
        if self.no_sandbox { Sandbox::Off } else { Sandbox::BestEffort }
    }
}

/// A week is longer than anything here should take.
const SECONDS_MAX: f64 = 604_800.0;

/// Parses a number of seconds.
pub fn seconds(text: &str) -> Result<Duration, String> {
    let number: Option<f64> = text.parse().ok();
    let in_range = number.filter(|number| *number > 0.0 && *number <= SECONDS_MAX);
    in_range
        .map(Duration::from_secs_f64)
        .ok_or_else(|| "Give a number of seconds above 0, up to a week.".to_owned())
}
