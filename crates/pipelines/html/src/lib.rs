//! PDF to HTML: the child process that the conversion runs in, the converter that starts it, and what a job asks of it.
//!
//! The conversion itself is `ode_pdf_html::convert_here`. Nobody calls it on a document from outside but the child.

mod conversion;
mod converter;
mod handler;
mod order;
mod telemetry;

pub use conversion::serve;
pub use converter::{Converted, Converter, Cost, Unconverted, pool_options};
pub use handler::{Engine, HtmlHandler};
pub use order::{BadConfig, read_config};
