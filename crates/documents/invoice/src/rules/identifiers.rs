//! Numbers with check digits: accounts, VAT numbers, Indonesian taxpayer numbers. A number that a bank or an office
//! would refuse was misread, mistyped or made up.

use super::{info, review};
use crate::facts::Ask;
use crate::finding::FindingCode;
use crate::record::{Finding, Record};
use crate::terms;

/// Shortest and longest account numbers that exist under the standard.
const IBAN_LENGTHS: std::ops::RangeInclusive<usize> = 15..=34;

pub(super) fn check(record: &Record) -> Vec<Finding> {
    let mut findings = Vec::new();
    for name in ["iban", "debited_iban"] {
        let Some(text) = record.fields.text(name) else { continue };
        if is_iban_shaped(&text) && !is_iban(&text) {
            let label = terms::header(name).map_or(name, |term| term.label);
            let message = format!("The {label} {text} fails its check digits.");
            findings.push(review(FindingCode::IbanCheck, name, message));
        }
    }
    for name in ["seller_vat_id", "buyer_vat_id", "seller_tax_number", "tax_representative_vat_id"] {
        let Some(text) = record.fields.text(name) else { continue };
        if tax_number_is_right(&text) == Some(false) {
            let label = terms::header(name).map_or(name, |term| term.label);
            findings.push(info(
                FindingCode::TaxNumberCheck,
                name,
                format!("The {label} {text} fails its check digits."),
            ));
        }
    }
    findings
}

/// Letters and digits only, in upper case.
fn compact(text: &str) -> String {
    text.chars().filter(char::is_ascii_alphanumeric).map(|letter| letter.to_ascii_uppercase()).collect()
}

/// Whether an account number has the form of an IBAN; the check digits are another question.
pub(crate) fn is_iban_shaped(account: &str) -> bool {
    let text: Vec<u8> = account.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
    IBAN_LENGTHS.contains(&text.len())
        && text[..2].iter().all(u8::is_ascii_alphabetic)
        && text[2..4].iter().all(u8::is_ascii_digit)
        && text[4..].iter().all(u8::is_ascii_alphanumeric)
}

/// ISO 13616: with the first four letters at the end and letters as numbers from 10, the rest by 97 is one.
fn is_iban(account: &str) -> bool {
    let text = compact(account);
    let turned = text.bytes().skip(4).chain(text.bytes().take(4));
    let rest = turned.fold(0_u32, |rest, byte| match byte {
        b'0'..=b'9' => (rest * 10 + u32::from(byte - b'0')) % 97,
        _ => (rest * 100 + u32::from(byte - b'A') + 10) % 97,
    });
    rest == 1
}

/// Whether a tax number passes the check digits of its country; none where we know no rule for it.
fn tax_number_is_right(text: &str) -> Option<bool> {
    let text = compact(text);
    let digits: Vec<u32> = text.chars().filter_map(|letter| letter.to_digit(10)).collect();
    match (text.get(..2)?, digits.as_slice()) {
        ("DE", digits) if text.len() == 11 => Some(digits.len() == 9 && german(digits)),
        ("FR", digits) if text.len() == 13 && digits.len() == 13 - 2 => Some(french(digits)),
        ("AT", digits) if text.len() == 11 && text.as_bytes()[2] == b'U' => {
            Some(digits.len() == 8 && austrian(digits))
        }
        ("BE", digits) if text.len() == 12 => Some(digits.len() == 10 && belgian(digits)),
        (_, digits) if text.len() == 15 && digits.len() == 15 => Some(luhn(&digits[..9])),
        _ => None,
    }
}

/// ISO 7064, mod 11, 10.
fn german(digits: &[u32]) -> bool {
    let product = digits[..8].iter().fold(10, |product, digit| {
        let sum = (digit + product) % 10;
        (if sum == 0 { 10 } else { sum }) * 2 % 11
    });
    (11 - product) % 10 == digits[8]
}

/// The first two digits check the company number of nine: (12 + 3 × (number mod 97)) mod 97.
fn french(digits: &[u32]) -> bool {
    let number = digits[2..].iter().fold(0, |number, digit| (number * 10 + digit) % 97);
    (12 + 3 * number) % 97 == digits[0] * 10 + digits[1]
}

fn austrian(digits: &[u32]) -> bool {
    let sum: u32 = digits[..7]
        .iter()
        .enumerate()
        .map(|(at, digit)| if at % 2 == 0 { *digit } else { digit / 5 + digit * 2 % 10 })
        .sum();
    (10 - (sum + 4) % 10) % 10 == digits[7]
}

fn belgian(digits: &[u32]) -> bool {
    let number = digits[..8].iter().fold(0, |number, digit| number * 10 + digit);
    97 - number % 97 == digits[8] * 10 + digits[9]
}

/// The first nine digits of an Indonesian taxpayer number end in a Luhn digit.
fn luhn(digits: &[u32]) -> bool {
    let sum: u32 = digits
        .iter()
        .rev()
        .enumerate()
        .map(|(at, digit)| if at % 2 == 0 { *digit } else { digit / 5 + digit * 2 % 10 })
        .sum();
    sum.is_multiple_of(10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn account_numbers_are_told_from_mistyped_ones() {
        for account in
            ["DE89 3704 0044 0532 0130 00", "GB29NWBK60161331926819", "fr1420041010050500013m02606"]
        {
            assert!(is_iban_shaped(account) && is_iban(account), "{account}");
        }
        for account in ["DE88 3704 0044 0532 0130 00", "GB29NWBK60161331926891"] {
            assert!(is_iban_shaped(account) && !is_iban(account), "{account}");
        }
        for account in ["1234567890", "DE", "", "ÄÖ12345678901234", "DE89-3704-0044-0532-0130-00"] {
            assert!(!is_iban_shaped(account), "{account}");
        }
    }

    #[test]
    fn tax_numbers_are_checked_where_the_rule_is_known() {
        for (number, expected) in [
            ("DE136695976", Some(true)),
            ("DE136695979", Some(false)),
            ("DE 811 128 135", Some(true)),
            ("FR 83 404833048", Some(true)),
            ("FR84404833048", Some(false)),
            ("ATU13585627", Some(true)),
            ("ATU13585628", Some(false)),
            ("BE0428759497", Some(true)),
            ("BE0428759498", Some(false)),
            ("IT00743110157", None),
            ("01.312.166.0-091.000", Some(true)),
            ("01.312.166.1-091.000", Some(false)),
            ("22/815/0815/4", None),
            ("", None),
            ("ü", None),
        ] {
            assert_eq!(tax_number_is_right(number), expected, "{number}");
        }
    }
}
