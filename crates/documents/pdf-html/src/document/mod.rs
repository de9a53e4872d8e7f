//! What a document says of itself besides its pages: title, language, outline, links, fields, structure.
//!
//! All of it is read from the objects of the file, which may say anything: every walk has a bound, and what makes no
//! sense is left out.

mod fields;
mod links;
mod looks;
mod places;
mod tags;

use hayro_interpret::hayro_syntax::Pdf;
use hayro_interpret::hayro_syntax::object::{Dict, Object, String as PdfString};

pub(crate) use fields::{Field, FieldKind, fields};
pub(crate) use links::{Link, Target, links};
pub(crate) use looks::looks;
pub(crate) use places::{Entry, Places, outline};
pub(crate) use tags::{Kid, Node, Role, Tags};

/// Bytes of one title, address or label that are kept.
const TEXT_BYTES_MAX: usize = 4_000;

/// The title and the language.
#[derive(Clone, Debug, Default)]
pub(crate) struct Facts {
    pub(crate) title: Option<String>,
    pub(crate) language: Option<String>,
}

impl Facts {
    pub(crate) fn read(pdf: &Pdf) -> Self {
        let title = pdf.metadata().title.as_deref().map(text).filter(|title| !title.is_empty());
        let language =
            catalog(pdf).and_then(|catalog| string(&catalog, b"Lang")).filter(|tag| is_language(tag));
        Self { title, language }
    }
}

/// Whether a text can be the name of a language, such as `de` or `pt-BR`.
pub(crate) fn is_language(tag: &str) -> bool {
    let mut parts = tag.split('-');
    let is_first = parts.next().is_some_and(|part| {
        (2..=8).contains(&part.len()) && part.chars().all(|letter| letter.is_ascii_alphabetic())
    });
    is_first
        && parts.all(|part| {
            (1..=8).contains(&part.len()) && part.chars().all(|letter| letter.is_ascii_alphanumeric())
        })
}

/// By what an object is known again: where it lies in the file. Its number would not do, for an object inside another
/// has that one's.
fn place(dict: &Dict<'_>) -> (usize, usize) {
    (dict.data().as_ptr() as usize, dict.data().len())
}

/// The root of the document's objects.
pub(crate) fn catalog(pdf: &Pdf) -> Option<Dict<'_>> {
    pdf.xref().get::<Dict<'_>>(pdf.xref().root_id())
}

/// A text of an object, as one line.
fn string(dict: &Dict<'_>, key: &[u8]) -> Option<String> {
    dict.get::<PdfString<'_>>(key).map(|value| text(value.as_bytes()))
}

fn text(bytes: &[u8]) -> String {
    let text = ode_pdf::trace::text_string(&bytes[..bytes.len().min(TEXT_BYTES_MAX)]);
    let words: Vec<&str> = text.split(|letter: char| letter.is_whitespace() || letter.is_control()).collect();
    words.into_iter().filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
}

/// A text or a name.
fn word(object: &Object<'_>) -> Option<String> {
    match object {
        Object::String(value) => Some(text(value.as_bytes())),
        Object::Name(name) => Some(name.as_str().to_owned()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::is_language;

    #[test]
    fn languages_are_told_from_other_words() {
        assert!(is_language("de"));
        assert!(is_language("pt-BR"));
        assert!(!is_language("English (US)"));
        assert!(!is_language(""));
        assert!(!is_language("\"><script>"));
    }
}
