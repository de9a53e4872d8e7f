//! The forms of a secret that no other way of reading a text would bring to light.

use super::SECRET_CHARS_MIN;
use super::known::Known;
use super::view::View;
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use serde_json::Value;

/// A line of a longer secret is one by itself from here on.
const LINE_CHARS_MIN: usize = 8;
/// A secret that is longer, such as a file, has its usual forms only, and so have its lines: all of them would take some
/// hundred times its size.
const LONG_BYTES: usize = 1024;

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
        let digits = [in_hex(secret.as_bytes()).to_vec(), in_base64(secret.as_bytes())].concat();
        // Of many secrets, the last ones have their usual forms only: so there is room for many more.
        if text.len() > LONG_BYTES || known.is_crowded() {
            digits.into_iter().chain([secret.as_bytes().to_vec()]).for_each(|form| known.insert(form));
            continue;
        }
        let all = [as_text(secret), escaped(secret), in_utf16(secret).to_vec(), digits].concat();
        // What it was made into may be packed in digits as a whole.
        let packed = all.iter().flat_map(|form| [in_base64(form), in_hex(form).to_vec()].concat());
        packed.for_each(|form| known.insert(form));
        all.into_iter().for_each(|form| known.insert(form));
    }
}

/// As it is, and as it may read among other text.
fn as_text(secret: &str) -> Vec<Vec<u8>> {
    let list = |separator| secret.bytes().map(|byte| byte.to_string()).collect::<Vec<_>>().join(separator);
    let mut written = vec![
        secret.as_bytes().to_vec(),
        // In a form that is sent, within quotes of a shell, and as a list of bytes.
        secret.replace(' ', "+").into_bytes(),
        secret.replace('\'', r"'\''").into_bytes(),
        secret.replace('\'', r#"'"'"'"#).into_bytes(),
        list(",").into_bytes(),
        list(", ").into_bytes(),
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

fn in_hex(bytes: &[u8]) -> [Vec<u8>; 2] {
    let halves = || bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]).map(usize::from);
    [b"0123456789ABCDEF", b"0123456789abcdef"].map(|digits| halves().map(|half| digits[half]).collect())
}

/// As files of other systems have text, the lower byte first and the higher byte first.
fn in_utf16(secret: &str) -> [Vec<u8>; 2] {
    let bytes = |of: fn(u16) -> [u8; 2]| secret.encode_utf16().flat_map(of).collect();
    [bytes(u16::to_le_bytes), bytes(u16::to_be_bytes)]
}

/// As a part of something longer in base64, wherever it stands in there: the digits that depend on nothing else.
fn in_base64(bytes: &[u8]) -> Vec<Vec<u8>> {
    let mut written = Vec::new();
    for before in 0..3 {
        let bytes = [&[0; 2][..before], bytes].concat();
        let digits = (before * 8).div_ceil(6)..bytes.len() * 8 / 6;
        written.extend(
            [STANDARD_NO_PAD.encode(&bytes), URL_SAFE_NO_PAD.encode(&bytes)]
                .map(|text| text.as_bytes()[digits.clone()].to_vec()),
        );
    }
    written
}
