//! The pipeline's part of commands.

mod convert;

pub use convert::{ConvertArgs, page, write};
