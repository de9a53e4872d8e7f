//! `ode convert --to html`: a folder of files or one file, and what is refused.

use crate::convert::Desk;
use ode_testing::pdf::damage;
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

#[test]
fn values_that_make_no_sense_are_refused_in_a_sentence() {
    let desk = Desk::with("a.pdf", "RE-1");
    let check = |args: &[&str], code: i32, said: &str| {
        let ran = desk.run([&["convert", "a.pdf", "--to", "html", "--out", "site"], args].concat());
        assert_eq!(ran.code, Some(code), "{ran:?}");
        assert!(ran.stderr.contains(said), "{ran:?}");
        assert!(!desk.path("site").exists(), "nothing is written");
    };
    for zoom in ["large", "0", "nan", "11"] {
        check(&["--zoom", zoom], 2, "choose a number from 0.1 to 10");
    }
    check(&["--embed-fonts", "maybe"], 2, "'maybe'");
    check(&["--pages", "one"], 2, "is not a range of pages");
    check(&["--pages", "0"], 2, "is not a range of pages");
    check(&["--pages", "7-9"], 1, "none of its pages is in the range 7-9");
}

/// Documents that are damaged, and copies of each.
const DOCUMENTS: usize = 16;
const COPIES: u64 = 2;

#[test]
fn damaged_documents_end_in_html_or_a_sentence_and_never_take_the_child_down() {
    let (desk, seed) = (Desk::new(), damage::seed());
    let documents = damage::documents(DOCUMENTS);
    if documents.is_empty() {
        return;
    }
    for (number, path) in documents.iter().enumerate() {
        let bytes = std::fs::read(path).unwrap();
        for copy in 1..=COPIES {
            desk.put(&format!("in/{number}-{copy}.pdf"), damage::damaged(&bytes, seed + copy));
        }
    }
    let ran = desk.run(["convert", "in", "--to", "html", "--out", "out"]);
    assert!(matches!(ran.code, Some(0 | 1)), "{ran:?}");
    assert!(!ran.stderr.contains("made the reader fail"), "{ran:?}");
    let limits = ode_pdf_html::Limits::default();
    for name in desk.names("in") {
        let size_in = std::fs::metadata(desk.path("in").join(&name)).unwrap().len() as usize;
        let page = desk.path("out").join(name.trim_end_matches(".pdf")).join("manifest.json");
        if let Ok(manifest) = std::fs::read_to_string(page) {
            let manifest: ode_pdf_html::Manifest = serde_json::from_str(&manifest).unwrap();
            let size: usize = manifest.assets.iter().map(|asset| asset.bytes).sum();
            assert!(size <= limits.output_bytes_max(size_in), "{name} gives {size} bytes");
        } else {
            assert!(ran.stderr.contains(&name), "{name} gives nothing, and nobody says why: {ran:?}");
        }
    }
}
