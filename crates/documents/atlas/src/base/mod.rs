//! The base map: coasts, borders and countries of the world in three degrees of detail, embedded in a compact form that
//! `examples/pack_base_map.rs` makes and describes. Where the data come from is in `data/ORIGIN.md`.

mod reader;

use crate::projection::Place;
use reader::Reader;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

const COARSE: &[u8] = include_bytes!("../../data/base-110m.bin");
const MEDIUM: &[u8] = include_bytes!("../../data/base-50m.bin");
const FINE: &[u8] = include_bytes!("../../data/base-10m.bin");

/// How finely coasts and borders are drawn, by the scale they were made for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Detail {
    /// 1:110,000,000, for small pictures of the world.
    #[serde(rename = "110m")]
    Coarse,
    /// 1:50,000,000, for posters of the world and of continents.
    #[serde(rename = "50m")]
    Medium,
    /// 1:10,000,000, for countries and regions.
    #[serde(rename = "10m")]
    Fine,
}

/// A line of places; `is_border` tells borders from coasts.
#[derive(Debug)]
pub(crate) struct Arc {
    pub(crate) is_border: bool,
    pub(crate) places: Vec<Place>,
}

/// Rings of arcs: the number of each, negative and less one where it runs backwards.
type Polygon = Vec<Vec<i64>>;

#[derive(Debug)]
pub(crate) struct Country {
    pub(crate) name: String,
    /// Where its name belongs.
    pub(crate) label: Place,
    /// How far around that place it reaches at least, in radians: upwards and downwards, and twice as far to the sides.
    pub(crate) depth: f64,
    /// Its area in steradians.
    pub(crate) area: f64,
    polygons: Vec<Polygon>,
}

impl Country {
    /// The numbers of the arcs around it.
    pub(crate) fn arcs(&self) -> impl Iterator<Item = usize> {
        self.polygons.iter().flatten().flatten().map(|arc| if *arc < 0 { !arc } else { *arc } as usize)
    }
}

/// One degree of detail of the base map.
#[derive(Debug)]
pub(crate) struct BaseMap {
    pub(crate) arcs: Vec<Arc>,
    land: Vec<Polygon>,
    pub(crate) countries: Vec<Country>,
}

impl BaseMap {
    /// Reads the embedded data.
    pub(crate) fn load(detail: Detail) -> Self {
        let mut reader = Reader::new(match detail {
            Detail::Coarse => COARSE,
            Detail::Medium => MEDIUM,
            Detail::Fine => FINE,
        });
        let grid = reader.grid();
        let arcs = (0..reader.count()).map(|_| reader.arc(&grid)).collect();
        let land = reader.polygons();
        let countries = (0..reader.count()).map(|_| reader.country()).collect();
        Self { arcs, land, countries }
    }

    /// The land, polygon by polygon, each as rings with the inside to the right.
    pub(crate) fn land(&self) -> impl Iterator<Item = Vec<Vec<Place>>> {
        self.rings(&self.land)
    }

    pub(crate) fn land_of(&self, country: &Country) -> impl Iterator<Item = Vec<Vec<Place>>> {
        self.rings(&country.polygons)
    }

    fn rings(&self, polygons: &[Polygon]) -> impl Iterator<Item = Vec<Vec<Place>>> {
        polygons.iter().map(|polygon| polygon.iter().map(|ring| self.ring(ring)).collect())
    }

    /// A ring from its arcs, each of which begins where the one before ended.
    fn ring(&self, arcs: &[i64]) -> Vec<Place> {
        let mut ring = Vec::new();
        for &arc in arcs {
            let places = &self.arcs[if arc < 0 { !arc } else { arc } as usize].places;
            if arc < 0 {
                ring.extend(places.iter().rev())
            } else {
                ring.extend(places)
            }
            ring.pop();
        }
        ring
    }
}
