//! The generic mapping on invoices in scripts that run to the left or put no space between words.

use crate::paper::{Paper, cells, value};
use ode_invoice::{Choice, Extraction, Registry, extract};

fn read(paper: Paper) -> Extraction {
    extract(&paper.document(), &Registry::shipped(), Choice::Auto).expect("it is an invoice")
}

#[track_caller]
fn check(extraction: &Extraction, expected: &[(&str, &str)]) {
    for (name, expected) in expected {
        assert_eq!(value(extraction, name).as_deref(), Some(*expected), "{name}");
    }
}

/// Puts a text that is read from right to left: its first word ends at a place, the others stand left of it.
fn leftwards(mut paper: Paper, right: f32, y: f32, text: &str) -> Paper {
    let mut end = right;
    for word in text.split(' ') {
        paper = paper.right(end, y, word);
        end -= word.chars().count() as f32 * 5.0 + 3.0;
    }
    paper
}

fn page_of(texts: &[(f32, f32, &str)]) -> Paper {
    texts.iter().fold(Paper::new(), |paper, (right, y, text)| leftwards(paper, *right, *y, text))
}

#[test]
fn an_arabic_invoice_is_read_from_right_to_left_and_its_values_stand_where_they_stand() {
    let paper = page_of(&[
        (560.0, 30.0, "شركة النور للتجارة"),
        (560.0, 60.0, "رقم الفاتورة:"),
        (440.0, 60.0, "INV-7781"),
        (560.0, 74.0, "تاريخ الفاتورة:"),
        (440.0, 74.0, "١٥/٠٣/٢٠٢٦"),
        (560.0, 100.0, "العميل:"),
        (560.0, 112.0, "مؤسسة البناء الحديث"),
        (560.0, 150.0, "الوصف"),
        (330.0, 150.0, "الكمية"),
        (230.0, 150.0, "سعر الوحدة"),
        (100.0, 150.0, "المجموع"),
        (560.0, 166.0, "أسمنت مقاوم"),
        (330.0, 166.0, "100"),
        (230.0, 166.0, "25.00"),
        (100.0, 166.0, "2,500.00"),
        (560.0, 200.0, "المجموع الفرعي"),
        (300.0, 200.0, "2,500.00"),
        (560.0, 214.0, "ضريبة القيمة المضافة"),
        (300.0, 214.0, "375.00"),
        (560.0, 228.0, "الإجمالي"),
        (300.0, 228.0, "2,875.00"),
    ]);
    let extraction = read(paper);
    check(
        &extraction,
        &[
            ("invoice_number", "INV-7781"),
            ("issue_date", "2026-03-15"),
            ("buyer_name", "مؤسسة البناء الحديث"),
            ("net_total", "2500.00"),
            ("tax_total", "375.00"),
            ("gross_total", "2875.00"),
        ],
    );
    let lines = cells(&extraction, "lines", &["name", "quantity", "unit_price", "total"]);
    assert_eq!(lines, [["أسمنت مقاوم", "100", "25.00", "2500.00"]]);
    let place = extraction.record.fields["invoice_number"].value.place.expect("it is printed");
    assert_eq!((place.bbox.x0, place.bbox.x1), (400.0, 440.0));
}

#[test]
fn a_japanese_invoice_writes_labels_and_values_without_a_space() {
    let paper = Paper::new()
        .title(250.0, 30.0, "請求書", 18.0)
        .text(40.0, 60.0, "請求書番号:")
        .text(120.0, 60.0, "INV-0042")
        .text(40.0, 74.0, "発行日:2026年3月5日")
        .text(40.0, 88.0, "お支払期限:2026年4月30日")
        .text(40.0, 120.0, "品名")
        .right(330.0, 120.0, "数量")
        .right(430.0, 120.0, "単価")
        .right(560.0, 120.0, "金額")
        .text(40.0, 136.0, "保守契約")
        .right(330.0, 136.0, "12")
        .right(430.0, 136.0, "10,000円")
        .right(560.0, 136.0, "120,000円")
        .text(400.0, 170.0, "小計")
        .right(560.0, 170.0, "120,000円")
        .text(400.0, 184.0, "消費税")
        .right(560.0, 184.0, "12,000円")
        .text(400.0, 198.0, "合計132,000円");
    let extraction = read(paper);
    check(
        &extraction,
        &[
            ("invoice_number", "INV-0042"),
            ("issue_date", "2026-03-05"),
            ("due_date", "2026-04-30"),
            ("currency", "JPY"),
            ("net_total", "120000"),
            ("tax_total", "12000"),
            ("gross_total", "132000"),
        ],
    );
    let lines = cells(&extraction, "lines", &["name", "quantity", "unit_price", "total"]);
    assert_eq!(lines, [["保守契約", "12", "10000", "120000"]]);
}
