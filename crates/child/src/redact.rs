//! Hides secrets in whatever a program says, in every form that they are likely to take.

mod forms;

use aho_corasick::{AhoCorasick, MatchKind};
use serde_json::Value;
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

/// What stands where a secret was. Nothing of it is left, not its length either.
pub const HIDDEN: &str = "***";
/// A shorter secret would be found everywhere, in words and numbers that have nothing to do with it.
pub const SECRET_CHARS_MIN: usize = 4;

/// Hides the secrets of one run. Cheap to clone; all clones know what is added to one.
#[derive(Clone, Default)]
pub struct Redactor {
    shared: Arc<RwLock<Shared>>,
}

#[derive(Default)]
struct Shared {
    forms: BTreeSet<Vec<u8>>,
    finder: Option<AhoCorasick>,
}

impl Redactor {
    /// Hides these secrets.
    pub fn new<'a>(secrets: impl IntoIterator<Item = &'a Value>) -> Self {
        let redactor = Self::default();
        redactor.add_all(secrets);
        redactor
    }

    /// Hides one more from now on: text, or everything in a value.
    pub fn add(&self, value: &Value) {
        self.add_all([value]);
    }

    /// Hides more from now on.
    pub fn add_all<'a>(&self, values: impl IntoIterator<Item = &'a Value>) {
        let mut shared = self.shared.write().unwrap_or_else(PoisonError::into_inner);
        values.into_iter().for_each(|value| forms::of_value(value, &mut shared.forms));
        let finder = AhoCorasick::builder().match_kind(MatchKind::LeftmostLongest).build(&shared.forms);
        // Only a set of more patterns than fit in memory is refused.
        shared.finder = finder.ok().filter(|_| !shared.forms.is_empty());
    }

    /// Hides secrets in bytes that are all there.
    pub fn bytes<'a>(&self, bytes: &'a [u8]) -> Cow<'a, [u8]> {
        let shared = self.shared.read().unwrap_or_else(PoisonError::into_inner);
        match &shared.finder {
            Some(finder) if finder.is_match(bytes) => {
                let mut shown = Vec::with_capacity(bytes.len());
                finder.replace_all_with_bytes(bytes, &mut shown, |_, _, shown| {
                    shown.extend_from_slice(HIDDEN.as_bytes());
                    true
                });
                shown.into()
            }
            Some(_) | None => bytes.into(),
        }
    }

    /// Hides secrets in a text that is all there.
    pub fn text<'a>(&self, text: &'a str) -> Cow<'a, str> {
        match self.bytes(text.as_bytes()) {
            Cow::Borrowed(_) => text.into(),
            Cow::Owned(shown) => String::from_utf8_lossy(&shown).into_owned().into(),
        }
    }

    /// Hides secrets in a value: in its texts, its numbers and the names of its fields.
    pub fn value(&self, value: Value) -> Value {
        match value {
            Value::String(text) => self.text(&text).into_owned().into(),
            Value::Number(number) => match self.text(&number.to_string()) {
                Cow::Borrowed(_) => Value::Number(number),
                Cow::Owned(shown) => shown.into(),
            },
            Value::Array(items) => items.into_iter().map(|item| self.value(item)).collect(),
            Value::Object(fields) => {
                let shown =
                    |(name, value): (String, Value)| (self.text(&name).into_owned(), self.value(value));
                fields.into_iter().map(shown).collect()
            }
            other @ (Value::Null | Value::Bool(_)) => other,
        }
    }

    /// Whether there is nothing to hide.
    pub fn is_empty(&self) -> bool {
        self.shared.read().unwrap_or_else(PoisonError::into_inner).forms.is_empty()
    }

    /// Whether a secret is in there.
    pub fn finds(&self, bytes: &[u8]) -> bool {
        let shared = self.shared.read().unwrap_or_else(PoisonError::into_inner);
        shared.finder.as_ref().is_some_and(|finder| finder.is_match(bytes))
    }

    /// How many bytes at the end may be the beginning of a secret.
    fn unsure(&self, bytes: &[u8]) -> usize {
        let shared = self.shared.read().unwrap_or_else(PoisonError::into_inner);
        let longest = |form: &Vec<u8>| {
            let room = bytes.len().min(form.len() - 1);
            (1..=room).rev().find(|length| bytes.ends_with(&form[..*length])).unwrap_or(0)
        };
        shared.forms.iter().map(longest).max().unwrap_or(0)
    }
}

impl fmt::Debug for Redactor {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Redactor")
    }
}

/// Hides secrets in bytes that come piece by piece, however the pieces cut them.
#[derive(Debug)]
pub(crate) struct Stream {
    redactor: Redactor,
    /// What may be the beginning of a secret.
    held: Vec<u8>,
}

impl Stream {
    /// A stream whose secrets are hidden.
    pub(crate) fn new(redactor: Redactor) -> Self {
        Self { redactor, held: Vec::new() }
    }

    /// Takes in a piece and gives out what may be shown by now.
    pub(crate) fn push(&mut self, piece: &[u8]) -> Vec<u8> {
        self.held.extend_from_slice(piece);
        let sure = self.held.len() - self.redactor.unsure(&self.held);
        let mut shown = Vec::with_capacity(sure);
        let mut from = 0;
        {
            let shared = self.redactor.shared.read().unwrap_or_else(PoisonError::into_inner);
            let found = shared.finder.iter().flat_map(|finder| finder.find_iter(&self.held));
            for found in found.take_while(|found| found.start() < sure) {
                shown.extend_from_slice(&self.held[from..found.start()]);
                shown.extend_from_slice(HIDDEN.as_bytes());
                from = found.end();
            }
        }
        // A secret that was found may reach into what could be the beginning of another.
        let end = sure.max(from);
        shown.extend_from_slice(&self.held[from..end]);
        self.held.drain(..end);
        shown
    }

    /// Gives out the rest. The beginning of a secret that was cut off is hidden, too.
    pub(crate) fn finish(&mut self) -> Vec<u8> {
        let held = std::mem::take(&mut self.held);
        let mut shown = self.redactor.bytes(&held).into_owned();
        if self.redactor.unsure(&shown) >= SECRET_CHARS_MIN {
            shown.truncate(shown.len() - self.redactor.unsure(&shown));
            shown.extend_from_slice(HIDDEN.as_bytes());
        }
        shown
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base64::Engine as _;
    use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
    use serde_json::json;

    const PASSWORD: &str = "p\"ä/ss <w>&rd'1+";

    fn redactor() -> Redactor {
        let key = json!({ "pin": 48_213, "lines": "-----BEGIN-----\nabcdefghij\nklmnopqrst" });
        Redactor::new(&[json!(PASSWORD), key, json!("abc")])
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
            let mut shown: Vec<u8> =
                text.as_bytes().chunks(size).flat_map(|piece| stream.push(piece)).collect();
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
        let redactor = redactor();
        let mut stream = Stream::new(redactor.clone());
        assert_eq!(stream.push(b"key-123456\n"), b"key-123456\n");
        redactor.add(&json!("key-123456"));
        assert_eq!(stream.push(b"key-123456\n"), b"***\n");
    }
}
