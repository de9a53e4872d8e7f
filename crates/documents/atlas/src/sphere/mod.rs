//! Geometry on the sphere: turning the globe, great circles, and cutting lines and polygons where a projection has its
//! edge.
//!
//! A polygon's inside lies to the **right** of its rings, as one walks along them with north up: outer rings run
//! clockwise, holes the other way. That says which side is meant even where a ring goes round a pole.

mod antimeridian;
mod circle;
mod contains;
mod ring;
mod rotation;
mod seam;
mod strips;
pub(crate) mod vector;

pub(crate) use contains::polygon_contains;
#[cfg(test)]
pub(crate) use ring::area;
pub(crate) use ring::{close_by, densify, middle, wind};
pub use rotation::Rotation;
pub(crate) use strips::strips;

use crate::projection::{Edge, Place};

/// Cuts a line at the edge and gives the pieces that are seen.
pub(crate) fn cut_line(line: &[Place], edge: Edge) -> Vec<Vec<Place>> {
    match edge {
        Edge::Antimeridian => antimeridian::cut(line, false).0,
        Edge::Circle(radius) => circle::cut(line, radius, false).0,
    }
}

/// Cuts a polygon at the edge and gives the rings of what is seen of it. Rings come open: the last place is not the
/// first one again.
pub(crate) fn cut_polygon(rings: &[Vec<Place>], edge: Edge) -> Vec<Vec<Place>> {
    let mut whole = Vec::new();
    let mut pieces = Vec::new();
    for ring in rings.iter().filter(|ring| ring.len() >= 3) {
        let (parts, is_whole) = match edge {
            Edge::Antimeridian => antimeridian::cut(ring, true),
            Edge::Circle(radius) => circle::cut(ring, radius, true),
        };
        if is_whole { whole.extend(parts) } else { pieces.extend(parts) }
    }
    if pieces.is_empty() {
        let start = match edge {
            Edge::Antimeridian => antimeridian::START,
            Edge::Circle(radius) => circle::place_at(radius, 0.0),
        };
        // No ring crosses the edge: either all of it is inside the polygon or none.
        if polygon_contains(rings, start) {
            whole.push(outline(edge));
        }
    } else {
        match edge {
            Edge::Antimeridian => whole.extend(seam::join(pieces, &antimeridian::Seam)),
            Edge::Circle(radius) => whole.extend(seam::join(pieces, &circle::Seam { radius })),
        }
    }
    whole
}

/// The edge itself, as the ring around all that is seen.
pub(crate) fn outline(edge: Edge) -> Vec<Place> {
    match edge {
        Edge::Antimeridian => antimeridian::outline(),
        Edge::Circle(radius) => circle::outline(radius),
    }
}

#[cfg(test)]
mod tests;
