//! Which text is drawn over later: it must stay where it is in the drawing.

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
