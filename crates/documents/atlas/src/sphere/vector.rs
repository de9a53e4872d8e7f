//! Places as unit vectors: x to longitude 0, y to 90° east, z to the north.

use crate::projection::Place;
use libm::{atan2, cos, sin};

pub(crate) type Vector = [f64; 3];

pub(crate) fn from_place(place: Place) -> Vector {
    let cos_lat = cos(place.lat);
    [cos_lat * cos(place.lon), cos_lat * sin(place.lon), sin(place.lat)]
}

pub(crate) fn to_place([x, y, z]: Vector) -> Place {
    Place { lon: atan2(y, x), lat: atan2(z, libm::sqrt(x * x + y * y)) }
}

pub(crate) fn dot(a: Vector, b: Vector) -> f64 {
    a[0] * b[0] + a[1] * b[1] + a[2] * b[2]
}

pub(crate) fn cross(a: Vector, b: Vector) -> Vector {
    [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]
}

pub(crate) fn add(a: Vector, b: Vector) -> Vector {
    [a[0] + b[0], a[1] + b[1], a[2] + b[2]]
}

pub(crate) fn scale(a: Vector, by: f64) -> Vector {
    [a[0] * by, a[1] * by, a[2] * by]
}

pub(crate) fn length(a: Vector) -> f64 {
    libm::sqrt(dot(a, a))
}

/// The angle between two unit vectors, exact for small ones too.
pub(crate) fn angle(a: Vector, b: Vector) -> f64 {
    atan2(length(cross(a, b)), dot(a, b))
}
