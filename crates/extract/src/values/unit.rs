//! Units of measure: the words on the page and the UN/ECE codes that stand for them.

use super::Reading;
use crate::record::Typed;

/// Words in lower case without a final point, and their codes.
const UNITS: &[(&str, &str)] = &[
    ("stk", "H87"),
    ("stück", "H87"),
    ("st", "H87"),
    ("pcs", "H87"),
    ("pc", "H87"),
    ("piece", "H87"),
    ("pieces", "H87"),
    ("pièce", "H87"),
    ("pce", "H87"),
    ("buah", "H87"),
    ("bh", "H87"),
    ("unit", "C62"),
    ("units", "C62"),
    ("unit(s)", "C62"),
    ("unité", "C62"),
    ("stuks", "H87"),
    ("std", "HUR"),
    ("stunde", "HUR"),
    ("stunden", "HUR"),
    ("h", "HUR"),
    ("hour", "HUR"),
    ("hours", "HUR"),
    ("heure", "HUR"),
    ("heures", "HUR"),
    ("jam", "HUR"),
    ("tag", "DAY"),
    ("tage", "DAY"),
    ("day", "DAY"),
    ("days", "DAY"),
    ("jour", "DAY"),
    ("jours", "DAY"),
    ("hari", "DAY"),
    ("monat", "MON"),
    ("monate", "MON"),
    ("month", "MON"),
    ("months", "MON"),
    ("mois", "MON"),
    ("bln", "MON"),
    ("bulan", "MON"),
    ("kg", "KGM"),
    ("g", "GRM"),
    ("t", "TNE"),
    ("ton", "TNE"),
    ("l", "LTR"),
    ("ltr", "LTR"),
    ("liter", "LTR"),
    ("liter(s)", "LTR"),
    ("litre", "LTR"),
    ("litres", "LTR"),
    ("m", "MTR"),
    ("meter", "MTR"),
    ("mètre", "MTR"),
    ("m2", "MTK"),
    ("m²", "MTK"),
    ("qm", "MTK"),
    ("m3", "MTQ"),
    ("m³", "MTQ"),
    ("km", "KMT"),
    ("kwh", "KWH"),
    ("rim", "RM"),
    ("lusin", "DZN"),
    ("dozen", "DZN"),
    ("set", "SET"),
    ("paket", "XPK"),
    ("pack", "XPK"),
    ("karton", "XCT"),
    ("dus", "XCT"),
    ("box", "XBX"),
    ("kiste", "XCR"),
    ("rol", "XRO"),
    ("roll", "XRO"),
];

/// The code for a printed unit; a word we do not know is passed on as it is.
pub fn code(word: &str) -> &str {
    let lower = word.to_lowercase();
    let bare = lower.trim_end_matches('.');
    UNITS.iter().find(|(name, _)| *name == bare).map_or(word, |(_, code)| code)
}

/// A text read as a unit.
pub(super) fn reading(text: Reading) -> Reading {
    match text.typed {
        Typed::Text(word) => Reading { typed: Typed::Code(code(&word).to_owned()), ..text },
        Typed::Code(_) | Typed::Number(_) | Typed::Date(_) => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_several_languages_become_one_code() {
        assert_eq!(code("Stk."), "H87");
        assert_eq!(code("pcs"), "H87");
        assert_eq!(code("Hari"), "DAY");
        assert_eq!(code("XBC"), "XBC");
    }
}
