//! Reads the compact form. It is our own data, made by our own tool and embedded: what does not fit is a bug.

use super::{Arc, Country, Polygon};
use crate::projection::Place;

/// From whole numbers to radians.
pub(super) struct Grid {
    scale: [f64; 2],
    origin: [f64; 2],
}

pub(super) struct Reader {
    rest: &'static [u8],
}

impl Reader {
    pub(super) fn new(bytes: &'static [u8]) -> Self {
        Self { rest: bytes }
    }

    pub(super) fn grid(&mut self) -> Grid {
        let [scale_lon, scale_lat, lon, lat] = [(); 4].map(|()| {
            let (value, rest) = self.rest.split_first_chunk().expect("the grid is four floats");
            self.rest = rest;
            f64::from_le_bytes(*value).to_radians()
        });
        Grid { scale: [scale_lon, scale_lat], origin: [lon, lat] }
    }

    pub(super) fn count(&mut self) -> usize {
        self.number() as usize
    }

    fn number(&mut self) -> u64 {
        let mut value = 0;
        let mut shift = 0;
        loop {
            let (&byte, rest) = self.rest.split_first().expect("the data end where they should");
            self.rest = rest;
            value |= u64::from(byte & 0x7F) << shift;
            if byte < 0x80 {
                return value;
            }
            shift += 7;
        }
    }

    fn signed(&mut self) -> i64 {
        let value = self.number();
        (value >> 1) as i64 ^ -((value & 1) as i64)
    }

    pub(super) fn arc(&mut self, grid: &Grid) -> Arc {
        let is_border = self.number() == 1;
        let mut at = [0, 0];
        let places = (0..self.count())
            .map(|_| {
                at = [at[0] + self.signed(), at[1] + self.signed()];
                Place {
                    lon: at[0] as f64 * grid.scale[0] + grid.origin[0],
                    lat: at[1] as f64 * grid.scale[1] + grid.origin[1],
                }
            })
            .collect();
        Arc { is_border, places }
    }

    pub(super) fn polygons(&mut self) -> Vec<Polygon> {
        let polygons = self.count();
        let ring = |reader: &mut Self| (0..reader.count()).map(|_| reader.signed()).collect();
        let polygon = |reader: &mut Self| (0..reader.count()).map(|_| ring(reader)).collect();
        (0..polygons).map(|_| polygon(self)).collect()
    }

    pub(super) fn country(&mut self) -> Country {
        // Its number in ISO 3166-1, for which there is no use yet.
        self.number();
        let (name, rest) = {
            let length = self.count();
            self.rest.split_at(length)
        };
        self.rest = rest;
        let name = String::from_utf8_lossy(name).into_owned();
        let label = Place::from_degrees(self.signed() as f64 / 1000.0, self.signed() as f64 / 1000.0);
        let depth = self.number() as f64 / 1e5;
        let area = self.number() as f64 / 1e6;
        Country { name, label, depth, area, polygons: self.polygons() }
    }
}
