//! What was read from a document: named values, each knowing where it stood and why it was believed.
//! A record is the one shape between readers (mappings, embedded XML) and writers (own XML, UBL, CII, JSON).

use crate::finding::FindingCode;
use std::collections::BTreeMap;

use jiff::civil::Date;
use ode_pdf::Rect;
use rust_decimal::Decimal;

/// Everything read from one document.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Record {
    /// Kind of document, such as `invoice`; it names the root element of our own XML.
    pub kind: String,
    /// Mapping (or `embedded:<file>`) that read it.
    pub source: String,
    /// Header values by name (`invoice_number`), in the file's order where one is given.
    pub fields: BTreeMap<String, Field>,
    /// Tables by name (`lines`, `vat`).
    pub tables: BTreeMap<String, Table>,
    /// What a person should look at.
    pub findings: Vec<Finding>,
}

/// A header value and the business term it answers.
#[derive(Clone, Debug, PartialEq)]
pub struct Field {
    /// EN 16931 business term, such as `BT-1`, where the kind of document has terms.
    pub term: Option<String>,
    pub value: Value,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Table {
    /// EN 16931 group, such as `BG-25`.
    pub term: Option<String>,
    /// Rows from top to bottom.
    pub rows: Vec<Row>,
}

/// One row: cells by column name.
pub type Row = BTreeMap<String, Cell>;
/// A cell is a field inside a row.
pub type Cell = Field;

/// One value with its provenance.
#[derive(Clone, Debug, PartialEq)]
pub struct Value {
    pub typed: Typed,
    /// What was printed, to the letter.
    pub printed: String,
    /// Where it was printed; none for values read from embedded XML or worked out.
    pub place: Option<Place>,
    /// Which rule gave it, in words a person can check.
    pub rule: String,
    /// 0 to 1, built from facts: exact anchor, one candidate, type and arithmetic checks passed.
    pub confidence: f32,
}

/// Page and box.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Place {
    /// From 1.
    pub page: u32,
    /// Box on that page.
    pub bbox: Rect,
}

/// A value's meaning.
#[derive(Clone, Debug, PartialEq)]
pub enum Typed {
    Text(String),
    /// A code out of a list: currency, unit, tax category.
    Code(String),
    /// Money or a quantity, exact.
    Number(Decimal),
    Date(Date),
}

/// Something a person should know about the result.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    /// How bad it is.
    pub severity: Severity,
    pub code: FindingCode,
    /// Field or column it is about, where there is one.
    pub field: Option<String>,
    /// A sentence for a person.
    pub message: String,
}

/// How much a finding matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Good to know.
    Info,
    /// Look before you book it.
    Review,
    /// The result must not be used as it is.
    Error,
}
