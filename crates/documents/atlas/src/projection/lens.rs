//! Aitoff and its relatives: half the longitude on an azimuthal map, stretched to double width.

use super::newton::solve_place;
use super::{Place, Spot, asin};
use libm::{acos, atan2, cos, sin, sqrt};
use std::f64::consts::{FRAC_2_PI, PI};

pub(super) fn aitoff(place: Place) -> Spot {
    let half = place.lon / 2.0;
    let cosine = cos(place.lat) * cos(half);
    // The sine by its own formula: from the cosine it would be lost near the middle.
    let sine = libm::hypot(cos(place.lat) * sin(half), sin(place.lat));
    let angle = if cosine > 0.9 { asin(sine) } else { acos(cosine.clamp(-1.0, 1.0)) };
    let stretch = if sine < 1e-12 { 1.0 } else { angle / sine };
    Spot { x: 2.0 * stretch * cos(place.lat) * sin(half), y: stretch * sin(place.lat) }
}

pub(super) fn winkel_tripel(place: Place) -> Spot {
    let aitoff = aitoff(place);
    Spot { x: (aitoff.x + place.lon * FRAC_2_PI) / 2.0, y: (aitoff.y + place.lat) / 2.0 }
}

/// The inverse of either, searched from the middle outwards.
pub(super) fn inverse(spot: Spot, forward: fn(Place) -> Spot) -> Option<Place> {
    let lat = spot.y.clamp(-1.5, 1.5);
    let starts = [spot.x / (0.55 + 0.45 * cos(lat)), spot.x, spot.x * 0.5, spot.x.signum() * 3.1];
    starts.iter().find_map(|lon| {
        let place = solve_place(spot, Place { lon: lon.clamp(-PI, PI), lat }, forward)?;
        super::is_on_sphere(place).then_some(place)
    })
}

pub(super) fn hammer(place: Place) -> Spot {
    let half = place.lon / 2.0;
    let stretch = sqrt(2.0 / (1.0 + cos(place.lat) * cos(half)));
    Spot { x: 2.0 * stretch * cos(place.lat) * sin(half), y: stretch * sin(place.lat) }
}

pub(super) fn hammer_inverse(spot: Spot) -> Option<Place> {
    let square = spot.x * spot.x / 16.0 + spot.y * spot.y / 4.0;
    if square > 0.5 + 1e-9 {
        return None;
    }
    let z = sqrt(1.0 - square);
    Some(Place { lon: 2.0 * atan2(z * spot.x / 2.0, 2.0 * z * z - 1.0), lat: asin(z * spot.y) })
}
