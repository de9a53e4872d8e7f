//! Conic projections: the globe on a cone, unrolled.

use super::{Name, Place, Spot, asin_rounded, is_sine};
use libm::{atan, atan2, cos, exp, hypot, log, pow, sin, sqrt, tan};
use std::f64::consts::{FRAC_PI_2, FRAC_PI_4};

/// A cone: how much of a full turn it unrolls to, and two constants whose meaning depends on the projection.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cone {
    /// The share of a full turn, negative if the cone opens to the north.
    pub(super) n: f64,
    c: f64,
    /// The distance from the tip to the middle of the map.
    tip: f64,
}

/// Standard parallels nearer to each other than this count as one.
const SAME: f64 = 1e-10;

impl Cone {
    pub(super) fn new(name: Name, [first, second]: [f64; 2]) -> Self {
        let is_one = (first - second).abs() < SAME;
        match name {
            Name::LambertConformal => {
                let n = if is_one {
                    sin(first)
                } else {
                    log(cos(first) / cos(second)) / log(half_tan(second) / half_tan(first))
                };
                let c = cos(first) * pow(half_tan(first), n) / n;
                Self { n, c, tip: c }
            }
            Name::EquidistantConic => {
                let n = if is_one { sin(first) } else { (cos(first) - cos(second)) / (second - first) };
                let c = first + cos(first) / n;
                Self { n, c, tip: c }
            }
            _ => {
                let n = (sin(first) + sin(second)) / 2.0;
                let c = cos(first) * cos(first) + 2.0 * n * sin(first);
                Self { n, c, tip: sqrt(c) / n }
            }
        }
    }

    /// The spot at a distance from the tip.
    fn spot(&self, distance: f64, lon: f64) -> Spot {
        let angle = self.n * lon;
        Spot { x: distance * sin(angle), y: self.tip - distance * cos(angle) }
    }

    /// The distance from the tip, with the sign of the cone, and the longitude.
    fn polar(&self, spot: Spot) -> (f64, f64) {
        let sign = self.n.signum();
        let (x, y) = (sign * spot.x, sign * (self.tip - spot.y));
        (sign * hypot(x, y), atan2(x, y) / self.n)
    }

    pub(super) fn albers(&self, place: Place) -> Spot {
        let square = (self.c - 2.0 * self.n * sin(place.lat)).max(0.0);
        self.spot(sqrt(square) / self.n, place.lon)
    }

    pub(super) fn albers_inverse(&self, spot: Spot) -> Option<Place> {
        let (distance, lon) = self.polar(spot);
        let scaled = distance * self.n;
        let sine = (self.c - scaled * scaled) / (2.0 * self.n);
        is_sine(sine).then(|| Place { lon, lat: asin_rounded(sine) })
    }

    pub(super) fn conformal(&self, place: Place) -> Spot {
        let distance = if FRAC_PI_2 - self.n.signum() * place.lat < SAME {
            0.0
        } else {
            self.c * pow(half_tan(place.lat), -self.n)
        };
        self.spot(distance, place.lon)
    }

    pub(super) fn conformal_inverse(&self, spot: Spot) -> Option<Place> {
        let (distance, lon) = self.polar(spot);
        if distance == 0.0 {
            return Some(Place { lon: 0.0, lat: self.n.signum() * FRAC_PI_2 });
        }
        Some(Place { lon, lat: 2.0 * atan(exp(log(self.c / distance) / self.n)) - FRAC_PI_2 })
    }

    pub(super) fn equidistant(&self, place: Place) -> Spot {
        self.spot(self.c - place.lat, place.lon)
    }

    pub(super) fn equidistant_inverse(&self, spot: Spot) -> Option<Place> {
        let (distance, lon) = self.polar(spot);
        Some(Place { lon, lat: self.c - distance })
    }
}

/// The tangent that a conformal map lengthens latitudes by.
fn half_tan(lat: f64) -> f64 {
    tan(FRAC_PI_4 + lat / 2.0)
}
