//! Which text is drawn over later: it must stay where it is in the drawing.

use std::collections::HashMap;

use hayro_interpret::kurbo::{BezPath, PathEl, Point, Rect, Segments, Shape as _};

/// Boxes by which one shape is told to cover others; a shape of more pieces is taken as a whole.
const PIECES_MAX: usize = 64;
/// Boxes that are remembered; past it, the page is taken to be covered where any box was.
const BOXES_MAX: usize = 4_000;

/// The boxes that the inside of a path covers.
pub(crate) fn filled(path: &BezPath) -> Vec<Rect> {
    let mut boxes: Vec<Rect> = Vec::new();
    for element in path.elements() {
        if boxes.len() > PIECES_MAX {
            return vec![path.control_box()];
        }
        let points: &[Point] = match element {
            PathEl::MoveTo(to) => {
                boxes.push(Rect::from_points(*to, *to));
                continue;
            }
            PathEl::LineTo(to) => &[*to],
            PathEl::QuadTo(one, to) => &[*one, *to],
            PathEl::CurveTo(one, two, to) => &[*one, *two, *to],
            PathEl::ClosePath => continue,
        };
        if let Some(last) = boxes.last_mut() {
            *last = points.iter().fold(*last, |bounds, point| bounds.union_pt(*point));
        }
    }
    boxes
}

/// The boxes that a stroke along a path covers.
pub(crate) fn stroked(path: &BezPath, width: f64) -> Vec<Rect> {
    let by = width / 2.0;
    let segments = |path: &BezPath| -> Segments<std::vec::IntoIter<PathEl>> {
        hayro_interpret::kurbo::segments(path.elements().to_vec())
    };
    if path.elements().len() > PIECES_MAX {
        return vec![path.control_box().inflate(by, by)];
    }
    segments(path).map(|segment| segment.bounding_box().inflate(by, by)).collect()
}

/// Side of the squares by which letters are found again, in points.
const SQUARE: f64 = 32.0;
/// Squares along a letter; a larger one is taken to be covered.
const SQUARES_MAX: i32 = 16;
/// Letters that are remembered of one square.
const LETTERS_MAX: usize = 64;
/// How much of a letter's box, at each of its edges, its neighbours may lie in.
const EDGE: f64 = 0.15;

/// A square by its column and row.
type Square = (i32, i32);

/// The letters that have been drawn, going backwards through a page.
#[derive(Debug, Default)]
pub(crate) struct Letters {
    /// For each square the letters in it: their boxes and colours.
    squares: HashMap<Square, Vec<(Rect, [u8; 4])>>,
}

impl Letters {
    pub(crate) fn add(&mut self, area: Rect, colour: [u8; 4]) {
        let area = area.inflate(-EDGE * area.width(), -EDGE * area.height());
        for square in squares(area).into_iter().flatten() {
            let letters = self.squares.entry(square).or_default();
            if letters.len() < LETTERS_MAX {
                letters.push((area, colour));
            }
        }
    }

    /// Whether a letter of another colour lies over the box.
    pub(crate) fn hide(&self, area: Rect, colour: [u8; 4]) -> bool {
        let Some(mut squares) = squares(area) else {
            return true;
        };
        squares.any(|square| {
            let letters = self.squares.get(&square);
            letters.into_iter().flatten().any(|(other, paint)| *paint != colour && other.overlaps(area))
        })
    }
}

/// The squares that a box lies in; nothing when they are too many.
fn squares(area: Rect) -> Option<impl Iterator<Item = Square>> {
    let [x0, y0, x1, y1] = [area.x0, area.y0, area.x1, area.y1].map(|side| (side / SQUARE).floor() as i32);
    let is_small = x1.saturating_sub(x0) < SQUARES_MAX && y1.saturating_sub(y0) < SQUARES_MAX;
    is_small.then(|| (x0..=x1).flat_map(move |x| (y0..=y1).map(move |y| (x, y))))
}

/// What has been covered, going backwards through a page.
#[derive(Debug, Default)]
pub(crate) struct Covered {
    boxes: Vec<Rect>,
    all: Option<Rect>,
}

impl Covered {
    pub(crate) fn add(&mut self, boxes: &[Rect]) {
        for one in boxes {
            self.all = Some(self.all.map_or(*one, |all| all.union(*one)));
            if self.boxes.len() < BOXES_MAX {
                self.boxes.push(*one);
            }
        }
    }

    /// Whether anything of the box is covered.
    pub(crate) fn touches(&self, area: Rect) -> bool {
        let meets = |other: &Rect| {
            other.x0 < area.x1 && other.x1 > area.x0 && other.y0 < area.y1 && other.y1 > area.y0
        };
        if !self.all.as_ref().is_some_and(meets) {
            return false;
        }
        self.boxes.len() >= BOXES_MAX || self.boxes.iter().any(meets)
    }
}
