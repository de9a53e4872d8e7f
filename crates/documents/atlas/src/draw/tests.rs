use super::*;
use std::sync::Arc;

fn picture(shapes: Vec<(Path, Brush)>) -> Picture {
    let window = Window { left: 0, top: 0, right: 40, bottom: 30 };
    let color = Color { rgb: 0xFFFFFF, alpha: 255 };
    let shapes =
        shapes.into_iter().map(|(path, brush)| Shape { path: Arc::new(path.finish()), brush, color, window });
    Picture { width: 40, height: 30, paper: 0, shapes: shapes.collect() }
}

fn path(lines: &[(&[Pixel], bool)]) -> Path {
    let mut path = Path::default();
    lines.iter().for_each(|(points, is_closed)| path.add(points.iter().copied(), *is_closed));
    path
}

/// The grey of every pixel, drawn in bands of so many rows.
fn pixels(picture: &Picture, band_rows: usize) -> Vec<u8> {
    let mut band = Band::new(picture);
    let mut out: Vec<u8> = Vec::new();
    for top in (0..30).step_by(band_rows) {
        let count = band_rows.min(30 - top);
        band.start(top as u32, count);
        for row in 0..count {
            match band.row(row) {
                Row::New(pixels) => out.extend(pixels.iter().map(|pixel| *pixel as u8)),
                Row::Same => out.extend_from_within(out.len() - 40..),
            }
        }
    }
    out
}

/// How much of the picture is covered, in pixels.
fn covered(picture: &Picture) -> f64 {
    pixels(picture, 30).iter().map(|grey| f64::from(*grey) / 255.0).sum()
}

fn check_area(what: &str, shapes: Vec<(Path, Brush)>, expected: f64) {
    let found = covered(&picture(shapes));
    // Round ends are drawn with corners, which takes a little away.
    assert!((found - expected).abs() < 0.03 * expected.max(10.0), "{what}: {found} instead of {expected}");
}

#[test]
fn shapes_cover_as_much_as_they_should() {
    let square: &[Pixel] = &[[3.25, 4.5], [13.25, 4.5], [13.25, 14.5], [3.25, 14.5]];
    check_area("a square", vec![(path(&[(square, true)]), Brush::Fill)], 100.0);
    let hole: &[Pixel] = &[[5.0, 6.0], [5.0, 10.0], [9.0, 10.0], [9.0, 6.0]];
    check_area("a square with a hole", vec![(path(&[(square, true), (hole, true)]), Brush::Fill)], 84.0);
    let beyond: &[Pixel] = &[[-100.0, -50.0], [20.0, -50.0], [20.0, 10.0], [-100.0, 10.0]];
    check_area("a square that leaves the page", vec![(path(&[(beyond, true)]), Brush::Fill)], 200.0);
    let right: &[Pixel] = &[[30.0, -50.0], [1e6, -50.0], [1e6, 1e6], [30.0, 1e6]];
    check_area("one that leaves it at the other side", vec![(path(&[(right, true)]), Brush::Fill)], 300.0);
    let across: &[Pixel] = &[[-40.0, -30.0], [80.0, 60.0], [-40.0, 60.0]];
    check_area("half of the page", vec![(path(&[(across, true)]), Brush::Fill)], 600.0);
    let line: &[Pixel] = &[[5.0, 10.0], [25.0, 10.0]];
    let round = std::f64::consts::PI * 4.0;
    check_area("a line with round ends", vec![(path(&[(line, false)]), Brush::Stroke(4.0))], 80.0 + round);
    let bent: &[Pixel] = &[[5.0, 5.0], [20.0, 5.0], [20.0, 20.0]];
    let corner = 120.0 - 4.0 + round + round / 4.0;
    check_area("a corner", vec![(path(&[(bent, false)]), Brush::Stroke(4.0))], corner);
    let dot: &[Pixel] = &[[10.0, 10.0]];
    check_area("a dot", vec![(path(&[(dot, true)]), Brush::Stroke(4.0))], round);
    let back: &[Pixel] = &[[5.0, 10.0], [25.0, 10.0], [5.0, 10.0]];
    check_area("there and back", vec![(path(&[(back, false)]), Brush::Stroke(4.0))], 80.0 + round);
}

/// Lines in all directions, short and long ones, from a simple generator of numbers.
fn scribble(count: usize) -> Vec<Pixel> {
    let mut state = 12_345_u32;
    let mut number = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) as f32 / (1 << 24) as f32
    };
    (0..count).map(|_| [number() * 60.0 - 10.0, number() * 50.0 - 10.0]).collect()
}

#[test]
fn bands_of_any_height_make_the_same_picture() {
    let points = scribble(200);
    let shapes =
        vec![(path(&[(&points, true)]), Brush::Fill), (path(&[(&points, false)]), Brush::Stroke(1.5))];
    let picture = picture(shapes);
    let whole = pixels(&picture, 30);
    for band_rows in [1, 7, 8, 16] {
        let found = pixels(&picture, band_rows);
        let worst = whole.iter().zip(&found).map(|(a, b)| a.abs_diff(*b)).max().unwrap_or(0);
        // Where an edge enters a band, its place is rounded.
        assert!(worst <= 1, "bands of {band_rows} rows differ by {worst}");
    }
}

#[test]
fn what_is_not_a_number_draws_nothing() {
    let broken: &[Pixel] = &[[f32::NAN, 1.0], [10.0, f32::NAN], [f32::INFINITY, 20.0]];
    covered(&picture(vec![
        (path(&[(broken, true)]), Brush::Fill),
        (path(&[(broken, false)]), Brush::Stroke(2.0)),
    ]));
}

#[test]
fn nothing_is_drawn_outside_the_window() {
    let all: &[Pixel] = &[[0.0, 0.0], [40.0, 0.0], [40.0, 30.0], [0.0, 30.0]];
    let mut picture = picture(vec![(path(&[(all, true)]), Brush::Fill)]);
    picture.shapes[0].window = Window { left: 10, top: 5, right: 20, bottom: 15 };
    assert_eq!(covered(&picture), 100.0);
}

#[test]
fn dashes_cover_their_share() {
    let line: &[Pixel] = &[[2.0, 10.0], [38.0, 10.0]];
    let dashes = dashed(&path(&[(line, false)]).finish(), 4.0, 5.0);
    assert_eq!(dashes.lines().count(), 4);
}

#[test]
fn a_crowd_of_shapes_is_drawn_as_the_one_that_they_make() {
    let mut crowd = Path::default();
    for number in 0..30_000 {
        let x = 3.0 + (number * 7 % 30) as f32;
        crowd.add([[x, 4.0], [x + 1.0, 4.0], [x + 1.0, 14.0], [x, 14.0]], true);
    }
    let one: &[Pixel] = &[[3.0, 4.0], [33.0, 4.0], [33.0, 14.0], [3.0, 14.0]];
    let behind: &[Pixel] = &[[0.5, 0.0], [20.0, 30.0], [39.5, 0.0]];
    let both = |front: Path| picture(vec![(path(&[(behind, true)]), Brush::Fill), (front, Brush::Fill)]);
    let (many, one) = (both(crowd), both(path(&[(one, true)])));
    for rows in [1, 7, 30] {
        assert!(pixels(&many, rows) == pixels(&one, rows), "in bands of {rows}");
    }
}
