//! The document that a job works on, as its input describes it.

use crate::JobId;
use serde::de::{DeserializeOwned, Deserializer};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// The key of the description in a job's input.
const KEY: &str = "document";

/// Description of a document in the input of the job that works on it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SourceDocument {
    /// The sender's name for it. Never part of a path.
    #[serde(deserialize_with = "if_it_fits")]
    pub name: Option<String>,
    /// SHA-256, hexadecimal.
    #[serde(deserialize_with = "if_it_fits")]
    pub sha256: Option<String>,
    #[serde(deserialize_with = "if_it_fits")]
    pub bytes: Option<i64>,
    /// Path of its blob.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "if_it_fits")]
    pub path: Option<String>,
    /// Storage of its blob.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "if_it_fits")]
    pub storage: Option<String>,
    /// Number of its pages, where somebody counted them before.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "if_it_fits")]
    pub pages: Option<i64>,
    /// The job whose result this one copies.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "if_it_fits")]
    pub duplicate_of: Option<JobId>,
}

/// A value of the wrong type, as SQL may have stored it, counts as none and takes no other along.
fn if_it_fits<'de, T: DeserializeOwned, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<T>, D::Error> {
    Value::deserialize(deserializer).map(|value| serde_json::from_value(value).ok())
}

impl SourceDocument {
    /// Reads the description from a job's input; none where the job is not about a document.
    #[must_use]
    pub fn of(input: &Value) -> Option<Self> {
        Self::deserialize(input.get(KEY)?).ok()
    }

    /// Returns a job's input with nothing but this description.
    #[must_use]
    pub fn into_input(self) -> Value {
        json!({ KEY: self })
    }

    /// Returns the name without its ending.
    #[must_use]
    pub fn stem(&self) -> Option<&str> {
        self.name.as_deref().map(|name| name.rsplit_once('.').map_or(name, |(stem, _)| stem))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_description_is_read_back_as_it_was_written() {
        let document = SourceDocument {
            name: Some("a.b.pdf".into()),
            bytes: Some(7),
            duplicate_of: Some(JobId(uuid::Uuid::from_u128(7))),
            ..SourceDocument::default()
        };
        assert_eq!(document.stem(), Some("a.b"));
        assert_eq!(SourceDocument::of(&document.clone().into_input()), Some(document));
    }

    #[test]
    fn inputs_without_a_document_have_none() {
        for input in [json!({}), json!({ "document": null }), json!({ "document": 7 }), json!(null)] {
            assert_eq!(SourceDocument::of(&input), None, "{input}");
        }
    }

    #[test]
    fn a_value_of_the_wrong_type_takes_no_other_along() {
        let input =
            json!({ "document": { "name": "a.pdf", "pages": "3", "bytes": 12.5, "duplicate_of": "x" } });
        let expected = SourceDocument { name: Some("a.pdf".into()), ..SourceDocument::default() };
        assert_eq!(SourceDocument::of(&input), Some(expected));
    }

    #[test]
    fn what_others_write_beside_it_is_no_matter() {
        let input = json!({ "document": { "sha256": "ab", "pages": null, "other": 1 }, "more": 2 });
        assert_eq!(SourceDocument::of(&input).and_then(|document| document.sha256).as_deref(), Some("ab"));
    }
}
