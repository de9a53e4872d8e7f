//! Labels: the words a rule looks for. All plain labels of a mapping are searched in one pass over the text, so a
//! long list costs no more than a short one.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ops::{Deref, Range};
use std::sync::{Arc, OnceLock};

use aho_corasick::{AhoCorasick, AhoCorasickKind, MatchKind};
use regex::{Regex, RegexBuilder};

use crate::sheet::{Sheet, TextRow, fold};

/// Largest compiled size of one regular expression: a mapping is somebody else's text.
const REGEX_BYTES_MAX: usize = 1 << 20;
/// Longest regular expression or label that is taken.
pub(crate) const PATTERN_CHARS_MAX: usize = 1000;

/// Places of one label that are looked at.
const LABEL_HITS_MAX: usize = 2_000;
/// Labels in one row that are looked at; they are compared with each other, so time grows with the square.
const ROW_HITS_MAX: usize = 400;

/// Which labels compete: a label inside a longer one of the same group is not meant ("Date" in "Due Date").
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Group {
    /// Anchors of fields.
    Anchor,
    /// Headings of columns of one table.
    Head(usize),
    /// Ends of tables, bounds of sections.
    Bound,
    /// Words that tell where a document is from.
    Hint,
}

/// A label's number within its mapping.
pub(crate) type LabelId = usize;

/// Where a label stands.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Hit {
    /// Index of the page.
    pub page: usize,
    /// Index of the row.
    pub row: usize,
    /// Characters of the row.
    pub chars: Range<usize>,
}

/// A regular expression that is compiled when it is first used.
#[derive(Debug)]
pub(crate) struct Pattern {
    text: String,
    /// The same for all who have the same text.
    regex: Arc<OnceLock<Regex>>,
}

impl Deref for Pattern {
    type Target = Regex;

    fn deref(&self) -> &Regex {
        let compiled = || compile(&self.text).expect("a pattern is compiled once when its file is checked");
        self.regex.get_or_init(compiled)
    }
}

/// Whether patterns are compiled at once, to find mistakes in them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Care {
    /// They are somebody's, and may be wrong.
    #[default]
    Check,
    /// They are known to be sound.
    Trust,
}

/// Collects labels while a mapping is compiled.
#[derive(Debug, Default)]
pub(crate) struct LabelsBuilder {
    care: Care,
    /// Patterns by their text.
    regexes: RefCell<BTreeMap<String, Arc<OnceLock<Regex>>>>,
    plain: Vec<(String, Group)>,
    plain_ids: BTreeMap<(String, Group), LabelId>,
    patterns: Vec<(Pattern, LabelId)>,
    ids: Vec<usize>,
    /// Labels of fields, for lists that name a field instead.
    known: BTreeMap<String, Vec<String>>,
}

/// All labels of a mapping, ready to be found.
#[derive(Debug)]
pub(crate) struct Labels {
    automaton: AhoCorasick,
    /// By pattern of the automaton: group, and the ids that want it.
    plain: Vec<(Group, LabelId)>,
    patterns: Vec<(Pattern, LabelId)>,
    count: usize,
}

/// Hits by label.
#[derive(Debug, Default)]
pub(crate) struct Hits {
    by_label: Vec<Vec<Hit>>,
    /// Anchors that surely are labels, by page and row, to see where one value ends and the next label begins.
    anchors: BTreeMap<(usize, usize), Vec<Range<usize>>>,
    /// All anchors, also those inside a sentence.
    all: BTreeMap<(usize, usize), Vec<Range<usize>>>,
}

impl LabelsBuilder {
    /// An empty one.
    pub(crate) fn new(care: Care) -> Self {
        Self { care, ..Self::default() }
    }

    /// Tells the labels of fields.
    pub(crate) fn know(&mut self, fields: BTreeMap<String, Vec<String>>) {
        self.known = fields;
    }

    /// Adds the labels of a field.
    pub(crate) fn add_known(&mut self, field: &str, group: Group) -> Result<Vec<LabelId>, String> {
        let labels = self.known.get(field).cloned().ok_or_else(|| format!("there is no field {field}"))?;
        labels.iter().filter(|label| !label.starts_with('@')).map(|label| self.add(label, group)).collect()
    }

    /// A pattern, checked where it may be wrong.
    pub(crate) fn pattern(&self, text: &str) -> Result<Pattern, String> {
        let mut regexes = self.regexes.borrow_mut();
        let regex = match (regexes.get(text), self.care) {
            (Some(known), _) => known.clone(),
            (None, Care::Check) => Arc::new(OnceLock::from(compile(text)?)),
            (None, Care::Trust) => Arc::default(),
        };
        regexes.entry(text.to_owned()).or_insert_with(|| regex.clone());
        Ok(Pattern { text: text.to_owned(), regex })
    }

    /// Adds a label and gives its number. Between slashes it is a regular expression.
    pub(crate) fn add(&mut self, term: &str, group: Group) -> Result<LabelId, String> {
        if let Some(pattern) = as_pattern(term) {
            let id = self.ids.len();
            self.ids.push(usize::MAX);
            let pattern = self.pattern(pattern)?;
            self.patterns.push((pattern, id));
            return Ok(id);
        }
        let text = normal(term);
        if text.is_empty() {
            return Err("a label must hold at least one letter or digit".into());
        }
        if let Some(id) = self.plain_ids.get(&(text.clone(), group)) {
            return Ok(*id);
        }
        let id = self.ids.len();
        self.ids.push(self.plain.len());
        self.plain_ids.insert((text.clone(), group), id);
        self.plain.push((text, group));
        Ok(id)
    }

    /// Builds the searcher.
    pub(crate) fn build(self) -> Result<Labels, String> {
        let automaton = AhoCorasick::builder()
            .match_kind(MatchKind::Standard)
            // A little slower to run than a table of all steps, much quicker to build.
            .kind(Some(AhoCorasickKind::ContiguousNFA))
            .build(self.plain.iter().map(|(text, _)| text))
            .map_err(|e| format!("the labels are too many: {e}"))?;
        let mut plain: Vec<(Group, LabelId)> = self.plain.iter().map(|(_, group)| (*group, 0)).collect();
        for (id, at) in self.ids.iter().enumerate() {
            if let Some(entry) = plain.get_mut(*at) {
                entry.1 = id;
            }
        }
        Ok(Labels { automaton, plain, patterns: self.patterns, count: self.ids.len() })
    }
}

/// The inside of `/…/`.
pub(crate) fn as_pattern(term: &str) -> Option<&str> {
    term.strip_prefix('/')?.strip_suffix('/')
}

/// A label as it is compared: folded, spaces tidied, without a colon at its end.
pub(crate) fn normal(term: &str) -> String {
    let folded = fold(term);
    let tidy = folded.split_whitespace().collect::<Vec<_>>().join(" ");
    tidy.trim_end_matches([':', ' ']).to_owned()
}

/// Compiles a pattern within limits, ignoring case unless it says otherwise.
pub(crate) fn compile(pattern: &str) -> Result<Regex, String> {
    if pattern.chars().count() > PATTERN_CHARS_MAX {
        return Err(format!("a pattern may have {PATTERN_CHARS_MAX} characters at most"));
    }
    RegexBuilder::new(&with_small_classes(pattern))
        .case_insensitive(true)
        .multi_line(true)
        .size_limit(REGEX_BYTES_MAX)
        .dfa_size_limit(REGEX_BYTES_MAX)
        .build()
        .map_err(|e| {
            let text = e.to_string();
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

impl Labels {
    /// Looks for all labels at once.
    pub(crate) fn find(&self, sheet: &Sheet<'_>) -> Hits {
        let mut hits = Hits { by_label: vec![Vec::new(); self.count], ..Hits::default() };
        for (page, row_at, row) in sheet.rows() {
            let found = self.find_in(row);
            for (group, id, chars) in found {
                if group == Some(Group::Anchor) {
                    hits.all.entry((page, row_at)).or_default().push(chars.clone());
                    if stands_alone(row, &chars) {
                        hits.anchors.entry((page, row_at)).or_default().push(chars.clone());
                    }
                }
                hits.by_label[id].push(Hit { page, row: row_at, chars });
            }
        }
        hits
    }

    fn find_in(&self, row: &TextRow) -> Vec<(Option<Group>, LabelId, Range<usize>)> {
        let text = &row.folded;
        let mut found: Vec<(Option<Group>, LabelId, Range<usize>)> = Vec::new();
        for m in self.automaton.find_overlapping_iter(text.as_bytes()) {
            if found.len() >= ROW_HITS_MAX {
                break;
            }
            if is_word(text, m.start(), m.end()) && !begins_number(&text[m.end()..]) {
                let (group, id) = self.plain[m.pattern().as_usize()];
                found.push((Some(group), id, char_range(text, m.start()..m.end())));
            }
        }
        let inside =
            |a: &Range<usize>, b: &Range<usize>| a.start >= b.start && a.end <= b.end && a.len() < b.len();
        let mut kept: Vec<_> = found
            .iter()
            .filter(|(group, _, chars)| {
                !found.iter().any(|(g, _, longer)| g == group && inside(chars, longer))
            })
            .cloned()
            .collect();
        for (pattern, id) in &self.patterns {
            for captures in pattern.captures_iter(&row.text) {
                let m = captures.get(1).or_else(|| captures.get(0));
                if let Some(m) = m.filter(|m| !m.is_empty()) {
                    kept.push((None, *id, char_range(&row.text, m.range())));
                }
            }
        }
        kept
    }
}

/// Whether a label is followed by a colon or by nothing: else it may be part of a name ("Lieferant GmbH").
fn stands_alone(row: &TextRow, chars: &Range<usize>) -> bool {
    let next = row.text.chars().skip(chars.end).find(|c| *c != ' ');
    next.is_none_or(|c| matches!(c, ':' | '\t' | '='))
}

/// "PO" in "PO-10525" is part of a number, not its label.
fn begins_number(behind: &str) -> bool {
    let mut next = behind.chars();
    next.next().is_some_and(|c| matches!(c, '-' | '/' | '_'))
        && next.next().is_some_and(|c| c.is_ascii_digit())
}

/// Whether the match is not part of a longer word.
pub(crate) fn is_word(text: &str, start: usize, end: usize) -> bool {
    let is_open = |c: Option<char>| c.is_none_or(|c| !c.is_alphanumeric() && c != '_');
    let first = text[start..].chars().next();
    let last = text[..end].chars().next_back();
    (first.is_some_and(|c| !c.is_alphanumeric()) || is_open(text[..start].chars().next_back()))
        && (last.is_some_and(|c| !c.is_alphanumeric()) || is_open(text[end..].chars().next()))
}

/// Bytes to characters.
pub(crate) fn char_range(text: &str, bytes: Range<usize>) -> Range<usize> {
    if text.is_ascii() {
        return bytes;
    }
    let start = text[..bytes.start].chars().count();
    start..start + text[bytes].chars().count()
}

impl Hits {
    /// Places of any of the labels, in reading order.
    pub(crate) fn of(&self, labels: &[LabelId]) -> Vec<Hit> {
        let places = labels.iter().flat_map(|id| self.by_label[*id].iter().take(LABEL_HITS_MAX).cloned());
        let mut all: Vec<Hit> = places.collect();
        all.sort_by_key(|h| (h.page, h.row, h.chars.start));
        all.dedup();
        all
    }

    /// All anchors in a row, whatever follows them.
    pub(crate) fn all_in(&self, page: usize, row: usize) -> &[Range<usize>] {
        self.all.get(&(page, row)).map_or(&[], Vec::as_slice)
    }

    /// How many of the labels stand in the document.
    pub(crate) fn count(&self, labels: &[LabelId]) -> usize {
        labels.iter().filter(|id| !self.by_label[**id].is_empty()).count()
    }

    /// Anchors in a row.
    pub(crate) fn anchors_in(&self, page: usize, row: usize) -> &[Range<usize>] {
        self.anchors.get(&(page, row)).map_or(&[], Vec::as_slice)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sheet::tests::page;

    #[test]
    fn a_label_inside_a_longer_one_is_not_meant() {
        let document =
            page(&[("Due Date: 1 May", 50.0, 50.0), ("Date: 2 May", 50.0, 70.0), ("Update", 50.0, 90.0)]);
        let mut builder = LabelsBuilder::default();
        let date = builder.add("Date", Group::Anchor).unwrap();
        let due = builder.add("Due date:", Group::Anchor).unwrap();
        let labels = builder.build().unwrap();
        let hits = labels.find(&Sheet::new(&document));
        assert_eq!(hits.of(&[due]).len(), 1);
        assert_eq!(hits.of(&[date]), vec![Hit { page: 0, row: 1, chars: 0..4 }]);
    }

    #[test]
    fn a_pattern_marks_its_first_group() {
        let document = page(&[("Rechnung # RE-503 von", 50.0, 50.0)]);
        let mut builder = LabelsBuilder::default();
        let id = builder.add(r"/Rechnung #\s(\S+)/", Group::Anchor).unwrap();
        let hits = builder.build().unwrap().find(&Sheet::new(&document));
        assert_eq!(hits.of(&[id])[0].chars, 11..17);
    }

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
