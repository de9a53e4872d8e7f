//! Engine and documents name no pipeline, and no pipeline depends on another.
//!
//! A crate of the engine that knows a pipeline by name is a place that somebody who adds one must find. What counts as
//! a name, in code and not in comments or tests: a pipeline's crate; its name or a lane's, as a whole literal of Rust or
//! of SQL; and a state that only it has, in the same way. Words that every machine may use, such as `failed`, do not.

use crate::PIPELINES;
use ode_job::{Event, Phase, Pipeline};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

const CRATES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");

/// Files in which a name stands for something else: a form of file, or a group of addresses.
const OTHER_MEANINGS: &[&str] = &[
    "documents/invoice/src/embedded/mod.rs",
    "documents/invoice/src/write/own.rs",
    "documents/pdf-html/src/lib.rs",
    "engine/http/src/jobs/download.rs",
    "engine/http/src/jobs/view.rs",
];

#[test]
fn engine_and_documents_name_no_pipeline() {
    let names = names();
    let mut found = Vec::new();
    for file in sources("engine").into_iter().chain(sources("documents")) {
        let path = file.strip_prefix(CRATES).unwrap().display().to_string();
        let code = code(&fs::read_to_string(&file).unwrap());
        let named: Vec<&str> =
            names.iter().flat_map(|name| whole(&code, name).map(move |()| name.as_str())).collect();
        if !named.is_empty() && !OTHER_MEANINGS.contains(&path.as_str()) {
            found.push(format!("{path}: {}", named.join(" ")));
        }
    }
    assert!(
        found.is_empty(),
        "These files name a pipeline. Ask the machine, or let the pipeline bring what is decided:\n{}",
        found.join("\n")
    );
}

#[test]
fn no_crate_below_the_pipelines_depends_on_one_and_no_pipeline_on_another() {
    let pipelines: Vec<String> = manifests("pipelines").iter().map(|manifest| package(manifest)).collect();
    assert!(pipelines.len() >= PIPELINES.len(), "{pipelines:?}");
    for group in ["engine", "documents", "pipelines"] {
        for manifest in manifests(group) {
            for dependency in dependencies(&manifest) {
                let is_pipeline = pipelines.contains(&dependency);
                assert!(!is_pipeline, "{} depends on {dependency}", package(&manifest));
            }
        }
    }
}

/// Pipelines bring their routes. The simulator and the demo site are servers of their own.
#[test]
fn only_the_http_crate_pipelines_and_servers_to_try_things_on_use_axum() {
    let may = ["ode-http", "ode-printful-sim", "ode-demo-site"];
    for group in ["engine", "documents", "testing"] {
        for manifest in manifests(group) {
            let name = package(&manifest);
            let uses_axum = dependencies(&manifest).iter().any(|dependency| dependency == "axum");
            assert!(!uses_axum || may.contains(&name.as_str()), "{name} depends on axum");
        }
    }
    let ode = Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml");
    assert!(!dependencies(&ode).contains(&"axum".to_owned()), "ode depends on axum");
}

/// Everything that counts as naming a pipeline.
fn names() -> BTreeSet<String> {
    let quoted = |name: &str| [format!("\"{name}\""), format!("'{name}'")];
    let mut names = BTreeSet::new();
    for pipeline in PIPELINES.iter().copied() {
        names.insert(format!("ode_{pipeline}"));
        names.extend(quoted(pipeline.as_str()));
        names.extend(pipeline.lanes().flat_map(|lane| quoted(lane.as_str())));
        names.extend(own_states(pipeline).flat_map(quoted));
    }
    names
}

/// States that no other pipeline has, and that are not the name of an event or a phase too.
fn own_states(pipeline: Pipeline) -> impl Iterator<Item = &'static str> {
    let states = pipeline.machine().states.iter().map(|standing| standing.state);
    let is_shared = move |state: &ode_job::State| {
        PIPELINES.iter().any(|other| *other != pipeline && other.standing(*state).is_some())
            || Event::ALL.iter().any(|event| event.as_str() == state.as_str())
            || Phase::ALL.iter().any(|phase| phase.as_str() == state.as_str())
    };
    states.filter(move |state| !is_shared(state)).map(ode_job::State::as_str)
}

/// Where a name stands by itself and not as a part of another.
fn whole(code: &str, name: &str) -> impl Iterator<Item = ()> {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    code.match_indices(name).filter_map(move |(at, _)| {
        let before = code[..at].chars().next_back().is_some_and(is_part) && !name.starts_with(['"', '\'']);
        let after = code[at + name.len()..].chars().next().is_some_and(is_part);
        (!before && !after).then_some(())
    })
}

/// A file of Rust or SQL without its comments and its tests.
fn code(text: &str) -> String {
    let tests = [
        "#[cfg(test)]\nmod tests {",
        "#[cfg(test)]\npub mod tests {",
        "#[cfg(test)]\npub(crate) mod tests {",
    ];
    let end = tests.iter().filter_map(|start| text.find(start)).min().unwrap_or(text.len());
    let is_comment = |line: &&str| ["//", "--"].iter().any(|start| line.trim_start().starts_with(start));
    let lines = text[..end].lines().filter(|line| !is_comment(line));
    lines.collect::<Vec<_>>().join("\n")
}

/// The sources of a group of crates, with their SQL and without modules that are compiled for tests only.
fn sources(group: &str) -> Vec<PathBuf> {
    let mut sources = Vec::new();
    for manifest in manifests(group) {
        let sql = [manifest.with_file_name("src"), manifest.with_file_name("migrations")];
        sources.extend(sql.iter().filter(|folder| folder.exists()).flat_map(|folder| files(folder, "sql")));
        let files = files(&manifest.with_file_name("src"), "rs");
        let texts: String = files.iter().map(|file| fs::read_to_string(file).unwrap()).collect();
        let is_tested = |file: &PathBuf| {
            let stem = file.file_stem().unwrap().to_string_lossy().into_owned();
            ["mod", "pub mod", "pub(crate) mod"]
                .iter()
                .any(|form| texts.contains(&format!("#[cfg(test)]\n{form} {stem};")))
        };
        sources.extend(files.into_iter().filter(|file| !is_tested(file)));
    }
    assert!(!sources.is_empty(), "{group} has no sources");
    sources
}

fn files(folder: &Path, wanted: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path, wanted));
        } else if path.extension().is_some_and(|extension| extension == wanted) {
            found.push(path);
        }
    }
    found
}

fn manifests(group: &str) -> Vec<PathBuf> {
    let crates = fs::read_dir(Path::new(CRATES).join(group)).unwrap();
    crates
        .map(|entry| entry.unwrap().path().join("Cargo.toml"))
        .filter(|manifest| manifest.exists())
        .collect()
}

fn package(manifest: &Path) -> String {
    let text = fs::read_to_string(manifest).unwrap();
    let name = text.lines().find_map(|line| line.strip_prefix("name = ")).unwrap();
    name.trim_matches('"').to_owned()
}

/// What a crate needs to be built. Tests may use what lies above them.
fn dependencies(manifest: &Path) -> Vec<String> {
    let text = fs::read_to_string(manifest).unwrap();
    let mut names = Vec::new();
    let mut is_needed = false;
    for line in text.lines() {
        if line.starts_with('[') {
            is_needed = line.ends_with("dependencies]") && !line.contains("dev-dependencies");
        } else if is_needed {
            let end = line.find(['.', ' ', '=']).unwrap_or(line.len());
            names.push(line[..end].to_owned());
        }
    }
    names
}
