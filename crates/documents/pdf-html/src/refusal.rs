//! Why a document could not be converted at all.

/// A document that gives no HTML, and what its owner can do about it.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Refusal {
    /// It cannot be read.
    #[error(transparent)]
    Unreadable(#[from] ode_pdf::Refusal),
    /// None of the pages that were asked for exist.
    #[error(
        "This PDF ends with page {pages}, and none of its pages is in the range {wanted}. Ask for others."
    )]
    NoSuchPages {
        pages: usize,
        /// What was asked for.
        wanted: String,
    },
    /// The zoom makes no sense.
    #[error("A zoom of {0} cannot be used. Choose one from 0.1 to 10.")]
    BadZoom(f64),
    /// The result would be too large.
    #[error(
        "The HTML of this PDF would take more than {bytes_max} bytes. Convert fewer pages at a time, or export the \
         PDF again in a simpler form."
    )]
    OutputTooLarge {
        /// The limit.
        bytes_max: usize,
    },
}
