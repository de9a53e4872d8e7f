//! The way from places to the page: turn the globe, cut at the projection's edge, project, and bend lines where the
//! projection bends them.

use crate::draw::{Path, Pixel};
use crate::projection::{Edge, Place, Projection, Spot};
use crate::sphere::{self, Rotation, vector};

/// How far, in pixels, a straight line may stray from the curve it stands for.
const STRAY_MAX: f64 = 0.2;
/// Halvings of one segment; sixteen of them would make 65,536 of it.
const HALVINGS_MAX: u32 = 14;
/// Segments this short on the page and on the globe are straight whatever the projection.
const SHORT_PIXELS: f64 = 12.0;
const SHORT_ANGLE_COSINE: f64 = 0.999_96; // half a degree
/// Segments longer than this on the globe are looked at in any case: their middle may be on the line by chance.
const LONG_ANGLE_COSINE: f64 = 0.866; // thirty degrees
/// Pixels beyond this are all equally far off the page; larger numbers would lose the ones that matter.
const FAR: f64 = 1e6;

/// Where the map lies on the page.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Chart {
    pub(crate) projection: Projection,
    pub(crate) rotation: Rotation,
    /// Pixels for one radius of the globe.
    pub(crate) scale: f64,
    /// The pixel of the projection's middle.
    pub(crate) origin: [f64; 2],
    /// Pixels from (0, 0) to here are looked at closely; what lies far beyond is not.
    pub(crate) page: [f64; 2],
}

/// A place on its way: turned, with its pixel.
#[derive(Debug, Clone, Copy)]
struct Stop {
    place: Place,
    pixel: [f64; 2],
}

impl Chart {
    /// Where a place of the globe is on the page, if it is on the map at all.
    pub(crate) fn locate(&self, place: Place) -> Option<Pixel> {
        let turned = self.rotation.forward(place);
        if let Edge::Circle(radius) = self.projection.edge()
            && vector::from_place(turned)[0] <= libm::cos(radius)
        {
            return None;
        }
        let [south, north] = self.projection.lat_range();
        (south..=north).contains(&turned.lat).then(|| narrow(self.pixel(turned)))
    }

    /// Which place of the globe is at a pixel, if any.
    pub(crate) fn place_at(&self, pixel: Pixel) -> Option<Place> {
        let spot = Spot {
            x: (f64::from(pixel[0]) - self.origin[0]) / self.scale,
            y: (self.origin[1] - f64::from(pixel[1])) / self.scale,
        };
        let place = self.projection.inverse(spot)?;
        if let Edge::Circle(radius) = self.projection.edge()
            && vector::from_place(place)[0] < libm::cos(radius)
        {
            return None;
        }
        Some(self.rotation.inverse(place))
    }

    /// Adds a line of places of the globe, each joined to the next by a great circle.
    pub(crate) fn add_line(&self, line: &[Place], path: &mut Path) {
        let turned: Vec<Place> = line.iter().map(|place| self.rotation.forward(*place)).collect();
        for piece in sphere::cut_line(&turned, self.projection.edge()) {
            self.project(&piece, false, path);
        }
    }

    /// Adds a polygon of the globe, whose inside is to the right of its rings.
    pub(crate) fn add_polygon(&self, rings: &[Vec<Place>], path: &mut Path) {
        let turn = |ring: &Vec<Place>| ring.iter().map(|place| self.rotation.forward(*place)).collect();
        let turned: Vec<Vec<Place>> = rings.iter().map(turn).collect();
        for ring in sphere::cut_polygon(&turned, self.projection.edge()) {
            self.project(&ring, true, path);
        }
    }

    /// Adds the rim of the map.
    pub(crate) fn add_outline(&self, path: &mut Path) {
        self.project(&sphere::outline(self.projection.edge()), true, path);
    }

    fn project(&self, line: &[Place], is_closed: bool, path: &mut Path) {
        let Some(&first) = line.first() else { return };
        let mut pixels = Vec::with_capacity(line.len());
        let start = self.stop(first);
        pixels.push(narrow(start.pixel));
        let mut from = start;
        for &place in &line[1..] {
            let to = self.stop(place);
            self.bend(from, to, HALVINGS_MAX, &mut pixels);
            pixels.push(narrow(to.pixel));
            from = to;
        }
        if is_closed {
            self.bend(from, start, HALVINGS_MAX, &mut pixels);
        }
        path.add(pixels, is_closed);
    }

    fn stop(&self, place: Place) -> Stop {
        Stop { place, pixel: self.pixel(place) }
    }

    /// The pixel of a turned place.
    fn pixel(&self, place: Place) -> [f64; 2] {
        let [south, north] = self.projection.lat_range();
        let spot = self.projection.forward(Place { lon: place.lon, lat: place.lat.clamp(south, north) });
        let (x, y) = (self.origin[0] + self.scale * spot.x, self.origin[1] - self.scale * spot.y);
        [x.clamp(-FAR, FAR), y.clamp(-FAR, FAR)]
    }

    /// Adds pixels between two stops until straight lines between them will do.
    fn bend(&self, from: Stop, to: Stop, halvings: u32, out: &mut Vec<Pixel>) {
        let (dx, dy) = (to.pixel[0] - from.pixel[0], to.pixel[1] - from.pixel[1]);
        let square = dx * dx + dy * dy;
        if halvings == 0 || square < 4.0 * STRAY_MAX * STRAY_MAX || self.is_off_page(from, to) {
            return;
        }
        let (a, b) = (vector::from_place(from.place), vector::from_place(to.place));
        let cosine = vector::dot(a, b);
        if square < SHORT_PIXELS * SHORT_PIXELS && cosine > SHORT_ANGLE_COSINE {
            return;
        }
        let middle = self.stop(middle_of(from.place, to.place, vector::add(a, b)));
        let (mx, my) = (middle.pixel[0] - from.pixel[0], middle.pixel[1] - from.pixel[1]);
        let aside = (dy * mx - dx * my) * (dy * mx - dx * my) / square;
        let along = (dx * mx + dy * my) / square;
        if aside > STRAY_MAX * STRAY_MAX || (along - 0.5).abs() > 0.3 || cosine < LONG_ANGLE_COSINE {
            self.bend(from, middle, halvings - 1, out);
            out.push(narrow(middle.pixel));
            self.bend(middle, to, halvings - 1, out);
        }
    }

    /// Whether both ends lie so far off the same side of the page that no bend can bring the line back.
    fn is_off_page(&self, from: Stop, to: Stop) -> bool {
        let reach = (to.pixel[0] - from.pixel[0]).abs() + (to.pixel[1] - from.pixel[1]).abs() + 100.0;
        (0..2).any(|axis| {
            let (a, b) = (from.pixel[axis], to.pixel[axis]);
            a.max(b) < -reach || a.min(b) > self.page[axis] + reach
        })
    }
}

/// The place halfway along the great circle. On a meridian, and at a pole, it keeps the longitude's own halfway: that
/// is how lines along the cut edge are told apart.
fn middle_of(from: Place, to: Place, sum: vector::Vector) -> Place {
    let length = vector::length(sum);
    if length < 1e-9 {
        return Place { lon: (from.lon + to.lon) / 2.0, lat: (from.lat + to.lat) / 2.0 };
    }
    let middle = vector::to_place(sum);
    let is_at_pole = (sum[2] / length).abs() > 1.0 - 1e-12;
    if is_at_pole || (from.lon - to.lon).abs() < 1e-9 {
        return Place { lon: (from.lon + to.lon) / 2.0, lat: middle.lat };
    }
    middle
}

fn narrow(pixel: [f64; 2]) -> Pixel {
    [pixel[0] as f32, pixel[1] as f32]
}
