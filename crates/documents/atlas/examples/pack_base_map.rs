//! Packs the base map: TopoJSON of countries in, the compact form that `src/base` reads out.
//!
//! ```console
//! cargo run -p ode-atlas --example pack_base_map -- ../shared/data/maps crates/documents/atlas/data
//! ```
//!
//! The form, all numbers as variable-length integers of seven bits a byte, signed ones zigzagged:
//! the quantisation (four 64-bit floats: scale and origin of longitude and latitude), the arcs (for each its kind, 0 for
//! coast and 1 for border, the number of its points, and their steps), the land (polygons of rings of arcs), the
//! countries (number, name, place of the label in thousandths of a degree, how far from every border that place is in
//! hundred-thousandths of a radian, and the area in millionths of a steradian).

use serde_json::Value;
use std::collections::HashMap;
use std::f64::consts::PI;
use std::path::Path;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let (Some(from), Some(to)) = (args.next(), args.next()) else {
        return Err("usage: pack_base_map FOLDER_WITH_TOPOJSON FOLDER_FOR_THE_RESULT".into());
    };
    for detail in ["110m", "50m", "10m"] {
        let text = std::fs::read_to_string(Path::new(&from).join(format!("countries-{detail}.json")))?;
        let packed =
            pack(&serde_json::from_str(&text)?).ok_or("the file is not the TopoJSON that was expected")?;
        println!("{detail}: {} bytes of JSON, {} packed", text.len(), packed.len());
        std::fs::write(Path::new(&to).join(format!("base-{detail}.bin")), packed)?;
    }
    Ok(())
}

/// Rings of arcs, a negative number meaning that the arc runs backwards, as in TopoJSON.
type Polygon = Vec<Vec<i64>>;

struct Country {
    number: u64,
    name: String,
    polygons: Vec<Polygon>,
}

fn pack(topology: &Value) -> Option<Vec<u8>> {
    let pair = |value: &Value| Some([value.get(0)?.as_f64()?, value.get(1)?.as_f64()?]);
    let (scale, origin) =
        (pair(&topology["transform"]["scale"])?, pair(&topology["transform"]["translate"])?);
    let steps = |arc: &Value| -> Option<Vec<[i64; 2]>> {
        arc.as_array()?.iter().map(|step| Some([step.get(0)?.as_i64()?, step.get(1)?.as_i64()?])).collect()
    };
    let arcs: Vec<Vec<[i64; 2]>> = topology["arcs"].as_array()?.iter().map(steps).collect::<Option<_>>()?;
    let land =
        geometries(&topology["objects"]["land"])?.into_iter().flat_map(|country| country.polygons).collect();
    let countries = geometries(&topology["objects"]["countries"])?;

    let mut out = Vec::new();
    [scale[0], scale[1], origin[0], origin[1]].iter().for_each(|value| out.extend(value.to_le_bytes()));
    put(&mut out, arcs.len() as u64);
    let uses = uses(&countries);
    for (index, arc) in arcs.iter().enumerate() {
        put(&mut out, u64::from(uses.get(&(index as i64)).is_some_and(|count| *count > 1)));
        put(&mut out, arc.len() as u64);
        arc.iter().flatten().for_each(|step| put_signed(&mut out, *step));
    }
    put_polygons(&mut out, &land);
    let places: Vec<Vec<[f64; 2]>> = arcs.iter().map(|arc| places(arc, scale, origin)).collect();
    put(&mut out, countries.len() as u64);
    for country in &countries {
        put(&mut out, country.number);
        put(&mut out, country.name.len() as u64);
        out.extend(country.name.as_bytes());
        let (label, depth, area) = label(country, &places);
        label.iter().for_each(|degrees| put_signed(&mut out, (degrees * 1000.0).round() as i64));
        put(&mut out, (depth.to_radians() * 1e5).max(0.0).round() as u64);
        put(&mut out, (area * 1e6).round() as u64);
        put_polygons(&mut out, &country.polygons);
    }
    Some(out)
}

fn geometries(object: &Value) -> Option<Vec<Country>> {
    object["geometries"]
        .as_array()?
        .iter()
        .filter(|geometry| !geometry["arcs"].is_null())
        .map(country)
        .collect()
}

fn country(geometry: &Value) -> Option<Country> {
    let ring = |ring: &Value| ring.as_array()?.iter().map(Value::as_i64).collect::<Option<Vec<i64>>>();
    let polygon = |polygon: &Value| polygon.as_array()?.iter().map(ring).collect::<Option<Polygon>>();
    let arcs = &geometry["arcs"];
    let polygons = match geometry["type"].as_str()? {
        "Polygon" => vec![polygon(arcs)?],
        _ => arcs.as_array()?.iter().map(polygon).collect::<Option<_>>()?,
    };
    let number = geometry["id"].as_str().and_then(|id| id.parse().ok()).unwrap_or(0);
    let name = geometry["properties"]["name"].as_str().unwrap_or_default().to_owned();
    Some(Country { number, name, polygons })
}

/// How many countries have each arc: a border has two.
fn uses(countries: &[Country]) -> HashMap<i64, usize> {
    let mut uses = HashMap::new();
    for arc in countries.iter().flat_map(|country| &country.polygons).flatten().flatten() {
        *uses.entry(if *arc < 0 { !arc } else { *arc }).or_default() += 1;
    }
    uses
}

fn put(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn put_signed(out: &mut Vec<u8>, value: i64) {
    put(out, ((value << 1) ^ (value >> 63)) as u64);
}

fn put_polygons(out: &mut Vec<u8>, polygons: &Vec<Polygon>) {
    put(out, polygons.len() as u64);
    for polygon in polygons {
        put(out, polygon.len() as u64);
        for ring in polygon {
            put(out, ring.len() as u64);
            ring.iter().for_each(|arc| put_signed(out, *arc));
        }
    }
}

fn places(arc: &[[i64; 2]], scale: [f64; 2], origin: [f64; 2]) -> Vec<[f64; 2]> {
    let mut at = [0, 0];
    arc.iter()
        .map(|step| {
            at = [at[0] + step[0], at[1] + step[1]];
            [at[0] as f64 * scale[0] + origin[0], at[1] as f64 * scale[1] + origin[1]]
        })
        .collect()
}

/// Where a country's name belongs, how much room there is, and how large the country is: the widest spot of its largest
/// polygon.
fn label(country: &Country, arcs: &[Vec<[f64; 2]>]) -> ([f64; 2], f64, f64) {
    let rings = country
        .polygons
        .iter()
        .map(|polygon| polygon.iter().map(|ring| unwrapped(ring, arcs)).collect::<Vec<_>>());
    let sized = rings.map(|rings| (area(&rings[0]), rings));
    let mut total = 0.0;
    let largest = sized.inspect(|(area, _)| total += area).max_by(|a, b| a.0.total_cmp(&b.0));
    let (label, depth) = largest.map_or(([0.0, 0.0], 0.0), |(_, rings)| widest(&rings));
    let lon = label[0] - (label[0] / 360.0).round() * 360.0;
    ([lon, label[1]], depth, total)
}

/// A ring without jumps at the antimeridian.
fn unwrapped(ring: &[i64], arcs: &[Vec<[f64; 2]>]) -> Vec<[f64; 2]> {
    let mut out: Vec<[f64; 2]> = Vec::new();
    for arc in ring {
        let points = &arcs[if *arc < 0 { !arc } else { *arc } as usize];
        let mut add = |point: &[f64; 2]| {
            let near = out.last().map_or(point[0], |last| last[0]);
            out.push([point[0] + ((near - point[0]) / 360.0).round() * 360.0, point[1]]);
        };
        if *arc < 0 { points.iter().rev().for_each(&mut add) } else { points.iter().for_each(&mut add) }
    }
    out
}

fn area(ring: &[[f64; 2]]) -> f64 {
    let edges = ring.iter().zip(ring.iter().cycle().skip(1));
    let sum: f64 = edges
        .map(|(a, b)| {
            (b[0] - a[0]).to_radians() * (2.0 + a[1].to_radians().sin() + b[1].to_radians().sin()) / 2.0
        })
        .sum();
    sum.abs().min((4.0 * PI - sum.abs()).abs())
}

/// The spot of a polygon that is furthest from its rings, found by ever finer grids. Degrees of longitude count as much
/// as they are long, and height twice as much as width, because names are wide.
fn widest(rings: &[Vec<[f64; 2]>]) -> ([f64; 2], f64) {
    let middle = rings[0].iter().map(|point| point[1]).sum::<f64>() / rings[0].len() as f64;
    let shrink = middle.to_radians().cos().max(0.1) / 2.0;
    let flat: Vec<Vec<[f64; 2]>> =
        rings.iter().map(|ring| ring.iter().map(|point| [point[0] * shrink, point[1]]).collect()).collect();
    let bounds = flat[0].iter().fold([f64::MAX, f64::MAX, f64::MIN, f64::MIN], |b, p| {
        [b[0].min(p[0]), b[1].min(p[1]), b[2].max(p[0]), b[3].max(p[1])]
    });
    let mut center = [(bounds[0] + bounds[2]) / 2.0, (bounds[1] + bounds[3]) / 2.0];
    let mut half = [(bounds[2] - bounds[0]) / 2.0, (bounds[3] - bounds[1]) / 2.0];
    let mut best = f64::MIN;
    for _ in 0..8 {
        let from = center;
        for i in -8..=8 {
            for j in -8..=8 {
                let spot = [from[0] + half[0] * f64::from(i) / 8.0, from[1] + half[1] * f64::from(j) / 8.0];
                let depth = depth(&flat, spot);
                if depth > best {
                    (best, center) = (depth, spot);
                }
            }
        }
        half = half.map(|side| side / 4.0);
    }
    ([center[0] / shrink, center[1]], best)
}

/// How far inside a polygon a spot is; negative outside.
fn depth(rings: &[Vec<[f64; 2]>], [x, y]: [f64; 2]) -> f64 {
    let mut is_inside = false;
    let mut nearest = f64::MAX;
    for ring in rings {
        for (a, b) in ring.iter().zip(ring.iter().cycle().skip(1)) {
            if (a[1] > y) != (b[1] > y) && x < (b[0] - a[0]) * (y - a[1]) / (b[1] - a[1]) + a[0] {
                is_inside = !is_inside;
            }
            let (dx, dy) = (b[0] - a[0], b[1] - a[1]);
            let square = dx * dx + dy * dy;
            let t = if square > 0.0 {
                (((x - a[0]) * dx + (y - a[1]) * dy) / square).clamp(0.0, 1.0)
            } else {
                0.0
            };
            nearest = nearest.min((x - a[0] - t * dx).hypot(y - a[1] - t * dy));
        }
    }
    if is_inside { nearest } else { -nearest }
}
