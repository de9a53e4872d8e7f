//! What is written around the map.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What is written in large letters. Empty texts take no room.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Title {
    /// The title.
    #[schemars(length(max = 200))]
    pub text: String,
    /// A line below it.
    #[schemars(length(max = 200))]
    pub subtitle: String,
    /// A small line below that: a date, coordinates, a dedication.
    #[schemars(length(max = 200))]
    pub note: String,
    /// Where all this stands.
    pub place: TitlePlace,
}

impl Default for Title {
    fn default() -> Self {
        Self { text: String::new(), subtitle: String::new(), note: String::new(), place: TitlePlace::Bottom }
    }
}

/// Where the title stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TitlePlace {
    /// Above the map.
    Top,
    /// Below the map.
    Bottom,
}

/// What explains the map.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Furniture {
    /// Whether the layers are explained in a legend.
    pub legend: bool,
    /// Whether lengths are shown by a scale bar, which is true at the middle of the map.
    pub scale_bar: bool,
    /// The small line at the bottom; empty leaves it out.
    #[schemars(length(max = 200))]
    pub credit: String,
}

impl Default for Furniture {
    fn default() -> Self {
        Self { legend: false, scale_bar: false, credit: "Made with Natural Earth".into() }
    }
}
