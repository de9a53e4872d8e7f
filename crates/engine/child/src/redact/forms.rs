//! The forms of a secret that no other way of reading a text would bring to light.

use super::SECRET_CHARS_MIN;
use super::known::Known;
use super::view::View;
use serde_json::Value;
use std::collections::BTreeSet;

/// A line of a longer secret is one by itself from here on.
const LINE_CHARS_MIN: usize = 8;
/// A secret that is longer, such as a file, has its usual forms only, and so have its lines: all of them would take some
/// hundred times its size.
const LONG_BYTES: usize = 1024;

/// The digits of hex and base64, of which programs know two kinds each.
const USUAL: [&[u8]; 4] = [
    b"0123456789ABCDEF",
    b"0123456789abcdef",
    b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/",
    b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_",
];
/// Those of base32, which is rare.
const RARE: [&[u8]; 2] = [b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", b"abcdefghijklmnopqrstuvwxyz234567"];

/// Adds all forms of everything in a value.
pub(super) fn of_value(value: &Value, known: &mut Known) {
    match value {
        Value::String(text) => of_text(text, known),
        Value::Number(number) => of_text(&number.to_string(), known),
        Value::Array(items) => items.iter().for_each(|item| of_value(item, known)),
        Value::Object(fields) => fields.values().for_each(|value| of_value(value, known)),
        Value::Null | Value::Bool(_) => {}
    }
}

fn of_text(text: &str, known: &mut Known) {
    let lines = text.lines().map(str::trim).filter(|line| line.chars().count() >= LINE_CHARS_MIN);
    for secret in lines.chain([text]).filter(|secret| secret.chars().count() >= SECRET_CHARS_MIN) {
        if known.is_overfull() {
            return;
        }
        let in_usual = |bytes: &[u8]| USUAL.map(|digits| in_digits(bytes, digits)).concat();
        let digits = in_usual(secret.as_bytes());
        // Of many secrets, the last ones have their usual forms only: so there is room for many more.
        if text.len() > LONG_BYTES || known.is_crowded() {
            digits.into_iter().chain([secret.as_bytes().to_vec()]).for_each(|form| known.insert(form));
            continue;
        }
        let all = [as_text(secret), escaped(secret), in_utf16(secret).to_vec(), digits].concat();
        // What it was made into may be packed in digits as a whole.
        let packed = all.iter().flat_map(|form| in_usual(form));
        let rare = RARE.iter().flat_map(|digits| in_digits(secret.as_bytes(), digits));
        packed.chain(rare).for_each(|form| known.insert(form));
        all.into_iter().for_each(|form| known.insert(form));
    }
}

/// As it is, and as it may read among other text.
fn as_text(secret: &str) -> Vec<Vec<u8>> {
    let list = |separator| secret.bytes().map(|byte| byte.to_string()).collect::<Vec<_>>().join(separator);
    let mut written = vec![
        secret.as_bytes().to_vec(),
        // In a form that is sent, within quotes of a shell, as a list of bytes, and backwards.
        secret.replace(' ', "+").into_bytes(),
        secret.replace('\'', r"'\''").into_bytes(),
        secret.replace('\'', r#"'"'"'"#).into_bytes(),
        list(",").into_bytes(),
        list(", ").into_bytes(),
        secret.chars().rev().collect::<String>().into_bytes(),
    ];
    // In a mail, which writes `=C3=A4`; read everywhere, these would hide what stands after an equals sign.
    let quoted = |byte: u8| {
        if byte.is_ascii() && byte != b'=' { char::from(byte).to_string() } else { format!("={byte:02X}") }
    };
    written.push(secret.bytes().map(quoted).collect::<String>().into_bytes());
    // One that looks as if it had escapes in it loses them with all others.
    written.extend(View::plain(secret.as_bytes()).unescaped(true).map(|view| view.bytes.into_owned()));
    let latin: Result<Vec<u8>, _> = secret.chars().map(u8::try_from).collect();
    written.extend(latin);
    written
}

/// As the inside of a JSON string, whole or in ASCII, and as a part of an address.
fn escaped(secret: &str) -> Vec<Vec<u8>> {
    let quoted = Value::from(secret).to_string();
    let json = &quoted[1..quoted.len() - 1];
    let unit = |unit: &mut u16| format!("\\u{unit:04x}");
    let units = |c: char| c.encode_utf16(&mut [0; 2]).iter_mut().map(unit).collect::<String>();
    let ascii = |c: char| if c.is_ascii() { c.to_string() } else { units(c) };
    let is_kept = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.!~*'()".contains(&byte);
    let percent =
        |byte: u8| if is_kept(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") };
    let address: String = secret.bytes().map(percent).collect();
    [json.to_owned(), json.chars().map(ascii).collect(), address].map(String::into_bytes).to_vec()
}

/// As files of other systems have text, the lower byte first and the higher byte first.
fn in_utf16(secret: &str) -> [Vec<u8>; 2] {
    let bytes = |of: fn(u16) -> [u8; 2]| secret.encode_utf16().flat_map(of).collect();
    [bytes(u16::to_le_bytes), bytes(u16::to_be_bytes)]
}

/// In digits of equal bits, as a part of something longer, wherever it stands in there: those that depend on nothing else.
fn in_digits(bytes: &[u8], digits: &[u8]) -> Vec<Vec<u8>> {
    let bits = digits.len().ilog2() as usize;
    let digit = |from: usize| {
        let pair = [bytes[from / 8], bytes.get(from / 8 + 1).copied().unwrap_or(0)];
        let rest = u16::from_be_bytes(pair) << (from % 8);
        digits[usize::from(rest >> (16 - bits))]
    };
    // What stands before leaves so many bits of a digit to it.
    let begun = (0..bits).map(|before| (bits - before * 8 % bits) % bits).collect::<BTreeSet<_>>();
    let form =
        |from: usize| (from..(bytes.len() * 8 + 1).saturating_sub(bits)).step_by(bits).map(digit).collect();
    begun.into_iter().map(form).collect()
}
