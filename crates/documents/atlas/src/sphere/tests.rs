use super::*;
use crate::base::{BaseMap, Detail};
use std::f64::consts::PI;

/// Edges that all land is cut at: the antimeridian, less and more than half of the sphere.
const EDGES: [Edge; 4] = [Edge::Antimeridian, Edge::Circle(0.8), Edge::Circle(PI / 2.0), Edge::Circle(2.5)];

fn rotations() -> impl Iterator<Item = Rotation> {
    let centers = [
        (0.0, 0.0),
        (10.0, 0.0),
        (-96.0, 0.0),
        (180.0, 0.0),
        (-30.0, 35.0),
        (100.0, 50.0),
        (0.0, 90.0),
        (0.0, -90.0),
        (151.2, -33.9),
        (-77.0, 4.0),
    ];
    centers
        .into_iter()
        .flat_map(|(lon, lat)| [0.0, 0.5].map(|roll| Rotation::new(Place::from_degrees(lon, lat), roll)))
}

fn turned(rings: &[Vec<Place>], rotation: &Rotation) -> Vec<Vec<Place>> {
    rings.iter().map(|ring| ring.iter().map(|place| rotation.forward(*place)).collect()).collect()
}

/// The area of rings with the inside to the right, holes and all. Edges along small circles are taken as they are drawn,
/// so that this is exact only up to the finely divided rim.
fn area_of(rings: &[Vec<Place>]) -> f64 {
    rings.iter().map(|ring| signed(area(ring))).sum()
}

/// Areas of holes come as nearly the whole sphere.
fn signed(area: f64) -> f64 {
    if area > 2.0 * PI { area - 4.0 * PI } else { area }
}

#[test]
fn cutting_at_the_antimeridian_keeps_the_area_of_all_land() {
    for detail in [Detail::Coarse, Detail::Medium, Detail::Fine] {
        let base = BaseMap::load(detail);
        let whole: f64 = base.land().map(|rings| area_of(&rings)).sum();
        for rotation in rotations() {
            let cut: f64 = base
                .land()
                .map(|rings| planar_area(&cut_polygon(&turned(&rings, &rotation), Edge::Antimeridian)))
                .sum();
            // Edges that bulge over a parallel are cut to chords by the planar sum, more so where they are long.
            assert!((cut / whole - 1.0).abs() < 0.01, "{detail:?}: {whole} became {cut} at {rotation:?}");
        }
    }
}

/// The area under rings in an equal-area cylindrical projection, where the cut sphere is a plain rectangle: a ring that
/// took the long way round would count as nearly all of it.
fn planar_area(rings: &[Vec<Place>]) -> f64 {
    let ring_area = |ring: &Vec<Place>| -> f64 {
        let next = ring.iter().cycle().skip(1);
        let edges = ring.iter().zip(next);
        edges.map(|(a, b)| (b.lon - a.lon) * (libm::sin(a.lat) + libm::sin(b.lat)) / 2.0).sum()
    };
    rings.iter().map(ring_area).sum()
}

#[test]
fn what_a_circle_cuts_off_is_what_the_other_side_shows() {
    let base = BaseMap::load(Detail::Coarse);
    let whole: f64 = base.land().map(|rings| area_of(&rings)).sum();
    for (lon, lat) in [(0.0, 0.0), (20.0, 70.0), (-100.0, 40.0), (135.0, -25.0), (0.0, -90.0)] {
        let here = Rotation::new(Place::from_degrees(lon, lat), 0.0);
        let there = Rotation::new(Place::from_degrees(lon + 180.0, -lat), 0.0);
        let seen = |rotation: &Rotation, radius: f64| -> f64 {
            base.land()
                .map(|rings| area_of(&cut_polygon(&turned(&rings, rotation), Edge::Circle(radius))))
                .sum()
        };
        for radius in [0.7, PI / 2.0, 2.0] {
            let sum = seen(&here, radius) + seen(&there, PI - radius);
            assert!((sum / whole - 1.0).abs() < 2e-3, "{whole} became {sum} at {lon}, {lat} and {radius}");
        }
    }
}

#[test]
fn nothing_that_is_cut_lies_beyond_the_edge() {
    let base = BaseMap::load(Detail::Coarse);
    for rotation in rotations() {
        for edge in EDGES {
            for rings in base.land() {
                for place in cut_polygon(&turned(&rings, &rotation), edge).into_iter().flatten() {
                    let is_in = match edge {
                        Edge::Antimeridian => place.lon.abs() <= PI + 1e-9,
                        Edge::Circle(radius) => vector::from_place(place)[0] >= libm::cos(radius) - 1e-9,
                    };
                    assert!(is_in, "{place:?} at {edge:?}");
                }
            }
        }
    }
}

#[test]
fn a_polygon_around_both_poles_contains_them() {
    // A strip along a meridian, over both poles and a little further.
    let east = (-85..=85).rev().map(|lat| (20.0, f64::from(lat)));
    let west = (-85..=85).map(|lat| (-20.0, f64::from(lat)));
    let over_north = [(-20.0, 89.0), (-160.0, 89.0), (160.0, 89.0), (20.0, 89.0)];
    let over_south = [(20.0, -89.0), (160.0, -89.0), (-160.0, -89.0), (-20.0, -89.0)];
    let ring: Vec<Place> = west
        .chain(over_north)
        .chain(east)
        .chain(over_south)
        .map(|(lon, lat)| Place::from_degrees(lon, lat))
        .collect();
    let rings = [ring];
    for (lon, lat, is_in) in
        [(0.0, -90.0, true), (0.0, 90.0, true), (0.0, 0.0, true), (180.0, 0.0, false), (90.0, 0.0, false)]
    {
        assert_eq!(polygon_contains(&rings, Place::from_degrees(lon, lat)), is_in, "{lon}, {lat}");
    }
}

#[test]
fn a_line_through_the_circle_is_cut_twice() {
    let line = [Place::from_degrees(-80.0, 5.0), Place::from_degrees(80.0, 5.0)];
    let pieces = cut_line(&line, Edge::Circle(0.5));
    assert_eq!(pieces.len(), 1);
    for end in [pieces[0][0], pieces[0][1]] {
        assert!((vector::angle([1.0, 0.0, 0.0], vector::from_place(end)) - 0.5).abs() < 1e-12, "{end:?}");
    }
}

#[test]
fn a_rotation_undoes_itself() {
    for rotation in rotations() {
        for (lon, lat) in [(0.0, 0.0), (123.4, 56.7), (-179.0, -88.0), (90.0, 12.0)] {
            let place = Place::from_degrees(lon, lat);
            let back = rotation.inverse(rotation.forward(place));
            let apart = vector::angle(vector::from_place(place), vector::from_place(back));
            assert!(apart < 1e-12, "{place:?} became {back:?}");
        }
    }
}

#[test]
fn rings_are_wound_so_that_the_smaller_side_is_inside() {
    let square = |side: f64| -> Vec<Place> {
        [(-side, -side), (side, -side), (side, side), (-side, side)]
            .map(|(lon, lat)| Place::from_degrees(lon, lat))
            .to_vec()
    };
    let mut rings = vec![square(20.0), square(5.0)];
    wind(&mut rings);
    assert!(polygon_contains(&rings, Place::from_degrees(10.0, 10.0)));
    assert!(!polygon_contains(&rings, Place::from_degrees(0.0, 0.0)), "the hole is outside");
    assert!(!polygon_contains(&rings, Place::from_degrees(100.0, 0.0)));
}
