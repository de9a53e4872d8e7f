//! ZUGFeRD 1.0: an older Cross Industry Invoice with other names for the same things. It is given the newer names
//! and read like one.

use super::tree::Node;

/// Old name, new name in the header, new name inside a line.
const NAMES: &[(&str, &str, &str)] = &[
    ("SpecifiedExchangedDocumentContext", "ExchangedDocumentContext", ""),
    ("HeaderExchangedDocument", "ExchangedDocument", ""),
    ("SpecifiedSupplyChainTradeTransaction", "SupplyChainTradeTransaction", ""),
    ("ApplicableSupplyChainTradeAgreement", "ApplicableHeaderTradeAgreement", ""),
    ("ApplicableSupplyChainTradeDelivery", "ApplicableHeaderTradeDelivery", ""),
    ("ApplicableSupplyChainTradeSettlement", "ApplicableHeaderTradeSettlement", ""),
    ("SpecifiedSupplyChainTradeAgreement", "", "SpecifiedLineTradeAgreement"),
    ("SpecifiedSupplyChainTradeDelivery", "", "SpecifiedLineTradeDelivery"),
    ("SpecifiedSupplyChainTradeSettlement", "", "SpecifiedLineTradeSettlement"),
    (
        "SpecifiedTradeSettlementMonetarySummation",
        "SpecifiedTradeSettlementHeaderMonetarySummation",
        "SpecifiedTradeSettlementLineMonetarySummation",
    ),
    ("ApplicablePercent", "RateApplicablePercent", "RateApplicablePercent"),
];

/// The same document with the names of the newer standard.
pub(super) fn renamed(mut root: Node) -> Node {
    rename(&mut root, false);
    root
}

fn rename(node: &mut Node, is_in_line: bool) {
    if let Some((_, in_header, in_line)) = NAMES.iter().find(|(old, ..)| *old == node.name) {
        let new = if is_in_line { in_line } else { in_header };
        if !new.is_empty() {
            node.name = (*new).to_owned();
        }
    }
    let is_in_line = is_in_line || node.name == "IncludedSupplyChainTradeLineItem";
    let is_reference = node.name.ends_with("ReferencedDocument");
    for child in &mut node.children {
        if is_reference && child.name == "ID" {
            child.name = "IssuerAssignedID".to_owned();
        }
        rename(child, is_in_line);
    }
}
