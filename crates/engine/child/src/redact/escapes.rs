//! One escape at a time, as JSON, programming languages, shells, addresses and pages write characters.

/// What escapes begin with.
pub(super) const STARTS: [u8; 3] = *b"\\%&";
/// The longest name of a character that is known, or number of one, with what stands around it.
const ENTITY_BYTES_MAX: usize = 10;
/// Characters that pages may call by name.
const NAMES: [(&str, char); 36] = [
    ("amp", '&'),
    ("lt", '<'),
    ("gt", '>'),
    ("quot", '"'),
    ("apos", '\''),
    ("nbsp", ' '),
    ("excl", '!'),
    ("num", '#'),
    ("dollar", '$'),
    ("percnt", '%'),
    ("lpar", '('),
    ("rpar", ')'),
    ("ast", '*'),
    ("plus", '+'),
    ("comma", ','),
    ("period", '.'),
    ("sol", '/'),
    ("colon", ':'),
    ("semi", ';'),
    ("equals", '='),
    ("quest", '?'),
    ("commat", '@'),
    ("lsqb", '['),
    ("lbrack", '['),
    ("bsol", '\\'),
    ("rsqb", ']'),
    ("rbrack", ']'),
    ("Hat", '^'),
    ("lowbar", '_'),
    ("grave", '`'),
    ("lcub", '{'),
    ("lbrace", '{'),
    ("vert", '|'),
    ("verbar", '|'),
    ("rcub", '}'),
    ("rbrace", '}'),
];

/// What an escape stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Meaning {
    Byte(u8),
    Char(char),
}

/// Why there is no escape.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Miss {
    /// The first byte stands for itself.
    Plain,
    /// What comes next decides.
    Open,
}

/// Reads the escape at the beginning: how long it is and what it stands for.
pub(super) fn read(bytes: &[u8]) -> Result<(usize, Meaning), Miss> {
    match bytes {
        [b'\\', ..] => backslash(bytes),
        [b'%', b'u', ..] => Ok((6, Meaning::Char(character(number(bytes, 2..6, 16)?)?))),
        [b'%', ..] => Ok((3, Meaning::Byte(byte(number(bytes, 1..3, 16)?)?))),
        [b'&', ..] => entity(bytes),
        _ => Err(Miss::Plain),
    }
}

fn backslash(bytes: &[u8]) -> Result<(usize, Meaning), Miss> {
    let control = |code: u8| Ok((2, Meaning::Byte(code)));
    match *bytes.get(1).ok_or(Miss::Open)? {
        b'u' => unit(bytes),
        b'U' => Ok((10, Meaning::Char(character(number(bytes, 2..10, 16)?)?))),
        b'x' => Ok((4, Meaning::Byte(byte(number(bytes, 2..4, 16)?)?))),
        b'0'..=b'3' => Ok((4, Meaning::Byte(byte(number(bytes, 1..4, 8)?)?))),
        b'a' => control(7),
        b'b' => control(8),
        b't' => control(b'\t'),
        b'n' => control(b'\n'),
        b'v' => control(11),
        b'f' => control(12),
        b'r' => control(b'\r'),
        sign if sign.is_ascii_punctuation() || sign == b' ' => Ok((2, Meaning::Byte(sign))),
        _ => Err(Miss::Plain),
    }
}

/// `\u00e4`, `\ud83d\ude00` or `\u{1f600}`.
fn unit(bytes: &[u8]) -> Result<(usize, Meaning), Miss> {
    if bytes.get(2) == Some(&b'{') {
        let digits = digits(&bytes[3..], 16);
        let end = 3 + digits;
        let is_closed = *bytes.get(end).ok_or(if digits > 6 { Miss::Plain } else { Miss::Open })? == b'}';
        let code = number(bytes, 3..end, 16)?;
        return if is_closed { Ok((end + 1, Meaning::Char(character(code)?))) } else { Err(Miss::Plain) };
    }
    let first = number(bytes, 2..6, 16)?;
    if !(0xD800..0xDC00).contains(&first) {
        return Ok((6, Meaning::Char(character(first)?)));
    }
    for (at, expected) in [(6, b'\\'), (7, b'u')] {
        if *bytes.get(at).ok_or(Miss::Open)? != expected {
            return Err(Miss::Plain);
        }
    }
    let second = number(bytes, 8..12, 16)?.checked_sub(0xDC00).ok_or(Miss::Plain)?;
    Ok((12, Meaning::Char(character(0x10000 + ((first - 0xD800) << 10) + second)?)))
}

/// `&#228;`, `&#xe4;` or `&amp;`.
fn entity(bytes: &[u8]) -> Result<(usize, Meaning), Miss> {
    let is_inside = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'#';
    let end = 1 + bytes[1..].iter().take(ENTITY_BYTES_MAX).take_while(|byte| is_inside(byte)).count();
    match bytes.get(end) {
        Some(b';') => {}
        None if end <= ENTITY_BYTES_MAX => return Err(Miss::Open),
        Some(_) | None => return Err(Miss::Plain),
    }
    let meaning = match &bytes[1..end] {
        [b'#', b'x' | b'X', ..] => character(number(bytes, 3..end, 16)?)?,
        [b'#', ..] => character(number(bytes, 2..end, 10)?)?,
        name => NAMES.iter().find(|(known, _)| known.as_bytes() == name).ok_or(Miss::Plain)?.1,
    };
    Ok((end + 1, Meaning::Char(meaning)))
}

fn digits(bytes: &[u8], radix: u32) -> usize {
    bytes.iter().take_while(|byte| char::from(**byte).is_digit(radix)).count()
}

/// The number that exactly these bytes write.
fn number(bytes: &[u8], range: std::ops::Range<usize>, radix: u32) -> Result<u32, Miss> {
    let there = &bytes[range.start.min(bytes.len())..range.end.min(bytes.len())];
    if digits(there, radix) < there.len() {
        return Err(Miss::Plain);
    }
    if there.len() < range.len() {
        return Err(Miss::Open);
    }
    let text = std::str::from_utf8(there).map_err(|_| Miss::Plain)?;
    u32::from_str_radix(text, radix).map_err(|_| Miss::Plain)
}

fn byte(code: u32) -> Result<u8, Miss> {
    u8::try_from(code).map_err(|_| Miss::Plain)
}

fn character(code: u32) -> Result<char, Miss> {
    char::from_u32(code).ok_or(Miss::Plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: Result<(usize, Meaning), Miss>) {
        assert_eq!(read(text.as_bytes()), expected, "{text}");
    }

    #[test]
    fn an_escape_stands_for_a_character_or_a_byte() {
        for text in ["%22", "\\\"", "\\x22", "\\042"] {
            check(&format!("{text} and more"), Ok((text.len(), Meaning::Byte(b'"'))));
        }
        for text in ["%u00e4", "\\u00E4", "\\u{e4}", "\\U000000e4", "&#228;", "&#xe4;", "&#X0E4;"] {
            check(&format!("{text} and more"), Ok((text.len(), Meaning::Char('ä'))));
        }
        check("\\ud83d\\ude00", Ok((12, Meaning::Char('😀'))));
        check("&commat;", Ok((8, Meaning::Char('@'))));
        check("\\n", Ok((2, Meaning::Byte(b'\n'))));
    }

    #[test]
    fn what_is_none_stands_for_itself() {
        for text in ["a", "%zz", "100% sure", "\\q", "\\x2z", "\\399", "&&", "&unknown;", "&#;", "&#xd800;"] {
            check(text, Err(Miss::Plain));
        }
        for text in ["\\ud83d and no more", "\\udc00", "\\u{110000}", "&abcdefghijklmnopq;", "%u12zz", "&#x;"]
        {
            check(text, Err(Miss::Plain));
        }
    }

    #[test]
    fn one_that_is_cut_off_waits_for_the_rest() {
        for whole in
            ["%22", "%u00e4", "\\u00e4", "\\ud83d\\ude00", "\\u{e4}", "\\x22", "\\042", "&#228;", "&quot;"]
        {
            for end in 1..whole.len() {
                check(&whole[..end], Err(Miss::Open));
            }
        }
    }
}
