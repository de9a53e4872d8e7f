//! Scans inside the child: which pages they are, what is said about them, and how sure a value from them is.

use super::ask::{Scans, Unread};
use super::hocr;
use ode_invoice::record::Value;
use ode_invoice::{Finding, FindingCode, Place, Record, Severity};
use ode_pdf::{Document, Recognised, Rect, Refusal};

/// A document with what OCR has read of it.
pub(crate) struct Reading {
    pub(crate) document: Document,
    /// What OCR has looked at.
    pub(crate) read: Vec<u32>,
    /// Why other scans were not read; none where there is no need to.
    pub(crate) unread: Option<Unread>,
}

impl Reading {
    /// Reads a document and takes over what OCR has read of it.
    pub(crate) fn new(bytes: Vec<u8>, scans: Scans) -> Result<Self, Refusal> {
        let (read, unread) = match scans {
            Scans::Tell => (Vec::new(), None),
            Scans::Go { read, unread } => (read, Some(unread)),
        };
        // A page that cannot be understood counts as not read.
        let read = read.iter().filter_map(|page| hocr::parse(page.page, &page.hocr));
        let read: Vec<Recognised> = read.collect();
        let document = ode_pdf::read_here(bytes, &ode_pdf::Limits::default(), &read)?;
        Ok(Reading { document, read: read.iter().map(|page| page.page).collect(), unread })
    }

    /// Why there is nothing to map, as far as it has to do with scans.
    pub(crate) fn without_text(&self) -> Option<String> {
        if unread_pages(&self.document).is_empty() {
            return None;
        }
        if self.read.is_empty() {
            return self.unread.map(|unread| format!("The pages are scans, and {}", why(unread)));
        }
        Some(
            "The pages are pictures, and OCR found no text in them. Send the original, or scan it again."
                .into(),
        )
    }
}

/// Pages that are scans and were not read.
pub(crate) fn unread_pages(document: &Document) -> Vec<u32> {
    let pages = document.pages.iter().filter(|page| page.is_scan() && !page.is_recognised());
    pages.map(|page| page.number).collect()
}

/// What a person should know about the scans: which were read by OCR, and which were not and why.
pub(crate) fn findings(reading: &Reading) -> Vec<Finding> {
    let Reading { document, read, unread } = reading;
    let finding = |code: FindingCode, message: String| {
        let severity = if code == FindingCode::PageWithoutText { Severity::Info } else { Severity::Review };
        Finding { severity, code, field: None, message }
    };
    let by_ocr = document.pages.iter().filter(|page| page.is_recognised()).map(|page| page.number);
    let by_ocr: Vec<u32> = by_ocr.collect();
    // OCR may have looked at a page and found nothing: a photograph, or a blank sheet.
    let is_seen = |page: &u32| read.contains(page);
    let (empty, left): (Vec<u32>, Vec<u32>) = unread_pages(document).into_iter().partition(is_seen);
    let mut findings = Vec::new();
    if !by_ocr.is_empty() {
        let message =
            format!("{} read by OCR. Compare what matters with the page.", pages(&by_ocr, "was", "were"));
        findings.push(finding(FindingCode::PageReadByOcr, message));
    }
    if !empty.is_empty() {
        let message = format!("{} a picture in which OCR found no text.", pages(&empty, "is", "are each"));
        findings.push(finding(FindingCode::PageWithoutText, message));
    }
    if let Some(unread) = unread.filter(|_| !left.is_empty()) {
        let message = format!("{} a scan and not read: {}", pages(&left, "is", "are each"), why(unread));
        findings.push(finding(FindingCode::PageNotRead, message));
    }
    findings
}

/// Why scans were not read, and what to do about it.
pub(crate) fn why(unread: Unread) -> &'static str {
    match unread {
        Unread::Off => "OCR is switched off. Use --ocr auto to have scans read.",
        Unread::NotInstalled => {
            "there is no tesseract on this machine. Install tesseract-ocr to have scans read."
        }
        Unread::Languages => {
            "tesseract lacks a language it was told to read. Install it, such as tesseract-ocr-deu, or change --ocr-languages."
        }
        Unread::NoTime => "the time for OCR was used up. Raise --ocr-seconds, or split the document.",
        Unread::Failed => "OCR failed on it. Send the original, or scan it again.",
    }
}

/// `Page 3 was`, `Pages 1, 2 and 5 were`.
fn pages(numbers: &[u32], one: &str, many: &str) -> String {
    /// More than these are not told one by one.
    const TOLD_MAX: usize = 20;
    let told: Vec<String> = numbers.iter().take(TOLD_MAX).map(ToString::to_string).collect();
    match (&told[..], numbers.len().saturating_sub(TOLD_MAX)) {
        ([only], _) => format!("Page {only} {one}"),
        ([first @ .., last], 0) => format!("Pages {} and {last} {many}", first.join(", ")),
        (all, more) => format!("Pages {} and {more} more {many}", all.join(", ")),
    }
}

/// Lowers the confidence of every value that stands in words which OCR was not sure of.
pub(crate) fn doubt(record: &mut Record, document: &Document) {
    if !document.pages.iter().any(ode_pdf::Page::is_recognised) {
        return;
    }
    let fields = record.fields.values_mut().map(|field| &mut field.value);
    let rows = record.tables.values_mut().flat_map(|table| &mut table.rows);
    let cells = rows.flat_map(|row| row.values_mut()).map(|cell| &mut cell.value);
    for value in fields.chain(cells) {
        doubt_value(value, document);
    }
}

fn doubt_value(value: &mut Value, document: &Document) {
    let Some(Place { page, bbox }) = value.place else { return };
    let words = document.pages.iter().filter(|at| at.number == page).flat_map(|page| &page.words);
    let sure = words.filter(|word| is_within(word.bbox, bbox)).filter_map(|word| word.confidence);
    if let Some(least) = sure.min_by(f32::total_cmp) {
        value.confidence *= least;
    }
}

/// Whether the middle of a word is in a box.
fn is_within(word: Rect, area: Rect) -> bool {
    let (x, y) = ((word.x0 + word.x1) / 2.0, (word.y0 + word.y1) / 2.0);
    (area.x0..=area.x1).contains(&x) && (area.y0..=area.y1).contains(&y)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_told_as_a_person_would() {
        assert_eq!(pages(&[3], "was", "were"), "Page 3 was");
        assert_eq!(pages(&[1, 2], "was", "were"), "Pages 1 and 2 were");
        assert_eq!(pages(&[1, 2, 5], "was", "were"), "Pages 1, 2 and 5 were");
        let many: Vec<u32> = (1..=25).collect();
        assert!(pages(&many, "was", "were").ends_with("19, 20 and 5 more were"));
    }
}
