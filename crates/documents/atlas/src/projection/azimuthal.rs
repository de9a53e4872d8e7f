//! Azimuthal projections: directions from the middle are true.

use super::{Place, Spot, asin, asin_rounded};
use libm::{atan, atan2, cos, hypot, sin};
use std::f64::consts::PI;

/// A place as the unit vector with x out of the map's middle, y to the right and z upwards.
fn vector(place: Place) -> [f64; 3] {
    let cos_lat = cos(place.lat);
    [cos_lat * cos(place.lon), cos_lat * sin(place.lon), sin(place.lat)]
}

pub(super) fn equal_area(place: Place) -> Spot {
    let [x, y, z] = vector(place);
    let stretch = libm::sqrt(2.0 / (1.0 + x));
    Spot { x: stretch * y, y: stretch * z }
}

pub(super) fn equidistant(place: Place) -> Spot {
    let [x, y, z] = vector(place);
    let sine = hypot(y, z);
    let stretch = if sine < 1e-12 { 1.0 } else { atan2(sine, x) / sine };
    Spot { x: stretch * y, y: stretch * z }
}

pub(super) fn orthographic(place: Place) -> Spot {
    let [_, y, z] = vector(place);
    Spot { x: y, y: z }
}

pub(super) fn stereographic(place: Place) -> Spot {
    let [x, y, z] = vector(place);
    let stretch = 2.0 / (1.0 + x);
    Spot { x: stretch * y, y: stretch * z }
}

pub(super) fn gnomonic(place: Place) -> Spot {
    let [x, y, z] = vector(place);
    Spot { x: y / x, y: z / x }
}

/// The place at an angle from the middle, in the direction of the spot.
fn place_at(spot: Spot, radius: f64, angle: f64) -> Place {
    if radius < 1e-15 {
        return Place::default();
    }
    let (sine, cosine) = (sin(angle), cos(angle));
    Place { lon: atan2(spot.x * sine, radius * cosine), lat: asin(spot.y * sine / radius) }
}

pub(super) fn equal_area_inverse(spot: Spot) -> Option<Place> {
    let radius = hypot(spot.x, spot.y);
    (radius <= 2.0 + 1e-9).then(|| place_at(spot, radius, 2.0 * asin(radius / 2.0)))
}

pub(super) fn equidistant_inverse(spot: Spot) -> Option<Place> {
    let radius = hypot(spot.x, spot.y);
    (radius <= PI + 1e-9).then(|| place_at(spot, radius, radius))
}

pub(super) fn orthographic_inverse(spot: Spot) -> Option<Place> {
    let radius = hypot(spot.x, spot.y);
    (radius <= 1.0 + 1e-12).then(|| place_at(spot, radius, asin_rounded(radius)))
}

pub(super) fn stereographic_inverse(spot: Spot) -> Option<Place> {
    let radius = hypot(spot.x, spot.y);
    Some(place_at(spot, radius, 2.0 * atan(radius / 2.0)))
}

pub(super) fn gnomonic_inverse(spot: Spot) -> Option<Place> {
    let radius = hypot(spot.x, spot.y);
    Some(place_at(spot, radius, atan(radius)))
}
