//! Text strings as PDF writes them outside of pages: names of files, replacement texts.

/// What PDFDocEncoding says where it differs from Latin-1, from 0x80.
const HIGH: [char; 32] = [
    '\u{2022}', '\u{2020}', '\u{2021}', '\u{2026}', '\u{2014}', '\u{2013}', '\u{192}', '\u{2044}',
    '\u{2039}', '\u{203a}', '\u{2212}', '\u{2030}', '\u{201e}', '\u{201c}', '\u{201d}', '\u{2018}',
    '\u{2019}', '\u{201a}', '\u{2122}', '\u{fb01}', '\u{fb02}', '\u{141}', '\u{152}', '\u{160}', '\u{178}',
    '\u{17d}', '\u{131}', '\u{142}', '\u{153}', '\u{161}', '\u{17e}', '\u{fffd}',
];

/// Reads a text string: UTF-16 or UTF-8 by its mark, otherwise PDFDocEncoding.
pub(crate) fn text_string(bytes: &[u8]) -> String {
    match bytes {
        [0xfe, 0xff, rest @ ..] => utf16(rest, u16::from_be_bytes),
        [0xff, 0xfe, rest @ ..] => utf16(rest, u16::from_le_bytes),
        [0xef, 0xbb, 0xbf, rest @ ..] => String::from_utf8_lossy(rest).into_owned(),
        _ => bytes.iter().map(|byte| pdf_doc(*byte)).collect(),
    }
}

fn utf16(bytes: &[u8], unit: fn([u8; 2]) -> u16) -> String {
    let units: Vec<u16> = bytes.chunks_exact(2).map(|pair| unit([pair[0], pair[1]])).collect();
    // A language may be marked inside the text as ESC … ESC.
    let mut is_language = false;
    let text = String::from_utf16_lossy(&units);
    text.chars()
        .filter(|character| {
            let is_mark = *character == '\u{1b}';
            is_language ^= is_mark;
            !is_mark && !is_language
        })
        .collect()
}

fn pdf_doc(byte: u8) -> char {
    match byte {
        0x80..=0x9f => HIGH[usize::from(byte - 0x80)],
        0xa0 => '\u{20ac}',
        _ => char::from(byte),
    }
}

#[cfg(test)]
mod tests {
    use super::text_string;

    #[test]
    fn text_strings_are_read_in_each_of_their_encodings() {
        assert_eq!(text_string(b"\xfe\xff\x00A\x20\xac"), "A€");
        assert_eq!(text_string(b"\xff\xfeA\x00"), "A");
        assert_eq!(text_string(b"\xef\xbb\xbf\xc3\xa9"), "é");
        assert_eq!(text_string(b"caf\xe9 \xa0"), "café €");
        assert_eq!(text_string(b"\xfe\xff\x00\x1b\x00e\x00n\x00\x1b\x00x"), "x");
    }
}
