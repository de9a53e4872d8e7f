//! `ode mapping`: looking at mappings, trying them on documents, and making new ones. A document comes from outside,
//! so every one is read in a child, as for a conversion.

mod learn;
mod look;
mod tries;

use crate::{Converter, Options, Study};
use anyhow::{anyhow, bail};
use clap::{Parser, Subcommand};
use ode_child::PoolOptions;
use ode_invoice::MappingError;
use ode_job::{ErrorCode, Failure};
use ode_pipeline::Call;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Look at mappings, try them, and make new ones
#[derive(Debug, Parser)]
#[command(after_long_help = EXAMPLES)]
pub(super) struct MappingCommand {
    #[command(subcommand)]
    verb: Verb,
    /// Folder with mappings beside those that ship
    #[arg(long, global = true, env = "ODE_MAPPINGS", value_name = "DIR")]
    mappings: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// List the mappings, where they are from and what they match
    List(look::List),
    /// Check mapping files for mistakes
    Lint(look::Lint),
    /// Run the tests inside mapping files
    Test(tries::Test),
    /// Draw a box around every value that a mapping reads, as an HTML page
    Preview(tries::Preview),
    /// Write a mapping, with its test, from a document and the values it should give
    Learn(learn::Learn),
    /// Show which fields two mappings read differently
    Diff(tries::Diff),
}

const EXAMPLES: &str = "\
Examples:
  ode mapping list                                      what there is
  ode mapping preview invoice.pdf --out page.html       what is read from where, and why
  ode mapping lint mappings/                            whether files are as they should be
  ode mapping test acme.toml                            whether it still reads its documents

A new layout, from one document:
  ode convert a.pdf --to json --page-only --out a.json  what is read now; correct it by hand, then
  ode mapping learn --pdf a.pdf --expect a.json --out acme.toml
  ode mapping diff generic_invoice_v1 acme_v1 *.pdf --mappings .

Exit codes:
  0  all is well
  1  something is not: a mistake, a failed test, a difference, a document that cannot be read
  2  the command line is wrong, or the mappings that it names cannot be loaded";

pub(super) async fn run(_: Call, args: MappingCommand) -> anyhow::Result<ExitCode> {
    let MappingCommand { verb, mappings } = args;
    let folder = mappings.as_deref();
    match verb {
        Verb::List(args) => look::list(folder, &args),
        Verb::Lint(args) => look::lint(folder, &args),
        Verb::Test(args) => tries::test(mappings, args).await,
        Verb::Preview(args) => tries::preview(folder, args).await,
        Verb::Learn(args) => learn::learn(folder, args).await,
        Verb::Diff(args) => tries::diff(folder, args).await,
    }
}

/// A mistake as editors understand it: `file:line:column: what`.
fn located(mistake: MappingError, path: &Path) -> String {
    MappingError { source: path.display().to_string(), ..mistake }.to_string()
}

/// The folder that a file is in.
fn home(path: &Path) -> &Path {
    path.parent().filter(|home| !home.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Files to read one after another, each in a child.
struct Reader(Converter);

impl Reader {
    fn new(folder: Option<&Path>) -> anyhow::Result<Self> {
        // Each file has its turn by itself; nobody is told that we are busy.
        let pool = PoolOptions { patience: std::time::Duration::MAX, ..PoolOptions::default() };
        let options = Options { mappings: folder.map(Path::to_owned), pool, ..Options::default() };
        Ok(Reader(Converter::new(options)?))
    }

    async fn ask<T: serde::de::DeserializeOwned>(&self, file: &Path, study: Study) -> anyhow::Result<T> {
        let document = ode_cli::files::read(file, self.0.bytes_max())?;
        self.0.study(study, document.into()).await.map_err(|failure| told(&failure))
    }
}

/// A failure as a sentence with its code, where that says more than the sentence.
fn told(failure: &Failure) -> anyhow::Error {
    if let Some(detail) = &failure.detail {
        tracing::debug!(%detail, "why the document was not read");
    }
    match failure.code {
        ErrorCode::Unknown | ErrorCode::Invalid => anyhow!("{}", failure.message),
        code => anyhow!("{} ({code})", failure.message.trim_end_matches('.')),
    }
}

/// An error with the document's name.
fn about(file: &Path, error: &anyhow::Error) -> anyhow::Error {
    anyhow!(ode_cli::files::about(file, &ode_cli::sentence(error)))
}

/// Largest file of a person's own, such as a mapping, that is read here.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// Reads a file that a person wrote.
fn text(path: &Path) -> anyhow::Result<String> {
    let bytes = ode_cli::files::read(path, FILE_BYTES_MAX)?;
    if bytes.len() as u64 > FILE_BYTES_MAX {
        bail!("{} is larger than 1 MB. It is not what is asked for here.", path.display());
    }
    String::from_utf8(bytes).map_err(|_| anyhow!("{} is not text in UTF-8", path.display()))
}
