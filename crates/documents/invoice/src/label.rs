//! Labels: the words a rule looks for. All plain labels of a mapping are searched in one pass over the text, so a
//! long list costs no more than a short one.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

use crate::pattern::{Pattern, value_of};
use crate::sheet::{Sheet, TextRow, fold_char};

/// Places of one label that are looked at.
const LABEL_HITS_MAX: usize = 2_000;
/// Labels in one row that are looked at; they are compared with each other, so time grows with the square.
const ROW_HITS_MAX: usize = 400;

/// Which labels compete: a label inside a longer one of the same group is not meant ("Date" in "Due Date").
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
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
pub(crate) struct LabelsBuilder<'a> {
    care: Care,
    /// Patterns by their text.
    regexes: RefCell<BTreeMap<String, Pattern>>,
    labels: Labels,
    /// Labels of fields, for lists that name a field instead.
    known: BTreeMap<&'a str, &'a [String]>,
}

/// All labels of a mapping, ready to be found.
#[derive(Debug, Default)]
pub(crate) struct Labels {
    /// Plain labels by their first word, or by their first mark. Some thousand labels are ready in less than a
    /// millisecond so; an automaton for them takes longer to build than a page takes to read.
    starts: HashMap<String, Vec<usize>>,
    /// Text of each plain label, its group, and its id.
    plain: Vec<(String, Group, LabelId)>,
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

impl<'a> LabelsBuilder<'a> {
    /// An empty one that knows the labels of fields.
    pub(crate) fn new(care: Care, known: BTreeMap<&'a str, &'a [String]>) -> Self {
        Self { care, known, ..Self::default() }
    }

    /// Adds the labels of a field.
    pub(crate) fn add_known(&mut self, field: &str, group: Group) -> Result<Vec<LabelId>, String> {
        let labels = *self.known.get(field).ok_or_else(|| format!("there is no field {field}"))?;
        labels.iter().filter(|label| !label.starts_with('@')).map(|label| self.add(label, group)).collect()
    }

    /// A pattern, checked where it may be wrong.
    pub(crate) fn pattern(&self, text: &str) -> Result<Pattern, String> {
        if let Some(known) = self.regexes.borrow().get(text) {
            return Ok(known.clone());
        }
        let pattern = Pattern::trusted(text);
        if self.care == Care::Check {
            pattern.check()?;
        }
        self.regexes.borrow_mut().insert(text.to_owned(), pattern.clone());
        Ok(pattern)
    }

    /// Adds a label and gives its number. Between slashes it is a regular expression.
    pub(crate) fn add(&mut self, term: &str, group: Group) -> Result<LabelId, String> {
        if let Some(pattern) = as_pattern(term) {
            let pattern = self.pattern(pattern)?;
            let id = self.labels.next_id();
            self.labels.patterns.push((pattern, id));
            return Ok(id);
        }
        let text = normal(term);
        if text.is_empty() {
            return Err("a label must hold at least one letter or digit".into());
        }
        Ok(self.labels.add_plain(text, group))
    }

    /// All that was added.
    pub(crate) fn build(self) -> Labels {
        self.labels
    }
}

/// The inside of `/…/`.
pub(crate) fn as_pattern(term: &str) -> Option<&str> {
    term.strip_prefix('/')?.strip_suffix('/')
}

/// A label as it is compared: folded, spaces tidied, without a colon at its end.
pub(crate) fn normal(term: &str) -> String {
    let mut text = String::with_capacity(term.len());
    for word in term.split_whitespace() {
        if !text.is_empty() {
            text.push(' ');
        }
        text.extend(word.chars().map(fold_char));
    }
    text.truncate(text.trim_end_matches([':', ' ']).len());
    text
}

impl Labels {
    fn next_id(&mut self) -> LabelId {
        self.count += 1;
        self.count - 1
    }

    /// Adds a label that is no pattern, once in each group.
    pub(crate) fn add_plain(&mut self, text: String, group: Group) -> LabelId {
        if let Some(known) = self.id_of(&text, group) {
            return known;
        }
        let at = self.plain.len();
        match self.starts.get_mut(first_word(&text)) {
            Some(bucket) => bucket.push(at),
            None => {
                self.starts.insert(first_word(&text).to_owned(), vec![at]);
            }
        }
        let id = self.next_id();
        self.plain.push((text, group, id));
        id
    }

    /// The number of a label that was added.
    pub(crate) fn id_of(&self, text: &str, group: Group) -> Option<LabelId> {
        let bucket = self.starts.get(first_word(text))?;
        let mut same = bucket.iter().map(|at| &self.plain[*at]);
        same.find(|(known, of, _)| known == text && *of == group).map(|(_, _, id)| *id)
    }

    /// Whether a text is a label and nothing else.
    pub(crate) fn is_label(&self, text: &str) -> bool {
        let text = normal(text);
        let bucket = self.starts.get(first_word(&text));
        bucket.into_iter().flatten().any(|at| self.plain[*at].0 == text)
    }

    /// Which labels stand in some folded texts, also inside longer ones.
    pub(crate) fn present(&self, texts: impl Iterator<Item = String>) -> Vec<bool> {
        let mut present = vec![false; self.count];
        for text in texts {
            for (start, word) in word_starts(&text) {
                for at in self.starts.get(word).into_iter().flatten() {
                    let (label, _, id) = &self.plain[*at];
                    present[*id] = present[*id] || stands_at(&text, start, label);
                }
            }
        }
        present
    }

    /// Looks for all labels at once.
    pub(crate) fn find(&self, sheet: &Sheet<'_>) -> Hits {
        let mut hits = Hits { by_label: vec![Vec::new(); self.count], ..Hits::default() };
        for (page, row_at, row) in sheet.rows() {
            let mut found = self.find_in(row);
            join_translations(row, &mut found);
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
        for (start, word) in word_starts(text) {
            for at in self.starts.get(word).into_iter().flatten() {
                let (label, group, id) = &self.plain[*at];
                let end = start + label.len();
                let is_here = stands_at(text, start, label) && !begins_number(&text[end..]);
                if is_here && found.len() < ROW_HITS_MAX {
                    found.push((Some(*group), *id, char_range(text, start..end)));
                }
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
            for found in pattern.captures_iter(&row.text) {
                if let Some(value) = value_of(&found) {
                    kept.push((None, *id, char_range(&row.text, value)));
                }
            }
        }
        kept
    }
}

/// Labels in two languages, "Due Date / Jatuh Tempo", are one: each stands where both do.
fn join_translations(row: &TextRow, found: &mut [(Option<Group>, LabelId, Range<usize>)]) {
    if !row.text.contains('/') {
        return;
    }
    let is_anchor = |group: &Option<Group>| *group == Some(Group::Anchor);
    let anchors: Vec<Range<usize>> =
        found.iter().filter(|(group, ..)| is_anchor(group)).map(|(_, _, chars)| chars.clone()).collect();
    let is_joined = |left: &Range<usize>, right: &Range<usize>| {
        left.end < right.start && row.slice(&(left.end..right.start)).trim_matches(' ') == "/"
    };
    for (_, _, chars) in found.iter_mut().filter(|(group, ..)| is_anchor(group)) {
        let own = chars.clone();
        let second = anchors.iter().find(|other| is_joined(&own, other));
        let first = anchors.iter().find(|other| is_joined(other, &own));
        *chars = first.map_or(own.start, |first| first.start)..second.map_or(own.end, |second| second.end);
    }
}

/// Whether a label is followed by a colon or by nothing: else it may be part of a name ("Lieferant GmbH").
fn stands_alone(row: &TextRow, chars: &Range<usize>) -> bool {
    let next = row.text.chars().skip(chars.end).find(|c| *c != ' ');
    next.is_none_or(|c| matches!(c, ':' | '\t' | '='))
}

/// The word that a text begins with, or the mark.
fn first_word(text: &str) -> &str {
    let Some(first) = text.chars().next() else { return text };
    let end = text.find(|c: char| !c.is_alphanumeric() || parts(first, c)).unwrap_or(text.len());
    &text[..end.max(first.len_utf8())]
}

/// Whether two letters belong to different words though nothing stands between them: "合計12,000円".
fn parts(a: char, b: char) -> bool {
    is_unspaced(a) != is_unspaced(b)
}

/// Whether a letter is of a script that puts no space between words, or none before a number.
fn is_unspaced(c: char) -> bool {
    matches!(c, '\u{e00}'..='\u{eff}' | '\u{2e80}'..='\u{9fff}' | '\u{ac00}'..='\u{d7a3}' | '\u{f900}'..='\u{faff}')
}

/// Where words and marks begin in a text, each with itself.
fn word_starts(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut before: Option<char> = None;
    text.char_indices().filter_map(move |(at, c)| {
        let is_inside =
            before.is_some_and(|b| (b.is_alphanumeric() || b == '_') && !parts(b, c)) && c.is_alphanumeric();
        before = Some(c);
        (!is_inside && !c.is_whitespace()).then(|| (at, first_word(&text[at..])))
    })
}

/// "PO" in "PO-10525" is part of a number, not its label.
fn begins_number(behind: &str) -> bool {
    let mut next = behind.chars();
    next.next().is_some_and(|c| matches!(c, '-' | '/' | '_'))
        && next.next().is_some_and(|c| c.is_ascii_digit())
}

/// Whether a label stands at a place, not as part of a longer word.
fn stands_at(text: &str, start: usize, label: &str) -> bool {
    text[start..].starts_with(label) && is_word(text, start, start + label.len())
}

/// Whether the match is not part of a longer word.
fn is_word(text: &str, start: usize, end: usize) -> bool {
    let is_open = |own: Option<char>, beside: Option<char>| {
        own.zip(beside).is_none_or(|(own, beside)| {
            !own.is_alphanumeric() || (!beside.is_alphanumeric() && beside != '_') || parts(own, beside)
        })
    };
    let (first, last) = (text[start..end].chars().next(), text[start..end].chars().next_back());
    is_open(first, text[..start].chars().next_back()) && is_open(last, text[end..].chars().next())
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
        let labels = builder.build();
        let hits = labels.find(&Sheet::new(&document));
        assert_eq!(hits.of(&[due]).len(), 1);
        assert_eq!(hits.of(&[date]), vec![Hit { page: 0, row: 1, chars: 0..4 }]);
    }

    #[test]
    fn labels_in_two_languages_are_one() {
        let document = page(&[("Due Date / Jatuh Tempo: 1 May", 50.0, 50.0)]);
        let mut builder = LabelsBuilder::default();
        let english = builder.add("Due Date", Group::Anchor).unwrap();
        let indonesian = builder.add("Jatuh Tempo", Group::Anchor).unwrap();
        let hits = builder.build().find(&Sheet::new(&document));
        assert_eq!(hits.of(&[english])[0].chars, 0..22);
        assert_eq!(hits.of(&[indonesian])[0].chars, 0..22);
    }

    #[test]
    fn a_pattern_marks_its_first_group() {
        let document = page(&[("Rechnung # RE-503 von", 50.0, 50.0)]);
        let mut builder = LabelsBuilder::default();
        let id = builder.add(r"/Rechnung #\s(\S+)/", Group::Anchor).unwrap();
        let hits = builder.build().find(&Sheet::new(&document));
        assert_eq!(hits.of(&[id])[0].chars, 11..17);
    }
}
