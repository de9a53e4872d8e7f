//! What a child is told about itself: the environment variables that both sides agree on.

use crate::Error;
use crate::limits::{Grace, Limits};
use crate::sandbox::Sandbox;
use serde::{Deserialize, Serialize};

/// The version of the protocol, in [`PROTOCOL_VARIABLE`] and in the hello of our own children.
pub const PROTOCOL: u32 = 1;

/// Says which protocol is spoken; its presence tells a program that it runs under a supervisor.
pub const PROTOCOL_VARIABLE: &str = "ODE_PROTOCOL";

/// Names the run. Every process of a tree inherits it, so that strays can be found by it.
pub const RUN_VARIABLE: &str = "ODE_RUN";

/// Says on which descriptor events are expected, for programs that want to check.
pub const EVENTS_VARIABLE: &str = "ODE_EVENTS_FD";

/// Carries a [`Setup`] to our own binary. A kept program does not see it.
pub(crate) const SETUP_VARIABLE: &str = "ODE_CHILD_SETUP";

/// Where a program writes its events.
pub(crate) const EVENTS_FD: i32 = 3;

/// What our own binary must know before it is sent anything.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Setup {
    /// The supervisor's process; with another parent the child is already an orphan.
    pub(crate) parent: i32,
    pub(crate) sandbox: Sandbox,
    pub(crate) limits: Limits,
    pub(crate) grace: Grace,
    /// For the keeper: the program to keep and its arguments.
    pub(crate) program: Vec<String>,
    /// For the keeper: what to remove at the end, should the supervisor be gone by then.
    pub(crate) scratch: Option<std::path::PathBuf>,
}

impl Setup {
    pub(crate) fn from_environment() -> Result<Self, Error> {
        let text = std::env::var(SETUP_VARIABLE).map_err(|_| Error::NotAChild)?;
        serde_json::from_str(&text).map_err(|_| Error::NotAChild)
    }
}
