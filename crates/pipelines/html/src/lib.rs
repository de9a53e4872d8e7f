//! PDF to HTML: the child process that the conversion runs in, the converter that starts it, and what a job asks of it.
//!
//! The conversion itself is `ode_pdf_html::convert_here`. Nobody calls it on a document from outside but the child.

mod child;
mod converter;
mod handler;
pub mod machine;
mod request;
mod telemetry;

pub use child::serve;
pub use converter::{Converted, Converter, Cost, Unconverted, pool_options};
pub use handler::HtmlHandler;
pub use request::{BadConfig, Document, HtmlInput, KIND, PUBLISHER, read_config};
