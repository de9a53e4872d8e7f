//! What tests need: servers to be killed, disks to be filled, a proxy that spoils requests, PDFs in a few lines, and damaged
//! copies of real ones. No program uses it.

#![expect(clippy::unwrap_used, reason = "in a test, a panic at the place is the report")]

mod disk;
pub mod pdf;
mod proxy;
mod servers;

pub use disk::SmallDisk;
pub use proxy::{Mood, Proxy};
pub use servers::{Postgres, Redis};
