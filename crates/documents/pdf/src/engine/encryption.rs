//! Documents whose attachments are encrypted and whose pages are not: they can be read without a password.

use std::sync::Arc;

use hayro_syntax::Pdf;
use hayro_syntax::object::{Dict, Name, ObjectIdentifier};

use super::Bytes;

/// Where a document names its encryption, and a name of the same length that means nothing.
const KEY: &[u8] = b"/Encrypt";
const NO_KEY: &[u8] = b"/Unlocks";
/// Before this version, encryption covers everything.
const FILTERS_VERSION_MIN: u8 = 4;

/// Opens a document that the parser took for locked; nothing where its pages are.
pub(crate) fn open_unlocked(bytes: &[u8]) -> Option<Pdf> {
    let places: Vec<usize> = bytes
        .windows(KEY.len() + 1)
        .enumerate()
        .filter(|(_, window)| window.starts_with(KEY) && window[KEY.len()].is_ascii_whitespace())
        .map(|(at, _)| at)
        .collect();
    let lock = reference(&bytes[*places.last()? + KEY.len()..])?;
    let mut bytes = bytes.to_vec();
    for at in places {
        bytes[at..at + NO_KEY.len()].copy_from_slice(NO_KEY);
    }
    let pdf = Pdf::new(Arc::new(Bytes(bytes.into()))).ok()?;
    let leaves_pages = leaves_pages(&pdf.xref().get::<Dict<'_>>(lock)?);
    leaves_pages.then_some(pdf)
}

/// The object that a reference such as `12 0 R` names.
fn reference(bytes: &[u8]) -> Option<ObjectIdentifier> {
    let mut words = bytes.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
    let mut word = || std::str::from_utf8(words.next()?).ok();
    Some(ObjectIdentifier::new(word()?.parse().ok()?, word()?.parse().ok()?))
}

/// Whether streams and strings are not encrypted unless they say so themselves.
fn leaves_pages(lock: &Dict<'_>) -> bool {
    let is_identity =
        |key: &[u8]| lock.get::<Name<'_>>(key).is_none_or(|filter| filter.as_ref() == b"Identity");
    lock.get::<u8>(b"V").is_some_and(|version| version >= FILTERS_VERSION_MIN)
        && is_identity(b"StmF")
        && is_identity(b"StrF")
}
