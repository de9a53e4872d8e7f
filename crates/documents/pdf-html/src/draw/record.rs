//! Glyphs that are drawn by instructions, as one shape where they are one.

use hayro_interpret::color::{AlphaColor, Color};
use hayro_interpret::font::{GlyphRun, Type3Glyph};
use hayro_interpret::kurbo::{Affine, BezPath, Stroke, StrokeOpts, stroke};
use hayro_interpret::{
    BlendMode, ClipPath, Device, DrawMode, DrawProps, Image, ImageDrawProps, Paint, SoftMask, StrokeProps,
};

use super::trace;

/// Elements of a shape that may still be a letter.
const ELEMENTS_MAX: usize = 20_000;
/// How far a stroke's outline may be from the stroke, in thousandths of the type.
const TOLERANCE: f64 = 0.5;
/// A colour that hardly any document asks for: what comes in it was drawn in the text's own colour.
const MARKER: [u8; 3] = [31, 117, 203];

/// The one shape that a glyph is, at 1000 units per em; nothing where it is more than that.
pub(crate) fn shape<'a>(glyph: &Type3Glyph<'a>) -> Option<BezPath> {
    let [red, green, blue] = MARKER;
    let paint = Paint::Color(Color::from_rgba(AlphaColor::from_rgb8(red, green, blue)));
    let mut recorder = Recorder { path: BezPath::new(), is_shape: true };
    glyph.interpret(&mut recorder, Affine::IDENTITY, Affine::IDENTITY, &paint);
    recorder.is_shape.then_some(recorder.path)
}

/// The outline of a stroke.
pub(crate) fn outline_of_stroke(path: &BezPath, props: &StrokeProps, tolerance: f64) -> BezPath {
    let style = Stroke::new(f64::from(props.line_width))
        .with_caps(props.line_cap)
        .with_join(props.line_join)
        .with_miter_limit(f64::from(props.miter_limit))
        .with_dashes(f64::from(props.dash_offset), props.dash_array.iter().map(|dash| f64::from(*dash)));
    stroke(path.iter(), &style, &StrokeOpts::default(), tolerance)
}

struct Recorder {
    path: BezPath,
    is_shape: bool,
}

impl Recorder {
    fn add(&mut self, path: BezPath) {
        self.path.extend(path);
        self.is_shape &= self.path.elements().len() <= ELEMENTS_MAX;
    }

    fn is_plain(paint: &Paint<'_>) -> bool {
        matches!(paint, Paint::Color(colour) if colour.to_rgba().to_rgba8()[..3] == MARKER)
    }
}

impl<'a> Device<'a> for Recorder {
    fn draw_path(&mut self, path: &BezPath, props: DrawProps<'a>, mode: &DrawMode) {
        self.is_shape &= Self::is_plain(&props.paint) && props.soft_mask.is_none();
        if !self.is_shape {
            return;
        }
        match mode {
            DrawMode::Fill(_) => self.add(props.transform * path.clone()),
            DrawMode::Stroke(stroke) => {
                let scale = props.transform.determinant().abs().sqrt().max(1e-9);
                self.add(props.transform * outline_of_stroke(path, stroke, TOLERANCE / scale));
            }
            DrawMode::FillAndStroke(..) | DrawMode::Invisible => self.is_shape = false,
        }
    }

    fn push_clip_path(&mut self, _: &ClipPath) {}

    fn push_transparency_group(&mut self, _: f32, _: Option<SoftMask<'a>>, _: BlendMode) {
        self.is_shape = false;
    }

    fn draw_glyph_run(&mut self, _: &GlyphRun<'_, 'a>, _: DrawProps<'a>, _: &DrawMode) {
        self.is_shape = false;
    }

    fn draw_image(&mut self, image: Image<'a, '_>, props: ImageDrawProps<'a>) {
        let Image::Stencil(stencil) = image else {
            self.is_shape = false;
            return;
        };
        let mut traced = None;
        stencil.with_stencil(
            |luma, paint| {
                let fit = Affine::scale_non_uniform(luma.scale_factors.0.into(), luma.scale_factors.1.into());
                if Self::is_plain(paint) {
                    traced = trace::outline(&luma.data, luma.width, luma.height)
                        .map(|path| props.transform * fit * path);
                }
            },
            None,
        );
        match traced {
            Some(path) => self.add(path),
            None => self.is_shape = false,
        }
    }

    fn pop_clip(&mut self) {}

    fn pop_transparency_group(&mut self) {}
}
