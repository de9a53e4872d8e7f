//! Regular expressions of mappings: checked when a mapping is loaded, compiled when they are first used.

use std::ops::{Deref, Range};
use std::sync::{Arc, OnceLock};

use regex_automata::meta::Regex;
use regex_automata::util::captures::Captures;
use regex_automata::util::syntax;

/// Largest compiled size of one regular expression: a mapping is somebody else's text.
const REGEX_BYTES_MAX: usize = 1 << 20;
/// Longest regular expression or label that is taken.
const PATTERN_CHARS_MAX: usize = 1000;

/// Characters that mean something in a pattern.
const META: &str = r"\.+*?()|[]{}^$#&-~";

/// A regular expression that is compiled when it is first used.
#[derive(Clone, Debug)]
pub(crate) struct Pattern {
    text: String,
    /// The same for all copies.
    regex: Arc<OnceLock<Regex>>,
}

impl Pattern {
    /// One that is known to be sound, or checked by the caller.
    pub(crate) fn trusted(text: &str) -> Self {
        Self { text: text.to_owned(), regex: Arc::default() }
    }

    /// Compiles it, and says what is wrong with it.
    pub(crate) fn check(&self) -> Result<(), String> {
        let compiled = compile(&self.text)?;
        self.regex.get_or_init(|| compiled);
        Ok(())
    }

    /// The part of the text that it wants: of the first match the first group, or all of it.
    pub(crate) fn first(&self, text: &str) -> Option<Range<usize>> {
        let mut found = self.create_captures();
        self.captures(text, &mut found);
        value_of(&found)
    }
}

impl Deref for Pattern {
    type Target = Regex;

    fn deref(&self) -> &Regex {
        let compiled = || compile(&self.text).expect("a pattern is compiled once when its file is checked");
        self.regex.get_or_init(compiled)
    }
}

/// The first group of a match, or all of it; nothing where that is empty.
pub(crate) fn value_of(found: &Captures) -> Option<Range<usize>> {
    let value = found.get_group(1).or_else(|| found.get_group(0))?;
    (!value.is_empty()).then(|| value.range())
}

/// A pattern for the text itself.
pub(crate) fn escape(text: &str) -> String {
    text.chars().flat_map(|c| META.contains(c).then_some('\\').into_iter().chain([c])).collect()
}

/// Compiles a pattern within limits, ignoring case unless it says otherwise. Rows are short and a child compiles the pattern
/// for one document: what would make searches faster takes longer to build than it saves.
pub(crate) fn compile(pattern: &str) -> Result<Regex, String> {
    if pattern.chars().count() > PATTERN_CHARS_MAX {
        return Err(format!("a pattern may have {PATTERN_CHARS_MAX} characters at most"));
    }
    Regex::builder()
        .configure(
            Regex::config()
                .auto_prefilter(false)
                .hybrid(false)
                .onepass(false)
                .dfa(false)
                .nfa_size_limit(Some(REGEX_BYTES_MAX)),
        )
        .syntax(syntax::Config::new().case_insensitive(true).multi_line(true))
        .build(&with_small_classes(pattern))
        .map_err(|e| {
            let text = e.syntax_error().map_or_else(|| e.to_string(), ToString::to_string);
            format!("bad pattern: {}", text.lines().last().unwrap_or_default().trim_start_matches("error: "))
        })
}

/// Digits, blanks and letters as pages print them. In all of Unicode there are some six hundred digits and as many ranges
/// of letters, and an automaton for them takes longer to build than a page takes to read. Far from Latin a whole block counts
/// as letters, and blocks that know capitals are kept small: each of their letters is looked up.
fn with_small_classes(pattern: &str) -> String {
    const BLANKS: &str = r" \t\n\r\x{a0}\x{2007}\x{2009}\x{202f}";
    const LETTERS: &str = concat!(
        r"A-Za-z\x{aa}\x{b5}\x{ba}\x{c0}-\x{d6}\x{d8}-\x{f6}\x{f8}-\x{24f}\x{370}-\x{52f}\x{5d0}-\x{5ea}",
        r"\x{620}-\x{6ff}\x{900}-\x{e7f}\x{1e00}-\x{1fff}\x{3040}-\x{9fff}\x{ac00}-\x{d7a3}"
    );
    // Where case is ignored, capitals are letters like others.
    let is_letters = |class: &str| class == "{L}" || class == "{Lu}" && !pattern.contains("(?-i");
    let mut out = String::with_capacity(pattern.len());
    let mut chars = pattern.chars();
    while let Some(c) = chars.next() {
        match (c, if c == '\\' { chars.next() } else { None }) {
            ('\\', Some('d')) => out.push_str("[0-9]"),
            ('\\', Some('D')) => out.push_str("[^0-9]"),
            ('\\', Some('w')) => out.push_str(&format!("[{LETTERS}0-9_\\x{{300}}-\\x{{36f}}]")),
            ('\\', Some('s')) => out.push_str(&format!("[{BLANKS}]")),
            ('\\', Some('S')) => out.push_str(&format!("[^{BLANKS}]")),
            ('\\', Some('p')) => match chars.as_str().split_inclusive('}').next() {
                Some(class) if is_letters(class) => {
                    out.push_str(&format!("[{LETTERS}]"));
                    chars = chars.as_str()[class.len()..].chars();
                }
                _ => out.push_str("\\p"),
            },
            (c, escaped) => out.extend(std::iter::once(c).chain(escaped)),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_and_blanks_are_those_of_pages_also_inside_a_class() {
        for (pattern, text) in [
            (r"^\d+$", "0189"),
            (r"^[\d.,]+$", "1.234,5"),
            (r"^\S+\s\S+$", "a\u{a0}b"),
            (r"^[^\s]+$", "ab"),
            (r"^\\d$", r"\d"),
        ] {
            assert!(compile(pattern).unwrap().is_match(text), "{pattern} on {text}");
        }
        assert!(!compile(r"^\d$").unwrap().is_match("٣"));
    }

    #[test]
    fn patterns_have_limits() {
        assert!(compile(&"a".repeat(2000)).is_err());
        assert!(compile("(a{1000}){1000}").is_err());
    }
}
