//! The names of what an invoice says, and the business terms of EN 16931 that they answer.
//!
//! One table, as data. Mappings fill these names, embedded XML is read into them, and the writers look them up
//! here, so a name means the same everywhere. A document of another kind may use names that are not listed;
//! our own XML and JSON carry those as they are, UBL and CII leave them out.

/// What a term's value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TermType {
    Text,
    /// A name out of a list: currency, country, unit, tax category.
    Code,
    /// A number or name that somebody assigned; spaces and case do not distinguish two of them.
    Identifier,
    /// Money, in the currency of the document.
    Amount,
    /// A quantity, a price or a percentage: not bound to the currency's decimals.
    Number,
    Date,
}

/// One name and the business term it answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Term {
    /// Our name, such as `net_total`.
    pub name: &'static str,
    /// Number in EN 16931, such as `BT-109`.
    pub number: &'static str,
    pub value: TermType,
    /// What it is called in a sentence to a person.
    pub label: &'static str,
}

/// A table and the terms of its columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TermTable {
    /// Our name, such as `lines`.
    pub name: &'static str,
    /// Group in EN 16931, such as `BG-25`.
    pub number: &'static str,
    pub columns: &'static [Term],
}

const fn term(name: &'static str, number: &'static str, value: TermType, label: &'static str) -> Term {
    Term { name, number, value, label }
}

use TermType::{Amount, Code, Date, Identifier, Number, Text};

/// Header terms, in the order in which they are written.
pub const HEADER: &[Term] = &[
    term("invoice_number", "BT-1", Identifier, "invoice number"),
    term("issue_date", "BT-2", Date, "date of issue"),
    term("type_code", "BT-3", Code, "type of invoice"),
    term("currency", "BT-5", Code, "currency"),
    term("tax_currency", "BT-6", Code, "currency of the tax"),
    term("tax_point_date", "BT-7", Date, "tax point"),
    term("tax_point_code", "BT-8", Code, "code of the tax point"),
    term("due_date", "BT-9", Date, "due date"),
    term("buyer_reference", "BT-10", Text, "buyer reference"),
    term("project_reference", "BT-11", Identifier, "project"),
    term("contract_reference", "BT-12", Identifier, "contract"),
    term("order_reference", "BT-13", Identifier, "order number"),
    term("sales_order_reference", "BT-14", Identifier, "sales order"),
    term("receiving_advice_reference", "BT-15", Identifier, "receiving advice"),
    term("despatch_advice_reference", "BT-16", Identifier, "despatch advice"),
    term("tender_reference", "BT-17", Identifier, "tender"),
    term("invoiced_object", "BT-18", Identifier, "invoiced object"),
    term("buyer_accounting_reference", "BT-19", Text, "buyer's accounting reference"),
    term("payment_terms", "BT-20", Text, "payment terms"),
    term("note", "BT-22", Text, "note"),
    term("process", "BT-23", Text, "business process"),
    term("profile", "BT-24", Identifier, "specification"),
    term("preceding_invoice_number", "BT-25", Identifier, "preceding invoice"),
    term("preceding_invoice_date", "BT-26", Date, "date of the preceding invoice"),
    term("seller_name", "BT-27", Text, "seller"),
    term("seller_trading_name", "BT-28", Text, "seller's trading name"),
    term("seller_id", "BT-29", Identifier, "seller's identifier"),
    term("seller_id_scheme", "BT-29-1", Code, "scheme of the seller's identifier"),
    term("seller_registration", "BT-30", Identifier, "seller's registration"),
    term("seller_registration_scheme", "BT-30-1", Code, "scheme of the seller's registration"),
    term("seller_vat_id", "BT-31", Identifier, "seller's VAT number"),
    term("seller_tax_number", "BT-32", Identifier, "seller's tax number"),
    term("seller_legal_form", "BT-33", Text, "seller's legal information"),
    term("seller_electronic_address", "BT-34", Identifier, "seller's electronic address"),
    term("seller_electronic_address_scheme", "BT-34-1", Code, "scheme of the seller's electronic address"),
    term("seller_street", "BT-35", Text, "seller's street"),
    term("seller_street_2", "BT-36", Text, "seller's second address line"),
    term("seller_street_3", "BT-162", Text, "seller's third address line"),
    term("seller_city", "BT-37", Text, "seller's city"),
    term("seller_postcode", "BT-38", Identifier, "seller's post code"),
    term("seller_region", "BT-39", Text, "seller's region"),
    term("seller_country", "BT-40", Code, "seller's country"),
    term("seller_contact", "BT-41", Text, "seller's contact"),
    term("seller_phone", "BT-42", Text, "seller's telephone"),
    term("seller_email", "BT-43", Identifier, "seller's e-mail address"),
    term("buyer_name", "BT-44", Text, "buyer"),
    term("buyer_trading_name", "BT-45", Text, "buyer's trading name"),
    term("buyer_id", "BT-46", Identifier, "buyer's identifier"),
    term("buyer_id_scheme", "BT-46-1", Code, "scheme of the buyer's identifier"),
    term("buyer_registration", "BT-47", Identifier, "buyer's registration"),
    term("buyer_registration_scheme", "BT-47-1", Code, "scheme of the buyer's registration"),
    term("buyer_vat_id", "BT-48", Identifier, "buyer's VAT number"),
    term("buyer_electronic_address", "BT-49", Identifier, "buyer's electronic address"),
    term("buyer_electronic_address_scheme", "BT-49-1", Code, "scheme of the buyer's electronic address"),
    term("buyer_street", "BT-50", Text, "buyer's street"),
    term("buyer_street_2", "BT-51", Text, "buyer's second address line"),
    term("buyer_street_3", "BT-163", Text, "buyer's third address line"),
    term("buyer_city", "BT-52", Text, "buyer's city"),
    term("buyer_postcode", "BT-53", Identifier, "buyer's post code"),
    term("buyer_region", "BT-54", Text, "buyer's region"),
    term("buyer_country", "BT-55", Code, "buyer's country"),
    term("buyer_contact", "BT-56", Text, "buyer's contact"),
    term("buyer_phone", "BT-57", Text, "buyer's telephone"),
    term("buyer_email", "BT-58", Identifier, "buyer's e-mail address"),
    term("payee_name", "BT-59", Text, "payee"),
    term("payee_id", "BT-60", Identifier, "payee's identifier"),
    term("payee_registration", "BT-61", Identifier, "payee's registration"),
    term("tax_representative_name", "BT-62", Text, "tax representative"),
    term("tax_representative_vat_id", "BT-63", Identifier, "tax representative's VAT number"),
    term("tax_representative_street", "BT-64", Text, "tax representative's street"),
    term("tax_representative_street_2", "BT-65", Text, "tax representative's second address line"),
    term("tax_representative_street_3", "BT-164", Text, "tax representative's third address line"),
    term("tax_representative_city", "BT-66", Text, "tax representative's city"),
    term("tax_representative_postcode", "BT-67", Identifier, "tax representative's post code"),
    term("tax_representative_region", "BT-68", Text, "tax representative's region"),
    term("tax_representative_country", "BT-69", Code, "tax representative's country"),
    term("delivery_name", "BT-70", Text, "recipient of the delivery"),
    term("delivery_location_id", "BT-71", Identifier, "place of delivery"),
    term("delivery_date", "BT-72", Date, "date of delivery"),
    term("period_start", "BT-73", Date, "start of the period"),
    term("period_end", "BT-74", Date, "end of the period"),
    term("delivery_street", "BT-75", Text, "street of delivery"),
    term("delivery_street_2", "BT-76", Text, "second address line of delivery"),
    term("delivery_street_3", "BT-165", Text, "third address line of delivery"),
    term("delivery_city", "BT-77", Text, "city of delivery"),
    term("delivery_postcode", "BT-78", Identifier, "post code of delivery"),
    term("delivery_region", "BT-79", Text, "region of delivery"),
    term("delivery_country", "BT-80", Code, "country of delivery"),
    term("payment_means_code", "BT-81", Code, "means of payment"),
    term("payment_means_text", "BT-82", Text, "means of payment in words"),
    term("payment_reference", "BT-83", Text, "payment reference"),
    term("iban", "BT-84", Identifier, "account number"),
    term("account_name", "BT-85", Text, "account holder"),
    term("bic", "BT-86", Identifier, "bank code"),
    term("card_number", "BT-87", Identifier, "card number"),
    term("card_holder", "BT-88", Text, "card holder"),
    term("mandate_reference", "BT-89", Identifier, "direct debit mandate"),
    term("creditor_id", "BT-90", Identifier, "creditor identifier"),
    term("debited_iban", "BT-91", Identifier, "debited account"),
    term("line_total", "BT-106", Amount, "sum of the lines"),
    term("allowance_total", "BT-107", Amount, "sum of the allowances"),
    term("charge_total", "BT-108", Amount, "sum of the charges"),
    term("net_total", "BT-109", Amount, "net total"),
    term("tax_total", "BT-110", Amount, "tax total"),
    term("tax_total_in_tax_currency", "BT-111", Amount, "tax total in the tax currency"),
    term("gross_total", "BT-112", Amount, "gross total"),
    term("prepaid", "BT-113", Amount, "amount paid already"),
    term("rounding", "BT-114", Amount, "rounding"),
    term("payable", "BT-115", Amount, "amount to pay"),
];

/// Tables, in the order in which they are written.
pub const TABLES: &[TermTable] = &[
    TermTable {
        name: "notes",
        number: "BG-1",
        columns: &[
            term("text", "BT-22", Text, "note"),
            term("subject_code", "BT-21", Code, "subject of the note"),
        ],
    },
    TermTable {
        name: "lines",
        number: "BG-25",
        columns: &[
            term("id", "BT-126", Identifier, "line number"),
            term("name", "BT-153", Text, "item"),
            term("note", "BT-127", Text, "note"),
            term("object_id", "BT-128", Identifier, "invoiced object"),
            term("quantity", "BT-129", Number, "quantity"),
            term("unit", "BT-130", Code, "unit"),
            term("total", "BT-131", Amount, "line total"),
            term("order_line", "BT-132", Identifier, "order line"),
            term("accounting_reference", "BT-133", Text, "accounting reference"),
            term("period_start", "BT-134", Date, "start of the period"),
            term("period_end", "BT-135", Date, "end of the period"),
            term("unit_price", "BT-146", Number, "unit price"),
            term("price_discount", "BT-147", Number, "discount on the price"),
            term("gross_price", "BT-148", Number, "gross price"),
            term("base_quantity", "BT-149", Number, "quantity that the price is for"),
            term("base_unit", "BT-150", Code, "unit that the price is for"),
            term("tax_category", "BT-151", Code, "tax category"),
            term("tax_rate", "BT-152", Number, "tax rate"),
            term("description", "BT-154", Text, "description"),
            term("item_id", "BT-155", Identifier, "seller's item number"),
            term("buyer_item_id", "BT-156", Identifier, "buyer's item number"),
            term("standard_item_id", "BT-157", Identifier, "standard item number"),
            term("standard_item_id_scheme", "BT-157-1", Code, "scheme of the standard item number"),
            term("classification", "BT-158", Code, "classification"),
            term("classification_scheme", "BT-158-1", Code, "scheme of the classification"),
            term("origin_country", "BT-159", Code, "country of origin"),
            // Lines of lines: not in EN 16931, but the EXTENDED profile of Factur-X has them.
            term("status", "BT-X-8", Code, "kind of line"),
            term("parent", "BT-X-304", Identifier, "line that this one is part of"),
        ],
    },
    TermTable { name: "line_allowances", number: "BG-27", columns: LINE_ALLOWANCE },
    TermTable { name: "line_charges", number: "BG-28", columns: LINE_CHARGE },
    TermTable {
        name: "line_attributes",
        number: "BG-32",
        columns: &[
            term("line", "BT-126", Identifier, "line number"),
            term("name", "BT-160", Text, "attribute"),
            term("value", "BT-161", Text, "value of the attribute"),
        ],
    },
    TermTable {
        name: "allowances",
        number: "BG-20",
        columns: &[
            term("amount", "BT-92", Amount, "allowance"),
            term("basis", "BT-93", Amount, "basis of the allowance"),
            term("percent", "BT-94", Number, "percentage of the allowance"),
            term("tax_category", "BT-95", Code, "tax category of the allowance"),
            term("tax_rate", "BT-96", Number, "tax rate of the allowance"),
            term("reason", "BT-97", Text, "reason of the allowance"),
            term("reason_code", "BT-98", Code, "code of the allowance"),
        ],
    },
    TermTable {
        name: "charges",
        number: "BG-21",
        columns: &[
            term("amount", "BT-99", Amount, "charge"),
            term("basis", "BT-100", Amount, "basis of the charge"),
            term("percent", "BT-101", Number, "percentage of the charge"),
            term("tax_category", "BT-102", Code, "tax category of the charge"),
            term("tax_rate", "BT-103", Number, "tax rate of the charge"),
            term("reason", "BT-104", Text, "reason of the charge"),
            term("reason_code", "BT-105", Code, "code of the charge"),
        ],
    },
    TermTable {
        name: "vat",
        number: "BG-23",
        columns: &[
            term("basis", "BT-116", Amount, "taxable amount"),
            term("amount", "BT-117", Amount, "tax amount"),
            term("category", "BT-118", Code, "tax category"),
            term("rate", "BT-119", Number, "tax rate"),
            term("exemption_reason", "BT-120", Text, "reason of the exemption"),
            term("exemption_code", "BT-121", Code, "code of the exemption"),
        ],
    },
    TermTable {
        name: "documents",
        number: "BG-24",
        columns: &[
            term("id", "BT-122", Identifier, "supporting document"),
            term("description", "BT-123", Text, "description of the supporting document"),
            term("uri", "BT-124", Text, "place of the supporting document"),
        ],
    },
];

const LINE_ALLOWANCE: &[Term] = &[
    term("line", "BT-126", Identifier, "line number"),
    term("amount", "BT-136", Amount, "allowance"),
    term("basis", "BT-137", Amount, "basis of the allowance"),
    term("percent", "BT-138", Number, "percentage of the allowance"),
    term("reason", "BT-139", Text, "reason of the allowance"),
    term("reason_code", "BT-140", Code, "code of the allowance"),
];

const LINE_CHARGE: &[Term] = &[
    term("line", "BT-126", Identifier, "line number"),
    term("amount", "BT-141", Amount, "charge"),
    term("basis", "BT-142", Amount, "basis of the charge"),
    term("percent", "BT-143", Number, "percentage of the charge"),
    term("reason", "BT-144", Text, "reason of the charge"),
    term("reason_code", "BT-145", Code, "code of the charge"),
];

/// Whether some name answers this business term or group.
#[must_use]
pub fn is_known(number: &str) -> bool {
    let tables = TABLES.iter().flat_map(|t| t.columns.iter().map(|c| c.number).chain([t.number]));
    HEADER.iter().map(|t| t.number).chain(tables).any(|known| known == number)
}

/// The header term with this name.
#[must_use]
pub fn header(name: &str) -> Option<&'static Term> {
    HEADER.iter().find(|term| term.name == name)
}

/// The table with this name.
#[must_use]
pub fn table(name: &str) -> Option<&'static TermTable> {
    TABLES.iter().find(|table| table.name == name)
}

/// The column of a table.
#[must_use]
pub fn column(table_name: &str, name: &str) -> Option<&'static Term> {
    table(table_name)?.columns.iter().find(|term| term.name == name)
}

/// The header name that answers a business term: `invoice_number` for `BT-1`.
#[must_use]
pub fn name_of(number: &str) -> Option<&'static str> {
    HEADER.iter().find(|term| term.number == number).map(|term| term.name)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_name_and_every_number_stands_for_one_thing() {
        let names: BTreeSet<_> = HEADER.iter().map(|term| term.name).collect();
        let numbers: BTreeSet<_> = HEADER.iter().map(|term| term.number).collect();
        assert_eq!(names.len(), HEADER.len());
        assert_eq!(numbers.len(), HEADER.len());
        for table in TABLES {
            let names: BTreeSet<_> = table.columns.iter().map(|term| term.name).collect();
            assert_eq!(names.len(), table.columns.len(), "columns of {}", table.name);
        }
    }

    #[test]
    fn names_are_found_by_name_and_by_number() {
        assert_eq!(header("gross_total").map(|term| term.number), Some("BT-112"));
        assert_eq!(column("lines", "item_id").map(|term| term.number), Some("BT-155"));
        assert_eq!(name_of("BT-84"), Some("iban"));
        assert_eq!(name_of("BT-9999"), None);
    }
}
