//! One small document for each feature.

mod builder;

use builder::{Builder, asset, converted, html, main_of, one_page, text_of};
use ode_pdf_html::{AssetKind, ConversionConfig, Limits, Refusal, convert};

#[test]
fn text_is_text_in_a_font_of_its_own() {
    let conversion = converted(one_page("BT /F1 12 Tf 50 250 Td (Hello world) Tj ET"));
    insta::assert_snapshot!(html(&conversion));
    assert!(
        conversion.assets.iter().any(|asset| asset.kind == AssetKind::Font && asset.path == "fonts/f0.woff2")
    );
}

#[test]
fn vectors_are_short_paths_and_equal_neighbours_are_one() {
    insta::assert_snapshot!(main_of(one_page(
        "1 0 0 rg 10 10 50 20 re f 100 10 50 20 re f 0 0 1 RG 2 w 10 100 m 200 100 l S 10 120 m 200 120 l S \
         0 1 0 rg 50 200 m 80 250 120 250 150 200 c b"
    )));
}

#[test]
fn clip_cuts_what_reaches_beyond_it_and_nothing_else() {
    insta::assert_snapshot!(main_of(one_page(
        "q 20 20 100 100 re W n 10 10 50 50 re f 40 40 10 10 re f Q 200 200 m 300 200 l 250 280 l h W n 0 0 400 300 re f"
    )));
}

#[test]
fn text_under_a_later_shape_is_drawn_below_it() {
    let main = main_of(one_page("BT /F1 12 Tf 50 250 Td (Hidden) Tj ET 1 g 40 240 100 30 re f"));
    assert!(main.contains("<path d="), "the letters are drawn as shapes: {main}");
    assert_eq!(text_of(&main), "PDF document\nHidden");
}

#[test]
fn text_under_later_text_of_another_colour_is_drawn_below_it() {
    let watermark = ".8 g BT /F1 90 Tf 40 120 Td (DRAFT) Tj ET 0 g";
    let lines: String = (0..9)
        .map(|at| format!("BT /F1 12 Tf 20 {} Td (Words of line {at}) Tj ET ", 230 - 20 * at))
        .collect();
    let conversion = converted(one_page(&format!("{watermark} {lines}")));
    let html = html(&conversion);
    assert_eq!(html.matches("<path").count(), 1, "the watermark alone is a shape: {html}");
    let text = text_of(&html);
    assert!(
        text.contains("DRAFT") && (0..9).all(|at| text.contains(&format!("Words of line {at}"))),
        "{text}"
    );
}

#[test]
fn words_that_lie_over_each_other_stand_where_they_are_drawn() {
    let word = |word: &str| format!("BT /F1 12 Tf 50 250 Td ({word}) Tj ET ");
    let conversion = converted(one_page(&["wide", "over", "each", "other"].map(word).concat()));
    let css = String::from_utf8(asset(&conversion, "style.css").bytes.clone()).unwrap();
    let spaces = css.split("word-spacing:").skip(1).filter_map(|rest| rest.split("px").next()?.parse().ok());
    // A space of the type is 30 wide, and browsers take no more than all of it away.
    assert!(spaces.clone().all(|space: f64| space >= -30.1), "{css}");
    assert!(css.contains("margin-inline-start:-"), "the pen goes back by itself: {css}");
}

#[test]
fn hyphen_that_browsers_leave_no_room_for_moves_what_follows() {
    let main = main_of(one_page("BT /F1 12 Tf 50 250 Td (soft\\255hyphen) Tj ET"));
    assert_eq!(text_of(&main), "PDF document\nsoft\u{ad}hyphen");
    assert!(main.contains("<path"), "the hyphen is seen: {main}");
    assert!(main.contains("></i>hyphen"), "the pen moves after it: {main}");
}

#[test]
fn glyph_whose_text_is_told_is_a_letter_of_its_font() {
    let main = main_of(one_page(
        "BT /F1 12 Tf 50 250 Td (A) Tj /Span<</ActualText<FEFF0416>>> BDC (B) Tj EMC (C) Tj ET",
    ));
    assert_eq!(text_of(&main), "PDF document\nA\u{416}C");
    assert!(!main.contains("<path"), "{main}");
}

#[test]
fn unseen_text_can_be_copied() {
    let conversion = converted(one_page("BT 3 Tr /F1 12 Tf 50 250 Td (Scanned words) Tj ET"));
    let html = html(&conversion);
    assert!(text_of(&html).contains("Scanned words"));
    assert!(!conversion.assets.iter().any(|asset| asset.path == "fonts/f0.woff2"));
}

#[test]
fn hyphenated_word_is_copied_as_one() {
    let main = main_of(one_page(
        "BT /F1 12 Tf 50 250 Td (A long para-) Tj 0 -14 Td (graph of text that goes on) Tj ET",
    ));
    assert_eq!(text_of(&main), "PDF document\nA long paragraph\n of text that goes on");
    assert!(main.contains("data-t=\"-\"") && main.contains("data-t=\"graph\""));
}

/// A page whose font gives its codes these letters.
fn page_in_script(letters: &[(char, &str)], content: &str) -> Vec<u8> {
    let mut pdf = Builder::new();
    let pairs: String = letters
        .iter()
        .map(|(code, text)| {
            let units: String = text.encode_utf16().map(|unit| format!("{unit:04x}")).collect();
            format!("<{:02x}> <{units}> ", u32::from(*code))
        })
        .collect();
    let map = format!(
        "1 begincodespacerange <00> <ff> endcodespacerange {} beginbfchar {pairs}endbfchar",
        letters.len()
    );
    let map = pdf.stream("", map.as_bytes());
    let font = format!("<</Type/Font/Subtype/Type1/BaseFont/Helvetica/ToUnicode {map} 0 R>>");
    let font = pdf.object(font);
    pdf.page_with_fonts("", &format!("/F2 {font} 0 R"), content);
    pdf.bytes()
}

const HEBREW: [(char, &str); 5] =
    [('A', "\u{5d0}"), ('B', "\u{5d1}"), ('C', "\u{5d2}"), ('1', "1"), ('2', "2")];

#[test]
fn letters_from_right_to_left_are_text_in_order_of_reading_and_numbers_keep_theirs() {
    let conversion = converted(page_in_script(
        &HEBREW,
        "BT /F2 12 Tf 50 250 Td (12 CBA) Tj ET BT /F1 12 Tf 50 200 Td (one) Tj ET",
    ));
    let html = html(&conversion);
    assert_eq!(text_of(&html[html.find("<main>").unwrap()..]), "PDF document\n\u{5d0}\u{5d1}\u{5d2} 12\none");
    assert!(!html.contains("<svg"), "the letters are drawn besides: {html}");
    insta::assert_snapshot!(&html[html.find("<main>").unwrap()..]);
}

#[test]
fn words_from_right_to_left_in_a_line_from_left_to_right_are_read_from_the_right() {
    let main = main_of(page_in_script(
        &HEBREW,
        "BT /F1 12 Tf 50 250 Td (plenty of words ) Tj /F2 12 Tf (BA CA) Tj /F1 12 Tf ( and more) Tj ET",
    ));
    assert_eq!(text_of(&main), "PDF document\nplenty of words \u{5d0}\u{5d2} \u{5d0}\u{5d1} and more");
    assert!(main.contains("<i dir=rtl>"), "{main}");
}

#[test]
fn marks_and_syllables_are_letters_of_the_document_s_own_font() {
    let script =
        [('A', "\u{915}"), ('B', "\u{93f}"), ('C', "\u{915}\u{94d}\u{937}"), ('D', "e"), ('E', "\u{301}")];
    let conversion = converted(page_in_script(&script, "BT /F2 12 Tf 50 250 Td (BAC DE) Tj ET"));
    let html = html(&conversion);
    assert!(text_of(&html).contains("\u{93f}\u{915}\u{915}\u{94d}\u{937} e\u{301}"), "{html}");
    assert!(!html.contains("<svg"), "the letters are drawn besides: {html}");
    assert!(html.contains("<i class=r>\u{301}</i>"), "no browser makes one letter of two: {html}");
}

#[test]
fn ligature_is_one_glyph_and_copied_as_its_letters() {
    let main = main_of(page_in_script(&[('A', "ffi"), ('B', "o")], "BT /F2 12 Tf 50 250 Td (BAB) Tj ET"));
    assert!(main.contains(">offio</span>"), "{main}");
    assert!(!main.contains("<svg"), "{main}");
}

#[test]
fn vertical_columns_are_read_from_the_right() {
    let mut pdf = Builder::new();
    let inner = "<</Type/Font/Subtype/CIDFontType0/BaseFont/Ryumin-Light/CIDSystemInfo<</Registry(Adobe)/Ordering(Japan1)\
                 /Supplement 2>>/DW 1000/FontDescriptor<</Type/FontDescriptor/FontName/Ryumin-Light/Flags 4>>>>";
    let font = format!(
        "<</Type/Font/Subtype/Type0/BaseFont/Ryumin-Light/Encoding/UniJIS-UCS2-V/DescendantFonts[{inner}]>>"
    );
    let font = pdf.object(font);
    pdf.page_with_fonts(
        "",
        &format!("/F2 {font} 0 R"),
        "BT /F2 20 Tf 300 280 Td <65E5672C8A9E> Tj ET BT /F2 20 Tf 270 280 Td <6F225B576587> Tj ET",
    );
    let text = text_of(&main_of(pdf.bytes()));
    assert_eq!(text, "PDF document\n\u{65e5}\u{672c}\u{8a9e}\n\u{6f22}\u{5b57}\u{6587}");
}

#[test]
fn annotations_are_drawn_by_their_appearance_and_those_without_by_what_they_are() {
    let mut pdf = Builder::new();
    let look = pdf.stream("/Type/XObject/Subtype/Form/BBox[0 0 10 10]", b"0 1 0 rg 0 0 10 10 re f");
    let quad = "/QuadPoints[10 60 60 60 10 50 60 50]";
    let annotations = [
        format!("<</Type/Annot/Subtype/Stamp/Rect[10 10 30 30]/AP<</N {look} 0 R>>>>"),
        format!("<</Type/Annot/Subtype/Highlight/Rect[10 50 60 60]/C[1 1 0]{quad}>>"),
        format!("<</Type/Annot/Subtype/Underline/Rect[10 50 60 60]/C[0 0 1]{quad}>>"),
        "<</Type/Annot/Subtype/Square/Rect[100 10 150 60]/C[1 0 0]/IC[0 1 1]/BS<</W 2>>>>".to_owned(),
        "<</Type/Annot/Subtype/Polygon/Rect[200 10 250 60]/C[0]/IC[.5]/Vertices[200 10 250 10 225 60]>>"
            .to_owned(),
        "<</Type/Annot/Subtype/PolyLine/Rect[300 10 350 60]/C[0]/Vertices[300 10 350 10 325 60]>>".to_owned(),
        "<</Type/Annot/Subtype/FreeText/Rect[10 200 110 230]/C[1 0 0]/Contents(Note)/DA(/Helv 9 Tf)>>"
            .to_owned(),
        "<</Type/Annot/Subtype/Square/Rect[0 0 400 300]/F 2/C[1 0 0]>>".to_owned(),
    ];
    pdf.page(&format!("/Annots[{}]", annotations.concat()), "");
    insta::assert_snapshot!(main_of(pdf.bytes()));
}

#[test]
fn turned_text_and_turned_pages_keep_their_place() {
    let mut pdf = Builder::new();
    pdf.page("/Rotate 90", "BT /F1 12 Tf 0 1 -1 0 50 100 Tm (Upwards) Tj ET");
    insta::assert_snapshot!(main_of(pdf.bytes()));
}

#[test]
fn glyphs_drawn_by_instructions_become_letters_of_a_font() {
    let mut pdf = Builder::new();
    let glyph = pdf.stream("", b"600 0 0 0 500 500 d1 0 0 500 500 re f");
    let font = format!(
        "<</Type/Font/Subtype/Type3/FontBBox[0 0 600 600]/FontMatrix[.001 0 0 .001 0 0]/FirstChar 97/LastChar 97\
         /Widths[600]/Encoding<</Differences[97/a]>>/CharProcs<</a {glyph} 0 R>>/Resources<<>>>>"
    );
    let font = pdf.object(font);
    pdf.page_with_fonts("", &format!("/F2 {font} 0 R"), "BT /F2 20 Tf 50 200 Td (aa) Tj ET");
    let conversion = converted(pdf.bytes());
    let html = html(&conversion);
    assert!(html.contains(">aa<"));
    assert!(!html.contains("<svg"), "it is drawn besides: {html}");
    assert!(asset(&conversion, "fonts/f0.woff2").bytes.starts_with(b"wOF2"));
}

#[test]
fn groups_masks_blends_and_opacity_are_kept() {
    let mut pdf = Builder::new();
    let mask = pdf.stream(
        "/Type/XObject/Subtype/Form/BBox[0 0 400 300]/Group<</S/Transparency/CS/DeviceGray>>",
        b"1 g 0 0 200 300 re f",
    );
    let states =
        format!("/ExtGState<</A<</ca .5>>/B<</BM/Multiply>>/M<</SMask<</S/Luminosity/G {mask} 0 R>>>>>>");
    pdf.page(
        &format!("/Resources<<{states}>>"),
        "q /A gs 1 0 0 rg 0 0 100 100 re f Q q /B gs 0 1 0 rg 50 50 100 100 re f Q q /M gs 0 0 1 rg 100 100 200 100 re f Q",
    );
    insta::assert_snapshot!(main_of(pdf.bytes()));
}

#[test]
fn shading_is_a_gradient_and_tiling_a_pattern() {
    let mut pdf = Builder::new();
    let tile = pdf.stream(
        "/Type/Pattern/PatternType 1/PaintType 1/TilingType 1/BBox[0 0 10 10]/XStep 10/YStep 10/Resources<<>>",
        b"1 0 0 rg 0 0 5 5 re f",
    );
    let shading = "<</ShadingType 2/ColorSpace/DeviceRGB/Coords[0 0 400 0]/Extend[true true]\
                   /Function<</FunctionType 2/Domain[0 1]/C0[1 0 0]/C1[0 0 1]/N 1>>>>";
    pdf.page(
        &format!("/Resources<</Shading<</S {shading}>>/Pattern<</P {tile} 0 R>>>>"),
        "q 0 200 400 100 re W n /S sh Q /Pattern cs /P scn 0 0 100 100 re f",
    );
    insta::assert_snapshot!(main_of(pdf.bytes()));
}

/// A small grey JPEG of one block.
fn jpeg() -> Vec<u8> {
    let mut file = vec![0xff, 0xd8, 0xff, 0xdb, 0, 67, 0];
    file.extend([1; 64]);
    file.extend([0xff, 0xc0, 0, 11, 8, 0, 8, 0, 8, 1, 1, 0x11, 0]);
    file.extend([0xff, 0xc4, 0, 20, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    file.extend([0xff, 0xc4, 0, 20, 0x10, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    file.extend([0xff, 0xda, 0, 8, 1, 1, 0, 0, 63, 0, 0x3f, 0xff, 0xd9]);
    // Large enough to be a file of its own.
    file.extend(vec![0; 2000]);
    file
}

#[test]
fn jpeg_stays_as_it_is_and_other_pictures_become_png() {
    let mut pdf = Builder::new();
    let photo = pdf.stream(
        "/Type/XObject/Subtype/Image/Width 8/Height 8/ColorSpace/DeviceGray/BitsPerComponent 8/Filter/DCTDecode",
        &jpeg(),
    );
    let mut seed = 1_u32;
    let noise: Vec<u8> = std::iter::repeat_with(|| {
        seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (seed >> 24) as u8
    })
    .take(64 * 64 * 3)
    .collect();
    let plain = pdf.stream(
        "/Type/XObject/Subtype/Image/Width 64/Height 64/ColorSpace/DeviceRGB/BitsPerComponent 8",
        &noise,
    );
    pdf.page(
        &format!("/Resources<</XObject<</A {photo} 0 R/B {plain} 0 R>>>>"),
        "q 100 0 0 100 0 0 cm /A Do Q q 64 0 0 64 200 0 cm /B Do Q",
    );
    let conversion = converted(pdf.bytes());
    assert_eq!(asset(&conversion, "images/0.jpg").bytes, jpeg());
    assert!(asset(&conversion, "images/1.png").bytes.starts_with(b"\x89PNG"));
    insta::assert_snapshot!(main_of(pdf.bytes()));
}

#[test]
fn links_lead_to_pages_and_harmless_addresses_only() {
    let mut pdf = Builder::new();
    let link = |action: &str, x: u32| {
        format!("<</Type/Annot/Subtype/Link/Rect[{x} 10 {} 30]/Border[0 0 0]{action}>>", x + 40)
    };
    let annotations = [
        link("/A<</S/URI/URI(https://example.org/?a=1&b=\"2\")>>", 10),
        link("/A<</S/URI/URI(javascript:alert\\(1\\))>>", 60),
        link("/A<</S/Launch/F(calc.exe)>>", 110),
        link("/Dest[0 /Fit]", 160),
        link("/A<</S/GoTo/D(missing)>>", 210),
    ];
    pdf.page(&format!("/Annots[{}]", annotations.concat()), "BT /F1 12 Tf 10 12 Td (Click) Tj ET");
    insta::assert_snapshot!(main_of(pdf.bytes()));
}

#[test]
fn outline_is_navigation_and_title_and_language_are_told() {
    let mut pdf = Builder::new();
    let outline = pdf.object("<</Type/Outlines/First 5 0 R/Last 5 0 R/Count 1>>");
    assert_eq!(outline, 4);
    pdf.object("<</Title(One <b>)/Parent 4 0 R/Dest[0/Fit]/First 6 0 R/Last 6 0 R>>");
    pdf.object("<</Title(Inner)/Parent 5 0 R/Next 6 0 R>>");
    pdf.catalog("/Outlines 4 0 R/Lang(de-AT)");
    let info = pdf.object("<</Title(Guide)>>");
    pdf.trailer(&format!("/Info {info} 0 R"));
    pdf.page("", "BT /F1 12 Tf 10 12 Td (Text) Tj ET");
    let html = html(&converted(pdf.bytes()));
    assert!(html.contains("<html lang=\"de-AT\">") && html.contains("<title>Guide</title>"));
    assert!(html.contains("<ol><li><a href=\"#page-1\">One &lt;b&gt;</a><ol><li>Inner</li></ol></li></ol>"));
}

#[test]
fn fields_are_inputs() {
    let mut pdf = Builder::new();
    let field = |entries: &str, y: u32| {
        format!("<</Type/Annot/Subtype/Widget/Rect[10 {y} 110 {}]{entries}>>", y + 20)
    };
    let fields = [
        field("/FT/Tx/T(name)/TU(Your \"name\")/V(Ada)/MaxLen 20", 10),
        field("/FT/Tx/Ff 4096/T(story)/V(One\\rTwo)", 40),
        field("/FT/Btn/T(agree)/AS/Yes/AP<</N<</Yes 3 0 R/Off 3 0 R>>>>", 70),
        field("/FT/Btn/Ff 32768/T(colour)/AS/Off/AP<</N<</Red 3 0 R>>>>", 100),
        field("/FT/Ch/Ff 131072/T(land)/Opt[(A)[(b)(Bravo)]]/V(b)", 130),
        field("/FT/Btn/Ff 65536/T(send)/MK<</CA(Send)>>", 160),
    ];
    pdf.page(&format!("/Annots[{}]", fields.concat()), "");
    insta::assert_snapshot!(main_of(pdf.bytes()));
}

#[test]
fn value_without_an_appearance_is_written_in_the_font_and_the_colour_of_its_field() {
    let mut pdf = Builder::new();
    let empty = pdf.stream("/Type/XObject/Subtype/Form/BBox[0 0 100 20]", b"");
    let field = |entries: &str, y: u32| {
        format!("<</Type/Annot/Subtype/Widget/FT/Tx/Rect[10 {y} 210 {}]{entries}>>", y + 20)
    };
    let fields = [
        field("/T(a)/V(Orange \\\"'\\351)/DA(1 0.5 0 rg /Times 12 Tf)", 10),
        field("/T(b)/V(Right)/Q 2/DA(/Unknown 12 Tf)", 40),
        field(&format!("/T(c)/V(Unseen)/AP<</N {empty} 0 R>>"), 70),
    ];
    let font = "/Times<</Type/Font/Subtype/Type1/BaseFont/Times-Roman>>";
    pdf.catalog(&format!("/AcroForm<</DR<</Font<<{font}>>>>/DA(0 0 1 rg /Times 9 Tf)>>"));
    pdf.page(&format!("/Annots[{}]", fields.concat()), "");
    let conversion = converted(pdf.bytes());
    let css = String::from_utf8(asset(&conversion, "style.css").bytes.clone()).unwrap();
    assert!(css.contains("color:#ff8000"), "{css}");
    assert!(!conversion.assets.iter().any(|asset| asset.path == "fonts/f2.woff2"), "one is not seen");
    assert!(conversion.warnings.is_empty(), "all letters have shapes: {:?}", conversion.warnings);
    let html = html(&conversion);
    insta::assert_snapshot!(html[html.find("<main>").unwrap()..html.find("</main>").unwrap()].to_owned());
}

#[test]
fn vertical_text_in_a_font_of_the_readers_stands_upright() {
    let mut pdf = Builder::new();
    let inner = "<</Type/Font/Subtype/CIDFontType0/BaseFont/Ryumin-Light\
                 /CIDSystemInfo<</Registry(Adobe)/Ordering(Japan1)/Supplement 2>>>>";
    let font = format!(
        "/F2<</Type/Font/Subtype/Type0/BaseFont/Ryumin-Light/Encoding/UniJIS-UCS2-V/DescendantFonts[{inner}]>>"
    );
    pdf.page_with_fonts("", &font, "BT /F2 20 Tf 100 250 Td <7E263066> Tj ET");
    insta::assert_snapshot!(main_of(pdf.bytes()));
}

#[test]
fn tags_become_headings_lists_and_tables() {
    let mut pdf = Builder::new();
    let words = [("H1", "Title"), ("P", "Words"), ("LI", "Item"), ("TH", "Head"), ("TD", "Cell")];
    let content: String = words
        .iter()
        .enumerate()
        .map(|(at, (tag, text))| {
            format!("/{tag} <</MCID {at}>> BDC BT /F1 12 Tf 50 {} Td ({text}) Tj ET EMC ", 250 - 30 * at)
        })
        .collect();
    pdf.page("", &content);
    // The page is object 5: its content is object 4.
    let element = |kind: &str, kids: &str| format!("<</S/{kind}/Pg 5 0 R/K[{kids}]>>");
    let row = element("TR", &(element("TH", "3") + &element("TD", "4")));
    let kids = [
        element("Chapter", "0"),
        element("P", "1"),
        element("L", &element("LI", &element("LBody", "2"))),
        element("Table", &row),
        "<</S/Figure/Pg 5 0 R/Alt(A \"cat\")>>".to_owned(),
    ];
    let root =
        format!("<</Type/StructTreeRoot/RoleMap<</Chapter/H1>>/K{}>>", element("Document", &kids.concat()));
    let root = pdf.object(root);
    pdf.catalog(&format!("/StructTreeRoot {root} 0 R/MarkInfo<</Marked true>>"));
    insta::assert_snapshot!(main_of(pdf.bytes()));
}

#[test]
fn larger_type_is_taken_for_a_heading() {
    let main = main_of(one_page(
        "BT /F1 24 Tf 50 250 Td (Heading) Tj /F1 10 Tf 0 -60 Td (Some plain text that is much longer than it) Tj ET",
    ));
    assert!(main.contains("<h1><span"), "{main}");
    assert!(main.contains("<p><span"), "{main}");
}

#[test]
fn nothing_in_a_document_becomes_markup() {
    let mut pdf = Builder::new();
    pdf.page("", "BT /F1 12 Tf 50 250 Td (<script>alert\\(1\\)</script>&amp;) Tj ET");
    let html = html(&converted(pdf.bytes()));
    assert!(!html.contains("<script"));
    assert!(html.contains("&lt;script&gt;alert(1)&lt;/script&gt;&amp;amp;"));
}

#[test]
fn one_file_holds_everything_and_needs_nothing_else() {
    let config = ConversionConfig { single_file: true, ..ConversionConfig::default() };
    let pdf = one_page("BT /F1 12 Tf 50 250 Td (Hello) Tj ET");
    let conversion = convert(pdf, &config, &Limits::default()).unwrap();
    let [page] = &conversion.assets[..] else { panic!("{} files", conversion.assets.len()) };
    let html = String::from_utf8(page.bytes.clone()).unwrap();
    assert!(html.contains("style-src 'sha256-"));
    assert!(!html.contains("src=\"images") && !html.contains("url(fonts"));
}

#[test]
fn without_fonts_letters_are_shapes_and_text_is_still_there() {
    let config = ConversionConfig { embed_fonts: false, ..ConversionConfig::default() };
    let pdf = one_page("BT /F1 12 Tf 50 250 Td (Hello) Tj ET");
    let conversion = convert(pdf, &config, &Limits::default()).unwrap();
    let fonts: Vec<&str> = conversion
        .assets
        .iter()
        .filter(|asset| asset.kind == AssetKind::Font)
        .map(|asset| asset.path.as_str())
        .collect();
    assert_eq!(fonts, ["fonts/z.woff2"]);
    let html = html(&conversion);
    assert!(html.contains("<path d=") && text_of(&html).contains("Hello"));
}

#[test]
fn letters_that_join_hands_are_not_spaced_out_where_they_are_not_seen() {
    let config = ConversionConfig { embed_fonts: false, ..ConversionConfig::default() };
    let letters = [('A', "\u{633}"), ('B', "\u{644}"), ('C', "\u{645}")];
    let pdf = page_in_script(&letters, "BT /F2 20 Tf 50 200 Td (CBA) Tj ET");
    let conversion = convert(pdf, &config, &Limits::default()).unwrap();
    assert!(text_of(&html(&conversion)).contains("\u{633}\u{644}\u{645}"));
    let css = String::from_utf8(asset(&conversion, "style.css").bytes.clone()).unwrap();
    assert!(!css.contains("letter-spacing"), "browsers would not do it: {css}");
}

#[test]
fn same_document_gives_the_same_bytes() {
    let pdf = one_page("BT /F1 12 Tf 50 250 Td (Hello world) Tj ET 1 0 0 rg 10 10 50 20 re f");
    assert_eq!(converted(pdf.clone()).assets, converted(pdf).assets);
}

#[test]
fn only_the_pages_that_were_asked_for_are_converted() {
    let mut pdf = Builder::new();
    for page in 1..=3 {
        pdf.page("", &format!("BT /F1 12 Tf 50 250 Td (Page {page}) Tj ET"));
    }
    let config = ConversionConfig { pages: Some("2".parse().unwrap()), ..ConversionConfig::default() };
    let conversion = convert(pdf.bytes(), &config, &Limits::default()).unwrap();
    let html = html(&conversion);
    assert!(
        html.contains("id=\"page-2\"") && !html.contains("id=\"page-1\"") && !html.contains("id=\"page-3\"")
    );
    let config = ConversionConfig { pages: Some("7-".parse().unwrap()), ..ConversionConfig::default() };
    let refused = convert(pdf.bytes(), &config, &Limits::default()).unwrap_err();
    assert_eq!(refused, Refusal::NoSuchPages { pages: 3, wanted: "7-".into() });
}

#[test]
fn page_past_its_limit_is_left_as_a_picture_and_its_text_stays() {
    let lines: String = (0..200).map(|at| format!("{at} 0 m {at} 300 l S ")).collect();
    let pdf = one_page(&format!("BT /F1 12 Tf 50 250 Td (Hello) Tj ET {lines}"));
    let check = |limits: Limits| {
        let conversion = convert(pdf.clone(), &ConversionConfig::default(), &limits).unwrap();
        let html = html(&conversion);
        assert!(html.contains("<img class=\"g\""));
        assert!(text_of(&html).contains("Hello"));
        assert_eq!(
            conversion.warnings,
            [
                "Page 1 is left as a picture: it would take more than one page may. Its text can still be copied."
            ]
        );
    };
    check(Limits { steps_per_page_max: 100, ..Limits::default() });
    check(Limits { page_bytes_max: 1_000, ..Limits::default() });
}

#[test]
fn result_past_its_limit_is_refused() {
    let limits = Limits { output_base_max: 10, output_factor_max: 0, ..Limits::default() };
    let refused = convert(one_page(""), &ConversionConfig::default(), &limits).unwrap_err();
    assert_eq!(refused, Refusal::OutputTooLarge { bytes_max: 10 });
}

#[test]
fn zoom_that_makes_no_sense_is_refused() {
    let config = ConversionConfig { zoom: 0.0, ..ConversionConfig::default() };
    assert_eq!(convert(one_page(""), &config, &Limits::default()).unwrap_err(), Refusal::BadZoom(0.0));
}

#[test]
fn manifest_tells_sizes_and_digests() {
    let conversion = converted(one_page("BT /F1 12 Tf 50 250 Td (Hello) Tj ET"));
    let manifest = conversion.manifest();
    assert_eq!(manifest.assets.len(), conversion.assets.len());
    assert_eq!(manifest.assets[0].path, "index.html");
    assert_eq!(manifest.assets[0].bytes, conversion.assets[0].bytes.len());
    assert_eq!(manifest.assets[0].sha256.len(), 64);
}
