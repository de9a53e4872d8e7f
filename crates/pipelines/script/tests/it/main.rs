//! The runner with real processes: scripts in shell, Python and node, written by the tests, and real browsers.
//! Only Linux has all that is tested here.

#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "in a test, a panic at the place is the report")]

mod browsers;
mod harness;
mod kills;
mod parts;
mod runs;
mod spares;
