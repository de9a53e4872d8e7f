//! Writing on the map: every label finds a free place or is left out, so that none covers another or a marker.

use super::oceans::OCEANS;
use super::view::View;
use super::{Area, Canvas};
use crate::base::{BaseMap, Country};
use crate::draw::{Brush, Color, Path, Pixel, Window};
use crate::lettering::{Face, Hand, Line, capitals};
use crate::projection::Place;
use crate::spec::Spec;
use std::sync::Arc;

/// More than this would be a text with a map under it.
const LABELS_MAX: usize = 3000;
/// A longer text is no label.
const LABEL_CHARS_MAX: usize = 100;
/// Spots along lines that labels keep away from; a drawing has more, and labels then stand on it.
const AVOIDED_MAX: usize = 20_000;
/// Letters reach this far above and below the line they stand on, in sizes of type.
const ABOVE: f32 = 0.74;
const BELOW: f32 = 0.22;
/// Half the height of most letters.
const HALF_HEIGHT: f32 = 0.33;

/// The labels of a map, and what they must not cover.
pub(super) struct Labels {
    window: Area,
    taken: Crowd,
    /// Along lines: better not written on, but rather that than not at all.
    lines: Crowd,
    placed: Vec<Placed>,
    left_out: usize,
}

struct Placed {
    lines: Vec<(Line, Pixel)>,
    size: f32,
    color: Color,
}

impl Labels {
    pub(super) fn new(window: Area) -> Self {
        Self { window, taken: Crowd::new(window), lines: Crowd::new(window), placed: Vec::new(), left_out: 0 }
    }

    /// Keeps labels away from here.
    pub(super) fn block(&mut self, area: Area) {
        self.taken.push(area);
    }

    /// Keeps labels away from lines, if there is room elsewhere.
    pub(super) fn avoid(&mut self, path: &Path, step: f32) {
        let near = self.window.grown(step);
        along(path, step, |spot| {
            if spot.overlaps(&near) {
                self.lines.push(spot.grown(step / 4.0));
            }
            self.lines.count < AVOIDED_MAX
        });
    }

    /// Keeps labels off a line that is drawn over them, and this far away from it.
    pub(super) fn bar(&mut self, path: &Path, reach: f32) {
        let near = self.window.grown(reach);
        along(path, reach, |spot| {
            if spot.overlaps(&near) {
                self.taken.push(spot.grown(reach));
            }
            self.taken.count < AVOIDED_MAX
        });
    }

    fn is_free(&self, area: &Area) -> bool {
        let is_inside = area.left >= self.window.left
            && area.right <= self.window.right
            && area.top >= self.window.top
            && area.bottom <= self.window.bottom;
        is_inside && self.taken.is_free(area)
    }

    /// Writes a line beside a spot, where there is room: to the right first, then around it. What is not on the map needs
    /// no label.
    pub(super) fn beside(&mut self, line: Line, (at, reach): (Pixel, f32), size: f32, color: Color) {
        if !Area::at(at).overlaps(&self.window) {
            return;
        }
        let gap = reach + 0.3 * size;
        let (half, width) = (HALF_HEIGHT * size, line.width);
        let (right, left) = (at[0] + gap, at[0] - gap - width);
        let (above, below) = (at[1] - gap - BELOW * size, at[1] + gap + ABOVE * size);
        let near = 0.7 * gap;
        let starts = [
            [right, at[1] + half],
            [left, at[1] + half],
            [at[0] - width / 2.0, above],
            [at[0] - width / 2.0, below],
            [at[0] + near, at[1] - near],
            [at[0] + near, at[1] + near + ABOVE * size],
            [at[0] - near - width, at[1] - near],
            [at[0] - near - width, at[1] + near + ABOVE * size],
        ];
        let free: Vec<Pixel> =
            starts.into_iter().filter(|start| self.is_free(&area(*start, width, size))).collect();
        let is_off_lines = |start: &&Pixel| {
            let area = area(**start, width, size);
            self.lines.is_free(&area)
        };
        let free = free.iter().find(is_off_lines).or(free.first()).copied();
        match free.filter(|_| self.placed.len() < LABELS_MAX) {
            Some(start) => {
                self.taken.push(area(start, width, size).grown(0.1 * size));
                self.placed.push(Placed { lines: vec![(line, start)], size, color });
            }
            None => self.left_out += 1,
        }
    }

    /// Writes lines centred on a spot, if there is room, and says whether there was.
    fn centered(&mut self, lines: Vec<Line>, at: Pixel, size: f32, color: Color) -> bool {
        let step = 1.1 * size;
        let first = at[1] + HALF_HEIGHT * size - step * (lines.len() - 1) as f32 / 2.0;
        let starts = lines.into_iter().enumerate().map(|(index, line)| {
            let start = [at[0] - line.width / 2.0, first + step * index as f32];
            (line, start)
        });
        let lines: Vec<_> = starts.collect();
        let areas: Vec<Area> = lines.iter().map(|(line, start)| area(*start, line.width, size)).collect();
        let is_free = self.placed.len() < LABELS_MAX && areas.iter().all(|area| self.is_free(area));
        if is_free {
            areas.iter().for_each(|area| self.taken.push(area.grown(0.25 * size)));
            self.placed.push(Placed { lines, size, color });
        }
        is_free
    }

    /// Draws them all: the letters, with a rim in the land's colour where something may lie under them.
    fn draw(self, canvas: &mut Canvas<'_>, window: Window) {
        let halo = Color { rgb: canvas.look.paper.rgb, alpha: 190 };
        for group in self.placed.chunk_by(|a, b| a.size == b.size && a.color == b.color) {
            let mut path = Path::default();
            for (line, start) in group.iter().flat_map(|placed| &placed.lines) {
                canvas.lettering.draw(line, *start, &mut path);
            }
            let path = Arc::new(path.finish());
            if group[0].color.alpha == 255 {
                canvas.add(&path, Brush::Stroke(group[0].size * 0.22), halo, window);
            }
            canvas.add(&path, Brush::Fill, group[0].color, window);
        }
        if self.left_out > 0 {
            let (labels, were) = if self.left_out == 1 { ("label", "was") } else { ("labels", "were") };
            canvas.warnings.push(format!(
                "{} {labels} found no free place and {were} left out. Use smaller writing, a larger page or fewer labels.",
                self.left_out
            ));
        }
    }
}

/// Spots along lines, so far apart, for as long as more are wanted.
fn along(path: &Path, step: f32, mut is_more_wanted: impl FnMut(Area) -> bool) {
    for line in path.lines() {
        let mut last = [f32::MIN; 2];
        for &[x, y] in line.points {
            if (x - last[0]).abs().max((y - last[1]).abs()) < step {
                continue;
            }
            let from = if last[0] == f32::MIN { [x, y] } else { last };
            let pieces = ((x - from[0]).abs().max((y - from[1]).abs()) / step).ceil().clamp(1.0, 1000.0);
            for piece in 0..=pieces as usize {
                let t = piece as f32 / pieces;
                let at = [from[0] + (x - from[0]) * t, from[1] + (y - from[1]) * t];
                if !is_more_wanted(Area::at(at)) {
                    return;
                }
            }
            last = [x, y];
        }
    }
}

/// Whether a text can be a label.
pub(super) fn is_label(text: &str) -> bool {
    !text.trim().is_empty() && text.chars().count() <= LABEL_CHARS_MAX
}

/// Areas by the squares of a grid that they reach into, so that each looks only at those near it.
struct Crowd {
    origin: Pixel,
    square: f32,
    columns: usize,
    squares: Vec<Vec<Area>>,
    count: usize,
}

impl Crowd {
    /// Squares on each side of the grid.
    const SIDE: usize = 96;

    fn new(window: Area) -> Self {
        let square = (window.width().max(window.height()) / Self::SIDE as f32).max(1.0);
        let squares = vec![Vec::new(); Self::SIDE * Self::SIDE];
        Self { origin: [window.left, window.top], square, columns: Self::SIDE, squares, count: 0 }
    }

    /// The squares that an area reaches into; those beyond the grid count as its outermost.
    fn squares(&self, area: &Area) -> impl Iterator<Item = usize> + use<> {
        let index = |value: f32, origin: f32| {
            ((value - origin) / self.square).clamp(0.0, (Self::SIDE - 1) as f32) as usize
        };
        let (left, right) = (index(area.left, self.origin[0]), index(area.right, self.origin[0]));
        let (top, bottom) = (index(area.top, self.origin[1]), index(area.bottom, self.origin[1]));
        let columns = self.columns;
        (top..=bottom).flat_map(move |row| (left..=right).map(move |column| row * columns + column))
    }

    fn push(&mut self, area: Area) {
        self.count += 1;
        self.squares(&area).for_each(|square| self.squares[square].push(area));
    }

    fn is_free(&self, area: &Area) -> bool {
        self.squares(area).all(|square| !self.squares[square].iter().any(|taken| taken.overlaps(area)))
    }
}

/// What a line of writing covers.
fn area(start: Pixel, width: f32, size: f32) -> Area {
    Area {
        left: start[0],
        top: start[1] - ABOVE * size,
        right: start[0] + width,
        bottom: start[1] + BELOW * size,
    }
}

/// Writes the names of countries and oceans where the specification wants them, and draws all labels.
pub(super) fn name_places(
    canvas: &mut Canvas<'_>,
    spec: &Spec,
    view: &View,
    base: &BaseMap,
    mut labels: Labels,
) {
    if spec.base.country_names && spec.base.land {
        let mut countries: Vec<&Country> = base.countries.iter().collect();
        countries.sort_by(|a, b| b.area.total_cmp(&a.area));
        countries.iter().for_each(|country| name_country(canvas, view, country, &mut labels));
    }
    if spec.base.ocean_names {
        name_oceans(canvas, view, &mut labels);
    }
    labels.draw(canvas, view.window);
}

/// A country's name in the largest letters that fit it, on one line or on two; none where even the smallest do not.
fn name_country(canvas: &mut Canvas<'_>, view: &View, country: &Country, labels: &mut Labels) {
    const LARGEST_MM: f32 = 5.5;
    const SMALLEST_MM: f32 = 1.3;
    const STEP_MM: f32 = 0.25;
    let Some(at) = view.chart.locate(country.label) else { return };
    let room = country.depth as f32 * view.chart.scale as f32;
    let color = Color { rgb: canvas.look.text.rgb, alpha: 215 };
    let name = capitals(&country.name);
    let hand = |size| Hand { face: Face::Plain(canvas.look.font), size, spacing: 0.08 };
    let fitting = |canvas: &mut Canvas<'_>, words: &[&str]| {
        let widest = words.iter().map(|word| canvas.lettering.set(word, hand(1.0)).width).fold(1.0, f32::max);
        let size = (3.7 * room / widest).min(1.2 * room / words.len() as f32).min(LARGEST_MM * canvas.mm);
        // In steps, so that countries of about one size look alike.
        let step = STEP_MM * canvas.mm;
        (size / step).floor() * step
    };
    let mut ways = [vec![name.as_str()], halves(&name)].map(|words| (fitting(canvas, &words), words));
    ways.sort_by(|a, b| b.0.total_cmp(&a.0));
    // Smaller letters where a neighbour's name is in the way.
    for share in [1.0, 0.8, 0.6] {
        for (size, words) in &ways {
            let size = size * share;
            if size < SMALLEST_MM * canvas.mm {
                continue;
            }
            let lines: Vec<Line> = words.iter().map(|word| canvas.lettering.set(word, hand(size))).collect();
            if labels.centered(lines, at, size, color) {
                return;
            }
        }
    }
}

/// A name on two lines, broken at the blank nearest to its middle.
fn halves(name: &str) -> Vec<&str> {
    let blanks = name.match_indices(' ').map(|(at, _)| at);
    let middle = name.len() / 2;
    match blanks.min_by_key(|at| at.abs_diff(middle)) {
        Some(at) => vec![&name[..at], &name[at + 1..]],
        None => vec![name],
    }
}

fn name_oceans(canvas: &mut Canvas<'_>, view: &View, labels: &mut Labels) {
    let color = Color { rgb: canvas.look.coast.rgb, alpha: 165 };
    let mut named: Vec<(&str, Pixel)> = Vec::new();
    for (name, lon, lat, share) in OCEANS {
        let Some(at) = view.chart.locate(Place::from_degrees(lon, lat)) else { continue };
        // Twice only where the two are far from each other on this map.
        let is_near = |other: &(&str, Pixel)| {
            let (across, down) = ((other.1[0] - at[0]).abs(), (other.1[1] - at[1]).abs());
            other.0 == name && across < 0.5 * view.area.width() && down < 0.6 * view.chart.scale as f32
        };
        if named.iter().any(is_near) {
            continue;
        }
        let size = (view.chart.scale as f32 * 0.062 * share).min(9.0 * canvas.mm);
        let hand = Hand { face: Face::Slanted, size, spacing: 0.16 };
        let lines = name.split(' ').map(|word| canvas.lettering.set(word, hand)).collect();
        if labels.centered(lines, at, size, color) {
            named.push((name, at));
        }
    }
}
