//! Words on a page and the codes that the standards want for them: units, countries, decimals of a currency.
//! Tables, as data; nothing here guesses.

/// UN/ECE Recommendation 20 (and 21, with `X` before it) codes and the words that pages use for them, in
/// lower case and without full stops.
const UNITS: &[(&str, &[&str])] = &[
    (
        "C62",
        &[
            "unit",
            "units",
            "einheit",
            "einheiten",
            "ea",
            "each",
            "unité",
            "unités",
            "unite",
            "unidad",
            "satuan",
        ],
    ),
    (
        "H87",
        &[
            "pc", "pcs", "pce", "piece", "pieces", "stk", "stck", "st", "stück", "stueck", "stücke", "pièce",
            "pièces", "pza", "pieza", "peça", "stuk", "stuks", "szt", "ks", "buah", "bh", "biji", "pcs/buah",
            "lembar", "lbr", "batang", "btg", "ekor", "keping", "butir",
        ],
    ),
    (
        "HUR",
        &[
            "h", "hr", "hrs", "hour", "hours", "std", "stunde", "stunden", "heure", "heures", "jam", "uur",
            "hora",
        ],
    ),
    ("MIN", &["min", "mins", "minute", "minutes", "minuten", "menit"]),
    ("SEC", &["s", "sec", "second", "seconds", "sekunde", "sekunden", "detik"]),
    (
        "DAY",
        &[
            "d", "day", "days", "tag", "tage", "tagen", "jour", "jours", "hari", "dag", "dagen", "pt",
            "manntag",
        ],
    ),
    ("WEE", &["week", "weeks", "woche", "wochen", "semaine", "semaines", "minggu"]),
    ("MON", &["month", "months", "monat", "monate", "mon", "mois", "bulan", "bln", "maand", "maanden"]),
    ("ANN", &["year", "years", "jahr", "jahre", "an", "ans", "année", "années", "tahun", "thn", "jaar"]),
    ("KGM", &["kg", "kgs", "kilo", "kilogram", "kilograms", "kilogramm", "kilogramme", "kilogrammes"]),
    ("GRM", &["g", "gr", "gram", "grams", "gramm", "gramme", "grammes"]),
    ("TNE", &["t", "to", "ton", "tons", "tonne", "tonnes", "tonnen"]),
    ("MTR", &["m", "mtr", "meter", "meters", "metre", "metres", "mètre", "mètres", "lfm", "lfdm"]),
    ("CMT", &["cm", "centimeter", "zentimeter", "centimètre"]),
    ("MMT", &["mm", "millimeter", "millimètre"]),
    ("KMT", &["km", "kilometer", "kilometers", "kilometre", "kilomètre", "kilomètres"]),
    ("MTK", &["m2", "m²", "qm", "sqm", "quadratmeter", "mètre carré", "meter persegi"]),
    ("MTQ", &["m3", "m³", "cbm", "kubikmeter", "mètre cube", "meter kubik"]),
    ("LTR", &["l", "lt", "ltr", "liter", "litre", "litres", "liters"]),
    ("MLT", &["ml", "milliliter", "millilitre"]),
    ("KWH", &["kwh", "kilowattstunde", "kilowattstunden"]),
    ("MWH", &["mwh"]),
    ("SET", &["set", "sets", "satz", "garnitur", "jeu", "lot"]),
    ("PR", &["pair", "pairs", "paar", "paare", "paire", "paires", "pasang"]),
    ("DZN", &["dz", "dozen", "dzn", "dutzend", "douzaine", "lusin"]),
    ("XBX", &["box", "boxes", "schachtel", "boîte", "boîtes", "kotak", "doos"]),
    ("XCT", &["ct", "ctn", "carton", "cartons", "karton", "kartons", "dus", "kardus"]),
    (
        "XPK",
        &[
            "pack",
            "packs",
            "package",
            "packung",
            "packungen",
            "pck",
            "pkg",
            "paket",
            "pak",
            "pkt",
            "paquet",
            "bungkus",
        ],
    ),
    ("XBG", &["bag", "bags", "beutel", "sack", "säcke", "sac", "sacs", "karung", "kantong"]),
    ("XBO", &["bottle", "bottles", "flasche", "flaschen", "fl", "bouteille", "bouteilles", "botol"]),
    ("XCR", &["crate", "kiste", "kisten", "caisse", "caisses", "peti"]),
    ("XBC", &["bottlecrate", "kasten", "kästen", "getränkekiste"]),
    ("XCA", &["can", "cans", "dose", "dosen", "kaleng"]),
    ("XPX", &["pallet", "pallets", "palette", "paletten", "palettes", "palet"]),
    ("XRO", &["roll", "rolls", "rolle", "rollen", "rouleau", "rouleaux", "gulung", "rol"]),
    ("XST", &["sheet", "sheets", "blatt", "bogen", "feuille", "feuilles", "rim"]),
    ("LS", &["lump sum", "lumpsum", "pauschal", "pauschale", "psch", "ls", "forfait", "borongan"]),
    ("E48", &["service", "services", "dienstleistung", "prestation", "jasa"]),
    ("P1", &["%", "percent", "prozent", "pourcent", "persen"]),
    ("E54", &["trip", "trips", "rit", "perjalanan", "fahrt", "fahrten"]),
    ("IE", &["person", "persons", "personen", "personne", "personnes", "orang", "org"]),
];

/// The unit code for a word or a code, if it is one we know.
///
/// Written by [`crate::write`] for `BT-130`; a mapping may use it to make a unit out of a cell.
#[must_use]
pub fn unit_code(word: &str) -> Option<&'static str> {
    let word = word.trim();
    if let Some((code, _)) = UNITS.iter().find(|(code, _)| *code == word) {
        return Some(code);
    }
    let word = word.trim_end_matches('.').to_lowercase();
    UNITS.iter().find(|(_, words)| words.contains(&word.as_str())).map(|(code, _)| *code)
}

/// Whether a text has the form of a unit code. The list has about two thousand of them; a reader of XML vouches
/// for the rest.
pub(crate) fn is_unit_code(text: &str) -> bool {
    (2..=3).contains(&text.len())
        && text.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit())
}

/// ISO 3166-1 codes of two letters, and `1A` and `XI`, which invoices use for Kosovo and Northern Ireland.
const COUNTRIES: &str = " 1A AD AE AF AG AI AL AM AO AQ AR AS AT AU AW AX AZ BA BB BD BE BF BG BH BI BJ BL BM BN BO BQ \
BR BS BT BV BW BY BZ CA CC CD CF CG CH CI CK CL CM CN CO CR CU CV CW CX CY CZ DE DJ DK DM DO DZ EC EE EG EH ER ES \
ET FI FJ FK FM FO FR GA GB GD GE GF GG GH GI GL GM GN GP GQ GR GS GT GU GW GY HK HM HN HR HT HU ID IE IL IM IN IO \
IQ IR IS IT JE JM JO JP KE KG KH KI KM KN KP KR KW KY KZ LA LB LC LI LK LR LS LT LU LV LY MA MC MD ME MF MG MH MK \
ML MM MN MO MP MQ MR MS MT MU MV MW MX MY MZ NA NC NE NF NG NI NL NO NP NR NU NZ OM PA PE PF PG PH PK PL PM PN PR \
PS PT PW PY QA RE RO RS RU RW SA SB SC SD SE SG SH SI SJ SK SL SM SN SO SR SS ST SV SX SY SZ TC TD TF TG TH TJ TK \
TL TM TN TO TR TT TV TW TZ UA UG UM US UY UZ VA VC VE VG VI VN VU WF WS XI YE YT ZA ZM ZW ";

/// Names of countries as addresses write them, in lower case.
const COUNTRY_NAMES: &[(&str, &[&str])] = &[
    ("AT", &["austria", "österreich", "autriche"]),
    ("AU", &["australia", "australien"]),
    ("BE", &["belgium", "belgien", "belgique", "belgië"]),
    ("CH", &["switzerland", "schweiz", "suisse"]),
    ("CZ", &["czech republic", "czechia", "tschechien"]),
    ("DE", &["germany", "deutschland", "allemagne", "jerman"]),
    ("DK", &["denmark", "dänemark", "danmark"]),
    ("ES", &["spain", "spanien", "espagne", "españa"]),
    ("FR", &["france", "frankreich", "prancis"]),
    ("GB", &["united kingdom", "great britain", "england", "vereinigtes königreich", "royaume-uni", "uk"]),
    ("ID", &["indonesia", "indonesien", "indonésie"]),
    ("IE", &["ireland", "irland"]),
    ("IT", &["italy", "italien", "italie", "italia"]),
    ("JP", &["japan", "jepang", "japon"]),
    ("LU", &["luxembourg", "luxemburg"]),
    ("MY", &["malaysia"]),
    ("NL", &["netherlands", "the netherlands", "niederlande", "nederland", "pays-bas"]),
    ("PL", &["poland", "polen", "polska"]),
    ("PT", &["portugal"]),
    ("SE", &["sweden", "schweden", "sverige"]),
    ("SG", &["singapore", "singapura", "singapur"]),
    ("US", &["united states", "united states of america", "usa"]),
];

/// Currencies of one country only, and that country.
const CURRENCY_COUNTRIES: &[(&str, &str)] = &[
    ("AUD", "AU"),
    ("CHF", "CH"),
    ("CZK", "CZ"),
    ("DKK", "DK"),
    ("GBP", "GB"),
    ("HUF", "HU"),
    ("IDR", "ID"),
    ("INR", "IN"),
    ("JPY", "JP"),
    ("MYR", "MY"),
    ("NOK", "NO"),
    ("PLN", "PL"),
    ("RON", "RO"),
    ("SEK", "SE"),
    ("SGD", "SG"),
    ("THB", "TH"),
    ("TRY", "TR"),
    ("USD", "US"),
    ("VND", "VN"),
];

/// The country for a code or a name.
pub(crate) fn country_code(text: &str) -> Option<&'static str> {
    let text = text.trim();
    known_country(&text.to_uppercase()).or_else(|| {
        let name = text.to_lowercase();
        COUNTRY_NAMES.iter().find(|(_, names)| names.contains(&name.as_str())).map(|(code, _)| *code)
    })
}

fn known_country(code: &str) -> Option<&'static str> {
    if code.len() != 2 || !code.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
        return None;
    }
    let at = COUNTRIES.find(&format!(" {code} "))?;
    COUNTRIES.get(at + 1..at + 3)
}

/// The country that a VAT number, or an account number, begins with.
pub(crate) fn country_of_identifier(identifier: &str) -> Option<&'static str> {
    let prefix: String = identifier.trim().chars().take(2).collect::<String>().to_uppercase();
    let followed_by_digit = identifier.chars().skip(2).any(|letter| letter.is_ascii_digit());
    match prefix.as_str() {
        _ if !followed_by_digit || !prefix.bytes().all(|byte| byte.is_ascii_uppercase()) => None,
        "EL" => Some("GR"),
        "XI" => Some("GB"),
        prefix => known_country(prefix),
    }
}

/// The country whose currency this is, where no other uses it.
pub(crate) fn country_of_currency(currency: &str) -> Option<&'static str> {
    CURRENCY_COUNTRIES.iter().find(|(code, _)| *code == currency).map(|(_, country)| *country)
}

/// Scheme of GS1 trade item numbers (GTIN) in ISO 6523.
pub(crate) const TRADE_ITEM_NUMBER: &str = "0160";
/// Scheme of GS1 location numbers (GLN) among those for electronic addresses.
const LOCATION_NUMBER: &str = "0088";

/// Whether this is a number as under a bar code: 8, 12, 13 or 14 digits of which the last checks the others.
pub(crate) fn is_trade_item_number(text: &str) -> bool {
    let digits: Option<Vec<u32>> = text.trim().chars().map(|letter| letter.to_digit(10)).collect();
    let Some(digits) = digits.filter(|digits| matches!(digits.len(), 8 | 12..=14)) else { return false };
    let weighted =
        digits.iter().rev().enumerate().map(|(at, digit)| if at % 2 == 0 { *digit } else { digit * 3 });
    weighted.sum::<u32>().is_multiple_of(10)
}

/// The scheme of an electronic address that is printed without one: an e-mail address or a location number.
pub(crate) fn address_scheme(address: &str) -> Option<&'static str> {
    match address {
        address if address.contains('@') => Some("EM"),
        address if address.len() == 13 && is_trade_item_number(address) => Some(LOCATION_NUMBER),
        _ => None,
    }
}

/// How many decimals amounts in a currency are written with: at least, and at most.
///
/// Rupiah have sen by the book, but nobody prints them. EN 16931 allows two decimals; the currencies with three
/// keep them, since rounding would change what is owed.
pub(crate) fn decimals(currency: &str) -> (u32, u32) {
    match currency {
        "IDR" | "HUF" | "TWD" => (0, 2),
        "BIF" | "CLP" | "DJF" | "GNF" | "ISK" | "JPY" | "KMF" | "KRW" | "PYG" | "RWF" | "UGX" | "VND"
        | "VUV" | "XAF" | "XOF" | "XPF" => (0, 2),
        "BHD" | "IQD" | "JOD" | "KWD" | "LYD" | "OMR" | "TND" => (3, 3),
        _ => (2, 2),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn words_for_units_become_codes_in_every_language_of_the_pages() {
        for (word, code) in [
            ("pcs", "H87"),
            ("Stück", "H87"),
            ("Stk.", "H87"),
            ("Std.", "HUR"),
            ("h", "HUR"),
            ("kg", "KGM"),
            ("m", "MTR"),
            ("unit", "C62"),
            ("buah", "H87"),
            ("lembar", "H87"),
            ("jam", "HUR"),
            ("bulan", "MON"),
            ("paket", "XPK"),
            ("heure", "HUR"),
            ("pièce", "H87"),
            ("KGM", "KGM"),
            ("Monat", "MON"),
            ("MIN", "MIN"),
        ] {
            assert_eq!(unit_code(word), Some(code), "{word}");
        }
        assert_eq!(unit_code("Zauberstab"), None);
    }

    #[test]
    fn no_word_stands_for_two_units() {
        let mut seen = BTreeMap::new();
        for (code, words) in UNITS {
            for word in *words {
                assert_eq!(seen.insert(*word, *code), None, "{word}");
            }
        }
    }

    #[test]
    fn numbers_of_bar_codes_are_told_by_their_check_digit() {
        for number in ["4123456000014", "4006381333931", "96385074", "036000291452", "10614141000415"] {
            assert!(is_trade_item_number(number), "{number}");
        }
        for number in ["4123456000015", "123", "412345600001X", "", "ZS9997"] {
            assert!(!is_trade_item_number(number), "{number}");
        }
        assert_eq!(address_scheme("a@example.org"), Some("EM"));
        assert_eq!(address_scheme("4000001123452"), Some("0088"));
        assert_eq!(address_scheme("somewhere"), None);
    }

    #[test]
    fn countries_are_found_by_code_name_and_prefix() {
        assert_eq!(country_code("de"), Some("DE"));
        assert_eq!(country_code("Österreich"), Some("AT"));
        assert_eq!(country_code("E "), None);
        assert_eq!(country_of_identifier("EL123456789"), Some("GR"));
        assert_eq!(country_of_identifier("DE 232 446 240"), Some("DE"));
        assert_eq!(country_of_identifier("00.259.921.8-000.000"), None);
        assert_eq!(country_of_identifier("Demo"), None);
        assert_eq!(country_of_currency("IDR"), Some("ID"));
        assert_eq!(country_of_currency("EUR"), None);
    }
}
