//! Which mappings there are, and whether a file is one.

use crate::output::{self, Cell, Table};
use anyhow::Context as _;
use clap::Args;
use ode_extract::mapping::file::Status;
use ode_extract::mapping::{MatchTerm, MatchTerms};
use ode_extract::{Mapping, MappingError, Registry, tools};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// How to show them.
#[derive(Debug, Args)]
pub(super) struct List {
    /// Print JSON, for programs
    #[arg(long)]
    json: bool,
}

/// What to check.
#[derive(Debug, Args)]
pub(super) struct Lint {
    /// Mapping files; what they extend is looked for beside them, or in --mappings
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
}

pub(super) fn list(folder: Option<&Path>, args: &List) -> anyhow::Result<ExitCode> {
    let loaded = super::registry(folder)?.current();
    let places = folder.map(places).transpose()?.unwrap_or_default();
    let place = |mapping: &Mapping| {
        places.get(&mapping.id).map_or_else(|| "shipped".to_owned(), |path| path.display().to_string())
    };
    if args.json {
        let all: Vec<Value> = loaded.list().map(|mapping| as_json(mapping, &place(mapping))).collect();
        output::json(&json!({ "mappings": all }))?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut table = Table::new(["MAPPING", "STATUS", "KIND", "FROM", "MATCHES"]);
    for mapping in loaded.list() {
        table.row([
            mapping.id.as_str().into(),
            status(mapping.status).into(),
            mapping.kind.as_str().into(),
            place(mapping).into(),
            Cell::start(&matches(&mapping.terms), MATCHES_CHARS_MAX),
        ]);
    }
    table.print()?;
    Ok(ExitCode::SUCCESS)
}

/// Enough to know a layout by; `--json` has it all.
const MATCHES_CHARS_MAX: usize = 70;

fn as_json(mapping: &Mapping, place: &str) -> Value {
    let texts = |terms: &[MatchTerm]| terms.iter().map(|term| term.text.clone()).collect::<Vec<_>>();
    let terms = &mapping.terms;
    json!({
        "id": mapping.id, "name": mapping.name, "version": mapping.version, "status": status(mapping.status),
        "kind": mapping.kind, "about": mapping.about, "from": place, "tests": mapping.tests.len(),
        "match": {
            "all": texts(&terms.all), "any": texts(&terms.any), "none": texts(&terms.none),
            "min_any": terms.min_any, "fallback": terms.is_fallback,
        },
    })
}

fn status(status: Status) -> &'static str {
    match status {
        Status::Draft => "draft",
        Status::Canary => "canary",
        Status::Live => "live",
        Status::Retired => "retired",
    }
}

/// What a document must have on it, in short.
fn matches(terms: &MatchTerms) -> String {
    let list =
        |terms: &[MatchTerm]| terms.iter().map(|term| term.text.as_str()).collect::<Vec<_>>().join(", ");
    let mut parts = Vec::new();
    if !terms.all.is_empty() {
        parts.push(list(&terms.all));
    }
    if !terms.any.is_empty() {
        parts.push(format!("{} of: {}", terms.min_any, list(&terms.any)));
    }
    match (terms.is_fallback, parts.is_empty()) {
        (true, _) => "what no other matches".into(),
        (false, true) => "nothing; used by name".into(),
        (false, false) => parts.join("; "),
    }
}

/// The folder's files by the id that each gives itself; the last one wins, as it does when they are loaded.
fn places(folder: &Path) -> anyhow::Result<BTreeMap<String, PathBuf>> {
    let cannot = || format!("Cannot read {}", folder.display());
    let entries = std::fs::read_dir(folder).with_context(cannot)?;
    let mut paths =
        entries.map(|entry| Ok(entry?.path())).collect::<std::io::Result<Vec<_>>>().with_context(cannot)?;
    paths.retain(|path| path.extension().is_some_and(|ending| ending == "toml"));
    paths.sort();
    let ids = paths.into_iter().map(|path| Ok(id_of(&super::text(&path)?).map(|id| (id, path))));
    Ok(ids.collect::<anyhow::Result<Vec<_>>>()?.into_iter().flatten().collect())
}

/// The id that a mapping file gives itself. For files that load: their name and version are lines of their own
/// before the first table.
pub(super) fn id_of(text: &str) -> Option<String> {
    let head = text.lines().map(str::trim).take_while(|line| !line.starts_with('['));
    let pairs: BTreeMap<&str, &str> = head.filter_map(|line| line.split_once('=')).map(trimmed).collect();
    Some(format!("{}_v{}", pairs.get("name")?, pairs.get("version")?))
}

fn trimmed<'a>((key, value): (&'a str, &'a str)) -> (&'a str, &'a str) {
    let bare = |text: &'a str| text.trim().trim_matches(['"', '\'']);
    (bare(key), bare(value.split('#').next().unwrap_or_default()))
}

pub(super) fn lint(folder: Option<&Path>, args: &Lint) -> anyhow::Result<ExitCode> {
    let mut is_right = true;
    for path in &args.files {
        let told = output::printable(&path.display().to_string());
        match check(folder, path)? {
            Ok(remarks) if remarks.is_empty() => output::line(format!("{told}: no mistakes"))?,
            Ok(remarks) => {
                for remark in remarks {
                    output::line(format!("{told}: note: {}: {}", remark.about, remark.message))?;
                }
            }
            Err(mistake) => {
                is_right = false;
                output::line(output::printable(&located(mistake, path)))?;
            }
        }
    }
    Ok(if is_right { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Checks one file with those beside it, which it may extend. Their mistakes are not its own.
fn check(folder: Option<&Path>, path: &Path) -> anyhow::Result<Result<Vec<tools::Remark>, MappingError>> {
    let text = super::text(path)?;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let folder = folder.or_else(|| path.parent()).filter(|folder| !folder.as_os_str().is_empty());
    let folder = folder.unwrap_or(Path::new("."));
    let options = ode_extract::Options { folder: Some(folder.to_owned()), ..ode_extract::Options::default() };
    let is_member = folder.join(&*name).canonicalize().ok() == path.canonicalize().ok();
    Ok(match Registry::new(options) {
        Ok(registry) => tools::lint(&name, &text, &registry),
        Err(mistakes) if is_member => match mistakes.into_iter().find(|mistake| mistake.source == name) {
            Some(mistake) => Err(mistake),
            // Others there have mistakes. What it extends may be beside it, so it is only looked at for remarks.
            None => Ok(tools::lint(&name, &text, &Registry::shipped()).unwrap_or_default()),
        },
        Err(_) => tools::lint(&name, &text, &Registry::shipped()),
    })
}

/// A mistake as editors understand it: `file:line:column: what`.
fn located(mistake: MappingError, path: &Path) -> String {
    MappingError { source: path.display().to_string(), ..mistake }.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_tells_its_id() {
        fn check(text: &str, expected: Option<&str>) {
            assert_eq!(id_of(text).as_deref(), expected, "{text}");
        }
        check("schema = 1\nname = \"note\"\nversion = 2\n", Some("note_v2"));
        check("version=3 # the third\n  'name' = 'note'\n[fields.name]\nname = \"x\"", Some("note_v3"));
        check("name = \"note\"\n[match]\nversion = 1", None);
        check("", None);
    }
}
