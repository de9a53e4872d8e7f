//! Whether a document is a credit note, by the title on its first page.

use crate::facts::Ask;
use crate::record::{Field, Place, Record, Typed, Value};
use crate::sheet::{Sheet, TextRow, fold};

/// Titles of credit notes, folded.
const TITLES: &[&str] = &[
    "credit note",
    "credit memo",
    "credit invoice",
    "gutschrift",
    "rechnungskorrektur",
    "stornorechnung",
    "avoir",
    "facture d'avoir",
    "note de credit",
    "creditnota",
    "creditfactuur",
    "nota de credito",
    "factura rectificativa",
    "abono",
    "nota di credito",
    "nota kredit",
    "nota retur",
    "faktura korygujaca",
    "opravny danovy doklad",
    "dobropis",
    "kreditnota",
    "kreditfaktura",
    "hyvityslasku",
    "nota de credit",
    "jovairo szamla",
    "odobrenje",
    "πιστωτικο τιμολογιο",
    "iade faturasi",
];

/// The code of a credit note in UNTDID 1001.
const CREDIT_NOTE: &str = "381";
/// A title stands in this upper share of the first page.
const TITLE_SHARE: f32 = 0.5;
/// Words that may follow a title on its line: a number and a date. With more it is a sentence.
const WORDS_MAX: usize = 6;

/// Adds the type of the document where its title tells it and nothing else did.
pub(crate) fn recognise(record: &mut Record, sheet: &Sheet<'_>) {
    if record.kind != "invoice" || record.fields.has("type_code") {
        return;
    }
    let Some(page) = sheet.pages.first() else { return };
    let upper = page.rows.iter().take_while(|row| row.bbox.y0 < page.page.height * TITLE_SHARE);
    if let Some((printed, bbox)) = upper.filter_map(title).next() {
        let place = Some(Place { page: page.page.number, bbox: page.shown(bbox) });
        let typed = Typed::Code(CREDIT_NOTE.to_owned());
        let value = Value { typed, printed, place, rule: "by the title".to_owned(), confidence: 0.9 };
        record.fields.insert("type_code".to_owned(), Field { term: Some("BT-3".to_owned()), value });
    }
}

/// The title that a piece of the row begins with.
fn title(row: &TextRow) -> Option<(String, ode_pdf::Rect)> {
    row.pieces.iter().find_map(|piece| {
        let text = row.slice(&piece.chars);
        let folded = fold(text.trim());
        let known = TITLES.iter().find(|title| {
            let rest = folded.strip_prefix(**title);
            rest.is_some_and(|rest| !rest.starts_with(char::is_alphanumeric))
        })?;
        let is_title = folded[known.len()..].split_whitespace().count() <= WORDS_MAX;
        is_title.then(|| (text.chars().take(known.chars().count()).collect(), piece.bbox))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sheet::tests::page;

    #[track_caller]
    fn check(text: &str, expected: Option<&str>) {
        let document = page(&[(text, 50.0, 100.0)]);
        let mut record = Record { kind: "invoice".to_owned(), ..Record::default() };
        recognise(&mut record, &Sheet::new(&document));
        assert_eq!(record.fields.text("type_code").as_deref(), expected, "{text}");
    }

    #[test]
    fn titles_of_credit_notes_are_known_and_sentences_are_not() {
        check("Avoir AV-2017-0005", Some("381"));
        check("GUTSCHRIFT Nr. 12 vom 3.4.2026", Some("381"));
        check("Credit Note", Some("381"));
        check("Rechnung 12", None);
        check("Gutschriften werden mit der nächsten Rechnung verrechnet", None);
        check("Avoir un doute sur cette facture est toujours permis ici", None);
    }
}
