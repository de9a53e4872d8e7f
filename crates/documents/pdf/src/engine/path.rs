//! Paths, as far as they draw the rules of tables.

use hayro_font::kurbo::Point as Spot;

use crate::text::{Rect, Rule};

/// Pieces of one path that are kept: more is a drawing.
const PIECES_MAX: usize = 20_000;
/// How far the ends of a straight rule may be off, in points.
const SLANT_MAX: f64 = 0.5;
/// A filled box thinner than this is a rule, in points.
const THICKNESS_MAX: f64 = 3.0;
/// A rule shorter than this is a dot or a dash, in points.
const LENGTH_MIN: f64 = 2.0;

/// A path in the page's own coordinates.
#[derive(Default)]
pub(crate) struct Path {
    lines: Vec<(Spot, Spot)>,
    /// Where each closed or open figure begins in `lines`, and whether it is made of straight lines alone.
    figures: Vec<Figure>,
    start: Option<Spot>,
    last: Option<Spot>,
}

struct Figure {
    first: usize,
    is_straight: bool,
}

impl Path {
    pub(crate) fn clear(&mut self) {
        self.lines.clear();
        self.figures.clear();
        self.start = None;
        self.last = None;
    }

    pub(crate) fn move_to(&mut self, to: Spot) {
        self.start = Some(to);
        self.last = Some(to);
        if self.figures.len() < PIECES_MAX {
            self.figures.push(Figure { first: self.lines.len(), is_straight: true });
        }
    }

    pub(crate) fn line_to(&mut self, to: Spot) {
        if let Some(last) = self.last.replace(to)
            && self.lines.len() < PIECES_MAX
        {
            self.lines.push((last, to));
        }
    }

    pub(crate) fn curve_to(&mut self, to: Spot) {
        self.last = Some(to);
        if let Some(figure) = self.figures.last_mut() {
            figure.is_straight = false;
        }
    }

    pub(crate) fn close(&mut self) {
        if let (Some(start), Some(last)) = (self.start, self.last)
            && start != last
        {
            self.line_to(start);
        }
    }

    /// How many of its figures have curves, as most letters do.
    pub(crate) fn curved_figures(&self) -> usize {
        self.figures.iter().filter(|figure| !figure.is_straight).count()
    }

    /// Adds the rules that stroking the path draws, `room` of them at most.
    pub(crate) fn stroked(&self, width: f64, room: usize, rules: &mut Vec<Rule>) {
        let half = (width / 2.0).min(THICKNESS_MAX);
        let boxes = self.lines.iter().filter_map(|(from, to)| {
            let (across, down) = ((to.x - from.x).abs(), (to.y - from.y).abs());
            let is_rule = across.min(down) <= SLANT_MAX && across.max(down) >= LENGTH_MIN;
            is_rule.then(|| bounds([*from, *to].into_iter()))
        });
        rules.extend(boxes.take(room).map(|area| Rule {
            bbox: Rect {
                x0: area.x0 - if area.x1 - area.x0 <= SLANT_MAX as f32 { half as f32 } else { 0.0 },
                x1: area.x1 + if area.x1 - area.x0 <= SLANT_MAX as f32 { half as f32 } else { 0.0 },
                y0: area.y0 - if area.y1 - area.y0 <= SLANT_MAX as f32 { half as f32 } else { 0.0 },
                y1: area.y1 + if area.y1 - area.y0 <= SLANT_MAX as f32 { half as f32 } else { 0.0 },
            },
        }));
    }

    /// Adds the rules that filling the path draws, `room` of them at most.
    pub(crate) fn filled(&self, room: usize, rules: &mut Vec<Rule>) {
        let ends = self.figures.iter().skip(1).map(|figure| figure.first).chain([self.lines.len()]);
        let boxes = self.figures.iter().zip(ends).filter_map(|(figure, end)| {
            let lines = &self.lines[figure.first..end];
            let is_box = figure.is_straight
                && (1..=6).contains(&lines.len())
                && lines
                    .iter()
                    .all(|(from, to)| (to.x - from.x).abs().min((to.y - from.y).abs()) <= SLANT_MAX);
            let area = bounds(lines.iter().flat_map(|(from, to)| [*from, *to]));
            let (width, height) = (f64::from(area.x1 - area.x0), f64::from(area.y1 - area.y0));
            let is_rule = width.min(height) <= THICKNESS_MAX && width.max(height) >= LENGTH_MIN;
            (is_box && is_rule).then_some(area)
        });
        rules.extend(boxes.take(room).map(|bbox| Rule { bbox }));
    }
}

fn bounds(spots: impl Iterator<Item = Spot>) -> Rect {
    let mut area = Rect { x0: f32::MAX, y0: f32::MAX, x1: f32::MIN, y1: f32::MIN };
    for spot in spots {
        area.x0 = area.x0.min(spot.x as f32);
        area.y0 = area.y0.min(spot.y as f32);
        area.x1 = area.x1.max(spot.x as f32);
        area.y1 = area.y1.max(spot.y as f32);
    }
    area
}
