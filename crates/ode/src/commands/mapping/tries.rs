//! Mappings tried on documents: their own tests, a page to look at, two of them side by side.

use super::Reader;
use crate::commands::convert::{put, tell_about};
use crate::output;
use anyhow::Context as _;
use clap::Args;
use futures_util::StreamExt as _;
use ode_pipelines::xml::{Differences, Study};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Which tests.
#[derive(Debug, Args)]
pub(super) struct Test {
    /// Mappings by name or by file; all that have tests, if none is given
    #[arg(value_name = "NAME|FILE")]
    names: Vec<String>,
}

/// What to draw, and where.
#[derive(Debug, Args)]
pub(super) struct Preview {
    /// A PDF file
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// How to read it: a mapping's name, or auto for the one that fits best
    #[arg(long, value_name = "NAME", default_value = "auto")]
    mapping: String,
    /// The HTML page to write
    #[arg(long, value_name = "PATH")]
    out: PathBuf,
}

/// What to compare.
#[derive(Debug, Args)]
pub(super) struct Diff {
    /// A mapping's name
    #[arg(value_name = "MAPPING_A")]
    old: String,
    /// Another's
    #[arg(value_name = "MAPPING_B")]
    new: String,
    /// PDF files to read with both
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
}

/// One test of a mapping.
struct Case {
    mapping: String,
    file: String,
    expected: BTreeMap<String, String>,
}

pub(super) async fn test(folder: Option<PathBuf>, args: Test) -> anyhow::Result<ExitCode> {
    let (mut count, mut failures) = (0, 0);
    for (folder, names) in suites(folder, args.names)? {
        let cases = cases(folder.as_deref(), &names)?;
        let reader = Reader::new(folder.as_deref())?;
        let base = folder.unwrap_or_default();
        let run = |case: Case| {
            let (reader, path) = (&reader, base.join(&case.file));
            async move {
                let study = Study::Test { mapping: case.mapping.clone(), expected: case.expected };
                (case.mapping, case.file, reader.ask::<Differences>(&path, study).await)
            }
        };
        let mut ended = futures_util::stream::iter(cases).map(run).buffered(AT_ONCE);
        while let Some((mapping, file, outcome)) = ended.next().await {
            count += 1;
            failures += usize::from(!matches!(&outcome, Ok(differences) if differences.is_empty()));
            show_case(&format!("{mapping}  {file}"), &outcome)?;
        }
    }
    output::tell(match count {
        0 => "There are no tests. `ode mapping learn` writes mappings that have one.".to_owned(),
        _ => format!("{} of {count} passed", count - failures),
    });
    Ok(if failures == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Tests that are under way together; the reader lets only as many run as there are processors.
const AT_ONCE: usize = 16;

/// The mappings to test by the folder they are in; no names stand for all of the folder.
fn suites(
    folder: Option<PathBuf>,
    given: Vec<String>,
) -> anyhow::Result<BTreeMap<Option<PathBuf>, Vec<String>>> {
    if given.is_empty() {
        return Ok(BTreeMap::from([(folder, Vec::new())]));
    }
    let mut suites: BTreeMap<Option<PathBuf>, Vec<String>> = BTreeMap::new();
    for name in given {
        let path = Path::new(&name);
        let is_file = path.extension().is_some_and(|ending| ending == "toml") || name.contains('/');
        if !is_file {
            suites.entry(folder.clone()).or_default().push(name);
            continue;
        }
        let text = super::text(path)?;
        let home = path.parent().filter(|home| !home.as_os_str().is_empty()).unwrap_or(Path::new("."));
        // What does not load says so better than this.
        let id = super::look::id_of(&text);
        let names = suites.entry(Some(home.to_owned())).or_default();
        match id {
            Some(id) => names.push(id),
            None => {
                super::registry(Some(home))?;
                anyhow::bail!("{} does not say its name and version in its first lines.", path.display());
            }
        }
    }
    Ok(suites)
}

fn cases(folder: Option<&Path>, names: &[String]) -> anyhow::Result<Vec<Case>> {
    let loaded = super::registry(folder)?.current();
    let chosen = match names {
        [] => loaded.list().collect(),
        names => names.iter().map(|name| loaded.get(name)).collect::<Result<Vec<_>, _>>()?,
    };
    for mapping in chosen.iter().filter(|mapping| mapping.tests.is_empty() && !names.is_empty()) {
        output::tell(format!("{} has no tests.", mapping.id));
    }
    let cases = chosen.iter().flat_map(|mapping| mapping.tests.iter().map(|test| (&mapping.id, test)));
    let case = |(id, test): (&String, &ode_extract::mapping::file::TestFile)| Case {
        mapping: id.clone(),
        file: test.file.clone(),
        expected: test.expect.iter().map(|(name, value)| (name.clone(), value.0.clone())).collect(),
    };
    Ok(cases.map(case).collect())
}

fn show_case(title: &str, outcome: &anyhow::Result<Differences>) -> anyhow::Result<()> {
    let title = output::printable(title);
    match outcome {
        Ok(differences) if differences.is_empty() => output::line(format!("ok    {title}")),
        Ok(differences) => {
            output::line(format!("FAIL  {title}"))?;
            for (field, (expected, got)) in differences {
                let (expected, got) = (shown(expected.as_deref()), shown(got.as_deref()));
                output::line(format!("        {field}: expected {expected}, got {got}"))?;
            }
            Ok(())
        }
        Err(error) => output::line(format!("FAIL  {title}\n        {}", output::sentence(error))),
    }
}

/// A value as it may be shown.
fn shown(value: Option<&str>) -> String {
    value.map_or_else(|| "nothing".into(), |value| format!("\"{}\"", output::printable(value)))
}

pub(super) async fn preview(folder: Option<&Path>, args: Preview) -> anyhow::Result<ExitCode> {
    super::registry(folder)?;
    let mapping = (args.mapping != "auto").then_some(args.mapping);
    let html: String = Reader::new(folder)?
        .ask(&args.file, Study::Preview { mapping })
        .await
        .with_context(|| args.file.display().to_string())?;
    put(&args.out, html.as_bytes())?;
    Ok(ExitCode::SUCCESS)
}

pub(super) async fn diff(folder: Option<&Path>, args: Diff) -> anyhow::Result<ExitCode> {
    let loaded = super::registry(folder)?.current();
    let (old, new) = (loaded.get(&args.old)?.id.clone(), loaded.get(&args.new)?.id.clone());
    let reader = Reader::new(folder)?;
    let run = |file: PathBuf| {
        let (reader, study) = (&reader, Study::Diff { old: old.clone(), new: new.clone() });
        async move {
            let outcome: anyhow::Result<Differences> = reader.ask(&file, study).await;
            (file, outcome)
        }
    };
    let mut is_same = true;
    let mut ended = futures_util::stream::iter(args.files).map(run).buffered(AT_ONCE);
    while let Some((file, outcome)) = ended.next().await {
        is_same &= matches!(&outcome, Ok(differences) if differences.is_empty());
        let shown_file = output::printable(&file.display().to_string());
        match outcome {
            Ok(differences) if differences.is_empty() => output::line(format!("{shown_file}: the same"))?,
            Ok(differences) => {
                output::line(format!("{shown_file}: {} values differ ({old} → {new})", differences.len()))?;
                for (field, (a, b)) in &differences {
                    output::line(format!("  {field}: {} → {}", shown(a.as_deref()), shown(b.as_deref())))?;
                }
            }
            Err(error) => tell_about(&file, &output::sentence(&error)),
        }
    }
    Ok(if is_same { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
