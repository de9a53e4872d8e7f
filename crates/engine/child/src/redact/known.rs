//! The forms of secrets that are searched for: a set with a bound, and which of them a text begins with.

use super::SECRET_CHARS_MIN;
use std::collections::BTreeSet;
use std::ops::{Bound, Range};

/// What all forms of a run may take: those of a megabyte of keys, or of some ten thousand passwords.
const BYTES_MAX: usize = 64 * 1024 * 1024;
/// What a form takes besides its bytes, in the set and in memory that was asked for.
const FORM_BYTES: usize = 64;
/// How forms begin is marked in so many bits: few enough for a processor's cache, so many that most texts end there.
const STARTS_BITS: u32 = 18;

/// Forms of secrets.
pub(super) struct Known {
    forms: BTreeSet<Vec<u8>>,
    /// The length of the longest of them.
    longest: usize,
    /// What they may still take; none once there was too much, and nothing is searched for any more.
    room: Option<usize>,
    /// One bit for how each of them begins, which it may share with others.
    starts: Vec<u64>,
}

impl Default for Known {
    fn default() -> Self {
        Self::with_room(BYTES_MAX)
    }
}

impl Known {
    pub(super) fn with_room(bytes: usize) -> Self {
        Self { forms: BTreeSet::new(), longest: 0, room: Some(bytes), starts: Vec::new() }
    }

    /// Adds a form. One that is shorter than any secret would be found everywhere, and is left out.
    pub(super) fn insert(&mut self, form: Vec<u8>) {
        let Some(room) = self.room.filter(|_| !self.forms.contains(&form)) else { return };
        let Some(start) = start(&form) else { return };
        let (word, bit) = bit(start);
        self.starts.resize(1 << (STARTS_BITS - u64::BITS.ilog2()), 0);
        self.starts[word] |= bit;
        self.longest = self.longest.max(form.len());
        self.room = room.checked_sub(form.len() + FORM_BYTES);
        self.forms.insert(form);
        if self.room.is_none() {
            self.forms.clear();
        }
    }

    /// Whether there was more than can be searched for.
    pub(super) fn is_overfull(&self) -> bool {
        self.room.is_none()
    }

    /// Whether half of the room is taken.
    pub(super) fn is_crowded(&self) -> bool {
        self.room.is_none_or(|room| room < BYTES_MAX / 2)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.forms.is_empty() && !self.is_overfull()
    }

    pub(super) fn longest(&self) -> usize {
        self.longest
    }

    /// Where forms are in a text: the first, the longest of those that begin there, and so on after it.
    pub(super) fn find_in(&self, text: &[u8]) -> impl Iterator<Item = Range<usize>> {
        let mut at = 0;
        std::iter::from_fn(move || {
            let found = (at..text.len()).find_map(|at| Some(at..at + self.longest_at(&text[at..])?))?;
            at = found.end;
            Some(found)
        })
    }

    /// How long the longest form is that the text begins with.
    fn longest_at(&self, text: &[u8]) -> Option<usize> {
        start(text).filter(|start| self.has_start(*start))?;
        let mut text = &text[..text.len().min(self.longest)];
        loop {
            let below = (Bound::Unbounded, Bound::Included(text));
            let nearest = self.forms.range::<[u8], _>(below).next_back()?;
            let shared = nearest.iter().zip(text).take_while(|(one, other)| one == other).count();
            if shared == nearest.len() {
                return Some(shared);
            }
            // A form that the text begins with sorts before this one, which therefore begins with it, too.
            text = &text[..shared];
        }
    }

    /// Whether a form goes on after these bytes.
    pub(super) fn is_beginning(&self, bytes: &[u8]) -> bool {
        if start(bytes).is_some_and(|start| !self.has_start(start)) {
            return false;
        }
        let mut after = self.forms.range::<[u8], _>((Bound::Excluded(bytes), Bound::Unbounded));
        after.next().is_some_and(|form| form.starts_with(bytes))
    }

    /// Whether a form may begin so.
    fn has_start(&self, start: [u8; SECRET_CHARS_MIN]) -> bool {
        let (word, bit) = bit(start);
        self.starts.get(word).is_some_and(|word| word & bit != 0)
    }
}

fn start(bytes: &[u8]) -> Option<[u8; SECRET_CHARS_MIN]> {
    bytes.first_chunk().copied()
}

/// The bit for a beginning: in which word it is, and where in there.
fn bit(start: [u8; SECRET_CHARS_MIN]) -> (usize, u64) {
    // A multiplication by an odd number without a pattern spreads what is alike; its upper bits depend on all bytes.
    let spread = u32::from_le_bytes(start).wrapping_mul(0x9E37_79B1) >> (u32::BITS - STARTS_BITS);
    ((spread / u64::BITS) as usize, 1 << (spread % u64::BITS))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known(forms: &[&str]) -> Known {
        let mut known = Known::default();
        forms.iter().for_each(|form| known.insert(form.as_bytes().to_vec()));
        known
    }

    #[test]
    fn the_longest_form_is_found_where_several_begin() {
        let known = known(&["abcd", "abcdef", "abcdefzz", "abcdxx", "cdef"]);
        for (text, expected) in [
            ("abcdefgh", &["abcdef"][..]),
            ("abcdefz", &["abcdef"]),
            ("abcdefzz", &["abcdefzz"]),
            ("abcdxy", &["abcd"]),
            ("abcabcdcdefabcde", &["abcd", "cdef", "abcd"]),
            ("abc", &[]),
            ("", &[]),
        ] {
            let found: Vec<&str> = known.find_in(text.as_bytes()).map(|found| &text[found]).collect();
            assert_eq!(found, expected, "{text}");
        }
    }

    #[test]
    fn forms_go_on_after_their_beginnings_only() {
        let known = known(&["abcd", "abcdef"]);
        assert!(["", "a", "abcd", "abcde"].iter().all(|text| known.is_beginning(text.as_bytes())));
        assert!(["b", "abcdef", "abd"].iter().all(|text| !known.is_beginning(text.as_bytes())));
    }

    #[test]
    fn forms_are_counted_once_and_short_ones_not_at_all() {
        let mut known = Known::with_room(2 * (FORM_BYTES + 4));
        for form in ["abcd", "abc", "abcd", "efgh"] {
            known.insert(form.into());
            assert!(!known.is_overfull(), "{form}");
        }
        known.insert("ijkl".into());
        assert!(known.is_overfull() && !known.is_empty());
    }
}
