//! PDF to text with boxes. Bytes in, model out: it has never heard of a job.
//!
//! [`read`] gives a [`Document`]: words with their boxes, lines and blocks in reading order, the rules of tables
//! and the embedded files. Nothing is painted and no picture is decoded on the way; [`draw_here`] does that
//! for one page, so that a scan can be read by OCR, and [`Recognised`] brings back what was read.

mod draw;
mod engine;
mod layout;
mod limits;
mod marks;
mod recognised;
mod refusal;
pub mod text;
pub mod trace;
mod words;
mod writer;

use std::sync::Arc;

pub use draw::{Picture, draw_here};
pub use limits::Limits;
pub use recognised::{Recognised, RecognisedLine, RecognisedWord};
pub use refusal::Refusal;
pub use text::{Attachment, Block, Document, Line, Page, Rect, Rule, Word};

/// Deep nesting in a hostile file is read by recursion; this much stack holds the deepest that the parser allows.
const STACK_BYTES: usize = 64 << 20;

/// Reads a document's text model within `limits`.
///
/// It works on a thread of its own, so that deep nesting finds enough stack and a panic in a parser becomes
/// [`Refusal::Failed`].
pub fn read(bytes: impl Into<Arc<[u8]>>, limits: &Limits) -> Result<Document, Refusal> {
    let bytes: Arc<[u8]> = bytes.into();
    std::thread::scope(|scope| {
        std::thread::Builder::new()
            .name("pdf".into())
            .stack_size(STACK_BYTES)
            .spawn_scoped(scope, || read_here(bytes, limits, &[]))
            .map_err(|_| Refusal::Failed)?
            .join()
            .unwrap_or(Err(Refusal::Failed))
    })
}

/// The same on the caller's own thread, which must have that much stack: for a process that may start no thread. What OCR
/// has read of some pages is taken over.
pub fn read_here(
    bytes: impl Into<Arc<[u8]>>,
    limits: &Limits,
    recognised: &[Recognised],
) -> Result<Document, Refusal> {
    let bytes = bytes.into();
    // Nothing that the parser was about to change outlives the call, so nothing is seen half changed.
    let read = std::panic::AssertUnwindSafe(|| engine::read(bytes, limits, recognised));
    std::panic::catch_unwind(read).unwrap_or(Err(Refusal::Failed))
}
