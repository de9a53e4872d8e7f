//! The projection, and which part of the world is shown.

use crate::projection::Name;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The projection and how the globe is turned.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct View {
    /// The projection.
    pub name: Name,
    /// Longitude and latitude, in degrees, of the place that the projection is centred on. A latitude other than 0 turns
    /// cylindrical, conic and oval maps into oblique ones. Where it is not given, it fits what is shown: the middle of a
    /// region for azimuthal maps, its meridian for the others.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub center: Option<[f64; 2]>,
    /// By how many degrees the globe is turned clockwise about that place.
    #[schemars(range(min = -180, max = 180))]
    pub roll: f64,
    /// For conic projections: the two latitudes where the cone touches the globe. Where they are not given, they fit what
    /// is shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parallels: Option<[f64; 2]>,
}

impl Default for View {
    fn default() -> Self {
        Self { name: Name::EqualEarth, center: None, roll: 0.0, parallels: None }
    }
}

/// Which part of the world is shown.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Extent {
    /// What is shown.
    pub show: Show,
    /// For `bbox`: west, south, east and north in degrees. A box whose west is greater than its east crosses the
    /// antimeridian.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bbox: Option<[f64; 4]>,
    /// For `around`: longitude and latitude of the middle.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub place: Option<[f64; 2]>,
    /// For `around`: how far it goes in every direction, in kilometres.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 10, max = 9000))]
    pub radius_km: Option<f64>,
}

impl Default for Extent {
    fn default() -> Self {
        Self { show: Show::World, bbox: None, place: None, radius_km: None }
    }
}

/// What is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Show {
    /// All that the projection can show.
    World,
    /// A box of longitudes and latitudes.
    Bbox,
    /// Everything in the layers.
    Features,
    /// A place and what is around it.
    Around,
}
