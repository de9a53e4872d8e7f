//! Maps for print: GeoJSON, a style and a projection in, a PNG out. It has never heard of a job.
//!
//! [`Spec::parse`] reads a map's specification, [`render`] draws it. The way of a map through the crate:
//! `compose` decides what is drawn where; `chart` takes places of the globe to the page, by way of `sphere`, which
//! turns and cuts, and `projection`; `draw` makes rows of pixels of it, band by band; `png` packs them.
//!
//! The same specification gives the same bytes on every machine and with any number of threads: nothing here depends on
//! the system's fonts, its mathematical functions, the clock or chance.

mod base;
mod canonical;
mod chart;
mod compose;
mod draw;
mod error;
mod lettering;
mod png;
pub mod projection;
mod render;
pub mod spec;
pub mod sphere;
mod theme;

pub use base::Detail;
pub use error::Error;
pub use spec::Spec;
pub use theme::{THEMES, Theme};

use std::io::Write;
use std::num::NonZeroUsize;

/// The narrowest and widest preview.
const PREVIEW_PIXELS: std::ops::RangeInclusive<u32> = 16..=4000;

/// How a map is drawn; nothing of it changes what the map looks like at a given size.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    /// How many threads draw at once.
    pub threads: NonZeroUsize,
    /// For a look at the map: the width of the picture in pixels, whatever the page's own would be.
    pub preview_width: Option<u32>,
}

impl Default for Options {
    fn default() -> Self {
        Self { threads: NonZeroUsize::MIN, preview_width: None }
    }
}

#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct Rendered {
    /// Width in pixels.
    pub width: u32,
    /// Height in pixels.
    pub height: u32,
    /// Dots per inch that the file asks to be printed with.
    pub dpi: f64,
    pub bytes: u64,
    /// What whoever made the map should know, as [`warnings`] tells it.
    pub warnings: Vec<String>,
}

/// What whoever made a map should know before it is drawn, in sentences: features that are not on it, labels that found no
/// place, letters that no font has.
pub fn warnings(spec: &Spec) -> Result<Vec<String>, Error> {
    spec.check()?;
    Ok(compose::compose(spec, &spec.page).warnings)
}

/// Draws a map and writes it as a PNG.
pub fn render(spec: &Spec, options: &Options, out: impl Write) -> Result<Rendered, Error> {
    render_telling(spec, options, out, |_| ())
}

/// The same, telling after each band how much is done, from 0 to 1.
pub fn render_telling(
    spec: &Spec,
    options: &Options,
    out: impl Write,
    told: impl FnMut(f32),
) -> Result<Rendered, Error> {
    spec.check()?;
    let mut page = spec.page.clone();
    if let Some(width) = options.preview_width {
        if !PREVIEW_PIXELS.contains(&width) {
            let message = format!(
                "A preview {width} pixels wide cannot be drawn. Use {} to {}.",
                PREVIEW_PIXELS.start(),
                PREVIEW_PIXELS.end()
            );
            return Err(Error::spec("", message));
        }
        page.dpi *= f64::from(width) / f64::from(page.pixels()[0]);
    }
    let composed = compose::compose(spec, &page);
    let picture = &composed.picture;
    let bytes = render::write_png(picture, (page.dpi, options.threads), out, told)?;
    Ok(Rendered {
        width: picture.width,
        height: picture.height,
        dpi: page.dpi,
        bytes,
        warnings: composed.warnings,
    })
}
