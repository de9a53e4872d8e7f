//! Pictures: JPEG stays as it is where a browser shows it as the document means it; all else becomes PNG.

use std::fmt::Write as _;

use hayro_interpret::hayro_syntax::Filter;
use hayro_interpret::hayro_syntax::object::dict::keys;
use hayro_interpret::hayro_syntax::object::{Array, Dict, Object, Stream};
use hayro_interpret::kurbo::{Affine, BezPath, Rect, Shape as _};
use hayro_interpret::{CacheKey, FillRule, Image, ImageData, LumaData, Paint, RasterImage, StencilImage};

use super::canvas::{Canvas, hash};
use super::path::{UNIT, matrix, short, units};
use super::png::{Pixels, encode};
use super::store::{Kind, Picture};

/// Pixels of a picture that is unpacked.
const PIXELS_MAX: u64 = 100_000_000;
/// Pixels per point that are kept: 432 to an inch.
const DENSITY_MAX: f64 = 6.0;
/// From this magnification on, pixels are shown as squares, as viewers do.
const SQUARES_FROM: f64 = 4.0;
/// Stands before and after the number of a picture until its place is known.
pub(crate) const MARK: char = '\u{1}';

impl Canvas<'_> {
    pub(super) fn image(&mut self, image: &Image<'_, '_>, transform: Affine) {
        let (width, height) = (image.width(), image.height());
        let bounds = transform.transform_rect_bbox(Rect::new(0.0, 0.0, width.into(), height.into()));
        let is_small_enough = u64::from(width) * u64::from(height) <= PIXELS_MAX;
        if !transform.is_finite() || !self.is_seen(bounds) {
            return;
        }
        if !is_small_enough {
            self.store.lost_pictures += 1;
            return;
        }
        match image {
            Image::Stencil(stencil) => self.stencil(stencil, transform, bounds),
            Image::Raster(raster) => self.raster(raster, transform, bounds),
        }
    }

    fn raster(&mut self, raster: &RasterImage<'_>, transform: Affine, bounds: Rect) {
        let (width, height) = (raster.width(), raster.height());
        let has_mask = has_mask(raster.stream().dict());
        if let Some(jpeg) = plain_jpeg(raster.stream())
            && !has_mask
        {
            let key = hash(&("jpeg", raster.cache_key()));
            let picture = self.store.picture(key, || Some(Picture { kind: Kind::Jpeg, bytes: jpeg }));
            if let Some(picture) = picture {
                let markup = self.image_markup(picture, (width, height), transform, "");
                self.add(markup, bounds);
            }
            return;
        }
        let step = shrink(width, height, transform);
        let mut shown = None;
        let key = hash(&("raster", raster.cache_key(), step));
        let mut alpha_key = None;
        let store = &mut *self.store;
        raster.with_rgba(
            |data, alpha| {
                let (across, down) = data.scale_factors();
                let place = transform * Affine::scale_non_uniform(across.into(), down.into());
                let size = (data.width().div_ceil(step), data.height().div_ceil(step));
                let is_one_file = alpha
                    .as_ref()
                    .is_some_and(|alpha| (alpha.width, alpha.height) == (data.width(), data.height()));
                let whole = (data.width(), data.height());
                let picture = if is_one_file {
                    store.picture(key, || with_alpha(&data, alpha.as_ref(), step))
                } else {
                    alpha_key = alpha.as_ref().and_then(|alpha| {
                        let key = hash(&("alpha", key));
                        let picture = store.picture(key, || grey(alpha))?;
                        Some((picture, (alpha.width, alpha.height)))
                    });
                    store.picture(key, || opaque(&data, step))
                };
                shown = picture.map(|picture| (picture, size, place, whole));
            },
            None,
        );
        let Some((picture, size, place, whole)) = shown else {
            return;
        };
        let fit = |size: (u32, u32)| {
            place
                * Affine::scale_non_uniform(
                    f64::from(whole.0) / f64::from(size.0.max(1)),
                    f64::from(whole.1) / f64::from(size.1.max(1)),
                )
        };
        let mask = alpha_key.map(|(picture, size)| {
            let inner = self.image_markup(picture, size, fit(size), "");
            self.luminance_mask(&inner, bounds)
        });
        let mask = mask.map(|mask| format!(" mask=\"{mask}\"")).unwrap_or_default();
        let markup = self.image_markup(picture, size, fit(size), "");
        let markup = if mask.is_empty() { markup } else { format!("<g{mask}>{markup}</g>") };
        self.add(markup, bounds);
    }

    /// A mask of one picture; a reference to it.
    fn luminance_mask(&mut self, inner: &str, bounds: Rect) -> String {
        let (id, is_new) = self.name(hash(&("picture mask", inner)));
        if is_new {
            let name = self.id(id);
            let _ = write!(
                self.defs,
                "<mask id=\"{name}\" maskUnits=\"userSpaceOnUse\" x=\"{}\" y=\"{}\" width=\"{}\" \
                 height=\"{}\">{inner}</mask>",
                units(bounds.x0),
                units(bounds.y0),
                units(bounds.width()).max(1),
                units(bounds.height()).max(1)
            );
        }
        self.url(id)
    }

    fn stencil(&mut self, stencil: &StencilImage<'_, '_>, transform: Affine, bounds: Rect) {
        let store = &mut *self.store;
        let mut shown = None;
        let mut pattern = None;
        stencil.with_stencil(
            |luma, paint| {
                let place = transform
                    * Affine::scale_non_uniform(luma.scale_factors.0.into(), luma.scale_factors.1.into());
                let size = (luma.width, luma.height);
                let picture = match paint {
                    Paint::Color(colour) => {
                        let colour = colour.to_rgba().to_rgba8();
                        store.picture(hash(&("stencil", stencil.cache_key(), colour)), || {
                            let bytes =
                                encode(&Pixels::Stencil(&luma.data, colour), luma.width, luma.height)?;
                            Some(Picture { kind: Kind::Png, bytes })
                        })
                    }
                    Paint::Pattern(paint) => {
                        pattern = Some(paint.clone());
                        store.picture(hash(&("stencil", stencil.cache_key())), || grey(&luma))
                    }
                };
                shown = picture.map(|picture| (picture, size, place));
            },
            None,
        );
        let Some((picture, size, place)) = shown else {
            return;
        };
        let markup = self.image_markup(picture, size, place, "");
        let Some(pattern) = pattern else {
            self.add(markup, bounds);
            return;
        };
        let mask = self.luminance_mask(&markup, bounds);
        let path: BezPath = bounds.to_path(0.1);
        let inner = self.apart(|canvas| canvas.fill_with_pattern(&path, FillRule::NonZero, &pattern, false));
        self.add(format!("<g mask=\"{mask}\">{inner}</g>"), bounds);
    }

    /// A picture of `size` pixels, placed by a transform from pixels to the page.
    pub(super) fn image_markup(&self, picture: usize, size: (u32, u32), place: Affine, more: &str) -> String {
        let [a, b, c, d, e, f] = place.as_coeffs();
        let (width, height) = (f64::from(size.0), f64::from(size.1));
        let magnified = (place.determinant().abs().sqrt() * 96.0 / 72.0).abs();
        let squares = if magnified >= SQUARES_FROM { " image-rendering=\"pixelated\"" } else { "" };
        let mut markup = String::from("<image");
        if b == 0.0 && c == 0.0 && a > 0.0 && d > 0.0 {
            let _ = write!(
                markup,
                " x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"",
                short(e * UNIT, 1),
                short(f * UNIT, 1),
                short(a * width * UNIT, 1),
                short(d * height * UNIT, 1)
            );
        } else {
            // The picture is one point of pixels, so that the transform keeps its digits.
            let fit = place * Affine::scale_non_uniform(width / 100.0, height / 100.0);
            let _ = write!(markup, " width=\"10000\" height=\"10000\" transform=\"{}\"", matrix(fit));
        }
        let _ =
            write!(markup, " preserveAspectRatio=\"none\"{squares}{more} href=\"{MARK}{picture}{MARK}\"/>");
        markup
    }
}

/// By how much a picture can be made smaller without anybody seeing it.
fn shrink(width: u32, height: u32, transform: Affine) -> u32 {
    let [a, b, c, d, ..] = transform.as_coeffs();
    let (across, down) = (a.hypot(b), c.hypot(d));
    let density = (1.0 / across.max(1e-9)).min(1.0 / down.max(1e-9));
    let step = (density / DENSITY_MAX).floor().clamp(1.0, 16.0) as u32;
    if width / step < 16 || height / step < 16 { 1 } else { step }
}

/// Every `step`th row and column, each the mean of what it stands for.
fn smaller(data: &[u8], width: usize, parts: usize, step: usize) -> Vec<u8> {
    let height = data.len() / (width * parts);
    let mut out = Vec::with_capacity(data.len() / (step * step) + parts);
    for top in (0..height).step_by(step) {
        for left in (0..width).step_by(step) {
            let (rows, columns) = (top..(top + step).min(height), left..(left + step).min(width));
            let count = (rows.len() * columns.len()) as u32;
            for part in 0..parts {
                let sum: u32 = rows
                    .clone()
                    .flat_map(|row| columns.clone().map(move |column| (row * width + column) * parts + part))
                    .map(|at| u32::from(data[at]))
                    .sum();
                out.push(((sum + count / 2) / count) as u8);
            }
        }
    }
    out
}

fn opaque(data: &ImageData, step: u32) -> Option<Picture> {
    let (bytes, parts) = match data {
        ImageData::Rgb(rgb) => (&rgb.data, 3),
        ImageData::Luma(luma) => (&luma.data, 1),
    };
    let (width, height) = (data.width(), data.height());
    let small = (step > 1).then(|| smaller(bytes, width as usize, parts, step as usize));
    let bytes = small.as_ref().unwrap_or(bytes);
    let pixels = if parts == 3 { Pixels::Rgb(bytes) } else { Pixels::Grey(bytes) };
    let bytes = encode(&pixels, width.div_ceil(step), height.div_ceil(step))?;
    Some(Picture { kind: Kind::Png, bytes })
}

fn with_alpha(data: &ImageData, alpha: Option<&LumaData>, step: u32) -> Option<Picture> {
    let alpha = alpha?;
    let pixels = alpha.data.iter();
    let bytes: Vec<u8> = match data {
        ImageData::Rgb(rgb) => {
            rgb.data.chunks_exact(3).zip(pixels).flat_map(|(p, a)| [p[0], p[1], p[2], *a]).collect()
        }
        ImageData::Luma(luma) => luma.data.iter().zip(pixels).flat_map(|(p, a)| [*p, *p, *p, *a]).collect(),
    };
    let (width, height) = (data.width(), data.height());
    let bytes = if step > 1 { smaller(&bytes, width as usize, 4, step as usize) } else { bytes };
    let bytes = encode(&Pixels::Rgba(&bytes), width.div_ceil(step), height.div_ceil(step))?;
    Some(Picture { kind: Kind::Png, bytes })
}

fn grey(luma: &LumaData) -> Option<Picture> {
    let bytes = encode(&Pixels::Grey(&luma.data), luma.width, luma.height)?;
    Some(Picture { kind: Kind::Png, bytes })
}

fn has_mask(dict: &Dict<'_>) -> bool {
    dict.contains_key(keys::SMASK) || dict.contains_key(keys::MASK) || dict.contains_key(b"SMaskInData")
}

/// The file of a picture that is a JPEG and nothing more: shown as it is, it looks as it should.
fn plain_jpeg(stream: &Stream<'_>) -> Option<Vec<u8>> {
    let dict = stream.dict();
    if stream.filters().as_slice() != [Filter::DctDecode] || dict.contains_key(keys::DECODE) {
        return None;
    }
    let colours = match dict.get::<Object<'_>>(keys::COLORSPACE)? {
        Object::Name(name) => match name.as_ref() {
            b"DeviceRGB" => 3,
            b"DeviceGray" => 1,
            _ => return None,
        },
        Object::Array(space) => colours_of(&space)?,
        _ => return None,
    };
    let data = stream.raw_data();
    (components(&data)? == colours).then(|| data.into_owned())
}

/// How many colours a colour space has that browsers treat alike.
fn colours_of(space: &Array<'_>) -> Option<u8> {
    let mut parts = space.iter::<Object<'_>>();
    let Some(Object::Name(name)) = parts.next() else {
        return None;
    };
    match name.as_ref() {
        b"ICCBased" => {
            let Some(Object::Stream(profile)) = parts.next() else {
                return None;
            };
            profile.dict().get::<u8>(keys::N).filter(|colours| matches!(colours, 1 | 3))
        }
        b"CalRGB" => Some(3),
        b"CalGray" => Some(1),
        _ => None,
    }
}

/// How many colours a JPEG file has, by its frame; nothing if it is none that browsers know.
fn components(data: &[u8]) -> Option<u8> {
    let mut at = 2;
    if data.get(..2)? != [0xff, 0xd8] {
        return None;
    }
    loop {
        let [0xff, marker] = *data.get(at..at + 2)? else {
            return None;
        };
        match marker {
            0xff => at += 1,
            // Baseline, extended and progressive frames.
            0xc0..=0xc2 => return data.get(at + 9).copied(),
            0xd0..=0xd9 | 0x01 => at += 2,
            0xda => return None,
            _ => at += 2 + usize::from(u16::from_be_bytes([*data.get(at + 2)?, *data.get(at + 3)?])),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_of_a_jpeg_are_read_from_its_frame() {
        let mut jpeg = vec![0xff, 0xd8, 0xff, 0xe0, 0, 4, 1, 2];
        jpeg.extend([0xff, 0xc0, 0, 17, 8, 0, 1, 0, 1, 3]);
        assert_eq!(components(&jpeg), Some(3));
        assert_eq!(components(&jpeg[..9]), None);
        assert_eq!(components(b"not a jpeg"), None);
    }

    #[test]
    fn smaller_picture_is_the_mean_of_the_larger() {
        assert_eq!(smaller(&[0, 10, 20, 30, 40, 50], 3, 1, 2), [20, 35]);
    }
}
