//! The forms that a secret takes on its way through programs.

use super::SECRET_CHARS_MIN;
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use serde_json::Value;
use std::collections::BTreeSet;

/// A line of a longer secret is one by itself from here on.
const LINE_CHARS_MIN: usize = 8;

/// Adds all forms of everything in a value.
pub(super) fn of_value(value: &Value, forms: &mut BTreeSet<Vec<u8>>) {
    match value {
        Value::String(text) => of_text(text, forms),
        Value::Number(number) => of_text(&number.to_string(), forms),
        Value::Array(items) => items.iter().for_each(|item| of_value(item, forms)),
        Value::Object(fields) => fields.values().for_each(|value| of_value(value, forms)),
        Value::Null | Value::Bool(_) => {}
    }
}

fn of_text(text: &str, forms: &mut BTreeSet<Vec<u8>>) {
    let lines = text.lines().map(str::trim).filter(|line| line.chars().count() >= LINE_CHARS_MIN);
    for secret in lines.chain([text]).filter(|secret| secret.chars().count() >= SECRET_CHARS_MIN) {
        let mut written = vec![secret.to_owned()];
        written.extend(in_json(secret));
        written.extend(in_address(secret));
        written.extend(in_html(secret));
        written.extend(in_hex(secret));
        written.extend(in_base64(secret));
        forms.extend(in_utf16(secret));
        forms.extend(
            written.into_iter().filter(|form| form.len() >= SECRET_CHARS_MIN).map(String::into_bytes),
        );
    }
}

/// As the inside of a JSON string, and of one that is itself inside another.
fn in_json(secret: &str) -> Vec<String> {
    let escaped = |text: &str| {
        let quoted = Value::from(text).to_string();
        quoted[1..quoted.len() - 1].to_owned()
    };
    let plain = escaped(secret);
    let slashes = plain.replace('/', "\\/");
    let ascii = |text: &str, is_upper: bool| -> String {
        text.chars().map(|c| if c.is_ascii() { c.to_string() } else { units(c, is_upper) }).collect()
    };
    let once = [&plain, &slashes].map(|text| [text.clone(), ascii(text, false), ascii(text, true)]).concat();
    let twice: Vec<String> = once.iter().map(|text| escaped(text)).collect();
    [once, twice].concat()
}

/// `\u00e4`
fn units(character: char, is_upper: bool) -> String {
    let mut room = [0; 2];
    let units = character.encode_utf16(&mut room).iter();
    units.map(|unit| if is_upper { format!("\\u{unit:04X}") } else { format!("\\u{unit:04x}") }).collect()
}

/// As a part of an address or of a form that is sent.
fn in_address(secret: &str) -> Vec<String> {
    // What `encodeURIComponent`, RFC 3986, `encodeURI` and HTML forms leave as it is, and what they make of a space.
    let kinds = [("-_.!~*'()", "%20"), ("-_.~", "%20"), ("-_.!~*'();,/?:@&=+$#", "%20"), ("*-._", "+")];
    let mut written = Vec::new();
    for (kept, space) in kinds {
        for is_upper in [true, false] {
            let encode = |byte: u8| match byte {
                b' ' => space.to_owned(),
                byte if byte.is_ascii_alphanumeric() || kept.as_bytes().contains(&byte) => {
                    char::from(byte).to_string()
                }
                byte if is_upper => format!("%{byte:02X}"),
                byte => format!("%{byte:02x}"),
            };
            written.push(secret.bytes().map(encode).collect());
        }
    }
    written
}

/// As text or an attribute of a page.
fn in_html(secret: &str) -> Vec<String> {
    let escape = |quote: &str, apostrophe: &str| {
        let text = secret.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
        text.replace('"', quote).replace('\'', apostrophe)
    };
    let pairs =
        [("\"", "'"), ("&quot;", "'"), ("&quot;", "&#39;"), ("&quot;", "&#x27;"), ("&quot;", "&apos;")];
    let more = [("&#34;", "&#39;"), ("&#34;", "&#x27;"), ("&#x22;", "&#x27;")];
    pairs.into_iter().chain(more).map(|(quote, apostrophe)| escape(quote, apostrophe)).collect()
}

fn in_hex(secret: &str) -> [String; 2] {
    let lower: String = secret.bytes().map(|byte| format!("{byte:02x}")).collect();
    let upper = lower.to_uppercase();
    [lower, upper]
}

/// As files of other systems have text, the lower byte first and the higher byte first.
fn in_utf16(secret: &str) -> [Vec<u8>; 2] {
    let bytes = |of: fn(u16) -> [u8; 2]| secret.encode_utf16().flat_map(of).collect();
    [bytes(u16::to_le_bytes), bytes(u16::to_be_bytes)]
}

/// As a part of something longer in base64, wherever it stands in there: the digits that depend on nothing else.
fn in_base64(secret: &str) -> Vec<String> {
    let mut written = Vec::new();
    for before in 0..3 {
        let bytes = [&[0; 2][..before], secret.as_bytes()].concat();
        let digits = (before * 8).div_ceil(6)..bytes.len() * 8 / 6;
        written.extend(
            [STANDARD_NO_PAD.encode(&bytes), URL_SAFE_NO_PAD.encode(&bytes)]
                .map(|text| text[digits.clone()].to_owned()),
        );
    }
    written
}
