//! Rules.
/// Whether an account number has the form of an IBAN; the check digits are another question.
pub(crate) fn is_iban_shaped(account: &str) -> bool {
    let bytes: Vec<u8> = account.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
    (15..=34).contains(&bytes.len())
        && bytes[..2].iter().all(u8::is_ascii_alphabetic)
        && bytes[2..4].iter().all(u8::is_ascii_digit)
        && bytes[4..].iter().all(u8::is_ascii_alphanumeric)
}
