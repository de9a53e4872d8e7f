//! Themes: colours, lines and type that go together.

use crate::spec::{Color, Font, Style};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A set of colours, lines and type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Theme {
    /// Sand on pale blue, fine dark lines.
    #[default]
    Classic,
    /// White and grey, for what lies on top.
    Light,
    /// Deep blue with bright lines.
    Night,
    /// Browned paper, waterlines along the coasts, a double frame.
    Vintage,
    /// White lines on blueprint blue.
    Blueprint,
    /// Black on white.
    Ink,
    /// Soft colours.
    Pastel,
}

pub const THEMES: [Theme; 7] =
    [Theme::Classic, Theme::Light, Theme::Night, Theme::Vintage, Theme::Blueprint, Theme::Ink, Theme::Pastel];

/// How the water along a coast is drawn.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Shore {
    /// As all water.
    Plain,
    /// A soft band of this colour, so many millimetres wide.
    Glow(Color, f64),
    /// Fine lines of this colour that follow the coast.
    Waterlines(Color),
}

/// Everything a map's look is made of; widths in millimetres.
#[derive(Debug, Clone)]
pub(crate) struct Look {
    pub(crate) paper: Color,
    pub(crate) sea: Color,
    pub(crate) land: Color,
    pub(crate) coast: Color,
    pub(crate) border: Color,
    pub(crate) graticule: Color,
    pub(crate) rim: Color,
    pub(crate) text: Color,
    pub(crate) accent: Color,
    pub(crate) coast_mm: f64,
    pub(crate) border_mm: f64,
    pub(crate) graticule_mm: f64,
    pub(crate) rim_mm: f64,
    pub(crate) tints: [u32; 6],
    pub(crate) shore: Shore,
    pub(crate) has_double_frame: bool,
    pub(crate) font: Font,
}

impl Look {
    /// A theme with what a specification puts in place of it.
    pub(crate) fn new(style: &Style) -> Self {
        let mut look = theme(style.theme);
        let colors = &style.colors;
        let put = |own: &mut Color, given: Option<Color>| *own = given.unwrap_or(*own);
        put(&mut look.paper, colors.paper);
        put(&mut look.sea, colors.sea);
        put(&mut look.land, colors.land);
        put(&mut look.coast, colors.coast);
        put(&mut look.border, colors.border);
        put(&mut look.graticule, colors.graticule);
        put(&mut look.rim, colors.rim);
        put(&mut look.text, colors.text);
        put(&mut look.accent, colors.accent);
        let widths = &style.widths_mm;
        look.coast_mm = widths.coast.unwrap_or(look.coast_mm);
        look.border_mm = widths.border.unwrap_or(look.border_mm);
        look.graticule_mm = widths.graticule.unwrap_or(look.graticule_mm);
        look.rim_mm = widths.rim.unwrap_or(look.rim_mm);
        look.font = style.font.unwrap_or(look.font);
        look
    }
}

const fn rgb(rgb: u32) -> Color {
    Color::opaque(rgb)
}

const CLASSIC: Look = Look {
    paper: rgb(0xfaf6ee),
    sea: rgb(0xcde0eb),
    land: rgb(0xe9d6ad),
    coast: rgb(0x463c32),
    border: rgb(0x9a8262),
    graticule: rgb(0x96b4c3),
    rim: rgb(0x463c32),
    text: rgb(0x33291f),
    accent: rgb(0xb3382c),
    coast_mm: 0.2,
    border_mm: 0.16,
    graticule_mm: 0.14,
    rim_mm: 0.5,
    tints: [0xe9d6ad, 0xdcc79a, 0xf0e0bf, 0xd9cfa6, 0xe7c9a2, 0xcfd1a5],
    shore: Shore::Plain,
    has_double_frame: false,
    font: Font::Serif,
};

const LIGHT: Look = Look {
    paper: rgb(0xffffff),
    sea: rgb(0xf1f4f6),
    land: rgb(0xd9dee2),
    coast: rgb(0xb4bdc4),
    border: rgb(0xffffff),
    graticule: rgb(0xe2e7ea),
    rim: rgb(0xb4bdc4),
    text: rgb(0x24292d),
    accent: rgb(0xe4572e),
    border_mm: 0.25,
    rim_mm: 0.3,
    tints: [0xd9dee2, 0xcfd6db, 0xe3e7ea, 0xc6ced4, 0xd4dadf, 0xdde2e5],
    font: Font::Sans,
    ..CLASSIC
};

const NIGHT: Look = Look {
    paper: rgb(0x0d1622),
    sea: rgb(0x132334),
    land: rgb(0x26425c),
    coast: rgb(0x7fb2d0),
    border: rgb(0x456d8b),
    graticule: rgb(0x20384e),
    rim: rgb(0x7fb2d0),
    text: rgb(0xe8eef3),
    accent: rgb(0xffb84d),
    rim_mm: 0.35,
    tints: [0x26425c, 0x2b4a66, 0x213b54, 0x2f4f63, 0x294058, 0x34506b],
    shore: Shore::Glow(Color { rgb: 0x3f7ea6, alpha: 46 }, 2.4),
    font: Font::Sans,
    ..CLASSIC
};

const VINTAGE: Look = Look {
    paper: rgb(0xf0e3c4),
    sea: rgb(0xdfd6b4),
    land: rgb(0xf3e6c6),
    coast: rgb(0x5b4226),
    border: rgb(0x94552f),
    graticule: rgb(0xc0ae82),
    rim: rgb(0x5b4226),
    text: rgb(0x452f18),
    accent: rgb(0x8c2f1b),
    coast_mm: 0.22,
    border_mm: 0.22,
    rim_mm: 0.6,
    tints: [0xf1dcae, 0xe6cf9a, 0xf3e0b9, 0xdfcf9c, 0xebc9a0, 0xd8cda2],
    shore: Shore::Waterlines(rgb(0xab9868)),
    has_double_frame: true,
    ..CLASSIC
};

const BLUEPRINT: Look = Look {
    paper: rgb(0x12408a),
    sea: rgb(0x12408a),
    land: rgb(0x1d4f9e),
    coast: rgb(0xe9f1ff),
    border: rgb(0x9dbbe8),
    graticule: rgb(0x2f62b0),
    rim: rgb(0xe9f1ff),
    text: rgb(0xf4f8ff),
    accent: rgb(0xffd166),
    tints: [0x1d4f9e, 0x2257a8, 0x194893, 0x275cab, 0x1f4c97, 0x2b61b2],
    font: Font::Sans,
    ..CLASSIC
};

const INK: Look = Look {
    paper: rgb(0xffffff),
    sea: rgb(0xffffff),
    land: rgb(0xffffff),
    coast: rgb(0x111111),
    border: rgb(0x777777),
    graticule: rgb(0xdadada),
    rim: rgb(0x111111),
    text: rgb(0x111111),
    accent: rgb(0x111111),
    coast_mm: 0.28,
    tints: [0xffffff, 0xf0f0f0, 0xe4e4e4, 0xf7f7f7, 0xeaeaea, 0xdedede],
    shore: Shore::Glow(Color { rgb: 0x000000, alpha: 16 }, 2.2),
    ..CLASSIC
};

const PASTEL: Look = Look {
    paper: rgb(0xfdfbf7),
    sea: rgb(0xdcecef),
    land: rgb(0xf6ead7),
    coast: rgb(0x8fa9ad),
    border: rgb(0xffffff),
    graticule: rgb(0xc6dde2),
    rim: rgb(0x8fa9ad),
    text: rgb(0x4a4a55),
    accent: rgb(0xd9627b),
    border_mm: 0.3,
    tints: [0xf7d9d0, 0xf9e7c4, 0xd9e8cf, 0xe3d8ea, 0xd2e3ec, 0xf6e2e6],
    shore: Shore::Glow(Color { rgb: 0xffffff, alpha: 70 }, 2.0),
    font: Font::Sans,
    ..CLASSIC
};

fn theme(theme: Theme) -> Look {
    match theme {
        Theme::Classic => CLASSIC,
        Theme::Light => LIGHT,
        Theme::Night => NIGHT,
        Theme::Vintage => VINTAGE,
        Theme::Blueprint => BLUEPRINT,
        Theme::Ink => INK,
        Theme::Pastel => PASTEL,
    }
}
