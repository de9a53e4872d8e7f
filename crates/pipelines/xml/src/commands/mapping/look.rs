//! Which mappings there are, and whether a file is one.

use super::{home, located};
use anyhow::{Context as _, bail};
use clap::Args;
use ode_cli::{self as output, Cell, Table, WrongUse};
use ode_invoice::mapping::file::Status;
use ode_invoice::mapping::{MatchTerm, MatchTerms};
use ode_invoice::{Mapping, MappingError, Registry, tools};
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
    /// Mapping files, or folders of them; what they extend is looked for beside them, or in --mappings
    #[arg(required = true, value_name = "FILE|DIR")]
    files: Vec<PathBuf>,
}

pub(super) fn list(folder: Option<&Path>, args: &List) -> anyhow::Result<ExitCode> {
    let loaded = crate::registry(folder)?.current();
    let place = |mapping: &Mapping| match (folder, &mapping.source) {
        (Some(folder), Some(source)) => folder.join(source).display().to_string(),
        (None, _) | (_, None) => "shipped".to_owned(),
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
        "kind": mapping.kind, "about": mapping.about, "from": place, "tests": mapping.tests().len(),
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

pub(super) fn lint(folder: Option<&Path>, args: &Lint) -> anyhow::Result<ExitCode> {
    let mut shelves = BTreeMap::new();
    let mut is_right = true;
    for path in files(&args.files)? {
        let shelf = shelves.entry(folder.unwrap_or_else(|| home(&path)).to_owned());
        let shelf = shelf.or_insert_with_key(|folder| Shelf::of(folder));
        let told = output::printable(&path.display().to_string());
        match shelf.check(&path) {
            Ok(remarks) if remarks.is_empty() => output::line(format!("{told}: no mistakes"))?,
            Ok(remarks) => {
                for remark in remarks {
                    output::line(format!("{told}: note: {}: {}", remark.about, remark.message))?;
                }
            }
            Err(mistake) => {
                is_right = false;
                output::line(output::printable(&mistake))?;
            }
        }
    }
    Ok(if is_right { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The files that were named, and those of the folders that were.
fn files(given: &[PathBuf]) -> anyhow::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for path in given {
        match path.is_dir() {
            true => files.extend(files_of(path)?),
            false => files.push(path.clone()),
        }
    }
    Ok(files)
}

/// The mapping files of a folder.
pub(super) fn files_of(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let cannot = || format!("Cannot read {}", folder.display());
    let entries = std::fs::read_dir(folder).with_context(cannot)?;
    let mut files =
        entries.map(|entry| Ok(entry?.path())).collect::<std::io::Result<Vec<_>>>().with_context(cannot)?;
    files.retain(|path| path.extension().is_some_and(|ending| ending == "toml"));
    files.sort();
    if files.is_empty() {
        bail!(WrongUse(format!("There are no mappings (*.toml) in {}.", folder.display())));
    }
    Ok(files)
}

/// A folder as far as it is sound, and what is wrong with the rest.
struct Shelf {
    folder: PathBuf,
    registry: Registry,
    mistakes: Vec<MappingError>,
}

impl Shelf {
    fn of(folder: &Path) -> Self {
        let options =
            ode_invoice::Options { folder: Some(folder.to_owned()), ..ode_invoice::Options::default() };
        // Where there is no folder, there is nothing to extend but what ships.
        let (registry, mistakes) =
            Registry::sound(options).unwrap_or_else(|mistakes| (Registry::shipped(), mistakes));
        Shelf { folder: folder.to_owned(), registry, mistakes }
    }

    /// Checks one file, as if it were on this shelf. The mistakes of others are not its own.
    fn check(&self, path: &Path) -> Result<Vec<tools::Remark>, String> {
        let text = super::text(path).map_err(|error| output::sentence(&error))?;
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let is_member = self.folder.join(&*name).canonicalize().ok() == path.canonicalize().ok();
        let own = self.mistakes.iter().find(|mistake| is_member && mistake.source == name);
        match own {
            Some(mistake) => Err(located(mistake.clone(), path)),
            None => tools::lint(&name, &text, &self.registry).map_err(|mistake| located(mistake, path)),
        }
    }
}
