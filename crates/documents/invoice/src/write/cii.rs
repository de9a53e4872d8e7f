//! UN/CEFACT Cross Industry Invoice D16B in the EN 16931 profile of Factur-X. Elements come in the order of the
//! schema; a changed order makes the document invalid.

use jiff::civil::Date;
use rust_decimal::Decimal;

use super::amount::{money, plain_number};
use super::codes;
use super::complete::{Invoice, NO_DATE};
use super::element::{Attributed, Element, demanded, demanded_group, group, leaf};
use crate::facts::Ask;
use crate::record::Row;

const RSM: &str = "urn:un:unece:uncefact:data:standard:CrossIndustryInvoice:100";
const RAM: &str = "urn:un:unece:uncefact:data:standard:ReusableAggregateBusinessInformationEntity:100";
const UDT: &str = "urn:un:unece:uncefact:data:standard:UnqualifiedDataType:100";
const QDT: &str = "urn:un:unece:uncefact:data:standard:QualifiedDataType:100";
const EN16931: &str = "urn:cen.eu:en16931:2017";

/// The document as CII.
pub(super) fn document(invoice: &Invoice) -> Vec<u8> {
    let header = &invoice.header;
    let context = demanded_group(
        "rsm:ExchangedDocumentContext",
        [
            group(
                "ram:BusinessProcessSpecifiedDocumentContextParameter",
                [leaf("ram:ID", header.text("process"))],
            ),
            group("ram:GuidelineSpecifiedDocumentContextParameter", [leaf("ram:ID", Some(EN16931))]),
        ],
    );
    let mut transaction: Vec<Option<Element>> =
        invoice.lines.iter().map(|row| Some(line(invoice, row))).collect();
    transaction.extend([Some(agreement(invoice)), Some(delivery(invoice)), Some(settlement(invoice))]);
    demanded_group(
        "rsm:CrossIndustryInvoice",
        [
            Some(context),
            Some(exchanged(invoice)),
            Some(demanded_group("rsm:SupplyChainTradeTransaction", transaction)),
        ],
    )
    .with("xmlns:rsm", Some(RSM))
    .with("xmlns:ram", Some(RAM))
    .with("xmlns:udt", Some(UDT))
    .with("xmlns:qdt", Some(QDT))
    .document()
}

fn exchanged(invoice: &Invoice) -> Element {
    let header = &invoice.header;
    let mut children = vec![
        demanded("ram:ID", header.text("invoice_number")),
        demanded("ram:TypeCode", header.text("type_code")),
        day("ram:IssueDateTime", Some(header.date("issue_date").unwrap_or(NO_DATE))),
        group("ram:IncludedNote", [leaf("ram:Content", header.text("note"))]),
    ];
    children.extend(invoice.notes.iter().map(|note| {
        let content = leaf("ram:Content", note.text("text"))?;
        group("ram:IncludedNote", [Some(content), leaf("ram:SubjectCode", note.text("subject_code"))])
    }));
    demanded_group("rsm:ExchangedDocument", children)
}

/// A day in the form that CII wants: `YYYYMMDD`, which it calls 102.
fn day(name: &'static str, date: Option<Date>) -> Option<Element> {
    let text = date.map(compact);
    group(name, [leaf("udt:DateTimeString", text).with("format", Some("102"))])
}

fn compact(date: Date) -> String {
    format!("{:04}{:02}{:02}", date.year(), date.month(), date.day())
}

fn line(invoice: &Invoice, row: &Row) -> Element {
    demanded_group(
        "ram:IncludedSupplyChainTradeLineItem",
        [
            Some(demanded_group(
                "ram:AssociatedDocumentLineDocument",
                [
                    demanded("ram:LineID", row.text("id")),
                    group("ram:IncludedNote", [leaf("ram:Content", row.text("note"))]),
                ],
            )),
            Some(product(invoice, row)),
            Some(prices(row)),
            Some(demanded_group(
                "ram:SpecifiedLineTradeDelivery",
                [demanded("ram:BilledQuantity", row.number("quantity").map(plain_number))
                    .with("unitCode", row.text("unit"))],
            )),
            Some(line_settlement(invoice, row)),
        ],
    )
}

fn product(invoice: &Invoice, row: &Row) -> Element {
    let classification =
        leaf("ram:ClassCode", row.text("classification")).with("listID", row.text("classification_scheme"));
    let mut children = vec![
        leaf("ram:GlobalID", row.text("standard_item_id"))
            .with("schemeID", row.text("standard_item_id_scheme")),
        leaf("ram:SellerAssignedID", row.text("item_id")),
        leaf("ram:BuyerAssignedID", row.text("buyer_item_id")),
        demanded("ram:Name", row.text("name")),
        leaf("ram:Description", row.text("description")),
    ];
    children.extend(invoice.attributes_of(row).iter().map(|attribute| {
        let name = leaf("ram:Description", attribute.text("name"))?;
        group(
            "ram:ApplicableProductCharacteristic",
            [Some(name), demanded("ram:Value", attribute.text("value"))],
        )
    }));
    children.extend([
        group("ram:DesignatedProductClassification", [classification]),
        group("ram:OriginTradeCountry", [leaf("ram:ID", row.text("origin_country"))]),
    ]);
    demanded_group("ram:SpecifiedTradeProduct", children)
}

fn prices(row: &Row) -> Element {
    let base = || {
        let base = row.number("base_quantity").filter(|base| *base > Decimal::ZERO);
        leaf("ram:BasisQuantity", base.map(plain_number))
            .with("unitCode", row.text("base_unit").or_else(|| row.text("unit")))
    };
    let discount = row.number("price_discount").and_then(|discount| {
        group(
            "ram:AppliedTradeAllowanceCharge",
            [indicator(false), leaf("ram:ActualAmount", Some(plain_number(discount)))],
        )
    });
    let gross = row.number("gross_price").and_then(|gross| {
        group(
            "ram:GrossPriceProductTradePrice",
            [leaf("ram:ChargeAmount", Some(plain_number(gross))), base(), discount],
        )
    });
    demanded_group(
        "ram:SpecifiedLineTradeAgreement",
        [
            group("ram:BuyerOrderReferencedDocument", [leaf("ram:LineID", row.text("order_line"))]),
            gross,
            group(
                "ram:NetPriceProductTradePrice",
                [
                    demanded(
                        "ram:ChargeAmount",
                        Some(plain_number(row.number("unit_price").unwrap_or_default())),
                    ),
                    base(),
                ],
            ),
        ],
    )
}

fn indicator(is_charge: bool) -> Option<Element> {
    group("ram:ChargeIndicator", [leaf("udt:Indicator", Some(is_charge.to_string()))])
}

fn line_settlement(invoice: &Invoice, row: &Row) -> Element {
    let mut children = vec![
        Some(tax("ram:ApplicableTradeTax", row, ["tax_category", "tax_rate"])),
        period("ram:BillingSpecifiedPeriod", row),
    ];
    children.extend(invoice.allowances_of(row).iter().map(|row| allowance(invoice, row, false, None)));
    children.extend(invoice.charges_of(row).iter().map(|row| allowance(invoice, row, true, None)));
    let total = money(row.number("total").unwrap_or_default(), &invoice.currency());
    children.extend([
        group(
            "ram:SpecifiedTradeSettlementLineMonetarySummation",
            [leaf("ram:LineTotalAmount", Some(total))],
        ),
        row.text("object_id").and_then(|id| {
            group(
                "ram:AdditionalReferencedDocument",
                [leaf("ram:IssuerAssignedID", Some(id)), leaf("ram:TypeCode", Some("130"))],
            )
        }),
        group(
            "ram:ReceivableSpecifiedTradeAccountingAccount",
            [leaf("ram:ID", row.text("accounting_reference"))],
        ),
    ]);
    demanded_group("ram:SpecifiedLineTradeSettlement", children)
}

fn tax(name: &'static str, row: &Row, [category, rate]: [&str; 2]) -> Element {
    demanded_group(
        name,
        [
            leaf("ram:TypeCode", Some("VAT")),
            demanded("ram:CategoryCode", row.text(category)),
            leaf("ram:RateApplicablePercent", row.number(rate).map(plain_number)),
        ],
    )
}

fn period(name: &'static str, facts: &Row) -> Option<Element> {
    group(
        name,
        [
            day("ram:StartDateTime", facts.date("period_start")),
            day("ram:EndDateTime", facts.date("period_end")),
        ],
    )
}

fn allowance(invoice: &Invoice, row: &Row, is_charge: bool, tax: Option<Element>) -> Option<Element> {
    let currency = invoice.currency();
    group(
        "ram:SpecifiedTradeAllowanceCharge",
        [
            indicator(is_charge),
            leaf("ram:CalculationPercent", row.number("percent").map(plain_number)),
            leaf("ram:BasisAmount", row.number("basis").map(|basis| money(basis, &currency))),
            leaf("ram:ActualAmount", Some(money(row.number("amount").unwrap_or_default(), &currency))),
            leaf("ram:ReasonCode", row.text("reason_code")),
            leaf("ram:Reason", row.text("reason")),
            tax,
        ],
    )
}

fn agreement(invoice: &Invoice) -> Element {
    let header = &invoice.header;
    let named =
        |element: &'static str, name: &str| group(element, [leaf("ram:IssuerAssignedID", header.text(name))]);
    let typed = |name: &str, code: &str| {
        let id = leaf("ram:IssuerAssignedID", header.text(name))?;
        group("ram:AdditionalReferencedDocument", [Some(id), leaf("ram:TypeCode", Some(code))])
    };
    let representative = group(
        "ram:SellerTaxRepresentativeTradeParty",
        [
            leaf("ram:Name", header.text("tax_representative_name")),
            address(header, "tax_representative"),
            registration(header.text("tax_representative_vat_id"), "VA"),
        ],
    );
    let mut children = vec![
        leaf("ram:BuyerReference", header.text("buyer_reference")),
        Some(party("ram:SellerTradeParty", header, "seller")),
        Some(party("ram:BuyerTradeParty", header, "buyer")),
        representative,
        named("ram:SellerOrderReferencedDocument", "sales_order_reference"),
        named("ram:BuyerOrderReferencedDocument", "order_reference"),
        named("ram:ContractReferencedDocument", "contract_reference"),
    ];
    children.extend(invoice.documents.iter().map(|row| {
        let id = leaf("ram:IssuerAssignedID", row.text("id"))?;
        group(
            "ram:AdditionalReferencedDocument",
            [
                Some(id),
                leaf("ram:URIID", row.text("uri")),
                leaf("ram:TypeCode", Some("916")),
                leaf("ram:Name", row.text("description")),
            ],
        )
    }));
    let project = header.text("project_reference").and_then(|id| {
        // The schema demands a name, and the standard's mapping says which.
        let name = leaf("ram:Name", Some("Project reference"));
        group("ram:SpecifiedProcuringProject", [leaf("ram:ID", Some(id)), name])
    });
    children.extend([typed("tender_reference", "50"), typed("invoiced_object", "130"), project]);
    demanded_group("ram:ApplicableHeaderTradeAgreement", children)
}

fn party(name: &'static str, header: &Row, role: &str) -> Element {
    let of = |name: &str| header.text(&format!("{role}_{name}"));
    let scheme = of("id_scheme");
    // An identifier with a scheme is a global one in CII.
    let id = if scheme.is_some() {
        leaf("ram:GlobalID", of("id")).with("schemeID", scheme)
    } else {
        leaf("ram:ID", of("id"))
    };
    let known = of("electronic_address").as_deref().and_then(codes::address_scheme).map(str::to_owned);
    let electronic = leaf("ram:URIID", of("electronic_address"))
        .with("schemeID", of("electronic_address_scheme").or(known));
    demanded_group(
        name,
        [
            id,
            leaf("ram:Name", of("name")),
            leaf("ram:Description", of("legal_form")),
            group(
                "ram:SpecifiedLegalOrganization",
                [
                    leaf("ram:ID", of("registration")).with("schemeID", of("registration_scheme")),
                    leaf("ram:TradingBusinessName", of("trading_name")),
                ],
            ),
            group(
                "ram:DefinedTradeContact",
                [
                    leaf("ram:PersonName", of("contact")),
                    group("ram:TelephoneUniversalCommunication", [leaf("ram:CompleteNumber", of("phone"))]),
                    group("ram:EmailURIUniversalCommunication", [leaf("ram:URIID", of("email"))]),
                ],
            ),
            address(header, role),
            group("ram:URIUniversalCommunication", [electronic]),
            registration(of("vat_id"), "VA"),
            registration(of("tax_number"), "FC"),
        ],
    )
}

fn address(header: &Row, role: &str) -> Option<Element> {
    let of = |name: &str| header.text(&format!("{role}_{name}"));
    let parts = ["postcode", "street", "street_2", "street_3", "city", "country", "region"];
    if !parts.iter().any(|part| of(part).is_some()) {
        return None;
    }
    group(
        "ram:PostalTradeAddress",
        [
            leaf("ram:PostcodeCode", of("postcode")),
            leaf("ram:LineOne", of("street")),
            leaf("ram:LineTwo", of("street_2")),
            leaf("ram:LineThree", of("street_3")),
            leaf("ram:CityName", of("city")),
            demanded("ram:CountryID", of("country")),
            leaf("ram:CountrySubDivisionName", of("region")),
        ],
    )
}

fn registration(id: Option<String>, scheme: &str) -> Option<Element> {
    group("ram:SpecifiedTaxRegistration", [leaf("ram:ID", id).with("schemeID", Some(scheme))])
}

fn delivery(invoice: &Invoice) -> Element {
    let header = &invoice.header;
    let named =
        |element: &'static str, name: &str| group(element, [leaf("ram:IssuerAssignedID", header.text(name))]);
    demanded_group(
        "ram:ApplicableHeaderTradeDelivery",
        [
            group(
                "ram:ShipToTradeParty",
                [
                    leaf("ram:ID", header.text("delivery_location_id")),
                    leaf("ram:Name", header.text("delivery_name")),
                    address(header, "delivery"),
                ],
            ),
            group(
                "ram:ActualDeliverySupplyChainEvent",
                [day("ram:OccurrenceDateTime", header.date("delivery_date"))],
            ),
            named("ram:DespatchAdviceReferencedDocument", "despatch_advice_reference"),
            named("ram:ReceivingAdviceReferencedDocument", "receiving_advice_reference"),
        ],
    )
}

fn settlement(invoice: &Invoice) -> Element {
    let header = &invoice.header;
    let mut children = vec![
        leaf("ram:CreditorReferenceID", header.text("creditor_id")),
        leaf("ram:PaymentReference", header.text("payment_reference")),
        leaf("ram:TaxCurrencyCode", header.text("tax_currency")),
        demanded("ram:InvoiceCurrencyCode", Some(invoice.currency())),
        group(
            "ram:PayeeTradeParty",
            [
                leaf("ram:ID", header.text("payee_id")),
                leaf("ram:Name", header.text("payee_name")),
                group("ram:SpecifiedLegalOrganization", [leaf("ram:ID", header.text("payee_registration"))]),
            ],
        ),
        payment_means(invoice),
    ];
    children.extend(invoice.vat.iter().map(|row| breakdown(invoice, row)));
    children.push(period("ram:BillingSpecifiedPeriod", header));
    let category = |row: &Row| Some(tax("ram:CategoryTradeTax", row, ["tax_category", "tax_rate"]));
    children.extend(invoice.allowances.iter().map(|row| allowance(invoice, row, false, category(row))));
    children.extend(invoice.charges.iter().map(|row| allowance(invoice, row, true, category(row))));
    children.extend([
        group(
            "ram:SpecifiedTradePaymentTerms",
            [
                leaf("ram:Description", header.text("payment_terms")),
                day("ram:DueDateDateTime", header.date("due_date")),
                leaf("ram:DirectDebitMandateID", header.text("mandate_reference")),
            ],
        ),
        Some(totals(invoice)),
        preceding(invoice),
        group(
            "ram:ReceivableSpecifiedTradeAccountingAccount",
            [leaf("ram:ID", header.text("buyer_accounting_reference"))],
        ),
    ]);
    demanded_group("ram:ApplicableHeaderTradeSettlement", children)
}

fn payment_means(invoice: &Invoice) -> Option<Element> {
    let header = &invoice.header;
    let code = leaf("ram:TypeCode", header.text("payment_means_code"))?;
    let card = header.text("card_number").and_then(|number| {
        group(
            "ram:ApplicableTradeSettlementFinancialCard",
            [leaf("ram:ID", Some(number)), leaf("ram:CardholderName", header.text("card_holder"))],
        )
    });
    // An account number that is no IBAN has an element of its own.
    let account = header.text("iban").map(|account| {
        let is_iban = crate::rules::is_iban_shaped(&account);
        (if is_iban { "ram:IBANID" } else { "ram:ProprietaryID" }, account)
    });
    let name = leaf("ram:AccountName", header.text("account_name"));
    let account = match account {
        Some(("ram:IBANID", iban)) => vec![leaf("ram:IBANID", Some(iban)), name],
        Some((_, number)) => vec![name, leaf("ram:ProprietaryID", Some(number))],
        None => vec![name],
    };
    group(
        "ram:SpecifiedTradeSettlementPaymentMeans",
        [
            Some(code),
            leaf("ram:Information", header.text("payment_means_text")),
            card,
            group("ram:PayerPartyDebtorFinancialAccount", [leaf("ram:IBANID", header.text("debited_iban"))]),
            group("ram:PayeePartyCreditorFinancialAccount", account),
            group("ram:PayeeSpecifiedCreditorFinancialInstitution", [leaf("ram:BICID", header.text("bic"))]),
        ],
    )
}

fn breakdown(invoice: &Invoice, row: &Row) -> Option<Element> {
    let currency = invoice.currency();
    let of = |name: &str| Some(money(row.number(name).unwrap_or_default(), &currency));
    let date = invoice.header.date("tax_point_date").map(compact);
    group(
        "ram:ApplicableTradeTax",
        [
            leaf("ram:CalculatedAmount", of("amount")),
            leaf("ram:TypeCode", Some("VAT")),
            leaf("ram:ExemptionReason", row.text("exemption_reason")),
            leaf("ram:BasisAmount", of("basis")),
            demanded("ram:CategoryCode", row.text("category")),
            leaf("ram:ExemptionReasonCode", row.text("exemption_code")),
            group("ram:TaxPointDate", [leaf("udt:DateString", date).with("format", Some("102"))]),
            leaf("ram:DueDateTypeCode", invoice.header.text("tax_point_code")),
            leaf("ram:RateApplicablePercent", row.number("rate").map(plain_number)),
        ],
    )
}

fn totals(invoice: &Invoice) -> Element {
    let header = &invoice.header;
    let currency = invoice.currency();
    let of = |element: &'static str, name: &str| {
        leaf(element, header.number(name).map(|number| money(number, &currency)))
    };
    let demanded_of = |element: &'static str, name: &str| {
        demanded(element, Some(money(header.number(name).unwrap_or_default(), &currency)))
    };
    let second = header.text("tax_currency").zip(header.number("tax_total_in_tax_currency"));
    let second = second.and_then(|(currency, tax)| {
        leaf("ram:TaxTotalAmount", Some(money(tax, &currency))).with("currencyID", Some(currency))
    });
    demanded_group(
        "ram:SpecifiedTradeSettlementHeaderMonetarySummation",
        [
            demanded_of("ram:LineTotalAmount", "line_total"),
            of("ram:ChargeTotalAmount", "charge_total"),
            of("ram:AllowanceTotalAmount", "allowance_total"),
            demanded_of("ram:TaxBasisTotalAmount", "net_total"),
            demanded_of("ram:TaxTotalAmount", "tax_total").with("currencyID", Some(currency.clone())),
            second,
            of("ram:RoundingAmount", "rounding"),
            demanded_of("ram:GrandTotalAmount", "gross_total"),
            of("ram:TotalPrepaidAmount", "prepaid"),
            demanded_of("ram:DuePayableAmount", "payable"),
        ],
    )
}

fn preceding(invoice: &Invoice) -> Option<Element> {
    let id = leaf("ram:IssuerAssignedID", invoice.header.text("preceding_invoice_number"))?;
    let date = invoice.header.date("preceding_invoice_date").map(compact);
    let date = leaf("qdt:DateTimeString", date).with("format", Some("102"));
    group("ram:InvoiceReferencedDocument", [Some(id), group("ram:FormattedIssueDateTime", [date])])
}
