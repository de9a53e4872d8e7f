//! `ode convert --to html`: a folder of files or one file, and what is refused.

use crate::convert::Desk;
use serde_json::Value;

#[test]
fn html_is_a_folder_with_a_manifest_of_its_files() {
    let desk = Desk::with("a.pdf", "RE-1");
    desk.ok(["convert", "a.pdf", "--to", "html", "--out", "site"]);
    assert!(desk.read("site/index.html").contains("RE-1"));
    let manifest: Value = serde_json::from_str(&desk.read("site/manifest.json")).unwrap();
    let assets = manifest["assets"].as_array().unwrap();
    assert_eq!(assets[0]["path"], "index.html");
    for asset in assets {
        let file = std::fs::read(desk.path("site").join(asset["path"].as_str().unwrap())).unwrap();
        assert_eq!(asset["bytes"], file.len());
    }
}

#[test]
fn html_of_several_documents_is_a_folder_for_each_that_can_be_read() {
    let desk = Desk::with("a.pdf", "RE-1");
    desk.put("b.pdf", "%PDF-1.7 and nothing more");
    let ran = desk.run(["convert", "a.pdf", "b.pdf", "--to", "html", "--out", "site"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(desk.path("site/a/index.html").exists());
    assert!(!desk.path("site/b").exists(), "nothing is made for a document that gives nothing");
}

#[test]
fn html_in_one_file_goes_to_standard_output() {
    let desk = Desk::with("a.pdf", "RE-1");
    let html = desk.ok(["convert", "a.pdf", "--to", "html", "--single-file", "--zoom", "1.5"]);
    assert!(html.starts_with("<!DOCTYPE html>") && html.contains("--z:1.5"));
}

#[test]
fn options_that_would_have_no_effect_are_refused() {
    let desk = Desk::with("a.pdf", "RE-1");
    let check = |args: &[&str], said: &str| {
        let ran = desk.run([&["convert", "a.pdf"], args].concat());
        assert_eq!(ran.code, Some(2), "{ran:?}");
        assert!(ran.stderr.contains(said), "{ran:?}");
    };
    check(&["--zoom", "2"], "--zoom is about HTML");
    check(&["--to", "html", "--mapping", "auto", "--out", "site"], "--mapping is about values");
    check(&["--to", "html", "--out", "-"], "HTML is a folder of files");
    check(&["--to", "html", "--pages", "3-1", "--out", "site"], "is not a range of pages");
}
