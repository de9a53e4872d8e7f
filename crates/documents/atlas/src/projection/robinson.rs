//! Robinson's projection, which is a table: lengths and heights of parallels every 5°, joined by cubics. The cubics
//! are PROJ's, in single precision as there, so that both programs draw the same line.

use super::{Place, Spot};
use std::f64::consts::{FRAC_PI_2, PI};

const X_SCALE: f64 = 0.8487;
const Y_SCALE: f64 = 1.3523;
const NODES: usize = 18;

/// Coefficients of 1, d, d² and d³, where d is in degrees above the node.
type Cubic = [f32; 4];

#[rustfmt::skip]
#[allow(clippy::excessive_precision, reason = "the digits as published, which round to the single precision meant")]
const LENGTH: [Cubic; NODES + 1] = [
    [1.0, 2.2199e-17, -7.15515e-05, 3.1103e-06],
    [0.9986, -0.000482243, -2.4897e-05, -1.3309e-06],
    [0.9954, -0.00083103, -4.48605e-05, -9.86701e-07],
    [0.99, -0.00135364, -5.9661e-05, 3.6777e-06],
    [0.9822, -0.00167442, -4.49547e-06, -5.72411e-06],
    [0.973, -0.00214868, -9.03571e-05, 1.8736e-08],
    [0.96, -0.00305085, -9.00761e-05, 1.64917e-06],
    [0.9427, -0.00382792, -6.53386e-05, -2.6154e-06],
    [0.9216, -0.00467746, -0.00010457, 4.81243e-06],
    [0.8962, -0.00536223, -3.23831e-05, -5.43432e-06],
    [0.8679, -0.00609363, -0.000113898, 3.32484e-06],
    [0.835, -0.00698325, -6.40253e-05, 9.34959e-07],
    [0.7986, -0.00755338, -5.00009e-05, 9.35324e-07],
    [0.7597, -0.00798324, -3.5971e-05, -2.27626e-06],
    [0.7186, -0.00851367, -7.01149e-05, -8.6303e-06],
    [0.6732, -0.00986209, -0.000199569, 1.91974e-05],
    [0.6213, -0.010418, 8.83923e-05, 6.24051e-06],
    [0.5722, -0.00906601, 0.000182, 6.24051e-06],
    [0.5322, -0.00677797, 0.000275608, 6.24051e-06],
];

#[rustfmt::skip]
#[allow(clippy::excessive_precision, reason = "the digits as published, which round to the single precision meant")]
const HEIGHT: [Cubic; NODES + 1] = [
    [-5.20417e-18, 0.0124, 1.21431e-18, -8.45284e-11],
    [0.062, 0.0124, -1.26793e-09, 4.22642e-10],
    [0.124, 0.0124, 5.07171e-09, -1.60604e-09],
    [0.186, 0.0123999, -1.90189e-08, 6.00152e-09],
    [0.248, 0.0124002, 7.10039e-08, -2.24e-08],
    [0.31, 0.0123992, -2.64997e-07, 8.35986e-08],
    [0.372, 0.0124029, 9.88983e-07, -3.11994e-07],
    [0.434, 0.0123893, -3.69093e-06, -4.35621e-07],
    [0.4958, 0.0123198, -1.02252e-05, -3.45523e-07],
    [0.5571, 0.0121916, -1.54081e-05, -5.82288e-07],
    [0.6176, 0.0119938, -2.41424e-05, -5.25327e-07],
    [0.6769, 0.011713, -3.20223e-05, -5.16405e-07],
    [0.7346, 0.0113541, -3.97684e-05, -6.09052e-07],
    [0.7903, 0.0109107, -4.89042e-05, -1.04739e-06],
    [0.8435, 0.0103431, -6.4615e-05, -1.40374e-09],
    [0.8936, 0.00969686, -6.4636e-05, -8.547e-06],
    [0.9394, 0.00840947, -0.000192841, -4.2106e-06],
    [0.9761, 0.00616527, -0.000256, -4.2106e-06],
    [1.0, 0.00328947, -0.000319159, -4.2106e-06],
];

fn value([a, b, c, d]: Cubic, degrees: f64) -> f64 {
    f64::from(a) + degrees * (f64::from(b) + degrees * (f64::from(c) + degrees * f64::from(d)))
}

fn slope([_, b, c, d]: Cubic, degrees: f64) -> f64 {
    f64::from(b) + degrees * (2.0 * f64::from(c) + degrees * 3.0 * f64::from(d))
}

pub(super) fn forward(place: Place) -> Spot {
    let lat = place.lat.abs();
    let node = ((lat * 36.0 / PI + 1e-15) as usize).min(NODES);
    let degrees = (lat - node as f64 * PI / 36.0).to_degrees();
    let y = Y_SCALE * value(HEIGHT[node], degrees);
    Spot { x: X_SCALE * value(LENGTH[node], degrees) * place.lon, y: y.copysign(place.lat) }
}

pub(super) fn inverse(spot: Spot) -> Option<Place> {
    let height = (spot.y / Y_SCALE).abs();
    if height > 1.0 + 1e-6 {
        return None;
    }
    if height >= 1.0 {
        // A pole, which has a node of its own.
        let lon = spot.x / (X_SCALE * f64::from(LENGTH[NODES][0]));
        return Some(Place { lon, lat: FRAC_PI_2.copysign(spot.y) });
    }
    let top = |node: usize| f64::from(HEIGHT[node][0]);
    let node = (0..NODES).rev().find(|node| top(*node) <= height).unwrap_or(0);
    let start = 5.0 * (height - top(node)) / (top(node + 1) - top(node));
    let degrees = super::newton::solve(start, |d| (value(HEIGHT[node], d) - height, slope(HEIGHT[node], d)));
    let lat = ((5 * node) as f64 + degrees).to_radians();
    Some(Place { lon: spot.x / (X_SCALE * value(LENGTH[node], degrees)), lat: lat.copysign(spot.y) })
}
