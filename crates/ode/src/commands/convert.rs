//! `ode convert`: documents into XML, JSON, text or HTML, here and now, without a job.

mod plan;

use crate::output::{self, WrongUse};
use anyhow::bail;
use clap::{Args, ValueEnum};
use futures_util::StreamExt as _;
use ode_child::{PoolOptions, Sandbox, Subject};
use ode_cli::Bar;
use ode_cli::files::{self, Existing, Place};
use ode_job::Failure;
use ode_pdf_html::ConversionConfig;
use ode_xml::{Ask, Converter, Finding, Options, Output, Places, To, worked_out, worth_telling};
use plan::{Plan, Task};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// What to convert, and into what.
#[derive(Debug, Args)]
pub(crate) struct Convert {
    /// PDF files, folders with PDFs in them, or - for standard input
    #[arg(required = true, value_name = "FILE|DIR")]
    files: Vec<PathBuf>,
    /// What to make of them
    #[arg(long, value_enum, default_value_t = Target::Xml)]
    to: Target,
    /// How to read them: a mapping's name, or auto for the one that fits best [default: auto]
    #[arg(long, value_name = "NAME")]
    mapping: Option<String>,
    /// Which XML [default: own]
    #[arg(long, value_enum)]
    output: Option<Form>,
    /// Read only the pages, even where the PDF carries an invoice as XML
    #[arg(long)]
    page_only: bool,
    /// Also write where each value stands, as JSON: a file or a directory, as for --out
    #[arg(long, value_name = "PATH")]
    provenance: Option<PathBuf>,
    /// Where to write: a file, a directory, or - for standard output [default: standard output for one document,
    /// beside each document for several]
    ///
    /// It is a directory if it is one already, if it ends in /, or if there are several documents or a folder to
    /// convert; otherwise a file. A directory is made where there is none; in it, a.pdf becomes a.xml.
    #[arg(long, value_name = "PATH")]
    out: Option<PathBuf>,
    /// Convert the PDFs in the folders below a folder too; results keep their folders
    #[arg(long, short)]
    recursive: bool,
    #[command(flatten)]
    existing: Existing,
    /// Folder with mappings beside those that ship
    #[arg(long, env = "ODE_MAPPINGS", value_name = "DIR")]
    mappings: Option<PathBuf>,
    #[command(flatten)]
    html: ode_html::ConvertArgs,
    #[command(flatten)]
    ocr: ode_xml::OcrArgs,
    /// Convert without locking the child in. Only to look for a fault, and only with files you trust
    #[arg(long)]
    no_sandbox: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Target {
    Xml,
    Json,
    Text,
    Html,
}

impl Target {
    /// How names of results end.
    fn ending(self) -> &'static str {
        match self {
            Target::Xml => "xml",
            Target::Json => "json",
            Target::Text => "txt",
            Target::Html => "html",
        }
    }
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
  ode convert invoice.pdf                       XML on standard output, by the mapping that fits
  ode convert invoice.pdf --to json             the values as JSON
  ode convert invoice.pdf --out invoice.xml     into a file, which must not be there yet
  ode convert invoices --output ubl --out ubl/  every PDF of a folder, as UBL 2.1 into another
  ode convert *.pdf --force                     beside each document, replacing what is there
  ode convert invoice.pdf --mapping generic_invoice_v1 --provenance places.json
  ode convert report.pdf --to html --out html/  HTML with its files, in a folder of its own
  ode convert report.pdf --to html --single-file --pages 1-3 --out report.html
  curl -s https://example.com/invoice.pdf | ode convert -

Results go to standard output or to files; findings, failures and a progress bar go to
standard error. `ode explain CODE` says more about a code in brackets.

Exit codes:
  0  all were converted
  1  at least one was not: it could not be read or written, or its result was there already
  2  the command line, or a mapping that it names, is wrong; nothing was converted";

pub(crate) async fn run(args: Convert) -> anyhow::Result<ExitCode> {
    args.check()?;
    let plan = Plan::of(&args)?;
    let ask = args.ask();
    args.check_mappings()?;
    let sandbox = if args.no_sandbox { Sandbox::Off } else { Sandbox::BestEffort };
    // Each file has its turn by itself; nobody is told that we are busy.
    let patience = std::time::Duration::MAX;
    let pool = if args.to == Target::Html { ode_html::pool_options() } else { PoolOptions::default() };
    let pool = PoolOptions { patience, sandbox, ..pool };
    let at_once = pool.at_once;
    let engine = if args.to == Target::Html {
        Engine::Html(ode_html::Converter::new(pool)?, args.html.config())
    } else {
        let options =
            Options { ocr: args.ocr.options(), mappings: args.mappings, pool, ..Options::default() };
        Engine::Xml(Converter::new(options)?, ask)
    };
    plan.make_folders()?;
    let Plan { tasks, left, unread, count, .. } = plan;
    let mut failures = unread.len();
    unread.iter().for_each(|error| output::tell(output::sentence(error)));
    left.iter().for_each(|(file, why)| files::tell_about(file, &output::sentence(why)));
    let convert = |task: Task| {
        let engine = &engine;
        async move {
            let outcome = one(engine, &task, args.existing).await;
            (task, outcome)
        }
    };
    let mut bar = Bar::new(tasks.len());
    let mut ended = futures_util::stream::iter(tasks).map(convert).buffer_unordered(at_once);
    while let Some((task, outcome)) = ended.next().await {
        bar.clear();
        failures += usize::from(outcome.is_err());
        tell_outcome(&task.file, outcome);
        bar.step();
    }
    bar.clear();
    if count > 1 {
        output::tell(summary(count, failures, left.len()));
    }
    Ok(if failures + left.len() == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// How it went with many.
fn summary(count: usize, failures: usize, left: usize) -> String {
    let converted = count.saturating_sub(failures + left);
    match left {
        0 => format!("{converted} of {count} converted"),
        1 => format!("{converted} of {count} converted; 1 left, since its result is there already"),
        _ => format!("{converted} of {count} converted; {left} left, since their results are there already"),
    }
}

impl Convert {
    /// Refuses what would silently have no effect.
    fn check(&self) -> anyhow::Result<()> {
        self.check_html()?;
        if self.output.is_some() && self.to != Target::Xml {
            let to = self.to.ending().replace("txt", "text");
            bail!(WrongUse(format!(
                "--output chooses a kind of XML, but --to {to} asks for none. Leave one out."
            )));
        }
        let unread = [("--mapping", self.mapping.is_some()), ("--provenance", self.provenance.is_some())];
        match unread.into_iter().find(|(_, is_given)| *is_given && self.to == Target::Text) {
            Some((option, _)) => {
                bail!(WrongUse(format!("{option} is about values, but --to text reads none. Leave one out.")))
            }
            None => Ok(()),
        }
    }

    /// The same between HTML and everything else.
    fn check_html(&self) -> anyhow::Result<()> {
        if self.to != Target::Html {
            return match self.html.given() {
                Some(option) => {
                    bail!(WrongUse(format!("{option} is about HTML. Say --to html, or leave {option} out.")))
                }
                None => Ok(()),
            };
        }
        let all = [
            ("--output", self.output.is_some()),
            ("--mapping", self.mapping.is_some()),
            ("--provenance", self.provenance.is_some()),
            ("--page-only", self.page_only),
        ];
        match all.into_iter().find(|(_, is_given)| *is_given) {
            Some((option, _)) => {
                bail!(WrongUse(format!("{option} is about values, but --to html reads none. Leave one out.")))
            }
            None => Ok(()),
        }
    }

    /// Whether results are folders.
    fn is_foldered(&self) -> bool {
        self.to == Target::Html && self.html.is_foldered()
    }

    /// The mapping that is asked for by name.
    fn mapping(&self) -> Option<&str> {
        self.mapping.as_deref().filter(|name| *name != "auto")
    }

    fn ask(&self) -> Ask {
        Ask {
            to: match self.to {
                Target::Xml => To::Xml,
                Target::Json => To::Json,
                // HTML is made by another engine, which is asked otherwise.
                Target::Text | Target::Html => To::Text,
            },
            mapping: self.mapping().map(str::to_owned),
            output: match self.output {
                None | Some(Form::Own) => Output::Own,
                Some(Form::Ubl) => Output::Ubl,
                Some(Form::Cii) => Output::Cii,
            },
            page_only: self.page_only,
            places: if self.provenance.is_some() { Places::Within } else { Places::Untold },
        }
    }

    /// A mistake in what is asked for is told once, not for each document.
    fn check_mappings(&self) -> anyhow::Result<()> {
        if self.mapping().is_none() && self.mappings.is_none() {
            return Ok(());
        }
        let loaded = ode_xml::registry(self.mappings.as_deref())?.current();
        self.mapping().map_or(Ok(()), |name| ode_xml::named(&loaded, name).map(drop))
    }
}

/// Why a document has no result.
enum Trouble {
    Io(anyhow::Error),
    Refused(Failure),
}

/// What is to be known about a result.
struct News {
    findings: Vec<Finding>,
    /// Places were asked for, but the values come from XML inside the PDF and have none.
    is_placeless: bool,
}

/// What converts, and what it is asked for.
enum Engine {
    Xml(Converter, Ask),
    Html(ode_html::Converter, ConversionConfig),
}

/// Converts one document. What is to be known about its result is told by the caller, when nothing else is.
async fn one(engine: &Engine, task: &Task, existing: Existing) -> Result<News, Trouble> {
    let bytes_max = match engine {
        Engine::Xml(converter, _) => converter.bytes_max(),
        Engine::Html(converter, _) => converter.bytes_max(),
    };
    let document = if task.is_stdin() {
        files::read_stdin(bytes_max).map_err(Trouble::Io)?
    } else {
        let size = std::fs::metadata(&task.file).map_or(0, |file| file.len());
        if size > bytes_max {
            return Err(Trouble::Refused(Subject::PDF.too_large(size, bytes_max)));
        }
        files::read(&task.file, bytes_max).map_err(Trouble::Io)?
    };
    let (converter, ask) = match engine {
        Engine::Xml(converter, ask) => (converter, ask),
        Engine::Html(converter, config) => {
            return to_html(converter, config, document, (&task.out, existing)).await;
        }
    };
    let converted = converter.convert(ask, document.into()).await.map_err(Trouble::Refused)?;
    files::write(&task.out, &converted.document, existing).map_err(Trouble::Io)?;
    if let (Some(place), Some(provenance)) = (&task.provenance, &converted.provenance) {
        files::write(place, provenance, existing).map_err(Trouble::Io)?;
    }
    let is_placeless = ask.places != Places::Untold && converted.summary.source.starts_with("embedded:");
    Ok(News { findings: converted.summary.findings, is_placeless })
}

/// The same into HTML.
async fn to_html(
    converter: &ode_html::Converter,
    config: &ConversionConfig,
    document: Vec<u8>,
    (out, existing): (&Place, Existing),
) -> Result<News, Trouble> {
    let converted = converter.convert(config, document.into()).await;
    let converted = converted.map_err(|unconverted| Trouble::Refused(unconverted.failure))?;
    let warning = |message: &String| Finding {
        severity: "review".into(),
        code: "DOCUMENT_DAMAGED".into(),
        field: None,
        message: message.clone(),
    };
    let findings = converted.manifest.warnings.iter().map(warning).collect();
    ode_html::write(&converted, config, out, existing).map_err(Trouble::Io)?;
    Ok(News { findings, is_placeless: false })
}

fn tell_outcome(file: &Path, outcome: Result<News, Trouble>) {
    match outcome {
        Ok(news) => {
            for finding in worth_telling(&news.findings) {
                let said = format!("{}: {} ({})", finding.severity, finding.message, finding.code);
                files::tell_about(file, &said);
            }
            if let Some(said) = worked_out(&news.findings) {
                files::tell_about(file, &said);
            }
            if news.is_placeless {
                let said =
                    "Its values are from the XML inside it, which has no places. --page-only reads the page.";
                files::tell_about(file, said);
            }
        }
        Err(Trouble::Io(error)) => files::tell_about(file, &output::sentence(&error)),
        Err(Trouble::Refused(failure)) => {
            files::tell_about(file, &format!("{} ({})", failure.message.trim_end_matches('.'), failure.code));
            if let Some(detail) = &failure.detail {
                tracing::debug!(%detail, "why {} was not converted", file.display());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_are_summed_up_in_a_line() {
        assert_eq!(summary(3, 0, 0), "3 of 3 converted");
        assert_eq!(summary(5, 2, 1), "2 of 5 converted; 1 left, since its result is there already");
        assert_eq!(summary(9, 0, 9), "0 of 9 converted; 9 left, since their results are there already");
    }
}
