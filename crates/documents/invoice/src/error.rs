//! What can go wrong, sorted by what the caller would do about it.

use std::fmt;

use crate::matching::MatchReport;

/// Why nothing could be read, or why a mapping was refused.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ExtractError {
    /// No mapping has this name, or it is not allowed here.
    #[error("There is no mapping named {name}.{}", suggestion(near))]
    UnknownMapping {
        /// What was asked for.
        name: String,
        /// The nearest name there is.
        near: Option<String>,
    },
    /// The mapping exists but may no longer be used.
    #[error("The mapping {name} is retired. Use a newer version, or `auto`.")]
    RetiredMapping {
        /// What was asked for.
        name: String,
    },
    /// No mapping fits the document; the reasons say what each one missed.
    #[error("No mapping fits this document. {} {NEXT}", nearest(missing))]
    NoMapping {
        /// Mappings that were tried, nearest first.
        missing: Vec<MatchReport>,
    },
    /// The mapping for any invoice was the only one to fit, and found too little for one.
    #[error(
        "This does not look like an invoice: too little of number, date, total and lines was found, and no mapping is made \
         for this document. {NEXT}"
    )]
    NotAnInvoice,
    /// The pages hold no text: a scan without a text layer.
    #[error("The pages hold no text, so there is nothing to map. A scan must be read (OCR) first.")]
    NoText,
    /// A mapping file says something that cannot be carried out.
    #[error("{0}")]
    BadMapping(#[from] MappingError),
    /// An expected value was not found on the page, so nothing could be learned from it.
    #[error("Nothing could be learned from this document: {reason}")]
    NothingLearned { reason: String },
}

/// What is wrong with a mapping file, and where.
#[derive(Clone, Debug, PartialEq)]
pub struct MappingError {
    /// Name of the file or of the mapping.
    pub source: String,
    /// Line and column, from 1, where known.
    pub at: Option<(usize, usize)>,
    pub message: String,
}

impl std::error::Error for MappingError {}

impl fmt::Display for MappingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.at {
            Some((line, column)) => write!(f, "{}:{line}:{column}: {}", self.source, self.message),
            None => write!(f, "{}: {}", self.source, self.message),
        }
    }
}

fn suggestion(near: &Option<String>) -> String {
    near.as_ref().map(|name| format!(" Did you mean {name}?")).unwrap_or_default()
}

/// What to do where no mapping can be chosen.
const NEXT: &str = "If it is an invoice, name a mapping to read it with, such as generic_invoice_v1; for other documents, make \
                    one from an example with `ode mapping learn`.";

/// Which mapping came nearest, and why it was not taken.
fn nearest(missing: &[MatchReport]) -> String {
    match missing.first().filter(|report| report.score > 0.0) {
        Some(report) => format!("The nearest is {report}."),
        None => "No word that any of them looks for is on its pages.".to_owned(),
    }
}
