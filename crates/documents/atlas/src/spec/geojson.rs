//! GeoJSON, as far as maps need it: RFC 7946 without bounding boxes and foreign members, which are passed over.

use crate::Error;
use schemars::JsonSchema;
use serde::de::{self, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

/// A `FeatureCollection`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Collection {
    /// `FeatureCollection`.
    #[serde(rename = "type")]
    pub kind: CollectionKind,
    /// The features.
    pub features: Vec<Feature>,
}

impl Collection {
    /// Reads GeoJSON and checks it: what it gives can be drawn.
    pub fn parse(json: &[u8]) -> Result<Self, Error> {
        let collection: Self = super::read(json)?;
        super::check::collection(&collection)?;
        Ok(collection)
    }

    /// GeoJSON in canonical form (RFC 8785), with all that was in it, once it was found right.
    pub fn canonical(json: &[u8]) -> Result<(Self, String), Error> {
        let collection = Self::parse(json)?;
        Ok((collection, crate::canonical::text(&super::read(json)?)))
    }
}

/// The one kind of collection.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub enum CollectionKind {
    /// `FeatureCollection`.
    #[default]
    FeatureCollection,
}

/// A `Feature`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Feature {
    /// `Feature`.
    #[serde(rename = "type")]
    pub kind: FeatureKind,
    /// What is known about it.
    #[serde(default)]
    pub properties: Option<Map<String, Value>>,
    /// Where it is; a feature without a geometry is not drawn.
    pub geometry: Option<Geometry>,
}

/// The one kind of feature.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub enum FeatureKind {
    /// `Feature`.
    Feature,
}

impl Feature {
    /// A property as text, if it is a text, a number or a truth value.
    pub(crate) fn text(&self, property: &str) -> Option<String> {
        match self.properties.as_ref()?.get(property)? {
            Value::String(text) => Some(text.clone()),
            Value::Number(number) => Some(number.to_string()),
            Value::Bool(value) => Some(value.to_string()),
            Value::Null | Value::Array(_) | Value::Object(_) => None,
        }
    }
}

/// A geometry.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", content = "coordinates")]
pub enum Geometry {
    Point(Position),
    MultiPoint(Vec<Position>),
    LineString(Vec<Position>),
    MultiLineString(Vec<Vec<Position>>),
    Polygon(Vec<Vec<Position>>),
    MultiPolygon(Vec<Vec<Vec<Position>>>),
}

impl Geometry {
    /// Calls `each` with every position.
    pub(crate) fn each_position(&self, each: &mut impl FnMut(Position)) {
        match self {
            Self::Point(position) => each(*position),
            Self::MultiPoint(line) | Self::LineString(line) => {
                line.iter().for_each(|position| each(*position))
            }
            Self::MultiLineString(lines) | Self::Polygon(lines) => {
                lines.iter().flatten().for_each(|position| each(*position));
            }
            Self::MultiPolygon(polygons) => {
                polygons.iter().flatten().flatten().for_each(|position| each(*position));
            }
        }
    }
}

/// Degrees to add to a step in longitude so that it goes from one side of the antimeridian to the other by the shorter way.
/// From -180 to 180 in one step is all the way round, not no way at all.
pub(crate) fn turn_of(step: f64) -> f64 {
    if step.abs() > 180.0 && step.abs() < 360.0 { -360.0_f64.copysign(step) } else { 0.0 }
}

/// Longitude and latitude in degrees. More numbers, such as a height, are read and forgotten.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
#[schemars(description = "Longitude and latitude in degrees, and perhaps a height.", transform = allow_heights)]
pub struct Position(
    /// Longitude.
    pub f64,
    /// Latitude.
    pub f64,
);

fn allow_heights(schema: &mut schemars::Schema) {
    schema.remove("maxItems");
}

impl<'de> Deserialize<'de> for Position {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Numbers;
        impl<'de> Visitor<'de> for Numbers {
            type Value = Position;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a position: [longitude, latitude]")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut numbers: A) -> Result<Position, A::Error> {
                let too_short =
                    || de::Error::custom("A position is [longitude, latitude], and here is less than that.");
                let lon = numbers.next_element()?.ok_or_else(too_short)?;
                let lat = numbers.next_element()?.ok_or_else(too_short)?;
                while numbers.next_element::<de::IgnoredAny>()?.is_some() {}
                Ok(Position(lon, lat))
            }
        }
        deserializer.deserialize_seq(Numbers)
    }
}
