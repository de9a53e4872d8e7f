//! Cross Industry Invoice: Factur-X, ZUGFeRD 2 and XRechnung in that syntax, of any profile.

use super::tree::Node;
use super::values::{add_rows, fill, row, set, set_cell};
use crate::facts::Ask;
use crate::record::{Record, Row};

const CONTEXT: &str = "ExchangedDocumentContext";
const AGREEMENT: &str = "SupplyChainTradeTransaction/ApplicableHeaderTradeAgreement";
const DELIVERY: &str = "SupplyChainTradeTransaction/ApplicableHeaderTradeDelivery";
const SETTLEMENT: &str = "SupplyChainTradeTransaction/ApplicableHeaderTradeSettlement";

const DOCUMENT_PATHS: &[(&str, &str)] =
    &[("invoice_number", "ID"), ("type_code", "TypeCode"), ("issue_date", "IssueDateTime/DateTimeString")];

const AGREEMENT_PATHS: &[(&str, &str)] = &[
    ("buyer_reference", "BuyerReference"),
    ("sales_order_reference", "SellerOrderReferencedDocument/IssuerAssignedID"),
    ("order_reference", "BuyerOrderReferencedDocument/IssuerAssignedID"),
    ("contract_reference", "ContractReferencedDocument/IssuerAssignedID"),
    ("project_reference", "SpecifiedProcuringProject/ID"),
];

const PARTY_PATHS: &[(&str, &str)] = &[
    ("name", "Name"),
    ("trading_name", "SpecifiedLegalOrganization/TradingBusinessName"),
    ("id", "GlobalID"),
    ("id", "ID"),
    ("id_scheme", "GlobalID/@schemeID"),
    ("registration", "SpecifiedLegalOrganization/ID"),
    ("registration_scheme", "SpecifiedLegalOrganization/ID/@schemeID"),
    ("vat_id", "SpecifiedTaxRegistration/ID@schemeID=VA"),
    ("tax_number", "SpecifiedTaxRegistration/ID@schemeID=FC"),
    ("legal_form", "Description"),
    ("electronic_address", "URIUniversalCommunication/URIID"),
    ("electronic_address_scheme", "URIUniversalCommunication/URIID/@schemeID"),
    ("street", "PostalTradeAddress/LineOne"),
    ("street_2", "PostalTradeAddress/LineTwo"),
    ("street_3", "PostalTradeAddress/LineThree"),
    ("city", "PostalTradeAddress/CityName"),
    ("postcode", "PostalTradeAddress/PostcodeCode"),
    ("region", "PostalTradeAddress/CountrySubDivisionName"),
    ("country", "PostalTradeAddress/CountryID"),
    ("contact", "DefinedTradeContact/PersonName"),
    ("contact", "DefinedTradeContact/DepartmentName"),
    ("phone", "DefinedTradeContact/TelephoneUniversalCommunication/CompleteNumber"),
    ("email", "DefinedTradeContact/EmailURIUniversalCommunication/URIID"),
];

const DELIVERY_PATHS: &[(&str, &str)] = &[
    ("delivery_name", "ShipToTradeParty/Name"),
    ("delivery_location_id", "ShipToTradeParty/GlobalID"),
    ("delivery_location_id", "ShipToTradeParty/ID"),
    ("delivery_date", "ActualDeliverySupplyChainEvent/OccurrenceDateTime/DateTimeString"),
    ("despatch_advice_reference", "DespatchAdviceReferencedDocument/IssuerAssignedID"),
    ("receiving_advice_reference", "ReceivingAdviceReferencedDocument/IssuerAssignedID"),
];

const SETTLEMENT_PATHS: &[(&str, &str)] = &[
    ("creditor_id", "CreditorReferenceID"),
    ("payment_reference", "PaymentReference"),
    ("tax_currency", "TaxCurrencyCode"),
    ("currency", "InvoiceCurrencyCode"),
    ("payee_name", "PayeeTradeParty/Name"),
    ("payee_id", "PayeeTradeParty/GlobalID"),
    ("payee_id", "PayeeTradeParty/ID"),
    ("payee_registration", "PayeeTradeParty/SpecifiedLegalOrganization/ID"),
    ("payment_means_code", "SpecifiedTradeSettlementPaymentMeans/TypeCode"),
    ("payment_means_text", "SpecifiedTradeSettlementPaymentMeans/Information"),
    ("card_number", "SpecifiedTradeSettlementPaymentMeans/ApplicableTradeSettlementFinancialCard/ID"),
    (
        "card_holder",
        "SpecifiedTradeSettlementPaymentMeans/ApplicableTradeSettlementFinancialCard/CardholderName",
    ),
    ("debited_iban", "SpecifiedTradeSettlementPaymentMeans/PayerPartyDebtorFinancialAccount/IBANID"),
    ("iban", "SpecifiedTradeSettlementPaymentMeans/PayeePartyCreditorFinancialAccount/IBANID"),
    ("iban", "SpecifiedTradeSettlementPaymentMeans/PayeePartyCreditorFinancialAccount/ProprietaryID"),
    ("account_name", "SpecifiedTradeSettlementPaymentMeans/PayeePartyCreditorFinancialAccount/AccountName"),
    ("bic", "SpecifiedTradeSettlementPaymentMeans/PayeeSpecifiedCreditorFinancialInstitution/BICID"),
    ("tax_point_date", "ApplicableTradeTax/TaxPointDate/DateString"),
    ("tax_point_code", "ApplicableTradeTax/DueDateTypeCode"),
    ("period_start", "BillingSpecifiedPeriod/StartDateTime/DateTimeString"),
    ("period_end", "BillingSpecifiedPeriod/EndDateTime/DateTimeString"),
    ("payment_terms", "SpecifiedTradePaymentTerms/Description"),
    ("due_date", "SpecifiedTradePaymentTerms/DueDateDateTime/DateTimeString"),
    ("mandate_reference", "SpecifiedTradePaymentTerms/DirectDebitMandateID"),
    ("preceding_invoice_number", "InvoiceReferencedDocument/IssuerAssignedID"),
    ("preceding_invoice_date", "InvoiceReferencedDocument/FormattedIssueDateTime/DateTimeString"),
    ("buyer_accounting_reference", "ReceivableSpecifiedTradeAccountingAccount/ID"),
];

const TOTAL_PATHS: &[(&str, &str)] = &[
    ("line_total", "LineTotalAmount"),
    ("charge_total", "ChargeTotalAmount"),
    ("allowance_total", "AllowanceTotalAmount"),
    ("net_total", "TaxBasisTotalAmount"),
    ("rounding", "RoundingAmount"),
    ("gross_total", "GrandTotalAmount"),
    ("prepaid", "TotalPrepaidAmount"),
    ("payable", "DuePayableAmount"),
];

const LINE_PATHS: &[(&str, &str)] = &[
    ("id", "AssociatedDocumentLineDocument/LineID"),
    ("note", "AssociatedDocumentLineDocument/IncludedNote/Content"),
    ("status", "AssociatedDocumentLineDocument/LineStatusReasonCode"),
    ("parent", "AssociatedDocumentLineDocument/ParentLineID"),
    ("standard_item_id", "SpecifiedTradeProduct/GlobalID"),
    ("standard_item_id_scheme", "SpecifiedTradeProduct/GlobalID/@schemeID"),
    ("item_id", "SpecifiedTradeProduct/SellerAssignedID"),
    ("buyer_item_id", "SpecifiedTradeProduct/BuyerAssignedID"),
    ("name", "SpecifiedTradeProduct/Name"),
    ("description", "SpecifiedTradeProduct/Description"),
    ("classification", "SpecifiedTradeProduct/DesignatedProductClassification/ClassCode"),
    ("classification_scheme", "SpecifiedTradeProduct/DesignatedProductClassification/ClassCode/@listID"),
    ("origin_country", "SpecifiedTradeProduct/OriginTradeCountry/ID"),
    ("order_line", "SpecifiedLineTradeAgreement/BuyerOrderReferencedDocument/LineID"),
    ("gross_price", "SpecifiedLineTradeAgreement/GrossPriceProductTradePrice/ChargeAmount"),
    (
        "price_discount",
        "SpecifiedLineTradeAgreement/GrossPriceProductTradePrice/AppliedTradeAllowanceCharge/ActualAmount",
    ),
    ("unit_price", "SpecifiedLineTradeAgreement/NetPriceProductTradePrice/ChargeAmount"),
    ("base_quantity", "SpecifiedLineTradeAgreement/NetPriceProductTradePrice/BasisQuantity"),
    ("base_quantity", "SpecifiedLineTradeAgreement/GrossPriceProductTradePrice/BasisQuantity"),
    ("base_unit", "SpecifiedLineTradeAgreement/NetPriceProductTradePrice/BasisQuantity/@unitCode"),
    ("quantity", "SpecifiedLineTradeDelivery/BilledQuantity"),
    ("unit", "SpecifiedLineTradeDelivery/BilledQuantity/@unitCode"),
    ("tax_category", "SpecifiedLineTradeSettlement/ApplicableTradeTax/CategoryCode"),
    ("tax_rate", "SpecifiedLineTradeSettlement/ApplicableTradeTax/RateApplicablePercent"),
    ("period_start", "SpecifiedLineTradeSettlement/BillingSpecifiedPeriod/StartDateTime/DateTimeString"),
    ("period_end", "SpecifiedLineTradeSettlement/BillingSpecifiedPeriod/EndDateTime/DateTimeString"),
    ("total", "SpecifiedLineTradeSettlement/SpecifiedTradeSettlementLineMonetarySummation/LineTotalAmount"),
    ("object_id", "SpecifiedLineTradeSettlement/AdditionalReferencedDocument/IssuerAssignedID"),
    ("accounting_reference", "SpecifiedLineTradeSettlement/ReceivableSpecifiedTradeAccountingAccount/ID"),
];

const ALLOWANCE_PATHS: &[(&str, &str)] = &[
    ("percent", "CalculationPercent"),
    ("basis", "BasisAmount"),
    ("amount", "ActualAmount"),
    ("reason_code", "ReasonCode"),
    ("reason", "Reason"),
    ("tax_category", "CategoryTradeTax/CategoryCode"),
    ("tax_rate", "CategoryTradeTax/RateApplicablePercent"),
];

/// Freight and the like, which the EXTENDED profile keeps apart from other charges.
const SERVICE_PATHS: &[(&str, &str)] = &[
    ("amount", "AppliedAmount"),
    ("reason", "Description"),
    ("tax_category", "AppliedTradeTax/CategoryCode"),
    ("tax_rate", "AppliedTradeTax/RateApplicablePercent"),
];

const TAX_PATHS: &[(&str, &str)] = &[
    ("amount", "CalculatedAmount"),
    ("basis", "BasisAmount"),
    ("category", "CategoryCode"),
    ("rate", "RateApplicablePercent"),
    ("exemption_reason", "ExemptionReason"),
    ("exemption_code", "ExemptionReasonCode"),
];

/// The record of a `CrossIndustryInvoice`.
pub(super) fn read(root: &Node, record: &mut Record) {
    let empty = Node::default();
    let at = |path: &str| root.first(path).unwrap_or(&empty);
    fill(
        record,
        at(CONTEXT),
        &[
            ("process", "BusinessProcessSpecifiedDocumentContextParameter/ID"),
            ("profile", "GuidelineSpecifiedDocumentContextParameter/ID"),
        ],
    );
    let document = at("ExchangedDocument");
    fill(record, document, DOCUMENT_PATHS);
    let note = |node: &&Node| row("notes", node, &[("text", "Content"), ("subject_code", "SubjectCode")]);
    add_rows(record, "notes", document.all("IncludedNote").iter().map(note));
    agreement(record, at(AGREEMENT));
    fill(record, at(DELIVERY), DELIVERY_PATHS);
    if let Some(party) = at(DELIVERY).first("ShipToTradeParty") {
        fill_party(record, party, "delivery");
    }
    settlement(record, at(SETTLEMENT));
    for line in root.all("SupplyChainTradeTransaction/IncludedSupplyChainTradeLineItem") {
        read_line(record, line);
    }
}

fn agreement(record: &mut Record, node: &Node) {
    fill(record, node, AGREEMENT_PATHS);
    for (element, role) in [
        ("SellerTradeParty", "seller"),
        ("BuyerTradeParty", "buyer"),
        ("SellerTaxRepresentativeTradeParty", "tax_representative"),
    ] {
        if let Some(party) = node.first(element) {
            fill_party(record, party, role);
        }
    }
    for document in node.all("AdditionalReferencedDocument") {
        let id = document.value("IssuerAssignedID").unwrap_or_default();
        match document.value("TypeCode").as_deref() {
            Some("50") => set(record, "tender_reference", &id, "AdditionalReferencedDocument"),
            Some("130") => set(record, "invoiced_object", &id, "AdditionalReferencedDocument"),
            _ => {
                let paths = [("id", "IssuerAssignedID"), ("uri", "URIID"), ("description", "Name")];
                add_rows(record, "documents", [row("documents", document, &paths)]);
            }
        }
    }
}

fn fill_party(record: &mut Record, party: &Node, role: &str) {
    for (name, path) in PARTY_PATHS {
        let name = format!("{role}_{name}");
        if record.fields.contains_key(&name) {
            continue;
        }
        if let Some(text) = party.value(path) {
            set(record, &name, &text, path);
        }
    }
}

fn settlement(record: &mut Record, node: &Node) {
    fill(record, node, SETTLEMENT_PATHS);
    let empty = Node::default();
    let totals = node.first("SpecifiedTradeSettlementHeaderMonetarySummation").unwrap_or(&empty);
    fill(record, totals, TOTAL_PATHS);
    let (currency, tax_currency) = (record.fields.text("currency"), record.fields.text("tax_currency"));
    for total in totals.all("TaxTotalAmount") {
        let of = total.attribute("currencyID");
        let is_second = of.is_some() && of == tax_currency && of != currency;
        let name = if is_second { "tax_total_in_tax_currency" } else { "tax_total" };
        if let (false, Some(text)) = (record.fields.contains_key(name), total.content()) {
            set(record, name, &text, "TaxTotalAmount");
        }
    }
    add_rows(record, "vat", node.all("ApplicableTradeTax").into_iter().map(|tax| row("vat", tax, TAX_PATHS)));
    for entry in node.all("SpecifiedTradeAllowanceCharge") {
        let table = if is_charge(entry) { "charges" } else { "allowances" };
        add_rows(record, table, [row(table, entry, ALLOWANCE_PATHS)]);
    }
    let services = node.all("SpecifiedLogisticsServiceCharge");
    add_rows(record, "charges", services.into_iter().map(|service| row("charges", service, SERVICE_PATHS)));
}

fn is_charge(entry: &Node) -> bool {
    entry.value("ChargeIndicator/Indicator").is_some_and(|text| matches!(text.as_str(), "true" | "1"))
}

fn read_line(record: &mut Record, node: &Node) {
    let line = row("lines", node, LINE_PATHS);
    // A line of text only, as ZUGFeRD 1 has them, is a note that stands between the lines.
    if !["total", "quantity", "unit_price"].iter().any(|name| line.contains_key(*name)) {
        let mut note = Row::new();
        if let Some(text) = line.text("note").or_else(|| line.text("name")) {
            set_cell(&mut note, "notes", "text", &text);
        }
        add_rows(record, "notes", [note]);
        return;
    }
    let id = line.text("id").unwrap_or_default();
    for entry in node.all("SpecifiedLineTradeSettlement/SpecifiedTradeAllowanceCharge") {
        let table = if is_charge(entry) { "line_charges" } else { "line_allowances" };
        let mut extra = row(table, entry, ALLOWANCE_PATHS);
        set_cell(&mut extra, table, "line", &id);
        add_rows(record, table, [extra]);
    }
    for entry in node.all("SpecifiedTradeProduct/ApplicableProductCharacteristic") {
        let mut attribute = row("line_attributes", entry, &[("name", "Description"), ("value", "Value")]);
        set_cell(&mut attribute, "line_attributes", "line", &id);
        add_rows(record, "line_attributes", [attribute]);
    }
    add_rows(record, "lines", [line]);
}
