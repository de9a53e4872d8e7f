//! Transverse Mercator: a Mercator map around a meridian instead of the equator.

use super::{Place, Spot, asin};
use libm::{atan2, atanh, cos, cosh, sin, sinh};

pub(super) fn forward(place: Place) -> Spot {
    let (sin_lat, cos_lat) = (sin(place.lat), cos(place.lat));
    Spot { x: atanh(cos_lat * sin(place.lon)), y: atan2(sin_lat, cos_lat * cos(place.lon)) }
}

pub(super) fn inverse(spot: Spot) -> Option<Place> {
    let lat = asin(sin(spot.y) / cosh(spot.x));
    Some(Place { lon: atan2(sinh(spot.x), cos(spot.y)), lat })
}
