//! Child processes: the protocol they speak, the supervisor that watches them, and the sandbox they lock
//! themselves in. Of jobs it knows only how a run ends for them ([`Subject`]).
//!
//! Everything untrusted or long runs in a child. There are two kinds:
//!
//! - **Our own binary**, run again ([`Spec::own`]), for conversions. It uses [`child::serve`], takes its input and
//!   gives its output through descriptors, and is locked in before it sees a byte from outside. It can start
//!   nothing, so its process is the whole tree.
//! - **A foreign program** ([`Spec::kept`]), such as a script that drives a browser. It runs below a
//!   [`keeper`], which loses none of the processes it starts, and leaves its files in its working directory.
//!
//! Both get a payload of one JSON document and an environment of almost nothing, tell events in lines of JSON,
//! and have what they print on stdout and stderr passed on as logs. Every run ends
//! as exactly one [`Outcome`], with every process of it gone.
//!
//! A foreign program finds its payload on stdin and writes its events to descriptor 3. Our own binary, as a child
//! or as a keeper, is handed its descriptors in one message over its stdin, which is a socket: the payload, the
//! events, and for a child the input and the output, which are files in memory. The input is sealed before
//! the payload is sent, the output grows to `output_bytes` at most.
//!
//! ```no_run
//! use ode_child::{Input, Outcome, Program, Spec, Supervisor, Work};
//!
//! # async fn convert(document: Vec<u8>) -> Result<(), Box<dyn std::error::Error>> {
//! let supervisor = Supervisor::new()?;
//! let spec = Spec::own(Program::this_binary(["child", "convert"])?);
//! let work = Work::new(&"payload")?.with_input(Input::Bytes(document.into()));
//! let stop = std::future::pending();
//! let report = supervisor.run(&spec, work, |notice| println!("{notice:?}"), stop).await?;
//! match &report.outcome {
//!     Outcome::Finished(result) => println!("{result}"),
//!     other => println!("{other:?}"),
//! }
//! for artifact in &report.artifacts {
//!     println!("{}: {} bytes", artifact.name, report.read(artifact)?.len());
//! }
//! # Ok(())
//! # }
//! ```
//!
//! On Linux everything described here holds. Other systems have no sandbox and no list of processes: there a
//! child's process group is ended and no more, and [`Enforcement::None`] says so.

pub mod child;
mod handover;
pub mod keeper;
mod limits;
mod lines;
mod outcome;
mod pool;
mod process;
mod protocol;
mod redact;
mod run;
mod sandbox;
mod setup;
mod spares;
mod subject;
mod supervisor;
mod tree;

pub use limits::{Grace, Limits};
pub use outcome::{Crash, LogLine, Notice, Outcome, Report, Source, Summary, Usage, Violation};
pub use pool::{Pool, PoolOptions, Run, Turn};
pub use protocol::{Artifact, Failure, Level, Place, Progress, Step, StepState};
pub use redact::{HIDDEN, Redactor, SECRET_CHARS_MIN};
pub use run::{Input, Work};
pub use sandbox::{Enforcement, Sandbox};
pub use setup::{EVENTS_VARIABLE, PROTOCOL, PROTOCOL_VARIABLE, RUN_VARIABLE};
pub use spares::{Spares, Wait};
pub use subject::{Excess, Subject, unexpected};
pub use supervisor::{Program, Spec, Supervisor, Waiting};
pub use tree::{Orphans, Record, end_orphan};

/// Why a child could not be started, fed or served. How a run ends is not an error but an [`Outcome`].
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The program could not be started: it is not there, or the system has no room for another process.
    #[error("{program} could not be started: {error}", program = program.display())]
    Start {
        program: std::path::PathBuf,
        /// What the system said.
        error: std::io::Error,
    },
    /// A program that is to be kept needs a name and arguments in UTF-8.
    #[error("the program's name or one of its arguments is not UTF-8")]
    ProgramName,
    /// The payload is larger than the limit; the caller has to put it elsewhere.
    #[error("the payload has {bytes} bytes and the limit is {bytes_max}")]
    PayloadTooLarge {
        /// How large it is.
        bytes: u64,
        /// How large it may be.
        bytes_max: u64,
    },
    /// The input is larger than the limit.
    #[error("the input has {bytes} bytes and the limit is {bytes_max}")]
    InputTooLarge {
        /// How large it is.
        bytes: u64,
        /// How large it may be.
        bytes_max: u64,
    },
    /// An input was given to a program that takes none.
    #[error("a kept program finds its files in its working directory and takes no other input")]
    NoInput,
    /// A pipe, a file in memory or a process could not be handled: the system is short of something.
    #[error("a descriptor or process of the child could not be handled: {0}")]
    Descriptor(#[from] std::io::Error),
    /// This process was not started by a supervisor.
    #[error("this command is for the program's own use, under a supervisor")]
    NotAChild,
    /// The supervisor has gone before this child was ready.
    #[error("the supervisor has gone")]
    Orphaned,
    /// The thread that starts children has ended.
    #[error("no child can be started any more")]
    Closed,
}
