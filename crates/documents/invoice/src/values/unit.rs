//! Units of measure: the words on the page and the UN/ECE codes that stand for them.

use super::Reading;
use crate::record::Typed;
use crate::write::unit_code;

/// The code for a printed unit; a word we do not know is passed on as it is.
pub fn code(word: &str) -> &str {
    unit_code(word).unwrap_or(word)
}

/// A text read as a unit.
pub(super) fn reading(text: Reading) -> Reading {
    match text.typed {
        Typed::Text(word) => Reading { typed: Typed::Code(code(&word).to_owned()), ..text },
        Typed::Code(_) | Typed::Number(_) | Typed::Date(_) => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_several_languages_become_one_code() {
        assert_eq!(code("Stk."), "H87");
        assert_eq!(code("pcs"), "H87");
        assert_eq!(code("XBC"), "XBC");
    }
}
