//! The outline of a line that is drawn with a round pen, segment by segment.
//!
//! Each segment gives the two sides of the line along it and the corner at its end. The parts of neighbouring segments
//! share their ends and leave no gap, so any segment can be left out with those that are not on the band.

use super::cells::Cells;
use super::{Line, Pixel};

/// A pen of a certain width.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pen {
    half: f32,
    /// The cosine of the angle between two corners of a round one.
    arc_cosine: f32,
}

impl Pen {
    pub(super) fn new(width: f32) -> Self {
        let half = width / 2.0;
        // A tenth of a pixel is as far as a corner's chord may stray from the circle.
        let arc_cosine = (1.0 - 0.1 / half.max(0.11)).max(0.0);
        let arc_cosine = (2.0 * arc_cosine * arc_cosine - 1.0).max(0.0);
        Self { half, arc_cosine }
    }

    /// Adds the outline of the segment that starts at a point of the line, and of the corner or the round end that
    /// follows; before the first segment of an open line, its round beginning too.
    pub(super) fn segment(&self, line: Line<'_>, index: usize, cells: &mut Cells) {
        let points = line.points;
        let count = points.len();
        if count == 1 {
            self.arc(points[0], [self.half, 0.0], [-self.half, 0.0], cells);
            return self.arc(points[0], [-self.half, 0.0], [self.half, 0.0], cells);
        }
        let at = |i: usize| points[i % count];
        let (from, to) = (at(index), at(index + 1));
        let Some(normal) = self.normal(from, to) else { return };
        let is_first = index == 0 && !line.is_closed;
        let is_last = index + 2 == count && !line.is_closed;
        let before = (!is_first).then(|| self.normal(at(index + count - 1), from)).flatten();
        let after = (!is_last).then(|| self.normal(to, at(index + 2))).flatten();
        let size = |a: Pixel, b: Pixel| length([b[0] - a[0], b[1] - a[1]]);
        let whole = size(from, to);
        // The inner corner at each end; at the outer side the line ends square to its direction.
        let start_inner = before
            .and_then(|before| self.inner(before, normal, size(at(index + count - 1), from).min(whole)));
        let end_inner = after.and_then(|after| self.inner(normal, after, size(to, at(index + 2)).min(whole)));
        let side = |end: Pixel, sign: f32, inner: Option<Pixel>| match inner {
            Some(inner) if dot(inner, normal) * sign > 0.0 => [end[0] + inner[0], end[1] + inner[1]],
            _ => [end[0] + sign * normal[0], end[1] + sign * normal[1]],
        };
        cells.edge(side(from, 1.0, start_inner), side(to, 1.0, end_inner));
        cells.edge(side(to, -1.0, end_inner), side(from, -1.0, start_inner));
        if is_first || before.is_none() {
            self.arc(from, negative(normal), normal, cells);
        }
        match after {
            None => self.arc(to, normal, negative(normal), cells),
            Some(after) => self.corner(to, (normal, after), end_inner, cells),
        }
    }

    /// What lies to the left of a segment's direction by half a width; none if it has no direction.
    fn normal(&self, from: Pixel, to: Pixel) -> Option<Pixel> {
        let (x, y) = (to[0] - from[0], to[1] - from[1]);
        let length = length([x, y]);
        (length > 0.0).then(|| [y / length * self.half, -x / length * self.half])
    }

    /// From the corner to where the two inner sides meet, if they meet within both segments.
    fn inner(&self, first: Pixel, second: Pixel, length: f32) -> Option<Pixel> {
        let square = self.half * self.half;
        let turn = cross(first, second);
        let cosine = dot(first, second) / square;
        // Half the angle between the two has this tangent; a line that turns back has no inner corner.
        let tangent = (turn / square).abs() / (1.0 + cosine).max(1e-6);
        if cosine < -0.999 || tangent * self.half > length {
            return None;
        }
        // y points downwards: a positive turn is to the right on the page, where the right side is the inner one.
        let factor = if turn > 0.0 { -1.0 } else { 1.0 } / (1.0 + cosine);
        Some([(first[0] + second[0]) * factor, (first[1] + second[1]) * factor])
    }

    /// Joins one segment's end to the next one's start.
    fn corner(&self, at: Pixel, (first, second): (Pixel, Pixel), inner: Option<Pixel>, cells: &mut Cells) {
        let turns_right = cross(first, second) > 0.0;
        if turns_right {
            self.arc(at, first, second, cells);
            if inner.is_none() {
                through(at, negative(second), negative(first), cells);
            }
        } else {
            self.arc(at, negative(second), negative(first), cells);
            if inner.is_none() {
                through(at, first, second, cells);
            }
        }
    }

    /// A part of the circle around a spot, by the shorter way.
    fn arc(&self, at: Pixel, from: Pixel, to: Pixel, cells: &mut Cells) {
        let square = self.half * self.half;
        let place = |offset: Pixel| [at[0] + offset[0], at[1] + offset[1]];
        let cosine = (dot(from, to) / square).clamp(-1.0, 1.0);
        if cosine >= self.arc_cosine {
            return cells.edge(place(from), place(to));
        }
        // Halved until straight lines will do. Half a circle has no middle between its ends: it bulges forwards.
        let sum = [from[0] + to[0], from[1] + to[1]];
        let length = length(sum);
        let middle = if length < self.half * 1e-3 {
            [-from[1], from[0]]
        } else {
            [sum[0] / length * self.half, sum[1] / length * self.half]
        };
        self.arc(at, from, middle, cells);
        self.arc(at, middle, to, cells);
    }
}

/// The inner side of a corner too sharp for its segments: by way of the corner itself.
fn through(at: Pixel, from: Pixel, to: Pixel, cells: &mut Cells) {
    cells.edge([at[0] + from[0], at[1] + from[1]], at);
    cells.edge(at, [at[0] + to[0], at[1] + to[1]]);
}

fn negative(a: Pixel) -> Pixel {
    [-a[0], -a[1]]
}

fn length(a: Pixel) -> f32 {
    dot(a, a).sqrt()
}

fn dot(a: Pixel, b: Pixel) -> f32 {
    a[0] * b[0] + a[1] * b[1]
}

fn cross(a: Pixel, b: Pixel) -> f32 {
    a[0] * b[1] - a[1] * b[0]
}
