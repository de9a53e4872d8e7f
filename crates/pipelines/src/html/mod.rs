//! PDF to HTML: the child process that the conversion runs in, and the converter that starts it.
//!
//! The conversion itself is `ode_html::convert_here`. Nobody calls it on a document from outside but the child.

mod conversion;
mod converter;

pub use conversion::serve;
pub use converter::{Converted, Converter, Options};
