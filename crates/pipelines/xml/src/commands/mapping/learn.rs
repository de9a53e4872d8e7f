//! A mapping from one document and what it says.

use super::{Reader, about};
use crate::Study;
use anyhow::{Context as _, anyhow, bail};
use clap::Args;
use ode_cli::files::{self, Existing, Place};
use ode_cli::{self as output, WrongUse};
use ode_invoice::learn::Learned;
use serde_json::Value;
use std::path::{Component, Path, PathBuf};
use std::process::ExitCode;

const EXAMPLES: &str = "\
Examples:
  ode mapping learn --pdf a.pdf --expect a.json --out acme.toml

a.json holds what the document says, as `ode convert a.pdf --to json --page-only` prints it, put
right where it is wrong:
  {
    \"invoice_number\": \"INV-1\", \"issue_date\": \"2026-03-05\", \"gross_total\": \"30.00\",
    \"lines\": [{ \"name\": \"Blue widget\", \"quantity\": \"2\", \"total\": \"20.00\" }]
  }

The mapping's test names the document by its place beside the mapping: move both together.";

/// From what, and where to.
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub(super) struct Learn {
    /// The document
    #[arg(long, value_name = "FILE")]
    pdf: PathBuf,
    /// What it says, as JSON: field names to values, `lines` to a list of rows; dates as 2026-03-05
    #[arg(long, value_name = "FILE")]
    expect: PathBuf,
    /// Name of the mapping: a-z, 0-9 and _ [default: the name of the file that is written]
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// The mapping file to write, or - for standard output
    #[arg(long, value_name = "PATH")]
    out: PathBuf,
    #[command(flatten)]
    existing: Existing,
}

pub(super) async fn learn(folder: Option<&Path>, args: Learn) -> anyhow::Result<ExitCode> {
    if args.out.canonicalize().is_ok_and(|out| args.expect.canonicalize().is_ok_and(|expect| expect == out)) {
        bail!("{} holds the expected values and is not replaced. Choose another place.", args.out.display());
    }
    let place = files::one_file("--out", &args.out)?;
    let name = match (args.name, &place) {
        (Some(name), _) => checked(name)?,
        (None, Place::File(path)) => name_of(path),
        (None, Place::Stdout) => {
            bail!(WrongUse("A mapping on standard output needs a name. Give it one with --name.".into()))
        }
    };
    args.existing.check(&place)?;
    crate::registry(folder)?;
    let expected = expected(&args.expect)?;
    let file = path_from(&args.out, &args.pdf)?;
    let study = Study::Learn { name: name.clone(), file, expected };
    let learned: Learned =
        Reader::new(folder)?.ask(&args.pdf, study).await.map_err(|error| about(&args.pdf, &error))?;
    files::write(&place, learned.text.as_bytes(), args.existing)?;
    tell(&name, &place, &learned);
    Ok(ExitCode::SUCCESS)
}

fn tell(name: &str, place: &Place, learned: &Learned) {
    let next = match place {
        Place::File(path) => format!("Try it with `ode mapping test {}`", path.display()),
        Place::Stdout => "Keep it in a file".to_owned(),
    };
    output::tell(format!(
        "{name}_v1 was written to {place}, as a draft. {next}, and set its status to live to have `auto` use it."
    ));
    let list = |what: &str, fields: &[String]| {
        if !fields.is_empty() {
            output::tell(format!("{what}: {}", fields.join(", ")));
        }
    };
    list("Own rules", &learned.own);
    list("Left to the generic mapping, which reads them rightly", &learned.generic);
    if let (right, count @ 1..) = learned.cells {
        output::tell(format!("Cells of the lines that come out as expected: {right} of {count}"));
    }
    list("Not learned", &learned.missed);
    if !learned.missed.is_empty() {
        output::tell("Its test leaves these out. Give them rules of their own, and add them to it.");
    }
}

fn checked(name: String) -> anyhow::Result<String> {
    let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    if name.is_empty() || !name.chars().all(is_plain) {
        bail!(WrongUse(format!("--name \"{name}\" may only hold a-z, 0-9 and _.")));
    }
    Ok(name)
}

/// The name of a mapping that is written to this file: `Acme Ltd_v1.toml` is for `acme_ltd`.
fn name_of(out: &Path) -> String {
    let stem = out.file_stem().unwrap_or_default().to_string_lossy().to_lowercase();
    let stem = match stem.rsplit_once("_v") {
        Some((name, version)) if !name.is_empty() && version.parse::<u32>().is_ok() => name,
        _ => &stem,
    };
    stem.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect()
}

fn expected(path: &Path) -> anyhow::Result<Value> {
    let told = path.display();
    let mut expected: Value =
        serde_json::from_str(&super::text(path)?).map_err(|error| anyhow!("{told} is not JSON: {error}"))?;
    let fields = expected.as_object_mut().with_context(|| {
        format!(
            "{told} is not an object of field names and values, such as {{\"invoice_number\": \"INV-1\"}}"
        )
    })?;
    // `ode convert --to json` says these about the document; they are not on it.
    for about in ["kind", "source", "findings"] {
        fields.remove(about);
    }
    let is_key = |name: &str| {
        !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-')
    };
    match fields.keys().find(|name| !is_key(name)) {
        Some(name) => bail!("{told}: the field name \"{name}\" may only hold letters, digits, _ and -."),
        None => Ok(expected),
    }
}

/// The document's path as seen from the mapping's folder, so that both can move together.
fn path_from(out: &Path, pdf: &Path) -> anyhow::Result<String> {
    let home = out.parent().filter(|home| !home.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let home = home.canonicalize().with_context(|| format!("Cannot write {}", out.display()))?;
    let pdf = pdf.canonicalize().with_context(|| format!("Cannot read {}", pdf.display()))?;
    Ok(relative(&home, &pdf).to_string_lossy().into_owned())
}

fn relative(home: &Path, path: &Path) -> PathBuf {
    let same = home.components().zip(path.components()).take_while(|(a, b)| a == b).count();
    let up = home.components().skip(same).map(|_| Component::ParentDir);
    up.chain(path.components().skip(same)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mapping_is_named_after_its_file() {
        fn check(out: &str, expected: &str) {
            assert_eq!(name_of(Path::new(out)), expected, "{out}");
        }
        check("acme.toml", "acme");
        check("dir/acme_v3.toml", "acme");
        check("Acme Ltd.toml", "acme_ltd");
        check("acme_very.toml", "acme_very");
        check("_v1.toml", "_v1");
    }

    #[test]
    fn a_path_is_seen_from_the_folder() {
        fn check(home: &str, path: &str, expected: &str) {
            assert_eq!(relative(Path::new(home), Path::new(path)), Path::new(expected), "{home} {path}");
        }
        check("/a/b", "/a/b/c.pdf", "c.pdf");
        check("/a/b", "/a/c/d.pdf", "../c/d.pdf");
        check("/", "/d.pdf", "d.pdf");
        check("/a/b", "/d.pdf", "../../d.pdf");
    }
}
