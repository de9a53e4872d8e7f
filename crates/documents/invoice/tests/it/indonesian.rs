//! The default mapping on Indonesian invoices in designs that the corpus does not have.

use crate::paper::{Paper, cells, value};
use ode_invoice::{Choice, Extraction, Registry, extract};

#[track_caller]
fn check(paper: Paper, expected: &[(&str, &str)]) -> Extraction {
    let extraction =
        extract(&paper.document(), &Registry::shipped(), Choice::Auto).expect("it is an invoice");
    assert_eq!(extraction.mapping, "pt_simon_invoice_v1");
    let found: Vec<(&str, String)> =
        expected.iter().map(|(name, _)| (*name, value(&extraction, name).unwrap_or_default())).collect();
    let expected: Vec<(&str, String)> = expected.iter().map(|(name, v)| (*name, (*v).to_owned())).collect();
    assert_eq!(found, expected);
    extraction
}

fn row(paper: Paper, y: f32, cells: [&str; 5]) -> Paper {
    let paper = paper.text(40.0, y, cells[0]).text(70.0, y, cells[1]).right(330.0, y, cells[2]);
    paper.right(430.0, y, cells[3]).right(550.0, y, cells[4])
}

#[test]
fn a_faktur_over_two_pages_with_sums_carried_over() {
    let head = ["No.", "Nama Barang / Jasa", "Qty", "Harga Satuan", "Jumlah (Rp)"];
    let paper = Paper::new()
        .title(220.0, 30.0, "FAKTUR PENJUALAN", 14.0)
        .text(40.0, 60.0, "PT Maju Bersama Sentosa")
        .text(40.0, 73.0, "NPWP : 01.234.567.8-901.000")
        .text(350.0, 60.0, "Nomor Faktur : 010/FKT/III/2026")
        .text(350.0, 73.0, "Tgl. Faktur : 9 Maret 2026")
        .text(350.0, 86.0, "Tgl. Jatuh Tempo : 8 April 2026")
        .text(40.0, 110.0, "Kepada :")
        .text(40.0, 123.0, "CV Sumber Rejeki")
        .text(40.0, 136.0, "Jl. Melati No. 5, Semarang")
        .text(40.0, 149.0, "NPWP : 02.345.678.9-012.000");
    let paper = row(paper, 180.0, head);
    let paper = row(paper, 200.0, ["1", "Semen 50 kg", "100 sak", "65.000", "6.500.000"]);
    let paper = paper.text(70.0, 760.0, "Dipindahkan").right(550.0, 760.0, "6.500.000").page();
    let paper = paper.text(70.0, 40.0, "Pindahan").right(550.0, 40.0, "6.500.000");
    let paper = row(row(paper, 60.0, head), 80.0, ["2", "Jasa angkut", "1 ls", "1.500.000", "1.500.000"])
        .text(330.0, 110.0, "Dasar Pengenaan Pajak")
        .right(550.0, 110.0, "8.000.000")
        .text(330.0, 124.0, "PPN 11%")
        .right(550.0, 124.0, "880.000")
        .bold(330.0, 138.0, "Jumlah Tagihan")
        .right(550.0, 138.0, "8.880.000")
        .text(40.0, 160.0, "Terbilang: delapan juta delapan ratus delapan puluh ribu rupiah");
    let extraction = check(
        paper,
        &[
            ("invoice_number", "010/FKT/III/2026"),
            ("issue_date", "2026-03-09"),
            ("due_date", "2026-04-08"),
            ("currency", "IDR"),
            ("seller_name", "PT Maju Bersama Sentosa"),
            ("seller_vat_id", "01.234.567.8-901.000"),
            ("buyer_name", "CV Sumber Rejeki"),
            ("buyer_vat_id", "02.345.678.9-012.000"),
            ("net_total", "8000000"),
            ("tax_total", "880000"),
            ("gross_total", "8880000"),
        ],
    );
    let lines = cells(&extraction, "lines", &["id", "name", "quantity", "unit_price", "total"]);
    let expected =
        [["1", "Semen 50 kg", "100", "65000", "6500000"], ["2", "Jasa angkut", "1", "1500000", "1500000"]];
    assert_eq!(lines, expected);
}

#[test]
fn an_invoice_with_the_seller_on_the_right_and_labels_over_values() {
    let paper = Paper::new()
        .title(40.0, 30.0, "INVOICE", 18.0)
        .bold(350.0, 30.0, "CV Nusantara Digital")
        .text(350.0, 43.0, "Jl. Asia Afrika 10, Bandung")
        .text(350.0, 56.0, "NPWP 0123456789012345")
        .text(40.0, 100.0, "Nomor Invoice")
        .text(200.0, 100.0, "Tanggal")
        .text(330.0, 100.0, "Jatuh Tempo")
        .text(40.0, 113.0, "INV-0099")
        .text(200.0, 113.0, "01/02/2026")
        .text(330.0, 113.0, "15/02/2026")
        .text(40.0, 140.0, "Ditagihkan Kepada")
        .text(40.0, 153.0, "Toko Makmur Jaya");
    let paper = row(paper, 190.0, ["No", "Deskripsi", "Kuantitas", "Harga", "Total"]);
    let paper = row(paper, 210.0, ["1", "Langganan hosting", "12 bulan", "Rp 150.000", "Rp 1.800.000"])
        .text(330.0, 240.0, "Subtotal")
        .right(550.0, 240.0, "Rp 1.800.000")
        .text(330.0, 254.0, "PPN (11%)")
        .right(550.0, 254.0, "Rp 198.000")
        .text(330.0, 268.0, "Grand Total")
        .right(550.0, 268.0, "Rp 1.998.000")
        .text(40.0, 300.0, "Pembayaran ke No. Rekening 123-456-7890 Bank Contoh");
    let extraction = check(
        paper,
        &[
            ("invoice_number", "INV-0099"),
            ("issue_date", "2026-02-01"),
            ("due_date", "2026-02-15"),
            ("currency", "IDR"),
            ("seller_name", "CV Nusantara Digital"),
            ("seller_vat_id", "0123456789012345"),
            ("buyer_name", "Toko Makmur Jaya"),
            ("net_total", "1800000"),
            ("tax_total", "198000"),
            ("gross_total", "1998000"),
        ],
    );
    assert_eq!(
        cells(&extraction, "lines", &["name", "quantity", "total"]),
        [["Langganan hosting", "12", "1800000"]]
    );
}

#[test]
fn jumlah_is_the_quantity_where_another_column_has_the_total_and_the_total_where_none_has() {
    let invoice = |head: [&str; 5], line: [&str; 5]| {
        let paper = Paper::new()
            .text(40.0, 30.0, "PT Maju Jaya Abadi")
            .text(40.0, 43.0, "NPWP: 01.234.567.8-901.000")
            .text(350.0, 30.0, "No. Faktur: MJA/2026/0117")
            .text(350.0, 43.0, "Tanggal: 12 Agustus 2026")
            .text(40.0, 80.0, "Kepada Yth.")
            .text(40.0, 93.0, "PT Simon Sentosa");
        row(row(paper, 130.0, head), 150.0, line)
            .text(330.0, 180.0, "DPP")
            .right(550.0, 180.0, "Rp 4.500.000")
            .text(330.0, 194.0, "PPN 11%")
            .right(550.0, 194.0, "Rp 495.000")
            .text(330.0, 208.0, "Total")
            .right(550.0, 208.0, "Rp 4.995.000")
    };
    let totals = [("net_total", "4500000"), ("tax_total", "495000"), ("gross_total", "4995000")];
    let expected = [["Kertas A4", "100", "45000", "4500000"]];
    for head in [
        ["No", "Nama Barang", "Jumlah", "Harga Satuan", "Total"],
        ["No", "Nama Barang", "Qty", "Harga Satuan", "Jumlah"],
        ["No", "Nama Barang", "Jumlah", "Harga Satuan", "Jumlah"],
    ] {
        let line = ["1", "Kertas A4", "100", "Rp 45.000", "Rp 4.500.000"];
        let extraction = check(invoice(head, line), &totals);
        assert_eq!(
            cells(&extraction, "lines", &["name", "quantity", "unit_price", "total"]),
            expected,
            "{head:?}"
        );
    }
}

#[test]
fn rows_of_sums_are_no_lines_and_parties_side_by_side_keep_their_numbers() {
    let paper = Paper::new()
        .title(250.0, 30.0, "INVOICE", 16.0)
        .text(40.0, 110.0, "Dari")
        .text(320.0, 110.0, "Untuk")
        .text(40.0, 123.0, "PT Mitra Digital Solusindo")
        .text(320.0, 123.0, "PT Bank Harapan Tbk")
        .text(40.0, 136.0, "NPWP 0712345678012000")
        .text(320.0, 136.0, "NPWP 0012345678091000")
        .text(40.0, 60.0, "No : 045/MDS/V/2025")
        .text(320.0, 60.0, "Due Date / Jatuh Tempo : 4 Juni 2025")
        .text(40.0, 73.0, "Tanggal : 5 Mei 2025");
    let paper = row(paper, 170.0, ["", "Deskripsi", "Kuantitas", "Harga", "Total"]);
    let paper = row(paper, 186.0, ["", "Lisensi", "10", "Rp 1.200.000", "Rp 12.000.000"]);
    let paper = row(paper, 202.0, ["", "Pelatihan (2 hari)", "2", "Rp 3.000.000", "Rp 6.000.000"])
        .text(350.0, 230.0, "Jumlah")
        .right(550.0, 230.0, "Rp 18.000.000")
        .text(350.0, 244.0, "PPN 11%")
        .right(550.0, 244.0, "Rp 1.980.000")
        .text(350.0, 258.0, "Total")
        .right(550.0, 258.0, "Rp 19.980.000");
    let extraction = check(
        paper,
        &[
            ("invoice_number", "045/MDS/V/2025"),
            ("due_date", "2025-06-04"),
            ("seller_name", "PT Mitra Digital Solusindo"),
            ("seller_vat_id", "0712345678012000"),
            ("buyer_name", "PT Bank Harapan Tbk"),
            ("buyer_vat_id", "0012345678091000"),
            ("net_total", "18000000"),
            ("tax_total", "1980000"),
            ("gross_total", "19980000"),
        ],
    );
    assert_eq!(
        cells(&extraction, "lines", &["id", "name", "total"]),
        [["", "Lisensi", "12000000"], ["", "Pelatihan (2 hari)", "6000000"]]
    );
}
