//! Newton's method, for formulas that have no inverse in closed form.

use super::{Place, Spot};

/// Steps after which a search that should take about five is given up.
const STEPS_MAX: usize = 60;
/// Nearer than this, the next step would only move rounding errors about.
const CLOSE: f64 = 1e-14;

/// The `t` for which `value(t)` is zero; `value` gives the value and its slope.
pub(super) fn solve(start: f64, value: impl Fn(f64) -> (f64, f64)) -> f64 {
    let mut t = start;
    for _ in 0..STEPS_MAX {
        let (height, slope) = value(t);
        if slope == 0.0 {
            break;
        }
        let step = height / slope;
        t -= step;
        if step.abs() < CLOSE {
            break;
        }
    }
    t
}

/// The place that `forward` takes to `spot`, searched from `start`; none if it is not found.
pub(super) fn solve_place(spot: Spot, start: Place, forward: impl Fn(Place) -> Spot) -> Option<Place> {
    const REACH: f64 = 1e-6;
    let mut place = start;
    for _ in 0..STEPS_MAX {
        let here = forward(place);
        let (dx, dy) = (here.x - spot.x, here.y - spot.y);
        if dx.abs() < CLOSE && dy.abs() < CLOSE {
            break;
        }
        let slope = |lon, lat| {
            let ahead = forward(Place { lon: place.lon + lon, lat: place.lat + lat });
            let behind = forward(Place { lon: place.lon - lon, lat: place.lat - lat });
            ((ahead.x - behind.x) / (2.0 * REACH), (ahead.y - behind.y) / (2.0 * REACH))
        };
        let ((x_lon, y_lon), (x_lat, y_lat)) = (slope(REACH, 0.0), slope(0.0, REACH));
        let determinant = x_lon * y_lat - x_lat * y_lon;
        if determinant == 0.0 || !determinant.is_finite() {
            break;
        }
        let lon = (dx * y_lat - dy * x_lat) / determinant;
        let lat = (dy * x_lon - dx * y_lon) / determinant;
        // Long steps overshoot near the rim; half the globe's quarter is as far as one may go at once.
        let brake = (0.8 / lon.abs().max(lat.abs())).min(1.0);
        place.lon -= lon * brake;
        place.lat -= lat * brake;
        if lon.abs() < CLOSE && lat.abs() < CLOSE {
            break;
        }
    }
    let there = forward(place);
    ((there.x - spot.x).abs() < 1e-9 && (there.y - spot.y).abs() < 1e-9).then_some(place)
}
