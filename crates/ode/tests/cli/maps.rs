//! `ode maps`: a map from a file or a pipe, a preview of it, and what is told where it cannot be drawn.

use crate::harness::{Ode, Ran};
use serde_json::Value;
use std::io::Write as _;
use std::process::Stdio;

const MAP: &str = r#"{"schema": 1, "page": {"size": "A6", "dpi": 72}, "title": {"text": "Home"}}"#;

/// Width and height of a PNG.
fn size(png: &[u8]) -> [u32; 2] {
    assert_eq!(&png[..8], b"\x89PNG\r\n\x1a\n");
    [16, 20].map(|at| u32::from_be_bytes(png[at..at + 4].try_into().unwrap()))
}

#[test]
fn a_map_is_drawn_at_the_size_of_its_page_or_as_a_preview() {
    let ode = Ode::new();
    let (spec, out) = (ode.path("map.json"), ode.path("map.png"));
    std::fs::write(&spec, MAP).unwrap();
    let (spec, path) = (spec.to_str().unwrap(), out.to_str().unwrap());
    let told: Value = ode.json(["maps", "render", spec, "-o", path]);
    assert_eq!(size(&std::fs::read(&out).unwrap()), [298, 420]);
    assert_eq!((told["width"].as_u64(), told["height"].as_u64()), (Some(298), Some(420)), "{told}");
    assert_eq!(told["bytes"].as_u64(), Some(std::fs::metadata(&out).unwrap().len()), "{told}");
    let first = std::fs::read(&out).unwrap();
    ode.ok(["maps", "render", spec, "-o", path, "--threads", "3"]);
    assert_eq!(std::fs::read(&out).unwrap(), first, "threads changed the picture");
    ode.ok(["maps", "render", spec, "-o", path, "--preview", "100"]);
    assert_eq!(size(&std::fs::read(&out).unwrap()), [100, 141]);
}

#[test]
fn a_map_goes_through_pipes() {
    let ode = Ode::new();
    let mut command = ode.command(["maps", "render", "-", "-o", "-"]);
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(MAP.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert_eq!(size(&output.stdout), [298, 420]);
}

#[test]
fn what_cannot_be_drawn_is_told_with_its_place_and_leaves_no_file() {
    let ode = Ode::new();
    let (spec, out) = (ode.path("map.json"), ode.path("map.png"));
    let check = |json: &str, words: &[&str]| {
        std::fs::write(&spec, json).unwrap();
        ode.run(["maps", "render", spec.to_str().unwrap(), "-o", out.to_str().unwrap()])
            .assert_refused(words);
        assert!(!out.exists());
    };
    check("{", &["map.json cannot be drawn", "This is not JSON"]);
    check(r#"{"schema": 1, "page": {"dpi": 10}}"#, &["At page.dpi", "Use 36 to 600"]);
    check(r#"{"schema": 1, "projection": {"name": "globe"}}"#, &["At projection.name", "`orthographic`"]);
    let ran = ode.run(["maps", "render", "nowhere.json", "-o", out.to_str().unwrap()]);
    ran.assert_refused(&["nowhere.json cannot be read"]);
}

#[test]
fn the_schema_is_that_of_the_documentation() {
    let documented = include_str!("../../../../docs/map.schema.json");
    let printed: Value = serde_json::from_str(&Ode::new().ok(["maps", "schema"])).unwrap();
    assert_eq!(printed, serde_json::from_str::<Value>(documented).unwrap());
}

#[test]
fn a_poster_can_be_measured() {
    let ran = Ran::of(&mut Ode::new().command(["bench", "maps", "--size", "A6", "--repeat", "1"]));
    let told: Value = serde_json::from_str(&ran.stdout).unwrap_or_else(|_| panic!("{ran:?}"));
    assert_eq!(told["width"], 1240, "{told}");
}
