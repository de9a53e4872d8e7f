//! What can be read about a job: the row as people and programs see it, its history, files and logs.

use crate::breaker::Standing;
use crate::machine::{Lane, Pipeline};
use crate::state::{Event, Phase, State};
use crate::{ErrorCode, JobId, SourceDocument, WorkerId};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use uuid::Uuid;

/// One job, whole, as the `jobs` relation shows it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct JobRecord {
    pub id: JobId,
    /// The name people use.
    pub reference: String,
    /// The kind of work.
    pub pipeline: Pipeline,
    /// Mapping, script type or format.
    #[serde(rename = "type")]
    pub kind: String,
    /// Where it stands, in its pipeline's words.
    pub state: State,
    /// Where it stands, in everyone's words.
    pub phase: Phase,
    /// Owner: an anonymous session.
    pub session_id: Option<Uuid>,
    /// Owner: a user.
    pub user_id: Option<Uuid>,
    /// Owner: an organisation.
    pub organisation_id: Option<Uuid>,
    /// The person who asked.
    pub created_by: Option<Uuid>,
    /// The caller's own id.
    pub external_id: Option<String>,
    /// Higher goes first.
    pub priority: i32,
    /// What to work on.
    pub input: Value,
    /// How to work on it.
    pub config: Value,
    /// The caller's labels.
    pub metadata: Value,
    /// What came of it, once it ended well.
    pub result: Option<Value>,
    /// Why it failed: the code.
    pub error_code: Option<String>,
    /// Why it failed: one line for people.
    pub error_message: Option<String>,
    /// Why it failed: more, for operators.
    pub error_detail: Option<String>,
    /// Tries so far.
    pub attempt_count: u32,
    /// Tries after the first, so far.
    pub retry_count: u32,
    /// How many of those it may have.
    pub max_retries: u32,
    /// How far it is.
    pub progress: Progress,
    pub worker_id: Option<WorkerId>,
    /// Until when.
    pub lease_expires_at: Option<Timestamp>,
    /// Not before then.
    pub run_at: Option<Timestamp>,
    /// When its attempt must be over.
    pub timeout_at: Option<Timestamp>,
    pub engine_version: Option<String>,
    /// Accepted.
    pub created_at: Timestamp,
    /// Became eligible.
    pub queued_at: Option<Timestamp>,
    /// Last attempt began.
    pub started_at: Option<Timestamp>,
    pub finished_at: Option<Timestamp>,
    /// Last change of any kind.
    pub updated_at: Timestamp,
}

impl JobRecord {
    /// The document that it works on, where it is about one.
    #[must_use]
    pub fn document(&self) -> Option<SourceDocument> {
        SourceDocument::of(&self.input)
    }

    /// Whether trying a failed print again may end otherwise: its map never changes.
    #[must_use]
    pub fn can_print_again(&self) -> bool {
        let code = self.error_code.as_deref().and_then(|code| code.parse().ok());
        self.phase == Phase::Failed && !matches!(code, Some(ErrorCode::BadMap | ErrorCode::Invalid))
    }
}

/// How far an attempt is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Progress {
    /// 0 to 100.
    pub percent: u8,
    /// What it is doing.
    pub message: Option<String>,
    /// Which step.
    pub step: u32,
    pub steps: u32,
}

impl Progress {
    /// A percentage with a message, of an attempt that has no steps.
    pub fn at(percent: u8, message: &str) -> Self {
        Progress { percent, message: Some(message.to_owned()), step: 0, steps: 0 }
    }
}

/// One line of a job's history.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct EventRecord {
    /// Its place in the history of the whole installation.
    pub seq: i64,
    /// Whose history.
    pub job_id: JobId,
    pub event: Event,
    /// Before; absent at birth.
    pub from_state: Option<State>,
    /// After.
    pub to_state: State,
    /// Who did it: a worker, a command, the API.
    pub actor: String,
    pub meta: Option<Value>,
    pub at: Timestamp,
}

/// How loud a log line is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LogLevel {
    Info,
    /// It coped; look at it.
    Warn,
    /// It did not cope.
    Error,
}

impl LogLevel {
    pub const fn as_str(self) -> &'static str {
        match self {
            LogLevel::Info => "info",
            LogLevel::Warn => "warn",
            LogLevel::Error => "error",
        }
    }

    /// The level of that name.
    pub fn parse(name: &str) -> Option<Self> {
        [LogLevel::Info, LogLevel::Warn, LogLevel::Error].into_iter().find(|level| level.as_str() == name)
    }
}

/// One line an attempt wrote.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LogLine {
    /// Its place in the log.
    pub id: i64,
    /// Whose log.
    pub job_id: JobId,
    /// Which attempt wrote it.
    pub attempt: u32,
    pub level: LogLevel,
    pub message: String,
    pub at: Timestamp,
}

/// A line for a log, which gets its place and its time when it is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewLogLine {
    /// Whose log.
    pub job: JobId,
    pub attempt: u32,
    pub level: LogLevel,
    pub message: String,
}

/// A file that belongs to a job, stored as a blob.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Artifact {
    /// What it is to the job: `source`, `result`, `asset`, `log`, `screenshot`.
    pub role: String,
    /// Its name within the job.
    pub name: String,
    /// `local` or `s3`.
    pub storage: String,
    /// Where its blob is, below the storage's root.
    pub path: String,
    pub content_type: String,
    pub bytes: i64,
    /// SHA-256, hexadecimal.
    pub sha256: String,
}

/// What a worker says of itself.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct About {
    /// How many attempts it makes at a time in each lane.
    pub slots: BTreeMap<Lane, usize>,
    /// Where the breakers of what it depends on stand.
    pub breakers: Vec<Standing>,
}

/// A worker process as others see it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct WorkerRecord {
    pub id: WorkerId,
    /// The machine it runs on.
    pub host: String,
    /// Its process there.
    pub pid: i64,
    pub version: String,
    pub started_at: Timestamp,
    /// When it last said so.
    pub beat_at: Timestamp,
    pub running: i64,
    /// Whether it is finishing what it has and taking no more.
    pub is_draining: bool,
    /// Whether it still counts as alive.
    pub is_alive: bool,
    /// What it says of itself.
    #[serde(flatten)]
    pub about: About,
}

impl WorkerRecord {
    /// Whether it takes jobs of this lane. One that has not said yet what it does may be one that does.
    #[must_use]
    pub fn serves(&self, lane: Lane) -> bool {
        let slots = &self.about.slots;
        self.is_alive && !self.is_draining && (slots.is_empty() || slots.contains_key(&lane))
    }
}
