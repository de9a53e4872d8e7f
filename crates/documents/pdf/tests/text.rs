//! What is read of documents made for the purpose.

use ode_pdf::{Document, Limits, Page, Rect};
use ode_testing::pdf::{Builder, one_page};

fn read(bytes: Vec<u8>) -> Document {
    ode_pdf::read(bytes, &Limits::default()).expect("the document is sound")
}

fn page(content: &str) -> Page {
    read(one_page(content)).pages.remove(0)
}

fn words(page: &Page) -> Vec<&str> {
    page.words.iter().map(|word| word.text.as_str()).collect()
}

#[track_caller]
fn check(content: &str, expected: &[&str]) {
    assert_eq!(words(&page(content)), expected, "of {content}");
}

#[track_caller]
fn check_box(bbox: Rect, expected: [f32; 4]) {
    let found = [bbox.x0, bbox.y0, bbox.x1, bbox.y1];
    let is_near = found.iter().zip(expected).all(|(found, expected)| (found - expected).abs() < 1.5);
    assert!(is_near, "box {found:?} instead of {expected:?}");
}

#[test]
fn words_end_at_spaces_and_at_gaps() {
    check("BT /F1 10 Tf 20 200 Td (Two words) Tj ET", &["Two", "words"]);
    check("BT /F1 10 Tf 20 200 Td [(Two)-300(words)] TJ ET", &["Two", "words"]);
    check("BT /F1 10 Tf 20 200 Td [(ker)40(ned)-60(word)] TJ ET", &["kernedword"]);
    check("BT /F1 10 Tf 20 200 Td (a) Tj 5.56 0 Td (b) Tj ET", &["ab"]);
}

#[test]
fn letters_that_are_spaced_out_stay_one_word() {
    check("BT /F1 10 Tf 4 Tc 20 200 Td (TOTAL) Tj ET", &["TOTAL"]);
    check("BT /F1 10 Tf 20 200 Td [(T)-300(O)-300(T)-300(A)-300(L)] TJ ET", &["TOTAL"]);
}

#[test]
fn words_over_a_watermark_stay_in_their_lines() {
    let line = |at: usize| format!("BT /F1 10 Tf 20 {} Td (Over larger letters {at}) Tj ET ", 220 - 15 * at);
    let lines: String = (0..8).map(line).collect();
    let page = page(&format!("BT /F1 100 Tf 30 120 Td (DRAFT) Tj ET {lines}"));
    let texts: Vec<String> =
        page.lines.iter().map(|line| words(&page)[line.words.clone()].join(" ")).collect();
    for at in 0..8 {
        let expected = format!("Over larger letters {at}");
        assert!(texts.contains(&expected), "{expected} is not among {texts:?}");
    }
    assert!(texts.contains(&"DRAFT".to_owned()), "{texts:?}");
}

#[test]
fn words_know_where_they_stand() {
    let page = page("BT /F1 10 Tf 20 200 Td (iii mmm) Tj ET");
    assert_eq!((page.width, page.height), (400.0, 300.0));
    check_box(page.words[0].bbox, [20.0, 92.5, 26.7, 102.2]);
    let word = &page.words[1];
    assert_eq!(word.edges.len(), 4);
    assert!((word.edges[1] - word.edges[0] - 8.33).abs() < 0.1, "an m is 8.33 wide: {:?}", word.edges);
    assert_eq!((word.font_size, word.rotation, word.is_invisible), (10.0, 0, false));
}

#[test]
fn boxes_are_those_of_the_page_as_it_is_shown() {
    let content = "BT /F1 10 Tf 120 220 Td (Word) Tj ET";
    let mut builder = Builder::new();
    builder.page("/CropBox[100 100 300 250]", content);
    builder.page("/Rotate 90", content);
    builder.page("/UserUnit 2", content);
    let document = read(builder.bytes());
    let [crop, turned, doubled] = &document.pages[..] else { panic!("three pages") };
    assert_eq!((crop.width, crop.height), (200.0, 150.0));
    check_box(crop.words[0].bbox, [20.0, 22.5, 42.8, 32.2]);
    assert_eq!((turned.width, turned.height, turned.words[0].rotation), (300.0, 400.0, 90));
    check_box(turned.words[0].bbox, [217.8, 120.0, 227.5, 142.8]);
    assert_eq!((doubled.width, doubled.words[0].font_size), (800.0, 20.0));
}

#[test]
fn turned_writing_is_read_in_its_own_direction() {
    let page = page(
        "BT /F1 10 Tf 0 1 -1 0 100 50 Tm (Going up) Tj ET BT /F1 10 Tf -1 0 0 -1 300 200 Tm (Upside down) Tj ET",
    );
    let found: Vec<_> = page.words.iter().map(|word| (word.text.as_str(), word.rotation)).collect();
    assert_eq!(found, [("Upside", 180), ("down", 180), ("Going", 270), ("up", 270)]);
}

#[test]
fn slanted_writing_stays_together() {
    check("BT /F1 10 Tf 0.866 0.5 -0.5 0.866 100 50 Tm (Slanted words) Tj ET", &["Slanted", "words"]);
}

#[test]
fn bold_by_drawing_twice_is_read_once() {
    check("BT /F1 10 Tf 20 200 Td (Bold) Tj ET BT /F1 10 Tf 20.3 200 Td (Bold) Tj ET", &["Bold"]);
    check("BT /F1 10 Tf 20 200 Td (B) Tj 0.2 0 Td (B) Tj ET", &["B"]);
}

#[test]
fn invisible_words_are_told_apart() {
    let page = page("BT /F1 10 Tf 3 Tr 20 200 Td (Read) Tj ET BT 0 Tr /F1 10 Tf 20 150 Td (Shown) Tj ET");
    assert_eq!(page.words.iter().map(|word| word.is_invisible).collect::<Vec<_>>(), [true, false]);
}

#[test]
fn columns_are_read_one_after_the_other() {
    let mut content =
        String::from("BT /F1 10 Tf 12 TL 20 250 Td (One title over both of these columns) Tj ET\n");
    for (x, side) in [(20, "left"), (220, "right")] {
        content.push_str(&format!("BT /F1 10 Tf 12 TL {x} 200 Td "));
        for line in 1..=5 {
            content.push_str(&format!("(the {side} column has line {line}) Tj T* "));
        }
        content.push_str("ET\n");
    }
    let page = page(&content);
    let lines: Vec<_> = page.lines.iter().map(|line| words_of(&page, line.words.clone())).collect();
    assert_eq!(lines[1], "the left column has line 1");
    assert_eq!(lines[5], "the left column has line 5");
    assert_eq!(lines[6], "the right column has line 1");
}

fn words_of(page: &Page, range: std::ops::Range<usize>) -> String {
    page.words[range].iter().map(|word| word.text.as_str()).collect::<Vec<_>>().join(" ")
}

#[test]
fn rows_of_a_table_are_read_row_by_row() {
    let mut content = String::new();
    for (row, cells) in
        [["Item", "Count", "Price"], ["Bolt", "10", "1.50"], ["Nut", "12", "0.75"]].iter().enumerate()
    {
        for (column, cell) in cells.iter().enumerate() {
            content.push_str(&format!(
                "BT /F1 10 Tf {} {} Td ({cell}) Tj ET\n",
                20 + column * 120,
                200 - row * 14
            ));
        }
    }
    let page = page(&content);
    assert_eq!(words(&page), ["Item", "Count", "Price", "Bolt", "10", "1.50", "Nut", "12", "0.75"]);
    assert_eq!(page.lines.len(), 9, "a wide gap ends a line");
}

#[test]
fn rules_of_tables_are_found() {
    let page = page(
        "20 100 m 380 100 l S 20 50 300 0.8 re f 50 20 200 100 re S 10 10 m 90 90 l S 100 100 60 60 re f",
    );
    assert_eq!(page.rules.len(), 6, "a stroke, a thin fill and four sides: {:?}", page.rules);
    check_box(page.rules[0].bbox, [20.0, 199.5, 380.0, 200.5]);
    check_box(page.rules[1].bbox, [20.0, 249.2, 320.0, 250.0]);
}

#[test]
fn pictures_count_by_the_area_they_cover() {
    let mut builder = Builder::new();
    let image = builder.stream(
        "/Type/XObject/Subtype/Image/Width 1/Height 1/BitsPerComponent 8/ColorSpace/DeviceGray",
        b"x",
    );
    builder.page(
        &format!("/Resources<</XObject<</I {image} 0 R>>>>"),
        "q 400 0 0 150 0 0 cm /I Do Q q 400 0 0 150 0 0 cm /I Do Q",
    );
    let share = read(builder.bytes()).pages[0].image_share;
    assert!((share - 0.5).abs() < 0.02, "two pictures over one half of the page cover {share}");
}

#[test]
fn broken_words_are_put_together_in_plain_text() {
    let document = read(one_page(
        "BT /F1 10 Tf 12 TL 20 200 Td (A hyphen-) Tj T* (ated word, and a well-) Tj T* (Known) Tj ET",
    ));
    assert_eq!(document.to_text(), "A hyphenated\nword, and a well-\nKnown\n\n\u{c}");
    assert!(
        document.pages[0].words.iter().any(|word| word.text == "hyphen-"),
        "the model keeps what is printed"
    );
}

#[test]
fn ligatures_are_taken_apart() {
    let mut builder = Builder::new();
    let font = builder
        .object("<</Type/Font/Subtype/Type1/BaseFont/Times-Roman/Encoding<</Differences[1/fi/ffl]>>>>");
    builder.page_with_fonts(
        "",
        &format!("/F2 {font} 0 R"),
        "BT /F2 10 Tf 20 200 Td (\\001nd ba\\002e) Tj ET",
    );
    assert_eq!(words(&read(builder.bytes()).pages[0]), ["find", "baffle"]);
}

#[test]
fn to_unicode_decides_what_a_code_means() {
    let mut builder = Builder::new();
    let map = b"/CIDInit /ProcSet findresource begin begincmap 1 begincodespacerange <0000> <ffff> endcodespacerange
        2 beginbfchar <0001> <0041> <0002> <00660069> endbfchar endcmap";
    let map = builder.stream("", map);
    let inner = "<</Type/Font/Subtype/CIDFontType2/BaseFont/X/DW 500/CIDSystemInfo<</Registry(Adobe)/Ordering(Identity)/Supplement 0>>>>";
    let font = builder.object(format!(
        "<</Type/Font/Subtype/Type0/BaseFont/X/Encoding/Identity-H/DescendantFonts[{inner}]/ToUnicode {map} 0 R>>"
    ));
    builder.page_with_fonts("", &format!("/F2 {font} 0 R"), "BT /F2 10 Tf 20 200 Td <00010002> Tj ET");
    assert_eq!(words(&read(builder.bytes()).pages[0]), ["Afi"]);
}

#[test]
fn japanese_without_to_unicode_is_read_by_its_collection() {
    let mut builder = Builder::new();
    let inner = "<</Type/Font/Subtype/CIDFontType0/BaseFont/Ryumin/CIDSystemInfo<</Registry(Adobe)/Ordering(Japan1)/Supplement 2>>>>";
    let font = builder.object(format!(
        "<</Type/Font/Subtype/Type0/BaseFont/Ryumin/Encoding/90ms-RKSJ-H/DescendantFonts[{inner}]>>"
    ));
    builder.page_with_fonts("", &format!("/F2 {font} 0 R"), "BT /F2 10 Tf 20 200 Td <93fa967b> Tj ET");
    assert_eq!(words(&read(builder.bytes()).pages[0]), ["日本"]);
}

#[test]
fn hebrew_is_read_in_logical_order() {
    let mut builder = Builder::new();
    let map = b"begincmap 1 begincodespacerange <00> <ff> endcodespacerange 1 beginbfrange <41> <5a> <05d0> endbfrange endcmap";
    let map = builder.stream("", map);
    let widths = "500 ".repeat(26);
    let font = builder.object(format!(
        "<</Type/Font/Subtype/TrueType/BaseFont/H/FirstChar 65/LastChar 90/Widths[{widths}]/ToUnicode {map} 0 R>>"
    ));
    builder.page_with_fonts(
        "",
        &format!("/F2 {font} 0 R"),
        "BT /F2 10 Tf 20 200 Td (CBA) Tj 20 0 Td (FED) Tj 60 0 Td (IHG) Tj ET",
    );
    assert_eq!(words(&read(builder.bytes()).pages[0]), ["זחט", "דהו", "אבג"]);
}

#[test]
fn replacement_texts_are_honoured() {
    check(
        "BT /F1 10 Tf 20 200 Td /Span<</ActualText(Really)>> BDC (xyz) Tj EMC ( so) Tj ET",
        &["Really", "so"],
    );
    check("BT /F1 10 Tf 20 200 Td (a) Tj /Span<</ActualText(ffi)>> BDC (x) Tj EMC (n) Tj ET", &["affin"]);
    check("BT /F1 10 Tf 20 200 Td /P<</MCID 0>> BDC (as it is) Tj EMC ET", &["as", "it", "is"]);
}

#[test]
fn hidden_layers_are_left_out() {
    let mut builder = Builder::new();
    let layer = builder.object("<</Type/OCG/Name(Draft)>>");
    builder.catalog(&format!("/OCProperties<</OCGs[{layer} 0 R]/D<</OFF[{layer} 0 R]>>>>"));
    let resources = format!("/Resources<</Font<</F1 3 0 R>>/Properties<</L {layer} 0 R>>>>");
    builder.page(&resources, "BT /F1 10 Tf 20 200 Td /OC /L BDC (hidden ) Tj EMC (shown) Tj ET");
    assert_eq!(words(&read(builder.bytes()).pages[0]), ["shown"]);
}

#[test]
fn values_of_fields_without_appearance_are_read() {
    let mut builder = Builder::new();
    let field =
        builder.object("<</Type/Annot/Subtype/Widget/FT/Tx/V(Jane Doe)/DA(/F1 9 Tf)/Rect[100 100 200 115]>>");
    builder.page(&format!("/Annots[{field} 0 R]"), "BT /F1 10 Tf 20 104 Td (Name) Tj ET");
    assert_eq!(words(&read(builder.bytes()).pages[0]), ["Name", "Jane", "Doe"]);
}

#[test]
fn forms_are_read_where_they_are_drawn() {
    let mut builder = Builder::new();
    let form = builder.stream(
        "/Type/XObject/Subtype/Form/BBox[0 0 100 100]/Matrix[1 0 0 1 5 5]/Resources<</Font<</F1 3 0 R>>>>",
        b"BT /F1 10 Tf (inside) Tj ET",
    );
    builder.page(&format!("/Resources<</XObject<</X {form} 0 R>>>>"), "q 1 0 0 1 100 100 cm /X Do Q");
    let document = read(builder.bytes());
    check_box(document.pages[0].words[0].bbox, [105.0, 187.5, 131.0, 197.2]);
}

#[test]
fn embedded_files_are_found_in_every_place() {
    let mut builder = Builder::new();
    let data = builder.stream("/Type/EmbeddedFile/Subtype/text#2Fxml", b"<a/>");
    let file = builder.object(format!("<</Type/Filespec/F(a.xml)/UF(\\376\\377\\000\\344\\000.\\000x\\000m\\000l)/AFRelationship/Alternative/EF<</F {data} 0 R>>>>"));
    let pinned = builder.stream("/Type/EmbeddedFile", b"pinned");
    let pin = builder.object(format!(
        "<</Type/Annot/Subtype/FileAttachment/Rect[0 0 9 9]/FS<</F(note.txt)/EF<</F {pinned} 0 R>>>>>>"
    ));
    builder.catalog(&format!("/AF[{file} 0 R]/Names<</EmbeddedFiles<</Names[(a.xml){file} 0 R]>>>>"));
    builder.page(&format!("/Annots[{pin} 0 R]"), "");
    let attachments = read(builder.bytes()).attachments;
    assert_eq!(attachments.len(), 2, "the associated file is the one in the name tree: {attachments:?}");
    assert_eq!((attachments[0].name.as_str(), &attachments[0].bytes[..]), ("ä.xml", &b"<a/>"[..]));
    assert_eq!(attachments[0].media_type.as_deref(), Some("text/xml"));
    assert_eq!(attachments[0].relation.as_deref(), Some("Alternative"));
    assert_eq!((attachments[1].name.as_str(), &attachments[1].bytes[..]), ("note.txt", &b"pinned"[..]));
}
