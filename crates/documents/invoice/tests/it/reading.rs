//! Fields and tables on pages made by hand: each way of finding a value, and what makes it stay blank.

use crate::paper::{Paper, cells, read, value};

#[track_caller]
fn check(rule: &str, paper: Paper, expected: Option<&str>) {
    let extraction = read(&format!("[fields.it]\n{rule}"), paper);
    assert_eq!(value(&extraction, "it").as_deref(), expected, "by {rule}");
}

#[test]
fn a_value_stands_right_of_its_label() {
    let paper =
        || Paper::new().text(50.0, 50.0, "Nomor :").text(150.0, 50.0, "INV-7").text(300.0, 50.0, "Lain");
    check("anchor = \"Nomor\"", paper(), Some("INV-7"));
    check("anchor = \"nomor\"\ntype = \"id\"", paper(), Some("INV-7"));
    check("anchor = \"Number\"", paper(), None);
}

#[test]
fn a_value_may_touch_its_label_and_keeps_a_box_of_its_own() {
    let extraction = read("[fields.it]\nanchor = \"Nomor\"\n", Paper::new().text(50.0, 50.0, "Nomor:42"));
    let place = extraction.record.fields["it"].value.place.expect("it was printed");
    assert_eq!(value(&extraction, "it").as_deref(), Some("42"));
    assert_eq!((place.bbox.x0, place.bbox.x1), (80.0, 90.0));
}

#[test]
fn the_next_label_ends_a_value() {
    let paper = Paper::new().text(50.0, 50.0, "IBAN : X1 BIC : Y2");
    let rules = "[fields.a]\nanchor = \"IBAN\"\n[fields.b]\nanchor = \"BIC\"\n";
    let extraction = read(rules, paper);
    assert_eq!(value(&extraction, "a").as_deref(), Some("X1"));
    assert_eq!(value(&extraction, "b").as_deref(), Some("Y2"));
}

#[test]
fn a_value_stands_below_or_above_or_left_of_its_label() {
    let paper = || {
        let paper = Paper::new().text(50.0, 50.0, "Over").text(50.0, 65.0, "Label").text(50.0, 80.0, "Under");
        paper.text(20.0, 65.0, "L9")
    };
    check("anchor = \"Label\"\nwhere = \"below\"", paper(), Some("Under"));
    check("anchor = \"Label\"\nwhere = \"above\"", paper(), Some("Over"));
    check("anchor = \"Label\"\nwhere = \"left\"", paper(), Some("L9"));
    check("anchor = \"Label\"\nwhere = [\"right\", \"below\"]", paper(), Some("Under"));
}

#[test]
fn a_block_ends_at_a_gap_and_its_lines_can_be_chosen() {
    let paper = || {
        let paper =
            Paper::new().text(50.0, 50.0, "Buyer").text(50.0, 65.0, "GLN 123").bold(50.0, 77.0, "Toko AG");
        paper.text(50.0, 89.0, "Street 1").text(50.0, 150.0, "Far away")
    };
    let rule = "anchor = \"Buyer\"\nwhere = \"block\"\n";
    check(&format!("{rule}line = 2"), paper(), Some("Toko AG"));
    check(&format!("{rule}line = \"bold\""), paper(), Some("Toko AG"));
    check(&format!("{rule}line = \"company\""), paper(), Some("Toko AG"));
    check(&format!("{rule}line = -1"), paper(), Some("Street 1"));
    check(&format!("{rule}not = '/^GLN/'\nline = 1"), paper(), Some("Toko AG"));
    check(&format!("{rule}line = 2\nlines = 2"), paper(), Some("Toko AG Street 1"));
}

#[test]
fn a_cell_is_what_rules_enclose() {
    let paper = Paper::new()
        .text(50.0, 50.0, "Due")
        .text(60.0, 66.0, "5 Maret 2026")
        .text(250.0, 60.0, "1 April 2026")
        .rule(40.0, 40.0, 400.0, 40.0)
        .rule(40.0, 90.0, 400.0, 90.0)
        .rule(40.0, 40.0, 40.0, 90.0)
        .rule(200.0, 40.0, 200.0, 90.0);
    check("anchor = \"Due\"\nwhere = \"same-cell\"\ntype = \"date\"", paper, Some("2026-03-05"));
}

#[test]
fn a_zone_holds_what_stands_in_it() {
    let paper = || {
        let paper = Paper::new().text(50.0, 20.0, "Small").title(50.0, 40.0, "PT Besar", 18.0);
        paper.text(50.0, 500.0, "Below")
    };
    let zone = "zone = { page = 1, box = [0, 0, 100, 20] }\n";
    check(&format!("{zone}line = \"largest-font\""), paper(), Some("PT Besar"));
    check(&format!("{zone}line = 1"), paper(), Some("Small"));
    check("zone = { page = 2, box = [0, 0, 100, 20] }\nline = 1", paper(), None);
}

#[test]
fn an_address_is_known_by_its_town() {
    let paper = Paper::new()
        .text(50.0, 50.0, "Re: your letter")
        .text(50.0, 120.0, "Theodor Est")
        .text(50.0, 134.0, "Bahnstr. 42")
        .text(50.0, 148.0, "88802 Spielkreis");
    check("zone = { page = 1, box = [0, 0, 60, 40] }\nline = \"addressee\"", paper, Some("Theodor Est"));
}

#[test]
fn a_section_parts_equal_labels() {
    let paper = || {
        let paper =
            Paper::new().text(50.0, 50.0, "Seller").text(50.0, 65.0, "Name:").text(150.0, 65.0, "A Ltd");
        paper.text(50.0, 95.0, "Buyer").text(50.0, 110.0, "Name:").text(150.0, 110.0, "B Ltd")
    };
    check("anchor = \"Name\"\nwithin = { from = \"Seller\", to = \"Buyer\" }", paper(), Some("A Ltd"));
    check("anchor = \"Name\"\nwithin = { from = \"Buyer\" }", paper(), Some("B Ltd"));
}

#[test]
fn a_value_may_take_several_lines_beside_its_label() {
    let paper = Paper::new()
        .text(150.0, 50.0, "MVM Musterhafter")
        .text(50.0, 60.0, "Name:")
        .text(150.0, 60.0, "Versicherungsverein")
        .text(50.0, 80.0, "City:")
        .text(150.0, 80.0, "Berlin");
    check("anchor = \"Name\"\nwraps = true", paper, Some("MVM Musterhafter Versicherungsverein"));
}

#[test]
fn a_pattern_may_run_on_into_the_next_line() {
    let paper = Paper::new().text(50.0, 50.0, "INVOICE Nr. 9314/00 vom").text(50.0, 65.0, "01.10.2018");
    check("find = 'Nr\\. \\S+ vom\\s+(\\S+)'\ntype = \"date\"", paper, Some("2018-10-01"));
}

#[test]
fn picks_say_which_of_several_is_meant() {
    let paper = || {
        let paper = Paper::new().text(50.0, 50.0, "Total 5,00").text(50.0, 70.0, "Total 9,00");
        paper.text(50.0, 90.0, "Total 7,00")
    };
    for (pick, expected) in [("first", Some("5.00")), ("last", Some("7.00")), ("max", Some("9.00"))] {
        check(&format!("anchor = \"Total\"\ntype = \"amount\"\npick = \"{pick}\""), paper(), expected);
    }
    check("anchor = \"Total\"\ntype = \"amount\"\npick = \"only\"", paper(), None);
    check("anchor = \"Total\"\ntype = \"amount\"\nsure = 0.999", paper(), None);
}

#[test]
fn codes_are_a_closed_list() {
    let paper = || Paper::new().text(50.0, 50.0, "Art: Rechnung");
    check("anchor = \"Art\"\ncodes = { \"Rechnung\" = \"380\" }", paper(), Some("380"));
    check("anchor = \"Art\"\ncodes = { \"Gutschrift\" = \"381\" }", paper(), None);
}

const TOTALS: &str = "[fields.net]\nanchor = \"Netto\"\nwhere = \"below\"\ntype = \"amount\"\n\
    [fields.tax]\nanchor = \"Steuer\"\nwhere = \"below\"\ntype = \"amount\"\n\
    [fields.gross]\nanchor = \"Brutto\"\nwhere = \"below\"\ntype = \"amount\"\n\
    [[checks]]\nrule = \"net + tax == gross\"\n";

#[test]
fn arithmetic_takes_the_whole_and_not_one_of_its_parts() {
    let mut paper =
        Paper::new().right(200.0, 50.0, "Netto").right(300.0, 50.0, "Steuer").right(400.0, 50.0, "Brutto");
    for (y, row) in [(62.0, ["321,40", "61,07", "382,47"]), (74.0, ["127,59", "8,93", "136,52"])] {
        paper = paper.right(200.0, y, row[0]).right(300.0, y, row[1]).right(400.0, y, row[2]);
    }
    paper = paper.right(200.0, 86.0, "448,99").right(300.0, 86.0, "70,00").right(400.0, 86.0, "518,99");
    let extraction = read(TOTALS, paper);
    assert_eq!(value(&extraction, "net").as_deref(), Some("448.99"));
    assert_eq!(value(&extraction, "tax").as_deref(), Some("70.00"));
    assert_eq!(value(&extraction, "gross").as_deref(), Some("518.99"));
    assert!(extraction.record.findings.is_empty(), "{:?}", extraction.record.findings);
}

#[test]
fn figures_that_do_not_add_up_are_kept_and_told() {
    let paper =
        Paper::new().right(200.0, 50.0, "Netto").right(300.0, 50.0, "Steuer").right(400.0, 50.0, "Brutto");
    let paper = paper.right(200.0, 62.0, "100,00").right(300.0, 62.0, "19,00").right(400.0, 62.0, "120,00");
    let extraction = read(TOTALS, paper);
    assert_eq!(value(&extraction, "gross").as_deref(), Some("120.00"));
    assert_eq!(extraction.record.findings[0].code.as_str(), "CHECK_FAILED");
}

#[test]
fn one_field_does_not_take_what_another_is() {
    let rules =
        "[fields.buyer]\nanchor = \"To\"\n[fields.seller]\nanchor = [\"To\", \"From\"]\nunlike = \"buyer\"\n";
    let extraction = read(rules, Paper::new().text(50.0, 50.0, "To: B Ltd").text(50.0, 70.0, "From: A Ltd"));
    assert_eq!(value(&extraction, "seller").as_deref(), Some("A Ltd"));
}

const GOODS: &str = "[[tables]]\nname = \"goods\"\nuntil = \"Total\"\nskip = ['/^Dipindahkan/', '/^Pindahan/']\n\
    row = { starts = \"total\", joins = \"name\" }\ncolumns = [\n\
    { name = \"no\", head = \"No\", type = \"int\" },\n\
    { name = \"name\", head = [\"Keterangan\", \"Uraian\"] },\n\
    { name = \"qty\", head = \"Jml\", type = \"quantity\" },\n\
    { name = \"total\", head = \"Jumlah\", type = \"amount\" },\n]\n";

fn head(paper: Paper, y: f32) -> Paper {
    let paper = paper.text(40.0, y, "No").text(75.0, y, "Keterangan");
    paper.right(360.0, y, "Jml").right(500.0, y, "Jumlah")
}

fn row(paper: Paper, y: f32, cells: [&str; 4]) -> Paper {
    let paper = paper.text(40.0, y, cells[0]).text(75.0, y, cells[1]);
    paper.right(360.0, y, cells[2]).right(500.0, y, cells[3])
}

#[test]
fn a_table_goes_on_over_pages_and_leaves_out_what_is_carried_over() {
    let paper = row(head(Paper::new(), 100.0), 120.0, ["1", "Kertas A4", "12", "1.200.000,00"]);
    let paper = paper.text(75.0, 140.0, "Dipindahkan").right(500.0, 140.0, "1.200.000,00").page();
    let paper = head(paper.text(75.0, 80.0, "Pindahan").right(500.0, 80.0, "1.200.000,00"), 60.0);
    let paper = row(paper, 100.0, ["2", "Tinta", "3", "300.000,00"]).page();
    let paper = row(paper, 60.0, ["3", "Map", "1", "5.000,00"]);
    let paper = paper.text(300.0, 80.0, "Total").right(500.0, 80.0, "1.505.000,00");
    let found = cells(&read(GOODS, paper), "goods", &["no", "name", "qty", "total"]);
    let expected = [
        ["1", "Kertas A4", "12", "1200000.00"],
        ["2", "Tinta", "3", "300000.00"],
        ["3", "Map", "1", "5000.00"],
    ];
    assert_eq!(found, expected);
}

#[test]
fn wrapped_cells_are_joined_and_notes_are_not() {
    let paper = row(head(Paper::new(), 100.0), 120.0, ["1", "Beamer-", "1 pcs", "122,50"]);
    let paper = paper.text(75.0, 131.0, "Deckenhalterung").text(75.0, 142.0, "GTIN: 4012345");
    let paper = row(paper, 160.0, ["2", "Kabel", "2 m", "9,90"]);
    let found = cells(&read(GOODS, paper), "goods", &["name", "qty", "unit"]);
    assert_eq!(found, [["Beamer-Deckenhalterung", "1", "H87"], ["Kabel", "2", "MTR"]]);
}

#[test]
fn rules_between_rows_hold_cells_together_that_are_set_in_the_middle() {
    let mut paper = head(Paper::new(), 100.0).rule(30.0, 115.0, 520.0, 115.0);
    for (y, name, total) in [(120.0, "Satu", "1,00"), (160.0, "Dua", "2,00")] {
        paper = paper.text(75.0, y, name).text(40.0, y + 10.0, "1").right(360.0, y + 10.0, "1");
        paper = paper.right(500.0, y + 10.0, total).text(75.0, y + 21.0, "catatan");
        paper = paper.rule(30.0, y + 36.0, 520.0, y + 36.0);
    }
    let found = cells(&read(&GOODS.replace("joins = \"name\"", ""), paper), "goods", &["name", "total"]);
    assert_eq!(found, [["Satu", "1.00"], ["Dua", "2.00"]]);
}

#[test]
fn a_figure_that_hangs_a_little_lower_belongs_to_the_line_above() {
    let paper =
        head(Paper::new(), 100.0).text(40.0, 120.0, "1").text(75.0, 120.0, "Gula").right(360.0, 120.0, "2");
    let found =
        cells(&read(GOODS, paper.right(500.0, 128.0, "3,00")), "goods", &["no", "name", "qty", "total"]);
    assert_eq!(found, [["1", "Gula", "2", "3.00"]]);
}

#[test]
fn headings_over_each_other_head_one_column_of_several_lines() {
    let rules = "[[tables]]\nname = \"goods\"\nrow = { starts = \"total\" }\ncolumns = [\n\
        { name = \"code\", head = \"Art-Nr\", line = 1 },\n{ name = \"name\", head = \"Bezeichnung\", line = 2 },\n\
        { name = \"total\", head = \"Betrag\", type = \"amount\" },\n]\n";
    let paper =
        Paper::new().text(50.0, 50.0, "Art-Nr").text(50.0, 61.0, "Bezeichnung").right(400.0, 50.0, "Betrag");
    let paper = paper.text(50.0, 80.0, "ZS997").right(400.0, 80.0, "5,00").text(50.0, 91.0, "Zitrone 100ml");
    let found = cells(&read(rules, paper), "goods", &["code", "name", "total"]);
    assert_eq!(found, [["ZS997", "Zitrone 100ml", "5.00"]]);
}

#[test]
fn a_pattern_reads_rows_without_headings_and_counts_them() {
    let rules = "[[tables]]\nname = \"taxes\"\npattern = 'USt\\. (?<rate>\\d+)%\\s+(?<amount>[\\d,]+)'\ncolumns = [\n\
        { name = \"id\", count = true },\n{ name = \"rate\", type = \"number\" },\n{ name = \"amount\", type = \"amount\" },\n]\n";
    let paper = Paper::new().text(50.0, 50.0, "USt. 7%").text(200.0, 50.0, "19,25");
    let paper = paper.text(50.0, 65.0, "USt. 19%").text(200.0, 65.0, "37,62");
    let found = cells(&read(rules, paper), "taxes", &["id", "rate", "amount"]);
    assert_eq!(found, [["1", "7", "19.25"], ["2", "19", "37.62"]]);
}
