//! UBL 2.1: an `Invoice`, or a `CreditNote` where the type code says so. Elements come in the order of the schema;
//! a changed order makes the document invalid.

use rust_decimal::Decimal;

use super::amount::{money, plain_number};
use super::codes;
use super::complete::{Invoice, NO_DATE};
use super::element::{Attributed, Element, demanded, demanded_group, group, leaf};
use crate::facts::Ask;
use crate::record::Row;

const CAC: &str = "urn:oasis:names:specification:ubl:schema:xsd:CommonAggregateComponents-2";
const CBC: &str = "urn:oasis:names:specification:ubl:schema:xsd:CommonBasicComponents-2";
const EN16931: &str = "urn:cen.eu:en16931:2017";

/// The document as UBL.
pub(super) fn document(invoice: &Invoice) -> Vec<u8> {
    let root = if invoice.is_credit_note() { "CreditNote" } else { "Invoice" };
    let children = [
        head(invoice),
        references(invoice),
        parties(invoice),
        settlement(invoice),
        vec![Some(totals(invoice))],
        invoice.lines.iter().map(|row| Some(line(invoice, row))).collect(),
    ];
    demanded_group(root, children.into_iter().flatten())
        .with("xmlns", Some(format!("urn:oasis:names:specification:ubl:schema:xsd:{root}-2")))
        .with("xmlns:cac", Some(CAC))
        .with("xmlns:cbc", Some(CBC))
        .document()
}

fn head(invoice: &Invoice) -> Vec<Option<Element>> {
    let header = &invoice.header;
    let is_credit_note = invoice.is_credit_note();
    let due = if is_credit_note { None } else { header.date("due_date") };
    let tax_point = leaf("cbc:TaxPointDate", header.date("tax_point_date").map(|date| date.to_string()));
    let code = header.text("type_code");
    let mut children = vec![
        demanded("cbc:CustomizationID", Some(EN16931)),
        leaf("cbc:ProfileID", header.text("process")),
        demanded("cbc:ID", header.text("invoice_number")),
        demanded("cbc:IssueDate", Some(header.date("issue_date").unwrap_or(NO_DATE).to_string())),
        leaf("cbc:DueDate", due.map(|date| date.to_string())),
    ];
    if is_credit_note {
        children.extend([tax_point.clone(), leaf("cbc:CreditNoteTypeCode", code)]);
    } else {
        children.push(leaf("cbc:InvoiceTypeCode", code));
    }
    children.push(leaf("cbc:Note", header.text("note")));
    children.extend(invoice.notes.iter().map(|note| {
        // EN 16931 in UBL: the subject stands before the text, between number signs.
        let subject = note.text("subject_code").map(|code| format!("#{code}#")).unwrap_or_default();
        leaf("cbc:Note", note.text("text").map(|text| subject + &text))
    }));
    if !is_credit_note {
        children.push(tax_point);
    }
    children.extend([
        demanded("cbc:DocumentCurrencyCode", Some(invoice.currency())),
        leaf("cbc:TaxCurrencyCode", header.text("tax_currency")),
        leaf("cbc:AccountingCost", header.text("buyer_accounting_reference")),
        leaf("cbc:BuyerReference", header.text("buyer_reference")),
    ]);
    children
}

fn references(invoice: &Invoice) -> Vec<Option<Element>> {
    let header = &invoice.header;
    let named = |element: &'static str, name: &str| group(element, [leaf("cbc:ID", header.text(name))]);
    let sales_order = leaf("cbc:SalesOrderID", header.text("sales_order_reference"));
    // The schema demands an order number beside a sales order; the standard's mapping says what to write for none.
    let order = header.text("order_reference").or_else(|| sales_order.as_ref().map(|_| "NA".to_owned()));
    let typed = |name: &str, code: &str| {
        let id = leaf("cbc:ID", header.text(name))?;
        group("cac:AdditionalDocumentReference", [Some(id), leaf("cbc:DocumentTypeCode", Some(code))])
    };
    let contract = named("cac:ContractDocumentReference", "contract_reference");
    let tender = named("cac:OriginatorDocumentReference", "tender_reference");
    let mut children = vec![
        period("cac:InvoicePeriod", header, header.text("tax_point_code").map(tax_point_code)),
        group("cac:OrderReference", [leaf("cbc:ID", order), sales_order]),
        group(
            "cac:BillingReference",
            [group(
                "cac:InvoiceDocumentReference",
                with_demanded_id(
                    header.text("preceding_invoice_number"),
                    [leaf(
                        "cbc:IssueDate",
                        header.date("preceding_invoice_date").map(|date| date.to_string()),
                    )],
                ),
            )],
        ),
        named("cac:DespatchDocumentReference", "despatch_advice_reference"),
        named("cac:ReceiptDocumentReference", "receiving_advice_reference"),
    ];
    let others =
        [typed("invoiced_object", "130")].into_iter().chain(invoice.documents.iter().map(document_reference));
    if invoice.is_credit_note() {
        children.push(contract);
        children.extend(others);
        // A credit note has no element for the project; the standard's mapping uses a document of type 50.
        children.extend([typed("project_reference", "50"), tender]);
    } else {
        children.extend([tender, contract]);
        children.extend(others);
        children.push(named("cac:ProjectReference", "project_reference"));
    }
    children
}

/// Children of a reference whose identifier the schema demands once anything else is there.
fn with_demanded_id<const N: usize>(
    id: Option<String>,
    others: [Option<Element>; N],
) -> Vec<Option<Element>> {
    let is_needed = id.is_some() || others.iter().any(Option::is_some);
    let id = if is_needed { demanded("cbc:ID", id) } else { None };
    [id].into_iter().chain(others).collect()
}

/// CII and UBL name the moment that tax is due by different lists: delivery, invoice date, payment.
fn tax_point_code(code: String) -> String {
    match code.as_str() {
        "5" => "3".to_owned(),
        "29" => "35".to_owned(),
        "72" => "432".to_owned(),
        _ => code,
    }
}

fn document_reference(row: &Row) -> Option<Element> {
    let uri = group("cac:ExternalReference", [leaf("cbc:URI", row.text("uri"))]);
    group(
        "cac:AdditionalDocumentReference",
        with_demanded_id(
            row.text("id"),
            [leaf("cbc:DocumentDescription", row.text("description")), group("cac:Attachment", [uri])],
        ),
    )
}

fn period(name: &'static str, facts: &Row, code: Option<String>) -> Option<Element> {
    let day = |name: &str| facts.date(name).map(|date| date.to_string());
    group(
        name,
        [
            leaf("cbc:StartDate", day("period_start")),
            leaf("cbc:EndDate", day("period_end")),
            leaf("cbc:DescriptionCode", code),
        ],
    )
}

fn parties(invoice: &Invoice) -> Vec<Option<Element>> {
    let header = &invoice.header;
    let payee = [
        group("cac:PartyIdentification", [leaf("cbc:ID", header.text("payee_id"))]),
        group("cac:PartyName", [leaf("cbc:Name", header.text("payee_name"))]),
        group("cac:PartyLegalEntity", [leaf("cbc:CompanyID", header.text("payee_registration"))]),
    ];
    let representative = [
        group("cac:PartyName", [leaf("cbc:Name", header.text("tax_representative_name"))]),
        address("cac:PostalAddress", header, "tax_representative"),
        tax_scheme(header.text("tax_representative_vat_id"), "VAT"),
    ];
    vec![
        Some(demanded_group("cac:AccountingSupplierParty", [party(header, "seller")])),
        Some(demanded_group("cac:AccountingCustomerParty", [party(header, "buyer")])),
        group("cac:PayeeParty", payee),
        group("cac:TaxRepresentativeParty", representative),
        delivery(invoice),
    ]
}

fn party(header: &Row, role: &str) -> Option<Element> {
    let of = |name: &str| header.text(&format!("{role}_{name}"));
    let known = of("electronic_address").as_deref().and_then(codes::address_scheme).map(str::to_owned);
    let endpoint = leaf("cbc:EndpointID", of("electronic_address"))
        .with("schemeID", of("electronic_address_scheme").or(known));
    let mut children = vec![
        endpoint,
        group("cac:PartyIdentification", [leaf("cbc:ID", of("id")).with("schemeID", of("id_scheme"))]),
    ];
    if role == "seller" {
        let creditor = leaf("cbc:ID", header.text("creditor_id")).with("schemeID", Some("SEPA"));
        children.push(group("cac:PartyIdentification", [creditor]));
    }
    children.extend([
        group("cac:PartyName", [leaf("cbc:Name", of("trading_name"))]),
        address("cac:PostalAddress", header, role),
        tax_scheme(of("vat_id"), "VAT"),
        tax_scheme(of("tax_number"), "TAX"),
        group(
            "cac:PartyLegalEntity",
            [
                leaf("cbc:RegistrationName", of("name")),
                leaf("cbc:CompanyID", of("registration")).with("schemeID", of("registration_scheme")),
                leaf("cbc:CompanyLegalForm", of("legal_form")),
            ],
        ),
        group(
            "cac:Contact",
            [
                leaf("cbc:Name", of("contact")),
                leaf("cbc:Telephone", of("phone")),
                leaf("cbc:ElectronicMail", of("email")),
            ],
        ),
    ]);
    group("cac:Party", children)
}

fn address(name: &'static str, header: &Row, role: &str) -> Option<Element> {
    let of = |name: &str| header.text(&format!("{role}_{name}"));
    group(
        name,
        [
            leaf("cbc:StreetName", of("street")),
            leaf("cbc:AdditionalStreetName", of("street_2")),
            leaf("cbc:CityName", of("city")),
            leaf("cbc:PostalZone", of("postcode")),
            leaf("cbc:CountrySubentity", of("region")),
            group("cac:AddressLine", [leaf("cbc:Line", of("street_3"))]),
            group("cac:Country", [leaf("cbc:IdentificationCode", of("country"))]),
        ],
    )
}

fn tax_scheme(id: Option<String>, scheme: &str) -> Option<Element> {
    let id = leaf("cbc:CompanyID", id)?;
    group("cac:PartyTaxScheme", [Some(id), group("cac:TaxScheme", [leaf("cbc:ID", Some(scheme))])])
}

fn delivery(invoice: &Invoice) -> Option<Element> {
    let header = &invoice.header;
    group(
        "cac:Delivery",
        [
            leaf("cbc:ActualDeliveryDate", header.date("delivery_date").map(|date| date.to_string())),
            group(
                "cac:DeliveryLocation",
                [
                    leaf("cbc:ID", header.text("delivery_location_id")),
                    address("cac:Address", header, "delivery"),
                ],
            ),
            group(
                "cac:DeliveryParty",
                [group("cac:PartyName", [leaf("cbc:Name", header.text("delivery_name"))])],
            ),
        ],
    )
}

fn settlement(invoice: &Invoice) -> Vec<Option<Element>> {
    let header = &invoice.header;
    let mut children = vec![
        payment_means(invoice),
        group("cac:PaymentTerms", [leaf("cbc:Note", header.text("payment_terms"))]),
    ];
    children.extend(invoice.allowances.iter().map(|row| allowance(invoice, row, false)));
    children.extend(invoice.charges.iter().map(|row| allowance(invoice, row, true)));
    let tax = header.number("tax_total").unwrap_or_default();
    let mut total = vec![Some(amount(invoice, "cbc:TaxAmount", tax))];
    total.extend(invoice.vat.iter().map(|row| subtotal(invoice, row)));
    children.push(group("cac:TaxTotal", total));
    if let (Some(currency), Some(tax)) =
        (header.text("tax_currency"), header.number("tax_total_in_tax_currency"))
    {
        let amount = leaf("cbc:TaxAmount", Some(money(tax, &currency))).with("currencyID", Some(currency));
        children.push(group("cac:TaxTotal", [amount]));
    }
    children
}

fn payment_means(invoice: &Invoice) -> Option<Element> {
    let header = &invoice.header;
    let due = if invoice.is_credit_note() { header.date("due_date") } else { None };
    let due = leaf("cbc:PaymentDueDate", due.map(|date| date.to_string()));
    let code = header.text("payment_means_code").or_else(|| due.as_ref().map(|_| "1".to_owned()))?;
    let card = header.text("card_number").and_then(|number| {
        group(
            "cac:CardAccount",
            [
                leaf("cbc:PrimaryAccountNumberID", Some(number)),
                // The schema demands a network, the standard has none.
                demanded("cbc:NetworkID", Some("NA")),
                leaf("cbc:HolderName", header.text("card_holder")),
            ],
        )
    });
    group(
        "cac:PaymentMeans",
        [
            leaf("cbc:PaymentMeansCode", Some(code)).with("name", header.text("payment_means_text")),
            due,
            leaf("cbc:PaymentID", header.text("payment_reference")),
            card,
            group(
                "cac:PayeeFinancialAccount",
                [
                    leaf("cbc:ID", header.text("iban")),
                    leaf("cbc:Name", header.text("account_name")),
                    group("cac:FinancialInstitutionBranch", [leaf("cbc:ID", header.text("bic"))]),
                ],
            ),
            group(
                "cac:PaymentMandate",
                [
                    leaf("cbc:ID", header.text("mandate_reference")),
                    group("cac:PayerFinancialAccount", [leaf("cbc:ID", header.text("debited_iban"))]),
                ],
            ),
        ],
    )
}

/// An allowance, or a charge, of the document.
fn allowance(invoice: &Invoice, row: &Row, is_charge: bool) -> Option<Element> {
    let mut children = allowance_facts(invoice, row, is_charge);
    children.push(tax_category("cac:TaxCategory", row, ["tax_category", "tax_rate"]));
    group("cac:AllowanceCharge", children)
}

fn allowance_facts(invoice: &Invoice, row: &Row, is_charge: bool) -> Vec<Option<Element>> {
    vec![
        leaf("cbc:ChargeIndicator", Some(is_charge.to_string())),
        leaf("cbc:AllowanceChargeReasonCode", row.text("reason_code")),
        leaf("cbc:AllowanceChargeReason", row.text("reason")),
        leaf("cbc:MultiplierFactorNumeric", row.number("percent").map(plain_number)),
        Some(amount(invoice, "cbc:Amount", row.number("amount").unwrap_or_default())),
        row.number("basis").map(|basis| amount(invoice, "cbc:BaseAmount", basis)),
    ]
}

fn subtotal(invoice: &Invoice, row: &Row) -> Option<Element> {
    let of = |name: &str| row.number(name).unwrap_or_default();
    group(
        "cac:TaxSubtotal",
        [
            Some(amount(invoice, "cbc:TaxableAmount", of("basis"))),
            Some(amount(invoice, "cbc:TaxAmount", of("amount"))),
            tax_category("cac:TaxCategory", row, ["category", "rate"]),
        ],
    )
}

fn tax_category(name: &'static str, row: &Row, [category, rate]: [&str; 2]) -> Option<Element> {
    group(
        name,
        [
            leaf("cbc:ID", row.text(category)),
            leaf("cbc:Percent", row.number(rate).map(plain_number)),
            leaf("cbc:TaxExemptionReasonCode", row.text("exemption_code")),
            leaf("cbc:TaxExemptionReason", row.text("exemption_reason")),
            group("cac:TaxScheme", [leaf("cbc:ID", Some("VAT"))]),
        ],
    )
}

fn totals(invoice: &Invoice) -> Element {
    let of = |element: &'static str, name: &str| {
        invoice.header.number(name).map(|number| amount(invoice, element, number))
    };
    demanded_group(
        "cac:LegalMonetaryTotal",
        [
            of("cbc:LineExtensionAmount", "line_total"),
            of("cbc:TaxExclusiveAmount", "net_total"),
            of("cbc:TaxInclusiveAmount", "gross_total"),
            of("cbc:AllowanceTotalAmount", "allowance_total"),
            of("cbc:ChargeTotalAmount", "charge_total"),
            of("cbc:PrepaidAmount", "prepaid"),
            of("cbc:PayableRoundingAmount", "rounding"),
            Some(amount(invoice, "cbc:PayableAmount", invoice.header.number("payable").unwrap_or_default())),
        ],
    )
}

fn line(invoice: &Invoice, row: &Row) -> Element {
    let (name, quantity_name) = if invoice.is_credit_note() {
        ("cac:CreditNoteLine", "cbc:CreditedQuantity")
    } else {
        ("cac:InvoiceLine", "cbc:InvoicedQuantity")
    };
    let mut children = vec![
        demanded("cbc:ID", row.text("id")),
        leaf("cbc:Note", row.text("note")),
        leaf(quantity_name, row.number("quantity").map(plain_number)).with("unitCode", row.text("unit")),
        Some(amount(invoice, "cbc:LineExtensionAmount", row.number("total").unwrap_or_default())),
        leaf("cbc:AccountingCost", row.text("accounting_reference")),
        period("cac:InvoicePeriod", row, None),
        group("cac:OrderLineReference", [leaf("cbc:LineID", row.text("order_line"))]),
        row.text("object_id").and_then(|id| {
            group(
                "cac:DocumentReference",
                [leaf("cbc:ID", Some(id)), leaf("cbc:DocumentTypeCode", Some("130"))],
            )
        }),
    ];
    let extra = |rows: &[Row], is_charge: bool| {
        rows.iter()
            .map(|row| group("cac:AllowanceCharge", allowance_facts(invoice, row, is_charge)))
            .collect::<Vec<_>>()
    };
    children.extend(extra(invoice.allowances_of(row), false));
    children.extend(extra(invoice.charges_of(row), true));
    children.extend([Some(item(invoice, row)), price(invoice, row)]);
    demanded_group(name, children)
}

fn item(invoice: &Invoice, row: &Row) -> Element {
    let identified = |element: &'static str, name: &str, scheme: Option<String>| {
        group(element, [leaf("cbc:ID", row.text(name)).with("schemeID", scheme)])
    };
    let classification = leaf("cbc:ItemClassificationCode", row.text("classification"))
        .with("listID", row.text("classification_scheme"));
    let mut children = vec![
        leaf("cbc:Description", row.text("description")),
        leaf("cbc:Name", row.text("name")),
        identified("cac:BuyersItemIdentification", "buyer_item_id", None),
        identified("cac:SellersItemIdentification", "item_id", None),
        identified("cac:StandardItemIdentification", "standard_item_id", row.text("standard_item_id_scheme")),
        group("cac:OriginCountry", [leaf("cbc:IdentificationCode", row.text("origin_country"))]),
        group("cac:CommodityClassification", [classification]),
        tax_category("cac:ClassifiedTaxCategory", row, ["tax_category", "tax_rate"]),
    ];
    children.extend(invoice.attributes_of(row).iter().map(|attribute| {
        let name = leaf("cbc:Name", attribute.text("name"))?;
        group("cac:AdditionalItemProperty", [Some(name), leaf("cbc:Value", attribute.text("value"))])
    }));
    demanded_group("cac:Item", children)
}

fn price(invoice: &Invoice, row: &Row) -> Option<Element> {
    let currency = Some(invoice.currency());
    let discount = row.number("price_discount").and_then(|discount| {
        group(
            "cac:AllowanceCharge",
            [
                leaf("cbc:ChargeIndicator", Some("false")),
                leaf("cbc:Amount", Some(plain_number(discount))).with("currencyID", currency.clone()),
                leaf("cbc:BaseAmount", row.number("gross_price").map(plain_number))
                    .with("currencyID", currency.clone()),
            ],
        )
    });
    let base = row.number("base_quantity").filter(|base| *base > Decimal::ZERO);
    group(
        "cac:Price",
        [
            leaf("cbc:PriceAmount", row.number("unit_price").map(plain_number))
                .with("currencyID", currency.clone()),
            leaf("cbc:BaseQuantity", base.map(plain_number))
                .with("unitCode", row.text("base_unit").or_else(|| row.text("unit"))),
            discount,
        ],
    )
}

fn amount(invoice: &Invoice, name: &'static str, value: Decimal) -> Element {
    let currency = invoice.currency();
    demanded_group(name, []).text(money(value, &currency)).with("currencyID", Some(currency))
}
