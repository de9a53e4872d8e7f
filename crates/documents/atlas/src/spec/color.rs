//! Colours as people write them.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use std::borrow::Cow;

/// A colour of the sRGB space with its opacity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Color {
    /// Red, green and blue, one byte each, red highest.
    pub rgb: u32,
    /// From 0, invisible, to 255.
    pub alpha: u8,
}

impl Color {
    /// An opaque colour.
    pub const fn opaque(rgb: u32) -> Self {
        Self { rgb, alpha: 255 }
    }

    /// Reads `#rgb`, `#rrggbb` or `#rrggbbaa`.
    pub fn parse(text: &str) -> Option<Self> {
        let digits = text.strip_prefix('#')?;
        let is_hex = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
        let value = u32::from_str_radix(digits, 16).ok().filter(|_| is_hex)?;
        match digits.len() {
            3 => {
                let [r, g, b] = [value >> 8, value >> 4 & 15, value & 15].map(|digit| digit * 17);
                Some(Self::opaque(r << 16 | g << 8 | b))
            }
            6 => Some(Self::opaque(value)),
            8 => Some(Self { rgb: value >> 8, alpha: value as u8 }),
            _ => None,
        }
    }
}

impl std::fmt::Display for Color {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.alpha {
            255 => write!(f, "#{:06x}", self.rgb),
            alpha => write!(f, "#{:06x}{alpha:02x}", self.rgb),
        }
    }
}

impl<'de> Deserialize<'de> for Color {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Cow::<'de, str>::deserialize(deserializer)?;
        Self::parse(&text).ok_or_else(|| {
            de::Error::custom(format!(
                "{text:?} is not a colour. Write it as \"#rrggbb\", for example \"#1b4965\""
            ))
        })
    }
}

impl Serialize for Color {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl JsonSchema for Color {
    fn schema_name() -> Cow<'static, str> {
        "Color".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "A colour: #rgb, #rrggbb or #rrggbbaa.",
            "type": "string",
            "pattern": "^#([0-9a-fA-F]{3}|[0-9a-fA-F]{6}|[0-9a-fA-F]{8})$"
        })
    }
}
