//! The supervisor with real processes: this test binary, run again in the part that a test gives it.

#![expect(clippy::unwrap_used, reason = "in a test, a panic at the place is the report")]

mod harness;
mod housekeeping;
mod outcomes;
mod parts;
#[cfg(target_os = "linux")]
mod sandbox_escape;
#[cfg(target_os = "linux")]
mod trees;
