//! What a child of our own may still do once it has locked itself in: compute, read what it was given, write where
//! it was told to, and end.
//!
//! The child applies this to itself, after it has prepared (opened its descriptors, loaded its settings) and
//! before it reads a byte that came from outside. Three locks lie one behind the other:
//!
//! 1. **rlimits**: address space, processor time, file size, no core dump, no new descriptor, no new process.
//! 2. **Landlock** without a single rule: no path can be opened, made, removed or run; no TCP port used; no
//!    signal sent and no abstract socket reached outside the sandbox, as far as the kernel knows these.
//! 3. **seccomp** with a short list of allowed system calls, which are allowed for the known descriptors only.
//!    A descriptor that leaked into the child can therefore not even be read.
//!
//! Nothing is opened after that, so the lists need no exception for fonts, temporary files or the output: all
//! of it goes through descriptors. Only Linux has these locks; elsewhere the child says [`Enforcement::None`].

use serde::{Deserialize, Serialize};

#[cfg(target_os = "linux")]
mod filter;
#[cfg(target_os = "linux")]
mod linux;

#[cfg(target_os = "linux")]
pub(crate) use linux::{enter, limit_for_program};

/// Whether a child locks itself in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Sandbox {
    /// It must reach [`Enforcement::Full`] or refuse to work (`sandbox_unavailable`).
    #[default]
    Required,
    /// It does what the system allows and says how far it came.
    BestEffort,
    /// It does not. For debugging only.
    Off,
}

/// How far a child came in locking itself in.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Enforcement {
    /// Nothing was applied, or the child never said.
    #[default]
    None,
    /// Some of it is missing.
    Partial {
        /// What could not be applied.
        missing: Vec<String>,
    },
    /// All three locks hold. Landlock may be of an older version that does not know networks or signals yet:
    /// what it misses there is closed by seccomp all the same.
    Full,
}

/// The descriptors that remain of use inside.
#[derive(Debug, Clone, Copy)]
#[cfg_attr(
    not(target_os = "linux"),
    expect(dead_code, reason = "there is no sandbox that would look at them")
)]
pub(crate) struct Descriptors {
    pub(crate) payload: i32,
    pub(crate) events: i32,
    pub(crate) input: i32,
    pub(crate) output: i32,
    /// The kernel's word about this process, to be read.
    pub(crate) status: Option<i32>,
}

/// There is no sandbox on this system.
#[cfg(not(target_os = "linux"))]
pub(crate) fn enter(_limits: &crate::Limits, _descriptors: Descriptors) -> Enforcement {
    Enforcement::None
}

/// There are no limits on this system.
#[cfg(not(target_os = "linux"))]
pub(crate) fn limit_for_program(_limits: &crate::Limits) -> std::io::Result<()> {
    Ok(())
}
