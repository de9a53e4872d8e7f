//! Which letters a browser sets one after another, each by itself, and which way they are written.
//!
//! The fonts written here tell browsers that they are made for no script in particular and that all their glyphs are
//! letters of their own: then nothing is reordered, joined or put on the letter before it but by the document.

use ode_pdf::text::is_leftward_letter;
use unicode_normalization::char::is_combining_mark;

/// Whether a browser sets these letters without joining, moving or hiding any.
///
/// Others are drawn as shapes: a browser would arrange them anew, and the document has arranged them already.
pub(crate) fn is_plain(text: &str) -> bool {
    !text.is_empty() && text.chars().all(is_plain_letter) && !is_rearranged(text)
}

/// Whether a browser sorts several marks on a letter, or makes one letter of a letter and its accent.
fn is_rearranged(text: &str) -> bool {
    let mut pairs = text.chars().zip(text.chars().skip(1));
    pairs.any(|(one, two)| {
        matches!(two, '\u{300}'..='\u{36f}') || is_combining_mark(one) && is_combining_mark(two)
    })
}

/// Whether letters stand on the one before them, with which browsers might make one of them.
pub(crate) fn is_mark(text: &str) -> bool {
    text.chars().next().is_some_and(is_combining_mark)
}

/// Signs that browsers turn round among letters from right to left: documents draw them as they are seen.
const MIRRORED: &str = "()[]{}<>\u{ab}\u{bb}\u{2039}\u{203a}\u{2264}\u{2265}";

fn is_plain_letter(letter: char) -> bool {
    !letter.is_control()
        && !letter.is_whitespace()
        && !is_widthless(letter)
        && !matches!(letter,
            // Taken apart by browsers whatever the font says, or put together into syllables.
            '\u{e33}' | '\u{eb3}' | '\u{1100}'..='\u{11ff}' | '\u{a960}'..='\u{a97f}' | '\u{d7b0}'..='\u{d7ff}'
            // Forms of letters by which browsers would join others.
            | '\u{fb1d}'..='\u{fdff}' | '\u{fe70}'..='\u{feff}'
            // Written from right to left in ways of their own.
            | '\u{10800}'..='\u{10fff}' | '\u{1e800}'..='\u{1efff}'
            // Not shown.
            | '\u{2028}' | '\u{2029}' | '\u{fff0}'..='\u{ffff}'
            // Browsers prefer coloured pictures of their own.
            | '\u{1f000}'..='\u{1faff}')
}

/// Whether browsers leave no room for a letter: it is only about how others are shown.
pub(crate) fn is_widthless(letter: char) -> bool {
    matches!(letter,
        '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
        | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{e0000}'..='\u{e0fff}')
}

/// Whether browsers keep letters together whatever space is asked for between them: those that join hands.
pub(crate) fn is_cursive(letter: char) -> bool {
    matches!(letter,
        '\u{600}'..='\u{77f}' | '\u{7c0}'..='\u{7ff}' | '\u{840}'..='\u{8ff}' | '\u{1800}'..='\u{18af}'
        | '\u{a840}'..='\u{a87f}' | '\u{fb50}'..='\u{fdff}' | '\u{fe70}'..='\u{feff}'
        | '\u{10ac0}'..='\u{10aff}' | '\u{10d00}'..='\u{10d3f}' | '\u{10f00}'..='\u{10fff}')
}

/// Which way letters are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    FromLeft,
    FromRight,
    /// As those around them.
    Either,
}

impl Way {
    /// The way of a glyph's letters.
    pub(crate) fn of(text: &str) -> Self {
        if text.chars().any(is_leftward_letter) {
            Self::FromRight
        } else if text.chars().any(|letter| letter.is_alphanumeric() || MIRRORED.contains(letter)) {
            Self::FromLeft
        } else {
            Self::Either
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_that_stand_by_themselves_are_plain() {
        let check = |text: &str, expected: bool| assert_eq!(is_plain(text), expected, "{text:?}");
        check("a", true);
        check("ffi", true);
        check("漢", true);
        check("é", true);
        check("e\u{301}", false);
        check("\u{301}", true);
        check("ש", true);
        check("لا", true);
        check("\u{651}\u{64e}", false);
        check("क्ष", true);
        check("\u{e33}", false);
        check("\u{1100}", false);
        check("", false);
        check(" ", false);
    }

    #[test]
    fn numbers_and_brackets_are_written_from_the_left() {
        let check = |text: &str, expected: Way| assert_eq!(Way::of(text), expected, "{text:?}");
        check("a", Way::FromLeft);
        check("\u{5d0}", Way::FromRight);
        check("\u{64b}", Way::FromRight);
        check("7", Way::FromLeft);
        check("\u{667}", Way::FromLeft);
        check("(", Way::FromLeft);
        check(".", Way::Either);
    }
}
