//! Which mapping a document is for: every mapping's terms are looked up in one pass, and each gets a score and,
//! where it does not fit, the reason.

use std::cell::OnceCell;
use std::fmt;
use std::sync::Arc;

use crate::label::{Group, Labels};
use crate::mapping::{Mapping, MatchTerm};
use crate::sheet::Sheet;

/// How one mapping did.
#[derive(Clone, Debug, PartialEq)]
pub struct MatchReport {
    /// The mapping's id.
    pub mapping: String,
    /// Sum of the weights of the terms found; the highest wins.
    pub score: f32,
    /// Whether it may be used.
    pub fits: bool,
    /// Terms of `all` that are not on the page.
    pub missing: Vec<String>,
    /// Terms of `none` that are.
    pub forbidden: Vec<String>,
    /// How many of `any` were found, and how many are needed.
    pub any: (usize, usize),
}

impl fmt::Display for MatchReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let quoted = |terms: &[String]| terms.iter().map(|t| format!("“{t}”")).collect::<Vec<_>>().join(", ");
        write!(f, "{}: ", self.mapping)?;
        if self.fits {
            return write!(f, "fits with a score of {:.1}", self.score);
        }
        let mut reasons = Vec::new();
        if !self.missing.is_empty() {
            reasons.push(format!("{} not on the page", quoted(&self.missing)));
        }
        if !self.forbidden.is_empty() {
            reasons.push(format!("{} on the page", quoted(&self.forbidden)));
        }
        if self.any.0 < self.any.1 {
            reasons.push(format!("{} of its optional words found, {} needed", self.any.0, self.any.1));
        }
        f.write_str(&reasons.join(", "))
    }
}

/// How much a term that must be there counts beside one that may.
const ALL_WEIGHT: f32 = 2.0;

/// Looks up the terms of many mappings at once.
#[derive(Debug)]
pub struct Matcher {
    plain: Labels,
}

/// Terms compete with nobody.
const GROUP: Group = Group::Hint;

impl Matcher {
    /// Gathers the terms of all mappings.
    pub fn new<'a>(mappings: impl Iterator<Item = &'a Arc<Mapping>>) -> Self {
        let mut plain = Labels::default();
        let terms = mappings.flat_map(|m| m.terms.all.iter().chain(&m.terms.any).chain(&m.terms.none));
        for text in terms.filter_map(|term| term.plain.as_ref()) {
            plain.add_plain(text.clone(), GROUP);
        }
        Self { plain }
    }

    /// Every mapping's report, best first.
    pub fn report<'a>(
        &self,
        sheet: &Sheet<'_>,
        mappings: impl Iterator<Item = &'a Arc<Mapping>>,
    ) -> Vec<MatchReport> {
        let present = self.plain.present(sheet.rows().map(|(_, _, row)| row.folded.replace('\t', " ")));
        let text = OnceCell::new();
        let has = |term: &MatchTerm| match (&term.plain, &term.pattern) {
            (Some(plain), _) => self.plain.id_of(plain, GROUP).is_some_and(|id| present[id]),
            (None, Some(pattern)) => pattern.is_match(text.get_or_init(|| whole_text(sheet))),
            (None, None) => false,
        };
        let mut reports: Vec<(bool, MatchReport)> =
            mappings.map(|m| (m.terms.is_fallback, report_one(m, &has))).collect();
        let nearness =
            |r: &MatchReport| r.missing.len() + r.forbidden.len() + r.any.1.saturating_sub(r.any.0);
        reports.sort_by(|(a_last, a), (b_last, b)| {
            (b.fits, *a_last)
                .cmp(&(a.fits, *b_last))
                .then(b.score.total_cmp(&a.score).then(nearness(a).cmp(&nearness(b))))
        });
        reports.into_iter().map(|(_, report)| report).collect()
    }
}

/// The whole text, row by row.
fn whole_text(sheet: &Sheet<'_>) -> String {
    sheet.rows().flat_map(|(_, _, row)| [row.text.as_str(), "\n"]).collect()
}

fn report_one(mapping: &Mapping, has: &dyn Fn(&MatchTerm) -> bool) -> MatchReport {
    let terms = &mapping.terms;
    let missing: Vec<String> = terms.all.iter().filter(|t| !has(t)).map(|t| t.text.clone()).collect();
    let forbidden: Vec<String> = terms.none.iter().filter(|t| has(t)).map(|t| t.text.clone()).collect();
    let any: Vec<&MatchTerm> = terms.any.iter().filter(|t| has(t)).collect();
    let fits = missing.is_empty() && forbidden.is_empty() && any.len() >= terms.min_any;
    let all_score: f32 = terms.all.iter().filter(|t| has(t)).map(|t| t.weight * ALL_WEIGHT).sum();
    MatchReport {
        mapping: mapping.id.clone(),
        score: all_score + any.iter().map(|t| t.weight).sum::<f32>(),
        fits,
        missing,
        forbidden,
        any: (any.len(), terms.min_any),
    }
}
