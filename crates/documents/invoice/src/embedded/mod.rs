//! Invoices inside the document: Factur-X, ZUGFeRD 1 and 2, XRechnung and UBL attachments.
//!
//! The attachment comes from whoever sent the document, so it is read with bounds and without entities, and
//! nothing it says is taken on trust: [`crate::compare`] holds it against the page, [`crate::rules`] checks it.

mod cii;
mod tree;
mod ubl;
mod values;
mod zugferd1;

use ode_pdf::Attachment;
use tree::Node;

use crate::finding::FindingCode;
use crate::record::{Finding, Record, Severity};
use crate::rules;
use crate::write::{self, Format, Provenance, Written};

/// Names that the standards give to the invoice, the surest first.
const NAMES: &[&str] = &["factur-x.xml", "zugferd-invoice.xml", "xrechnung.xml"];

/// A document may carry many files; more than this are not tried.
const TRIED_MAX: usize = 16;

/// The language an embedded invoice is written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Syntax {
    /// Cross Industry Invoice D16B or later.
    Cii,
    /// ZUGFeRD 1.0, a forerunner of it.
    Zugferd1,
    /// UBL 2.1.
    Ubl,
}

/// An invoice that was found inside a document.
#[derive(Clone, Debug, PartialEq)]
pub struct Embedded {
    /// Name of the attachment.
    pub name: String,
    /// What it is written in.
    pub syntax: Syntax,
    /// The attachment, byte for byte.
    pub bytes: Vec<u8>,
    pub record: Record,
}

/// What was found among the attachments.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Found {
    pub invoice: Option<Embedded>,
    /// Attachments that should have been invoices and could not be read, and invoices passed over.
    pub findings: Vec<Finding>,
}

/// Finds the invoice among the attachments: by its name first, then by what any other XML turns out to be.
#[must_use]
pub fn find(attachments: &[Attachment]) -> Found {
    let mut found = Found::default();
    let mut candidates: Vec<(usize, &Attachment)> =
        attachments.iter().filter_map(|attachment| Some((rank(attachment)?, attachment))).collect();
    // A stable sort: among equals, the order of the document decides.
    candidates.sort_by_key(|(rank, _)| *rank);
    for (rank, attachment) in candidates.into_iter().take(TRIED_MAX) {
        match read(&attachment.name, &attachment.bytes) {
            Ok(embedded) => match &found.invoice {
                None => found.invoice = Some(embedded),
                Some(first) => found.findings.push(passed_over(first, &embedded)),
            },
            Err(Unreadable::NoInvoice) if rank >= NAMES.len() => {}
            Err(unreadable) => found.findings.push(unreadable.finding(&attachment.name)),
        }
    }
    found
}

/// The position among the known names, or one past it for any other XML.
fn rank(attachment: &Attachment) -> Option<usize> {
    // Some programs write a path, or keep the directory of the machine that the file came from.
    let name = attachment.name.rsplit(['/', '\\']).next().unwrap_or_default().to_lowercase();
    if let Some(rank) = NAMES.iter().position(|known| *known == name) {
        return Some(rank);
    }
    let is_xml =
        name.ends_with(".xml") || attachment.media_type.as_deref().is_some_and(|kind| kind.ends_with("xml"));
    is_xml.then_some(NAMES.len())
}

fn passed_over(first: &Embedded, other: &Embedded) -> Finding {
    Finding {
        severity: Severity::Review,
        code: FindingCode::EmbeddedSecondInvoice,
        field: None,
        message: format!(
            "The document carries two invoices; {} was used and {} was not.",
            first.name, other.name
        ),
    }
}

/// Why an attachment was not taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unreadable {
    /// Well-formed, but not an invoice that we know.
    NoInvoice,
    /// Damaged, hostile or too large; a clause that completes "it …".
    Refused(String),
}

impl Unreadable {
    /// The news for a person.
    #[must_use]
    pub fn finding(&self, name: &str) -> Finding {
        let message = match self {
            Self::NoInvoice => {
                format!("The attachment {name} has the name of an invoice but is none that we know.")
            }
            Self::Refused(why) => format!("The attachment {name} was not used: it {why}."),
        };
        let code = FindingCode::EmbeddedXmlUnreadable;
        Finding { severity: Severity::Review, code, field: None, message }
    }
}

/// Reads one attachment.
///
/// # Errors
///
/// When it is not an invoice, or not XML that we are ready to read.
pub fn read(name: &str, bytes: &[u8]) -> Result<Embedded, Unreadable> {
    let root = tree::parse(bytes).map_err(Unreadable::Refused)?;
    let syntax = syntax(&root).ok_or(Unreadable::NoInvoice)?;
    let mut record =
        Record { kind: "invoice".to_owned(), source: format!("embedded:{name}"), ..Record::default() };
    match syntax {
        Syntax::Cii => cii::read(&root, &mut record),
        Syntax::Zugferd1 => cii::read(&zugferd1::renamed(root), &mut record),
        Syntax::Ubl => ubl::read(&root, &mut record),
    }
    let findings = rules::check(&record);
    record.findings.extend(findings);
    Ok(Embedded { name: name.to_owned(), syntax, bytes: bytes.to_vec(), record })
}

/// By the root element. ZUGFeRD 1 files exist with `order` in their namespace; they are invoices all the same.
fn syntax(root: &Node) -> Option<Syntax> {
    let is_ubl = root.namespace.starts_with("urn:oasis:names:specification:ubl:");
    match root.name.as_str() {
        "CrossIndustryInvoice" => Some(Syntax::Cii),
        "CrossIndustryDocument" => Some(Syntax::Zugferd1),
        "Invoice" | "CreditNote" if is_ubl => Some(Syntax::Ubl),
        _ => None,
    }
}

impl Embedded {
    /// The invoice in the asked format: its own bytes where it is in that format already.
    #[must_use]
    pub fn write(&self, format: Format, provenance: Provenance) -> Written {
        match (self.syntax, format) {
            (Syntax::Cii, Format::Cii) | (Syntax::Ubl, Format::Ubl) => {
                Written { bytes: self.bytes.clone(), findings: Vec::new() }
            }
            _ => write::write(&self.record, format, provenance),
        }
    }
}
