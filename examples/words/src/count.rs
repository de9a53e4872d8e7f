//! Counting, which has heard of no job: text in, numbers out.

use serde::{Deserialize, Serialize};
use std::collections::HashMap;

/// Words that a count lists by name.
const LISTED_MAX: usize = 20;

/// The result of a job, and of `ode words`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Count {
    pub(crate) pages: usize,
    /// Words, each as often as it stands there.
    pub(crate) words: usize,
    /// Different words; capitals make no difference.
    pub(crate) distinct: usize,
    /// The most frequent ones.
    pub(crate) most: Vec<Frequency>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Frequency {
    pub(crate) word: String,
    pub(crate) count: usize,
}

impl Count {
    /// Counts the words of a text: letters and digits, and the apostrophes and hyphens between them.
    pub(crate) fn of(pages: usize, text: &str) -> Self {
        let mut counts: HashMap<String, usize> = HashMap::new();
        let is_part = |c: char| c.is_alphanumeric() || matches!(c, '\'' | '’' | '-');
        for word in text.split(|c: char| !is_part(c)) {
            let word = word.trim_matches(|c: char| !c.is_alphanumeric());
            if !word.is_empty() {
                *counts.entry(word.to_lowercase()).or_default() += 1;
            }
        }
        let (words, distinct) = (counts.values().sum(), counts.len());
        let mut most: Vec<Frequency> =
            counts.into_iter().map(|(word, count)| Frequency { word, count }).collect();
        most.sort_by(|one, other| other.count.cmp(&one.count).then_with(|| one.word.cmp(&other.word)));
        most.truncate(LISTED_MAX);
        Count { pages, words, distinct, most }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_counted_whatever_stands_between_them() {
        fn check(text: &str, words: usize, distinct: usize, first: &str) {
            let count = Count::of(1, text);
            assert_eq!((count.words, count.distinct), (words, distinct), "{text}");
            assert_eq!(count.most.first().map_or("", |most| most.word.as_str()), first, "{text}");
        }
        check("", 0, 0, "");
        check(" … -- ' ", 0, 0, "");
        check("The cat, the hat. THE end", 6, 4, "the");
        check("it's a well-known 'fact'", 4, 4, "a");
        check("naïve\nétude 2026", 3, 3, "2026");
    }
}
