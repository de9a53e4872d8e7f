//! Cylindrical projections: meridians are parallel lines.

use super::{Place, Spot, asin, is_sine};
use libm::{asinh, atan, exp, log, sin, sinh, tan};
use std::f64::consts::{FRAC_1_SQRT_2, FRAC_PI_4};

/// How far a Gall map is squeezed: both of his touch the globe at 45°.
const GALL: f64 = FRAC_1_SQRT_2;

pub(super) fn mercator(place: Place) -> Spot {
    Spot { x: place.lon, y: asinh(tan(place.lat)) }
}

pub(super) fn mercator_inverse(spot: Spot) -> Option<Place> {
    Some(Place { lon: spot.x, lat: atan(sinh(spot.y)) })
}

pub(super) fn miller(place: Place) -> Spot {
    Spot { x: place.lon, y: 1.25 * log(tan(FRAC_PI_4 + 0.4 * place.lat)) }
}

pub(super) fn miller_inverse(spot: Spot) -> Option<Place> {
    Some(Place { lon: spot.x, lat: 2.5 * (atan(exp(0.8 * spot.y)) - FRAC_PI_4) })
}

pub(super) fn gall_stereographic(place: Place) -> Spot {
    Spot { x: place.lon * GALL, y: (1.0 + GALL) * tan(place.lat / 2.0) }
}

pub(super) fn gall_stereographic_inverse(spot: Spot) -> Option<Place> {
    Some(Place { lon: spot.x / GALL, lat: 2.0 * atan(spot.y / (1.0 + GALL)) })
}

pub(super) fn gall_peters(place: Place) -> Spot {
    Spot { x: place.lon * GALL, y: sin(place.lat) / GALL }
}

pub(super) fn gall_peters_inverse(spot: Spot) -> Option<Place> {
    let sine = spot.y * GALL;
    is_sine(sine).then(|| Place { lon: spot.x / GALL, lat: asin(sine) })
}
