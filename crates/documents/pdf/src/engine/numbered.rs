//! Glyphs named by a number, such as `G4B` or `C110`: where a whole font is named so, the numbers are the letters' codes.

use std::collections::HashMap;
use std::ops::RangeInclusive;

use super::program::text_by_name;

/// A font with fewer such names does not show what they count.
const NAMES_MIN: usize = 4;
/// Numbers that can be codes of letters; names that merely count begin below.
const CODES: RangeInclusive<u32> = 0x20..=0xff;
/// Codes on which the code pages of Europe do not agree.
const DISPUTED: RangeInclusive<u32> = 0x7f..=0x9f;

/// What the names of a font's glyphs count.
#[derive(Debug)]
pub(crate) struct Numbered {
    letters: HashMap<u32, u32>,
}

impl Numbered {
    /// Reads names by code; nothing when they are not all numbers of letters.
    pub(crate) fn read(names: &HashMap<u32, String>) -> Option<Self> {
        let is_plain = |name: &str| name == ".notdef" || text_by_name(name).is_some();
        let counted: Vec<(u32, &str)> = names
            .iter()
            .filter(|(_, name)| !is_plain(name))
            .map(|(code, name)| (*code, name.as_str()))
            .collect();
        let prefix = counted.first().filter(|_| counted.len() >= NAMES_MIN)?.1.chars().next()?;
        let digits: Option<Vec<(u32, &str)>> =
            counted.iter().map(|(code, name)| Some((*code, name.strip_prefix(prefix)?))).collect();
        let digits = digits.filter(|_| prefix.is_ascii_alphabetic())?;
        let is_pair = |digits: &str| digits.len() == 2;
        let has_letter = |digits: &str| digits.contains(|digit: char| !digit.is_ascii_digit());
        let is_hexadecimal = digits.iter().all(|(_, digits)| is_pair(digits))
            && digits.iter().any(|(_, digits)| has_letter(digits));
        let radix = if is_hexadecimal { 16 } else { 10 };
        let letters: Option<HashMap<u32, u32>> = digits
            .into_iter()
            .map(|(code, digits)| Some((code, u32::from_str_radix(digits, radix).ok()?)))
            .collect();
        letters
            .filter(|letters| letters.values().all(|letter| CODES.contains(letter)))
            .map(|letters| Self { letters })
    }

    /// What a code stands for; nothing where its number says nothing.
    pub(crate) fn text(&self, code: u32) -> Option<String> {
        let letter = self.letters.get(&code).filter(|letter| !DISPUTED.contains(letter))?;
        char::from_u32(*letter).map(String::from)
    }
}

#[cfg(test)]
mod tests {
    use super::Numbered;

    fn text(names: &[&str], code: u32) -> Option<String> {
        let names = names.iter().enumerate().map(|(code, name)| (code as u32, (*name).to_owned())).collect();
        Numbered::read(&names)?.text(code)
    }

    #[test]
    fn numbers_are_codes_of_letters() {
        let hexadecimal = ["G4B", "G61", "GED", "G9D", "space"];
        assert_eq!(text(&hexadecimal, 0).as_deref(), Some("K"));
        assert_eq!(text(&hexadecimal, 2).as_deref(), Some("í"));
        assert_eq!(text(&hexadecimal, 3), None, "code pages disagree");
        let decimal = ["C75", "C97", "C237", "C110"];
        assert_eq!(text(&decimal, 0).as_deref(), Some("K"));
        assert_eq!(text(&decimal, 2).as_deref(), Some("í"));
        assert_eq!(text(&["a65", "a66", "a67", "a68"], 0).as_deref(), Some("A"));
    }

    #[test]
    fn numbers_that_merely_count_say_nothing() {
        assert_eq!(text(&["G01", "G02", "G03", "G4A"], 3), None);
        assert_eq!(text(&["G41", "H42", "G43", "G44"], 0), None);
        assert_eq!(text(&["G41", "G42"], 0), None);
        assert_eq!(text(&["glyph65", "glyph66", "glyph67", "glyph68"], 0), None);
    }
}
