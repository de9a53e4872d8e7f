//! The supervisor with real processes: this test binary, run again in the part that a test gives it.
//! Only Linux has all that is tested here.

#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "in a test, a panic at the place is the report")]

mod harness;
mod housekeeping;
mod outcomes;
mod parts;
mod pool;
mod sandbox_escape;
mod telling;
mod trees;
