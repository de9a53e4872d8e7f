//! What an attempt at a script leaves in the database: the seals of secrets, its steps, and how far it came.

use ode_child::{Record, Step, StepState};
use ode_job::Progress;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// Under this name the history of a job tells the script's own word for why it failed.
pub(crate) const SCRIPT_CODE: &str = "script_code";

/// Secrets under seal. What is in them cannot be told from this.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sealed {
    /// Its own name, which is part of the seal.
    pub id: Uuid,
    /// The key that opens it.
    pub key_id: String,
    /// The content's own key, sealed to that one.
    pub wrapped: Vec<u8>,
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
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            SecretPart::Input => "input",
            SecretPart::Result => "result",
        }
    }
}

/// Where a step stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RecordedState {
    /// Not begun.
    Waiting,
    /// Begun or ended.
    #[serde(untagged)]
    Reached(StepState),
}

/// A step of a script, and where it stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordedStep {
    /// Its name within the script.
    pub id: String,
    /// What it does, for people.
    pub title: String,
    pub state: RecordedState,
}

impl From<Step> for RecordedStep {
    /// A step that has not begun.
    fn from(Step { id, title }: Step) -> Self {
        RecordedStep { id, title, state: RecordedState::Waiting }
    }
}

/// What one attempt runs, and how far it has come.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Run {
    /// The script's version.
    pub version: String,
    /// The digest of its files.
    pub digest: String,
    /// The process that runs it, once it does.
    pub process: Option<Record>,
    /// Its steps.
    pub steps: Vec<RecordedStep>,
    /// How far it is.
    pub progress: Progress,
    /// The script's own word for why it failed, once it has.
    pub code: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn states_of_steps_are_one_word_each() {
        let states = [
            (RecordedState::Waiting, "waiting"),
            (RecordedState::Reached(StepState::Started), "started"),
            (RecordedState::Reached(StepState::Done), "done"),
            (RecordedState::Reached(StepState::Skipped), "skipped"),
            (RecordedState::Reached(StepState::Failed), "failed"),
        ];
        for (state, word) in states {
            assert_eq!(json!(state), json!(word));
            assert_eq!(serde_json::from_value::<RecordedState>(json!(word)).unwrap(), state);
        }
    }
}
