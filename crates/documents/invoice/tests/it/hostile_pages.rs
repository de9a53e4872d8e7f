//! No page can bring the reader down or hold it up, whatever stands on it.

use crate::paper::Paper;
use ode_invoice::{Choice, Registry, extract, preview::preview};
use ode_pdf::{Document, Page, Rect, Rule, Word};
use proptest::prelude::*;

/// Words that rules look for, and figures and letters that are hard to cut.
const WORDS: &[&str] = &[
    "Total",
    "Invoice",
    "No.",
    "Date:",
    "Menge",
    "Beschreibung",
    "Betrag",
    "Kepada",
    "Yth.",
    "Verkäufer",
    "12,50",
    "1.234",
    "-5,00-",
    "(3,00",
    "€",
    "Rp",
    "IBAN",
    "DE",
    "DE89",
    "3704",
    "31.12.2025",
    "12/31/25",
    "5",
    "März",
    "2024",
    "Name:",
    ":",
    "●",
    "ﬁ",
    "é",
    "İ",
    "日本",
    "\u{a0}",
    "19%",
    "%",
    "GmbH",
    "40235",
    "Düsseldorf",
    "#",
    "/",
    "PT",
    "00.676.302.4-000.000",
    "%%",
    "--",
];

fn words() -> impl Strategy<Value = Vec<Word>> {
    let word = (0..WORDS.len(), -50.0f32..650.0, -50.0f32..850.0, 0.0f32..30.0, any::<bool>());
    let word = word.prop_map(|(text, x, y, font_size, is_bold)| {
        let text = WORDS[text].to_owned();
        let bbox = Rect { x0: x, y0: y.round(), x1: x + 20.0, y1: y.round() + font_size };
        Word { text, bbox, font_size, is_bold, ..Word::default() }
    });
    prop::collection::vec(word, 0..120)
}

fn rules() -> impl Strategy<Value = Vec<Rule>> {
    let rule = (0.0f32..600.0, 0.0f32..800.0, 0.0f32..600.0, 0.0f32..2.0, any::<bool>());
    let rule = rule.prop_map(|(x0, y0, long, thin, is_level)| {
        let (w, h) = if is_level { (long, thin) } else { (thin, long) };
        Rule { bbox: Rect { x0, y0, x1: x0 + w, y1: y0 + h } }
    });
    prop::collection::vec(rule, 0..30)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn random_pages_are_read_without_a_panic(pages in prop::collection::vec((words(), rules()), 1..3)) {
        thread_local!(static REGISTRY: Registry = Registry::shipped());
        let pages = pages.into_iter().zip(1..).map(|((words, rules), number)| {
            Page { number, width: 600.0, height: 800.0, words, rules, ..Page::default() }
        });
        let document = Document { pages: pages.collect(), ..Document::default() };
        REGISTRY.with(|registry| {
            for mapping in ["generic_invoice_v1", "pt_simon_invoice_v1", "dwc_stylesheet_v1", "fournisseur_v1"] {
                if let Ok(extraction) = extract(&document, registry, Choice::Named(mapping)) {
                    prop_assert!(preview(&document, &extraction).ends_with("</html>\n"));
                }
            }
            Ok(())
        })?;
    }
}

/// Work that grows with the square of the page would not end before the test runner ends it.
#[test]
fn a_page_full_of_labels_is_read() {
    let registry = Registry::shipped();
    let mut paper = Paper::new();
    for at in 0..20_000u32 {
        let (x, y) = ((at % 100) as f32 * 40.0, (at / 100) as f32 * 3.0);
        paper = paper.text(x, y, ["Total", "Menge", "Beschreibung", "Betrag", "12,50"][at as usize % 5]);
    }
    let document = paper.document();
    let extraction = extract(&document, &registry, Choice::Named("generic_invoice_v1"));
    assert!(extraction.is_ok());
}
