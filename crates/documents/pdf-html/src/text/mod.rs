//! The text of a page: which glyphs are set in which font, line by line, in the order of reading.

mod faces;
mod line;
mod runs;
mod script;
mod write;

pub(crate) use faces::{Faces, Spot};
pub(crate) use line::{Line, Mark, lines};
pub(crate) use write::{Sound, Styles, escape, write_line};
