//! PDF to text with boxes. Bytes in, model out: it has never heard of a job.

pub mod text;

pub use text::{Attachment, Block, Document, Line, Page, Rect, Rule, Word};
