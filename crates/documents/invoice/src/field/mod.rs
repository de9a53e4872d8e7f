//! Header values: from a rule to candidates, each with its place and the facts that speak for it.

mod area;
mod direction;
mod lines;
mod party;

use crate::label::Hits;
use crate::mapping::FieldRule;
use crate::pattern::{Pattern, value_of};
use crate::record::{Place, Typed};
use crate::sheet::{Sheet, Span};
use crate::values::{self, Kind, Locale};

pub(crate) use area::{areas, begins_piece};
use direction::anchored;
use lines::{select_lines, zone_lines};

/// What rules look at.
#[derive(Clone, Copy)]
pub(crate) struct Context<'a> {
    pub sheet: &'a Sheet<'a>,
    pub hits: &'a Hits,
    pub locale: &'a Locale,
    /// The type size of most words, in points.
    pub body_size: f32,
}

/// A value that may be meant.
#[derive(Clone, Debug)]
pub(crate) struct Candidate {
    pub typed: Typed,
    pub printed: String,
    pub place: Option<Place>,
    pub rule: String,
    /// 0 to 1: how well the label and the direction fit.
    pub score: f32,
    /// Whether a check digit or a full form vouches for it.
    pub is_sure: bool,
}

/// Text that a rule points at, before it is read.
struct Source {
    span: Span,
    score: f32,
    how: String,
    /// Whether it begins right behind its label.
    is_label_end: bool,
}

impl Source {
    fn new(span: Span, score: f32, how: impl Into<String>) -> Self {
        Self { span, score, how: how.into(), is_label_end: false }
    }
}

/// Texts that a rule may point at before it says nothing any more.
const SOURCES_MAX: usize = 500;
/// More candidates than this for one field say that its rule says nothing.
const CANDIDATES_MAX: usize = 40;

/// Each further way of finding a field counts a little less than the one before.
const ALTERNATIVE_FACTOR: f32 = 0.95;

/// Type smaller than this share of the body's is small print, which seldom holds what an invoice is about.
const SMALL_PRINT: f32 = 0.6;

const SMALL_PRINT_FACTOR: f32 = 0.8;

/// A value that words part from its label is less surely the label's.
const WORDS_BETWEEN_FACTOR: f32 = 0.8;

/// Money is mostly printed with its decimals, or large enough to have its thousands parted; a bare number may be anything.
const BARE_NUMBER_FACTOR: f32 = 0.96;

/// Everything the rule and its alternatives find.
pub(crate) fn candidates(rule: &FieldRule, context: Context<'_>) -> Vec<Candidate> {
    let mut found = candidates_of(rule, context, 1.0);
    let mut factor = 1.0;
    for other in &rule.or {
        factor *= ALTERNATIVE_FACTOR;
        found.extend(candidates_of(other, context, factor));
    }
    found.truncate(CANDIDATES_MAX);
    found
}

fn candidates_of(rule: &FieldRule, context: Context<'_>, factor: f32) -> Vec<Candidate> {
    if let Some(value) = &rule.value {
        let typed = values::constant(rule.kind, value);
        let rule = "a constant of the mapping".into();
        return vec![Candidate {
            typed,
            printed: String::new(),
            place: None,
            rule,
            score: factor,
            is_sure: false,
        }];
    }
    let mut found = Vec::new();
    for source in sources(rule, context) {
        let is_small = source.span.font_size < context.body_size * SMALL_PRINT;
        let factor = if is_small { factor * SMALL_PRINT_FACTOR } else { factor };
        for mut candidate in read(rule, &source, context.locale) {
            candidate.score *= factor;
            found.push(candidate);
        }
        if found.len() >= CANDIDATES_MAX {
            break;
        }
    }
    found
}

/// Reads a source as the rule's kind; a pattern in `take` cuts it first.
fn read(rule: &FieldRule, source: &Source, locale: &Locale) -> Vec<Candidate> {
    let Some(cut) = take(&source.span, rule.take.as_ref()) else { return Vec::new() };
    let kind = if rule.codes.is_empty() { rule.kind } else { Kind::Text };
    values::read_all(kind, &cut.text, locale)
        .into_iter()
        .filter_map(|reading| {
            let rect = cut.rect(&reading.chars)?;
            let printed = values::tidy(&cut.part(&reading.chars).text);
            if rule.not.iter().any(|pattern| pattern.is_match(&printed)) {
                return None;
            }
            let typed = coded(reading.typed, &rule.codes)?;
            let mut score = source.score;
            if kind == Kind::Currency && !reading.is_sure {
                // A code says more than a mark: "$" is several currencies.
                score *= 0.9;
            }
            if kind == Kind::Amount && !reading.is_sure && !printed.contains(['.', ',', '\'', '’']) {
                score *= BARE_NUMBER_FACTOR;
            }
            if source.is_label_end && has_words_before(&cut.text, reading.chars.start) {
                score *= WORDS_BETWEEN_FACTOR;
            }
            let place = Some(Place { page: cut.page, bbox: rect });
            let rule = source.how.clone();
            Some(Candidate { typed, printed, place, rule, score, is_sure: reading.is_sure })
        })
        .collect()
}

/// Whether three letters or more stand before the value, other than a currency's.
fn has_words_before(text: &str, start: usize) -> bool {
    let head: String = text.chars().take(start).collect();
    let words = head.split(|c: char| !c.is_alphabetic());
    words.filter(|w| !values::currency::is_mark(w)).any(|w| w.chars().count() >= 3)
}

/// The part that the pattern wants: its first group, or all of it.
pub(crate) fn take(span: &Span, pattern: Option<&Pattern>) -> Option<Span> {
    let Some(pattern) = pattern else { return Some(span.clone()) };
    let bytes = pattern.first(&span.text)?;
    Some(span.part(&crate::label::char_range(&span.text, bytes)))
}

/// Printed text to code, where the rule lists codes; what is not listed is no value.
pub(crate) fn coded(typed: Typed, codes: &std::collections::BTreeMap<String, String>) -> Option<Typed> {
    let Typed::Text(text) = &typed else { return Some(typed) };
    if codes.is_empty() {
        return Some(typed);
    }
    let code = codes.iter().find(|(printed, _)| printed.eq_ignore_ascii_case(text))?;
    Some(Typed::Code(code.1.clone()))
}

fn sources(rule: &FieldRule, context: Context<'_>) -> Vec<Source> {
    let areas = rule.within.as_ref().map(|within| areas(within, context));
    let is_allowed = |page: usize, row: usize, x: f32| {
        is_on_page(rule.page, page, context.sheet.pages.len())
            && areas.as_ref().is_none_or(|areas| areas.iter().any(|a| a.holds(page, row, x)))
    };
    let mut sources = Vec::new();
    for hit in context.hits.of(&rule.anchors) {
        let row = context.sheet.row(hit.page, hit.row);
        let x = row.rect(&hit.chars).map_or(0.0, |r| r.x0);
        if sources.len() < SOURCES_MAX && is_allowed(hit.page, hit.row, x) {
            anchored(rule, &hit, context, &mut sources);
        }
    }
    if let Some(pattern) = &rule.find {
        found(pattern, context, &is_allowed, &mut sources);
    }
    if let Some(zone) = rule.zone {
        let lines = zone_lines(zone, context.sheet);
        select_lines(rule, lines, 0.9, "in its zone of the page", &mut sources);
    }
    if let Some(party) = &rule.party {
        sources.extend(party::sources(party, rule, context));
    }
    if rule.anchors.is_empty() && rule.find.is_none() && rule.zone.is_none() && rule.party.is_none() {
        for area in areas.iter().flatten() {
            let lines = area.lines(context);
            select_lines(rule, lines, 0.95, "in its section", &mut sources);
        }
    }
    sources
}

fn is_on_page(wanted: Option<i32>, page: usize, count: usize) -> bool {
    match wanted {
        None => true,
        Some(n) if n > 0 => page + 1 == n.unsigned_abs() as usize,
        Some(n) => page + n.unsigned_abs() as usize == count,
    }
}

/// Where the pattern matches; its first group is the value. A match begins in one row and may end in the next, for
/// titles that wrap.
fn found(
    pattern: &Pattern,
    context: Context<'_>,
    is_allowed: &dyn Fn(usize, usize, f32) -> bool,
    sources: &mut Vec<Source>,
) {
    for (page_at, page) in context.sheet.pages.iter().enumerate() {
        for (row_at, row) in page.rows.iter().enumerate() {
            let mut text = row.text.clone();
            if let Some(next) = page.rows.get(row_at + 1) {
                text.push('\n');
                text.push_str(&next.text);
            }
            for found in pattern.captures_iter(&text) {
                let is_own = found.get_match().is_some_and(|m| m.start() < row.text.len());
                let Some(value) = value_of(&found).filter(|_| is_own) else { continue };
                let chars = crate::label::char_range(&text, value);
                let mut span = row.span(page.page.number, &(0..row.chars.len()));
                if let Some(next) = page.rows.get(row_at + 1).filter(|_| chars.end > row.chars.len()) {
                    span.push_line(&next.span(page.page.number, &(0..next.chars.len())));
                }
                let span = span.part(&chars);
                let x = span.rect(&(0..span.chars.len())).map_or(0.0, |r| r.x0);
                if is_allowed(page_at, row_at, x) {
                    sources.push(Source::new(span, 1.0, "by its pattern"));
                }
            }
        }
    }
}
