//! Rings as people write them, made into rings with a known inside.

use super::vector;
use crate::projection::Place;
use std::f64::consts::PI;

/// The area to the right of a ring, from 0 to that of the whole sphere, 4π.
pub(crate) fn area(ring: &[Place]) -> f64 {
    let Some(&last) = ring.last() else { return 0.0 };
    let mut sum = 0.0;
    let mut from = last;
    for &to in ring {
        let east = to.lon - from.lon;
        let east = east - (east / (2.0 * PI)).round() * 2.0 * PI;
        // What lies between the edge and the south pole: the excess of that spherical triangle.
        let half = |lat: f64| libm::tan(lat / 2.0 + PI / 4.0).min(1e12);
        let (a, b) = (half(from.lat), half(to.lat));
        sum += 2.0 * libm::atan2(a * b * libm::sin(east), 1.0 + a * b * libm::cos(east));
        from = to;
    }
    sum.rem_euclid(4.0 * PI)
}

/// Turns rings so that the inside is to the right: the first ring's inside is the smaller side of it, and the others
/// are holes, as in GeoJSON, whichever way they were written.
pub(crate) fn wind(rings: &mut [Vec<Place>]) {
    for (index, ring) in rings.iter_mut().enumerate() {
        let is_small = area(ring) <= 2.0 * PI;
        let should_be_small = index == 0;
        if is_small != should_be_small {
            ring.reverse();
        }
    }
}

/// Takes away a last place that repeats the first.
pub(crate) fn close_by(ring: &mut Vec<Place>) {
    while ring.len() > 1 && ring.first() == ring.last() {
        ring.pop();
    }
}

/// Adds places along lines that are straight in longitude and latitude, as GeoJSON means them, so that no two are
/// further apart than `step` radians.
pub(crate) fn densify(line: &[Place], step: f64) -> Vec<Place> {
    let mut out = Vec::with_capacity(line.len());
    for pair in line.windows(2) {
        let (from, to) = (pair[0], pair[1]);
        out.push(from);
        let apart = (to.lon - from.lon).abs().max((to.lat - from.lat).abs());
        let count = (apart / step).ceil() as usize;
        out.extend((1..count).map(|i| {
            let t = i as f64 / count as f64;
            Place { lon: from.lon + (to.lon - from.lon) * t, lat: from.lat + (to.lat - from.lat) * t }
        }));
    }
    out.extend(line.last());
    out
}

/// The middle of some places, as the direction of their sum; none if they cancel out.
pub(crate) fn middle(places: impl Iterator<Item = Place>) -> Option<Place> {
    let sum = places.map(vector::from_place).fold([0.0; 3], vector::add);
    (vector::length(sum) > 1e-9).then(|| vector::to_place(sum))
}
