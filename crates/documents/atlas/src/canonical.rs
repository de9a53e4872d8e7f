//! One text for one document, as RFC 8785 has it: members in order of their names, numbers in their shortest form, no
//! spaces. Whole numbers are kept exactly, also those that a browser would round.
//!
//! U+0000 becomes a space: not every database can hold it, and no font shows it.

use serde_json::{Number, Value};
use std::fmt::Write as _;

/// The canonical text of a document.
pub(crate) fn text(value: &Value) -> String {
    let mut out = String::new();
    write(value, &mut out);
    out
}

fn write(value: &Value, out: &mut String) {
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(value) => out.push_str(if *value { "true" } else { "false" }),
        Value::Number(value) => number(value, out),
        Value::String(text) => string(text, out),
        Value::Array(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                write(item, out);
            }
            out.push(']');
        }
        Value::Object(members) => {
            let mut sorted: Vec<(&String, &Value)> = members.iter().collect();
            sorted.sort_by(|(one, _), (other, _)| one.encode_utf16().cmp(other.encode_utf16()));
            out.push('{');
            for (index, (name, value)) in sorted.into_iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                string(name, out);
                out.push(':');
                write(value, out);
            }
            out.push('}');
        }
    }
}

fn string(text: &str, out: &mut String) {
    // Its escapes are those of the RFC.
    out.push_str(&Value::String(text.replace('\0', " ")).to_string());
}

/// Writing to a `String` cannot fail.
fn number(number: &Number, out: &mut String) {
    let Some(value) = number.as_f64().filter(|_| number.is_f64()) else {
        let _ = write!(out, "{number}");
        return;
    };
    let size = value.abs();
    let _ = if size == 0.0 {
        write!(out, "0")
    } else if (1e-6..1e21).contains(&size) {
        write!(out, "{value}")
    } else if size < 1.0 {
        write!(out, "{value:e}")
    } else {
        write!(out, "{}", format!("{value:e}").replace('e', "e+"))
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_has_one_text() {
        fn check(json: &str, expected: &str) {
            assert_eq!(text(&serde_json::from_str(json).unwrap()), expected, "{json}");
        }
        check(r#"{ "b": 1, "a": [ true, null, "x" ] }"#, r#"{"a":[true,null,"x"],"b":1}"#);
        check(
            "[300.0, 13.4, -0.0, 1e21, 1.5e-7, 0.000001, 1e20]",
            "[300,13.4,0,1e+21,1.5e-7,0.000001,100000000000000000000]",
        );
        check("[9007199254740993, -1, 18446744073709551615]", "[9007199254740993,-1,18446744073709551615]");
        check(r#"["\u0000\u001f\n\"é\u20ac"]"#, "[\" \\u001f\\n\\\"é€\"]");
        // In order of UTF-16, where a smiley, which needs two units, comes before a letter of the private area.
        check("{\"\u{e000}\":1,\"\u{1f600}\":2,\"a\":3}", "{\"a\":3,\"\u{1f600}\":2,\"\u{e000}\":1}");
    }

    #[test]
    fn the_text_of_a_text_is_itself() {
        let places: Vec<f64> = (0..1000).map(|n| f64::from(n * 359_999 - 180_000_000) / 1e6).collect();
        let once = text(&serde_json::json!({ "z": places, "a": { "é": 2.0e-9 } }));
        assert_eq!(text(&serde_json::from_str(&once).unwrap()), once);
    }

    #[test]
    fn every_number_is_read_as_it_was_written() {
        // Any bits will do, as long as they are the same every time.
        let mut bits = 0x9E37_79B9_7F4A_7C15_u64;
        for _ in 0..100_000 {
            bits = bits.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let number = f64::from_bits(bits);
            if number.is_finite() {
                let once = text(&serde_json::json!(number));
                let read: Value = serde_json::from_str(&once).unwrap();
                assert_eq!((read.as_f64(), text(&read)), (Some(number), once), "{number:e}");
            }
        }
    }
}
