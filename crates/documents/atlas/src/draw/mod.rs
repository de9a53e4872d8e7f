//! Drawing: shapes in, pixels out, one band of rows at a time.
//!
//! A [`Picture`] is the list of what to draw, in the page's pixels with y downwards. It is made once; every band then
//! draws the part of it that it shows. Coverage is exact: each edge adds its own share to the pixels it touches, so
//! edges can be drawn in any order and in any piece, and a band never needs to know its neighbours.

mod band;
mod cells;
mod dash;
mod path;
mod stroke;

pub(crate) use band::{Band, Row};
pub(crate) use dash::dashed;
pub(crate) use path::{Line, Path};

/// A spot on the page in pixels, y downwards.
pub(crate) type Pixel = [f32; 2];

/// A colour: red, green, blue and how much it covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Color {
    /// Red, green and blue, one byte each.
    pub(crate) rgb: u32,
    /// From 0, which leaves everything as it was, to 255.
    pub(crate) alpha: u8,
}

/// Pixels from `left` and `top` up to, not including, `right` and `bottom`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Window {
    pub(crate) left: u32,
    pub(crate) top: u32,
    pub(crate) right: u32,
    pub(crate) bottom: u32,
}

/// How a path is drawn.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Brush {
    /// Everything that its lines surround, each taken as closed.
    Fill,
    /// Its lines, this many pixels wide, with round ends and corners.
    Stroke(f32),
}

/// One thing to draw.
#[derive(Debug)]
pub(crate) struct Shape {
    pub(crate) path: std::sync::Arc<Path>,
    pub(crate) brush: Brush,
    pub(crate) color: Color,
    /// Nothing is drawn outside of it.
    pub(crate) window: Window,
}

/// What to draw, from the bottom to the top.
#[derive(Debug)]
pub(crate) struct Picture {
    pub(crate) width: u32,
    pub(crate) height: u32,
    /// Red, green and blue of the paper.
    pub(crate) paper: u32,
    pub(crate) shapes: Vec<Shape>,
}

#[cfg(test)]
mod tests;
