//! Turning the globe so that another place comes to the middle of the map.

use super::vector::{self, Vector};
use crate::projection::Place;
use libm::{cos, sin};
use std::f64::consts::PI;

/// A turn of the globe.
#[derive(Debug, Clone, Copy)]
pub struct Rotation {
    kind: Kind,
}

#[derive(Debug, Clone, Copy)]
enum Kind {
    /// About the axis of the poles only, which moves longitudes and nothing else.
    Spin(f64),
    /// Any: the rows are the turned axes.
    Turn([Vector; 3]),
}

impl Rotation {
    /// Brings `center` to longitude 0, latitude 0, and then rolls the globe clockwise by `roll` radians.
    pub fn new(center: Place, roll: f64) -> Self {
        if center.lat == 0.0 && roll == 0.0 {
            return Self { kind: Kind::Spin(center.lon) };
        }
        let out = vector::from_place(center);
        let right = [-sin(center.lon), cos(center.lon), 0.0];
        let up = vector::cross(out, right);
        let (sine, cosine) = (sin(roll), cos(roll));
        let rolled_right = vector::add(vector::scale(right, cosine), vector::scale(up, sine));
        let rolled_up = vector::add(vector::scale(up, cosine), vector::scale(right, -sine));
        Self { kind: Kind::Turn([out, rolled_right, rolled_up]) }
    }

    /// Where a place of the globe is after the turn.
    pub fn forward(&self, place: Place) -> Place {
        match self.kind {
            Kind::Spin(0.0) => Place { lon: wrap(place.lon), lat: place.lat },
            Kind::Spin(lon) => Place { lon: wrap(place.lon - lon), lat: place.lat },
            Kind::Turn(axes) => {
                let here = vector::from_place(place);
                vector::to_place(axes.map(|axis| vector::dot(axis, here)))
            }
        }
    }

    /// Which place of the globe is there after the turn.
    pub fn inverse(&self, place: Place) -> Place {
        match self.kind {
            Kind::Spin(lon) => Place { lon: wrap(place.lon + lon), lat: place.lat },
            Kind::Turn([a, b, c]) => {
                let [x, y, z] = vector::from_place(place);
                let sum = vector::add(vector::scale(a, x), vector::scale(b, y));
                vector::to_place(vector::add(sum, vector::scale(c, z)))
            }
        }
    }
}

/// A longitude within half a turn of 0; the two ends stay what they are.
fn wrap(lon: f64) -> f64 {
    if lon.abs() <= PI { lon } else { lon - (lon / (2.0 * PI)).round() * 2.0 * PI }
}
