//! Van der Grinten's projection: the whole globe in a circle, all meridians and parallels arcs of circles.

use super::newton::solve_place;
use super::{Place, Spot};
use libm::{cos, fabs, hypot, sqrt};
use std::f64::consts::{FRAC_PI_2, PI};

/// Nearer to the equator or the middle meridian than this, the arcs are straight lines.
const STRAIGHT: f64 = 1e-10;

pub(super) fn forward(place: Place) -> Spot {
    let sine = fabs(place.lat / FRAC_PI_2).min(1.0);
    if sine < STRAIGHT {
        return Spot { x: place.lon, y: 0.0 };
    }
    // cos and tan(asin(sine)/2) without the detour by the angle.
    let cosine = sqrt((1.0 - sine) * (1.0 + sine));
    if fabs(place.lon) < STRAIGHT || 1.0 - sine < STRAIGHT {
        return Spot { x: 0.0, y: (PI * sine / (1.0 + cosine)).copysign(place.lat) };
    }
    let a = fabs(PI / place.lon - place.lon / PI) / 2.0;
    let g = cosine / (sine + cosine - 1.0);
    let p = g * (2.0 / sine - 1.0);
    let q = a * a + g;
    let (p2, a2) = (p * p, a * a);
    let span = p2 + a2;
    let x = PI * (a * (g - p2) + sqrt(a2 * (g - p2) * (g - p2) - span * (g * g - p2))) / span;
    let y = PI * fabs(p * q - a * sqrt((a2 + 1.0) * span - q * q)) / span;
    Spot { x: x.copysign(place.lon), y: y.copysign(place.lat) }
}

pub(super) fn inverse(spot: Spot) -> Option<Place> {
    if hypot(spot.x, spot.y) > PI + 1e-9 {
        return None;
    }
    if fabs(spot.x) < STRAIGHT {
        // On the middle meridian: y = π tan(asin(s)/2).
        let t = fabs(spot.y / PI);
        let lat = FRAC_PI_2 * 2.0 * t / (1.0 + t * t);
        return Some(Place { lon: 0.0, lat: lat.copysign(spot.y) });
    }
    let place = circles(spot);
    // The cubic loses digits near the rim; a few steps of Newton bring them back.
    solve_place(spot, place, inner).or(Some(place))
}

/// [`forward`], continued for the small steps that Newton makes past the rim.
fn inner(place: Place) -> Spot {
    forward(Place { lon: place.lon.clamp(-PI, PI), lat: place.lat.clamp(-FRAC_PI_2, FRAC_PI_2) })
}

/// The closed form: the latitude from a cubic whose middle root is meant, the longitude from a circle through the spot.
fn circles(spot: Spot) -> Place {
    let (x, y) = (spot.x / PI, spot.y / PI);
    let r2 = x * x + y * y;
    let lon = PI * (r2 - 1.0 + sqrt(1.0 + 2.0 * (x * x - y * y) + r2 * r2)) / (2.0 * x);
    if fabs(y) < STRAIGHT {
        return Place { lon, lat: 0.0 };
    }
    let c1 = -fabs(y) * (1.0 + r2);
    let c2 = c1 - 2.0 * y * y + x * x;
    let c3 = -2.0 * c1 + 1.0 + 2.0 * y * y + r2 * r2;
    let d = y * y / c3 + (2.0 * c2 * c2 * c2 / (c3 * c3 * c3) - 9.0 * c1 * c2 / (c3 * c3)) / 27.0;
    let a1 = (c1 - c2 * c2 / (3.0 * c3)) / c3;
    let m1 = 2.0 * sqrt((-a1 / 3.0).max(0.0));
    let third = libm::acos((3.0 * d / (a1 * m1)).clamp(-1.0, 1.0)) / 3.0;
    let lat = PI * (-m1 * cos(third + PI / 3.0) - c2 / (3.0 * c3));
    Place { lon, lat: lat.copysign(spot.y) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rim_is_a_circle() {
        for degrees in [-80.0, -45.0, -5.0, 5.0, 30.0, 60.0, 89.0_f64] {
            let spot = forward(Place { lon: PI, lat: degrees.to_radians() });
            assert!((hypot(spot.x, spot.y) - PI).abs() < 1e-12, "{degrees}: {spot:?}");
        }
    }
}
