//! What is asked of a conversion, and what it answers.

use super::study::Study;
use serde::{Deserialize, Serialize};
use std::fmt;

/// What a child is given to do with its document.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Task {
    Convert(Ask),
    Study(Study),
}

/// What to make of a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum To {
    /// XML, in the form [`Output`] says.
    #[default]
    Xml,
    /// The values as flat JSON.
    Json,
    /// The text in reading order; no mapping is involved.
    Text,
}

/// Which XML.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Output {
    /// ODE's own, for any kind of document.
    #[default]
    Own,
    /// UBL 2.1.
    Ubl,
    /// CII, as in Factur-X.
    Cii,
}

impl Output {
    /// Every output, as it is called.
    pub const ALL: [(Output, &'static str); 3] =
        [(Output::Own, "own"), (Output::Ubl, "ubl"), (Output::Cii, "cii")];
}

impl std::str::FromStr for Output {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let known = Output::ALL.iter().find(|(_, known)| *known == name);
        known
            .map(|(output, _)| *output)
            .ok_or_else(|| format!("There is no output called \"{name}\". Use one of: own, ubl, cii."))
    }
}

impl fmt::Display for Output {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = Output::ALL.iter().find(|(output, _)| output == self).map_or("own", |(_, name)| name);
        f.write_str(name)
    }
}

/// What is asked for.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Ask {
    /// What to make of it.
    pub to: To,
    /// The mapping by id or name; the one that fits best where none is named.
    pub mapping: Option<String>,
    /// Which XML.
    pub output: Output,
    /// Whether embedded XML is left aside and only the pages are read.
    pub page_only: bool,
    /// Whether to say where each value stands.
    pub provenance: bool,
}

/// What a conversion says about itself.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// The mapping that was used, or `embedded:` and the name of the file that was passed on; empty for text.
    pub source: String,
    /// Pages in the document.
    pub pages: usize,
    /// What a person should look at, worst first.
    pub findings: Vec<Finding>,
}

/// Something a person should know about the result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// `info`, `review` or `error`.
    pub severity: String,
    /// Stable name.
    pub code: String,
    /// Field or column it is about, where there is one.
    pub field: Option<String>,
    /// A sentence.
    pub message: String,
}

/// A converted document.
#[derive(Debug, Clone, PartialEq)]
pub struct Converted {
    /// What was asked for.
    pub document: Vec<u8>,
    /// Where each value stands, where that was asked for: JSON.
    pub provenance: Option<Vec<u8>>,
    /// What is to be said about it.
    pub summary: Summary,
}
