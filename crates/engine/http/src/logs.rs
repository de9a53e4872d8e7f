//! The log of a job, as every address shows it.

use jiff::Timestamp;
use ode_job::{LogLevel, LogLine};
use serde::Serialize;
use utoipa::ToSchema;

/// A job's log.
#[derive(Debug, Serialize, ToSchema)]
pub struct Log {
    /// Its lines, oldest first.
    pub logs: Vec<LogView>,
}

/// A line of it.
#[derive(Debug, Serialize, ToSchema)]
pub struct LogView {
    /// Its place in the log.
    id: i64,
    /// `info`, `warn` or `error`.
    #[schema(value_type = String, example = "warn")]
    level: LogLevel,
    /// What it says.
    message: String,
    /// Which try wrote it.
    attempt: u32,
    /// When.
    #[schema(value_type = String, format = "date-time")]
    #[serde(serialize_with = "crate::view::moment")]
    created_at: Timestamp,
}

impl From<LogLine> for LogView {
    fn from(line: LogLine) -> Self {
        LogView {
            id: line.id,
            level: line.level,
            message: line.message,
            attempt: line.attempt,
            created_at: line.at,
        }
    }
}
