//! Colours, lines, type, and what of the base map is drawn.

use super::Color;
use crate::base::Detail;
use crate::theme::Theme;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Colours, widths of lines and type.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Style {
    /// Where everything else in here comes from unless it is given.
    pub theme: Theme,
    /// Colours in place of the theme's.
    pub colors: Colors,
    /// Widths of lines in place of the theme's.
    pub widths_mm: Widths,
    /// The typeface in place of the theme's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub font: Option<Font>,
}

/// Colours in place of the theme's.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(inline)]
pub struct Colors {
    /// Everything that is not map.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub paper: Option<Color>,
    /// Water.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sea: Option<Color>,
    /// Land.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub land: Option<Color>,
    /// The line between land and water.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub coast: Option<Color>,
    /// The lines between countries.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub border: Option<Color>,
    /// The net of meridians and parallels.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub graticule: Option<Color>,
    /// The rim of the world, and the frame.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rim: Option<Color>,
    /// Writing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<Color>,
    /// Layers that have no colour of their own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub accent: Option<Color>,
}

/// Widths of lines in millimetres, in place of the theme's; 0 leaves a line out.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(inline)]
pub struct Widths {
    /// The line between land and water.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub coast: Option<f64>,
    /// The lines between countries.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub border: Option<f64>,
    /// The net of meridians and parallels.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub graticule: Option<f64>,
    /// The rim of the world, and the frame.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rim: Option<f64>,
}

/// A typeface.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Font {
    /// EB Garamond.
    Serif,
    /// Inter.
    Sans,
}

/// What of the base map is drawn.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Base {
    /// How finely coasts and borders are drawn.
    pub detail: DetailChoice,
    /// Whether land is drawn.
    pub land: bool,
    /// Whether borders between countries are drawn.
    pub borders: bool,
    /// How the countries are coloured.
    pub countries: Countries,
    /// Degrees between meridians and between parallels; 0 leaves them out.
    #[schemars(range(min = 0, max = 90))]
    pub graticule_deg: f64,
    /// Whether countries carry their names.
    pub country_names: bool,
    /// Whether oceans carry their names.
    pub ocean_names: bool,
}

impl Default for Base {
    fn default() -> Self {
        Self {
            detail: DetailChoice::Auto,
            land: true,
            borders: true,
            countries: Countries::Plain,
            graticule_deg: 15.0,
            country_names: false,
            ocean_names: false,
        }
    }
}

/// How the countries are coloured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Countries {
    /// All as land.
    Plain,
    /// Each in one of the theme's tints, neighbours differently.
    Tinted,
}

/// How finely coasts and borders are drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DetailChoice {
    /// As finely as the map's scale makes sense of.
    Auto,
    /// One of the three that there are.
    #[serde(untagged)]
    Fixed(Detail),
}
