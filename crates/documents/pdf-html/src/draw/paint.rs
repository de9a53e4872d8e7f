//! Patterns and shadings.

use std::fmt::Write as _;

use hayro_interpret::encode::{EncodedShadingPattern, EncodedShadingType, texture_dimensions};
use hayro_interpret::gradient::{SvgGradient, SvgGradientKind};
use hayro_interpret::kurbo::{Affine, BezPath, Rect};
use hayro_interpret::pattern::{Pattern, ShadingPattern, TilingPattern};
use hayro_interpret::{CacheKey, FillRule};

use super::canvas::{Canvas, hash};
use super::looks::colour;
use super::path::{Pen, UNIT, matrix, short};
use super::png::{Pixels, encode};
use super::store::{Kind, Picture};

/// How far a gradient's colours may be from the shading's, of 1.
const GRADIENT_TOLERANCE: f32 = 0.005;
/// Pixels of a shading that is drawn point by point.
const SHADING_PIXELS_MAX: u64 = 1_000_000;
/// Pixels per point of such a shading, where they are not too many.
const SHADING_SCALE: f32 = 2.0;

/// Cells of a pattern that overlap are drawn this often within each other at most.
const COPIES_MAX: f64 = 64.0;
/// A cell that reaches into the next by less, in steps, was meant to end there.
const OVERLAP_MIN: f64 = 0.02;

impl Canvas<'_> {
    /// Fills a path, in page space, with a pattern.
    pub(super) fn fill_with_pattern(
        &mut self,
        path: &BezPath,
        rule: FillRule,
        pattern: &Pattern<'_>,
        is_stroke: bool,
    ) {
        let bounds = path.control_box();
        match pattern {
            Pattern::Shading(shading) => self.fill_with_shading(path, bounds, rule, shading),
            Pattern::Tiling(tiling) => {
                let Some(id) = self.tiling(tiling, is_stroke) else {
                    return;
                };
                let mut pen = Pen::default();
                pen.path(path, Affine::IDENTITY);
                let rule = if rule == FillRule::EvenOdd { " fill-rule=\"evenodd\"" } else { "" };
                let opacity = match tiling.opacity {
                    opacity if opacity < 0.999 => format!(" fill-opacity=\"{}\"", short(opacity.into(), 3)),
                    _ => String::new(),
                };
                let url = self.url(id);
                self.add(format!("<path fill=\"{url}\"{opacity}{rule} d=\"{}\"/>", pen.data), bounds);
            }
        }
    }

    fn fill_with_shading(&mut self, path: &BezPath, bounds: Rect, rule: FillRule, shading: &ShadingPattern) {
        let seen = bounds.intersect(self.seen());
        if seen.width() <= 0.0 || seen.height() <= 0.0 {
            return;
        }
        let clip = shading.shading.clip_path.as_ref().map(|clip| self.clip_of(clip, FillRule::NonZero));
        let (open, close) = match clip {
            Some(clip) => (format!("<g clip-path=\"{}\">", self.url(clip)), "</g>"),
            None => (String::new(), ""),
        };
        let encoded = shading.encode();
        if let EncodedShadingType::RadialAxial(gradient) = &encoded.shading_type
            && let Some(gradient) = gradient.as_svg_gradient(&encoded, seen, GRADIENT_TOLERANCE)
        {
            let id = self.gradient(&gradient);
            let mut pen = Pen::default();
            pen.path(path, Affine::IDENTITY);
            let rule = if rule == FillRule::EvenOdd { " fill-rule=\"evenodd\"" } else { "" };
            let url = self.url(id);
            self.add(format!("{open}<path fill=\"{url}\"{rule} d=\"{}\"/>{close}", pen.data), bounds);
            return;
        }
        let Some(image) = self.texture(&encoded, shading.cache_key(), seen) else {
            return;
        };
        let within = self.clip_of(path, rule);
        let within = self.url(within);
        self.add(format!("{open}<g clip-path=\"{within}\">{image}</g>{close}"), seen);
    }

    /// A shading as a picture of what it looks like within `seen`.
    fn texture(&mut self, encoded: &EncodedShadingPattern, key: u128, seen: Rect) -> Option<String> {
        let mut scale = SHADING_SCALE;
        let pixels = |scale: f32| {
            let (width, height) = texture_dimensions(seen, scale);
            u64::from(width) * u64::from(height)
        };
        while pixels(scale) > SHADING_PIXELS_MAX && scale > 0.01 {
            scale /= 2.0;
        }
        let seen_key = [seen.x0, seen.y0, seen.x1, seen.y1].map(f64::to_bits);
        let mut size = texture_dimensions(seen, scale);
        let picture = self.store.picture(hash(&("shading", key, seen_key)), || {
            let texture = encoded.render_texture(seen, scale);
            size = (texture.width, texture.height);
            let bytes = encode(&Pixels::Rgba(&texture.data), texture.width, texture.height)?;
            Some(Picture { kind: Kind::Png, bytes })
        })?;
        let place = Affine::translate((seen.x0, seen.y0)) * Affine::scale(1.0 / f64::from(scale));
        Some(self.image_markup(picture, size, place, ""))
    }

    fn gradient(&mut self, gradient: &SvgGradient) -> u32 {
        let mut inner = String::new();
        for stop in &gradient.stops {
            let byte = |part: f32| (part.clamp(0.0, 1.0) * 255.0).round() as u8;
            let [red, green, blue, alpha] = stop.color;
            let _ = write!(
                inner,
                "<stop offset=\"{}\" stop-color=\"{}\"",
                short(stop.offset.into(), 4),
                colour(byte(red), byte(green), byte(blue))
            );
            if alpha < 0.999 {
                let _ = write!(inner, " stop-opacity=\"{}\"", short(alpha.into(), 3));
            }
            inner.push_str("/>");
        }
        let mut place = String::new();
        let kind = match &gradient.kind {
            SvgGradientKind::Linear { start, end } => {
                for (name, value) in [("x1", start.x), ("y1", start.y), ("x2", end.x), ("y2", end.y)] {
                    let _ = write!(place, " {name}=\"{}\"", short(value, 5));
                }
                "linearGradient"
            }
            SvgGradientKind::Radial { start_center, start_radius, end_center, end_radius } => {
                let numbers = [
                    ("fx", start_center.x),
                    ("fy", start_center.y),
                    ("fr", (*start_radius).into()),
                    ("cx", end_center.x),
                    ("cy", end_center.y),
                    ("r", (*end_radius).into()),
                ];
                for (name, value) in numbers {
                    let _ = write!(place, " {name}=\"{}\"", short(value, 5));
                }
                "radialGradient"
            }
        };
        let [a, b, c, d, e, f] = (Affine::scale(UNIT) * gradient.transform).as_coeffs();
        let transform: Vec<String> = [a, b, c, d, e, f].iter().map(|value| short(*value, 4)).collect();
        let transform = transform.join(" ");
        let (id, is_new) = self.name(hash(&("gradient", &inner, &place, &transform)));
        if is_new {
            let name = self.id(id);
            let _ = write!(
                self.defs,
                "<{kind} id=\"{name}\" gradientUnits=\"userSpaceOnUse\"{place} \
                 gradientTransform=\"matrix({transform})\">{inner}</{kind}>"
            );
        }
        id
    }

    fn tiling(&mut self, tiling: &TilingPattern<'_>, is_stroke: bool) -> Option<u32> {
        let (id, is_new) = self.name(hash(&("tiling", tiling.cache_key(), is_stroke)));
        if !is_new {
            return Some(id);
        }
        // The cell is drawn about as large as it is shown, so that nothing is lost to whole hundredths.
        let size = tiling.matrix.determinant().abs().sqrt();
        if !(1e-6..1e6).contains(&size) {
            return None;
        }
        let origin = Affine::translate((-tiling.bbox.x0, -tiling.bbox.y0));
        let inner = self.apart(|canvas| {
            tiling.interpret(canvas, Affine::scale(size) * origin, is_stroke);
        });
        let place =
            tiling.matrix * Affine::translate((tiling.bbox.x0, tiling.bbox.y0)) * Affine::scale(1.0 / size);
        let steps = [tiling.x_step, tiling.y_step].map(|step| f64::from(step).abs() * size * UNIT);
        let reach = [tiling.bbox.width(), tiling.bbox.height()].map(|length| length * size * UNIT);
        let name = self.id(id);
        let inner = overlapping(&name, inner, steps, reach);
        let [width, height] = steps.map(|step| short(step, 2));
        let _ = write!(
            self.defs,
            "<pattern id=\"{name}\" patternUnits=\"userSpaceOnUse\" width=\"{width}\" height=\"{height}\" \
             patternTransform=\"{}\">{inner}</pattern>",
            matrix(place)
        );
        Some(id)
    }
}

/// A cell with those before it that reach into it, where cells are larger than their steps.
fn overlapping(name: &str, cell: String, steps: [f64; 2], reach: [f64; 2]) -> String {
    let count = |axis: usize| (reach[axis] / steps[axis] - OVERLAP_MIN).ceil().max(1.0);
    let (columns, rows) = (count(0), count(1));
    // Steps of nought give no number, and so no copies.
    if !(2.0..=COPIES_MAX).contains(&(columns * rows)) {
        return cell;
    }
    let mut cells = String::new();
    for row in (0..rows as u32).rev() {
        for column in (0..columns as u32).rev().filter(|column| (*column, row) != (0, 0)) {
            let back = |times: u32, axis: usize| short(0.0 - f64::from(times) * steps[axis], 2);
            let _ =
                write!(cells, "<use href=\"#{name}c\" x=\"{}\" y=\"{}\"/>", back(column, 0), back(row, 1));
        }
    }
    format!("{cells}<g id=\"{name}c\">{cell}</g>")
}
