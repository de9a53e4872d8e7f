//! Attachments that mean harm, or were only badly made.

use crate::sample;
use ode_invoice::embedded::{self, Unreadable};
use ode_invoice::write::{Format, Provenance, write};
use ode_pdf::Attachment;

const HEAD: &str =
    "<rsm:CrossIndustryInvoice xmlns:rsm=\"urn:un:unece:uncefact:data:standard:CrossIndustryInvoice:100\">";
const TAIL: &str = "</rsm:CrossIndustryInvoice>";

/// A document is refused with a sentence that says why. One that took for ever would be ended by the test runner.
#[track_caller]
fn expect_refused(bytes: &[u8], because: &str) {
    let refused = embedded::read("factur-x.xml", bytes).map(|embedded| embedded.record);
    let Err(unreadable @ Unreadable::Refused(_)) = refused else { panic!("{refused:?}") };
    let message = unreadable.finding("factur-x.xml").message;
    assert!(message.contains(because), "{message}");
}

fn number_of(bytes: &[u8]) -> String {
    let embedded = embedded::read("factur-x.xml", bytes).unwrap_or_else(|error| panic!("{error:?}"));
    embedded.record.fields["invoice_number"].value.printed.clone()
}

fn invoice(number: &str) -> String {
    format!("{HEAD}<ExchangedDocument><ID>{number}</ID></ExchangedDocument>{TAIL}")
}

#[test]
fn entities_are_never_expanded() {
    let laughs = "<?xml version=\"1.0\"?><!DOCTYPE lolz [<!ENTITY a \"ha\"><!ENTITY b \"&a;&a;&a;&a;&a;&a;&a;&a;\">\
                  <!ENTITY c \"&b;&b;&b;&b;&b;&b;&b;&b;\">]><lolz>&c;</lolz>";
    expect_refused(laughs.as_bytes(), "declares a document type");
    let file = "<!DOCTYPE a [<!ENTITY x SYSTEM \"file:///etc/passwd\">]><a>&x;</a>";
    expect_refused(file.as_bytes(), "declares a document type");
    expect_refused(invoice("&x;").as_bytes(), "uses the entity x");
    assert_eq!(number_of(invoice("A&amp;B&#65;&#x42;&lt;").as_bytes()), "A&BAB<");
}

#[test]
fn depth_elements_and_size_are_bounded() {
    let deep = format!("{HEAD}{}{}{TAIL}", "<a>".repeat(100_000), "</a>".repeat(100_000));
    expect_refused(deep.as_bytes(), "nested too deeply");
    let wide = format!("{HEAD}{}{TAIL}", "<a/>".repeat(500_001));
    expect_refused(wide.as_bytes(), "too many elements");
    let large = vec![b' '; 60 * 1024 * 1024];
    expect_refused(&large, "has 60 MB, and the limit is 32 MB");
}

#[test]
fn more_lines_than_a_document_may_have_are_cut_and_told() {
    let line = "<IncludedSupplyChainTradeLineItem><SpecifiedLineTradeDelivery><BilledQuantity>1</BilledQuantity>\
                </SpecifiedLineTradeDelivery></IncludedSupplyChainTradeLineItem>";
    let document = format!(
        "{HEAD}<SupplyChainTradeTransaction>{}</SupplyChainTradeTransaction>{TAIL}",
        line.repeat(20_001)
    );
    let record = embedded::read("factur-x.xml", document.as_bytes()).map(|embedded| embedded.record);
    let record = record.unwrap_or_else(|error| panic!("{error:?}"));
    assert_eq!(record.tables["lines"].rows.len(), 20_000);
    assert_eq!(
        record.findings[0].message,
        "The embedded XML has more than 20000 lines; the rest was left out."
    );
}

#[test]
fn what_is_not_xml_is_refused_with_a_sentence() {
    for damaged in ["", "hello", "<a", "<a></b>", "<a>", "<a b=c/>", "\u{0}\u{0}\u{0}"] {
        let refused = embedded::read("factur-x.xml", damaged.as_bytes());
        assert!(refused.is_err(), "{damaged:?}");
    }
    expect_refused(&invoice("x").as_bytes()[..150], "not used: it");
    expect_refused(b"<a>\xff\xfe</a>", "not valid UTF-8");
}

#[test]
fn every_cut_of_a_document_is_read_or_refused() {
    let bytes = write(&sample::invoice(), Format::Cii, Provenance::Left).bytes;
    for end in (0..bytes.len()).step_by(17) {
        assert!(embedded::read("factur-x.xml", &bytes[..end]).is_err(), "cut at {end}");
    }
}

#[test]
fn other_encodings_are_read() {
    let document = invoice("Ä1");
    let with_bom = [b"\xef\xbb\xbf", document.as_bytes()].concat();
    assert_eq!(number_of(&with_bom), "Ä1");
    let units: Vec<u16> = document.encode_utf16().collect();
    let little: Vec<u8> = units.iter().flat_map(|unit| unit.to_le_bytes()).collect();
    let big: Vec<u8> = units.iter().flat_map(|unit| unit.to_be_bytes()).collect();
    for bytes in [
        [b"\xff\xfe".to_vec(), little.clone()].concat(),
        [b"\xfe\xff".to_vec(), big.clone()].concat(),
        little,
        big,
    ] {
        assert_eq!(number_of(&bytes), "Ä1");
    }
    let latin = |encoding: &str| {
        let head = format!("<?xml version='1.0' encoding='{encoding}'?>").into_bytes();
        [head, document.chars().map(|letter| u8::try_from(u32::from(letter)).unwrap()).collect()].concat()
    };
    assert_eq!(number_of(&latin("ISO-8859-1")), "Ä1");
    assert_eq!(number_of(&latin("windows-1252")), "Ä1");
    expect_refused(&latin("UTF-8"), "not valid UTF-8");
    expect_refused(&latin("EBCDIC-37"), "is written in ebcdic-37");
}

fn attachment(name: &str, bytes: &str) -> Attachment {
    Attachment { name: name.to_owned(), bytes: bytes.as_bytes().to_vec(), ..Attachment::default() }
}

#[test]
fn the_invoice_is_chosen_among_several_attachments() {
    let name_of =
        |attachments: &[Attachment]| embedded::find(attachments).invoice.map(|invoice| invoice.name);
    let other = attachment("additional.xml", "<data/>");
    let picture = attachment("photo.png", "\u{0}");
    let odd = attachment("rechnung_4711.XML", &invoice("1"));
    let known = attachment("ZUGFeRD-invoice.xml", &invoice("2"));
    let pathed = attachment("C:\\temp\\factur-x.xml", &invoice("3"));
    assert_eq!(name_of(&[other.clone(), picture.clone()]), None);
    assert_eq!(name_of(&[other.clone(), odd.clone(), picture]).as_deref(), Some("rechnung_4711.XML"));
    assert_eq!(name_of(&[odd.clone(), known.clone()]).as_deref(), Some("ZUGFeRD-invoice.xml"));
    assert_eq!(name_of(&[known.clone(), pathed]).as_deref(), Some("C:\\temp\\factur-x.xml"));
    let found = embedded::find(&[odd, known, other]);
    let codes: Vec<&str> = found.findings.iter().map(|finding| finding.code.as_str()).collect();
    assert_eq!(codes, ["EMBEDDED_SECOND_INVOICE"]);
}

#[test]
fn a_broken_invoice_is_a_finding_and_the_next_one_is_used() {
    let found = embedded::find(&[attachment("factur-x.xml", "<a"), attachment("x.xml", &invoice("1"))]);
    assert_eq!(found.invoice.map(|invoice| invoice.record.source).as_deref(), Some("embedded:x.xml"));
    let codes: Vec<&str> = found.findings.iter().map(|finding| finding.code.as_str()).collect();
    assert_eq!(codes, ["EMBEDDED_XML_UNREADABLE"]);
    let found = embedded::find(&[attachment("factur-x.xml", "<other/>")]);
    assert_eq!(
        found.findings[0].message,
        "The attachment factur-x.xml has the name of an invoice but is none that we know."
    );
}

#[test]
fn the_sums_of_an_invoice_inside_a_document_are_checked() {
    let sums = "<InvoiceCurrencyCode>EUR</InvoiceCurrencyCode><SpecifiedTradeSettlementHeaderMonetarySummation>\
                <TaxBasisTotalAmount>398.00</TaxBasisTotalAmount><TaxTotalAmount currencyID=\"EUR\">39.86</TaxTotalAmount>\
                <GrandTotalAmount>537.86</GrandTotalAmount></SpecifiedTradeSettlementHeaderMonetarySummation>";
    let settlement = format!(
        "<SupplyChainTradeTransaction><ApplicableHeaderTradeSettlement>{sums}</ApplicableHeaderTradeSettlement>\
         </SupplyChainTradeTransaction>"
    );
    let document = invoice("1").replace("</ExchangedDocument>", &format!("</ExchangedDocument>{settlement}"));
    let record = embedded::read("factur-x.xml", document.as_bytes()).unwrap().record;
    let codes: Vec<&str> = record.findings.iter().map(|finding| finding.code.as_str()).collect();
    assert!(codes.contains(&"TOTAL_MISMATCH"), "{codes:?}");
}
