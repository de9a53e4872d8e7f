//! Polygons that reach around more than half of the globe, in strips. What a ring encloses in longitude and latitude is
//! clear at any size, but on the sphere only for what is smaller than half of it, as each strip is.

use crate::projection::Place;
use std::f64::consts::{PI, TAU};

/// How wide a strip is.
const WIDTH: f64 = PI / 3.0;

/// What goes around more often is no polygon that anybody meant, and would make a strip for every part of every round.
const EXTENT_MAX: f64 = 2.0 * TAU;

/// A polygon in strips, as rings that are closed; in one piece if it is narrow, if it goes around again and again, or if
/// its outer ring goes around a pole. Longitudes must not jump at the antimeridian.
pub(crate) fn strips(rings: Vec<Vec<Place>>) -> Vec<Vec<Vec<Place>>> {
    let Some(outer) = rings.first() else { return Vec::new() };
    let lons = || outer.iter().map(|place| place.lon);
    let (west, east) = (lons().fold(f64::MAX, f64::min), lons().fold(f64::MIN, f64::max));
    let is_closed = outer.first() == outer.last();
    if !(PI..=EXTENT_MAX).contains(&(east - west)) || !is_closed {
        return vec![rings];
    }
    let (first, last) = ((west / WIDTH).floor() as i32, (east / WIDTH).ceil() as i32);
    let strip = |index: i32| {
        let sides = [index, index + 1].map(|side| f64::from(side) * WIDTH);
        // A hole may be written a turn away from what it is in.
        let holes = rings[1..].iter().flat_map(|ring| [-TAU, 0.0, TAU].map(|turn| clip(ring, sides, turn)));
        let outer = clip(outer, sides, 0.0);
        std::iter::once(outer).chain(holes.filter(|ring| !ring.is_empty())).collect()
    };
    (first..last).map(strip).filter(|rings: &Vec<Vec<Place>>| !rings[0].is_empty()).collect()
}

/// What of a ring, turned so far, lies between two meridians.
fn clip(ring: &[Place], [west, east]: [f64; 2], turn: f64) -> Vec<Place> {
    let ring: Vec<Place> = ring.iter().map(|place| Place { lon: place.lon + turn, ..*place }).collect();
    let mut ring = half(&half(&ring, west, 1.0), east, -1.0);
    ring.extend(ring.first().copied());
    ring
}

/// What of a ring lies to the east of a meridian, or to the west where `side` is negative.
fn half(ring: &[Place], lon: f64, side: f64) -> Vec<Place> {
    let is_in = |place: Place| (place.lon - lon) * side >= 0.0;
    let mut kept = Vec::with_capacity(ring.len());
    let Some(&last) = ring.last() else { return kept };
    let mut from = last;
    for &to in ring {
        if is_in(from) != is_in(to) {
            let share = (lon - from.lon) / (to.lon - from.lon);
            kept.push(Place { lon, lat: from.lat + (to.lat - from.lat) * share });
        }
        if is_in(to) {
            kept.push(to);
        }
        from = to;
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_reaches_around_the_globe_a_few_times_is_cut() {
        fn check(width: f64, pieces: usize) {
            let corners = [(0.0, 0.0), (width, 0.0), (width, 0.5), (0.0, 0.5), (0.0, 0.0)];
            let ring = corners.map(|(lon, lat)| Place { lon, lat }).to_vec();
            assert_eq!(strips(vec![ring]).len(), pieces, "{width} wide");
        }
        check(1.0, 1);
        check(TAU, 6);
        check(3.0 * TAU, 1);
        check(10_000.0 * TAU, 1);
    }
}
