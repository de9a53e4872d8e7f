//! The shapes of points.

use crate::draw::{Path, Pixel};
use crate::spec::Marker;
use libm::{cosf, sinf};
use std::f32::consts::{PI, TAU};

/// Corners of a circle.
const ROUND: usize = 48;

/// Adds a marker of a size around a spot; a pin stands on it.
pub(super) fn add(marker: Marker, at: Pixel, size: f32, path: &mut Path) {
    let half = size / 2.0;
    let place = |[x, y]: [f32; 2]| [at[0] + x * half, at[1] + y * half];
    match marker {
        Marker::Circle => path.add(circle(1.0).map(place), true),
        Marker::Ring => {
            path.add(circle(1.0).map(place), true);
            path.add(circle(0.55).rev().map(place), true);
        }
        Marker::Square => {
            path.add([[-0.85, -0.85], [0.85, -0.85], [0.85, 0.85], [-0.85, 0.85]].map(place), true)
        }
        Marker::Diamond => path.add([[0.0, -1.1], [0.9, 0.0], [0.0, 1.1], [-0.9, 0.0]].map(place), true),
        Marker::Triangle => path.add([[0.0, -1.05], [1.0, 0.75], [-1.0, 0.75]].map(place), true),
        Marker::Star => path.add((0..10).map(star).map(place), true),
        Marker::Cross => path.add(CROSS.map(place), true),
        Marker::Pin => {
            let [x, y] = at;
            let pin = |[px, py]: [f32; 2]| [x + px * half, y + py * half];
            path.add(drop().map(pin), true);
            path.add(circle(0.38).rev().map(|[px, py]| pin([px, py - 1.9])), true);
        }
        Marker::Heart => path.add(heart().map(place), true),
    }
}

/// The spot that a marker's label keeps clear of, relative to the point, and how far it reaches from there.
pub(super) fn reach(marker: Marker, size: f32) -> (Pixel, f32) {
    match marker {
        Marker::Pin => ([0.0, -0.95 * size], 0.6 * size),
        _ => ([0.0, 0.0], 0.55 * size),
    }
}

fn circle(radius: f32) -> impl DoubleEndedIterator<Item = Pixel> {
    (0..ROUND).map(move |index| {
        let angle = index as f32 / ROUND as f32 * TAU;
        [radius * cosf(angle), radius * sinf(angle)]
    })
}

fn star(index: i32) -> Pixel {
    let radius = if index % 2 == 0 { 1.2 } else { 0.5 };
    let angle = index as f32 / 10.0 * TAU - PI / 2.0;
    [radius * cosf(angle), radius * sinf(angle)]
}

#[rustfmt::skip]
const CROSS: [Pixel; 12] = [
    [-0.3, -1.0], [0.3, -1.0], [0.3, -0.3], [1.0, -0.3], [1.0, 0.3], [0.3, 0.3],
    [0.3, 1.0], [-0.3, 1.0], [-0.3, 0.3], [-1.0, 0.3], [-1.0, -0.3], [-0.3, -0.3],
];

/// A pin's outline: its tip, and the round head around (0, -1.9) from where it is straight to the tip.
fn drop() -> impl Iterator<Item = Pixel> {
    const OPEN: f32 = 0.55;
    let head = (0..=ROUND).map(|index| {
        let angle = PI / 2.0 + OPEN + index as f32 / ROUND as f32 * (TAU - 2.0 * OPEN);
        [cosf(angle), sinf(angle) - 1.9]
    });
    std::iter::once([0.0, 0.0]).chain(head)
}

fn heart() -> impl Iterator<Item = Pixel> {
    (0..ROUND).map(|index| {
        let t = index as f32 / ROUND as f32 * TAU;
        let x = 16.0 * sinf(t) * sinf(t) * sinf(t);
        let y = 13.0 * cosf(t) - 5.0 * cosf(2.0 * t) - 2.0 * cosf(3.0 * t) - cosf(4.0 * t);
        [x / 15.0, -(y + 2.5) / 15.0]
    })
}
