//! What was found out about a result: by arithmetic, by the rules of its schema, by what the page itself shows, or by a
//! language model that was asked. A check says what it saw; it changes nothing.

use crate::state::named;
use serde::{Deserialize, Serialize};
use serde_json::Value;

named! {
    CheckKind, "kind of check" {
        /// Sums that do not add up.
        Arithmetic = "arithmetic",
        /// Something the schema asks for is missing or not allowed.
        Schema = "schema",
        /// Something about the document or its values.
        Content = "content",
        /// A language model's opinion.
        Model = "model",
    }
}

named! {
    /// How much it matters.
    Severity, "severity" {
        /// Good to know.
        Info = "info",
        /// A person should look.
        Review = "review",
        /// The result is wrong or cannot be used as it is.
        Error = "error",
    }
}

/// One finding about the result of a job.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Check {
    pub kind: CheckKind,
    /// How much it matters.
    pub severity: Severity,
    pub code: String,
    /// Field or column it is about, where there is one.
    pub field: Option<String>,
    pub message: String,
    /// Of a model's: who said it and how sure it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub opinion: Option<Opinion>,
}

/// What is to be known of a model's finding.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Opinion {
    /// The model by its name.
    pub model: String,
    /// Which wording of the question it was asked.
    pub prompt_version: String,
    /// Between 0 and 1, where it said so.
    pub confidence: Option<f64>,
    /// What it answered, whole.
    pub output: Value,
}
