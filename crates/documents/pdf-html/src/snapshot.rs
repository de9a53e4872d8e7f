//! A page as a picture, for pages that would take too much as anything else.

use std::panic::{AssertUnwindSafe, catch_unwind};

use hayro::{RenderCache, RenderSettings};
use hayro_interpret::InterpreterSettings;
use hayro_interpret::hayro_syntax::page::Page as Sheet;

use crate::draw::{Kind, Picture, Pixels, Store, encode};

/// Pixels of such a picture.
const PIXELS_MAX: f64 = 4_000_000.0;
/// Pixels per point, where they are not too many: 144 to an inch.
const SCALE: f64 = 2.0;

/// Draws the page and keeps the picture; nothing when it cannot be drawn at all.
pub(crate) fn snapshot<'a>(sheet: &'a Sheet<'a>, size: (f64, f64), store: &mut Store) -> Option<usize> {
    let (width, height) = sheet.render_dimensions();
    let area = f64::from(width) * f64::from(height);
    if area <= 0.0 || size.0 <= 0.0 {
        return None;
    }
    let scale = SCALE.min((PIXELS_MAX / area).sqrt()) as f32;
    let settings =
        hayro::PixmapSettings { x_scale: scale, y_scale: scale, ..hayro::PixmapSettings::default() };
    // What the renderer was about to change is dropped with it.
    let pixmap = catch_unwind(AssertUnwindSafe(|| {
        hayro::render(
            sheet,
            &RenderCache::new(),
            &InterpreterSettings::default(),
            &RenderSettings::default(),
            &settings,
        )
    }))
    .ok()?;
    let (width, height) = (u32::from(pixmap.width()), u32::from(pixmap.height()));
    let pixels = pixmap.data_as_u8_slice();
    // On white paper.
    let rgb: Vec<u8> = pixels
        .chunks_exact(4)
        .flat_map(|pixel| [0, 1, 2].map(|part| pixel[part].saturating_add(255 - pixel[3])))
        .collect();
    let bytes = encode(&Pixels::Rgb(&rgb), width, height)?;
    store.keep(Picture { kind: Kind::Png, bytes })
}
