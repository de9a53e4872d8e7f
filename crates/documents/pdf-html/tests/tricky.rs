//! Small documents that are hard to get right, and small documents that mean harm.

mod builder;

use builder::{Builder, asset, converted, html, main_of, one_page, text_of};

/// What somebody would write who wants it to run.
const HOSTILE: &str = "</script><img src=x onerror=alert\\(1\\)>\"'";

#[test]
fn crop_box_and_rotation_decide_what_is_seen_and_not_what_is_copied() {
    let mut pdf = Builder::new();
    pdf.page(
        "/CropBox[100 50 300 250]/Rotate 270",
        "BT /F1 12 Tf 110 60 Td (Inside) Tj ET BT /F1 12 Tf 10 10 Td (Cut off) Tj ET 1 0 0 rg 290 240 100 50 re f",
    );
    insta::assert_snapshot!(main_of(pdf.bytes()));
    let css = String::from_utf8(asset(&converted(pdf.bytes()), "style.css").bytes.clone()).unwrap();
    assert!(css.contains("--w:266.667;--h:266.667"), "a page of 200 by 200 points: {css}");
}

#[test]
fn no_string_of_a_document_becomes_markup() {
    let mut pdf = Builder::new();
    let info = pdf.object(format!("<</Title({HOSTILE})>>"));
    let outline = pdf.object("<</Type/Outlines/First 6 0 R/Last 6 0 R/Count 1>>");
    pdf.object(format!("<</Title({HOSTILE})/Parent {outline} 0 R>>"));
    let annotations = [
        format!(
            "<</Type/Annot/Subtype/Link/Rect[10 10 50 30]/Contents({HOSTILE})/A<</S/URI/URI(https://example.org/{HOSTILE})>>>>"
        ),
        format!(
            "<</Type/Annot/Subtype/Widget/Rect[10 40 50 60]/FT/Tx/T({HOSTILE})/TU({HOSTILE})/V({HOSTILE})>>"
        ),
        format!(
            "<</Type/Annot/Subtype/Widget/Rect[10 70 50 90]/FT/Tx/Ff 4096/T(a)/V({HOSTILE}</textarea>)>>"
        ),
        format!(
            "<</Type/Annot/Subtype/Widget/Rect[10 100 50 120]/FT/Ch/T(b)/Opt[[({HOSTILE})({HOSTILE})]]/V({HOSTILE})>>"
        ),
        format!(
            "<</Type/Annot/Subtype/Widget/Rect[10 130 50 150]/FT/Btn/Ff 65536/T(c)/MK<</CA({HOSTILE})>>>>"
        ),
        format!("<</Type/Annot/Subtype/FreeText/Rect[10 160 350 200]/Contents({HOSTILE})/DA(/Helv 9 Tf)>>"),
    ];
    let figure = format!("<</S/Figure/Pg 7 0 R/Alt({HOSTILE})/Lang({HOSTILE})>>");
    let root = pdf.object(format!("<</Type/StructTreeRoot/K<</S/Document/K[{figure}]>>>>"));
    pdf.catalog(&format!("/Outlines {outline} 0 R/Lang({HOSTILE})/StructTreeRoot {root} 0 R"));
    pdf.trailer(&format!("/Info {info} 0 R"));
    pdf.page(
        &format!("/Annots[{}]", annotations.concat()),
        &format!("BT /F1 9 Tf 10 250 Td ({HOSTILE}) Tj ET"),
    );
    let html = html(&converted(pdf.bytes()));
    assert!(html.contains("<title>&lt;/script&gt;&lt;img src=x onerror=alert(1)&gt;&quot;"), "{html}");
    for markup in ["<img", "<script", "</script", "</textarea>\"", "onerror=\"", "alert(1)>"] {
        assert!(!html.contains(markup), "{markup} is in {html}");
    }
    insta::assert_snapshot!(html[html.find("<body>").unwrap()..].to_owned());
}

#[test]
fn mesh_is_painted_where_it_lies() {
    let mut pdf = Builder::new();
    // One triangle: a flag, two coordinates and three colours of a byte each, for each corner.
    let corners = [[0, 0, 0, 255, 0, 0], [0, 255, 0, 0, 255, 0], [0, 0, 255, 0, 0, 255]].concat();
    let mesh = pdf.stream(
        "/ShadingType 4/ColorSpace/DeviceRGB/BitsPerCoordinate 8/BitsPerComponent 8/BitsPerFlag 8\
         /Decode[0 200 0 200 0 1 0 1 0 1]",
        &corners,
    );
    pdf.page(&format!("/Resources<</Shading<</S {mesh} 0 R>>>>"), "q 0 0 200 200 re W n /S sh Q");
    assert!(asset(&converted(pdf.bytes()), "images/0.png").bytes.starts_with(b"\x89PNG"));
    insta::assert_snapshot!(main_of(pdf.bytes()));
}

#[test]
fn round_shading_and_uncoloured_tiles_keep_their_colours() {
    let mut pdf = Builder::new();
    let tile = pdf.stream(
        "/Type/Pattern/PatternType 1/PaintType 2/TilingType 1/BBox[0 0 10 10]/XStep 10/YStep 10/Resources<<>>",
        b"0 0 5 5 re f",
    );
    let shading = "<</ShadingType 3/ColorSpace/DeviceRGB/Coords[100 100 0 100 100 80]/Extend[false true]\
                   /Function<</FunctionType 2/Domain[0 1]/C0[1 1 0]/C1[0 0 1]/N 1>>>>";
    pdf.page(
        &format!(
            "/Resources<</Shading<</S {shading}>>/Pattern<</P {tile} 0 R>>/ColorSpace<</C[/Pattern/DeviceRGB]>>>>"
        ),
        "q 0 0 200 200 re W n /S sh Q /C cs 0 .5 0 /P scn 250 50 100 100 re f",
    );
    insta::assert_snapshot!(main_of(pdf.bytes()));
}

#[test]
fn tiles_that_overlap_are_drawn_into_each_other() {
    let mut pdf = Builder::new();
    let tile = pdf.stream(
        "/Type/Pattern/PatternType 1/PaintType 1/TilingType 1/BBox[0 0 20 10]/XStep 10/YStep 10/Resources<<>>",
        b"1 0 0 rg 12 2 5 5 re f",
    );
    pdf.page(&format!("/Resources<</Pattern<</P {tile} 0 R>>>>"), "/Pattern cs /P scn 0 0 100 100 re f");
    let main = main_of(pdf.bytes());
    assert!(main.contains("<use href=\"#p1-1c\" x=\"-1000\" y=\"0\"/><g id=\"p1-1c\">"), "{main}");
}

#[test]
fn picture_with_a_soft_mask_and_stencil_keep_their_holes() {
    let mut pdf = Builder::new();
    let entries = "/Type/XObject/Subtype/Image/Width 2/Height 2/BitsPerComponent 8/ColorSpace/DeviceGray";
    let mask = pdf.stream(entries, &[0, 255, 255, 0]);
    let picture = pdf.stream(&format!("{entries}/SMask {mask} 0 R"), &[10, 20, 30, 40]);
    let stencil = pdf.stream(
        "/Type/XObject/Subtype/Image/Width 8/Height 2/BitsPerComponent 1/ImageMask true",
        &[0b1010_1010, 0b0101_0101],
    );
    pdf.page(
        &format!("/Resources<</XObject<</A {picture} 0 R/B {stencil} 0 R>>>>"),
        "q 100 0 0 100 0 0 cm /A Do Q q 1 0 0 rg 80 0 0 20 200 0 cm /B Do Q",
    );
    insta::assert_snapshot!(main_of(pdf.bytes()));
}

#[test]
fn overprint_of_a_spot_colour_is_painted_and_a_group_blends_as_one() {
    let mut pdf = Builder::new();
    let group = pdf.stream(
        "/Type/XObject/Subtype/Form/BBox[0 0 400 300]/Group<</S/Transparency/I true>>",
        b"0 0 1 rg 50 50 100 100 re f 1 0 0 rg 80 80 100 100 re f",
    );
    let spot = "[/Separation/Gold/DeviceCMYK<</FunctionType 2/Domain[0 1]/C0[0 0 0 0]/C1[0 .2 .8 .1]/N 1>>]";
    pdf.page(
        &format!(
            "/Resources<</ColorSpace<</S {spot}>>/XObject<</G {group} 0 R>>\
             /ExtGState<</O<</OP true/op true/OPM 1>>/B<</BM/Darken/ca .5>>>>>>"
        ),
        "q /O gs /S cs 1 scn 0 0 200 200 re f Q q /B gs /G Do Q",
    );
    insta::assert_snapshot!(main_of(pdf.bytes()));
}

#[test]
fn coloured_glyph_of_instructions_is_drawn_and_its_letter_lies_over_it() {
    let mut pdf = Builder::new();
    let glyph = pdf.stream("", b"600 0 d0 1 0 0 rg 0 0 300 500 re f 0 0 1 rg 300 0 300 500 re f");
    let font = format!(
        "<</Type/Font/Subtype/Type3/FontBBox[0 0 600 600]/FontMatrix[.001 0 0 .001 0 0]/FirstChar 97/LastChar 97\
         /Widths[600]/Encoding<</Differences[97/a]>>/CharProcs<</a {glyph} 0 R>>/Resources<<>>>>"
    );
    let font = pdf.object(font);
    pdf.page_with_fonts("", &format!("/F2 {font} 0 R"), "BT /F2 20 Tf 50 200 Td (a) Tj ET");
    let main = main_of(pdf.bytes());
    assert!(main.contains("<svg"), "it is drawn: {main}");
    assert_eq!(text_of(&main), "PDF document\na");
}

#[test]
fn outline_that_goes_in_circles_ends() {
    let mut pdf = Builder::new();
    pdf.object("<</Type/Outlines/First 5 0 R/Last 5 0 R>>");
    pdf.object("<</Title(One)/Parent 4 0 R/Dest[0/Fit]/First 6 0 R/Next 5 0 R>>");
    pdf.object("<</Title(Two)/Parent 5 0 R/First 7 0 R>>");
    pdf.object("<</Title(Three)/Parent 6 0 R/Dest[7/Fit]/First 5 0 R>>");
    pdf.catalog("/Outlines 4 0 R");
    pdf.page("", "");
    let html = html(&converted(pdf.bytes()));
    let nav = &html[html.find("<nav").unwrap()..html.find("</nav>").unwrap()];
    insta::assert_snapshot!(nav);
}

#[test]
fn every_kind_of_field_is_what_it_was() {
    let mut pdf = Builder::new();
    let look = pdf.stream("/Type/XObject/Subtype/Form/BBox[0 0 20 20]", b"0 0 20 20 re S");
    let field = |entries: &str, y: u32| {
        format!("<</Type/Annot/Subtype/Widget/Rect[10 {y} 110 {}]{entries}>>", y + 15)
    };
    let ticked = |on: &str, state: &str| format!("/AS/{state}/AP<</N<</{on} {look} 0 R/Off {look} 0 R>>>>");
    let fields = [
        field("/FT/Tx/Ff 8192/T(secret)/V(not told)", 10),
        field("/FT/Tx/Ff 3/T(fixed)/V(As it is)", 30),
        field(&format!("/FT/Btn/T(on){}", ticked("Yes", "Yes")), 50),
        field(&format!("/FT/Btn/T(off){}", ticked("Yes", "Off")), 70),
        field(&format!("/FT/Btn/Ff 32768/T(colour){}", ticked("Red", "Red")), 90),
        field(&format!("/FT/Btn/Ff 32768/T(colour){}", ticked("Blue", "Off")), 110),
        field("/FT/Ch/Ff 2097152/T(several)/Opt[(A)(B)(C)]/V[(A)(C)]", 130),
        field("/FT/Sig/T(signature)", 150),
    ];
    pdf.page(&format!("/Annots[{}]", fields.concat()), "");
    let main = main_of(pdf.bytes());
    assert!(!main.contains("not told"), "a password stays one");
    insta::assert_snapshot!(main);
}

#[test]
fn value_of_a_field_is_copied_and_heard_once() {
    let mut pdf = Builder::new();
    let look = pdf.stream(
        "/Type/XObject/Subtype/Form/BBox[0 0 100 20]/Resources<</Font<</F1 3 0 R>>>>",
        b"BT /F1 12 Tf 2 5 Td (Ada) Tj ET",
    );
    let field =
        format!("<</Type/Annot/Subtype/Widget/Rect[48 245 148 265]/FT/Tx/T(n)/V(Ada)/AP<</N {look} 0 R>>>>");
    pdf.page(&format!("/Annots[{field}]"), "BT /F1 12 Tf 10 250 Td (Name:) Tj ET");
    let main = main_of(pdf.bytes());
    assert_eq!(text_of(&main), "PDF document\nName: Ada");
    assert!(main.contains("aria-hidden=\"true\">Ada</span>"), "it is text, in a font: {main}");
    assert!(!main.contains("aria-hidden=\"true\">Name"), "{main}");
    assert!(main.contains("Name: </span>"), "the space belongs to a line, or nobody copies it: {main}");
}

#[test]
fn large_value_of_a_field_is_no_heading() {
    let mut pdf = Builder::new();
    let field = "<</Type/Annot/Subtype/Widget/Rect[48 145 348 185]/FT/Tx/T(n)/V(Ada)/DA(/F1 30 Tf)>>";
    pdf.catalog("/AcroForm<</Fields[]/DR<</Font<</F1 3 0 R>>>>>>");
    pdf.page(&format!("/Annots[{field}]"), "BT /F1 12 Tf 10 250 Td (Words of the usual size) Tj ET");
    let main = main_of(pdf.bytes());
    assert!(main.contains(">Ada</span>") && !main.contains("<h2"), "nobody would hear it: {main}");
    assert_eq!(main.matches("<h1").count(), 1, "{main}");
}

#[test]
fn figure_is_heard_as_its_description_and_its_caption_as_well() {
    let mut pdf = Builder::new();
    pdf.page(
        "",
        "/Figure <</MCID 0>> BDC BT /F1 12 Tf 50 250 Td (label) Tj ET EMC \
         /Caption <</MCID 1>> BDC BT /F1 12 Tf 50 200 Td (Fig. 1) Tj ET EMC",
    );
    let caption = "<</S/Caption/Pg 5 0 R/K 1>>";
    let figure = format!("<</S/Figure/Pg 5 0 R/Alt(A \"cat\")/K[0 {caption}]>>");
    let root = pdf.object(format!("<</Type/StructTreeRoot/K<</S/Document/K[{figure}]>>>>"));
    pdf.catalog(&format!("/StructTreeRoot {root} 0 R/MarkInfo<</Marked true>>"));
    insta::assert_snapshot!(main_of(pdf.bytes()));
}

#[test]
fn note_without_an_appearance_is_text_on_the_page() {
    let mut pdf = Builder::new();
    let note =
        "<</Type/Annot/Subtype/FreeText/Rect[10 10 70 60]/Contents(A note of words)/DA(/Helv 10 Tf 0 g)>>";
    pdf.page(&format!("/Annots[{note}]"), "0 1 -1 0 0 0 cm");
    let main = main_of(pdf.bytes());
    assert_eq!(text_of(&main).replace('\n', " "), "PDF document A note of words");
}

#[test]
fn cells_over_several_rows_and_columns_stay_so() {
    let mut pdf = Builder::new();
    let words = ["Both", "Tall", "One", "Two", "Sum"];
    let content: String = words
        .iter()
        .enumerate()
        .map(|(at, text)| {
            format!("/P <</MCID {at}>> BDC BT /F1 12 Tf 50 {} Td ({text}) Tj ET EMC ", 250 - 30 * at)
        })
        .collect();
    pdf.page("", &content);
    let element = |kind: &str, more: &str, kids: &str| format!("<</S/{kind}/Pg 5 0 R{more}/K[{kids}]>>");
    let span = |what: &str| format!("/A<</O/Table/{what}>>");
    let head = element("TR", "", &element("TH", "/A[<</O/Layout>><</O/Table/ColSpan 2/Scope/Column>>]", "0"));
    let rows = [
        element("TR", "", &(element("TD", &span("RowSpan 2"), "1") + &element("TD", "", "2"))),
        element("TR", "", &element("TD", "", "3")),
    ];
    let table = [
        element("THead", "", &head),
        element("TBody", "", &rows.concat()),
        element("TFoot", "", &element("TR", "", &element("TD", &span("ColSpan 99999"), "4"))),
    ];
    let root = format!("<</Type/StructTreeRoot/K{}>>", element("Table", "", &table.concat()));
    let root = pdf.object(root);
    pdf.catalog(&format!("/StructTreeRoot {root} 0 R/MarkInfo<</Marked true>>"));
    insta::assert_snapshot!(main_of(pdf.bytes()));
}

#[test]
fn letter_that_nobody_knows_stays_a_gap_in_its_word_and_a_blank_does_not() {
    let mut pdf = Builder::new();
    let glyph = pdf.stream("", b"600 0 0 0 500 500 d1 0 0 500 500 re f");
    let names = "/Differences[1/unheard 2/unseen 97/a 98/b]";
    let blank = pdf.stream("", b"600 0 0 0 500 500 d1");
    let font = format!(
        "<</Type/Font/Subtype/Type3/FontBBox[0 0 600 600]/FontMatrix[.001 0 0 .001 0 0]/FirstChar 0/LastChar 98\
         /Widths[{}]/Encoding<<{names}>>/Resources<<>>\
         /CharProcs<</unheard {glyph} 0 R/unseen {blank} 0 R/a {glyph} 0 R/b {glyph} 0 R>>>>",
        "600 ".repeat(99)
    );
    let font = pdf.object(font);
    pdf.page_with_fonts("", &format!("/F2 {font} 0 R"), "BT /F2 12 Tf 50 250 Td (a\\001b\\002a) Tj ET");
    let conversion = converted(pdf.bytes());
    assert!(text_of(&html(&conversion)).contains("a\u{fffd}ba"), "{}", html(&conversion));
    assert_eq!((conversion.glyphs, conversion.unknown_glyphs), (5, 1));
    assert_eq!(
        conversion.warnings,
        ["1 letter is only drawn in this PDF, without saying which it is: it is copied as \u{fffd}."]
    );
}

#[test]
fn letters_whose_font_is_not_there_are_shown_as_what_they_are() {
    let mut pdf = Builder::new();
    let inner = "<</Type/Font/Subtype/CIDFontType2/BaseFont/Arial/CIDSystemInfo<</Registry(Adobe)/Ordering(Identity)\
                 /Supplement 0>>/DW 600/FontDescriptor<</Type/FontDescriptor/FontName/Arial/Flags 32>>>>";
    let font =
        format!("<</Type/Font/Subtype/Type0/BaseFont/Arial/Encoding/Identity-H/DescendantFonts[{inner}]>>");
    let font = pdf.object(font);
    pdf.page_with_fonts("", &format!("/F2 {font} 0 R"), "BT /F2 12 Tf 50 250 Td <002400D00247> Tj ET");
    let conversion = converted(pdf.bytes());
    assert!(text_of(&html(&conversion)).contains("AÔН"), "{}", html(&conversion));
    assert_eq!(
        conversion.warnings,
        ["3 letters have no shape in this PDF: they are shown in a font of the reader's."]
    );
}

#[test]
fn pages_are_read_where_only_attachments_are_locked() {
    let mut pdf = Builder::new();
    pdf.page("", "BT /F1 12 Tf 50 250 Td (In clear) Tj ET");
    let lock = pdf.object(
        "<</Filter/Standard/V 5/R 6/Length 256/P -4/O<00>/U<00>/CF<</StdCF<</CFM/AESV3>>>>/EFF/StdCF>>",
    );
    pdf.trailer(&format!("/Encrypt {lock} 0 R/ID[<00><00>]"));
    assert_eq!(text_of(&main_of(pdf.bytes())), "PDF document\nIn clear");
}

#[test]
fn text_in_the_lowest_plane_of_a_scan_is_copied_and_the_scan_is_seen() {
    let mut pdf = Builder::new();
    let scan = pdf.stream(
        "/Type/XObject/Subtype/Image/Width 4/Height 4/BitsPerComponent 8/ColorSpace/DeviceGray",
        &[200; 16],
    );
    pdf.page(
        &format!("/Resources<</Font<</F1 3 0 R>>/XObject<</A {scan} 0 R>>>>"),
        "BT 3 Tr /F1 12 Tf 50 250 Td (Words of a scan) Tj ET q 400 0 0 300 0 0 cm /A Do Q",
    );
    let main = main_of(pdf.bytes());
    assert!(main.contains("<image"), "{main}");
    assert_eq!(text_of(&main), "PDF document\nWords of a scan");
}

#[test]
fn page_larger_than_browsers_can_show_is_shown_smaller() {
    let mut pdf = Builder::new();
    pdf.page("/MediaBox[0 0 2000000000 1000000000]", "BT /F1 12 Tf 50 250 Td (Hello) Tj ET");
    let css = asset(&converted(pdf.bytes()), "style.css").bytes.clone();
    let css = String::from_utf8(css).expect("styles are text");
    assert!(css.contains("--w:19200;--h:9600;--s:"), "{css}");
}

#[test]
fn empty_document_is_a_blank_page() {
    let main = main_of(one_page(""));
    assert_eq!(text_of(&main), "PDF document");
    assert!(main.contains("id=\"page-1\""));
}
