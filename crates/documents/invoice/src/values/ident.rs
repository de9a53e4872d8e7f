//! Identifiers: bank accounts, tax numbers and plain document numbers, with their check digits where they have
//! any.

use std::ops::Range;

use super::Reading;
use crate::record::Typed;

/// Country codes that begin a VAT number, and how many characters follow.
const VAT_LENGTHS: &[(&str, std::ops::RangeInclusive<usize>)] = &[
    ("AT", 9..=9),
    ("BE", 10..=10),
    ("BG", 9..=10),
    ("CY", 9..=9),
    ("CZ", 8..=10),
    ("DE", 9..=11),
    ("DK", 8..=8),
    ("EE", 9..=9),
    ("EL", 9..=9),
    ("ES", 9..=9),
    ("FI", 8..=8),
    ("FR", 11..=11),
    ("GB", 9..=12),
    ("HR", 11..=11),
    ("HU", 8..=8),
    ("IE", 8..=9),
    ("IT", 11..=11),
    ("LT", 9..=12),
    ("LU", 8..=8),
    ("LV", 11..=11),
    ("MT", 8..=8),
    ("NL", 12..=12),
    ("NO", 9..=12),
    ("PL", 10..=10),
    ("PT", 9..=9),
    ("RO", 2..=10),
    ("SE", 12..=12),
    ("SI", 8..=8),
    ("SK", 10..=10),
    ("XI", 9..=12),
    ("CHE", 9..=12),
];

/// Shortest and longest account number of any country.
const IBAN_CHARS: std::ops::RangeInclusive<usize> = 15..=34;

/// Document numbers and references: words with a digit in them, marks allowed inside.
pub fn identifiers(text: &str) -> Vec<Reading> {
    words(text)
        .into_iter()
        .filter_map(|(word, start)| {
            let lead = word.chars().take_while(|c| !is_id_char(*c) || *c == '-').count();
            let bare: String = word.chars().skip(lead).collect();
            let bare = bare.trim_end_matches(|c: char| !c.is_alphanumeric());
            let is_id = bare.chars().any(|c| c.is_ascii_digit()) && bare.chars().all(is_id_char);
            let start = start + lead;
            let end = start + bare.chars().count();
            is_id.then(|| Reading { typed: Typed::Text(bare.to_owned()), chars: start..end, is_sure: false })
        })
        .collect()
}

fn is_id_char(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '-' | '/' | '.' | '_' | '\\' | '+')
}

/// Words with the index of their first character.
fn words(text: &str) -> Vec<(String, usize)> {
    let mut words: Vec<(String, usize)> = Vec::new();
    let mut is_inside = false;
    for (at, c) in text.chars().enumerate() {
        if c.is_whitespace() {
            is_inside = false;
        } else if is_inside {
            if let Some((word, _)) = words.last_mut() {
                word.push(c);
            }
        } else {
            words.push((c.to_string(), at));
            is_inside = true;
        }
    }
    words
}

/// Letters and digits from `start` on, over spaces between groups, until something else comes.
fn compact(chars: &[char], start: usize, is_joint: fn(char) -> bool) -> (String, Vec<usize>) {
    let mut text = String::new();
    let mut ends = Vec::new();
    for (at, c) in chars.iter().enumerate().skip(start) {
        if c.is_ascii_alphanumeric() {
            text.push(c.to_ascii_uppercase());
            ends.push(at + 1);
        } else if !is_joint(*c) {
            break;
        }
        if text.len() > *IBAN_CHARS.end() {
            break;
        }
    }
    (text, ends)
}

fn starts_word(chars: &[char], at: usize) -> bool {
    at == 0 || !chars[at - 1].is_alphanumeric()
}

/// Account numbers in any grouping. One whose check digits fail is still given, but not as sure: sample and
/// misprinted invoices carry such numbers, and the reader of the result should see them.
pub fn ibans(text: &str) -> Vec<Reading> {
    let chars: Vec<char> = text.chars().collect();
    let mut found = Vec::new();
    let mut at = 0;
    while at + 4 < chars.len() {
        match iban_at(&chars, at) {
            Some(reading) => {
                at = reading.chars.end;
                found.push(reading);
            }
            None => at += 1,
        }
    }
    found
}

fn iban_at(chars: &[char], at: usize) -> Option<Reading> {
    let is_head = starts_word(chars, at)
        && chars[at..at + 2].iter().all(char::is_ascii_uppercase)
        && chars[at + 2..at + 4].iter().all(char::is_ascii_digit);
    if !is_head {
        return None;
    }
    let (text, ends) = compact(chars, at, |c| c == ' ' || c == '\u{a0}');
    let sound = IBAN_CHARS
        .rev()
        .find(|n| *n <= text.len() && is_iban(&text[..*n]) && is_word_end(chars, ends[n - 1]));
    let is_sure = sound.is_some();
    let length = sound.or_else(|| digits_only(&text, chars, &ends))?;
    let end = ends[length - 1];
    Some(Reading { typed: Typed::Text(text[..length].to_owned()), chars: at..end, is_sure })
}

fn is_word_end(chars: &[char], end: usize) -> bool {
    chars.get(end).is_none_or(|c| !c.is_alphanumeric())
}

/// The country code and as many digits as follow: the best guess where the check digits do not help.
fn digits_only(text: &str, chars: &[char], ends: &[usize]) -> Option<usize> {
    let length = 4 + text[4..].chars().take_while(char::is_ascii_digit).count();
    (IBAN_CHARS.contains(&length) && is_word_end(chars, ends[length - 1])).then_some(length)
}

/// ISO 7064 check over letters and digits.
pub fn is_iban(text: &str) -> bool {
    if !IBAN_CHARS.contains(&text.len()) || !text.is_ascii() {
        return false;
    }
    let turned = text[4..].chars().chain(text[..4].chars());
    let mut rest = 0u32;
    for c in turned {
        let Some(value) = c.to_digit(36) else { return false };
        rest = if value < 10 { (rest * 10 + value) % 97 } else { (rest * 100 + value) % 97 };
    }
    rest == 1
}

/// Bank codes: eight or eleven letters and digits, the first six of them letters.
pub fn bics(text: &str) -> Vec<Reading> {
    words(text)
        .into_iter()
        .filter_map(|(word, start)| {
            let lead = word.chars().take_while(|c| !c.is_alphanumeric()).count();
            let bare: String = word.chars().skip(lead).take_while(char::is_ascii_alphanumeric).collect();
            let is_bic = matches!(bare.len(), 8 | 10 | 11)
                && bare.chars().take(6).all(|c| c.is_ascii_uppercase())
                && bare.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit());
            let chars = start + lead..start + lead + bare.len();
            let is_sure = matches!(bare.len(), 8 | 11);
            is_bic.then_some(Reading { typed: Typed::Text(bare), chars, is_sure })
        })
        .collect()
}

/// Tax numbers of buyers and sellers: European VAT numbers and the Indonesian NPWP.
pub fn vat_ids(text: &str) -> Vec<Reading> {
    let chars: Vec<char> = text.chars().collect();
    let mut found = Vec::new();
    let mut at = 0;
    while at < chars.len() {
        match vat_at(&chars, at).or_else(|| npwp_at(&chars, at)) {
            Some(reading) => {
                at = reading.chars.end;
                found.push(reading);
            }
            None => at += 1,
        }
    }
    found
}

fn vat_at(chars: &[char], at: usize) -> Option<Reading> {
    if !starts_word(chars, at) || !chars[at].is_ascii_uppercase() {
        return None;
    }
    let (text, ends) = compact(chars, at, |c| matches!(c, ' ' | '\u{a0}' | '.' | '-'));
    let (country, lengths) = VAT_LENGTHS.iter().find(|(code, _)| text.starts_with(code))?;
    // "No. 12" and "Roma 15" begin with small letters behind their first.
    if !chars[at..at + country.len().min(2)].iter().all(char::is_ascii_uppercase) {
        return None;
    }
    let length = lengths.clone().rev().find(|n| {
        let length = country.len() + n;
        length <= text.len()
            && is_word_end(chars, ends[length - 1])
            && is_vat_body(country, &text[country.len()..length])
    })? + country.len();
    // "DE 74465 Demoort" is a place: between the digits of a number no letter follows after a space.
    let range = at..ends[length - 1];
    let printed: String = chars[range.clone()].iter().collect();
    let is_compact = printed.trim().chars().filter(|c| c.is_whitespace()).count() <= 4;
    is_compact.then(|| Reading { typed: Typed::Text(tidy_id(&printed)), chars: range, is_sure: false })
}

/// Digits, with letters only where a country has any.
fn is_vat_body(country: &str, body: &str) -> bool {
    let letters = body.chars().filter(char::is_ascii_alphabetic).count();
    match country {
        "NO" => body.trim_end_matches("MVA").len() == 9 && letters == body.len() - 9,
        "AT" | "CY" | "ES" | "FR" | "GB" | "IE" | "NL" | "XI" | "CHE" => {
            letters <= 3 && body[2..].chars().filter(char::is_ascii_alphabetic).count() <= 2
        }
        _ => letters == 0,
    }
}

fn tidy_id(printed: &str) -> String {
    printed.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// NPWP: fifteen digits as `12.345.678.9-012.000`, or sixteen since 2024.
fn npwp_at(chars: &[char], at: usize) -> Option<Reading> {
    if !starts_word(chars, at) || !chars[at].is_ascii_digit() {
        return None;
    }
    let end = at + chars[at..].iter().take_while(|c| c.is_ascii_digit() || matches!(c, '.' | '-')).count();
    let end = end - chars[at..end].iter().rev().take_while(|c| !c.is_ascii_digit()).count();
    let printed: String = chars[at..end].iter().collect();
    is_npwp(&printed).then_some(Reading { typed: Typed::Text(printed), chars: at..end, is_sure: false })
}

/// Whether digits and marks have one of the two forms of an NPWP.
pub fn is_npwp(printed: &str) -> bool {
    let groups: Vec<usize> = printed.split(['.', '-']).map(str::len).collect();
    let is_digits = printed.chars().all(|c| c.is_ascii_digit() || matches!(c, '.' | '-'));
    is_digits && (groups == [2, 3, 3, 1, 3, 3] || groups == [15] || groups == [16] || groups == [4, 4, 4, 4])
}

/// National tax numbers: digits, alone or in groups between slashes, spaces, hyphens or points (`201/113/40209`,
/// `526-10-40-828`), with a letter before or behind them in Spain (`B12345678`).
pub fn tax_numbers(text: &str) -> Vec<Reading> {
    let chars: Vec<char> = text.chars().collect();
    let mut found = Vec::new();
    let mut at = 0;
    while at < chars.len() {
        let is_letter = chars[at].is_ascii_uppercase() && chars.get(at + 1).is_some_and(char::is_ascii_digit);
        if !(chars[at].is_ascii_digit() || is_letter) || !starts_word(&chars, at) {
            at += 1;
            continue;
        }
        let digits_at = at + usize::from(is_letter);
        let mut range = tax_number_range(&chars, digits_at);
        range.start = at;
        if chars.get(range.end).is_some_and(char::is_ascii_uppercase) && is_word_end(&chars, range.end + 1) {
            range.end += 1;
        }
        let printed: String = chars[range.clone()].iter().collect();
        let digits = printed.chars().filter(char::is_ascii_digit).count();
        let shortest = if digits < printed.chars().count() && is_letter { 7 } else { 8 };
        let is_number = (shortest..=16).contains(&digits) && is_word_end(&chars, range.end);
        if is_number && !is_date_shaped(&printed) && !is_grouped_amount(&printed) {
            found.push(Reading { typed: Typed::Text(printed), chars: range.clone(), is_sure: false });
        }
        at = range.end.max(at + 1);
    }
    found
}

/// "31.12.2026" and "2026-12-31" are days.
fn is_date_shaped(printed: &str) -> bool {
    let groups: Vec<usize> = printed.split(['.', '-', '/', ' ']).map(str::len).collect();
    matches!(groups.as_slice(), [1 | 2, 1 | 2, 4] | [4, 2, 2])
}

/// "22.642.890" is an amount.
fn is_grouped_amount(printed: &str) -> bool {
    let groups: Vec<usize> = printed.split('.').map(str::len).collect();
    groups.len() > 1 && groups[1..].iter().all(|g| *g == 3) && groups[0] <= 3
}

fn tax_number_range(chars: &[char], start: usize) -> Range<usize> {
    let is_part = |c: &char| c.is_ascii_digit() || matches!(c, '/' | ' ' | '-' | '.');
    let end = start + chars[start..].iter().take_while(|c| is_part(c)).count();
    let trailing = chars[start..end].iter().rev().take_while(|c| !c.is_ascii_digit()).count();
    start..end - trailing
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(read: fn(&str) -> Vec<Reading>, text: &str, expected: &[(&str, bool)]) {
        let found: Vec<(String, bool)> = read(text)
            .into_iter()
            .map(|r| match r.typed {
                Typed::Text(text) => (text, r.is_sure),
                other => (format!("{other:?}"), r.is_sure),
            })
            .collect();
        let expected: Vec<(String, bool)> = expected.iter().map(|(t, s)| ((*t).to_owned(), *s)).collect();
        assert_eq!(found, expected, "in {text:?}");
    }

    #[test]
    fn account_numbers_are_read_in_any_grouping() {
        check(ibans, "IBAN DE34 7007 0010 0156 9193 01", &[("DE34700700100156919301", true)]);
        check(
            ibans,
            "IBAN : FR76 3000 6000 0112 3456 7890 189 - BIC : X",
            &[("FR7630006000011234567890189", true)],
        );
        check(ibans, "DE5467894567876500", &[("DE5467894567876500", false)]);
        check(ibans, "DE 74465 Demoort", &[]);
    }

    #[test]
    fn bank_codes_are_eight_or_eleven_long() {
        check(bics, "BIC COBADEFFXXX", &[("COBADEFFXXX", true)]);
        check(bics, "SWIFT HELADEF1GEL", &[("HELADEF1GEL", true)]);
        check(bics, "und BIC MARKDEF1860, Deutsche", &[("MARKDEF1860", true)]);
        check(bics, "Rechnung", &[]);
    }

    #[test]
    fn tax_numbers_of_both_worlds_are_read() {
        check(vat_ids, "USt-IdNr. DE238574172", &[("DE238574172", false)]);
        check(vat_ids, "UStId DE 232 446 240", &[("DE 232 446 240", false)]);
        check(vat_ids, "NPWP: 00.676.302.4-000.000", &[("00.676.302.4-000.000", false)]);
        check(vat_ids, "N° TVA : FR 05 987 654 321", &[("FR 05 987 654 321", false)]);
        check(vat_ids, "ESA12345674", &[("ESA12345674", false)]);
        check(vat_ids, "DE 74465 Demoort", &[]);
        check(tax_numbers, "Steuernr.: 201/113/40209", &[("201/113/40209", false)]);
    }

    #[test]
    fn identifiers_hold_a_digit() {
        check(identifiers, "Nr. RE-20150613/503 von", &[("RE-20150613/503", false)]);
        check(identifiers, "# 47, alt", &[("47", false)]);
    }
}
