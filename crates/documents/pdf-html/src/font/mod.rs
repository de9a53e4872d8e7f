//! Fonts rebuilt from outlines: a typeface is a list of shapes, their letters, and how they follow each other.
//!
//! Every font is written with its own table of letters, so that what a browser copies is what the document says. The
//! programs inside a PDF are not passed on: three quarters of the glyphs in real documents have none that a browser
//! would take.

mod cff;
mod sfnt;
mod woff2;

use std::collections::BTreeMap;

use hayro_interpret::kurbo::BezPath;

/// Units per em of every font written here.
pub(crate) const UNITS: f64 = 1000.0;
/// Where the base line stands in a line as high as the type, in ems from its top.
pub(crate) const ASCENT: f64 = 0.8;
/// Glyphs that one font may hold besides its own two.
pub(crate) const GLYPHS_MAX: usize = 60_000;
/// The glyph that stands for a space, in every font.
pub(crate) const SPACE: u16 = 1;
/// Its width.
pub(crate) const SPACE_ADVANCE: u16 = 250;

/// One shape.
#[derive(Clone, Debug)]
pub(crate) struct Shape {
    /// Outline in font units, upwards.
    pub(crate) outline: BezPath,
    /// How far it moves the pen, in font units.
    pub(crate) advance: u16,
}

/// A font to be.
#[derive(Clone, Debug, Default)]
pub(crate) struct Typeface {
    /// Glyph 2 and following: glyph 0 stands for nothing known, glyph 1 is the space.
    pub(crate) shapes: Vec<Shape>,
    /// Glyphs by letter.
    pub(crate) letters: BTreeMap<char, u16>,
    /// Glyphs for several letters: their glyphs, the first included, and the one that stands for all.
    pub(crate) ligatures: BTreeMap<Vec<u16>, u16>,
    /// Glyphs that stand closer or further apart than their widths say, in font units.
    pub(crate) kerns: BTreeMap<(u16, u16), i16>,
}

impl Typeface {
    /// Adds a shape and gives its glyph; nothing when the font is full.
    pub(crate) fn add(&mut self, shape: Shape) -> Option<u16> {
        if self.shapes.len() >= GLYPHS_MAX {
            return None;
        }
        self.shapes.push(shape);
        u16::try_from(self.shapes.len() + 1).ok()
    }

    /// The font as a WOFF2 file.
    pub(crate) fn write(&self) -> Option<Vec<u8>> {
        let tables = sfnt::tables(self)?;
        woff2::write(&tables)
    }
}

/// A font of one blank glyph for every letter there is, half an em wide: for text that is there but not seen.
pub(crate) fn blank() -> Option<Vec<u8>> {
    woff2::write(&sfnt::blank_tables()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn square() -> Shape {
        let mut outline = BezPath::new();
        outline.move_to((100.0, 0.0));
        outline.line_to((500.0, 0.0));
        outline.curve_to((600.0, 100.0), (600.0, 300.0), (500.0, 400.0));
        outline.quad_to((300.0, 500.0), (100.0, 400.0));
        outline.close_path();
        Shape { outline, advance: 700 }
    }

    #[test]
    fn font_is_a_woff2_file_and_the_same_each_time() {
        let mut face = Typeface::default();
        let a = face.add(square()).unwrap();
        let b = face.add(square()).unwrap();
        face.letters.extend([('a', a), ('b', b)]);
        face.kerns.insert((a, b), -30);
        let joined = face.add(square()).unwrap();
        face.ligatures.insert(vec![a, b], joined);
        let file = face.write().unwrap();
        assert_eq!(&file[..4], b"wOF2");
        assert_eq!(file, face.write().unwrap());
    }

    #[test]
    fn blank_font_is_small() {
        let file = blank().unwrap();
        assert_eq!(&file[..4], b"wOF2");
        assert!(file.len() < 1024, "{} bytes", file.len());
    }
}
