//! Conversions as the rest of this crate sees them: what is asked for, the converter that starts a child for each document, the
//! mappings in use, and the steps of a document with scans.

pub(crate) mod ask;
pub(crate) mod converter;
mod hocr;
pub(crate) mod live;
mod ocr;
mod ocr_args;
pub(crate) mod scans;
#[cfg(test)]
pub(crate) mod stub;
pub(crate) mod study;

pub use ask::{Ask, Converted, Finding, Output, Places, Shadow, Summary, To};
pub use converter::{Converter, Options};
pub use live::{LiveConverter, StartError};
pub use ocr::OcrOptions;
pub use ocr_args::OcrArgs;
pub use study::{Differences, Study};
