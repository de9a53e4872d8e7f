//! Lines of pixels, kept in pieces that know how far up and down they reach.

use super::Pixel;

/// Consecutive points that are looked at or passed over together.
const PIECE_POINTS: usize = 32;
/// Nearer to the last point than this, a point changes nothing that can be seen.
const NEAR: f32 = 0.3;

/// One line of a path.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Line<'a> {
    pub(crate) points: &'a [Pixel],
    /// Whether it goes on from its last point to its first.
    pub(crate) is_closed: bool,
}

impl Line<'_> {
    /// Whether the segment that starts at a point comes between two heights.
    pub(super) fn comes_between(&self, index: usize, top: f32, bottom: f32) -> bool {
        let next = if index + 1 == self.points.len() { 0 } else { index + 1 };
        let (a, b) = (self.points[index][1], self.points[next][1]);
        a.max(b) >= top && a.min(b) <= bottom
    }
}

#[derive(Debug, Clone, Copy)]
struct Span {
    end: u32,
    is_closed: bool,
    top: f32,
    bottom: f32,
}

/// Any number of lines.
#[derive(Debug, Default)]
pub(crate) struct Path {
    points: Vec<Pixel>,
    lines: Vec<Span>,
    /// The least and greatest y of each piece of [`PIECE_POINTS`], counted over all points, with the one point that
    /// follows the piece.
    pieces: Vec<[f32; 2]>,
    top: f32,
    bottom: f32,
}

impl Path {
    /// Adds a line of at least one point. Points that nobody could tell apart are left out.
    pub(crate) fn add(&mut self, points: impl IntoIterator<Item = Pixel>, is_closed: bool) {
        let start = self.points.len();
        let is_near = |a: Pixel, b: Pixel| (a[0] - b[0]).abs() < NEAR && (a[1] - b[1]).abs() < NEAR;
        for point in points {
            if self.points.len() == start || !is_near(self.points[self.points.len() - 1], point) {
                self.points.push(point);
            }
        }
        if is_closed {
            while self.points.len() > start + 1
                && is_near(self.points[self.points.len() - 1], self.points[start])
            {
                self.points.pop();
            }
        }
        self.end_line(start, is_closed);
    }

    /// The same lines without points nearer than `near` to the one before: for wide strokes, which do not show them.
    pub(crate) fn thinned(&self, near: f32) -> Self {
        let mut path = Self::default();
        for line in self.lines() {
            let (first, last) = (line.points[0], line.points[line.points.len() - 1]);
            let is_near = |a: Pixel, b: Pixel| (a[0] - b[0]).abs() < near && (a[1] - b[1]).abs() < near;
            let mut kept = first;
            let mut points = vec![first];
            for &point in line.points.iter().filter(|point| !is_near(**point, last) || line.is_closed) {
                if !is_near(point, kept) {
                    points.push(point);
                    kept = point;
                }
            }
            // The end of a line stays where it is, or lines that meet there would come apart.
            if !line.is_closed {
                points.push(last);
            }
            path.add(points, line.is_closed);
        }
        path.finish()
    }

    fn end_line(&mut self, start: usize, is_closed: bool) {
        if self.points.len() == start {
            return;
        }
        let (top, bottom) = reach(&self.points[start..]);
        if self.lines.is_empty() {
            (self.top, self.bottom) = (top, bottom);
        }
        self.top = self.top.min(top);
        self.bottom = self.bottom.max(bottom);
        self.lines.push(Span { end: self.points.len() as u32, is_closed, top, bottom });
    }

    /// Makes the index of pieces. To be called once, after the last line.
    pub(crate) fn finish(mut self) -> Self {
        self.points.shrink_to_fit();
        let count = self.points.len();
        self.pieces = (0..count)
            .step_by(PIECE_POINTS)
            .map(|start| {
                let (top, bottom) = reach(&self.points[start..(start + PIECE_POINTS + 1).min(count)]);
                [top, bottom]
            })
            .collect();
        self
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.points.is_empty()
    }

    /// The least and greatest y.
    pub(crate) fn reach(&self) -> (f32, f32) {
        (self.top, self.bottom)
    }

    pub(crate) fn lines(&self) -> impl Iterator<Item = Line<'_>> {
        self.spans().map(|(start, span)| Line {
            points: &self.points[start..span.end as usize],
            is_closed: span.is_closed,
        })
    }

    fn spans(&self) -> impl Iterator<Item = (usize, &Span)> {
        let starts = std::iter::once(0).chain(self.lines.iter().map(|span| span.end as usize));
        starts.zip(&self.lines)
    }

    /// Calls `segment` with the number of each segment of each line that may reach between two heights: line, and index
    /// of the point that the segment starts at.
    pub(crate) fn each_segment(&self, top: f32, bottom: f32, mut segment: impl FnMut(Line<'_>, usize)) {
        for (start, span) in self.spans() {
            if span.bottom < top || span.top > bottom {
                continue;
            }
            let end = span.end as usize;
            let line = Line { points: &self.points[start..end], is_closed: span.is_closed };
            let mut at = start;
            while at < end {
                let piece = at / PIECE_POINTS;
                let piece_end = ((piece + 1) * PIECE_POINTS).min(end);
                let [low, high] = self.pieces[piece];
                // The segment that closes a line leaves its last piece, whose reach does not know of it.
                let has_closing = span.is_closed && piece_end == end;
                if has_closing || (high >= top && low <= bottom) {
                    let last = if span.is_closed { end } else { end - 1 };
                    (at..piece_end.min(last)).for_each(|index| segment(line, index - start));
                }
                at = piece_end;
            }
        }
    }
}

fn reach(points: &[Pixel]) -> (f32, f32) {
    points.iter().fold((f32::MAX, f32::MIN), |(top, bottom), [_, y]| (top.min(*y), bottom.max(*y)))
}
