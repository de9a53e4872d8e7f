//! The container that browsers load fonts in: a table of contents and one compressed stream.

use brotli::enc::BrotliEncoderParams;
use write_fonts::types::Tag;

/// How hard the stream is pressed, of 11: the next steps clear 16 MB for each font and save nothing, and the last ones
/// cost ten times as long for a twentieth of the bytes.
const QUALITY: i32 = 6;

/// Tables that have a number instead of a name, in the order of their numbers.
const KNOWN: [&[u8; 4]; 29] = [
    b"cmap", b"head", b"hhea", b"hmtx", b"maxp", b"name", b"OS/2", b"post", b"cvt ", b"fpgm", b"glyf",
    b"loca", b"prep", b"CFF ", b"VORG", b"EBDT", b"EBLC", b"gasp", b"hdmx", b"kern", b"LTSH", b"PCLT",
    b"VDMX", b"vhea", b"vmtx", b"BASE", b"GDEF", b"GPOS", b"GSUB",
];

/// The file for these tables, which are in the order of their names.
pub(super) fn write(tables: &[(Tag, Vec<u8>)]) -> Option<Vec<u8>> {
    let mut directory = Vec::new();
    let mut plain = Vec::new();
    // What the font would take unpacked: its head, its table of contents and its tables in steps of four.
    let mut whole = 12 + 16 * tables.len();
    for (tag, table) in tables {
        directory.push(number_of(*tag)?);
        base128(&mut directory, table.len() as u32);
        plain.extend(table);
        whole += table.len().next_multiple_of(4);
    }
    let packed = pack(&plain)?;
    let length = 48 + directory.len() + packed.len();
    let mut file = b"wOF2OTTO".to_vec();
    file.extend((length.next_multiple_of(4) as u32).to_be_bytes());
    file.extend((tables.len() as u16).to_be_bytes());
    file.extend([0, 0]);
    file.extend((whole as u32).to_be_bytes());
    file.extend((packed.len() as u32).to_be_bytes());
    // Version 1.0, and neither metadata nor private data.
    file.extend([0, 1, 0, 0]);
    file.extend([0; 20]);
    file.extend(directory);
    file.extend(packed);
    file.resize(file.len().next_multiple_of(4), 0);
    Some(file)
}

fn number_of(tag: Tag) -> Option<u8> {
    let name = tag.to_be_bytes();
    KNOWN.iter().position(|known| **known == name).map(|index| index as u8)
}

fn base128(out: &mut Vec<u8>, value: u32) {
    let groups = (32 - value.leading_zeros()).div_ceil(7).max(1);
    for group in (0..groups).rev() {
        let bits = (value >> (group * 7) & 0x7f) as u8;
        out.push(if group == 0 { bits } else { bits | 0x80 });
    }
}

fn pack(plain: &[u8]) -> Option<Vec<u8>> {
    let params = BrotliEncoderParams {
        quality: QUALITY,
        lgwin: 18,
        size_hint: plain.len(),
        mode: brotli::enc::backward_references::BrotliEncoderMode::BROTLI_MODE_FONT,
        ..BrotliEncoderParams::default()
    };
    let mut packed = Vec::new();
    brotli::BrotliCompress(&mut &plain[..], &mut packed, &params).ok()?;
    Some(packed)
}

#[cfg(test)]
mod tests {
    use super::base128;

    #[test]
    fn lengths_take_seven_bits_of_each_byte() {
        let check = |value: u32, expected: &[u8]| {
            let mut out = Vec::new();
            base128(&mut out, value);
            assert_eq!(out, expected);
        };
        check(0, &[0]);
        check(127, &[127]);
        check(128, &[0x81, 0]);
        check(16_384, &[0x81, 0x80, 0]);
    }
}
