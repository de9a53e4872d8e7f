//! The documents name only what exists: every relative link leads to a file, every test that
//! `docs/guarantees.md` calls a witness is a function of the file it names, and every test that
//! `docs/upload-service.md` names is one.

use std::fs;
use std::path::{Path, PathBuf};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../..");

#[test]
fn every_relative_link_leads_to_a_file() {
    let mut broken = Vec::new();
    let mut checked = 0;
    for page in pages() {
        let text = read(&page);
        for target in links(&text) {
            checked += 1;
            let file = target.split('#').next().unwrap_or_default();
            let place = page.parent().unwrap_or(Path::new(ROOT)).join(file);
            if !place.exists() {
                broken.push(format!("{}: {target}", page.display()));
            }
        }
    }
    assert!(broken.is_empty(), "these links lead nowhere:\n{}", broken.join("\n"));
    assert!(checked > 20, "only {checked} links were found: has their form changed?");
}

#[test]
fn every_path_of_a_crate_leads_somewhere() {
    let mut missing = Vec::new();
    let mut checked = 0;
    for page in pages() {
        // What was true once stays in the changelog as it was.
        if page.ends_with("CHANGELOG.md") {
            continue;
        }
        let text = read(&page);
        let paths = text.split(|c: char| !(c.is_ascii_alphanumeric() || "/_.-{}*".contains(c)));
        let paths = paths.filter(|path| {
            path.starts_with("crates/") && !path.contains(['{', '*']) && !path.contains("NAME")
        });
        for path in paths.map(|path| path.trim_end_matches(['.', '-'])) {
            checked += 1;
            if !Path::new(ROOT).join(path).exists() {
                missing.push(format!("{}: {path}", page.display()));
            }
        }
    }
    assert!(missing.is_empty(), "these are not there:\n{}", missing.join("\n"));
    assert!(checked > 50, "only {checked} paths were found: has their form changed?");
}

#[test]
fn every_test_that_vouches_for_a_guarantee_exists() {
    let text = read(&Path::new(ROOT).join("docs/guarantees.md"));
    let mut missing = Vec::new();
    let mut checked = 0;
    for paragraph in text.split("\n\n") {
        let mut source: Option<(&str, String)> = None;
        for span in code_spans(paragraph) {
            if is_test_file(span) {
                source = Some((span, read(&Path::new(ROOT).join(span))));
            } else if is_test_name(span) {
                checked += 1;
                match &source {
                    Some((_, code)) if code.contains(&format!("fn {span}(")) => {}
                    Some((file, _)) => missing.push(format!("{span} is not in {file}")),
                    None => missing.push(format!("{span} is named without the file it is in")),
                }
            }
        }
    }
    assert!(
        missing.is_empty(),
        "docs/guarantees.md calls on tests that are not there:\n{}",
        missing.join("\n")
    );
    assert!(checked > 20, "only {checked} tests were found: has their form changed?");
}

#[test]
fn every_test_that_vouches_for_the_upload_service_exists() {
    let root = Path::new(ROOT);
    let tests = below(root.join("crates"), "rs").into_iter().chain(below(root.join("tests/browser"), "mjs"));
    let tests: String = tests.map(|file| read(&file)).collect();
    let is_there =
        |name: &&str| tests.contains(&format!("fn {name}(")) || tests.contains(&format!("test(\"{name}\""));
    let text = read(&root.join("docs/upload-service.md"));
    let named: Vec<&str> =
        code_spans(&text).filter(|span| is_test_name(span) || is_browser_test_name(span)).collect();
    let missing: Vec<&&str> = named.iter().filter(|name| !is_there(name)).collect();
    assert!(missing.is_empty(), "docs/upload-service.md calls on tests that are not there: {missing:#?}");
    assert!(named.len() > 60, "only {} tests were found: has their form changed?", named.len());
}

/// The documents at the root, and everything below `docs`.
fn pages() -> Vec<PathBuf> {
    let root = Path::new(ROOT);
    let mut pages = below(root.join("docs"), "md");
    pages.extend(
        ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md"].map(|name| root.join(name)),
    );
    pages
}

/// The files below a folder whose names end like this. What the browser tests brought along is not ours.
fn below(folder: PathBuf, ending: &str) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut folders = vec![folder];
    while let Some(folder) = folders.pop() {
        let entries = fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
        for entry in entries {
            let path = entry.expect("an entry of a folder can be read").path();
            if path.is_dir() && !path.ends_with("node_modules") {
                folders.push(path);
            } else if path.extension().is_some_and(|found| found == ending) {
                files.push(path);
            }
        }
    }
    files
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{} cannot be read: {error}", path.display()))
}

/// The targets of `[text](target)` and `[name]: target` that are files of this repository.
fn links(text: &str) -> Vec<&str> {
    let mut targets = Vec::new();
    let mut is_fenced = false;
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            is_fenced = !is_fenced;
        }
        if is_fenced {
            continue;
        }
        let inline = line.split("](").skip(1).filter_map(|rest| rest.split(')').next());
        let defined =
            line.strip_prefix('[').and_then(|rest| rest.split_once("]: ")).map(|(_, target)| target);
        targets.extend(inline.chain(defined).map(str::trim));
    }
    let is_elsewhere = |target: &str| target.contains("://") || target.starts_with(['#', '<']);
    targets.retain(|target| !is_elsewhere(target) && !target.starts_with("mailto:"));
    targets
}

/// What stands between single backticks.
fn code_spans(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

fn is_test_file(span: &str) -> bool {
    span.starts_with("crates/") && span.ends_with(".rs")
}

/// Tests are named by sentences; nothing else on the page has as many words.
fn is_test_name(span: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    span.chars().all(is_plain) && span.matches('_').count() >= 3
}

/// In the browser they are sentences as they are spoken.
fn is_browser_test_name(span: &str) -> bool {
    span.matches(' ').count() >= 3 && !span.starts_with("ode ")
}
