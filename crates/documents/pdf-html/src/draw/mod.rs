//! Draws a page: everything but plain text becomes SVG; plain text is handed on, to be set in real fonts.
//!
//! Plain text is filled with one colour, in no group, wholly inside its clips, under nothing that is drawn later. All
//! other text is drawn as shapes, and its letters lie over them unseen.

mod canvas;
mod cover;
mod looks;
mod paint;
mod path;
mod picture;
mod png;
mod record;
mod store;
mod trace;

pub(crate) use canvas::{Canvas, Drawing, Stop};
pub(crate) use looks::{blends, colour};
pub(crate) use path::{Pen, UNIT, short};
pub(crate) use picture::MARK;
pub(crate) use png::{Pixels, encode};
pub(crate) use store::{Kind, Picture, Store};
