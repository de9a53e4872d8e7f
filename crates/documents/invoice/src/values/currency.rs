//! Currency codes and the marks that stand for them.

use std::collections::BTreeMap;

use super::Reading;
use crate::record::Typed;

/// Codes that are looked for on a page. A list, because any three capitals could be a word.
const CODES: &[&str] = &[
    "EUR", "USD", "GBP", "IDR", "CHF", "JPY", "CNY", "AUD", "CAD", "NZD", "SGD", "MYR", "THB", "VND", "PHP",
    "INR", "HKD", "KRW", "TWD", "SEK", "NOK", "DKK", "PLN", "CZK", "HUF", "RON", "BGN", "ISK", "TRY", "RUB",
    "UAH", "BRL", "MXN", "ARS", "CLP", "COP", "PEN", "ZAR", "AED", "SAR", "QAR", "KWD", "ILS", "EGP", "MAD",
    "NGN", "KES",
];

/// Marks and words that mean one currency wherever they stand.
const MARKS: &[(&str, &str)] = &[
    ("€", "EUR"),
    ("Euro", "EUR"),
    ("Rp", "IDR"),
    ("Rp.", "IDR"),
    ("Rupiah", "IDR"),
    ("£", "GBP"),
    ("US$", "USD"),
    ("US Dollars", "USD"),
    ("$", "USD"),
    ("S$", "SGD"),
    ("A$", "AUD"),
    ("RM", "MYR"),
    ("R$", "BRL"),
    ("¥", "JPY"),
    ("￥", "JPY"),
    ("円", "JPY"),
    ("元", "CNY"),
    ("원", "KRW"),
    ("฿", "THB"),
    ("₫", "VND"),
    ("₴", "UAH"),
    ("грн", "UAH"),
    ("грн.", "UAH"),
    ("руб.", "RUB"),
    ("руб", "RUB"),
    ("ر.س", "SAR"),
    ("د.إ", "AED"),
    ("ש\"ח", "ILS"),
    ("ש״ח", "ILS"),
    ("₹", "INR"),
    ("zł", "PLN"),
    ("Kč", "CZK"),
    ("Ft", "HUF"),
    ("lei", "RON"),
    ("Lei", "RON"),
    ("₺", "TRY"),
    ("TL", "TRY"),
    ("₽", "RUB"),
    ("₩", "KRW"),
    ("₪", "ILS"),
    ("лв.", "BGN"),
    ("Fr.", "CHF"),
];

/// Money that is printed without cents.
const WHOLE: &[&str] = &["JPY", "KRW", "VND", "IDR", "CLP", "ISK"];

/// What a mapping adds to the marks that everybody knows, and what it assumes where the page is silent.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Currencies {
    /// Assumed where nothing is printed.
    pub default: Option<String>,
    /// Further marks; they win over the common ones (`$` may mean `AUD`).
    pub marks: BTreeMap<String, String>,
}

/// Every currency named in the text.
pub fn currencies(text: &str, known: &Currencies) -> Vec<Reading> {
    let chars: Vec<char> = text.chars().collect();
    let mut found: Vec<Reading> = Vec::new();
    let own = known.marks.iter().map(|(mark, code)| (mark.as_str(), code.as_str()));
    let all = own.chain(CODES.iter().map(|code| (*code, *code))).chain(MARKS.iter().copied());
    for (mark, code) in all.filter(|(mark, _)| text.contains(mark)) {
        find_mark(&chars, mark, code, &mut found);
    }
    found.sort_by_key(|r| (r.chars.start, usize::MAX - r.chars.end));
    found.dedup_by(|next, kept| next.chars.start < kept.chars.end);
    found
}

/// Whether the text names money that is printed without cents.
pub fn is_whole_money(text: &str, known: &Currencies) -> bool {
    let is_whole = |reading: &Reading| match &reading.typed {
        Typed::Code(code) => WHOLE.contains(&code.as_str()),
        Typed::Text(_) | Typed::Number(_) | Typed::Date(_) => false,
    };
    currencies(text, known).iter().any(is_whole)
}

fn find_mark(chars: &[char], mark: &str, code: &str, found: &mut Vec<Reading>) {
    let wanted: Vec<char> = mark.chars().collect();
    let is_word = wanted.first().is_some_and(|c| c.is_alphabetic());
    // "120円": a letter that is a mark only behind a number.
    let is_counter = is_word && wanted.iter().copied().all(is_symbol);
    for (at, window) in chars.windows(wanted.len()).enumerate() {
        if window != wanted.as_slice() {
            continue;
        }
        let end = at + wanted.len();
        let before = at.checked_sub(1).map(|i| chars[i]);
        let begins = match is_counter {
            true => before.is_some_and(char::is_numeric),
            false => !is_word || !before.is_some_and(char::is_alphanumeric),
        };
        let ends = !is_word || !chars.get(end).is_some_and(|c| c.is_alphabetic());
        if begins && ends && !found.iter().any(|r| r.chars.start <= at && end <= r.chars.end) {
            let is_sure = code == mark;
            found.push(Reading { typed: Typed::Code(code.to_owned()), chars: at..end, is_sure });
        }
    }
}

/// A sign that stands for money.
pub fn is_symbol(c: char) -> bool {
    matches!(
        c,
        '€' | '$'
            | '£'
            | '¥'
            | '￥'
            | '円'
            | '元'
            | '₹'
            | '₺'
            | '₽'
            | '₩'
            | '원'
            | '₪'
            | '฿'
            | '₫'
            | '₴'
    )
}

/// Whether the text is exactly one mark or code.
pub fn is_mark(text: &str) -> bool {
    CODES.contains(&text) || MARKS.iter().any(|(mark, _)| *mark == text)
}

/// Whether the letters just before a number are money's, not a word's.
pub fn ends_with_code(head: &[char]) -> bool {
    let tail: String = head.iter().rev().take_while(|c| c.is_alphabetic() || is_symbol(**c)).collect();
    let word: String = tail.chars().rev().collect();
    is_mark(&word) || word.chars().next_back().is_some_and(is_symbol)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &[&str]) {
        let found: Vec<String> = currencies(text, &Currencies::default())
            .into_iter()
            .map(|r| match r.typed {
                Typed::Code(code) => code,
                other => format!("{other:?}"),
            })
            .collect();
        assert_eq!(found, expected, "in {text:?}");
    }

    #[test]
    fn marks_and_codes_are_found_and_words_are_not() {
        check("Rp 9.942.000,00", &["IDR"]);
        check("Mata uang: Rupiah (IDR)", &["IDR", "IDR"]);
        check("US$ 5", &["USD"]);
        check("EUROPA", &[]);
        check("529,87€", &["EUR"]);
        check("Total EUR", &["EUR"]);
    }

    #[test]
    fn a_mappings_mark_wins_over_the_common_one() {
        let marks = BTreeMap::from([("$".to_owned(), "AUD".to_owned())]);
        let found = currencies("$ 5", &Currencies { default: None, marks });
        assert_eq!(found[0].typed, Typed::Code("AUD".into()));
        assert_eq!(found.len(), 1);
    }
}
