//! Whole maps: byte for byte the same whatever the threads, and pixel for pixel as the pictures in tests/pictures, which
//! were looked at when they were made. `ATLAS_UPDATE=1` makes them anew.

#![expect(clippy::unwrap_used, reason = "in a test, a panic at the place is the report")]

use ode_atlas::{Options, Spec, render};
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
