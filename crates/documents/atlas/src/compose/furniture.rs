//! What is written around the map: the title, the legend, the scale bar and the credit line.

use super::base_map::paint;
use super::sheet::{NOTE, SUBTITLE, Sheet, TITLE};
use super::view::View;
use super::{Area, Canvas, markers};
use crate::draw::{Brush, Path, Pixel};
use crate::lettering::{Face, Hand, Line, capitals};
use crate::spec::geojson::Geometry;
use crate::spec::{Color, Layer, Spec};
use crate::sphere::vector;
use std::sync::Arc;

const EARTH_KM: f64 = 6371.0;
/// The height of a row of the legend, the size of its writing, and the width of its samples, in units.
const ROW: f32 = 2.2;
const LEGEND_TYPE: f32 = 1.25;
const SAMPLE: f32 = 3.0;
/// The height of the scale bar with its figures, and its greatest length.
const BAR: f32 = 3.2;
const BAR_SHARE: f32 = 0.28;
/// How much of the map's height the legend may take.
const LEGEND_SHARE: f32 = 0.4;

pub(super) fn draw(canvas: &mut Canvas<'_>, spec: &Spec, sheet: &Sheet, view: &View) {
    if let Some(area) = sheet.title {
        title(canvas, spec, area, sheet.unit);
    }
    if let Some(area) = sheet.strip {
        if spec.furniture.legend {
            legend(canvas, spec, area, sheet.unit);
        }
        if spec.furniture.scale_bar {
            scale_bar(canvas, view, area, sheet.unit);
        }
    }
    if let Some(area) = sheet.credit {
        let hand = Hand { face: Face::Plain(canvas.look.font), size: 1.0 * sheet.unit, spacing: 0.04 };
        let color = Color { alpha: 170, ..canvas.look.text };
        centered(canvas, &spec.furniture.credit, hand, (area, area.bottom - 0.2 * sheet.unit), color);
    }
}

/// Writes a line in the middle of an area, standing at a height.
fn centered(canvas: &mut Canvas<'_>, text: &str, hand: Hand, (area, y): (Area, f32), color: Color) {
    let line = canvas.lettering.set_within(text, hand, area.width());
    let mut path = Path::default();
    canvas.lettering.draw(&line, [area.middle()[0] - line.width / 2.0, y], &mut path);
    let page = canvas.page();
    canvas.add(&Arc::new(path.finish()), Brush::Fill, paint(color), page);
}

fn title(canvas: &mut Canvas<'_>, spec: &Spec, area: Area, unit: f32) {
    let (look, title) = (canvas.look, &spec.title);
    let mut y = area.top;
    if !title.text.is_empty() {
        y += TITLE * unit;
        let hand = Hand { face: Face::Strong(look.font), size: 5.2 * unit, spacing: 0.14 };
        centered(canvas, &capitals(&title.text), hand, (area, y - 1.2 * unit), look.text);
    }
    if !title.subtitle.is_empty() {
        y += SUBTITLE * unit;
        let hand = Hand { face: Face::Slanted, size: 2.3 * unit, spacing: 0.05 };
        centered(canvas, &title.subtitle, hand, (area, y - 0.9 * unit), look.text);
    }
    if !title.note.is_empty() {
        y += NOTE * unit;
        let hand = Hand { face: Face::Plain(look.font), size: 1.3 * unit, spacing: 0.2 };
        let color = Color { alpha: 200, ..look.text };
        centered(canvas, &capitals(&title.note), hand, (area, y - 0.7 * unit), color);
    }
}

/// A line of the legend.
struct Entry<'a> {
    layer: &'a Layer,
    color: Color,
    text: &'a str,
}

fn entries<'a>(spec: &'a Spec, accent: Color) -> Vec<Entry<'a>> {
    let mut entries = Vec::new();
    for layer in &spec.layers {
        let color = layer.style.color.unwrap_or(accent);
        if let Some(by) = &layer.style.color_by {
            entries.extend(by.colors.iter().map(|(text, color)| Entry { layer, color: *color, text }));
        } else if !layer.name.is_empty() {
            entries.push(Entry { layer, color, text: &layer.name });
        }
    }
    entries
}

/// How much of the strip's width the legend may take.
fn legend_width(spec: &Spec, width: f32) -> f32 {
    if spec.furniture.scale_bar { width * (1.0 - BAR_SHARE - 0.08) } else { width }
}

/// What an entry of a legend of this width says.
fn entry_line(canvas: &mut Canvas<'_>, entry: &Entry<'_>, unit: f32, width: f32) -> Line {
    let hand = Hand { face: Face::Plain(canvas.look.font), size: LEGEND_TYPE * unit, spacing: 0.01 };
    canvas.lettering.set_within(entry.text, hand, width - (SAMPLE + 0.9) * unit)
}

/// Where each entry of the legend begins: rows that are filled from left to right.
fn places(canvas: &mut Canvas<'_>, entries: &[Entry<'_>], unit: f32, width: f32) -> Vec<Pixel> {
    let (mut x, mut y) = (0.0, 0.0);
    let mut places = Vec::new();
    for entry in entries {
        let own = (SAMPLE + 0.9) * unit + entry_line(canvas, entry, unit, width).width;
        if x > 0.0 && x + own > width {
            (x, y) = (0.0, y + ROW * unit);
        }
        places.push([x, y]);
        x += own + 2.2 * unit;
    }
    places
}

/// The height of what stands below the map.
pub(super) fn strip_height(canvas: &mut Canvas<'_>, spec: &Spec, unit: f32, map: Area) -> f32 {
    let mut height: f32 = if spec.furniture.scale_bar { BAR * unit } else { 0.0 };
    if spec.furniture.legend {
        let entries = entries(spec, canvas.look.accent);
        let places = places(canvas, &entries, unit, legend_width(spec, map.width()));
        let rows_max = (map.height() * LEGEND_SHARE / (ROW * unit)).floor().max(1.0);
        let needed = places.last().map_or(0.0, |[_, y]| y + ROW * unit);
        height = height.max(needed.min(rows_max * ROW * unit));
    }
    height
}

fn legend(canvas: &mut Canvas<'_>, spec: &Spec, area: Area, unit: f32) {
    let entries = entries(spec, canvas.look.accent);
    let width = legend_width(spec, area.width());
    let places = places(canvas, &entries, unit, width);
    // Half a row of grace for what adding up rounds.
    let has_room = |[_, y]: &Pixel| y + 0.5 * ROW * unit < area.height();
    let left_out = places.iter().filter(|place| !has_room(place)).count();
    if left_out > 0 {
        canvas.warnings.push(format!(
            "The legend has no room for {left_out} of its {} entries. Use fewer colours or layers, or a larger page.",
            entries.len()
        ));
    }
    let mut text = Path::default();
    for (entry, [x, y]) in entries.iter().zip(places.into_iter().filter(has_room)) {
        let at = [area.left + x, area.top + y + ROW / 2.0 * unit];
        sample(canvas, entry, at, unit);
        let line = entry_line(canvas, entry, unit, width);
        let start = [at[0] + (SAMPLE + 0.9) * unit, at[1] + 0.33 * LEGEND_TYPE * unit];
        canvas.lettering.draw(&line, start, &mut text);
    }
    let (page, color) = (canvas.page(), paint(canvas.look.text));
    canvas.add(&Arc::new(text.finish()), Brush::Fill, color, page);
}

/// A small piece of what a layer looks like, from `at` to the right.
fn sample(canvas: &mut Canvas<'_>, entry: &Entry<'_>, at: Pixel, unit: f32) {
    let (page, style) = (canvas.page(), &entry.layer.style);
    let kind = entry.layer.data.features.iter().find_map(|feature| feature.geometry.as_ref());
    let width = (style.width_mm as f32 * canvas.mm).min(0.8 * unit);
    let right = at[0] + SAMPLE * unit;
    let mut path = Path::default();
    match kind {
        Some(Geometry::LineString(_) | Geometry::MultiLineString(_)) => {
            path.add([at, [right, at[1]]], false);
            let path = path.finish();
            let path = match style.dash_mm {
                Some([on, off]) => crate::draw::dashed(&path, on as f32 * canvas.mm, off as f32 * canvas.mm),
                None => path,
            };
            canvas.add(&Arc::new(path), Brush::Stroke(width), paint(entry.color), page);
        }
        Some(Geometry::Polygon(_) | Geometry::MultiPolygon(_)) => {
            let half = 0.65 * unit;
            let area = Area {
                left: at[0] + 0.4 * unit,
                top: at[1] - half,
                right: right - 0.2 * unit,
                bottom: at[1] + half,
            };
            path.add(area.corners(), true);
            let path = Arc::new(path.finish());
            let fill = style.fill.unwrap_or(Color { alpha: 90, ..entry.color });
            canvas.add(&path, Brush::Fill, paint(fill), page);
            canvas.add(&path, Brush::Stroke(width), paint(entry.color), page);
        }
        _ => {
            let size = (style.size_mm as f32 * canvas.mm).min(1.5 * unit);
            let (offset, _) = markers::reach(style.marker, size);
            markers::add(style.marker, [at[0] + SAMPLE / 2.0 * unit, at[1] - offset[1]], size, &mut path);
            canvas.add(&Arc::new(path.finish()), Brush::Fill, paint(entry.color), page);
        }
    }
}

/// A bar of four fields, as long as a round number of kilometres at the middle of the map.
fn scale_bar(canvas: &mut Canvas<'_>, view: &View, area: Area, unit: f32) {
    let [x, y] = view.area.middle();
    let reach = view.area.width() * 0.02;
    let ends = [view.chart.place_at([x - reach, y]), view.chart.place_at([x + reach, y])];
    let [Some(from), Some(to)] = ends else {
        return canvas.warnings.push(
            "The middle of the map is not on the globe, so there is no scale to show. Choose another extent."
                .into(),
        );
    };
    let km = vector::angle(vector::from_place(from), vector::from_place(to)) * EARTH_KM;
    let km_per_pixel = km / f64::from(2.0 * reach);
    let length_km = round_down(km_per_pixel * f64::from(area.width() * BAR_SHARE));
    let length = (length_km / km_per_pixel) as f32;
    let hand = Hand { face: Face::Plain(canvas.look.font), size: 1.05 * unit, spacing: 0.01 };
    let end = format!("{} km", number(length_km));
    let overhang = canvas.lettering.set(&end, hand).width / 2.0;
    let (left, top) = (area.right - length - overhang, area.top + 1.7 * unit);
    let (height, page) = (0.55 * unit, canvas.page());
    let (ink, paper) = (paint(canvas.look.text), paint(canvas.look.paper));
    let field = |from: f32, to: f32| Area {
        left: left + length * from,
        top,
        right: left + length * to,
        bottom: top + height,
    };
    let (mut dark, mut all) = (Path::default(), Path::default());
    dark.add(field(0.0, 0.25).corners(), true);
    dark.add(field(0.5, 0.75).corners(), true);
    all.add(field(0.0, 1.0).corners(), true);
    let all = Arc::new(all.finish());
    canvas.add(&all, Brush::Fill, paper, page);
    canvas.add(&Arc::new(dark.finish()), Brush::Fill, ink, page);
    canvas.add(&all, Brush::Stroke(0.1 * unit), ink, page);
    let mut text = Path::default();
    for (share, words) in [(0.0, "0".to_owned()), (0.5, number(length_km / 2.0)), (1.0, end)] {
        let line = canvas.lettering.set(&words, hand);
        canvas.lettering.draw(&line, [left + length * share - line.width / 2.0, top - 0.5 * unit], &mut text);
    }
    canvas.add(&Arc::new(text.finish()), Brush::Fill, ink, page);
}

/// The largest of 1, 2, 3 and 5 times a power of ten that is not above a value.
fn round_down(value: f64) -> f64 {
    let mut power = 1.0;
    while power * 10.0 <= value {
        power *= 10.0;
    }
    [5.0, 3.0, 2.0, 1.0].into_iter().map(|digit| digit * power).find(|round| *round <= value).unwrap_or(1.0)
}

fn number(value: f64) -> String {
    let whole = value.round() as u64;
    if (value - value.round()).abs() > 1e-9 {
        return format!("{value}");
    }
    if whole >= 10_000 { format!("{}\u{a0}{:03}", whole / 1000, whole % 1000) } else { whole.to_string() }
}
