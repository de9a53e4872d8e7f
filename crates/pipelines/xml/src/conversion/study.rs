//! What people who make mappings ask about a document: how one reads it, what could be learned from it, where it
//! comes out otherwise than expected. The document comes from outside, so this too happens in the child.

use super::scans::Reading;
use crate::child::unmapped;
use ode_child::Failure;
use ode_child::child::failed;
use ode_invoice::learn::{self, Lesson};
use ode_invoice::sheet::Sheet;
use ode_invoice::{Choice, ExtractError, Registry, extract, preview, tools};
use ode_job::ErrorCode;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use std::collections::BTreeMap;

/// A question. Each says what its answer is, which is told as JSON.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Study {
    /// A page to look at: HTML, as a string.
    Preview {
        /// The mapping; the one that fits best where none is named.
        mapping: Option<String>,
    },
    /// A new mapping: [`learn::Learned`].
    Learn {
        name: String,
        /// The document's path, as the mapping's own test is to name it.
        file: String,
        /// Field names to values, `lines` to a list of rows.
        expected: Json,
    },
    /// Where a mapping misses what is expected of it: [`Differences`].
    Test {
        mapping: String,
        /// Field names, or paths such as `lines.0.total`, to values; a table's name to the count of its rows.
        expected: BTreeMap<String, String>,
    },
    /// Where two mappings differ: [`Differences`].
    Diff { old: String, new: String },
}

/// Field to both values: expected and found, or the old mapping's and the new one's.
pub type Differences = BTreeMap<String, (Option<String>, Option<String>)>;

/// Answers a question about a document.
pub(crate) fn study(registry: &Registry, study: Study, reading: &Reading) -> Result<Json, Failure> {
    let document = &reading.document;
    let unmapped = |error| unmapped(error, reading);
    if Sheet::new(document).is_empty() {
        return Err(unmapped(ExtractError::NoText));
    }
    let answer = match study {
        Study::Preview { mapping } => {
            let choice = mapping.as_deref().map_or(Choice::Auto, Choice::Named);
            let read = extract(document, registry, choice).map_err(unmapped)?;
            Ok(preview::preview(document, &read).into())
        }
        Study::Learn { name, file, expected } => {
            let lesson = Lesson { document, file: &file, expected: &expected, name: &name };
            serde_json::to_value(learn::learn(lesson, registry).map_err(unmapped)?)
        }
        Study::Test { mapping, expected } => {
            let read = extract(document, registry, Choice::Named(&mapping)).map_err(unmapped)?;
            let expected = expected.iter().map(|(name, expected)| (name.as_str(), expected.as_str()));
            let misses = tools::misses(&read.record, expected).into_iter();
            let both = |(name, (expected, found)): (String, (String, _))| (name, (Some(expected), found));
            serde_json::to_value(misses.map(both).collect::<Differences>())
        }
        Study::Diff { old, new } => serde_json::to_value(diff(registry, reading, &old, &new)?),
    };
    answer.map_err(|error| failed(ErrorCode::Unknown, error))
}

fn diff(registry: &Registry, reading: &Reading, old: &str, new: &str) -> Result<Differences, Failure> {
    let loaded = registry.current();
    let mapping = |name| loaded.get(name).map_err(|error| unmapped(error, reading));
    let document = std::iter::once(("", &reading.document));
    let mut differences = tools::diff(mapping(old)?, mapping(new)?, document);
    Ok(differences.remove("").unwrap_or_default())
}
