//! Whether a polygon contains a place.

use super::vector;
use crate::projection::Place;
use std::f64::consts::PI;

/// Whether a place is inside a polygon, that is, to the right of its rings.
///
/// No polygon is larger than half the sphere. First the south pole is looked at, by how the rings wind around it; rings
/// that wind around both poles, and so around neither in sum, are told by their area, which then comes out as less than
/// nothing by a whole sphere. Then each crossing of the meridian between the place and the pole changes sides.
pub(crate) fn polygon_contains(rings: &[Vec<Place>], place: Place) -> bool {
    let mut winding = 0.0;
    let mut area = 0.0;
    let mut crossings = 0;
    for ring in rings {
        let Some(&last) = ring.last() else { continue };
        let mut from = last;
        for &to in ring {
            let east = wrapped(to.lon - from.lon);
            winding += east;
            area += wedge(from, to, east);
            if crosses_south_of(from, to, place) {
                crossings += 1;
            }
            from = to;
        }
    }
    let has_pole = if winding.abs() > PI { winding > 0.0 } else { area < -PI };
    has_pole != (crossings % 2 == 1)
}

fn wrapped(lon: f64) -> f64 {
    lon - (lon / (2.0 * PI)).round() * 2.0 * PI
}

/// Half the area between an edge and the south pole, with the sign of its direction.
fn wedge(from: Place, to: Place, east: f64) -> f64 {
    let half = |lat: f64| libm::tan(lat / 2.0 + PI / 4.0);
    let (a, b) = (half(from.lat), half(to.lat));
    if !(a.is_finite() && b.is_finite()) {
        return 0.0;
    }
    libm::atan2(a * b * libm::sin(east), 1.0 + a * b * libm::cos(east))
}

/// Whether an edge crosses the meridian of `place` between it and the south pole.
fn crosses_south_of(from: Place, to: Place, place: Place) -> bool {
    let (a, b) = (wrapped(from.lon - place.lon), wrapped(to.lon - place.lon));
    // Half open, so that an edge's end counts once; and on this side of the globe, not on the other.
    if (a < 0.0) == (b < 0.0) || (b - a).abs() > PI {
        return false;
    }
    let normal = vector::cross(
        vector::from_place(Place { lon: a, lat: from.lat }),
        vector::from_place(Place { lon: b, lat: to.lat }),
    );
    // Where the great circle meets the meridian at longitude 0: n·(cos, 0, sin) = 0.
    let sign = if normal[2] < 0.0 { -1.0 } else { 1.0 };
    let lat = libm::atan2(-normal[0] * sign, normal[2] * sign);
    lat < place.lat
}
