//! From the sphere to the plane and back: the formulas, on a sphere of radius 1, as PROJ has them.
//!
//! A formula knows the middle of its own map as longitude 0, latitude 0; turning the globe so that another place comes
//! there is [`crate::sphere::Rotation`]'s part, and cutting what cannot be shown is [`crate::sphere`]'s.

mod azimuthal;
mod conic;
mod cylindrical;
mod grinten;
mod lens;
mod newton;
mod oval;
mod robinson;
mod transverse;

use conic::Cone;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::f64::consts::{FRAC_PI_2, PI};

/// A place on the sphere, in radians.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Place {
    /// Longitude, east is positive.
    pub lon: f64,
    /// Latitude, north is positive.
    pub lat: f64,
}

impl Place {
    /// The place at a longitude and a latitude in degrees.
    pub fn from_degrees(lon: f64, lat: f64) -> Self {
        Self { lon: lon.to_radians(), lat: lat.to_radians() }
    }
}

/// A spot on the plane: the unit sphere's radius is 1, y grows upwards.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Spot {
    /// To the right.
    pub x: f64,
    /// Upwards.
    pub y: f64,
}

/// The projections, by the names that map specifications use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Name {
    Equirectangular,
    Mercator,
    TransverseMercator,
    Miller,
    GallStereographic,
    GallPeters,
    EqualEarth,
    NaturalEarth,
    NaturalEarth2,
    Robinson,
    WinkelTripel,
    Aitoff,
    Hammer,
    Mollweide,
    Sinusoidal,
    #[serde(rename = "eckert-4")]
    Eckert4,
    #[serde(rename = "kavrayskiy-7")]
    Kavrayskiy7,
    VanDerGrinten,
    Albers,
    LambertConformal,
    EquidistantConic,
    AzimuthalEqualArea,
    AzimuthalEquidistant,
    Orthographic,
    Stereographic,
    Gnomonic,
}

impl Name {
    /// Whether it is made by unrolling a cone.
    pub fn is_conic(self) -> bool {
        matches!(self, Name::Albers | Name::LambertConformal | Name::EquidistantConic)
    }
}

/// All of them, in the order of the documentation.
pub const NAMES: [Name; 26] = [
    Name::Equirectangular,
    Name::Mercator,
    Name::TransverseMercator,
    Name::Miller,
    Name::GallStereographic,
    Name::GallPeters,
    Name::EqualEarth,
    Name::NaturalEarth,
    Name::NaturalEarth2,
    Name::Robinson,
    Name::WinkelTripel,
    Name::Aitoff,
    Name::Hammer,
    Name::Mollweide,
    Name::Sinusoidal,
    Name::Eckert4,
    Name::Kavrayskiy7,
    Name::VanDerGrinten,
    Name::Albers,
    Name::LambertConformal,
    Name::EquidistantConic,
    Name::AzimuthalEqualArea,
    Name::AzimuthalEquidistant,
    Name::Orthographic,
    Name::Stereographic,
    Name::Gnomonic,
];

/// What a projection cannot show, and is cut away before it is asked.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Edge {
    /// The sphere is cut open along the meridian opposite the middle.
    Antimeridian,
    /// Only what is within this angle of the middle, in radians, is shown.
    Circle(f64),
}

/// A projection with its parameters.
#[derive(Debug, Clone, Copy)]
pub struct Projection {
    name: Name,
    cone: Cone,
}

/// The latitude where a Mercator map becomes a square; nearer to the poles it is cut.
const MERCATOR_LAT_MAX: f64 = 1.484_422_229_745_332_4;
/// A hair less than all, so that the place opposite the middle, which has no place on such a map, stays out.
const NEARLY_ALL: f64 = PI - 1e-3;
/// Beyond 142° a stereographic map shows little but its own stretching.
const STEREOGRAPHIC_RADIUS: f64 = 142.0 * PI / 180.0;
/// A gnomonic map grows without bound towards 90°.
const GNOMONIC_RADIUS: f64 = 60.0 * PI / 180.0;
/// So does a transverse Mercator map, more slowly.
const TRANSVERSE_RADIUS: f64 = 80.0 * PI / 180.0;
/// Just within the horizon.
const ORTHOGRAPHIC_RADIUS: f64 = FRAC_PI_2 - 1e-6;
/// How near a conformal cone may come to the pole that lies infinitely far away.
const CONFORMAL_LAT_MAX: f64 = 80.0 * PI / 180.0;

impl Projection {
    /// A projection; `parallels` are the latitudes in radians where a cone touches the globe, and are of no matter to
    /// the others. They must not lie opposite each other, or the cone would be a cylinder.
    pub fn new(name: Name, parallels: [f64; 2]) -> Self {
        Self { name, cone: Cone::new(name, parallels) }
    }

    pub fn name(&self) -> Name {
        self.name
    }

    /// What has to be cut away first.
    pub fn edge(&self) -> Edge {
        match self.name {
            Name::AzimuthalEqualArea | Name::AzimuthalEquidistant => Edge::Circle(NEARLY_ALL),
            Name::Orthographic => Edge::Circle(ORTHOGRAPHIC_RADIUS),
            Name::Stereographic => Edge::Circle(STEREOGRAPHIC_RADIUS),
            Name::Gnomonic => Edge::Circle(GNOMONIC_RADIUS),
            Name::TransverseMercator => Edge::Circle(TRANSVERSE_RADIUS),
            _ => Edge::Antimeridian,
        }
    }

    /// The southernmost and northernmost latitude that is shown; what lies beyond is drawn on that line.
    pub fn lat_range(&self) -> [f64; 2] {
        match self.name {
            Name::Mercator => [-MERCATOR_LAT_MAX, MERCATOR_LAT_MAX],
            Name::LambertConformal if self.cone.n > 0.0 => [-CONFORMAL_LAT_MAX, FRAC_PI_2],
            Name::LambertConformal => [-FRAC_PI_2, CONFORMAL_LAT_MAX],
            _ => [-FRAC_PI_2, FRAC_PI_2],
        }
    }

    /// Whether the middle of the map is a place rather than a line, so that turning the globe there is natural.
    pub fn is_azimuthal(&self) -> bool {
        matches!(self.edge(), Edge::Circle(_))
    }

    /// Where a place comes to lie. Places beyond the edge give spots that mean nothing.
    pub fn forward(&self, place: Place) -> Spot {
        match self.name {
            Name::Equirectangular => Spot { x: place.lon, y: place.lat },
            Name::Mercator => cylindrical::mercator(place),
            Name::Miller => cylindrical::miller(place),
            Name::GallStereographic => cylindrical::gall_stereographic(place),
            Name::GallPeters => cylindrical::gall_peters(place),
            Name::TransverseMercator => transverse::forward(place),
            Name::EqualEarth => oval::EQUAL_EARTH.forward(place),
            Name::NaturalEarth => oval::natural_earth(place),
            Name::NaturalEarth2 => oval::natural_earth_2(place),
            Name::Robinson => robinson::forward(place),
            Name::Mollweide => oval::mollweide(place),
            Name::Sinusoidal => Spot { x: place.lon * libm::cos(place.lat), y: place.lat },
            Name::Eckert4 => oval::eckert_4(place),
            Name::Kavrayskiy7 => oval::kavrayskiy_7(place),
            Name::WinkelTripel => lens::winkel_tripel(place),
            Name::Aitoff => lens::aitoff(place),
            Name::Hammer => lens::hammer(place),
            Name::VanDerGrinten => grinten::forward(place),
            Name::Albers => self.cone.albers(place),
            Name::LambertConformal => self.cone.conformal(place),
            Name::EquidistantConic => self.cone.equidistant(place),
            Name::AzimuthalEqualArea => azimuthal::equal_area(place),
            Name::AzimuthalEquidistant => azimuthal::equidistant(place),
            Name::Orthographic => azimuthal::orthographic(place),
            Name::Stereographic => azimuthal::stereographic(place),
            Name::Gnomonic => azimuthal::gnomonic(place),
        }
    }

    /// Which place lies at a spot; none where the map does not reach.
    pub fn inverse(&self, spot: Spot) -> Option<Place> {
        let place = match self.name {
            Name::Equirectangular => Some(Place { lon: spot.x, lat: spot.y }),
            Name::Mercator => cylindrical::mercator_inverse(spot),
            Name::Miller => cylindrical::miller_inverse(spot),
            Name::GallStereographic => cylindrical::gall_stereographic_inverse(spot),
            Name::GallPeters => cylindrical::gall_peters_inverse(spot),
            Name::TransverseMercator => transverse::inverse(spot),
            Name::EqualEarth => oval::EQUAL_EARTH.inverse(spot),
            Name::NaturalEarth => oval::natural_earth_inverse(spot),
            Name::NaturalEarth2 => oval::natural_earth_2_inverse(spot),
            Name::Robinson => robinson::inverse(spot),
            Name::Mollweide => oval::mollweide_inverse(spot),
            Name::Sinusoidal => oval::sinusoidal_inverse(spot),
            Name::Eckert4 => oval::eckert_4_inverse(spot),
            Name::Kavrayskiy7 => oval::kavrayskiy_7_inverse(spot),
            Name::WinkelTripel => lens::inverse(spot, lens::winkel_tripel),
            Name::Aitoff => lens::inverse(spot, lens::aitoff),
            Name::Hammer => lens::hammer_inverse(spot),
            Name::VanDerGrinten => grinten::inverse(spot),
            Name::Albers => self.cone.albers_inverse(spot),
            Name::LambertConformal => self.cone.conformal_inverse(spot),
            Name::EquidistantConic => self.cone.equidistant_inverse(spot),
            Name::AzimuthalEqualArea => azimuthal::equal_area_inverse(spot),
            Name::AzimuthalEquidistant => azimuthal::equidistant_inverse(spot),
            Name::Orthographic => azimuthal::orthographic_inverse(spot),
            Name::Stereographic => azimuthal::stereographic_inverse(spot),
            Name::Gnomonic => azimuthal::gnomonic_inverse(spot),
        };
        place.filter(|place| is_on_sphere(*place))
    }
}

/// Rounding may leave a place a hair beyond a pole or the antimeridian; what is further out is not on the map.
fn is_on_sphere(place: Place) -> bool {
    place.lat.abs() <= FRAC_PI_2 + 1e-9 && place.lon.abs() <= PI + 1e-9
}

/// The arc sine of a value that rounding may have pushed a hair past 1.
fn asin(value: f64) -> f64 {
    libm::asin(value.clamp(-1.0, 1.0))
}

/// The arc sine of a value that was computed: one that differs from 1 only by rounding is 1, or a pole and a horizon
/// would be missed by the root of that difference.
fn asin_rounded(value: f64) -> f64 {
    if value.abs() > 1.0 - 8.0 * f64::EPSILON { FRAC_PI_2.copysign(value) } else { libm::asin(value) }
}

/// Whether a sine or cosine can still be meant by `value`.
fn is_sine(value: f64) -> bool {
    value.abs() <= 1.0 + 1e-9
}
