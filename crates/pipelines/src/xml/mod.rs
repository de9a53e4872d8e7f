//! PDF to XML: what is asked for, the conversion itself, and the child process it runs in.
//!
//! [`convert`] is the whole conversion as a function of bytes. Nobody calls it on a document from outside but the
//! child, which [`Converter`] starts for each one and [`serve`] is inside.

mod ask;
mod conversion;
mod converter;

pub use ask::{Ask, Converted, Output, Summary, To};
pub use conversion::{convert, serve};
pub use converter::{Converter, Options};
