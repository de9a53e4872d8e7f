//! What is drawn on top of the base map.

use super::Color;
use super::geojson::Collection;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Points, lines and polygons that are drawn alike.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Layer {
    /// What the legend calls it; without a name it is not in the legend.
    #[serde(default)]
    #[schemars(length(max = 200))]
    pub name: String,
    /// The features, as a GeoJSON `FeatureCollection`. Where a map is printed, the first layer without any gets its.
    #[serde(default)]
    pub data: Collection,
    /// How they are drawn.
    #[serde(default)]
    pub style: LayerStyle,
}

/// How a layer is drawn.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct LayerStyle {
    /// Lines, markers and outlines; the theme's accent unless it is given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub color: Option<Color>,
    /// The inside of polygons; a light veil of `color` unless it is given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fill: Option<Color>,
    /// Colours by what a property says, in place of `color`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub color_by: Option<ColorBy>,
    /// The width of lines and outlines in millimetres; 0 leaves them out.
    #[schemars(range(min = 0, max = 10))]
    pub width_mm: f64,
    /// Lengths of dashes and gaps in millimetres; whole lines unless it is given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dash_mm: Option<[f64; 2]>,
    /// How lines go from one position to the next. Polygons go straight in longitude and latitude, as GeoJSON says.
    pub edges: Edges,
    /// The shape of points.
    pub marker: Marker,
    /// The size of points in millimetres.
    #[schemars(range(min = 0.2, max = 50))]
    pub size_mm: f64,
    /// The property whose text is written beside a feature.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// The size of that writing in points.
    #[schemars(range(min = 3, max = 100))]
    pub label_pt: f64,
}

impl Default for LayerStyle {
    fn default() -> Self {
        Self {
            color: None,
            fill: None,
            color_by: None,
            width_mm: 0.6,
            dash_mm: None,
            edges: Edges::GreatCircle,
            marker: Marker::Circle,
            size_mm: 3.0,
            label: None,
            label_pt: 10.0,
        }
    }
}

/// Colours by what a property says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ColorBy {
    /// The property.
    pub property: String,
    /// A colour for each of its values. Other values have the layer's colour.
    pub colors: BTreeMap<String, Color>,
}

/// How a line goes from one position to the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Edges {
    /// The shortest way on the globe, as ships and aeroplanes go.
    GreatCircle,
    /// Straight in longitude and latitude, as GeoJSON says.
    Straight,
}

/// The shape of points.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Marker {
    Circle,
    Ring,
    Square,
    Diamond,
    Triangle,
    Star,
    Cross,
    Pin,
    Heart,
}
