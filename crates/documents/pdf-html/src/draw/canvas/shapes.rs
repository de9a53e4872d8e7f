//! Paths that are filled and stroked.

use super::{Canvas, Pending, is_rect};
use crate::draw::cover;
use crate::draw::looks::{STROKED, fill, stroke_look};
use crate::draw::path::Pen;
use crate::draw::record;
use hayro_interpret::kurbo::{Affine, BezPath, Rect, Shape as _};
use hayro_interpret::{DrawMode, DrawProps, FillRule, Paint, StrokeProps};

/// A line without a width, or a thinner one than this, is drawn this wide, in points.
const STROKE_MIN: f64 = 0.3;
/// A stroke is drawn as such where it is stretched by less than this in one direction.
const STRETCH_MAX: f64 = 1.02;

impl Canvas<'_> {
    pub(super) fn paint_path<'a>(&mut self, path: &BezPath, props: &DrawProps<'a>, mode: &DrawMode) {
        self.with_effects(props.soft_mask.clone(), props.blend_mode, |canvas| match mode {
            DrawMode::Fill(rule) => canvas.fill_path(path, props.transform, *rule, &props.paint),
            DrawMode::Stroke(stroke) => canvas.stroke_path(path, props.transform, stroke, &props.paint),
            DrawMode::FillAndStroke(rule, stroke) => {
                canvas.fill_path(path, props.transform, *rule, &props.paint);
                canvas.stroke_path(path, props.transform, stroke, &props.paint);
            }
            DrawMode::Invisible => {}
        });
    }

    fn fill_path<'a>(&mut self, path: &BezPath, transform: Affine, rule: FillRule, paint: &Paint<'a>) {
        let bounds = transform.transform_rect_bbox(path.control_box());
        if !self.is_seen(bounds) {
            return;
        }
        match paint {
            Paint::Color(colour) => {
                let colour = colour.to_rgba().to_rgba8();
                if colour[3] == 0 {
                    return;
                }
                let is_even_odd = rule == FillRule::EvenOdd;
                let rule = if is_even_odd { ";fill-rule:evenodd" } else { "" };
                let mut shown = transform * path.clone();
                let is_rect = is_rect(&shown);
                if is_rect {
                    // Rectangles that all run the same way around may be one path without cutting holes.
                    shown = bounds.to_path(0.1);
                }
                let covers = cover::filled(&shown);
                self.shape(format!("{}{rule}", fill(colour)), colour[3] == 255 && is_rect, &shown, covers);
            }
            Paint::Pattern(pattern) => {
                let shown = transform * path.clone();
                self.fill_with_pattern(&shown, rule, pattern, false);
            }
        }
    }

    fn stroke_path<'a>(&mut self, path: &BezPath, transform: Affine, props: &StrokeProps, paint: &Paint<'a>) {
        let scale = transform.determinant().abs().sqrt();
        let width = (f64::from(props.line_width) * scale).abs();
        let reach = width.max(STROKE_MIN) * 2.0;
        if !self.is_seen(transform.transform_rect_bbox(path.control_box()).inflate(reach, reach)) {
            return;
        }
        let Paint::Color(colour) = paint else {
            let Paint::Pattern(pattern) = paint else { return };
            let outline = transform * record::outline_of_stroke(path, props, 0.05 / scale.max(1e-6));
            self.fill_with_pattern(&outline, FillRule::NonZero, pattern, true);
            return;
        };
        let [a, b, c, d, ..] = transform.as_coeffs();
        let (across, down) = (a.hypot(b), c.hypot(d));
        let is_even = (a * c + b * d).abs() <= 0.02 * across * down
            && across <= down * STRETCH_MAX
            && down <= across * STRETCH_MAX;
        let colour = colour.to_rgba().to_rgba8();
        if colour[3] == 0 {
            return;
        }
        if !is_even && width > STROKE_MIN {
            let outline = record::outline_of_stroke(path, props, 0.05 / scale.max(1e-6));
            let outline = transform * outline;
            let covers = cover::filled(&outline);
            self.shape(fill(colour), false, &outline, covers);
            return;
        }
        let look = stroke_look(props, width.max(STROKE_MIN), scale, colour);
        let shown = transform * path.clone();
        let covers = cover::stroked(&shown, width);
        self.shape(look, colour[3] == 255, &shown, covers);
    }

    fn shape(&mut self, look: String, can_join: bool, path: &BezPath, covers: Vec<Rect>) {
        let bounds = covers.iter().copied().reduce(|all, one| all.union(one)).unwrap_or(Rect::ZERO);
        let clip = self.clip_for(bounds);
        if let Some(pending) = &mut self.pending
            && can_join
            && pending.can_grow
            && pending.look == look
            && pending.clip == clip
            && pending.pen.data.len() < 50_000
        {
            let before = pending.pen.data.len();
            pending.pen.path(path, Affine::IDENTITY);
            pending.covers.extend(covers);
            let written = pending.pen.data.len() - before;
            self.charge(path.elements().len(), written);
            return;
        }
        let mut pen = Pen::default();
        pen.path(path, Affine::IDENTITY);
        // A path that is filled and then stroked is one element.
        if let Some(pending) = &mut self.pending
            && let Some(stroke) = look.strip_prefix(STROKED)
            && !pending.look.starts_with(STROKED)
            && pending.clip == clip
            && pending.pen.data == pen.data
        {
            pending.look = if pending.look.is_empty() { "fill:#000;" } else { &pending.look }
                .trim_end_matches(';')
                .to_owned()
                + ";"
                + stroke;
            pending.can_grow = false;
            pending.covers.extend(covers);
            return;
        }
        self.flush();
        self.charge(path.elements().len(), pen.data.len() + 20);
        self.pending = Some(Pending { look, can_grow: can_join, pen, clip, covers });
    }
}
