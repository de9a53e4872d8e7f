//! That secrets are hidden, in whatever form and however they come.

use super::*;
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use serde_json::json;
use std::sync::LazyLock;

const PASSWORD: &str = "p\"ä/ss <w>&rd'1+";

/// `base32` of the password, with 0 to 4 letters in front of it.
const BASE32: [&str; 5] = [
    "OARMHJBPONZSAPDXHYTHEZBHGEVQ====",
    "MFYCFQ5EF5ZXGIB4O47CM4TEE4YSW6A=",
    "MFRHAIWDUQXXG4ZAHR3T4JTSMQTTCK3YPE======",
    "MFRGG4BCYOSC643TEA6HOPRGOJSCOMJL",
    "OVZWK4TQELB2IL3TOMQDY5Z6EZZGIJZRFN4HS6Q=",
];

/// Made once: all its clones are the same one.
static REDACTOR: LazyLock<Redactor> = LazyLock::new(fresh);

fn fresh() -> Redactor {
    let key = json!({ "pin": 48_213, "lines": "-----BEGIN-----\nabcdefghij\nklmnopqrst" });
    Redactor::new(&[json!(PASSWORD), key, json!("abc")])
}

fn redactor() -> Redactor {
    REDACTOR.clone()
}

fn check(text: &str) {
    let shown = redactor().text(text).into_owned();
    assert!(shown.contains(HIDDEN), "{text} was shown as {shown}");
    assert!(!redactor().finds(shown.as_bytes()));
}

#[test]
fn every_form_is_hidden() {
    check(&format!("typed {PASSWORD}."));
    check(&json!({ "password": PASSWORD }).to_string());
    check(&json!(json!({ "password": PASSWORD }).to_string()).to_string());
    check(r#"p\"\u00e4\/ss <w>&rd'1+"#);
    check("?a=p%22%C3%A4%2Fss%20%3Cw%3E%26rd'1%2B");
    check("?a=p%22%c3%a4%2fss%20%3cw%3e%26rd'1%2b");
    check("a=p%22%C3%A4%2Fss+%3Cw%3E%26rd%271%2B");
    check("<b>p&quot;ä/ss &lt;w&gt;&amp;rd&#39;1+</b>");
    check("<b>p&#34;ä/ss &lt;w&gt;&amp;rd&#x27;1+</b>");
    check(&PASSWORD.bytes().map(|byte| format!("{byte:02x}")).collect::<String>());
    check(&PASSWORD.bytes().map(|byte| format!("{byte:02X}")).collect::<String>());
    check("the pin is 48213");
    check("read: abcdefghij");
}

#[test]
fn base64_is_hidden_wherever_the_secret_stands_in_it() {
    for before in ["", "a", "ab", "user:"] {
        for after in ["", "x", "xy"] {
            let whole = format!("{before}{PASSWORD}{after}");
            check(&STANDARD.encode(&whole));
            check(&URL_SAFE_NO_PAD.encode(&whole));
        }
    }
}

#[test]
fn base32_is_hidden_wherever_the_secret_stands_in_it() {
    for digits in BASE32 {
        check(digits);
        check(&digits.to_lowercase());
    }
}

#[test]
fn a_secret_that_is_read_backwards_is_hidden() {
    check(&PASSWORD.chars().rev().collect::<String>());
}

/// A text as another program writes it, with so many digits on a line.
fn wrapped(digits: &str, columns: usize, end: &str) -> String {
    let lines = digits.as_bytes().chunks(columns).map(|line| std::str::from_utf8(line).unwrap());
    lines.collect::<Vec<_>>().join(end)
}

fn hex(text: &str, separator: &str) -> String {
    text.bytes().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(separator)
}

#[test]
fn escapes_are_read_however_much_of_a_secret_they_are_used_for() {
    let each = |write: fn(char) -> String| PASSWORD.chars().map(write).collect::<String>();
    for text in [
        each(|c| format!("\\u{:04x}", u32::from(c))),
        each(|c| format!("\\u{:04X}", u32::from(c))),
        each(|c| format!("\\u{{{:x}}}", u32::from(c))),
        each(|c| format!("&#{};", u32::from(c))),
        each(|c| format!("&#x{:X};", u32::from(c))),
        each(|c| format!("%u{:04X}", u32::from(c))),
        PASSWORD.bytes().map(|byte| format!("%{byte:02x}")).collect(),
        PASSWORD.bytes().map(|byte| format!("\\x{byte:02x}")).collect(),
        PASSWORD.bytes().map(|byte| format!("\\{byte:03o}")).collect(),
        r#"'p"\xe4/ss <w>&rd\'1+'"#.to_owned(),
        r#"b'p"\xc3\xa4/ss <w>&rd\'1+'"#.to_owned(),
        r#"'p"ä/ss <w>&rd'\''1+'"#.to_owned(),
        r#"'p"ä/ss <w>&rd'"'"'1+'"#.to_owned(),
        r#"$'p"\303\244/ss <w>&rd\'1+'"#.to_owned(),
        r#"p\"ä/ss\ \<w\>\&rd\'1+"#.to_owned(),
        "p&quot;&#xe4;&sol;ss&nbsp;&lt;w&gt;&amp;rd&apos;1&plus;".to_owned(),
        "?a=p%2522%25C3%25A4%252Fss%2520%253Cw%253E%2526rd%25271%252B".to_owned(),
        "p&amp;quot;ä/ss &amp;lt;w&amp;gt;&amp;amp;rd&amp;#39;1+".to_owned(),
        json!(json!(json!([PASSWORD]).to_string()).to_string()).to_string(),
    ] {
        check(&format!("typed {text}."));
    }
}

#[test]
fn digits_are_joined_however_they_are_broken_up() {
    let long =
        format!("-----BEGIN KEY-----\n{}\n{PASSWORD}\n-----END KEY-----\n", "0123456789abcdef".repeat(7));
    let base64 = STANDARD.encode(&long);
    let in_addresses = URL_SAFE_NO_PAD.encode(format!("{}{PASSWORD}", "?>".repeat(18)));
    assert!(in_addresses[..48].contains(['-', '_']), "{in_addresses}");
    for text in [
        wrapped(&in_addresses, 60, "\n"),
        wrapped(&base64, 76, "\n"),
        wrapped(&base64, 64, "\r\n"),
        wrapped(&base64, 64, "\n    "),
        wrapped(&base64, 76, r"\n"),
        json!(wrapped(&base64, 64, "\n")).to_string(),
        wrapped(&hex(&long, ""), 60, "\n"),
        wrapped(&hex(&long, " "), 48, "\n"),
        hex(PASSWORD, " "),
        hex(PASSWORD, ":"),
        hex(PASSWORD, ", "),
        hex(PASSWORD, "-").to_uppercase(),
        hex(PASSWORD, ", 0x"),
        format!("<Buffer {}>", hex(PASSWORD, " ")),
        PASSWORD.bytes().map(|byte| byte.to_string()).collect::<Vec<_>>().join(","),
    ] {
        check(&text);
        in_pieces(&text);
    }
}

#[test]
fn what_is_packed_twice_is_hidden() {
    let json = json!({ "password": PASSWORD }).to_string();
    let utf16: Vec<u8> = format!("echo {PASSWORD}").encode_utf16().flat_map(u16::to_le_bytes).collect();
    for text in [
        STANDARD.encode(STANDARD.encode(format!("user:{PASSWORD}"))),
        STANDARD.encode(URL_SAFE_NO_PAD.encode(PASSWORD)),
        STANDARD.encode(hex(PASSWORD, "")),
        hex(&STANDARD.encode(PASSWORD), ""),
        STANDARD.encode(&json),
        STANDARD.encode(r#"{"password":"p\"\u00e4/ss <w>&rd'1+"}"#),
        STANDARD.encode("?a=p%22%C3%A4%2Fss%20%3Cw%3E%26rd'1%2B"),
        STANDARD.encode(utf16),
        STANDARD.encode(PASSWORD).bytes().map(|byte| format!("%{byte:02X}")).collect(),
    ] {
        check(&text);
    }
}

#[test]
fn a_secret_that_looks_escaped_itself_is_hidden_in_every_form() {
    let secret = r"50%41\n&amp;é";
    let redactor = Redactor::new(&[json!(secret)]);
    for text in
        [secret.to_owned(), json!(secret).to_string(), r"50%41\\n&amp;\u00e9".to_owned(), hex(secret, " ")]
    {
        assert!(redactor.text(&text).contains(HIDDEN), "{text}");
    }
}

#[test]
fn a_secret_in_a_long_text_is_hidden_wherever_it_stands() {
    let redactor = redactor();
    for before in (0..=PASSWORD.len()).map(|part| PIECE_BYTES - part) {
        let text = format!("{}{PASSWORD}\n", ".".repeat(before));
        assert_eq!(redactor.text(&text), format!("{}***\n", ".".repeat(before)));
    }
}

/// However a text comes in pieces, nothing of a secret is left between them.
fn in_pieces(text: &str) {
    let whole = redactor().text(text).into_owned();
    for size in [1, 2, 3, 7, 16, 61, 100] {
        let mut stream = Stream::new(redactor());
        let mut shown: Vec<u8> = text.as_bytes().chunks(size).flat_map(|piece| stream.push(piece)).collect();
        shown.extend(stream.rest());
        assert_eq!(String::from_utf8(shown).unwrap(), whole, "in pieces of {size}");
    }
}

#[test]
fn lines_are_shown_as_they_come_unless_they_may_go_on() {
    let mut stream = Stream::new(redactor());
    for line in
        ["Signing in\n", "took 12:30:48\n", "done at 48\n", "50%\n", "a & b\n", "C:\\\n", "see /v1/jobs/x\n"]
    {
        assert_eq!(stream.push(line.as_bytes()), line.as_bytes(), "{line}");
    }
}

#[test]
fn short_secrets_and_other_words_are_left() {
    assert_eq!(redactor().text("abc and the rest"), "abc and the rest");
    assert_eq!(Redactor::default().text("anything"), "anything");
}

#[test]
fn values_are_hidden_in_texts_numbers_and_names() {
    let value = json!({ PASSWORD: [PASSWORD, 48_213, 7, true, null] });
    assert_eq!(redactor().value(value), json!({ "***": ["***", "***", 7, true, null] }));
}

#[test]
fn pieces_hide_nothing_from_the_redactor() {
    let text = format!("one {PASSWORD} two {PASSWORD}{PASSWORD} p\"ä/s three\n");
    let redactor = redactor();
    for size in 1..text.len() {
        let mut stream = Stream::new(redactor.clone());
        let mut shown: Vec<u8> = text.as_bytes().chunks(size).flat_map(|piece| stream.push(piece)).collect();
        shown.extend(stream.finish());
        assert_eq!(String::from_utf8(shown).unwrap(), "one *** two ****** p\"ä/s three\n", "{size}");
    }
}

#[test]
fn a_stream_shows_what_cannot_be_a_secret_at_once() {
    let mut stream = Stream::new(redactor());
    assert_eq!(stream.push(b"ready\n"), b"ready\n");
    assert_eq!(stream.push(b"ready p\""), b"ready ");
    assert_eq!(stream.finish(), b"p\"");
}

#[test]
fn the_beginning_of_a_secret_that_was_cut_off_is_hidden() {
    let mut stream = Stream::new(redactor());
    assert_eq!(stream.push("typed p\"ä/ss".as_bytes()), b"typed ");
    assert_eq!(stream.finish(), HIDDEN.as_bytes());
}

#[test]
fn a_secret_that_is_born_late_is_hidden_from_then_on() {
    let redactor = fresh();
    let mut stream = Stream::new(redactor.clone());
    assert_eq!(stream.push(b"key-123456\n"), b"key-123456\n");
    redactor.add(&json!("key-123456"));
    assert_eq!(stream.push(b"key-123456\n"), b"***\n");
}

#[test]
fn a_secret_of_many_lines_is_hidden_in_its_usual_forms_and_takes_little() {
    let line = |number: usize| format!("{number:064x}");
    let keys = (0..3000).map(|number| line(number) + "\n").collect::<String>();
    let redactor = Redactor::with_room(50 * keys.len());
    redactor.add(&json!(keys));
    assert!(!redactor.is_overfull());
    for text in [
        line(1234),
        hex(&line(1234), ""),
        STANDARD.encode(line(1234)),
        json!(keys).to_string(),
        wrapped(&STANDARD.encode(&keys), 76, "\n"),
    ] {
        let shown = redactor.text(&text);
        assert!(shown.contains(HIDDEN) && !shown.contains(&text[..40]), "{text} was shown as {shown}");
    }
}

#[test]
fn everything_is_hidden_once_there_is_too_much_to_search_for() {
    let redactor = Redactor::with_room(100_000);
    redactor.add(&json!(PASSWORD));
    let mut stream = Stream::new(redactor.clone());
    assert_eq!(stream.push(b"ready\n"), b"ready\n");
    let many = |number| json!(format!("token-{number}"));
    (0..1000).for_each(|number| redactor.add(&many(number)));
    assert!(redactor.is_overfull() && !redactor.is_empty());
    assert_eq!(stream.push(b"token-0\n"), HIDDEN.as_bytes());
    assert_eq!(stream.finish(), b"");
    assert_eq!(redactor.value(json!([7, PASSWORD, "ready"])), json!([HIDDEN, HIDDEN, HIDDEN]));
    assert!(redactor.finds(b"ready"));
}
