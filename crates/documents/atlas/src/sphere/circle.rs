//! Cutting at a circle around the middle, for maps that show a part of the sphere seen from one side.

use super::vector::{self, Vector};
use crate::projection::Place;
use libm::{atan2, cos, sin, sqrt};
use std::f64::consts::PI;

/// The circle is drawn with this many corners.
const CORNERS: usize = 360;

/// Cuts a line; the pieces within the circle, and whether nothing was cut. A line that is all outside has no piece, and
/// was not cut either.
pub(super) fn cut(line: &[Place], radius: f64, is_ring: bool) -> (Vec<Vec<Place>>, bool) {
    let Some(&first) = line.first() else { return (Vec::new(), true) };
    let rim = cos(radius);
    let mut pieces: Vec<Vec<Place>> = Vec::new();
    let mut piece = Vec::new();
    let mut is_cut = false;
    let mut from = vector::from_place(first);
    let starts_inside = from[0] > rim;
    if starts_inside {
        piece.push(first);
    }
    let last = if is_ring { Some(first) } else { None };
    for &place in line[1..].iter().chain(last.iter()) {
        let to = vector::from_place(place);
        for at in crossings(from, to, rim).into_iter().flatten() {
            is_cut = true;
            piece.push(vector::to_place(at));
            // A piece that has just begun here goes on; one that was under way ends.
            if piece.len() > 1 {
                pieces.push(std::mem::take(&mut piece));
            }
        }
        if to[0] > rim {
            piece.push(place);
        }
        from = to;
    }
    if is_ring && starts_inside {
        piece.pop();
        if let Some(start) = pieces.first_mut().filter(|_| is_cut) {
            piece.append(start);
            std::mem::swap(start, &mut piece);
            return (pieces, false);
        }
    }
    if !piece.is_empty() {
        pieces.push(piece);
    }
    (pieces, !is_cut)
}

/// Where the way from `a` to `b` crosses the rim, in order: an odd number of times if one of them is inside.
fn crossings(a: Vector, b: Vector, rim: f64) -> [Option<Vector>; 2] {
    let (is_in, is_out) = (a[0] > rim, b[0] > rim);
    let differs = is_in != is_out;
    let step = vector::add(b, vector::scale(a, -1.0));
    if !differs && (a[0] - rim).abs() > vector::length(step) {
        return [None, None];
    }
    let normal = vector::cross(a, b);
    let size = vector::length(normal);
    if size < 1e-14 {
        return [differs.then_some(a), None];
    }
    let normal = vector::scale(normal, 1.0 / size);
    // The axis of the map as seen within the plane of the great circle.
    let axis = vector::add([1.0, 0.0, 0.0], vector::scale(normal, -normal[0]));
    let axis_square = vector::dot(axis, axis);
    let rest = 1.0 - rim * rim / axis_square;
    if axis_square < 1e-14 || rest < 0.0 {
        return [differs.then_some(a), None];
    }
    let middle = vector::scale(axis, rim / axis_square);
    let side = vector::scale(vector::cross(normal, axis), sqrt(rest / axis_square));
    let whole = vector::angle(a, b);
    let turn = |p: Vector| atan2(vector::dot(vector::cross(a, p), normal), vector::dot(a, p));
    let mut hits =
        [vector::add(middle, vector::scale(side, -1.0)), vector::add(middle, side)].map(|p| (turn(p), p));
    if hits[0].0 > hits[1].0 {
        hits.swap(0, 1);
    }
    let on_way = hits.map(|(turn, p)| (0.0..=whole).contains(&turn).then_some(p));
    match (differs, on_way) {
        (false, [Some(enter), Some(leave)]) => [Some(enter), Some(leave)],
        (false, _) => [None, None],
        // Rounding may show both or none where there is one: going in, the nearer to the middle's side counts.
        (true, [Some(one), None] | [None, Some(one)]) => [Some(one), None],
        (true, [Some(enter), Some(leave)]) => [Some(if is_in { leave } else { enter }), None],
        (true, [None, None]) => [Some(if (a[0] - rim).abs() < (b[0] - rim).abs() { a } else { b }), None],
    }
}

/// The place on the circle in a direction, clockwise from the top.
pub(super) fn place_at(radius: f64, direction: f64) -> Place {
    let sine = sin(radius);
    vector::to_place([cos(radius), sine * sin(direction), sine * cos(direction)])
}

/// The circle, clockwise.
pub(super) struct Seam {
    pub(super) radius: f64,
}

impl super::seam::Seam for Seam {
    fn position(&self, place: Place) -> f64 {
        let [_, y, z] = vector::from_place(place);
        let direction = atan2(y, z);
        if direction < 0.0 { direction + 2.0 * PI } else { direction }
    }

    fn length(&self) -> f64 {
        2.0 * PI
    }

    fn corners(&self, from: f64, to: f64, out: &mut Vec<Place>) {
        let step = 2.0 * PI / CORNERS as f64;
        let first = (from / step).floor() as usize + 1;
        let directions = (first..).map(|i| i as f64 * step).take_while(|direction| *direction < to);
        out.extend(directions.map(|direction| place_at(self.radius, direction)));
    }
}

/// The whole circle as a ring.
pub(super) fn outline(radius: f64) -> Vec<Place> {
    (0..CORNERS).map(|i| place_at(radius, i as f64 * 2.0 * PI / CORNERS as f64)).collect()
}
