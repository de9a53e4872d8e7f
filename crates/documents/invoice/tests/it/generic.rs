//! The generic mapping on invoices that no mapping was written for: one page each in several languages and designs.

use crate::paper::{Paper, cells, value};
use ode_invoice::learn::{Lesson, learn};
use ode_invoice::{Choice, Extraction, Options, Registry, Severity, extract};

fn read(paper: Paper) -> Extraction {
    let extraction =
        extract(&paper.document(), &Registry::shipped(), Choice::Auto).expect("it is an invoice");
    assert_eq!(extraction.mapping, "generic_invoice_v1");
    extraction
}

#[track_caller]
fn check(extraction: &Extraction, expected: &[(&str, &str)]) {
    let found: Vec<(&str, String)> =
        expected.iter().map(|(name, _)| (*name, value(extraction, name).unwrap_or_default())).collect();
    let expected: Vec<(&str, String)> = expected.iter().map(|(name, v)| (*name, (*v).to_owned())).collect();
    assert_eq!(found, expected);
}

#[test]
fn an_english_invoice_with_labels_over_values() {
    let paper = Paper::new()
        .title(40.0, 30.0, "Northwind Traders Ltd", 16.0)
        .text(40.0, 50.0, "1 High Street, Leeds")
        .text(40.0, 62.0, "VAT Reg No: GB 123 4567 89")
        .text(40.0, 100.0, "Bill To")
        .text(40.0, 114.0, "Acme Retail Inc")
        .text(40.0, 126.0, "5 Main Road")
        .text(250.0, 100.0, "Invoice Number")
        .text(400.0, 100.0, "Invoice Date")
        .text(500.0, 100.0, "Due Date")
        .text(250.0, 114.0, "NW-2024-118")
        .text(400.0, 114.0, "March 3, 2024")
        .text(500.0, 114.0, "April 2, 2024")
        .text(40.0, 170.0, "Description")
        .right(330.0, 170.0, "Qty")
        .right(430.0, 170.0, "Unit Price")
        .right(560.0, 170.0, "Amount")
        .text(40.0, 186.0, "Oak table")
        .right(330.0, 186.0, "2")
        .right(430.0, 186.0, "£450.00")
        .right(560.0, 186.0, "£900.00")
        .text(40.0, 200.0, "Delivery")
        .right(330.0, 200.0, "1")
        .right(430.0, 200.0, "£100.00")
        .right(560.0, 200.0, "£100.00")
        .right(430.0, 230.0, "Subtotal")
        .right(560.0, 230.0, "£1,000.00")
        .right(430.0, 244.0, "VAT 20%")
        .right(560.0, 244.0, "£200.00")
        .right(430.0, 258.0, "Total")
        .right(560.0, 258.0, "£1,200.00");
    let extraction = read(paper);
    check(
        &extraction,
        &[
            ("invoice_number", "NW-2024-118"),
            ("issue_date", "2024-03-03"),
            ("due_date", "2024-04-02"),
            ("currency", "GBP"),
            ("seller_name", "Northwind Traders Ltd"),
            ("seller_vat_id", "GB 123 4567 89"),
            ("buyer_name", "Acme Retail Inc"),
            ("net_total", "1000.00"),
            ("tax_total", "200.00"),
            ("gross_total", "1200.00"),
        ],
    );
    let lines = cells(&extraction, "lines", &["name", "quantity", "unit_price", "total"]);
    assert_eq!(lines, [["Oak table", "2", "450.00", "900.00"], ["Delivery", "1", "100.00", "100.00"]]);
}

#[test]
fn a_dutch_invoice_with_an_address_window() {
    let paper = Paper::new()
        .text(60.0, 110.0, "Van Dijk Fietsen B.V. - Keizersgracht 1 - 1015 CJ Amsterdam")
        .text(60.0, 140.0, "Jansen Holding")
        .text(60.0, 153.0, "Dorpsstraat 12")
        .text(60.0, 166.0, "3511 AB Utrecht")
        .bold(60.0, 220.0, "FACTUUR")
        .text(60.0, 240.0, "Factuurnummer: 20240071")
        .text(60.0, 253.0, "Factuurdatum: 5 mei 2024")
        .text(60.0, 266.0, "Vervaldatum: 04-06-2024")
        .text(60.0, 300.0, "Omschrijving")
        .right(350.0, 300.0, "Aantal")
        .right(450.0, 300.0, "Prijs")
        .right(550.0, 300.0, "Bedrag")
        .text(60.0, 316.0, "Stadsfiets 28 inch")
        .right(350.0, 316.0, "3")
        .right(450.0, 316.0, "€ 500,00")
        .right(550.0, 316.0, "€ 1.500,00")
        .text(350.0, 350.0, "Subtotaal")
        .right(550.0, 350.0, "€ 1.500,00")
        .text(350.0, 364.0, "BTW 21%")
        .right(550.0, 364.0, "€ 315,00")
        .text(350.0, 378.0, "Totaal incl. BTW")
        .right(550.0, 378.0, "€ 1.815,00")
        .text(60.0, 760.0, "Van Dijk Fietsen B.V.")
        .text(250.0, 760.0, "BTW-nummer NL123456789B01")
        .text(250.0, 772.0, "IBAN NL91 ABNA 0417 1643 00")
        .text(450.0, 772.0, "BIC ABNANL2A");
    check(
        &read(paper),
        &[
            ("invoice_number", "20240071"),
            ("issue_date", "2024-05-05"),
            ("due_date", "2024-06-04"),
            ("currency", "EUR"),
            ("seller_name", "Van Dijk Fietsen B.V."),
            ("seller_vat_id", "NL123456789B01"),
            ("iban", "NL91ABNA0417164300"),
            ("bic", "ABNANL2A"),
            ("net_total", "1500.00"),
            ("tax_total", "315.00"),
            ("gross_total", "1815.00"),
        ],
    );
}

#[test]
fn a_spanish_invoice_whose_totals_stand_in_a_row() {
    let paper = Paper::new()
        .bold(40.0, 40.0, "Aceites del Sur S.L.")
        .text(40.0, 54.0, "NIF: ESB12345678")
        .text(350.0, 40.0, "Factura N°: F/24/0093")
        .text(350.0, 54.0, "Fecha: 17 de octubre de 2024")
        .text(350.0, 68.0, "Vencimiento: 16/11/2024")
        .text(40.0, 100.0, "Cliente:")
        .text(40.0, 113.0, "Mercado Central SA")
        .text(40.0, 150.0, "Concepto")
        .right(330.0, 150.0, "Cantidad")
        .right(430.0, 150.0, "Precio")
        .right(540.0, 150.0, "Importe")
        .text(40.0, 166.0, "Aceite virgen 5 l")
        .right(330.0, 166.0, "10")
        .right(430.0, 166.0, "32,50")
        .right(540.0, 166.0, "325,00")
        .right(300.0, 300.0, "Base imponible")
        .right(400.0, 300.0, "IVA")
        .right(540.0, 300.0, "Total factura")
        .right(300.0, 314.0, "325,00 €")
        .right(400.0, 314.0, "32,50 €")
        .right(540.0, 314.0, "357,50 €");
    let extraction = read(paper);
    check(
        &extraction,
        &[
            ("invoice_number", "F/24/0093"),
            ("issue_date", "2024-10-17"),
            ("due_date", "2024-11-16"),
            ("currency", "EUR"),
            ("seller_name", "Aceites del Sur S.L."),
            ("buyer_name", "Mercado Central SA"),
            ("net_total", "325.00"),
            ("tax_total", "32.50"),
            ("gross_total", "357.50"),
        ],
    );
    assert_eq!(cells(&extraction, "lines", &["name", "total"]), [["Aceite virgen 5 l", "325.00"]]);
}

#[test]
fn an_italian_invoice_in_a_ruled_table() {
    let mut paper = Paper::new()
        .bold(40.0, 40.0, "Officine Rossi S.r.l.")
        .text(40.0, 54.0, "Partita IVA: IT12345678901")
        .bold(350.0, 40.0, "Fattura n. 112/2024")
        .text(350.0, 54.0, "Data: 07/02/2024")
        .text(350.0, 68.0, "Scadenza: 08/03/2024");
    for (y, row) in [
        (150.0, ["Descrizione", "Quantità", "Prezzo", "Importo"]),
        (166.0, ["Cambio gomme", "4", "25,00", "100,00"]),
    ] {
        paper = paper
            .text(45.0, y, row[0])
            .right(320.0, y, row[1])
            .right(420.0, y, row[2])
            .right(540.0, y, row[3]);
    }
    for x in [40.0, 250.0, 330.0, 430.0, 550.0] {
        paper = paper.rule(x, 145.0, x, 180.0);
    }
    for y in [145.0, 163.0, 180.0] {
        paper = paper.rule(40.0, y, 550.0, y);
    }
    let paper = paper
        .text(350.0, 210.0, "Imponibile")
        .right(540.0, 210.0, "€ 100,00")
        .text(350.0, 224.0, "IVA 22%")
        .right(540.0, 224.0, "€ 22,00")
        .text(350.0, 238.0, "Totale fattura")
        .right(540.0, 238.0, "€ 122,00");
    let extraction = read(paper);
    check(
        &extraction,
        &[
            ("invoice_number", "112/2024"),
            ("issue_date", "2024-02-07"),
            ("due_date", "2024-03-08"),
            ("seller_name", "Officine Rossi S.r.l."),
            ("seller_vat_id", "IT12345678901"),
            ("net_total", "100.00"),
            ("tax_total", "22.00"),
            ("gross_total", "122.00"),
        ],
    );
    assert_eq!(
        cells(&extraction, "lines", &["name", "quantity", "total"]),
        [["Cambio gomme", "4", "100.00"]]
    );
}

#[test]
fn a_french_invoice_by_mail_merge() {
    let paper = Paper::new()
        .text(40.0, 40.0, "Atelier Lumière SARL")
        .text(40.0, 54.0, "12 rue des Lilas")
        .text(40.0, 66.0, "75011 Paris")
        .text(340.0, 120.0, "Société Martin")
        .text(340.0, 133.0, "4 avenue Foch")
        .text(340.0, 146.0, "69006 Lyon")
        .text(40.0, 200.0, "Facture n° 2024-031 du 12/04/2024")
        .text(40.0, 240.0, "Désignation")
        .right(330.0, 240.0, "Qté")
        .right(430.0, 240.0, "P.U. HT")
        .right(540.0, 240.0, "Montant HT")
        .text(40.0, 256.0, "Pose de luminaires")
        .right(330.0, 256.0, "2")
        .right(430.0, 256.0, "1 250,00")
        .right(540.0, 256.0, "2 500,00")
        .text(400.0, 290.0, "Total HT")
        .right(540.0, 290.0, "2 500,00 €")
        .text(400.0, 304.0, "TVA 20 %")
        .right(540.0, 304.0, "500,00 €")
        .text(400.0, 318.0, "Total TTC")
        .right(540.0, 318.0, "3 000,00 €")
        .text(40.0, 780.0, "SIRET 123 456 789 00012 - TVA intracommunautaire FR12123456789");
    let extraction = read(paper);
    check(
        &extraction,
        &[
            ("invoice_number", "2024-031"),
            ("issue_date", "2024-04-12"),
            ("currency", "EUR"),
            ("seller_name", "Atelier Lumière SARL"),
            ("seller_vat_id", "FR12123456789"),
            ("buyer_name", "Société Martin"),
            ("net_total", "2500.00"),
            ("tax_total", "500.00"),
            ("gross_total", "3000.00"),
        ],
    );
    assert_eq!(
        cells(&extraction, "lines", &["name", "unit_price", "total"]),
        [["Pose de luminaires", "1250.00", "2500.00"]]
    );
}

#[test]
fn a_word_of_a_name_over_the_table_heads_no_column() {
    let paper = Paper::new()
        .text(40.0, 30.0, "Oficina Digital Ltda")
        .text(350.0, 30.0, "Fatura n.º: 457")
        .text(350.0, 43.0, "Data: 18/05/2026")
        .text(40.0, 100.0, "Cliente: Padaria Quente ME")
        .text(40.0, 125.0, "Item")
        .text(80.0, 125.0, "Descrição")
        .right(330.0, 125.0, "Qtd.")
        .right(430.0, 125.0, "Valor unit.")
        .right(560.0, 125.0, "Valor total")
        .text(40.0, 141.0, "1")
        .text(80.0, 141.0, "Hospedagem (12 meses)")
        .right(330.0, 141.0, "12")
        .right(430.0, 141.0, "49,90")
        .right(560.0, 141.0, "598,80")
        .text(400.0, 170.0, "Total")
        .right(560.0, 170.0, "598,80");
    let extraction = read(paper);
    let lines = cells(&extraction, "lines", &["name", "quantity", "unit_price", "total"]);
    assert_eq!(lines, [["Hospedagem (12 meses)", "12", "49.90", "598.80"]]);
}

/// An invoice over 600.00 and 400.00 with these rows under its lines.
fn with_sums(rows: &[(&str, &str)]) -> Paper {
    let mut paper = Paper::new()
        .title(40.0, 30.0, "Harbor Print Works Ltd", 14.0)
        .text(40.0, 46.0, "1 Dock Road, Hull")
        .text(350.0, 30.0, "Invoice No: HP-17")
        .text(350.0, 43.0, "Invoice Date: 7 March 2025")
        .text(40.0, 100.0, "Bill to: Kite & Co");
    let lines = [
        ["Description", "Qty", "Price", "Amount"],
        ["Leaflets", "1000", "0.60", "600.00"],
        ["Posters", "100", "4.00", "400.00"],
    ];
    for (at, [name, quantity, price, total]) in lines.into_iter().enumerate() {
        let y = 170.0 + 16.0 * at as f32;
        paper =
            paper.text(40.0, y, name).right(330.0, y, quantity).right(430.0, y, price).right(560.0, y, total);
    }
    for (at, (label, amount)) in rows.iter().enumerate() {
        let y = 240.0 + 14.0 * at as f32;
        paper = paper.text(360.0, y, label).right(560.0, y, &format!("GBP {amount}"));
    }
    paper
}

/// Codes of what should be looked at.
fn flags(extraction: &Extraction) -> Vec<&'static str> {
    let findings = extraction.record.findings.iter().filter(|finding| finding.severity >= Severity::Review);
    findings.map(|finding| finding.code.as_str()).collect()
}

#[test]
fn sums_that_are_wrong_are_flagged_also_where_the_tax_is_labelled_with_its_rate() {
    fn expect(rows: &[(&str, &str)], expected: &[&str]) {
        assert_eq!(flags(&read(with_sums(rows))), expected, "{rows:?}");
    }
    let net = ("Subtotal", "1,000.00");
    expect(&[net, ("VAT 20%", "200.00"), ("Total", "1,200.00")], &[]);
    expect(&[net, ("VAT 20%", "200.00"), ("Total", "1,300.00")], &["TOTAL_MISMATCH"]);
    expect(&[net, ("VAT (20%)", "150.00"), ("Total", "1,150.00")], &["TAX_RATE_MISMATCH"]);
    expect(&[net, ("Total", "1,200.00")], &["FIELD_MISSING"]);
    expect(&[net, ("Shipping", "25.00"), ("Tax", "80.00"), ("Total", "1,105.00")], &[]);
    expect(&[net, ("Discount", "-100.00"), ("Tax", "72.00"), ("Total", "972.00")], &[]);
    expect(
        &[net, ("Discount (10%)", "100.00"), ("Tax", "72.00"), ("Total", "1,072.00")],
        &["TOTAL_MISMATCH"],
    );
}

#[test]
fn taxes_of_several_rates_add_up_and_an_instalment_is_not_the_total() {
    let rows = [
        ("Total excl. VAT", "1,000.00"),
        ("VAT 5%", "20.00"),
        ("VAT 20% on 600.00", "120.00"),
        ("Total incl. VAT", "1,140.00"),
        ("Deposit paid", "-500.00"),
        ("Amount due", "640.00"),
    ];
    let extraction = read(with_sums(&rows));
    assert!(flags(&extraction).is_empty(), "{:?}", extraction.record.findings);
    check(
        &extraction,
        &[
            ("net_total", "1000.00"),
            ("tax_total", "140.00"),
            ("gross_total", "1140.00"),
            ("payable", "640.00"),
        ],
    );
    assert_eq!(cells(&extraction, "vat", &["rate", "amount"]), [["5", "20.00"], ["20", "120.00"]]);
}

#[test]
fn what_cannot_be_learned_stays_blank_instead_of_wrong() {
    let rows = [("Subtotal", "1,000.00"), ("VAT 20%", "200.00"), ("Total", "1,200.00")];
    let document = with_sums(&rows).document();
    let expected = serde_json::json!({ "invoice_number": "HP-17", "gross_total": "999.99" });
    let lesson = Lesson { document: &document, file: "a.pdf", expected: &expected, name: "learned" };
    let learned = learn(lesson, &Registry::shipped()).expect("the number can be learned");
    assert_eq!(learned.missed, ["gross_total"]);

    let folder = tempfile::tempdir().expect("a folder for the mapping");
    std::fs::write(folder.path().join("learned.toml"), &learned.text).expect("the mapping is written");
    let options = Options { folder: Some(folder.path().to_owned()), ..Options::default() };
    let registry = Registry::new(options).unwrap_or_else(|errors| panic!("{errors:?}\n{}", learned.text));
    let extraction = extract(&document, &registry, Choice::Named("learned_v1")).expect("it is read");
    check(&extraction, &[("invoice_number", "HP-17"), ("gross_total", ""), ("net_total", "1000.00")]);
}
