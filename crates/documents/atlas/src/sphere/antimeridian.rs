//! Cutting at the antimeridian: the sphere is opened along the meridian opposite the middle.

use crate::projection::Place;
use libm::{atan, cos, sin, tan};
use std::f64::consts::{FRAC_PI_2, PI};

/// The edge begins at the bottom left.
pub(super) const START: Place = Place { lon: -PI, lat: -FRAC_PI_2 };

/// Longitudes this near to half a turn apart are joined over a pole.
const OPPOSITE: f64 = 1e-9;

/// Where consecutive places of a line leave and enter the opened sphere; the pieces in order, and whether nothing was
/// cut.
pub(super) fn cut(line: &[Place], is_ring: bool) -> (Vec<Vec<Place>>, bool) {
    let Some(&first) = line.first() else { return (Vec::new(), true) };
    let mut pieces = Vec::new();
    let mut piece = vec![first];
    let last = if is_ring { Some(first) } else { None };
    let mut from = first;
    for &to in line[1..].iter().chain(last.iter()) {
        match crossing(from, to) {
            None => {}
            Some(Crossing::At(lat)) => {
                piece.push(Place { lon: PI.copysign(from.lon), lat });
                pieces.push(std::mem::take(&mut piece));
                piece.push(Place { lon: PI.copysign(to.lon), lat });
            }
            Some(Crossing::Pole(lat)) => {
                piece.push(Place { lon: from.lon, lat });
                piece.push(Place { lon: PI.copysign(from.lon), lat });
                pieces.push(std::mem::take(&mut piece));
                piece.push(Place { lon: PI.copysign(to.lon), lat });
                piece.push(Place { lon: to.lon, lat });
            }
        }
        piece.push(to);
        from = to;
    }
    let is_whole = pieces.is_empty();
    if is_ring {
        // The first place again: a ring comes open, and a cut one goes on where it began.
        piece.pop();
        if let Some(start) = pieces.first_mut() {
            piece.append(start);
            std::mem::swap(start, &mut piece);
            return (pieces, false);
        }
    }
    pieces.push(piece);
    (pieces, is_whole)
}

enum Crossing {
    /// Of the antimeridian, at this latitude.
    At(f64),
    /// Over the pole at this latitude.
    Pole(f64),
}

fn crossing(from: Place, to: Place) -> Option<Crossing> {
    let apart = (to.lon - from.lon).abs();
    if (apart - PI).abs() < OPPOSITE {
        return Some(Crossing::Pole(FRAC_PI_2.copysign(from.lat + to.lat)));
    }
    if apart < PI {
        return None;
    }
    let sine = sin(from.lon - to.lon);
    if sine.abs() < OPPOSITE {
        // The same meridian, once as east and once as west.
        return Some(Crossing::At((from.lat + to.lat) / 2.0));
    }
    // The great circle's latitude at half a turn, from the tangents of both ends.
    let tangent = (tan(from.lat) * sin(to.lon) - tan(to.lat) * sin(from.lon)) / sine;
    let lat = if cos(from.lat).min(cos(to.lat)) < 1e-12 { (from.lat + to.lat) / 2.0 } else { atan(tangent) };
    Some(Crossing::At(lat))
}

/// The edge as seen from inside: up the left side, over the north pole, down the right side and back.
pub(super) struct Seam;

impl super::seam::Seam for Seam {
    fn position(&self, place: Place) -> f64 {
        if place.lon < 0.0 { place.lat + FRAC_PI_2 } else { PI + FRAC_PI_2 - place.lat }
    }

    fn length(&self) -> f64 {
        2.0 * PI
    }

    fn corners(&self, from: f64, to: f64, out: &mut Vec<Place>) {
        const TOP: [f64; 3] = [-PI, 0.0, PI];
        // The poles are whole sides of the opened sphere: at half of the edge and at its end.
        let mut side = |at: f64, lat: f64, lons: [f64; 3]| {
            if from < at && at < to {
                out.extend(lons.map(|lon| Place { lon, lat }));
            }
        };
        side(PI, FRAC_PI_2, TOP);
        side(2.0 * PI, -FRAC_PI_2, [PI, 0.0, -PI]);
        side(3.0 * PI, FRAC_PI_2, TOP);
    }
}

/// The ring around the opened sphere, clockwise.
pub(super) fn outline() -> Vec<Place> {
    let at = |lon, lat| Place { lon, lat };
    vec![
        at(-PI, -FRAC_PI_2),
        at(-PI, 0.0),
        at(-PI, FRAC_PI_2),
        at(0.0, FRAC_PI_2),
        at(PI, FRAC_PI_2),
        at(PI, 0.0),
        at(PI, -FRAC_PI_2),
        at(0.0, -FRAC_PI_2),
    ]
}
