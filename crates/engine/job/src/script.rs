//! What a script is given and leaves beside files and log lines: secrets that nobody but a worker can open, what earlier
//! attempts have done for good, and how far each attempt came.

use crate::Failure;
use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use uuid::Uuid;

/// Under this name the history of a job tells the script's own word for why it failed.
pub const SCRIPT_CODE: &str = "script_code";

/// Secrets under seal. What is in them cannot be told from this.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sealed {
    /// Its own name, which is part of the seal.
    pub id: Uuid,
    /// The key that opens it.
    pub key_id: String,
    /// The content's own key, sealed to that one.
    pub wrapped: Vec<u8>,
    /// The content.
    pub content: Vec<u8>,
}

/// Whose secrets they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SecretPart {
    /// They were sent with the job, for a worker.
    Input,
    /// They came of it, for whoever asked for the job.
    Result,
}

impl SecretPart {
    /// The stable name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            SecretPart::Input => "input",
            SecretPart::Result => "result",
        }
    }
}

/// Where a step of a script stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StepState {
    /// Not begun.
    Waiting,
    /// Begun.
    Started,
    /// Done.
    Done,
    /// Not needed: an earlier attempt has done it.
    Skipped,
    /// It did not work.
    Failed,
}

/// A step of a script.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScriptStep {
    /// Its name within the script.
    pub id: String,
    /// What it does, for people.
    pub title: String,
    /// Where it stands.
    pub state: StepState,
}

/// A process as it is known beyond its own life: numbers are given anew, moments are not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Process {
    /// Its number.
    pub pid: u32,
    /// When it began, in ticks since the system did.
    pub start_ticks: u64,
    /// Which start of the system that was.
    pub boot_id: String,
}

/// What one attempt runs, and how far it has come.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Run {
    /// The script's version.
    pub version: String,
    /// The digest of its files.
    pub digest: String,
    /// The process that runs it, once it does.
    pub process: Option<Process>,
    /// Its steps.
    pub steps: Vec<ScriptStep>,
    /// How far it is.
    pub progress: crate::Progress,
    /// The script's own word for why it failed, once it has.
    pub code: Option<String>,
}

/// What the attempt at a script may ask and record. Everything is fenced: under a lease that is lost nothing is given
/// out and nothing is written.
#[async_trait]
pub trait ScriptRecord: Send + Sync {
    /// The secrets that were sent with the job.
    async fn sealed(&self) -> Result<Option<Sealed>, Failure>;

    /// The key that secrets of results are sealed to: its name and its public half.
    async fn web_key(&self) -> Result<Option<(String, Vec<u8>)>, Failure>;

    /// Keeps secrets of the result. They can be looked at once, when the job has completed.
    async fn keep_sealed(&self, sealed: Sealed) -> Result<(), Failure>;

    /// What earlier attempts have done for good.
    async fn checkpoints(&self) -> Result<BTreeMap<String, Value>, Failure>;

    /// Records that something is done for good.
    async fn checkpoint(&self, key: &str, data: Value) -> Result<(), Failure>;

    /// Records what runs and how far it is; a later word replaces an earlier one.
    async fn record(&self, run: &Run) -> Result<(), Failure>;
}
