//! Annotations that have no appearance of their own: viewers draw them by what they are, and so is it done here.

use std::fmt::Write as _;

use hayro_interpret::hayro_syntax::object::{Array, Dict};
use hayro_interpret::hayro_syntax::page::Page as Sheet;
use hayro_interpret::kurbo::{Affine, BezPath, Point, Rect};

use super::links::{area, shown};
use crate::draw::{Pen, UNIT, colour, short};

/// Numbers of one annotation that are read.
const NUMBERS_MAX: usize = 10_000;
const KINDS: [&[u8]; 12] = [
    b"Link",
    b"Widget",
    b"FreeText",
    b"Highlight",
    b"Underline",
    b"StrikeOut",
    b"Square",
    b"Circle",
    b"Polygon",
    b"PolyLine",
    b"Ink",
    b"Line",
];

/// The shapes of all such annotations of a page, as SVG.
pub(crate) fn looks(sheet: &Sheet<'_>, to_page: Affine) -> String {
    let mut markup = String::new();
    for kind in KINDS {
        for annotation in shown(sheet, kind) {
            let has_look = annotation.get::<Dict<'_>>(b"AP").is_some_and(|looks| looks.contains_key(b"N"));
            if !has_look && let Some(area) = area(&annotation, to_page) {
                look(kind, &annotation, area, to_page, &mut markup);
            }
        }
    }
    markup
}

fn look(kind: &[u8], annotation: &Dict<'_>, area: Rect, to_page: Affine, out: &mut String) {
    let scale = to_page.determinant().abs().sqrt();
    let width = border_width(annotation) * scale;
    let own = annotation.get::<Array<'_>>(b"C").and_then(|parts| paint(&parts));
    match kind {
        b"Link" => outline(&rect(area, width), own.as_deref().unwrap_or("#000"), width, out),
        b"Widget" => {
            let Some(style) = annotation.get::<Dict<'_>>(b"MK") else { return };
            let part = |key: &[u8]| style.get::<Array<'_>>(key).and_then(|parts| paint(&parts));
            fill(part(b"BG").as_deref(), &rect(area, 0.0), out);
            if let Some(line) = part(b"BC") {
                outline(&rect(area, width), &line, width, out);
            }
        }
        // Its words are written over it.
        b"FreeText" => fill(own.as_deref(), &rect(area, 0.0), out),
        b"Highlight" => {
            for quad in quads(annotation, to_page) {
                let fill = own.as_deref().unwrap_or("#ff0");
                let _ = write!(out, "<path class=\"b1\" fill=\"{fill}\" d=\"{}\"/>", rect(quad, 0.0));
            }
        }
        b"Underline" | b"StrikeOut" => {
            for quad in quads(annotation, to_page) {
                let y = if kind == b"Underline" { quad.y1 - quad.height() * 0.08 } else { quad.center().y };
                let line = path(&[Point::new(quad.x0, y), Point::new(quad.x1, y)]);
                outline(&line, own.as_deref().unwrap_or("#000"), scale, out);
            }
        }
        b"Square" | b"Circle" => {
            let inner = area.inset(-width / 2.0);
            let shape = if kind == b"Square" { rect(inner, 0.0) } else { ellipse(inner) };
            fill(inside(annotation).as_deref(), &shape, out);
            outline(&shape, own.as_deref().unwrap_or("#000"), width, out);
        }
        b"Polygon" | b"PolyLine" => {
            let Some(corners) = annotation.get::<Array<'_>>(b"Vertices") else { return };
            let mut corners = points(&corners, to_page);
            if kind == b"Polygon" {
                corners.extend(corners.first().copied());
                fill(inside(annotation).as_deref(), &path(&corners), out);
            }
            outline(&path(&corners), own.as_deref().unwrap_or("#000"), width, out);
        }
        b"Ink" => {
            let strokes = annotation.get::<Array<'_>>(b"InkList");
            for stroke in strokes.iter().flat_map(|list| list.iter::<Array<'_>>()).take(NUMBERS_MAX) {
                outline(&path(&points(&stroke, to_page)), own.as_deref().unwrap_or("#000"), width, out);
            }
        }
        _ => {
            if let Some(line) = annotation.get::<Array<'_>>(b"L") {
                outline(&path(&points(&line, to_page)), own.as_deref().unwrap_or("#000"), width, out);
            }
        }
    }
}

/// The colour of what lies inside of an annotation's lines.
fn inside(annotation: &Dict<'_>) -> Option<String> {
    annotation.get::<Array<'_>>(b"IC").and_then(|parts| paint(&parts))
}

fn fill(paint: Option<&str>, path: &str, out: &mut String) {
    if let Some(paint) = paint.filter(|_| !path.is_empty()) {
        let _ = write!(out, "<path fill=\"{paint}\" d=\"{path}\"/>");
    }
}

fn outline(path: &str, line: &str, width: f64, out: &mut String) {
    if width > 0.0 && !path.is_empty() {
        let width = short(width * UNIT, 1);
        let _ = write!(out, "<path fill=\"none\" stroke=\"{line}\" stroke-width=\"{width}\" d=\"{path}\"/>");
    }
}

/// The width of an annotation's border: 1 where nothing else is said.
fn border_width(annotation: &Dict<'_>) -> f64 {
    if let Some(width) = annotation.get::<Dict<'_>>(b"BS").and_then(|style| style.get::<f64>(b"W")) {
        return width.clamp(0.0, 100.0);
    }
    let border = annotation.get::<Array<'_>>(b"Border");
    border.map_or(1.0, |border| border.iter::<f64>().nth(2).unwrap_or(0.0).clamp(0.0, 100.0))
}

/// A colour by one, three or four numbers; nothing for none.
fn paint(parts: &Array<'_>) -> Option<String> {
    let parts: Vec<f64> = parts.iter::<f64>().take(5).map(|part| part.clamp(0.0, 1.0)).collect();
    let byte = |part: f64| (part * 255.0).round() as u8;
    match parts[..] {
        [grey] => Some(colour(byte(grey), byte(grey), byte(grey))),
        [red, green, blue] => Some(colour(byte(red), byte(green), byte(blue))),
        [cyan, magenta, yellow, black] => {
            let mix = |part: f64| byte((1.0 - part) * (1.0 - black));
            Some(colour(mix(cyan), mix(magenta), mix(yellow)))
        }
        _ => None,
    }
}

fn points(numbers: &Array<'_>, to_page: Affine) -> Vec<Point> {
    let numbers: Vec<f64> = numbers.iter::<f64>().take(NUMBERS_MAX).collect();
    numbers.chunks_exact(2).map(|pair| to_page * Point::new(pair[0], pair[1])).collect()
}

/// The boxes of the words that an annotation marks.
fn quads(annotation: &Dict<'_>, to_page: Affine) -> Vec<Rect> {
    let Some(numbers) = annotation.get::<Array<'_>>(b"QuadPoints") else {
        return Vec::new();
    };
    let corners = points(&numbers, to_page);
    corners
        .chunks_exact(4)
        .map(|quad| {
            quad.iter().fold(Rect::from_points(quad[0], quad[0]), |area, point| area.union_pt(*point))
        })
        .collect()
}

fn path(points: &[Point]) -> String {
    let mut path = BezPath::new();
    for (index, point) in points.iter().enumerate() {
        if index == 0 {
            path.move_to(*point);
        } else {
            path.line_to(*point);
        }
    }
    write(&path)
}

/// A rectangle with a border of this width inside of it.
fn rect(area: Rect, width: f64) -> String {
    let area = area.inset(-width / 2.0);
    let mut pen = Pen::default();
    pen.rect(area);
    pen.data
}

fn ellipse(area: Rect) -> String {
    use hayro_interpret::kurbo::{Ellipse, Shape as _};
    write(&Ellipse::from_rect(area).to_path(0.05))
}

fn write(path: &BezPath) -> String {
    let mut pen = Pen::default();
    pen.path(path, Affine::IDENTITY);
    pen.data
}
