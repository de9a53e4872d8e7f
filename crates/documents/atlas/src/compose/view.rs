//! Which part of the world is shown, and how it is laid onto the map's part of the page.

use super::sheet::Sheet;
use super::{Area, frame};
use crate::base::Detail;
use crate::chart::Chart;
use crate::draw::{Path, Window};
use crate::projection::{Place, Projection};
use crate::spec::{DetailChoice, Extent, Show, Spec};
use crate::sphere::{self, Rotation, vector};

const EARTH_KM: f64 = 6371.0;
/// Kilometres on a millimetre of paper, above which the coarse, and below which the fine base map is drawn.
const COARSE_KM: f64 = 150.0;
const FINE_KM: f64 = 30.0;
/// Room left around features and places, as a share of the map.
const PADDING: f64 = 0.06;
/// Points on each side of the grid that finds out how large a region is on the map.
const GRID: usize = 32;

/// What is told where nothing of the extent is on the side of the globe that the projection shows.
const HIDDEN: &str = "Nothing of the extent is on the map: seen from `projection.center`, it is on the far side of the globe. \
     Move that centre, or leave it out so that it follows the extent.";

/// The map on the page.
pub(super) struct View {
    pub(super) chart: Chart,
    /// The map's part of the page.
    pub(super) area: Area,
    /// Nothing of the map is drawn outside of it.
    pub(super) window: Window,
    /// Whether all of the world is shown, with its own rim instead of a frame.
    pub(super) is_world: bool,
    pub(super) detail: Detail,
}

impl View {
    pub(super) fn new(spec: &Spec, sheet: &Sheet, canvas: &mut super::Canvas<'_>) -> Self {
        let is_world = spec.extent.show == Show::World;
        let area = sheet.map.grown(-frame::overhang(canvas));
        let chart = fit(spec, area, canvas);
        let km_per_mm = EARTH_KM / (chart.scale / f64::from(canvas.mm));
        let detail = match spec.base.detail {
            DetailChoice::Fixed(detail) => detail,
            DetailChoice::Auto if km_per_mm > COARSE_KM => Detail::Coarse,
            DetailChoice::Auto if km_per_mm > FINE_KM => Detail::Medium,
            DetailChoice::Auto => Detail::Fine,
        };
        let window = if is_world {
            canvas.page()
        } else {
            Window {
                left: area.left.round().max(0.0) as u32,
                top: area.top.round().max(0.0) as u32,
                right: area.right.round().max(0.0) as u32,
                bottom: area.bottom.round().max(0.0) as u32,
            }
        };
        Self { chart, area, window, is_world, detail }
    }

    /// The window as other parts of the page are measured.
    pub(super) fn window_area(&self) -> Area {
        let Window { left, top, right, bottom } = self.window;
        Area { left: left as f32, top: top as f32, right: right as f32, bottom: bottom as f32 }
    }
}

/// Turns the globe and scales the map so that what is to be shown fills the area.
fn fit(spec: &Spec, area: Area, canvas: &mut super::Canvas<'_>) -> Chart {
    let region = region(spec);
    let projection = projection(spec, &region);
    let center = spec.projection.center.map(|[lon, lat]| Place::from_degrees(lon, lat));
    let center = center.unwrap_or_else(|| {
        let middle = sphere::middle(region.iter().copied()).unwrap_or_default();
        Place { lon: middle.lon, lat: if projection.is_azimuthal() { middle.lat } else { 0.0 } }
    });
    let rotation = Rotation::new(center, spec.projection.roll.to_radians());
    // A trial at a scale of its own, to see how much room it takes.
    const TRIAL: f64 = 1000.0;
    let mut chart = Chart { projection, rotation, scale: TRIAL, origin: [2e4, 2e4], page: [4e4, 4e4] };
    let mut bounds = [f64::MAX, f64::MAX, f64::MIN, f64::MIN];
    let mut include = |[x, y]: [f32; 2]| {
        let (x, y) = (f64::from(x) - 2e4, f64::from(y) - 2e4);
        bounds = [bounds[0].min(x), bounds[1].min(y), bounds[2].max(x), bounds[3].max(y)];
    };
    region.iter().filter_map(|place| chart.locate(*place)).for_each(&mut include);
    if region.is_empty() {
        let mut outline = Path::default();
        chart.add_outline(&mut outline);
        outline.lines().flat_map(|line| line.points).for_each(|point| include(*point));
    }
    let [left, top, right, bottom] = bounds;
    if left > right {
        canvas.warnings.push(HIDDEN.into());
    }
    let (width, height) = ((right - left).max(1e-6), (bottom - top).max(1e-6));
    let room = match spec.extent.show {
        Show::World | Show::Bbox => 1.0,
        Show::Features | Show::Around => 1.0 - 2.0 * PADDING,
    };
    let scale = (f64::from(area.width()) / width).min(f64::from(area.height()) / height) * room;
    // One place alone has no size; a tenth of the globe's radius around it is a map.
    let scale = scale.min(10.0 * f64::from(area.width().min(area.height())) / TRIAL);
    let middle = area.middle().map(f64::from);
    chart.scale = scale * TRIAL;
    chart.origin = [middle[0] - (left + right) / 2.0 * scale, middle[1] - (top + bottom) / 2.0 * scale];
    let page = canvas.page();
    chart.page = [f64::from(page.right), f64::from(page.bottom)];
    chart
}

/// Places that must all be on the map; none where it is the whole world.
fn region(spec: &Spec) -> Vec<Place> {
    let Extent { show, bbox, place, radius_km } = &spec.extent;
    match (show, bbox, place, radius_km) {
        (Show::Bbox, Some([west, south, east, north]), ..) => {
            let east = if east < west { east + 360.0 } else { *east };
            let share = |index: usize| index as f64 / GRID as f64;
            let at = |i: usize, j: usize| {
                Place::from_degrees(west + (east - west) * share(i), south + (north - south) * share(j))
            };
            (0..=GRID).flat_map(|i| (0..=GRID).map(move |j| at(i, j))).collect()
        }
        (Show::Around, _, Some([lon, lat]), Some(radius)) => {
            around(Place::from_degrees(*lon, *lat), radius / EARTH_KM)
        }
        (Show::Features, ..) => {
            let mut places = Vec::new();
            for feature in spec.layers.iter().flat_map(|layer| &layer.data.features) {
                if let Some(geometry) = &feature.geometry {
                    geometry.each_position(&mut |position| {
                        places.push(Place::from_degrees(position.0, position.1))
                    });
                }
            }
            places
        }
        _ => Vec::new(),
    }
}

/// A circle on the globe, and its middle.
fn around(place: Place, angle: f64) -> Vec<Place> {
    let turn = Rotation::new(place, 0.0);
    let rim = (0..GRID * 2).map(|index| {
        let direction = index as f64 / (GRID * 2) as f64 * std::f64::consts::TAU;
        let sine = libm::sin(angle);
        let there = [libm::cos(angle), sine * libm::sin(direction), sine * libm::cos(direction)];
        turn.inverse(vector::to_place(there))
    });
    std::iter::once(place).chain(rim).collect()
}

/// The projection; a cone's parallels, where they are not given, at a sixth of what is shown from either end.
fn projection(spec: &Spec, region: &[Place]) -> Projection {
    const USUAL: [f64; 2] = [20.0, 50.0];
    let parallels = spec.projection.parallels.map(|parallels| parallels.map(f64::to_radians));
    let parallels = parallels.unwrap_or_else(|| {
        let (south, north) = region
            .iter()
            .fold((f64::MAX, f64::MIN), |(south, north), place| (south.min(place.lat), north.max(place.lat)));
        let sixth = (north - south) / 6.0;
        let is_cone = south < north && (south + north).abs() > 0.2;
        if is_cone { [south + sixth, north - sixth] } else { USUAL.map(f64::to_radians) }
    });
    Projection::new(spec.projection.name, parallels)
}
