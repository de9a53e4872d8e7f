//! What can go wrong in the store, named for what the caller would do about it.

use jiff::Timestamp;
use ode_job::{ErrorCode, Invalid, JobId, Refused};

/// The store's one error.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There is no such job (or it is not this owner's; the answer is the same).
    #[error("There is no job {0}. `ode jobs list` shows the ones there are.")]
    NotFound(String),
    /// More than one job has this reference.
    #[error("More than one job is called {0}. Use the full id.")]
    Ambiguous(String),
    /// The request itself is wrong.
    #[error(transparent)]
    Invalid(#[from] Invalid),
    /// The machine does not allow the step.
    #[error("{refused} {}", advice(refused))]
    Refused {
        /// Which step.
        #[from]
        refused: Refused,
    },
    /// Another job of this owner has the external id.
    #[error(
        "external_id \"{external_id}\" is taken by job {existing}. Use that job, or choose another external_id."
    )]
    Duplicate {
        /// The id asked for.
        external_id: String,
        /// The job that has it.
        existing: JobId,
    },
    /// Two jobs of one batch have the same external id.
    #[error("external_id \"{0}\" is given to two jobs of one batch. Choose another for one of them.")]
    Repeated(String),
    /// The idempotency key was used for a different request.
    #[error("This Idempotency-Key was used for a different request. Use a new key for a new request.")]
    KeyReused,
    /// The job changed between reading and writing it, again and again.
    #[error("Job {0} kept changing while this was tried. Look at it with `ode jobs show`, then try again.")]
    Busy(JobId),
    /// Another process gave an entry the same number; nothing was written, and a new number will do.
    #[error("Two processes numbered an entry of the history alike; nothing was written. Try again.")]
    Collision,
    /// The lease is gone; nothing was changed.
    #[error("The lease on job {0} is lost; nothing was changed.")]
    LeaseLost(JobId),
    /// The secret before the last one still counts; a new one would end it early.
    #[error(
        "The secret was replaced not long ago, and messages are signed with the one before it as well until {0}. Wait until \
         then; or end both at once with `--keep-hours 0`, after which only the new one counts."
    )]
    SecretKept(Timestamp),
    /// A pipeline refuses what is asked of it.
    #[error("{message}{hint}")]
    Declined {
        /// Why, as a code.
        code: ErrorCode,
        /// Why, in a sentence for people.
        message: String,
        /// Another sentence for operators, after a space; may be empty.
        hint: &'static str,
    },
    /// The database has another schema version than this program.
    #[error("{0}")]
    Schema(String),
    /// The database cannot be reached, now.
    #[error(
        "The database cannot be reached: {0}. Check that it runs and that --database is right; `ode doctor` tells more."
    )]
    Unavailable(String),
    /// The database refuses to be written.
    #[error("The database is read-only: {0}")]
    ReadOnly(String),
    /// There is no space left.
    #[error(
        "There is no space left for the database or its files: {0}. Free some, then try again; nothing was lost."
    )]
    DiskFull(String),
    /// A setting is wrong.
    #[error("{0}")]
    Config(String),
    /// A stored value cannot be read.
    #[error("The database holds something this version cannot read: {0}. `ode doctor` tells more.")]
    Corrupt(String),
    /// A file could not be stored or read.
    #[error("The file store failed: {0}")]
    Blob(String),
    /// Anything else the database said.
    #[error("The database refused: {0}")]
    Database(String),
}

/// A step that is refused is usually one word away from one that is not.
fn advice(refused: &Refused) -> &'static str {
    use ode_job::{Event, Phase};
    let phase = refused.pipeline.phase(refused.from);
    match (refused.event, phase) {
        (Event::Cancelled, Some(Phase::Running)) => "It has started: use `ode jobs stop` instead.",
        (Event::Stopped, Some(Phase::Held | Phase::Ready)) => {
            "It has not started: use `ode jobs cancel` instead."
        }
        (Event::Expired, Some(Phase::Held | Phase::Ready)) => "Call it off first, with `ode jobs cancel`.",
        (Event::Expired, Some(Phase::Running)) => "End it first, with `ode jobs stop`.",
        (Event::Retried, Some(Phase::Done)) => "It succeeded: there is nothing to retry.",
        (Event::Retried, Some(Phase::Held | Phase::Ready | Phase::Running)) => "It has not ended yet.",
        (_, Some(Phase::Done | Phase::Failed | Phase::Cancelled)) => "It has already ended.",
        _ => "",
    }
}

impl Error {
    /// A refusal by a pipeline, in a sentence for people.
    pub fn declined(code: ErrorCode, message: impl Into<String>) -> Self {
        Error::Declined { code, message: message.into(), hint: "" }
    }

    /// The stable code, for `ode explain` and the API.
    pub fn code(&self) -> ErrorCode {
        match self {
            Error::NotFound(_) | Error::Ambiguous(_) => ErrorCode::NotFound,
            Error::Invalid(Invalid::TooLarge { .. }) => ErrorCode::PayloadTooLarge,
            Error::Refused { .. } | Error::SecretKept(_) | Error::Busy(_) | Error::LeaseLost(_) => {
                ErrorCode::Conflict
            }
            Error::Invalid(_) | Error::Config(_) | Error::KeyReused => ErrorCode::Invalid,
            Error::Declined { code, .. } => *code,
            Error::Duplicate { .. } | Error::Repeated(_) => ErrorCode::Duplicate,
            Error::Schema(_) => ErrorCode::SchemaMismatch,
            Error::Unavailable(_) => ErrorCode::DatabaseUnavailable,
            Error::ReadOnly(_) => ErrorCode::DatabaseReadOnly,
            Error::DiskFull(_) => ErrorCode::DiskFull,
            Error::Blob(_) => ErrorCode::IoError,
            Error::Corrupt(_) | Error::Database(_) | Error::Collision => ErrorCode::Unknown,
        }
    }

    /// Whether the same call may work a little later, unchanged.
    pub fn is_passing(&self) -> bool {
        matches!(self, Error::Unavailable(_) | Error::DiskFull(_) | Error::Collision)
    }

    /// A passing fault, for another one whom it concerns.
    pub(crate) fn again(&self) -> Error {
        match self {
            Error::DiskFull(said) => Error::DiskFull(said.clone()),
            Error::Unavailable(said) => Error::Unavailable(said.clone()),
            other => Error::Unavailable(other.to_string()),
        }
    }
}

impl From<sqlx::Error> for Error {
    fn from(error: sqlx::Error) -> Self {
        crate::database::dialect::classify(error)
    }
}

impl From<object_store::Error> for Error {
    fn from(error: object_store::Error) -> Self {
        of_files(&error)
    }
}

impl From<std::io::Error> for Error {
    fn from(error: std::io::Error) -> Self {
        of_files(&error)
    }
}

fn of_files(error: &(dyn std::error::Error + 'static)) -> Error {
    if is_disk_full(error) { Error::DiskFull(error.to_string()) } else { Error::Blob(error.to_string()) }
}

/// Whether the file system had no place left, which is found beneath what the file store says about it.
fn is_disk_full(error: &(dyn std::error::Error + 'static)) -> bool {
    use std::io::{Error as IoError, ErrorKind};
    let io = error.downcast_ref::<IoError>().map(IoError::kind);
    matches!(io, Some(ErrorKind::StorageFull | ErrorKind::QuotaExceeded))
        || error.source().is_some_and(is_disk_full)
}
