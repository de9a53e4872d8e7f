//! `ode convert`: documents into XML, JSON or text, here and now, without a job.

use crate::output;
use anyhow::{Context as _, bail};
use clap::{Args, ValueEnum};
use futures_util::StreamExt as _;
use ode_child::Sandbox;
use ode_job::{ErrorCode, Failure};
use ode_pipelines::xml::{Ask, Converted, Converter, Options, Output, To, too_large};
use std::collections::HashSet;
use std::io::{IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// What to convert, and into what.
#[derive(Debug, Args)]
pub(crate) struct Convert {
    /// PDF files
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// What to make of them
    #[arg(long, value_enum, default_value_t = Target::Xml)]
    to: Target,
    /// How to read them: a mapping's name, or auto for the one that fits best
    #[arg(long, value_name = "NAME", default_value = "auto")]
    mapping: String,
    /// Which XML
    #[arg(long, value_enum, default_value_t = Form::Own)]
    output: Form,
    /// Read only the pages, even where the PDF carries an invoice as XML
    #[arg(long)]
    page_only: bool,
    /// Also write where each value stands, as JSON: a file, or a directory for several documents
    #[arg(long, value_name = "PATH")]
    provenance: Option<PathBuf>,
    /// Where to write: a file, or a directory for several documents [default: standard output for one document,
    /// beside each document for several]
    #[arg(long, value_name = "PATH")]
    out: Option<PathBuf>,
    /// Folder with mappings beside those that ship
    #[arg(long, env = "ODE_MAPPINGS", value_name = "DIR")]
    mappings: Option<PathBuf>,
    #[command(flatten)]
    ocr: super::ocr::Ocr,
    /// Convert without locking the child in. Only to look for a fault, and only with files you trust
    #[arg(long)]
    no_sandbox: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Target {
    Xml,
    Json,
    Text,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Form {
    /// ODE's own
    Own,
    /// UBL 2.1
    Ubl,
    /// CII, as in Factur-X
    Cii,
}

pub(crate) const EXAMPLES: &str = "\
Examples:
  ode convert invoice.pdf                            XML on standard output, by the mapping that fits best
  ode convert *.pdf --output ubl --out invoices      many at once, into a directory
  ode convert invoice.pdf --to json                  the values as JSON
  ode convert invoice.pdf --mapping generic_invoice_v1 --provenance places.json

Exit codes: 0 all converted, 1 at least one was not, 2 the command line is wrong.";

/// One document and where its results go; nowhere is standard output.
struct Task {
    file: PathBuf,
    out: Option<PathBuf>,
    provenance: Option<PathBuf>,
}

pub(crate) async fn run(args: Convert) -> anyhow::Result<ExitCode> {
    let tasks = args.tasks()?;
    let ask = args.ask();
    args.check_mappings()?;
    let sandbox = if args.no_sandbox { Sandbox::Off } else { Sandbox::BestEffort };
    let options = Options { ocr: args.ocr.options(), mappings: args.mappings, sandbox, ..Options::default() };
    let at_once = options.at_once;
    // Each file has its turn by itself; nobody is told that we are busy.
    let converter = Converter::new(Options { patience: std::time::Duration::MAX, ..options })?;
    let count = tasks.len();
    let mut failures = 0;
    let convert = |task: Task| {
        let (converter, ask) = (&converter, &ask);
        async move {
            let outcome = one(converter, ask, &task).await;
            (task, outcome)
        }
    };
    let mut ended = futures_util::stream::iter(tasks).map(convert).buffer_unordered(at_once);
    let mut bar = Bar::new(count);
    while let Some((task, outcome)) = ended.next().await {
        bar.clear();
        if let Err(error) = outcome {
            failures += 1;
            tell_failure(&task.file, &error);
        }
        bar.step();
    }
    bar.clear();
    if count > 1 {
        output::tell(format!("{} of {count} converted", count - failures));
    }
    Ok(if failures == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

impl Convert {
    fn ask(&self) -> Ask {
        Ask {
            to: match self.to {
                Target::Xml => To::Xml,
                Target::Json => To::Json,
                Target::Text => To::Text,
            },
            mapping: (self.mapping != "auto").then(|| self.mapping.clone()),
            output: match self.output {
                Form::Own => Output::Own,
                Form::Ubl => Output::Ubl,
                Form::Cii => Output::Cii,
            },
            page_only: self.page_only,
            provenance: self.provenance.is_some(),
        }
    }

    /// A mistake in what is asked for is told once, not for each document.
    fn check_mappings(&self) -> anyhow::Result<()> {
        let is_named = self.mapping != "auto";
        if is_named || self.mappings.is_some() {
            let registry = super::mapping::registry(self.mappings.as_deref())?;
            if let Err(error) = registry.current().get(&self.mapping).map(drop)
                && is_named
            {
                bail!("{} ({})", error.to_string().trim_end_matches('.'), ErrorCode::UnknownMapping);
            }
        }
        Ok(())
    }

    /// Decides where everything goes before anything is written.
    fn tasks(&self) -> anyhow::Result<Vec<Task>> {
        let ending = match self.to {
            Target::Xml => "xml",
            Target::Json => "json",
            Target::Text => "txt",
        };
        let is_single = self.files.len() == 1;
        let place = |file: &Path, given: Option<&Path>, ending: &str| -> anyhow::Result<Option<PathBuf>> {
            let name = file.file_name().with_context(|| {
                format!("{} is a directory. Name the PDFs in it, such as {0}/*.pdf.", file.display())
            })?;
            let name = Path::new(name).with_extension(ending);
            Ok(match given {
                Some(given) if is_single && !is_folder(given) => Some(given.to_owned()),
                Some(given) => Some(given.join(name)),
                None if is_single => None,
                None => Some(file.with_file_name(name)),
            })
        };
        let mut tasks = Vec::new();
        let mut places = HashSet::new();
        for file in &self.files {
            let out = place(file, self.out.as_deref(), ending)?;
            let provenance = match &self.provenance {
                Some(given) => place(file, Some(given), "places.json")?,
                None => None,
            };
            for place in out.iter().chain(&provenance) {
                if place == file {
                    bail!("{} would be overwritten. Choose another place with --out.", file.display());
                }
                if !places.insert(place.clone()) {
                    bail!("Two results would go to {}. Convert these files one by one.", place.display());
                }
            }
            tasks.push(Task { file: file.clone(), out, provenance });
        }
        let folders = [&self.out, &self.provenance].into_iter().flatten();
        for given in folders.filter(|given| !is_single || is_folder(given)) {
            std::fs::create_dir_all(given)
                .with_context(|| format!("Cannot make the directory {}", given.display()))?;
        }
        Ok(tasks)
    }
}

/// Whether a place is meant as a directory: it is one, or is written like one.
fn is_folder(given: &Path) -> bool {
    given.is_dir() || given.as_os_str().as_encoded_bytes().ends_with(b"/")
}

/// Why a document has no result.
enum Trouble {
    Io(anyhow::Error),
    Refused(Failure),
}

async fn one(converter: &Converter, ask: &Ask, task: &Task) -> Result<(), Trouble> {
    let size = std::fs::metadata(&task.file).map_or(0, |file| file.len());
    if size > converter.bytes_max() {
        return Err(Trouble::Refused(too_large(size, converter.bytes_max())));
    }
    let document = read(&task.file, converter.bytes_max()).map_err(Trouble::Io)?;
    let converted = converter.convert(ask, document.into()).await.map_err(Trouble::Refused)?;
    for finding in converted.summary.findings.iter().filter(|finding| finding.severity != "info") {
        let said = format!("{}: {} ({})", finding.severity, finding.message, finding.code);
        tell_about(&task.file, &said);
    }
    write(task, &converted).map_err(Trouble::Io)
}

/// Reads a file, but not more of it than could be converted.
pub(crate) fn read(path: &Path, bytes_max: u64) -> anyhow::Result<Vec<u8>> {
    use std::io::Read as _;
    let cannot = || format!("Cannot read {}", path.display());
    let file = std::fs::File::open(path).with_context(cannot)?;
    let mut bytes = Vec::new();
    file.take(bytes_max + 1).read_to_end(&mut bytes).with_context(cannot)?;
    Ok(bytes)
}

fn write(task: &Task, converted: &Converted) -> anyhow::Result<()> {
    match &task.out {
        Some(path) => put(path, &converted.document)?,
        None => output::print(&String::from_utf8_lossy(&converted.document))?,
    }
    match (&task.provenance, &converted.provenance) {
        (Some(path), Some(provenance)) => put(path, provenance),
        _ => Ok(()),
    }
}

/// Writes a file whole or not at all: a result that is cut short must not look like one.
pub(crate) fn put(path: &Path, contents: &[u8]) -> anyhow::Result<()> {
    let cannot = || format!("Cannot write {}", path.display());
    // A device or a pipe is written to, not replaced.
    if path.exists() && !path.is_file() {
        return std::fs::write(path, contents).with_context(cannot);
    }
    if is_pdf(path) {
        bail!("{} is a PDF, which is not replaced. Choose another place.", path.display());
    }
    let beside = path.with_extension(format!("part-{}", std::process::id()));
    let written = std::fs::write(&beside, contents).and_then(|()| std::fs::rename(&beside, path));
    if written.is_err() {
        // It may not even be there; what went wrong first is what is told.
        let _ = std::fs::remove_file(&beside);
    }
    written.with_context(cannot)
}

/// Whether a PDF is in this place, whatever it is called: most likely the one that was to be read.
fn is_pdf(path: &Path) -> bool {
    use std::io::Read as _;
    let mut start = [0; 5];
    std::fs::File::open(path).and_then(|mut file| file.read_exact(&mut start)).is_ok() && start == *b"%PDF-"
}

fn tell_failure(file: &Path, trouble: &Trouble) {
    match trouble {
        Trouble::Io(error) => tell_about(file, &output::sentence(error)),
        Trouble::Refused(failure) => {
            tell_about(file, &format!("{} ({})", failure.message.trim_end_matches('.'), failure.code));
            if let Some(detail) = &failure.detail {
                tracing::debug!(%detail, "why {} was not converted", file.display());
            }
        }
    }
}

/// Says something about a file. Its name and what is in it come from outside.
pub(crate) fn tell_about(file: &Path, said: &str) {
    output::tell(output::printable(&format!("{}: {said}", file.display())));
}

/// How far it is, for a person who watches.
struct Bar {
    done: usize,
    count: usize,
    is_shown: bool,
}

impl Bar {
    const WIDTH: usize = 30;

    fn new(count: usize) -> Self {
        Bar { done: 0, count, is_shown: count > 1 && std::io::stderr().is_terminal() }
    }

    fn step(&mut self) {
        self.done += 1;
        if self.is_shown {
            let full = Self::WIDTH * self.done / self.count;
            let bar = format!("{}{}", "█".repeat(full), "░".repeat(Self::WIDTH - full));
            // Nobody may be there to see it.
            let _ = write!(std::io::stderr(), "{bar} {}/{}", self.done, self.count);
        }
    }

    fn clear(&self) {
        if self.is_shown {
            let _ = write!(std::io::stderr(), "\r\x1b[K");
        }
    }
}
