//! Pseudocylindrical projections: parallels are level lines, meridians are curved.

use super::newton::solve;
use super::{Place, Spot, asin, is_sine};
use libm::{cos, sin, sqrt};
use std::f64::consts::{FRAC_PI_2, PI, SQRT_2};

/// Equal Earth, by its polynomial in the parametric latitude.
pub(super) struct EqualEarth {
    a: [f64; 4],
}

pub(super) const EQUAL_EARTH: EqualEarth = EqualEarth { a: [1.340_264, -0.081_106, 0.000_893, 0.003_796] };

impl EqualEarth {
    /// The sine of 60°.
    const M: f64 = 0.866_025_403_784_438_6;

    fn y(&self, t: f64) -> f64 {
        let (t2, [a1, a2, a3, a4]) = (t * t, self.a);
        t * (a1 + a2 * t2 + t2 * t2 * t2 * (a3 + a4 * t2))
    }

    fn slope(&self, t: f64) -> f64 {
        let (t2, [a1, a2, a3, a4]) = (t * t, self.a);
        a1 + 3.0 * a2 * t2 + t2 * t2 * t2 * (7.0 * a3 + 9.0 * a4 * t2)
    }

    pub(super) fn forward(&self, place: Place) -> Spot {
        let sine = Self::M * sin(place.lat);
        let t = asin(sine);
        let cosine = sqrt(1.0 - sine * sine);
        Spot { x: place.lon * cosine / (Self::M * self.slope(t)), y: self.y(t) }
    }

    pub(super) fn inverse(&self, spot: Spot) -> Option<Place> {
        let t = solve(spot.y / self.a[0], |t| (self.y(t) - spot.y, self.slope(t)));
        let sine = sin(t) / Self::M;
        is_sine(sine).then(|| Place { lon: spot.x * Self::M * self.slope(t) / cos(t), lat: asin(sine) })
    }
}

fn natural_earth_width(lat: f64) -> f64 {
    let p2 = lat * lat;
    let p4 = p2 * p2;
    0.8707 - 0.131979 * p2 + p4 * (-0.013791 + p4 * (0.003971 * p2 - 0.001529 * p4))
}

fn natural_earth_y(lat: f64) -> (f64, f64) {
    let p2 = lat * lat;
    let p4 = p2 * p2;
    let y = lat * (1.007226 + p2 * (0.015085 + p4 * (-0.044475 + 0.028874 * p2 - 0.005916 * p4)));
    let slope = 1.007226
        + p2 * (3.0 * 0.015085 + p4 * (-7.0 * 0.044475 + 9.0 * 0.028874 * p2 - 11.0 * 0.005916 * p4));
    (y, slope)
}

pub(super) fn natural_earth(place: Place) -> Spot {
    Spot { x: place.lon * natural_earth_width(place.lat), y: natural_earth_y(place.lat).0 }
}

pub(super) fn natural_earth_inverse(spot: Spot) -> Option<Place> {
    level_inverse(spot, natural_earth_y, natural_earth_width)
}

fn natural_earth_2_width(lat: f64) -> f64 {
    let p2 = lat * lat;
    let (p4, p6) = (p2 * p2, p2 * p2 * p2);
    0.84719 - 0.13063 * p2 + p6 * p6 * (-0.04515 + 0.05494 * p2 - 0.02326 * p4 + 0.00331 * p6)
}

fn natural_earth_2_y(lat: f64) -> (f64, f64) {
    let p2 = lat * lat;
    let p4 = p2 * p2;
    let y = lat * (1.01183 + p4 * p4 * (-0.02625 + 0.01926 * p2 - 0.00396 * p4));
    let slope = 1.01183 + p4 * p4 * (-9.0 * 0.02625 + 11.0 * 0.01926 * p2 - 13.0 * 0.00396 * p4);
    (y, slope)
}

pub(super) fn natural_earth_2(place: Place) -> Spot {
    Spot { x: place.lon * natural_earth_2_width(place.lat), y: natural_earth_2_y(place.lat).0 }
}

pub(super) fn natural_earth_2_inverse(spot: Spot) -> Option<Place> {
    level_inverse(spot, natural_earth_2_y, natural_earth_2_width)
}

/// The inverse of any map whose height depends on the latitude alone.
fn level_inverse(spot: Spot, y: fn(f64) -> (f64, f64), width: fn(f64) -> f64) -> Option<Place> {
    let lat = solve(spot.y, |lat| {
        let (height, slope) = y(lat);
        (height - spot.y, slope)
    });
    (lat.abs() <= FRAC_PI_2 + 1e-9).then(|| Place { lon: spot.x / width(lat), lat })
}

pub(super) fn mollweide(place: Place) -> Spot {
    let t = mollweide_angle(place.lat);
    Spot { x: 2.0 * SQRT_2 / PI * place.lon * cos(t), y: SQRT_2 * sin(t) }
}

/// The angle `t` with `2t + sin 2t = π sin lat`. Near a pole the slope of that vanishes and Newton crawls, so there
/// it is looked for as the small distance to the pole's own angle, by the third root that it begins with.
fn mollweide_angle(lat: f64) -> f64 {
    let rest = PI * (1.0 - sin(lat.abs()));
    let start = if rest > 0.3 { PI - 2.0 * lat.abs() } else { libm::cbrt(6.0 * rest) };
    // u - sin u = rest, where u = π - 2t
    let u = solve(start, |u| (u_minus_sine(u) - rest, 2.0 * sin(u / 2.0) * sin(u / 2.0)));
    let t = (PI - u) / 2.0;
    if lat < 0.0 { -t } else { t }
}

/// `u - sin u` without losing the small difference of two near numbers.
fn u_minus_sine(u: f64) -> f64 {
    if u.abs() > 0.5 {
        return u - sin(u);
    }
    let u2 = u * u;
    let series = |n: f64, rest: f64| 1.0 - u2 / (n * (n + 1.0)) * rest;
    u * u2 / 6.0 * series(4.0, series(6.0, series(8.0, series(10.0, series(12.0, 1.0)))))
}

pub(super) fn mollweide_inverse(spot: Spot) -> Option<Place> {
    let sine = spot.y / SQRT_2;
    if !is_sine(sine) {
        return None;
    }
    let t = asin(sine);
    let lat = asin((2.0 * t + sin(2.0 * t)) / PI);
    Some(Place { lon: safe_ratio(PI * spot.x, 2.0 * SQRT_2 * cos(t)), lat })
}

/// At a pole every longitude is the same spot; 0 is as good as any.
fn safe_ratio(value: f64, by: f64) -> f64 {
    if by.abs() < 1e-10 { 0.0 } else { value / by }
}

pub(super) fn sinusoidal_inverse(spot: Spot) -> Option<Place> {
    let is_in = spot.y.abs() <= FRAC_PI_2 + 1e-9;
    is_in.then(|| Place { lon: safe_ratio(spot.x, cos(spot.y)), lat: spot.y })
}

const ECKERT_4_X: f64 = 0.422_238_200_315_771_2;
const ECKERT_4_Y: f64 = 1.326_500_428_177_002_3;

pub(super) fn eckert_4(place: Place) -> Spot {
    let t = eckert_4_angle(place.lat);
    Spot { x: ECKERT_4_X * place.lon * (1.0 + cos(t)), y: ECKERT_4_Y * sin(t) }
}

/// The angle `t` with `t + sin t cos t + 2 sin t = (2 + π/2) sin lat`; its slope also vanishes at a pole, where the
/// distance `u = π/2 - t` is looked for instead.
fn eckert_4_angle(lat: f64) -> f64 {
    let goal = (2.0 + FRAC_PI_2) * (1.0 - sin(lat.abs()));
    // u - sin u cos u + 2 (1 - cos u) = goal
    let value = |u: f64| {
        let half = sin(u / 2.0);
        let height = u_minus_sine(2.0 * u) / 2.0 + 4.0 * half * half - goal;
        (height, 2.0 * sin(u) * sin(u) + 2.0 * sin(u))
    };
    let start = if goal < 0.5 { sqrt(goal) } else { FRAC_PI_2 - 0.9 * lat.abs() };
    let t = FRAC_PI_2 - if goal == 0.0 { 0.0 } else { solve(start, value) };
    if lat < 0.0 { -t } else { t }
}

pub(super) fn eckert_4_inverse(spot: Spot) -> Option<Place> {
    let sine = spot.y / ECKERT_4_Y;
    if !is_sine(sine) {
        return None;
    }
    let t = asin(sine);
    let lat = asin((t + sin(t) * cos(t) + 2.0 * sin(t)) / (2.0 + FRAC_PI_2));
    Some(Place { lon: spot.x / (ECKERT_4_X * (1.0 + cos(t))), lat })
}

fn kavrayskiy_7_width(lat: f64) -> f64 {
    0.866_025_403_784_438_6 * sqrt((1.0 - 3.0 * lat * lat / (PI * PI)).max(0.0))
}

pub(super) fn kavrayskiy_7(place: Place) -> Spot {
    Spot { x: place.lon * kavrayskiy_7_width(place.lat), y: place.lat }
}

pub(super) fn kavrayskiy_7_inverse(spot: Spot) -> Option<Place> {
    let is_in = spot.y.abs() <= FRAC_PI_2 + 1e-9;
    is_in.then(|| Place { lon: spot.x / kavrayskiy_7_width(spot.y), lat: spot.y })
}
