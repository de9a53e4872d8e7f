//! The paper.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::borrow::Cow;

const MM_PER_INCH: f64 = 25.4;

/// The paper and how finely it is printed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Page {
    /// The size of the paper after trimming.
    pub size: Size,
    /// Which way the paper is turned. Sizes given in numbers are turned too.
    pub orientation: Orientation,
    /// Dots per inch.
    #[schemars(range(min = 36, max = 600))]
    pub dpi: f64,
    /// How far the background goes beyond the trimmed paper on each side, in millimetres. Printful's posters want 0.
    #[schemars(range(min = 0, max = 25))]
    pub bleed_mm: f64,
    /// What is left free on each side, in millimetres.
    #[schemars(range(min = 0, max = 100))]
    pub margin_mm: f64,
}

impl Default for Page {
    fn default() -> Self {
        Self {
            size: Size::named("18x24"),
            orientation: Orientation::Portrait,
            dpi: 300.0,
            bleed_mm: 0.0,
            margin_mm: 12.7,
        }
    }
}

/// Which way the paper is turned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Orientation {
    /// Higher than wide.
    Portrait,
    /// Wider than high.
    Landscape,
}

impl Page {
    /// Width and height of the trimmed paper in millimetres, turned as it is wanted.
    pub fn trimmed_mm(&self) -> [f64; 2] {
        let [a, b] = self.size.mm();
        match self.orientation {
            Orientation::Portrait => [a.min(b), a.max(b)],
            Orientation::Landscape => [a.max(b), a.min(b)],
        }
    }

    /// Width and height of the picture in pixels, bleed included.
    pub fn pixels(&self) -> [u32; 2] {
        self.trimmed_mm().map(|mm| ((mm + 2.0 * self.bleed_mm) / MM_PER_INCH * self.dpi).round() as u32)
    }

    /// How many pixels a millimetre has.
    pub(crate) fn pixels_per_mm(&self) -> f64 {
        self.dpi / MM_PER_INCH
    }
}

/// A size of paper: one that has a name, or any other.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Size {
    /// One of [`Size::NAMES`].
    Named(&'static str),
    /// Width and height in millimetres.
    Free([f64; 2]),
}

/// Names with width and height in millimetres.
const SIZES: [(&str, f64, f64); 32] = [
    ("A0", 841.0, 1189.0),
    ("A1", 594.0, 841.0),
    ("A2", 420.0, 594.0),
    ("A3", 297.0, 420.0),
    ("A4", 210.0, 297.0),
    ("A5", 148.0, 210.0),
    ("A6", 105.0, 148.0),
    ("Letter", inch(8.5), inch(11.0)),
    ("Legal", inch(8.5), inch(14.0)),
    ("Tabloid", inch(11.0), inch(17.0)),
    ("ANSI-C", inch(17.0), inch(22.0)),
    ("ANSI-D", inch(22.0), inch(34.0)),
    ("5x7", inch(5.0), inch(7.0)),
    ("8x10", inch(8.0), inch(10.0)),
    ("8.5x11", inch(8.5), inch(11.0)),
    ("9x12", inch(9.0), inch(12.0)),
    ("10x10", inch(10.0), inch(10.0)),
    ("11x14", inch(11.0), inch(14.0)),
    ("11x17", inch(11.0), inch(17.0)),
    ("12x12", inch(12.0), inch(12.0)),
    ("12x16", inch(12.0), inch(16.0)),
    ("12x18", inch(12.0), inch(18.0)),
    ("14x14", inch(14.0), inch(14.0)),
    ("16x16", inch(16.0), inch(16.0)),
    ("16x20", inch(16.0), inch(20.0)),
    ("18x18", inch(18.0), inch(18.0)),
    ("18x24", inch(18.0), inch(24.0)),
    ("20x24", inch(20.0), inch(24.0)),
    ("20x30", inch(20.0), inch(30.0)),
    ("24x24", inch(24.0), inch(24.0)),
    ("24x32", inch(24.0), inch(32.0)),
    ("24x36", inch(24.0), inch(36.0)),
];

const fn inch(inches: f64) -> f64 {
    inches * MM_PER_INCH
}

impl Size {
    /// The names that can be used.
    pub fn names() -> impl Iterator<Item = &'static str> {
        SIZES.iter().map(|(name, _, _)| *name)
    }

    /// A size by its name, which must be one of them.
    pub(crate) fn named(name: &str) -> Self {
        Self::find(name).unwrap_or(Self::Free([SIZES[0].1, SIZES[0].2]))
    }

    fn find(name: &str) -> Option<Self> {
        Self::names().find(|known| known.eq_ignore_ascii_case(name)).map(Self::Named)
    }

    /// Width and height in millimetres, as the size has them.
    pub fn mm(&self) -> [f64; 2] {
        match self {
            Self::Free(mm) => *mm,
            Self::Named(name) => SIZES
                .iter()
                .find(|(known, _, _)| known == name)
                .map_or([0.0, 0.0], |(_, width, height)| [*width, *height]),
        }
    }
}

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Free {
    width_mm: f64,
    height_mm: f64,
}

impl<'de> Deserialize<'de> for Size {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Sizes;
        impl<'de> Visitor<'de> for Sizes {
            type Value = Size;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("the name of a size, or width_mm and height_mm")
            }

            fn visit_str<E: de::Error>(self, name: &str) -> Result<Size, E> {
                Size::find(name).ok_or_else(|| {
                    let names: Vec<_> = Size::names().collect();
                    E::custom(format!(
                        "{name:?} is not a size of paper. Use {}, or {{\"width_mm\": …, \"height_mm\": …}}",
                        names.join(", ")
                    ))
                })
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Size, A::Error> {
                let free = Free::deserialize(de::value::MapAccessDeserializer::new(map))?;
                Ok(Size::Free([free.width_mm, free.height_mm]))
            }
        }
        deserializer.deserialize_any(Sizes)
    }
}

impl Serialize for Size {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Named(name) => serializer.serialize_str(name),
            Self::Free([width_mm, height_mm]) => {
                Free { width_mm: *width_mm, height_mm: *height_mm }.serialize(serializer)
            }
        }
    }
}

impl JsonSchema for Size {
    fn schema_name() -> Cow<'static, str> {
        "Size".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let names: Vec<_> = Self::names().collect();
        json_schema!({
            "description": "A size of paper by its name (ISO A, US, or a poster in inches), or any other in millimetres.",
            "anyOf": [
                { "enum": names },
                {
                    "type": "object",
                    "properties": {
                        "width_mm": { "type": "number", "minimum": 20, "maximum": 1700 },
                        "height_mm": { "type": "number", "minimum": 20, "maximum": 1700 }
                    },
                    "required": ["width_mm", "height_mm"],
                    "additionalProperties": false
                }
            ]
        })
    }
}
