//! The conversion itself, and the child process around it.

use crate::conversion::ask::{
    Answer, Ask, Converted, Finding, Output, Places, Scans, Shadow, Summary, Task, To, Work,
};
use crate::conversion::scans::{self, Reading};
use crate::conversion::study::study;
use ode_child::Failure;
use ode_child::child::{Reporter, failed};
use ode_invoice::registry::ShadowReport;
use ode_invoice::write::{Format, Provenance, Written, not_an_invoice, provenance, write};
use ode_invoice::{
    Choice, ExtractError, Extraction, FindingCode, Record, Registry, Severity, compare, embedded, extract,
};
use ode_job::ErrorCode;
use ode_pdf::{Document, Refusal};
use std::mem::ManuallyDrop;
use std::path::PathBuf;
use std::process::ExitCode;

/// Names of what the child hands back.
pub(crate) const DOCUMENT: &str = "document";
pub(crate) const PROVENANCE: &str = "provenance";

fn convert(registry: &Registry, ask: &Ask, reading: &Reading) -> Result<Converted, Failure> {
    let document = &reading.document;
    if ask.to == To::Text {
        let findings = warned(reading).into_iter().map(told_finding).collect();
        let summary = Summary { pages: document.pages.len(), findings, ..Summary::default() };
        return Ok(Converted { document: document.to_text().into_bytes(), provenance: None, summary });
    }
    let choice = ask.mapping.as_deref().map_or(Choice::Auto, Choice::Named);
    let attached = if ask.page_only { None } else { Some(embedded::find(&document.attachments)) };
    let page = extract(document, registry, choice).map(|mut page| {
        scans::doubt(&mut page.record, document);
        page
    });
    let (found, mut noticed) = match attached {
        Some(attached) => (attached.invoice, attached.findings),
        None => (None, Vec::new()),
    };
    noticed.extend(warned(reading));
    let shadows = page.as_ref().map(shadows).unwrap_or_default();
    let (record, written) = match (found, page) {
        (Some(mut invoice), page) => {
            match page {
                Ok(page) => {
                    let differences = compare::compare(&page.record, &invoice.record);
                    compare::locate(&page.record, &mut invoice.record);
                    invoice.record.findings.extend(differences);
                }
                // What the file says is not doubted because the page cannot be read; a name that is wrong is.
                Err(error) => mapping_exists(error, reading)?,
            }
            invoice.record.findings.extend(noticed);
            let written = invoice.write(format(ask), shown(ask));
            (invoice.record, written)
        }
        (None, page) => {
            let mut page = page.map_err(|error| unmapped(error, reading))?;
            if matches!(format(ask), Format::Ubl | Format::Cii)
                && let Some(finding) = not_an_invoice(&page.record)
            {
                return Err(failed(ErrorCode::NoMapping, finding.message));
            }
            page.record.findings.extend(noticed);
            let written = write(&page.record, format(ask), shown(ask));
            (page.record, written)
        }
    };
    let mut converted = told(document, ask, record, written);
    converted.summary.shadows = shadows;
    Ok(converted)
}

/// A conversion's answer. Its findings are those of the record, which our own formats hold too, and of the writer.
fn told(document: &Document, ask: &Ask, record: Record, written: Written) -> Converted {
    let provenance = (ask.places != Places::Untold).then(|| provenance(&record));
    let mut findings = record.findings;
    findings.extend(written.findings);
    findings.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
    let summary = Summary {
        source: record.source,
        pages: document.pages.len(),
        findings: findings.into_iter().map(told_finding).collect(),
        shadows: Vec::new(),
    };
    Converted { document: written.bytes, provenance, summary }
}

fn told_finding(finding: ode_invoice::Finding) -> Finding {
    Finding {
        severity: severity(finding.severity).to_owned(),
        code: finding.code.to_string(),
        field: finding.field,
        message: finding.message,
    }
}

fn severity(severity: Severity) -> &'static str {
    match severity {
        Severity::Info => "info",
        Severity::Review => "review",
        Severity::Error => "error",
    }
}

/// What the reader had to leave out, and what came from OCR.
fn warned(reading: &Reading) -> Vec<ode_invoice::Finding> {
    let warning = |message: &String| ode_invoice::Finding {
        severity: Severity::Review,
        code: FindingCode::DocumentDamaged,
        field: None,
        message: message.clone(),
    };
    let mut findings = scans::findings(reading);
    findings.extend(reading.document.warnings.iter().map(warning));
    findings
}

fn format(ask: &Ask) -> Format {
    match (ask.to, ask.output) {
        (To::Json | To::Text, _) => Format::Json,
        (To::Xml, Output::Own) => Format::Own,
        (To::Xml, Output::Ubl) => Format::Ubl,
        (To::Xml, Output::Cii) => Format::Cii,
    }
}

fn shown(ask: &Ask) -> Provenance {
    match ask.places {
        Places::Within => Provenance::Shown,
        Places::Untold | Places::Beside => Provenance::Left,
    }
}

/// How other versions of the mapping came out.
fn shadows(page: &Extraction) -> Vec<Shadow> {
    let shadow = |report: &ShadowReport| Shadow {
        mapping: report.mapping.clone(),
        different: report.differences.keys().cloned().collect(),
    };
    page.shadows.iter().map(shadow).collect()
}

fn unreadable(refusal: Refusal) -> ode_child::Failure {
    failed(refusal.code().parse().unwrap_or(ErrorCode::Unreadable), refusal)
}

pub(crate) fn unmapped(error: ExtractError, reading: &Reading) -> Failure {
    if let Some(message) = reading.without_text().filter(|_| error == ExtractError::NoText) {
        return failed(ErrorCode::NoText, message);
    }
    let code = match error {
        ExtractError::UnknownMapping { .. } | ExtractError::RetiredMapping { .. } => {
            ErrorCode::UnknownMapping
        }
        ExtractError::NoMapping { .. } | ExtractError::NotAnInvoice => ErrorCode::NoMapping,
        ExtractError::NoText => ErrorCode::NoText,
        ExtractError::NothingLearned { .. } => ErrorCode::Invalid,
        ExtractError::BadMapping(_) => ErrorCode::Unknown,
    };
    failed(code, error)
}

/// Lets every error pass but one about the mapping's name, which is the caller's mistake whatever the file holds.
fn mapping_exists(error: ExtractError, reading: &Reading) -> Result<(), Failure> {
    match error {
        ExtractError::UnknownMapping { .. } | ExtractError::RetiredMapping { .. } => {
            Err(unmapped(error, reading))
        }
        ExtractError::NoMapping { .. }
        | ExtractError::NotAnInvoice
        | ExtractError::NoText
        | ExtractError::BadMapping(_)
        | ExtractError::NothingLearned { .. } => Ok(()),
    }
}

/// What a child is started with.
#[derive(Debug, clap::Parser)]
#[command(name = "child convert")]
pub(crate) struct ChildArgs {
    /// Folder with mappings beside those that ship
    #[arg(long)]
    mappings: Option<PathBuf>,
    /// Run draft and canary versions beside the one that is used
    #[arg(long)]
    shadow: bool,
}

/// Runs as the child: loads the mappings, locks itself in, does what is asked with the one document it is given.
pub(crate) fn serve(args: ChildArgs) -> ExitCode {
    // Whoever starts a child has loaded the folder before.
    let (folder, shadow) = (args.mappings, args.shadow);
    let options = ode_invoice::Options { folder, shadow, trusted: true, ..Default::default() };
    let prepare = || {
        Registry::new(options).map_err(|mistakes| {
            let mistakes = mistakes.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ");
            failed(ErrorCode::Unknown, format!("The mappings cannot be loaded: {mistakes}"))
        })
    };
    // The process ends with the answer: what it holds is not taken apart first.
    ode_child::child::serve(prepare, |registry, task: Task, reporter| {
        answer(&ManuallyDrop::new(registry), task, reporter)
    })
}

fn answer(registry: &Registry, task: Task, reporter: &mut Reporter) -> Result<Answer, Failure> {
    let bytes = reporter.input().map_err(io)?;
    let (work, scans) = match task {
        Task::Do { work, scans } => (work, scans),
        Task::Draw { page } => {
            let picture = ode_pdf::draw_here(bytes, page, &ode_pdf::Limits::default()).map_err(unreadable)?;
            reporter.artifact(DOCUMENT, &picture.to_pgm()).map_err(io)?;
            return Ok(Answer::Given);
        }
    };
    let (is_to_tell, is_cut) = (scans == Scans::Tell, is_cut(&bytes));
    let reading = Reading::new(bytes, scans).map_err(|refusal| match refusal {
        Refusal::NoPages | Refusal::Damaged | Refusal::Failed if is_cut => cut(),
        refusal => unreadable(refusal),
    });
    let reading = ManuallyDrop::new(reading?);
    // Half an invoice may hold half a total. Its text is still text.
    if is_cut && matches!(&work, Work::Convert(ask) if ask.to != To::Text) {
        return Err(cut());
    }
    if is_to_tell && !is_told_by_file(&work, &reading.document) {
        let pages = scans::unread_pages(&reading.document);
        if !pages.is_empty() {
            return Ok(Answer::Scans(pages));
        }
    }
    match work {
        Work::Convert(ask) => give(convert(registry, &ask, &reading)?, reporter),
        Work::Study(question) => {
            let answer = study(registry, question, &reading)?;
            reporter.artifact(DOCUMENT, answer.to_string().as_bytes()).map_err(io)?;
            Ok(Answer::Given)
        }
    }
}

/// The end may be followed by what a mail program or a form added.
const TAIL_BYTES: usize = 16 << 10;
/// The last line of a PDF, and the line shortly before it that leads to its objects: either shows that it is whole.
const ENDS: [&[u8]; 2] = [b"%%EOF", b"startxref"];

/// Whether a document ends before its end.
fn is_cut(bytes: &[u8]) -> bool {
    let tail = &bytes[bytes.len().saturating_sub(TAIL_BYTES)..];
    !ENDS.iter().any(|end| tail.windows(end.len()).any(|window| window == *end))
}

fn cut() -> Failure {
    failed(ErrorCode::Truncated, ErrorCode::Truncated.sentence())
}

/// Whether the answer is in an embedded file, so that nobody needs to read scans.
fn is_told_by_file(work: &Work, document: &Document) -> bool {
    match work {
        Work::Convert(ask) if ask.to != To::Text && !ask.page_only => {
            embedded::find(&document.attachments).invoice.is_some()
        }
        Work::Convert(_) | Work::Study(_) => false,
    }
}

fn give(converted: Converted, reporter: &mut Reporter) -> Result<Answer, Failure> {
    reporter.artifact(DOCUMENT, &converted.document).map_err(io)?;
    if let Some(provenance) = &converted.provenance {
        reporter.artifact(PROVENANCE, provenance).map_err(io)?;
    }
    Ok(Answer::Converted(converted.summary))
}

fn io(error: std::io::Error) -> Failure {
    failed(ErrorCode::IoError, error)
}
