//! The domain of ODE: what a job is, which state may follow which, who holds it, and when it is tried again.
//!
//! Everything here is pure. There is no SQL, HTTP, file, clock or random number in this crate: time and
//! chance are parameters. The store carries out what is decided here, and the worker asks here what to do.

pub mod breaker;
pub mod check;
pub mod document;
pub mod estimate;
pub mod failure;
pub mod file;
pub mod id;
pub mod lease;
pub mod machine;
pub mod machines;
pub mod new;
pub mod record;
mod repeated;
pub mod retry;
pub mod settle;
pub mod state;

pub use breaker::{Breaker, BreakerPolicy};
pub use check::{Check, CheckKind, Severity};
pub use document::SourceDocument;
pub use failure::{ErrorCode, Failure, FailureKind};
pub use file::{File, SHOWS_WHY, Source};
pub use id::{JobId, JobRef, Owner, WorkerId};
pub use lease::{Claimed, Lease};
pub use machine::{Edge, Lane, Machine, Pipeline, Refused, Standing};
pub use new::{Invalid, NewJob};
pub use record::{Artifact, EventRecord, JobRecord, LogLevel, LogLine, NewLogLine, Progress, WorkerRecord};
pub use repeated::repeated_name;
pub use retry::RetryPolicy;
pub use settle::{Attempt, Ended, Settled, Step, Verdict, settle};
pub use state::{Event, Phase, State};
