//! Mappings tried on documents: their own tests, a page to look at, two of them side by side.

use super::{Reader, about, home, located};
use crate::{Differences, Study};
use anyhow::{Context as _, bail};
use clap::Args;
use futures_util::StreamExt as _;
use ode_cli as output;
use ode_cli::files::{self, Existing};
use ode_invoice::{Mapping, Registry};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use tempfile::TempDir;

const TEST_EXAMPLES: &str = "\
Examples:
  ode mapping test acme.toml                  one file, whatever is beside it
  ode mapping test mappings/                  every file of a folder
  ode mapping test acme --mappings mappings   one mapping of a folder, by its name";

const PREVIEW_EXAMPLES: &str = "\
Examples:
  ode mapping preview invoice.pdf --out page.html
  ode mapping preview invoice.pdf --mapping generic_invoice_v1 --out page.html";

const DIFF_EXAMPLES: &str = "\
Examples:
  ode mapping diff generic_invoice_v1 acme_v1 *.pdf --mappings mappings

Ends with 0 if both read the same everywhere, with 1 if they do not or a document cannot be read.";

/// Which tests.
#[derive(Debug, Args)]
#[command(after_long_help = TEST_EXAMPLES)]
pub(super) struct Test {
    /// Mappings by name, by file or by folder; all that have tests, if none is given
    #[arg(value_name = "NAME|FILE|DIR")]
    names: Vec<OsString>,
}

/// What to draw, and where.
#[derive(Debug, Args)]
#[command(after_long_help = PREVIEW_EXAMPLES)]
pub(super) struct Preview {
    /// A PDF file
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// How to read it: a mapping's name, or auto for the one that fits best
    #[arg(long, value_name = "NAME", default_value = "auto")]
    mapping: String,
    /// The HTML page to write, or - for standard output
    #[arg(long, value_name = "PATH")]
    out: PathBuf,
    #[command(flatten)]
    existing: Existing,
}

/// What to compare.
#[derive(Debug, Args)]
#[command(after_long_help = DIFF_EXAMPLES)]
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
    for suite in suites(folder, args.names)? {
        let reader = Reader::new(suite.folder.as_deref())?;
        let run = |case: Case| {
            let (reader, path) = (&reader, suite.base.join(&case.file));
            async move {
                let study = Study::Test { mapping: case.mapping.clone(), expected: case.expected };
                (case.mapping, case.file, reader.ask::<Differences>(&path, study).await)
            }
        };
        let mut ended = futures_util::stream::iter(suite.cases).map(run).buffered(AT_ONCE);
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

/// Tests that share a folder of mappings.
struct Suite {
    folder: Option<PathBuf>,
    /// Where the documents are looked for.
    base: PathBuf,
    cases: Vec<Case>,
    /// Holds the folder, where it was made for this.
    _copy: Option<TempDir>,
}

/// The tests of what was named: of everything in the folder, if nothing was.
fn suites(folder: Option<PathBuf>, given: Vec<OsString>) -> anyhow::Result<Vec<Suite>> {
    if given.is_empty() {
        return Ok(vec![Suite::of_folder(folder, &[])?]);
    }
    let (mut names, mut suites) = (Vec::new(), Vec::new());
    for name in given {
        let path = Path::new(&name);
        let is_file =
            path.extension().is_some_and(|ending| ending == "toml") || path.components().count() > 1;
        if path.is_dir() {
            super::look::files_of(path)?;
            suites.push(Suite::of_folder(Some(path.to_owned()), &[])?);
        } else if is_file {
            suites.push(Suite::of_file(folder.as_deref(), path)?);
        } else {
            names.push(name.to_string_lossy().into_owned());
        }
    }
    if !names.is_empty() {
        suites.push(Suite::of_folder(folder, &names)?);
    }
    Ok(suites)
}

impl Suite {
    /// The mappings of these names, or all.
    fn of_folder(folder: Option<PathBuf>, names: &[String]) -> anyhow::Result<Self> {
        let loaded = crate::registry(folder.as_deref())?.current();
        let chosen: Vec<&Mapping> = match names {
            [] => loaded.list().map(|mapping| &**mapping).collect(),
            names => names.iter().map(|name| crate::named(&loaded, name)).collect::<anyhow::Result<_>>()?,
        };
        if !names.is_empty() {
            chosen.iter().for_each(|mapping| tell_if_untested(mapping));
        }
        let cases = chosen.into_iter().flat_map(cases).collect();
        Ok(Suite { base: folder.clone().unwrap_or_default(), folder, cases, _copy: None })
    }

    /// One file alone. What it extends may be beside it, so all that is sound there is copied with it to a folder of
    /// their own: what is wrong with the others must not keep it from being tested.
    fn of_file(folder: Option<&Path>, path: &Path) -> anyhow::Result<Self> {
        let text = super::text(path)?;
        let name = path.file_name().unwrap_or_default();
        let copy = tempfile::tempdir().context("Cannot make a temporary directory")?;
        let cannot = || format!("Cannot copy {} to a temporary directory", path.display());
        for other in sound_files(folder.unwrap_or_else(|| home(path)))? {
            let to = copy.path().join(other.file_name().unwrap_or_default());
            std::fs::copy(&other, to).with_context(cannot)?;
        }
        let own = copy.path().join(name).with_extension("toml");
        std::fs::write(&own, text).with_context(cannot)?;
        let source = own.file_name().unwrap_or_default().to_string_lossy();
        let options =
            ode_invoice::Options { folder: Some(copy.path().to_owned()), ..ode_invoice::Options::default() };
        let registry = match Registry::new(options) {
            Ok(registry) => registry,
            Err(mistakes) => {
                let mistakes = mistakes.into_iter().map(|mistake| match mistake.source == source {
                    true => located(mistake, path),
                    false => mistake.to_string(),
                });
                bail!("{}", mistakes.collect::<Vec<_>>().join("; "))
            }
        };
        let loaded = registry.current();
        let mapping = loaded.list().find(|mapping| mapping.source.as_deref() == Some(&*source));
        let mapping = mapping.with_context(|| format!("{} was not loaded", path.display()))?;
        tell_if_untested(mapping);
        let (folder, base) = (Some(copy.path().to_owned()), home(path).to_owned());
        Ok(Suite { folder, base, cases: cases(mapping).collect(), _copy: Some(copy) })
    }
}

/// The mapping files of a folder that have no mistakes.
fn sound_files(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let options = ode_invoice::Options { folder: Some(folder.to_owned()), ..ode_invoice::Options::default() };
    let Ok((registry, _)) = Registry::sound(options) else { return Ok(Vec::new()) };
    let loaded = registry.current();
    let sources = loaded.list().filter_map(|mapping| mapping.source.as_ref());
    Ok(sources.map(|source| folder.join(source)).collect())
}

fn tell_if_untested(mapping: &Mapping) {
    if mapping.tests().is_empty() {
        output::tell(format!("{} has no tests.", mapping.id));
    }
}

fn cases(mapping: &Mapping) -> impl Iterator<Item = Case> {
    mapping.tests().iter().map(|test| Case {
        mapping: mapping.id.clone(),
        file: test.file.clone(),
        expected: test.expect.iter().map(|(name, value)| (name.clone(), value.0.clone())).collect(),
    })
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
    let place = files::one_file("--out", &args.out)?;
    let loaded = crate::registry(folder)?.current();
    let mapping = (args.mapping != "auto").then_some(args.mapping);
    mapping.as_deref().map_or(Ok(()), |name| crate::named(&loaded, name).map(drop))?;
    args.existing.check(&place)?;
    let html: String = Reader::new(folder)?
        .ask(&args.file, Study::Preview { mapping })
        .await
        .map_err(|error| about(&args.file, &error))?;
    files::write(&place, html.as_bytes(), args.existing)?;
    Ok(ExitCode::SUCCESS)
}

pub(super) async fn diff(folder: Option<&Path>, args: Diff) -> anyhow::Result<ExitCode> {
    let loaded = crate::registry(folder)?.current();
    let (old, new) =
        (crate::named(&loaded, &args.old)?.id.clone(), crate::named(&loaded, &args.new)?.id.clone());
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
                let differ = match differences.len() {
                    1 => "1 value differs".to_owned(),
                    count => format!("{count} values differ"),
                };
                output::line(format!("{shown_file}: {differ} ({old} → {new})"))?;
                for (field, (a, b)) in &differences {
                    output::line(format!("  {field}: {} → {}", shown(a.as_deref()), shown(b.as_deref())))?;
                }
            }
            Err(error) => files::tell_about(&file, &output::sentence(&error)),
        }
    }
    Ok(if is_same { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
