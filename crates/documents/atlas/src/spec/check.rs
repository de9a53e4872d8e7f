//! What the form of a specification alone does not say.

use super::geojson::{Collection, Feature, Geometry, Position, turn_of};
use super::{Layer, Page, SCHEMA, Show, Spec};
use crate::Error;
use crate::projection::NAMES;
use serde_json::json;
use std::ops::RangeInclusive;

/// Wider or higher pictures are refused by printers, and take long to draw.
const SIDE_PIXELS_MAX: u32 = 20_000;
/// Less cannot be looked at.
const SIDE_PIXELS_MIN: u32 = 16;
const LAYERS_MAX: usize = 50;
const FEATURES_MAX: usize = 50_000;
const POSITIONS_MAX: usize = 2_000_000;
/// All lines and polygons together, end to end, measured in degrees of longitude or latitude, whichever are more. Those of
/// all the world's flights of a day are far fewer; beyond it, nothing can be told apart any more and drawing takes minutes.
const ROUNDS_MAX: f64 = 10_000.0;
/// A marker is drawn with many corners.
const POINTS_MAX: usize = 50_000;
const TEXT_CHARS_MAX: usize = 200;
/// Twice as much as the globe has: lines across the antimeridian may go on counting.
const LON_MAX: f64 = 360.0;
/// A cone whose parallels lie opposite each other, or nearly so, is a cylinder.
const CONE_MIN: f64 = 1e-3;

pub(super) fn check(spec: &Spec) -> Result<(), Error> {
    if spec.schema != SCHEMA {
        let message = format!(
            "This is written in form {}, and only form {SCHEMA} is known. Write {SCHEMA}.",
            spec.schema
        );
        return Err(Error::spec("schema", message));
    }
    page(&spec.page)?;
    view(spec)?;
    extent(spec)?;
    range("base.graticule_deg", spec.base.graticule_deg, 0.0..=90.0)?;
    if spec.base.graticule_deg > 0.0 {
        range("base.graticule_deg", spec.base.graticule_deg, 1.0..=90.0)?;
    }
    let widths = &spec.style.widths_mm;
    let named = [
        ("coast", widths.coast),
        ("border", widths.border),
        ("graticule", widths.graticule),
        ("rim", widths.rim),
    ];
    for (name, width) in named {
        range(&format!("style.widths_mm.{name}"), width.unwrap_or(0.0), 0.0..=10.0)?;
    }
    let texts = [
        ("title.text", &spec.title.text),
        ("title.subtitle", &spec.title.subtitle),
        ("title.note", &spec.title.note),
        ("furniture.credit", &spec.furniture.credit),
    ];
    texts.into_iter().try_for_each(|(path, text)| length(path, text))?;
    layers(&spec.layers)
}

fn page(page: &Page) -> Result<(), Error> {
    range("page.dpi", page.dpi, 36.0..=600.0)?;
    range("page.bleed_mm", page.bleed_mm, 0.0..=25.0)?;
    range("page.margin_mm", page.margin_mm, 0.0..=100.0)?;
    let [width, height] = page.size.mm();
    range("page.size.width_mm", width, 20.0..=1700.0)?;
    range("page.size.height_mm", height, 20.0..=1700.0)?;
    if page.margin_mm * 3.0 > width.min(height) {
        let message = format!(
            "A margin of {} mm leaves too little of a paper {} mm wide. Use at most {:.1}.",
            page.margin_mm,
            width.min(height),
            width.min(height) / 3.0
        );
        return Err(Error::spec("page.margin_mm", message));
    }
    let side = page.pixels().into_iter().max().unwrap_or(0);
    if side > SIDE_PIXELS_MAX {
        let message = format!(
            "At {} dots per inch this page is {side} pixels long, and {SIDE_PIXELS_MAX} is the limit. Use at most {:.0}.",
            page.dpi,
            (page.dpi * f64::from(SIDE_PIXELS_MAX) / f64::from(side)).floor()
        );
        return Err(Error::spec("page.dpi", message));
    }
    if page.pixels().into_iter().any(|side| side < SIDE_PIXELS_MIN) {
        return Err(Error::spec(
            "page.size",
            format!("A side of less than {SIDE_PIXELS_MIN} pixels shows nothing. Use a larger page."),
        ));
    }
    Ok(())
}

fn view(spec: &Spec) -> Result<(), Error> {
    let view = &spec.projection;
    if let Some(center) = view.center {
        lon_lat("projection.center", center)?;
    }
    range("projection.roll", view.roll, -180.0..=180.0)?;
    let Some(parallels) = view.parallels else { return Ok(()) };
    if !view.name.is_conic() {
        let conic: Vec<String> =
            NAMES.iter().filter(|name| name.is_conic()).map(|name| json!(name).to_string()).collect();
        let message =
            format!("{} has no parallels. Take them out, or use {}.", json!(view.name), conic.join(" or "));
        return Err(Error::spec("projection.parallels", message));
    }
    for parallel in parallels {
        range("projection.parallels", parallel, -89.0..=89.0)?;
    }
    if (parallels[0] + parallels[1]).abs() < CONE_MIN.to_degrees() {
        let message = "Parallels as far south as north make a cylinder of the cone. Move one, or choose a cylindrical projection.";
        return Err(Error::spec("projection.parallels", message));
    }
    Ok(())
}

fn extent(spec: &Spec) -> Result<(), Error> {
    let extent = &spec.extent;
    let unused = [
        ("extent.bbox", extent.bbox.is_some(), Show::Bbox),
        ("extent.place", extent.place.is_some(), Show::Around),
        ("extent.radius_km", extent.radius_km.is_some(), Show::Around),
    ];
    for (path, is_given, show) in unused {
        let name = if show == Show::Bbox { "bbox" } else { "around" };
        if is_given && extent.show != show {
            return Err(Error::spec(
                path,
                format!("This counts only where `show` is \"{name}\". Set that, or take this out."),
            ));
        }
        if !is_given && extent.show == show {
            return Err(Error::spec(path, format!("To show \"{name}\" this is needed. Add it.")));
        }
    }
    if let Some([west, south, east, north]) = extent.bbox {
        lon_lat("extent.bbox", [west, south])?;
        lon_lat("extent.bbox", [east, north])?;
        if south >= north || west == east {
            let message = "The box is empty: it is [west, south, east, north], and south is less than north. Mend the order.";
            return Err(Error::spec("extent.bbox", message));
        }
    }
    if let Some(place) = extent.place {
        lon_lat("extent.place", place)?;
    }
    range("extent.radius_km", extent.radius_km.unwrap_or(10.0), 10.0..=9000.0)?;
    let has_positions =
        spec.layers.iter().flat_map(|layer| &layer.data.features).any(|feature| feature.geometry.is_some());
    if extent.show == Show::Features && !has_positions {
        let message = "No layer has anything to show. Add features, or show \"world\".";
        return Err(Error::spec("extent.show", message));
    }
    Ok(())
}

fn layers(layers: &[Layer]) -> Result<(), Error> {
    if layers.len() > LAYERS_MAX {
        let message = format!(
            "A map has at most {LAYERS_MAX} layers, and here are {}. Put some together.",
            layers.len()
        );
        return Err(Error::spec("layers", message));
    }
    let mut counted = Counted::default();
    for (index, layer) in layers.iter().enumerate() {
        let path = format!("layers[{index}]");
        length(&format!("{path}.name"), &layer.name)?;
        layer_style(&path, layer)?;
        counted.add(&format!("{path}.data."), &layer.data)?;
    }
    counted.check("layers", "All layers together have")
}

/// What holds for the features of one map.
pub(super) fn collection(collection: &Collection) -> Result<(), Error> {
    let mut counted = Counted::default();
    counted.add("", collection)?;
    counted.check("features", "Here are")
}

/// How much there is to draw.
#[derive(Default)]
struct Counted {
    features: usize,
    positions: usize,
    points: usize,
    degrees: f64,
}

impl Counted {
    fn add(&mut self, path: &str, collection: &Collection) -> Result<(), Error> {
        for (number, feature) in collection.features.iter().enumerate() {
            let count = feature_positions(&format!("{path}features[{number}]"), feature)?;
            let is_point = matches!(feature.geometry, Some(Geometry::Point(_) | Geometry::MultiPoint(_)));
            *if is_point { &mut self.points } else { &mut self.positions } += count;
            self.degrees += feature.geometry.as_ref().map_or(0.0, degrees);
        }
        self.features += collection.features.len();
        Ok(())
    }

    fn check(&self, path: &str, are: &str) -> Result<(), Error> {
        let Counted { features, positions, points, degrees } = self;
        let rounds = degrees / 360.0;
        if rounds > ROUNDS_MAX {
            let message = format!(
                "{are} lines and polygons that go {rounds:.0} times around the globe; {ROUNDS_MAX:.0} is the limit. Leave some \
                 out, or mend positions that jump to and fro."
            );
            return Err(Error::spec(path, message));
        }
        if *features <= FEATURES_MAX && *positions <= POSITIONS_MAX && *points <= POINTS_MAX {
            return Ok(());
        }
        let message = format!(
            "{are} {features} features, {points} points and {positions} positions of lines and polygons; the limits are \
             {FEATURES_MAX}, {POINTS_MAX} and {POSITIONS_MAX}. Simplify them."
        );
        Err(Error::spec(path, message))
    }
}

/// How far the lines and rings of a geometry go.
fn degrees(geometry: &Geometry) -> f64 {
    let step = |pair: &[Position]| {
        let (east, north) = (pair[1].0 - pair[0].0, pair[1].1 - pair[0].1);
        (east + turn_of(east)).abs().max(north.abs())
    };
    let length = |line: &Vec<Position>| line.windows(2).map(step).sum::<f64>();
    match geometry {
        Geometry::Point(_) | Geometry::MultiPoint(_) => 0.0,
        Geometry::LineString(line) => length(line),
        Geometry::MultiLineString(lines) | Geometry::Polygon(lines) => lines.iter().map(length).sum(),
        Geometry::MultiPolygon(polygons) => polygons.iter().flatten().map(length).sum(),
    }
}

fn layer_style(path: &str, layer: &Layer) -> Result<(), Error> {
    let style = &layer.style;
    range(&format!("{path}.style.width_mm"), style.width_mm, 0.0..=10.0)?;
    range(&format!("{path}.style.size_mm"), style.size_mm, 0.2..=50.0)?;
    range(&format!("{path}.style.label_pt"), style.label_pt, 3.0..=100.0)?;
    for length in style.dash_mm.into_iter().flatten() {
        range(&format!("{path}.style.dash_mm"), length, 0.1..=100.0)?;
    }
    Ok(())
}

/// Checks where a feature is and counts its positions.
fn feature_positions(path: &str, feature: &Feature) -> Result<usize, Error> {
    let Some(geometry) = &feature.geometry else { return Ok(0) };
    let mut count = 0;
    let mut wrong = None;
    geometry.each_position(&mut |Position(lon, lat)| {
        count += 1;
        if !(lon.abs() <= LON_MAX && lat.abs() <= 90.0) {
            wrong.get_or_insert([lon, lat]);
        }
    });
    if let Some([lon, lat]) = wrong {
        let range = if lat.abs() <= 90.0 {
            format!(
                "longitudes go from -{LON_MAX} to {LON_MAX}, for lines across the antimeridian beyond 180"
            )
        } else {
            "latitudes go from -90 to 90".to_owned()
        };
        let message = format!(
            "[{lon}, {lat}] is not a position: it is [longitude, latitude] in degrees, and {range}. Mend it, or bring the \
             data to WGS 84."
        );
        return Err(Error::spec(&format!("{path}.geometry.coordinates"), message));
    }
    let is_short = match geometry {
        Geometry::LineString(line) => line.len() < 2,
        Geometry::MultiLineString(lines) => lines.iter().any(|line| line.len() < 2),
        Geometry::Polygon(rings) => rings.iter().any(|ring| ring.len() < 4),
        Geometry::MultiPolygon(polygons) => polygons.iter().flatten().any(|ring| ring.len() < 4),
        Geometry::Point(_) | Geometry::MultiPoint(_) => false,
    };
    if is_short {
        let message = "A line has at least 2 positions and a ring at least 4, the last one equal to the first. Add what is missing.";
        return Err(Error::spec(&format!("{path}.geometry.coordinates"), message));
    }
    Ok(count)
}

fn range(path: &str, value: f64, range: RangeInclusive<f64>) -> Result<(), Error> {
    if range.contains(&value) {
        return Ok(());
    }
    // Of a number that is absurd, its digits tell nothing.
    let told = if value.abs() < 1e9 { value.to_string() } else { format!("{value:e}") };
    let message = format!("{told} is out of range. Use {} to {}.", range.start(), range.end());
    Err(Error::spec(path, message))
}

fn lon_lat(path: &str, [lon, lat]: [f64; 2]) -> Result<(), Error> {
    range(path, lon, -LON_MAX..=LON_MAX)?;
    range(path, lat, -90.0..=90.0)
}

fn length(path: &str, text: &str) -> Result<(), Error> {
    let count = text.chars().count();
    if count <= TEXT_CHARS_MAX {
        return Ok(());
    }
    Err(Error::spec(path, format!("{count} characters are too many. Use at most {TEXT_CHARS_MAX}.")))
}
