//! Documents that want to do harm: they are cut or refused with a sentence, and nothing panics.

use flate2::Compression;
use ode_pdf::{Limits, Refusal};
use ode_testing::pdf::{Builder, one_page};
use proptest::prelude::*;
use std::io::Write;

fn deflate(data: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(data).expect("memory");
    encoder.finish().expect("memory")
}

#[test]
fn what_is_not_a_pdf_is_refused_as_such() {
    let refusal = ode_pdf::read(&b"Dear Sir or Madam"[..], &Limits::default()).expect_err("a letter");
    assert_eq!(refusal, Refusal::NotPdf);
    assert!(refusal.to_string().contains("not a PDF"));
    assert_eq!(ode_pdf::read(&b""[..], &Limits::default()), Err(Refusal::Empty));
}

#[test]
fn limits_are_named_in_the_refusal() {
    let file = Builder::new().page("", "").page("", "").page("", "").bytes();
    let limits = Limits { pages_max: 2, ..Limits::default() };
    assert_eq!(ode_pdf::read(file.clone(), &limits), Err(Refusal::TooManyPages { pages: 3, pages_max: 2 }));
    let limits = Limits { bytes_max: 100, ..Limits::default() };
    assert_eq!(
        ode_pdf::read(file.clone(), &limits),
        Err(Refusal::TooLarge { bytes: file.len(), bytes_max: 100 })
    );
}

#[test]
fn page_past_a_bound_is_cut_with_a_warning() {
    let limits = Limits { glyphs_per_page_max: 5, ..Limits::default() };
    let document =
        ode_pdf::read(one_page("BT /F1 10 Tf 20 200 Td (abcdefgh) Tj ET"), &limits).expect("readable");
    assert_eq!(document.pages[0].words[0].text, "abcde");
    assert!(document.warnings[0].contains("Page 1"), "{:?}", document.warnings);
}

#[test]
fn document_past_a_bound_is_cut_on_its_later_pages() {
    let text = "BT /F1 10 Tf 20 200 Td (abcd) Tj ET";
    let file = Builder::new().page("", text).page("", text).page("", text).bytes();
    let limits = Limits { glyphs_max: 6, ..Limits::default() };
    let document = ode_pdf::read(file, &limits).expect("readable");
    let glyphs: Vec<usize> =
        document.pages.iter().flat_map(|page| &page.words).map(|word| word.text.len()).collect();
    assert_eq!(glyphs, [4, 2]);
    assert_eq!(document.warnings.len(), 2, "{:?}", document.warnings);
}

#[test]
fn forms_that_draw_each_other_without_end_are_cut() {
    // Each form draws the next one twenty times: 20^20 uses in all.
    let mut builder = Builder::new();
    let first = 4;
    for depth in 0..20 {
        let entries = format!(
            "/Type/XObject/Subtype/Form/BBox[0 0 9 9]/Resources<</XObject<</X {} 0 R>>>>",
            first + depth + 1
        );
        builder.stream(&entries, "/X Do ".repeat(20).as_bytes());
    }
    builder.page(&format!("/Resources<</XObject<</X {first} 0 R>>>>"), "/X Do");
    let limits = Limits { operations_per_page_max: 100_000, ..Limits::default() };
    let document = ode_pdf::read(builder.bytes(), &limits).expect("readable");
    assert_eq!(document.warnings.len(), 1, "{:?}", document.warnings);
}

#[test]
fn stream_that_unpacks_to_too_much_is_left_out() {
    let mut builder = Builder::new();
    let bomb = builder.stream(
        "/Filter/FlateDecode/Type/XObject/Subtype/Form/BBox[0 0 9 9]",
        &deflate(&vec![b' '; 8 << 20]),
    );
    let double = builder.stream(
        "/Filter[/FlateDecode/FlateDecode]/Type/XObject/Subtype/Form/BBox[0 0 9 9]",
        &deflate(&deflate(&vec![b' '; 64 << 20])),
    );
    let resources = format!("/Resources<</Font<</F1 3 0 R>>/XObject<</X {bomb} 0 R/Y {double} 0 R>>>>");
    builder.page(&resources, "/X Do /Y Do BT /F1 10 Tf 20 200 Td (after) Tj ET");
    let limits = Limits { stream_bytes_max: 1 << 20, ..Limits::default() };
    let document = ode_pdf::read(builder.bytes(), &limits).expect("readable");
    assert_eq!(document.pages[0].words[0].text, "after");
    assert!(document.warnings.iter().any(|warning| warning.contains("left out")), "{:?}", document.warnings);
}

#[test]
fn page_full_of_single_letters_is_laid_out() {
    let mut content = String::from("BT /F1 2 Tf\n");
    for row in 0..60 {
        content.push_str(&format!("1 0 0 1 {} {} Tm [", row % 3, 5 * row));
        content.push_str(&"(x)-900".repeat(130));
        content.push_str("] TJ\n");
    }
    content.push_str("ET");
    let document = ode_pdf::read(one_page(&content), &Limits::default()).expect("readable");
    assert_eq!(document.pages[0].words.len(), 60 * 130);
}

#[test]
fn numbers_out_of_all_proportion_do_no_harm() {
    let mut builder = Builder::new();
    let font = builder.object(
        "<</Type/Font/Subtype/TrueType/BaseFont/A/FirstChar 4000000000/LastChar 4000000001/Widths[1 2]>>",
    );
    let inner = "<</Type/Font/Subtype/CIDFontType2/BaseFont/X/W[0 4294967295 500]/DW 100000000000000000000000000000000000000>>";
    let wide = builder.object(format!(
        "<</Type/Font/Subtype/Type0/BaseFont/X/Encoding/Identity-H/DescendantFonts[{inner}]>>"
    ));
    let content = "BT /F2 100000000000000000000000000000000000000 Tf (a) Tj /F3 10 Tf 1000000000000000000000000000000 Tc (ab) Tj 100000000000000000000000000000000000000 0 0 100000000000000000000000000000000000000 100000000000000000000000000000000000000 100000000000000000000000000000000000000 Tm (x) Tj ET
        100000000000000000000000000000000000000 0 0 100000000000000000000000000000000000000 0 0 cm 0 0 m 100000000000000000000000000000000000000 100000000000000000000000000000000000000 l S BT /F1 10 Tf (y) Tj ET";
    builder.page_with_fonts(
        "/UserUnit 1000000000000000000000000000000",
        &format!("/F2 {font} 0 R/F3 {wide} 0 R"),
        content,
    );
    ode_pdf::read(builder.bytes(), &Limits::default()).expect("readable");
}

#[test]
fn saves_without_restore_and_deep_nesting_end() {
    ode_pdf::read(one_page(&"q ".repeat(200_000)), &Limits::default()).expect("readable");
    ode_pdf::read(one_page(&"[".repeat(200_000)), &Limits::default()).expect("readable");
    ode_pdf::read(one_page(&"/P BMC ".repeat(200_000)), &Limits::default()).expect("readable");
}

/// A small document with most of what the reader looks at.
fn sample() -> Vec<u8> {
    let mut builder = Builder::new();
    let data = builder.stream("/Type/EmbeddedFile", b"<a/>");
    let file = builder.object(format!("<</Type/Filespec/F(a.xml)/EF<</F {data} 0 R>>>>"));
    let map = builder.stream(
        "",
        b"begincmap 1 beginbfchar <0001> <0041> endbfchar 1 beginbfrange <02> <09> <0061> endbfrange endcmap",
    );
    let inner = "<</Type/Font/Subtype/CIDFontType2/BaseFont/X/DW 500/W[1 [500 600] 3 9 250]>>";
    let font = builder.object(format!(
        "<</Type/Font/Subtype/Type0/BaseFont/X/Encoding/Identity-H/DescendantFonts[{inner}]/ToUnicode {map} 0 R>>"
    ));
    let form = builder
        .stream("/Type/XObject/Subtype/Form/BBox[0 0 9 9]/Matrix[1 0 0 1 5 5]", b"BT /F1 9 Tf (form) Tj ET");
    builder.catalog(&format!("/Names<</EmbeddedFiles<</Names[(a){file} 0 R]>>>>"));
    let resources = format!("/Resources<</Font<</F1 3 0 R/F2 {font} 0 R>>/XObject<</X {form} 0 R>>>>");
    let content =
        "q 1 0 0 1 10 10 cm /X Do Q 10 10 m 90 10 l S BT /F1 12 Tf 20 200 Td [(Hello)-250(world)] TJ
        /F2 10 Tf <000100020003> Tj /Span<</ActualText(Actual)>> BDC (x) Tj EMC ET";
    builder.page(&resources, content);
    builder.page("/Rotate 90/CropBox[10 10 200 200]", "BT /F1 12 Tf 20 100 Td (Second page) Tj ET");
    builder.bytes()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn damaged_documents_never_panic(changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..24), cut in any::<prop::sample::Index>()) {
        let mut bytes = sample();
        for (index, value) in changes {
            let at = index.index(bytes.len());
            bytes[at] = value;
        }
        if cut.index(4) == 0 {
            bytes.truncate(cut.index(bytes.len()));
        }
        if let Err(refusal) = ode_pdf::read(bytes, &Limits::default()) {
            prop_assert_ne!(refusal, Refusal::Failed);
        }
    }

    #[test]
    fn content_of_random_operators_never_panics(parts in prop::collection::vec(prop::sample::select(vec![
        "q", "Q", "BT", "ET", "/F1 12 Tf", "/F9 0 Tf", "(text) Tj", "[(a) -9999 (b)] TJ", "0 0 0 0 0 0 cm", "1 0 0 1 9 9 Tm",
        "-5 -5 Td", "T*", "0 Tz", "-100 Tz", "1000000000 TL", "(x) '", "1 2 (y) \"", "0 0 10 10 re", "f", "S", "b*", "n", "h",
        "1 1 m", "2 2 l", "1 2 3 4 5 6 c", "/P BMC", "EMC", "/Span <</ActualText (zz)>> BDC", "/X Do", "3 Tr", "7 Tr", "BI ID x EI", "<<", "]", "(",
    ]), 0..60)) {
        ode_pdf::read(one_page(&parts.join(" ")), &Limits::default()).expect("the file around the content is sound");
    }
}
