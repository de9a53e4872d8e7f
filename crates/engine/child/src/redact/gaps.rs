//! What breaks up digits that belong together: separators between hexadecimal digits, and the ends of wrapped lines.
//!
//! Where the text may go on, a gap at its end counts as one: what follows decides, and until then nothing is sure.

use std::ops::Range;

/// So many digits must stand before the end of a line for the next line to go on with them: ordinary lines end otherwise.
const WRAPPED_DIGITS_MIN: usize = 32;
/// A longer gap is none.
const GAP_BYTES_MAX: usize = 32;
const SEPARATORS: &[u8] = b" \t\r\n:;,-'\"";

/// Gaps between groups of hexadecimal digits, two for each byte: `68 75`, `68:75`, `0x68, 0x75`, `6875 6e74`.
pub(super) fn in_hex(bytes: &[u8], is_all: bool) -> Vec<Range<usize>> {
    let mut gaps = Vec::new();
    // Where the last group ended, and how many digits stand before that on its line.
    let mut last: Option<(usize, usize)> = None;
    let mut at = 0;
    while let Some(start) = bytes[at..].iter().position(u8::is_ascii_alphanumeric).map(|skipped| at + skipped)
    {
        let end = start + bytes[start..].iter().take_while(|byte| byte.is_ascii_alphanumeric()).count();
        let word = &bytes[start..end];
        let is_open = end == bytes.len() && !is_all;
        let digits = word.strip_prefix(b"0x").or(word.strip_prefix(b"0X"));
        // What is there may be no more than the mark that hexadecimal digits follow.
        let digits = digits.unwrap_or(if is_open && word == b"0" { b"" } else { word });
        let is_group = digits.iter().all(u8::is_ascii_hexdigit)
            && (is_open || !digits.is_empty() && digits.len().is_multiple_of(2));
        let before = last.filter(|(from, count)| is_gap(&bytes[*from..start], *count));
        if let Some((from, _)) = before.filter(|_| is_group) {
            gaps.push(from..end - digits.len());
        }
        let on_line =
            before.filter(|(from, _)| !has_break(&bytes[*from..start])).map_or(0, |(_, count)| count);
        last = is_group.then_some((end, on_line + digits.len()));
        at = end;
    }
    if let Some((from, count)) = last.filter(|_| !is_all)
        && is_gap(&bytes[from..], count)
    {
        gaps.push(from..bytes.len());
    }
    gaps
}

fn is_gap(between: &[u8], digits: usize) -> bool {
    (1..=GAP_BYTES_MAX).contains(&between.len())
        && between.iter().all(|byte| SEPARATORS.contains(byte))
        && (digits >= WRAPPED_DIGITS_MIN || !has_break(between))
}

fn has_break(bytes: &[u8]) -> bool {
    bytes.iter().any(|byte| is_break(*byte))
}

/// Ends of lines between digits of base64, with how far the next line is indented.
pub(super) fn in_base64(bytes: &[u8], is_all: bool) -> Vec<Range<usize>> {
    let gap = |at: usize| {
        let digits =
            bytes[..at].iter().rev().take(WRAPPED_DIGITS_MIN).take_while(|byte| is_digit(**byte)).count();
        let is_blank = |byte: &&u8| is_break(**byte) || matches!(**byte, b' ' | b'\t');
        let end = at + bytes[at..].iter().take(GAP_BYTES_MAX).take_while(is_blank).count();
        let goes_on = bytes.get(end).map_or(!is_all, |byte| is_digit(*byte));
        (digits == WRAPPED_DIGITS_MIN && goes_on).then_some(at..end)
    };
    let breaks = bytes.iter().enumerate().filter(|(_, byte)| is_break(**byte));
    breaks.filter_map(|(at, _)| gap(at)).collect()
}

fn is_break(byte: u8) -> bool {
    matches!(byte, b'\r' | b'\n')
}

/// Of base64, in either of its alphabets.
fn is_digit(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'-' | b'_')
}

#[cfg(test)]
mod tests {
    use super::*;

    type Find = fn(&[u8], bool) -> Vec<Range<usize>>;

    fn check(find: Find, text: &str, is_all: bool, expected: &str) {
        let mut left = text.to_owned();
        find(text.as_bytes(), is_all).into_iter().rev().for_each(|gap| left.replace_range(gap, ""));
        assert_eq!(left, expected, "{text:?}");
    }

    #[test]
    fn hexadecimal_digits_are_joined() {
        for text in ["68 75 6e", "68:75:6e", "68-75-6E", "6875 6e", "'68', '75', '6e'"] {
            let joined = text.replace(|c| !char::is_alphanumeric(c), "");
            check(in_hex, text.trim_matches('\''), true, &joined);
        }
        check(in_hex, "[0x68, 0x75, 0x6e]", true, "[0x68756e]");
        check(in_hex, "at 12:30, a bad 68 7 day", true, "at 1230, a bad 68 7 day");
    }

    #[test]
    fn digits_go_on_in_the_next_line_only_after_a_long_one() {
        let row = "68 75 6e 74 65 72 32 20 68 75 6e 74 65 72 32 20";
        check(in_hex, &format!("{row}\n  68 75"), true, &format!("{}6875", row.replace(' ', "")));
        check(in_hex, "took 10\n20 more", true, "took 10\n20 more");
        let line = "QUJD".repeat(19);
        check(in_base64, &format!("{line}\r\n  REVG\nmore"), true, &format!("{line}REVG\nmore"));
        check(in_base64, "a line\nand another", true, "a line\nand another");
    }

    #[test]
    fn an_end_that_may_go_on_is_a_gap() {
        let line = "QUJD".repeat(19);
        for (find, text, joined) in [
            (in_hex as Find, "68 75 ".to_owned(), "6875".to_owned()),
            (in_hex, "0x68, 0".to_owned(), "0x68".to_owned()),
            (in_hex, "0x68, 0x".to_owned(), "0x68".to_owned()),
            (in_hex, "68 7".to_owned(), "687".to_owned()),
            (in_base64, format!("{line}\r"), line.clone()),
        ] {
            check(find, &text, false, &joined);
            check(find, "a line\n", false, "a line\n");
        }
        check(in_base64, &format!("{line}\n"), true, &format!("{line}\n"));
    }
}
