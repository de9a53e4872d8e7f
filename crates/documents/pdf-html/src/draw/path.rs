//! Paths as short as SVG allows: whole hundredths of a point, each from the last.

use std::fmt::Write as _;

use hayro_interpret::kurbo::{Affine, BezPath, PathEl, Point, Rect};

/// SVG units in a point.
pub(crate) const UNIT: f64 = 100.0;
/// Coordinates further out than this are outside of every page; browsers draw nothing sensible there.
const COORDINATE_MAX: f64 = 5_000_000.0;

/// A coordinate in SVG units.
pub(crate) fn units(value: f64) -> i64 {
    if value.is_finite() { (value * UNIT).clamp(-COORDINATE_MAX, COORDINATE_MAX).round() as i64 } else { 0 }
}

/// A number with as few digits as its use needs.
pub(crate) fn short(value: f64, digits: usize) -> String {
    if !value.is_finite() {
        return "0".into();
    }
    let mut text = format!("{value:.digits$}");
    if text.contains('.') {
        text.truncate(text.trim_end_matches('0').trim_end_matches('.').len());
    }
    if let Some(rest) = text.strip_prefix("0.") {
        text = format!(".{rest}");
    } else if let Some(rest) = text.strip_prefix("-0.") {
        text = format!("-.{rest}");
    }
    if matches!(text.as_str(), "-0" | "-." | "." | "") { "0".into() } else { text }
}

/// A transform as the `matrix()` of SVG, between spaces that are both in points.
pub(crate) fn matrix(transform: Affine) -> String {
    let [a, b, c, d, e, f] = transform.as_coeffs();
    let mut text = String::from("matrix(");
    for value in [a, b, c, d] {
        text.push_str(&short(value, 6));
        text.push(' ');
    }
    // Writing to a string cannot fail.
    let _ = write!(text, "{} {})", short(e * UNIT, 1), short(f * UNIT, 1));
    text
}

/// Writes path data; keeps the pen so that paths can follow each other.
#[derive(Debug, Default)]
pub(crate) struct Pen {
    pub(crate) data: String,
    x: i64,
    y: i64,
    last: char,
}

impl Pen {
    /// Appends a path.
    pub(crate) fn path(&mut self, path: &BezPath, transform: Affine) {
        let mut start = (self.x, self.y);
        for element in path.elements() {
            match *element {
                PathEl::MoveTo(to) => {
                    self.op('m', &[transform * to]);
                    start = (self.x, self.y);
                }
                PathEl::LineTo(to) => self.line(transform * to),
                PathEl::QuadTo(one, to) => self.op('q', &[transform * one, transform * to]),
                PathEl::CurveTo(one, two, to) => {
                    self.op('c', &[transform * one, transform * two, transform * to]);
                }
                PathEl::ClosePath => {
                    self.data.push('z');
                    self.last = 'z';
                    (self.x, self.y) = start;
                }
            }
        }
    }

    /// Appends a rectangle.
    pub(crate) fn rect(&mut self, rect: Rect) {
        self.op('m', &[Point::new(rect.x0, rect.y0)]);
        let (width, height) = (units(rect.x1) - self.x, units(rect.y1) - self.y);
        let _ = write!(self.data, "h{width}v{height}h{}z", -width);
        self.last = 'z';
    }

    fn line(&mut self, to: Point) {
        let (x, y) = (units(to.x), units(to.y));
        let (dx, dy) = (x - self.x, y - self.y);
        match (dx, dy) {
            (_, 0) => self.axis('h', dx),
            (0, _) => self.axis('v', dy),
            _ => self.op('l', &[to]),
        }
        (self.x, self.y) = (x, y);
    }

    fn axis(&mut self, op: char, by: i64) {
        self.begin(op);
        self.number(by);
        self.last = op;
    }

    fn op(&mut self, op: char, points: &[Point]) {
        self.begin(op);
        let from = (self.x, self.y);
        for point in points {
            let (x, y) = (units(point.x), units(point.y));
            self.number(x - from.0);
            self.number(y - from.1);
            (self.x, self.y) = (x, y);
        }
        // What follows a move without a letter of its own is a line.
        self.last = if op == 'm' { 'l' } else { op };
    }

    fn begin(&mut self, op: char) {
        if self.last != op || op == 'm' {
            self.data.push(op);
        }
    }

    fn number(&mut self, value: i64) {
        let is_apart = value < 0 || !self.data.ends_with(|last: char| last.is_ascii_digit());
        if !is_apart {
            self.data.push(' ');
        }
        let _ = write!(self.data, "{value}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn path_is_written_short() {
        let mut path = BezPath::new();
        path.move_to((1.0, 1.0));
        path.line_to((2.0, 1.0));
        path.line_to((3.0, 2.0));
        path.line_to((2.5, 3.0));
        path.curve_to((2.5, 3.5), (1.0, 3.5), (1.0, 3.0));
        path.close_path();
        let mut pen = Pen::default();
        pen.path(&path, Affine::IDENTITY);
        pen.rect(Rect::new(0.0, 0.0, 1.0, 0.5));
        assert_eq!(pen.data, "m100 100h100l100 100-50 100c0 50-150 50-150 0zm-100-100h100v50h-100z");
    }

    #[test]
    fn numbers_are_short() {
        let check = |value: f64, digits: usize, expected: &str| assert_eq!(short(value, digits), expected);
        check(0.5, 2, ".5");
        check(-0.5, 2, "-.5");
        check(10.0, 2, "10");
        check(-0.001, 2, "0");
        check(f64::NAN, 2, "0");
    }
}
