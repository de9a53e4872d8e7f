//! Why a document could not be read at all.

/// A document that gives no text model, and what its owner can do about it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// Nothing at all.
    #[error("This file is empty. Send the PDF itself.")]
    Empty,
    /// Not a PDF.
    #[error("This file is not a PDF: it has no %PDF header near its beginning. Send the PDF itself.")]
    NotPdf,
    /// Opens only with a password.
    #[error("This PDF needs a password to be opened. Save a copy without the password and send that.")]
    Encrypted,
    /// Encrypted in a way that is not supported.
    #[error(
        "This PDF is encrypted in a way that cannot be read here. Save a copy without encryption and send that."
    )]
    UnknownEncryption,
    /// More bytes than allowed.
    #[error("This file has {bytes} bytes and the limit is {bytes_max}. Split it or compress its pictures.")]
    TooLarge {
        bytes: usize,
        /// The limit.
        bytes_max: usize,
    },
    /// More pages than allowed.
    #[error("This PDF has {pages} pages and the limit is {pages_max}. Split it into smaller files.")]
    TooManyPages {
        pages: usize,
        /// The limit.
        pages_max: usize,
    },
    /// No page can be found in it.
    #[error("This PDF has no pages that can be read. Export it again from the program that made it.")]
    NoPages,
    /// Too damaged to read.
    #[error(
        "This PDF is damaged: its objects cannot be found or read. Export it again from the program that made it."
    )]
    Damaged,
    /// The reader itself failed on it.
    #[error(
        "This PDF could not be read: it made the reader fail. Export it again from the program that made it, and \
         report the file, for this should not happen."
    )]
    Failed,
}

impl Refusal {
    /// The stable name of this kind of refusal, for programs.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        match self {
            Refusal::Empty | Refusal::NotPdf => "NOT_PDF",
            Refusal::TooLarge { .. } | Refusal::TooManyPages { .. } => "TOO_LARGE",
            Refusal::Encrypted | Refusal::UnknownEncryption => "ENCRYPTED",
            Refusal::NoPages => "NO_PAGES",
            Refusal::Damaged | Refusal::Failed => "UNREADABLE",
        }
    }
}
