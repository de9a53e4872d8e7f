//! The log of a job, as every address shows it.

use crate::App;
use crate::server::problem::Problem;
use crate::server::query::{PART_MAX, after, limit, query};
use axum::Json;
use axum::http::Uri;
use jiff::Timestamp;
use ode_job::{JobId, LogLevel, LogLine};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

/// Which lines of a log.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct LogQuery {
    /// Only lines after this one, by its `id`.
    #[param(value_type = Option<i64>)]
    after: Option<String>,
    /// How many at most; 100 unless said otherwise.
    #[param(value_type = Option<u16>, minimum = 1, maximum = 1000)]
    limit: Option<String>,
}

/// Lines of a log to read.
#[derive(Debug, Clone, Copy)]
pub struct Lines {
    /// Only those after the line with this id.
    pub after: i64,
    /// How many at most.
    pub limit: usize,
}

impl LogQuery {
    /// Reads which lines a request asks for.
    pub fn read(uri: &Uri) -> Result<Lines, Problem> {
        let asked: LogQuery = query(uri, "after and limit")?;
        let (after, limit) = (after(asked.after.as_deref())?, limit(asked.limit.as_deref(), PART_MAX)?);
        Ok(Lines { after, limit })
    }
}

/// A job's log.
#[derive(Debug, Serialize, ToSchema)]
pub struct Log {
    /// Its lines, oldest first.
    pub logs: Vec<LogView>,
}

impl Log {
    /// These lines of this job's log.
    pub async fn of(app: &App, job: JobId, Lines { after, limit }: Lines) -> Result<Json<Self>, Problem> {
        let lines = app.store.logs(job, after, limit).await?;
        Ok(Json(Log { logs: lines.into_iter().map(LogView::from).collect() }))
    }
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
    #[serde(serialize_with = "crate::jobs::view::moment")]
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
