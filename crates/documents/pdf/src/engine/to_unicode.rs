//! A font's own table of what its codes mean. One bad entry must not cost the others, so whatever can be read is.

use std::collections::HashMap;

use super::program::text_by_name;

/// Entries kept of one table.
const ENTRIES_MAX: usize = 100_000;
/// Letters that one code may stand for.
const TEXT_CHARS_MAX: usize = 64;

#[derive(Debug, Default)]
pub(crate) struct ToUnicode {
    single: HashMap<u32, String>,
    /// First code, last code, text of the first; the last letter counts upwards.
    ranges: Vec<(u32, u32, String)>,
}

impl ToUnicode {
    pub(crate) fn read(data: &[u8]) -> Self {
        let mut table = Self::default();
        let mut section = Section::None;
        let mut pending = Vec::new();
        for token in (Tokens { rest: data }) {
            match token {
                Token::Word(b"beginbfchar") => (section, pending) = (Section::Single, Vec::new()),
                Token::Word(b"beginbfrange") => (section, pending) = (Section::Ranges, Vec::new()),
                Token::Word(word) if word.starts_with(b"end") => section = Section::None,
                Token::Word(_) => {}
                token => pending.push(token),
            }
            match section {
                Section::None => pending.clear(),
                Section::Single => table.single(&mut pending),
                Section::Ranges => table.range(&mut pending),
            }
            if table.single.len() + table.ranges.len() > ENTRIES_MAX {
                break;
            }
        }
        table.ranges.sort_by_key(|range| range.0);
        table
    }

    /// What a code means, unless the table is silent.
    pub(crate) fn text(&self, code: u32) -> Option<String> {
        if let Some(text) = self.single.get(&code) {
            return Some(text.clone());
        }
        let after = self.ranges.partition_point(|range| range.0 <= code);
        let (first, _, text) = self.ranges[..after].last().filter(|range| code <= range.1)?;
        let mut letters: Vec<char> = text.chars().collect();
        let last = letters.last_mut()?;
        *last = char::from_u32(u32::from(*last).checked_add(code - first)?)?;
        Some(letters.into_iter().collect())
    }

    /// Takes an entry of a code and its text.
    fn single(&mut self, pending: &mut Vec<Token<'_>>) {
        if let [Token::Hex(code), meaning] = &pending[..] {
            if let Some((code, text)) = number(code).zip(meaning.text()) {
                self.single.insert(code, text);
            }
            pending.clear();
        } else if pending.len() > 1 {
            pending.clear();
        }
    }

    /// Takes an entry of two codes and the text of the first, or a list of texts.
    fn range(&mut self, pending: &mut Vec<Token<'_>>) {
        let [Token::Hex(first), Token::Hex(last), rest @ ..] = &pending[..] else {
            if pending.len() > 1 {
                pending.clear();
            }
            return;
        };
        let codes = number(first).zip(number(last)).filter(|(first, last)| first <= last);
        match rest {
            [] => return,
            [Token::Open, .., Token::Close] => {
                let texts = rest[1..rest.len() - 1].iter();
                for (offset, text) in
                    texts.enumerate().filter_map(|(offset, token)| Some((offset as u32, token.text()?)))
                {
                    if let Some((first, last)) = codes.filter(|(first, last)| offset <= last - first) {
                        self.single.insert(first + offset.min(last - first), text);
                    }
                }
            }
            [Token::Open, ..] if rest.len() <= usize::from(u16::MAX) => return,
            [meaning, ..] => {
                if let Some(((first, last), text)) = codes.zip(meaning.text()) {
                    self.ranges.push((first, last, text));
                }
            }
        }
        pending.clear();
    }
}

enum Section {
    None,
    Single,
    Ranges,
}

enum Token<'d> {
    Hex(Vec<u8>),
    /// A name, without its slash.
    Name(&'d [u8]),
    Word(&'d [u8]),
    Open,
    Close,
}

impl Token<'_> {
    fn text(&self) -> Option<String> {
        match self {
            Self::Hex(bytes) => utf16(bytes),
            Self::Name(name) => text_by_name(std::str::from_utf8(name).ok()?),
            Self::Word(_) | Self::Open | Self::Close => None,
        }
    }
}

fn number(bytes: &[u8]) -> Option<u32> {
    (1..=4)
        .contains(&bytes.len())
        .then(|| bytes.iter().fold(0, |number, byte| number << 8 | u32::from(*byte)))
}

fn utf16(bytes: &[u8]) -> Option<String> {
    if let [byte] = bytes {
        return Some(char::from(*byte).into());
    }
    let units = bytes.chunks_exact(2).map(|pair| u16::from_be_bytes([pair[0], pair[1]]));
    let text: String = char::decode_utf16(units).filter_map(Result::ok).take(TEXT_CHARS_MAX).collect();
    (!text.is_empty()).then_some(text)
}

struct Tokens<'d> {
    rest: &'d [u8],
}

impl<'d> Iterator for Tokens<'d> {
    type Item = Token<'d>;

    fn next(&mut self) -> Option<Token<'d>> {
        loop {
            let (first, rest) = self.rest.split_first()?;
            match first {
                b'%' => {
                    let end =
                        rest.iter().position(|byte| matches!(byte, b'\n' | b'\r')).unwrap_or(rest.len());
                    self.rest = &rest[end..];
                }
                b'[' | b']' => {
                    self.rest = rest;
                    return Some(if *first == b'[' { Token::Open } else { Token::Close });
                }
                b'<' if rest.first() != Some(&b'<') => {
                    let end = rest.iter().position(|byte| *byte == b'>').unwrap_or(rest.len());
                    self.rest = &rest[(end + 1).min(rest.len())..];
                    return Some(Token::Hex(hex(&rest[..end])));
                }
                b'/' => {
                    let (name, rest) = split_word(rest);
                    self.rest = rest;
                    return Some(Token::Name(name));
                }
                byte if byte.is_ascii_alphanumeric() => {
                    let (word, rest) = split_word(self.rest);
                    self.rest = rest;
                    return Some(Token::Word(word));
                }
                b'<' => self.rest = &rest[1..],
                _ => self.rest = rest,
            }
        }
    }
}

fn split_word(data: &[u8]) -> (&[u8], &[u8]) {
    let is_end = |byte: &u8| byte.is_ascii_whitespace() || b"<>[]()/%{}\0".contains(byte);
    data.split_at(data.iter().position(is_end).unwrap_or(data.len()))
}

/// Pairs of digits as bytes; a last single digit counts as if a zero followed.
fn hex(digits: &[u8]) -> Vec<u8> {
    let digits: Vec<u8> =
        digits.iter().filter_map(|digit| char::from(*digit).to_digit(16)).map(|digit| digit as u8).collect();
    digits.chunks(2).map(|pair| pair[0] << 4 | pair.get(1).copied().unwrap_or(0)).collect()
}

#[cfg(test)]
mod tests {
    use super::ToUnicode;

    #[track_caller]
    fn check(table: &str, code: u32, expected: Option<&str>) {
        assert_eq!(
            ToUnicode::read(table.as_bytes()).text(code).as_deref(),
            expected,
            "code {code:x} of {table}"
        );
    }

    #[test]
    fn entries_of_every_kind_are_read() {
        check("1 beginbfchar <01> <0041> endbfchar", 1, Some("A"));
        check("1 beginbfchar<01><00660066>endbfchar", 1, Some("ff"));
        check("1 beginbfchar <01> <d83ddE00> endbfchar", 1, Some("\u{1f600}"));
        check("1 beginbfchar <01> /eacute endbfchar", 1, Some("é"));
        check("1 beginbfrange <0010> <0020> <0061> endbfrange", 0x12, Some("c"));
        check("1 beginbfrange <0010> <0020> <0061> endbfrange", 0x21, None);
        check("1 beginbfrange <10> <11> [<0061> <0066 0069>] endbfrange", 0x11, Some("fi"));
    }

    #[test]
    fn bad_entry_costs_only_itself() {
        check("2 beginbfchar <01> <> <02> <0042> endbfchar", 2, Some("B"));
        check("2 beginbfchar <0102030405> <0041> <02> <0042> endbfchar", 2, Some("B"));
        check("2 beginbfrange <09> <01> <0041> <02> <03> <0042> endbfrange", 3, Some("C"));
        check("2 beginbfchar <01> <d800> <02> <0042> endbfchar", 2, Some("B"));
        check("1 beginbfchar <02> <0042", 2, Some("B"));
        check("<<<>>>[[[", 2, None);
    }
}
