//! Whole maps: byte for byte the same whatever the threads, and pixel for pixel as the pictures in tests/pictures, which
//! were looked at when they were made. `ATLAS_UPDATE=1` makes them anew.

#![expect(clippy::unwrap_used, reason = "in a test, a panic at the place is the report")]

use ode_atlas::{Options, Spec, render};
use serde_json::{Value, json};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

fn draw(spec: &Spec, width: u32, threads: usize) -> Vec<u8> {
    let options = Options { threads: NonZeroUsize::new(threads).unwrap(), preview_width: Some(width) };
    let mut file = Vec::new();
    let rendered = render(spec, &options, &mut file).unwrap();
    assert_eq!(rendered.bytes, file.len() as u64);
    assert_eq!(rendered.width, width);
    file
}

fn pixels(file: &[u8]) -> Vec<u8> {
    let mut reader = png::Decoder::new(std::io::Cursor::new(file)).read_info().unwrap();
    let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
    reader.next_frame(&mut pixels).unwrap();
    pixels
}

fn specs() -> Vec<(String, Spec)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/pictures");
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|file| file.extension().is_some_and(|extension| extension == "json"));
    files.sort();
    let read = |file: PathBuf| {
        let name = file.file_stem().unwrap().to_string_lossy().into_owned();
        let spec =
            Spec::parse(&std::fs::read(&file).unwrap()).unwrap_or_else(|error| panic!("{name}: {error}"));
        (name, spec)
    };
    files.into_iter().map(read).collect()
}

#[test]
fn maps_look_as_they_did_when_they_were_looked_at() {
    let specs = specs();
    assert!(specs.len() >= 8, "only {} pictures", specs.len());
    for (name, spec) in specs {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/pictures/{name}.png"));
        let file = draw(&spec, 420, 2);
        if std::env::var_os("ATLAS_UPDATE").is_some() {
            std::fs::write(&path, &file).unwrap();
        }
        let reference = std::fs::read(&path)
            .unwrap_or_else(|_| panic!("{name}.png is missing; see the top of this file"));
        let (ours, theirs) = (pixels(&file), pixels(&reference));
        assert_eq!(ours.len(), theirs.len(), "{name} has another size");
        let differing = ours.iter().zip(&theirs).filter(|(a, b)| a != b).count();
        assert_eq!(differing, 0, "{name}: {differing} bytes of {} differ; look at both", ours.len());
    }
}

#[test]
fn the_number_of_threads_changes_no_byte() {
    for (name, spec) in specs().into_iter().take(3) {
        let alone = draw(&spec, 700, 1);
        for threads in [2, 3, 5, 16] {
            assert!(draw(&spec, 700, threads) == alone, "{name} with {threads} threads");
        }
    }
}

#[test]
fn a_page_has_the_pixels_that_its_size_promises() {
    let check = |page: &str, expected: [u32; 2]| {
        let json = format!(r#"{{"schema": 1, "page": {page}}}"#);
        let spec = Spec::parse(json.as_bytes()).unwrap_or_else(|error| panic!("{page}: {error}"));
        assert_eq!(spec.page.pixels(), expected, "{page}");
    };
    check(r#"{"size": "A4"}"#, [2480, 3508]);
    check(r#"{"size": "A3"}"#, [3508, 4961]);
    check(r#"{"size": "A2"}"#, [4961, 7016]);
    check(r#"{"size": "A1"}"#, [7016, 9933]);
    check(r#"{"size": "A0"}"#, [9933, 14043]);
    check(r#"{"size": "Letter"}"#, [2550, 3300]);
    check(r#"{"size": "Tabloid", "orientation": "landscape"}"#, [5100, 3300]);
    check(r#"{"size": "18x24"}"#, [5400, 7200]);
    check(r#"{"size": "24x36", "orientation": "landscape"}"#, [10800, 7200]);
    check(r#"{"size": "12x12", "dpi": 150}"#, [1800, 1800]);
    check(r#"{"size": {"width_mm": 254, "height_mm": 127}, "dpi": 100}"#, [500, 1000]);
    check(r#"{"size": "10x10", "bleed_mm": 3.175}"#, [3075, 3075]);
}

/// How much of a map of the world is red, as a share of the page: what a polygon fills, or without one all of the sea.
fn red(projection: &Value, rings: Option<Value>) -> f64 {
    let sea = if rings.is_some() { "#0000ff" } else { "#ff0000" };
    let polygon = |rings: Value| json!({ "type": "Feature", "properties": {}, "geometry": { "type": "Polygon", "coordinates": rings } });
    let features: Vec<Value> = rings.map(polygon).into_iter().collect();
    let spec = json!({
        "schema": 1, "page": { "size": "A5", "dpi": 72 }, "projection": projection, "style": { "colors": { "sea": sea } },
        "base": { "land": false, "borders": false, "graticule_deg": 0 },
        "layers": [{ "style": { "fill": "#ff0000", "width_mm": 0 },
            "data": { "type": "FeatureCollection", "features": features } }],
    });
    let drawn = pixels(&draw(&Spec::parse(spec.to_string().as_bytes()).unwrap(), 400, 1));
    let red = drawn.chunks(3).filter(|pixel| *pixel == [255, 0, 0]).count();
    red as f64 / (drawn.len() / 3) as f64
}

#[test]
fn a_polygon_of_all_the_world_with_a_hole_leaves_out_the_hole_alone() {
    let world = json!([[-180, -90], [180, -90], [180, 90], [-180, 90], [-180, -90]]);
    let hole = json!([[0, 10], [0, 60], [60, 60], [60, 10], [0, 10]]);
    let across = json!([[150, -40], [210, -40], [210, 40], [150, 40], [150, -40]]);
    let names =
        ["equirectangular", "equal-earth", "winkel-tripel", "orthographic", "azimuthal-equal-area", "albers"];
    // What is red at a rim is mixed with what is beside it.
    let is_near = |a: f64, b: f64| (a - b).abs() < 0.01;
    for center in [json!([0, 0]), json!([160, 20])] {
        for projection in names.map(|name| json!({ "name": name, "center": center })) {
            let (sea, whole) = (red(&projection, None), red(&projection, Some(json!([world]))));
            assert!(sea > 0.1 && is_near(sea, whole), "{projection}: {whole} of {sea}");
            for hole in [&hole, &across] {
                let mask = red(&projection, Some(json!([world, hole])));
                let left = red(&projection, Some(json!([hole])));
                assert!(is_near(whole, mask + left), "{projection} {hole}: {whole} is not {mask} and {left}");
            }
        }
    }
}
