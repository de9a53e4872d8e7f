//! Every projection against PROJ: tests/data/projections.json, made by tests/data/make_vectors.py.

use ode_atlas::projection::{NAMES, Name, Place, Projection, Spot};
use ode_atlas::sphere::Rotation;
use serde::Deserialize;

/// As near as both programs must be, in radii of the globe and in radians.
const TOLERANCE: f64 = 1e-9;

#[derive(Deserialize)]
struct Vectors {
    name: Name,
    center: [f64; 2],
    proj: String,
    rows: Vec<Vec<f64>>,
}

fn vectors() -> Vec<Vectors> {
    serde_json::from_str(include_str!("data/projections.json")).expect("the vectors are JSON")
}

fn projection(name: Name) -> Projection {
    let parallels: [f64; 2] = match name {
        Name::LambertConformal => [33.0, 45.0],
        Name::EquidistantConic => [-20.0, -50.0],
        _ => [29.5, 45.5],
    };
    Projection::new(name, parallels.map(f64::to_radians))
}

/// Whether two numbers agree; large ones, as far as their size allows.
fn agree(ours: f64, theirs: f64) -> bool {
    (ours - theirs).abs() <= TOLERANCE * theirs.abs().max(1.0)
}

#[test]
fn every_projection_is_where_proj_puts_it() {
    let mut wrong = Vec::new();
    for set in vectors() {
        let projection = projection(set.name);
        let rotation = Rotation::new(Place::from_degrees(set.center[0], set.center[1]), 0.0);
        for row in &set.rows {
            let turned = rotation.forward(Place::from_degrees(row[0], row[1]));
            let spot = projection.forward(turned);
            // Mercator's poles are infinitely far away, and how far that is in numbers is nobody's concern.
            let is_endless = set.name == Name::Mercator && row[1].abs() == 90.0;
            // PROJ's search for Mollweide's angle ends early at the poles, which are known without any search.
            let is_pole =
                set.name == Name::Mollweide && turned.lat.abs() > std::f64::consts::FRAC_PI_2 - 1e-9;
            if is_pole {
                assert!(agree(spot.x, 0.0) && agree(spot.y.abs(), std::f64::consts::SQRT_2), "{spot:?}");
                continue;
            }
            // A place on the cut lies at both edges of the map.
            let is_on_cut = turned.lon.abs() > std::f64::consts::PI - 1e-9;
            let same = |x: f64| agree(spot.x, x) && agree(spot.y, row[3]);
            let is_right = is_endless || same(row[2]) || (is_on_cut && same(-row[2]));
            if !is_right {
                wrong.push(format!("{} at {:?}: {spot:?}, PROJ has {:?}", set.proj, &row[..2], &row[2..4]));
            }
        }
    }
    assert!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn every_projection_finds_its_way_back_as_proj_does() {
    let mut wrong = Vec::new();
    for set in vectors().iter().filter(|set| set.center == [0.0, 0.0]) {
        let projection = projection(set.name);
        for row in set.rows.iter().filter(|row| row.len() == 6) {
            let Some(place) = projection.inverse(Spot { x: row[2], y: row[3] }) else {
                wrong.push(format!("{} at {:?}: nothing", set.proj, &row[2..4]));
                continue;
            };
            // Where PROJ's own search ends early, the place that it came from is what counts.
            let is_early = (row[5] - row[1]).abs().to_radians() > TOLERANCE;
            let theirs = if is_early {
                Place::from_degrees(row[0], row[1])
            } else {
                Place::from_degrees(row[4], row[5])
            };
            let (lon, lat) = (place.lon - theirs.lon, place.lat - theirs.lat);
            // At a pole every longitude is the same place, and just beside it lengths along the parallel are what
            // counts; the two ends of a parallel are the same place too.
            let lon =
                (lon - (lon / std::f64::consts::TAU).round() * std::f64::consts::TAU) * theirs.lat.cos();
            if lon.abs() > TOLERANCE || lat.abs() > TOLERANCE {
                wrong.push(format!("{} at {:?}: {place:?}, PROJ has {theirs:?}", set.proj, &row[2..4]));
            }
        }
    }
    assert!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn vectors_cover_every_projection() {
    let vectors = vectors();
    for name in NAMES {
        let rows = || vectors.iter().filter(|set| set.name == name).flat_map(|set| &set.rows);
        let (there, back) = (rows().count(), rows().filter(|row| row.len() == 6).count());
        assert!(there >= 60 && back >= 60, "{name:?} has {there} there and {back} back");
    }
}
