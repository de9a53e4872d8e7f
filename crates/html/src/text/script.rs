//! Which letters a browser sets one after another, each by itself.

/// Whether a browser sets these letters from left to right without joining, moving or hiding any.
///
/// Others are drawn as shapes: a browser would arrange them anew, and the document has arranged them already.
pub(crate) fn is_plain(text: &str) -> bool {
    !text.is_empty() && text.chars().all(is_plain_letter)
}

fn is_plain_letter(letter: char) -> bool {
    !letter.is_control()
        && !letter.is_whitespace()
        && !matches!(letter,
            // Marks that stand on the letter before them.
            '\u{300}'..='\u{36f}' | '\u{483}'..='\u{489}' | '\u{1ab0}'..='\u{1aff}' | '\u{1dc0}'..='\u{1dff}'
            | '\u{20d0}'..='\u{20ff}' | '\u{302a}'..='\u{302f}' | '\u{3099}' | '\u{309a}' | '\u{fe20}'..='\u{fe2f}'
            // Written from right to left.
            | '\u{590}'..='\u{8ff}' | '\u{fb1d}'..='\u{fdff}' | '\u{fe70}'..='\u{feff}'
            | '\u{10800}'..='\u{10fff}' | '\u{1e800}'..='\u{1efff}'
            // Scripts of South and South-East Asia, and letters that join into syllables.
            | '\u{900}'..='\u{109f}' | '\u{1100}'..='\u{11ff}' | '\u{1700}'..='\u{18af}' | '\u{1900}'..='\u{1aaf}'
            | '\u{1b00}'..='\u{1c4f}' | '\u{a800}'..='\u{abff}' | '\u{d7b0}'..='\u{d7ff}' | '\u{11000}'..='\u{11fff}'
            // Not shown, or only about how others are shown.
            | '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
            | '\u{fe00}'..='\u{fe0f}' | '\u{fff0}'..='\u{ffff}' | '\u{e0000}'..='\u{e0fff}'
            // Browsers prefer coloured pictures of their own.
            | '\u{1f000}'..='\u{1faff}')
}

/// Whether a letter is written from right to left.
pub(crate) fn is_from_right(letter: char) -> bool {
    matches!(letter, '\u{590}'..='\u{8ff}' | '\u{fb1d}'..='\u{fdff}' | '\u{fe70}'..='\u{fefc}')
        && !letter.is_numeric()
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
        check("ש", false);
        check("क", false);
        check("", false);
        check(" ", false);
    }
}
