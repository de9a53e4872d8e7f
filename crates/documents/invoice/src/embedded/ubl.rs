//! UBL 2.1: `Invoice` and `CreditNote`, as XRechnung and Peppol use them.

use super::tree::Node;
use super::values::{add_rows, fill, row, set, set_cell};
use crate::facts::Ask;
use crate::record::{Record, Row};

const HEADER_PATHS: &[(&str, &str)] = &[
    ("profile", "CustomizationID"),
    ("process", "ProfileID"),
    ("invoice_number", "ID"),
    ("issue_date", "IssueDate"),
    ("due_date", "DueDate"),
    ("due_date", "PaymentMeans/PaymentDueDate"),
    ("type_code", "InvoiceTypeCode"),
    ("type_code", "CreditNoteTypeCode"),
    ("tax_point_date", "TaxPointDate"),
    ("currency", "DocumentCurrencyCode"),
    ("tax_currency", "TaxCurrencyCode"),
    ("buyer_accounting_reference", "AccountingCost"),
    ("buyer_reference", "BuyerReference"),
    ("period_start", "InvoicePeriod/StartDate"),
    ("period_end", "InvoicePeriod/EndDate"),
    ("order_reference", "OrderReference/ID"),
    ("sales_order_reference", "OrderReference/SalesOrderID"),
    ("preceding_invoice_number", "BillingReference/InvoiceDocumentReference/ID"),
    ("preceding_invoice_date", "BillingReference/InvoiceDocumentReference/IssueDate"),
    ("despatch_advice_reference", "DespatchDocumentReference/ID"),
    ("receiving_advice_reference", "ReceiptDocumentReference/ID"),
    ("tender_reference", "OriginatorDocumentReference/ID"),
    ("contract_reference", "ContractDocumentReference/ID"),
    ("project_reference", "ProjectReference/ID"),
    ("payee_name", "PayeeParty/PartyName/Name"),
    ("payee_id", "PayeeParty/PartyIdentification/ID"),
    ("payee_registration", "PayeeParty/PartyLegalEntity/CompanyID"),
    ("delivery_date", "Delivery/ActualDeliveryDate"),
    ("delivery_location_id", "Delivery/DeliveryLocation/ID"),
    ("delivery_name", "Delivery/DeliveryParty/PartyName/Name"),
    ("payment_means_code", "PaymentMeans/PaymentMeansCode"),
    ("payment_means_text", "PaymentMeans/PaymentMeansCode/@name"),
    ("payment_reference", "PaymentMeans/PaymentID"),
    ("card_number", "PaymentMeans/CardAccount/PrimaryAccountNumberID"),
    ("card_holder", "PaymentMeans/CardAccount/HolderName"),
    ("iban", "PaymentMeans/PayeeFinancialAccount/ID"),
    ("account_name", "PaymentMeans/PayeeFinancialAccount/Name"),
    ("bic", "PaymentMeans/PayeeFinancialAccount/FinancialInstitutionBranch/ID"),
    ("mandate_reference", "PaymentMeans/PaymentMandate/ID"),
    ("debited_iban", "PaymentMeans/PaymentMandate/PayerFinancialAccount/ID"),
    ("payment_terms", "PaymentTerms/Note"),
    ("line_total", "LegalMonetaryTotal/LineExtensionAmount"),
    ("net_total", "LegalMonetaryTotal/TaxExclusiveAmount"),
    ("gross_total", "LegalMonetaryTotal/TaxInclusiveAmount"),
    ("allowance_total", "LegalMonetaryTotal/AllowanceTotalAmount"),
    ("charge_total", "LegalMonetaryTotal/ChargeTotalAmount"),
    ("prepaid", "LegalMonetaryTotal/PrepaidAmount"),
    ("rounding", "LegalMonetaryTotal/PayableRoundingAmount"),
    ("payable", "LegalMonetaryTotal/PayableAmount"),
];

const PARTY_PATHS: &[(&str, &str)] = &[
    ("electronic_address", "EndpointID"),
    ("electronic_address_scheme", "EndpointID/@schemeID"),
    ("name", "PartyLegalEntity/RegistrationName"),
    ("name", "PartyName/Name"),
    ("trading_name", "PartyName/Name"),
    ("registration", "PartyLegalEntity/CompanyID"),
    ("registration_scheme", "PartyLegalEntity/CompanyID/@schemeID"),
    ("legal_form", "PartyLegalEntity/CompanyLegalForm"),
    ("contact", "Contact/Name"),
    ("phone", "Contact/Telephone"),
    ("email", "Contact/ElectronicMail"),
];

const ADDRESS_PATHS: &[(&str, &str)] = &[
    ("street", "StreetName"),
    ("street_2", "AdditionalStreetName"),
    ("street_3", "AddressLine/Line"),
    ("city", "CityName"),
    ("postcode", "PostalZone"),
    ("region", "CountrySubentity"),
    ("country", "Country/IdentificationCode"),
];

const LINE_PATHS: &[(&str, &str)] = &[
    ("id", "ID"),
    ("note", "Note"),
    ("quantity", "InvoicedQuantity"),
    ("quantity", "CreditedQuantity"),
    ("unit", "InvoicedQuantity/@unitCode"),
    ("unit", "CreditedQuantity/@unitCode"),
    ("total", "LineExtensionAmount"),
    ("accounting_reference", "AccountingCost"),
    ("period_start", "InvoicePeriod/StartDate"),
    ("period_end", "InvoicePeriod/EndDate"),
    ("order_line", "OrderLineReference/LineID"),
    ("object_id", "DocumentReference/ID"),
    ("description", "Item/Description"),
    ("name", "Item/Name"),
    ("buyer_item_id", "Item/BuyersItemIdentification/ID"),
    ("item_id", "Item/SellersItemIdentification/ID"),
    ("standard_item_id", "Item/StandardItemIdentification/ID"),
    ("standard_item_id_scheme", "Item/StandardItemIdentification/ID/@schemeID"),
    ("origin_country", "Item/OriginCountry/IdentificationCode"),
    ("classification", "Item/CommodityClassification/ItemClassificationCode"),
    ("classification_scheme", "Item/CommodityClassification/ItemClassificationCode/@listID"),
    ("tax_category", "Item/ClassifiedTaxCategory/ID"),
    ("tax_rate", "Item/ClassifiedTaxCategory/Percent"),
    ("unit_price", "Price/PriceAmount"),
    ("base_quantity", "Price/BaseQuantity"),
    ("base_unit", "Price/BaseQuantity/@unitCode"),
    ("price_discount", "Price/AllowanceCharge/Amount"),
    ("gross_price", "Price/AllowanceCharge/BaseAmount"),
];

const ALLOWANCE_PATHS: &[(&str, &str)] = &[
    ("reason_code", "AllowanceChargeReasonCode"),
    ("reason", "AllowanceChargeReason"),
    ("percent", "MultiplierFactorNumeric"),
    ("amount", "Amount"),
    ("basis", "BaseAmount"),
    ("tax_category", "TaxCategory/ID"),
    ("tax_rate", "TaxCategory/Percent"),
];

const TAX_PATHS: &[(&str, &str)] = &[
    ("basis", "TaxableAmount"),
    ("amount", "TaxAmount"),
    ("category", "TaxCategory/ID"),
    ("rate", "TaxCategory/Percent"),
    ("exemption_code", "TaxCategory/TaxExemptionReasonCode"),
    ("exemption_reason", "TaxCategory/TaxExemptionReason"),
];

/// The record of an `Invoice` or a `CreditNote`.
pub(super) fn read(root: &Node, record: &mut Record) {
    fill(record, root, HEADER_PATHS);
    // Written for a sales order without an order, and no order number.
    if record.fields.text("order_reference").as_deref() == Some("NA") {
        record.fields.remove("order_reference");
    }
    if let Some(code) = root.value("InvoicePeriod/DescriptionCode") {
        set(record, "tax_point_code", tax_point_code(&code), "InvoicePeriod/DescriptionCode");
    }
    add_rows(record, "notes", root.all("Note").into_iter().map(note));
    for (element, role) in [
        ("AccountingSupplierParty/Party", "seller"),
        ("AccountingCustomerParty/Party", "buyer"),
        ("TaxRepresentativeParty", "tax_representative"),
    ] {
        if let Some(node) = root.first(element) {
            party(record, node, role);
        }
    }
    if let Some(node) = root.first("Delivery/DeliveryLocation/Address") {
        fill_role(record, node, "delivery", ADDRESS_PATHS);
    }
    documents(record, root);
    taxes(record, root);
    for entry in root.all("AllowanceCharge") {
        let table = if is_charge(entry) { "charges" } else { "allowances" };
        add_rows(record, table, [row(table, entry, ALLOWANCE_PATHS)]);
    }
    for line in root.all("InvoiceLine").into_iter().chain(root.all("CreditNoteLine")) {
        read_line(record, line);
    }
}

/// UBL's codes for when tax is due, as CII names them.
fn tax_point_code(code: &str) -> &str {
    match code {
        "3" => "5",
        "35" => "29",
        "432" => "72",
        code => code,
    }
}

/// A note; the code of its subject stands before the text, between number signs.
fn note(node: &Node) -> Row {
    let mut note = Row::new();
    let Some(text) = node.content() else { return note };
    let subject = text.strip_prefix('#').and_then(|rest| rest.split_once('#'));
    let subject =
        subject.filter(|(code, _)| code.len() == 3 && code.bytes().all(|byte| byte.is_ascii_uppercase()));
    if let Some((code, _)) = subject {
        set_cell(&mut note, "notes", "subject_code", code);
    }
    set_cell(&mut note, "notes", "text", subject.map_or(text.as_str(), |(_, text)| text));
    note
}

fn fill_role(record: &mut Record, node: &Node, role: &str, paths: &[(&str, &str)]) {
    for (name, path) in paths {
        let name = format!("{role}_{name}");
        if record.fields.contains_key(&name) {
            continue;
        }
        if let Some(text) = node.value(path) {
            set(record, &name, &text, path);
        }
    }
}

fn party(record: &mut Record, node: &Node, role: &str) {
    fill_role(record, node, role, PARTY_PATHS);
    // A party with one name has it as its name, whichever element it stood in.
    let trading_name = format!("{role}_trading_name");
    if record.fields.text(&trading_name) == record.fields.text(&format!("{role}_name")) {
        record.fields.remove(&trading_name);
    }
    for id in node.all("PartyIdentification/ID") {
        let (text, scheme) = (id.content().unwrap_or_default(), id.attribute("schemeID"));
        if scheme.as_deref() == Some("SEPA") {
            set(record, "creditor_id", &text, "PartyIdentification/ID");
        } else if !record.fields.contains_key(&format!("{role}_id")) {
            set(record, &format!("{role}_id"), &text, "PartyIdentification/ID");
            if let Some(scheme) = scheme {
                set(record, &format!("{role}_id_scheme"), &scheme, "PartyIdentification/ID");
            }
        }
    }
    if let Some(address) = node.first("PostalAddress") {
        fill_role(record, address, role, ADDRESS_PATHS);
    }
    for scheme in node.all("PartyTaxScheme") {
        let is_vat = scheme.value("TaxScheme/ID").is_none_or(|id| id.eq_ignore_ascii_case("VAT"));
        let name = format!("{role}_{}", if is_vat { "vat_id" } else { "tax_number" });
        if let (Some(text), false) = (scheme.value("CompanyID"), record.fields.contains_key(&name)) {
            set(record, &name, &text, "PartyTaxScheme/CompanyID");
        }
    }
}

fn documents(record: &mut Record, root: &Node) {
    for document in root.all("AdditionalDocumentReference") {
        let id = document.value("ID").unwrap_or_default();
        match document.value("DocumentTypeCode").as_deref() {
            Some("130") => set(record, "invoiced_object", &id, "AdditionalDocumentReference"),
            Some("50") => set(record, "project_reference", &id, "AdditionalDocumentReference"),
            _ => {
                let paths = [
                    ("id", "ID"),
                    ("description", "DocumentDescription"),
                    ("uri", "Attachment/ExternalReference/URI"),
                ];
                add_rows(record, "documents", [row("documents", document, &paths)]);
            }
        }
    }
}

fn taxes(record: &mut Record, root: &Node) {
    let (currency, tax_currency) = (record.fields.text("currency"), record.fields.text("tax_currency"));
    for total in root.all("TaxTotal") {
        let Some(amount) = total.first("TaxAmount") else { continue };
        let of = amount.attribute("currencyID");
        let is_second = of.is_some() && of == tax_currency && of != currency;
        let name = if is_second { "tax_total_in_tax_currency" } else { "tax_total" };
        if let (false, Some(text)) = (record.fields.contains_key(name), amount.content()) {
            set(record, name, &text, "TaxTotal/TaxAmount");
        }
        if !is_second {
            let rows = total.all("TaxSubtotal").into_iter().map(|tax| row("vat", tax, TAX_PATHS));
            add_rows(record, "vat", rows);
        }
    }
}

fn is_charge(entry: &Node) -> bool {
    entry.value("ChargeIndicator").is_some_and(|text| matches!(text.as_str(), "true" | "1"))
}

fn read_line(record: &mut Record, node: &Node) {
    let line = row("lines", node, LINE_PATHS);
    let id = line.text("id").unwrap_or_default();
    for entry in node.all("AllowanceCharge") {
        let table = if is_charge(entry) { "line_charges" } else { "line_allowances" };
        let mut extra = row(table, entry, ALLOWANCE_PATHS);
        set_cell(&mut extra, table, "line", &id);
        add_rows(record, table, [extra]);
    }
    for entry in node.all("Item/AdditionalItemProperty") {
        let mut attribute = row("line_attributes", entry, &[("name", "Name"), ("value", "Value")]);
        set_cell(&mut attribute, "line_attributes", "line", &id);
        add_rows(record, "line_attributes", [attribute]);
    }
    add_rows(record, "lines", [line]);
}
