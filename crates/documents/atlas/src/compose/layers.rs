//! The layers of a specification: polygons, lines and points, and what is written beside them.

use super::base_map::paint;
use super::labels::{self, Labels};
use super::markers;
use super::view::View;
use super::{Area, Canvas};
use crate::draw::{Brush, Path, Pixel, dashed};
use crate::lettering::{Face, Hand};
use crate::projection::Place;
use crate::spec::geojson::{Feature, Geometry, Position, turn_of};
use crate::spec::{Color, Edges, Layer, LayerStyle, Spec};
use crate::sphere;
use std::f64::consts::{FRAC_PI_2, PI};
use std::sync::Arc;

/// How far apart places are on a line that is straight in longitude and latitude.
const STEP: f64 = 0.017_453_292_519_943_295; // one degree
/// How much of the colour a polygon's inside has, where it is not given.
const VEIL: u8 = 70;
/// The rim around markers, as a share of their size.
const MARKER_RIM: f32 = 0.16;

pub(super) fn draw(canvas: &mut Canvas<'_>, spec: &Spec, view: &View, labels: &mut Labels) {
    // All markers first, so that no label of one layer covers a marker of another.
    spec.layers.iter().for_each(|layer| draw_layer(canvas, layer, view, labels));
    spec.layers.iter().for_each(|layer| label_layer(canvas, layer, view, labels));
}

/// The colour of a feature.
pub(super) fn color_of(style: &LayerStyle, feature: &Feature, accent: Color) -> Color {
    let by_property = style.color_by.as_ref().and_then(|by| {
        let value = feature.text(&by.property)?;
        by.colors.get(&value).copied()
    });
    by_property.or(style.color).unwrap_or(accent)
}

/// The paths of all features of a layer that have one colour.
#[derive(Default)]
pub(super) struct Paths {
    pub(super) inside: Path,
    pub(super) outline: Path,
    pub(super) lines: Path,
    markers: Path,
}

fn draw_layer(canvas: &mut Canvas<'_>, layer: &Layer, view: &View, labels: &mut Labels) {
    let style = &layer.style;
    let mut colors: Vec<(Color, Paths)> = Vec::new();
    let size = style.size_mm as f32 * canvas.mm;
    for feature in &layer.data.features {
        let Some(geometry) = &feature.geometry else { continue };
        let color = color_of(style, feature, canvas.look.accent);
        let known = colors.iter().position(|(known, _)| *known == color);
        let index = known.unwrap_or_else(|| {
            colors.push((color, Paths::default()));
            colors.len() - 1
        });
        add_geometry(geometry, style, view, &mut colors[index].1);
        each_point(geometry, view, |at| {
            markers::add(style.marker, at, size, &mut colors[index].1.markers);
            let (offset, reach) = markers::reach(style.marker, size);
            labels.block(Area::at([at[0], at[1] + offset[1]]).grown(reach));
        });
    }
    for (color, paths) in colors {
        labels.avoid(&paths.lines, 1.5 * canvas.mm);
        add_paths(canvas, style, color, paths, view);
    }
}

fn add_paths(canvas: &mut Canvas<'_>, style: &LayerStyle, color: Color, paths: Paths, view: &View) {
    let width = style.width_mm as f32 * canvas.mm;
    let stroked = |path: Path| {
        let path = path.finish();
        match style.dash_mm {
            Some([on, off]) => dashed(&path, on as f32 * canvas.mm, off as f32 * canvas.mm),
            None => path,
        }
    };
    let (outline, lines) = (Arc::new(stroked(paths.outline)), Arc::new(stroked(paths.lines)));
    let fill = style.fill.unwrap_or(Color { rgb: color.rgb, alpha: VEIL });
    let rim = style.size_mm as f32 * canvas.mm * MARKER_RIM * 2.0;
    let markers = Arc::new(paths.markers.finish());
    canvas.add(&Arc::new(paths.inside.finish()), Brush::Fill, paint(fill), view.window);
    canvas.add(&outline, Brush::Stroke(width), paint(color), view.window);
    canvas.add(&lines, Brush::Stroke(width), paint(color), view.window);
    canvas.add(&markers, Brush::Stroke(rim), paint(canvas.look.paper), view.window);
    canvas.add(&markers, Brush::Fill, paint(color), view.window);
}

/// Calls `each` with the pixel of every point of a geometry that is on the map.
fn each_point(geometry: &Geometry, view: &View, mut each: impl FnMut(Pixel)) {
    let points: &[Position] = match geometry {
        Geometry::Point(position) => std::slice::from_ref(position),
        Geometry::MultiPoint(positions) => positions,
        Geometry::LineString(_)
        | Geometry::MultiLineString(_)
        | Geometry::Polygon(_)
        | Geometry::MultiPolygon(_) => &[],
    };
    points.iter().filter_map(|position| view.chart.locate(place(*position))).for_each(&mut each);
}

pub(super) fn add_geometry(geometry: &Geometry, style: &LayerStyle, view: &View, paths: &mut Paths) {
    match geometry {
        Geometry::Point(_) | Geometry::MultiPoint(_) => {}
        Geometry::LineString(line) => add_line(line, style, view, paths),
        Geometry::MultiLineString(lines) => lines.iter().for_each(|line| add_line(line, style, view, paths)),
        Geometry::Polygon(rings) => add_polygon(rings, view, paths),
        Geometry::MultiPolygon(polygons) => polygons.iter().for_each(|rings| add_polygon(rings, view, paths)),
    }
}

fn add_line(line: &[Position], style: &LayerStyle, view: &View, paths: &mut Paths) {
    let line = unwrapped(line);
    match style.edges {
        Edges::GreatCircle => view.chart.add_line(&line, &mut paths.lines),
        Edges::Straight => view.chart.add_line(&sphere::densify(&line, STEP), &mut paths.lines),
    }
}

/// A polygon's inside, and its outline without what only cuts it in two at the antimeridian or goes along a pole.
fn add_polygon(rings: &[Vec<Position>], view: &View, paths: &mut Paths) {
    let rings: Vec<Vec<Place>> = rings.iter().map(|ring| unwrapped(ring)).collect();
    for ring in rings.iter().map(|ring| sphere::densify(ring, STEP)) {
        let is_cut = |pair: &[Place]| {
            pair.iter().all(|place| (place.lon.abs() - PI).abs() < 1e-9)
                || pair.iter().all(|place| (place.lat.abs() - FRAC_PI_2).abs() < 1e-9)
        };
        let mut line: Vec<Place> = ring[..1].to_vec();
        for pair in ring.windows(2) {
            if is_cut(pair) {
                view.chart.add_line(&line, &mut paths.outline);
                line.clear();
            }
            line.push(pair[1]);
        }
        view.chart.add_line(&line, &mut paths.outline);
    }
    for strip in sphere::strips(rings) {
        let mut inside: Vec<Vec<Place>> = strip.iter().map(|ring| sphere::densify(ring, STEP)).collect();
        inside.iter_mut().for_each(sphere::close_by);
        sphere::wind(&mut inside);
        view.chart.add_polygon(&inside, &mut paths.inside);
    }
}

pub(super) fn place(Position(lon, lat): Position) -> Place {
    Place::from_degrees(lon, lat)
}

/// Places whose longitudes do not jump from one side of the antimeridian to the other.
fn unwrapped(line: &[Position]) -> Vec<Place> {
    let mut turns = 0.0;
    let mut last = line.first().map_or(0.0, |position| position.0);
    line.iter()
        .map(|position| {
            turns += turn_of(position.0 - last);
            last = position.0;
            Place::from_degrees(position.0 + turns, position.1)
        })
        .collect()
}

fn label_layer(canvas: &mut Canvas<'_>, layer: &Layer, view: &View, labels: &mut Labels) {
    let Some(property) = &layer.style.label else { return };
    let style = &layer.style;
    let size = (style.label_pt * 25.4 / 72.0) as f32 * canvas.mm;
    let hand = Hand { face: Face::Strong(canvas.look.font), size, spacing: 0.01 };
    let color = paint(canvas.look.text);
    for feature in &layer.data.features {
        let text = feature.text(property).filter(|text| labels::is_label(text));
        let (Some(text), Some(geometry)) = (text, &feature.geometry) else { continue };
        let Some(at) = view.chart.locate(anchor(geometry)) else { continue };
        let line = canvas.lettering.set(&text, hand);
        if line.width == 0.0 {
            continue;
        }
        let is_point = matches!(geometry, Geometry::Point(_) | Geometry::MultiPoint(_));
        let (offset, reach) = if is_point {
            markers::reach(style.marker, style.size_mm as f32 * canvas.mm)
        } else {
            ([0.0, 0.0], style.width_mm as f32 * canvas.mm / 2.0)
        };
        labels.beside(line, ([at[0], at[1] + offset[1]], reach), size, color);
    }
}

/// The place that a feature's label belongs to.
fn anchor(geometry: &Geometry) -> Place {
    let halfway = |line: &[Position]| line.get(line.len() / 2).copied().map(place);
    let middle = |ring: &[Position]| sphere::middle(ring.iter().copied().map(place));
    let longest =
        |lines: &[Vec<Position>]| lines.iter().max_by_key(|line| line.len()).cloned().unwrap_or_default();
    let anchor = match geometry {
        Geometry::Point(position) => Some(place(*position)),
        Geometry::MultiPoint(positions) => positions.first().copied().map(place),
        Geometry::LineString(line) if line.len() == 2 => middle(line),
        Geometry::LineString(line) => halfway(line),
        Geometry::MultiLineString(lines) => halfway(&longest(lines)),
        Geometry::Polygon(rings) => rings.first().and_then(|ring| middle(ring)),
        Geometry::MultiPolygon(polygons) => {
            let outer: Vec<Vec<Position>> =
                polygons.iter().filter_map(|rings| rings.first().cloned()).collect();
            middle(&longest(&outer))
        }
    };
    anchor.unwrap_or_default()
}
