//! A page as a picture, for those who read it with other eyes.

use std::sync::Arc;

use hayro::hayro_interpret::InterpreterSettings;
use hayro::vello_cpu::color::palette::css::WHITE;
use hayro::{PixmapSettings, RenderCache, RenderSettings};

use crate::engine;
use crate::limits::Limits;
use crate::refusal::Refusal;

/// What OCR reads best: letters of ten points are then forty dots high.
const DOTS_PER_INCH: f32 = 300.0;
/// A page is drawn with this many dots on its longer side at most; the renderer counts them in 16 bits.
const SIDE_MAX: f32 = 20_000.0;

/// A page in shades of grey.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Picture {
    /// Dots in a row.
    pub width: u32,
    pub height: u32,
    /// The dots row by row, 0 for black.
    pub grey: Vec<u8>,
}

impl Picture {
    /// The picture as a file of the simplest kind there is, a PGM.
    pub fn to_pgm(&self) -> Vec<u8> {
        let mut file = format!("P5\n{} {}\n255\n", self.width, self.height).into_bytes();
        file.extend_from_slice(&self.grey);
        file
    }
}

/// Draws a page, counted from 1, on the caller's own thread (see [`read_here`](crate::read_here)).
pub fn draw_here(bytes: impl Into<Arc<[u8]>>, page: u32, limits: &Limits) -> Result<Picture, Refusal> {
    let bytes = bytes.into();
    // Nothing that the renderer was about to change outlives the call, so nothing is seen half changed.
    let drawn = std::panic::AssertUnwindSafe(|| draw(bytes, page, limits));
    std::panic::catch_unwind(drawn).unwrap_or(Err(Refusal::Failed))
}

fn draw(bytes: Arc<[u8]>, page: u32, limits: &Limits) -> Result<Picture, Refusal> {
    let pdf = engine::open(bytes, limits)?;
    let index = (page as usize).checked_sub(1).ok_or(Refusal::NoPages)?;
    let sheet = pdf.pages().get(index).ok_or(Refusal::NoPages)?;
    let (width, height) = sheet.render_dimensions();
    let unit = engine::user_unit(sheet) as f32;
    let (wide, high) = (width * unit, height * unit);
    // The most dots that the page may have, and no more than are useful.
    let by_area = (limits.pixels_max as f32 / (wide * high)).sqrt();
    let per_point = (DOTS_PER_INCH / 72.0).min(by_area).min(SIDE_MAX / wide.max(high));
    let scale = per_point * unit;
    if !(width * scale >= 1.0 && height * scale >= 1.0) {
        return Err(Refusal::Failed);
    }
    let settings = PixmapSettings { x_scale: scale, y_scale: scale, bg_color: WHITE };
    let cache = RenderCache::new();
    let pixmap = hayro::render(
        sheet,
        &cache,
        &InterpreterSettings::default(),
        &RenderSettings { hinting: false, ..RenderSettings::default() },
        &settings,
    );
    let (width, height) = (u32::from(pixmap.width()), u32::from(pixmap.height()));
    // The page lies on white, so that every dot is opaque.
    let grey = pixmap.data().iter().map(|dot| luma(dot.r, dot.g, dot.b)).collect();
    Ok(Picture { width, height, grey })
}

/// How light a colour looks.
fn luma(red: u8, green: u8, blue: u8) -> u8 {
    ((u32::from(red) * 77 + u32::from(green) * 151 + u32::from(blue) * 28) >> 8) as u8
}
