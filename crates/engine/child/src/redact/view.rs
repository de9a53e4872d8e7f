//! A text as it reads once something is undone that programs did to it, with the way back to where each byte stood.

use super::escapes::{self, Meaning, Miss};
use std::borrow::Cow;
use std::ops::Range;

/// A text as it reads in some way.
pub(super) struct View<'a> {
    pub(super) bytes: Cow<'a, [u8]>,
    /// Where in the text each byte comes from; none where it is the text itself.
    places: Option<Vec<Range<usize>>>,
    /// Up to where the text could be read; what is left may read in another way with what follows.
    pub(super) end: usize,
}

impl<'a> View<'a> {
    pub(super) fn plain(bytes: &'a [u8]) -> Self {
        Self { bytes: bytes.into(), places: None, end: bytes.len() }
    }

    /// Where in the text these bytes come from. There must be at least one.
    pub(super) fn place(&self, range: Range<usize>) -> Range<usize> {
        match &self.places {
            None => range,
            Some(places) => places[range.start].start..places[range.end - 1].end,
        }
    }

    /// The same without some parts of it.
    pub(super) fn without(&self, gaps: &[Range<usize>]) -> View<'static> {
        let starts = std::iter::once(0).chain(gaps.iter().map(|gap| gap.end));
        let ends = gaps.iter().map(|gap| gap.start).chain([self.bytes.len()]);
        let kept = || starts.clone().zip(ends.clone());
        let bytes = kept().flat_map(|(start, end)| &self.bytes[start..end]).copied().collect();
        let places = kept().flat_map(|(start, end)| start..end).map(|at| self.place(at..at + 1)).collect();
        View { bytes: Cow::Owned(bytes), places: Some(places), end: self.end }
    }

    /// The same with its escapes read, if there are any.
    pub(super) fn unescaped(&self, is_all: bool) -> Option<View<'static>> {
        let first = self.bytes.iter().position(|byte| escapes::STARTS.contains(byte))?;
        let mut bytes = self.bytes[..first].to_vec();
        let mut places: Vec<_> = (0..first).map(|at| self.place(at..at + 1)).collect();
        let mut at = first;
        let mut end = self.end;
        while at < self.bytes.len() {
            let mut room = [0; 4];
            let (length, meaning): (usize, &[u8]) = match escapes::read(&self.bytes[at..]) {
                Ok((length, Meaning::Byte(byte))) => (length, &[byte]),
                Ok((length, Meaning::Char(character))) => {
                    (length, character.encode_utf8(&mut room).as_bytes())
                }
                Err(Miss::Open) if !is_all => {
                    end = self.place(at..at + 1).start;
                    break;
                }
                Err(Miss::Open | Miss::Plain) => (1, &self.bytes[at..=at]),
            };
            bytes.extend_from_slice(meaning);
            places.extend(std::iter::repeat_n(self.place(at..at + length), meaning.len()));
            at += length;
        }
        let is_other = bytes.len() < self.bytes.len();
        is_other.then_some(View { bytes: Cow::Owned(bytes), places: Some(places), end })
    }
}
