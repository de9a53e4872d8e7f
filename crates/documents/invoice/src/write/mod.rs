//! Writers: a record in, a file out.
//!
//! Our own XML and JSON carry the record as it is. UBL 2.1 and CII are always valid by their schemas, whatever the
//! record lacks; what that takes is worked out in `complete` and told as findings.

pub(crate) mod amount;
mod cii;
pub(crate) mod codes;
mod complete;
mod element;
mod json;
mod own;
mod ubl;

pub use codes::unit_code;
pub use own::NAMESPACE;

use complete::Invoice;

use crate::facts::Ask;
use crate::finding::FindingCode;
use crate::record::{Finding, Record, Severity};

/// What is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Our own XML, for any kind of document.
    Own,
    /// UBL 2.1 `Invoice` or `CreditNote`.
    Ubl,
    /// Cross Industry Invoice D16B, EN 16931 profile of Factur-X.
    Cii,
    /// Flat JSON by field name.
    Json,
}

/// Whether our own XML says where each value stood.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Provenance {
    /// Values only.
    #[default]
    Left,
    /// Page, box, printed text, rule and confidence as attributes.
    Shown,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Written {
    /// The file, in UTF-8.
    pub bytes: Vec<u8>,
    /// What the writer worked out or missed; none for our own XML and JSON.
    pub findings: Vec<Finding>,
}

#[must_use]
pub fn write(record: &Record, format: Format, provenance: Provenance) -> Written {
    let standard = |document: fn(&Invoice) -> Vec<u8>| {
        let invoice = Invoice::complete(record);
        Written { bytes: document(&invoice), findings: invoice.findings }
    };
    match format {
        Format::Own => Written { bytes: own::document(record, provenance), findings: Vec::new() },
        Format::Json => Written { bytes: json::document(record), findings: Vec::new() },
        Format::Ubl => standard(ubl::document),
        Format::Cii => standard(cii::document),
    }
}

/// Without two of number, total and day there is no invoice, however valid the file would be by its schema.
#[must_use]
pub fn not_an_invoice(record: &Record) -> Option<Finding> {
    let has = |names: &[&str]| names.iter().any(|name| record.fields.has(name));
    let found =
        [has(&["invoice_number"]), has(&["issue_date"]), has(&["gross_total", "payable", "net_total"])];
    let message = "Of number, date and total, two were not found: this does not look like an invoice. Check the document, or \
                   name the mapping that is made for it.";
    let is_invoice = found.into_iter().filter(|is_there| *is_there).count() >= 2;
    (!is_invoice).then(|| Finding {
        severity: Severity::Error,
        code: FindingCode::NotAnInvoice,
        field: None,
        message: message.to_owned(),
    })
}

/// Writes where each value stands: a JSON object of field → `{"page": n, "bbox": [x0, y0, x1, y1], …}`, in points
/// from the top-left corner.
#[must_use]
pub fn provenance(record: &Record) -> Vec<u8> {
    json::provenance(record)
}
