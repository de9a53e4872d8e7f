//! What can go wrong.

/// Why a map was not drawn.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The specification cannot be drawn; the message says what to change.
    #[error("{}{message}", if path.is_empty() { String::new() } else { format!("At {path}: ") })]
    Spec {
        /// Where in the document, such as `layers[2].style.color`; empty for all of it.
        path: String,
        /// What is wrong there, and what to do about it.
        message: String,
    },
    /// The picture could not be written.
    #[error("The picture could not be written: {0}")]
    Write(#[from] std::io::Error),
}

impl Error {
    pub(crate) fn spec(path: &str, message: impl Into<String>) -> Self {
        Self::Spec { path: path.trim_start_matches('.').to_owned(), message: message.into() }
    }
}
