//! What is asked of a conversion, and what it answers.

use super::study::Study;
use serde::{Deserialize, Serialize};
use std::fmt;

/// What a child is given to do with its document.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Task {
    /// Convert it, or answer a question about it.
    Do {
        work: Work,
        scans: Scans,
    },
    Draw {
        page: u32,
    },
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Work {
    Convert(Ask),
    Study(Study),
}

/// What becomes of pages that are scans.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Scans {
    /// If there are any, tell which and do nothing else: they can be read.
    Tell,
    /// Go on with what OCR has read of them. Others stay unread, and this is why.
    Go { read: Vec<ReadPage>, unread: Unread },
}

/// A page that OCR has read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ReadPage {
    pub(crate) page: u32,
    /// What OCR wrote, as it came: it is taken apart by the child, for it is made of what the document holds.
    pub(crate) hocr: String,
}

/// Why a scan was not read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Unread {
    /// OCR is switched off.
    Off,
    /// There is no tesseract.
    NotInstalled,
    /// It has no model for the languages that were asked for.
    Languages,
    /// The time for it was used up.
    NoTime,
    /// It could not be drawn, or tesseract failed on it.
    Failed,
}

/// What a child answers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Answer {
    /// The conversion is among the artifacts.
    Converted(Summary),
    /// What was asked for is among the artifacts.
    Given,
    /// Nothing was done yet: these pages are scans.
    Scans(Vec<u32>),
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
    pub places: Places,
}

/// Where it is said on which page and where on it each value stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Places {
    /// Nowhere.
    #[default]
    Untold,
    /// In a file beside the document that is made.
    Beside,
    /// There, and in our own XML at each value.
    Within,
}

/// What a conversion says about itself.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// The mapping that was used, or `embedded:` and the name of the file that was passed on; empty for text.
    pub source: String,
    /// Pages in the document.
    pub pages: usize,
    /// What a person should look at, worst first.
    pub findings: Vec<Finding>,
    /// How draft and canary versions of the mapping came out, where they ran beside it.
    pub shadows: Vec<Shadow>,
}

/// A version of a mapping that ran beside the one that was used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shadow {
    /// Its id.
    pub mapping: String,
    /// Fields that it reads differently, cells as `lines.0.total`; empty where all is the same.
    pub different: Vec<String>,
}

/// Something a person should know about the result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// `info`, `review` or `error`.
    pub severity: String,
    pub code: String,
    /// Field or column it is about, where there is one.
    pub field: Option<String>,
    pub message: String,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Converted {
    /// What was asked for.
    pub document: Vec<u8>,
    /// Where each value stands, where that was asked for: JSON.
    pub provenance: Option<Vec<u8>>,
    /// What is to be said about it.
    pub summary: Summary,
}
