//! The filters of streams, each of which stops when its output grows past a bound.
//!
//! The parser has the same filters without a bound; these are for streams that could grow too large.

use flate2::{Decompress, FlushDecompress, Status};
use hayro_syntax::Filter;

/// Unpacks `data` through all `filters`; nothing if a step grows past `bytes_max` or a filter is one for pictures.
pub(crate) fn unpack(data: &[u8], filters: &[Filter], bytes_max: usize) -> Option<Vec<u8>> {
    let mut current = data.to_vec();
    for filter in filters {
        current = match filter {
            Filter::FlateDecode => inflate(&current, bytes_max)?,
            Filter::LzwDecode => lzw(&current, bytes_max)?,
            Filter::RunLengthDecode => run_length(&current, bytes_max)?,
            Filter::AsciiHexDecode => ascii_hex(&current),
            Filter::Ascii85Decode => ascii_85(&current, bytes_max)?,
            Filter::Crypt => current,
            Filter::CcittFaxDecode | Filter::Jbig2Decode | Filter::DctDecode | Filter::JpxDecode => {
                return None;
            }
        };
    }
    Some(current)
}

/// Damaged data gives what came before the damage.
fn inflate(data: &[u8], bytes_max: usize) -> Option<Vec<u8>> {
    let mut decompress = Decompress::new(true);
    let mut out = Vec::with_capacity((data.len() * 4).clamp(256, bytes_max.max(256)));
    loop {
        let read = usize::try_from(decompress.total_in()).ok()?;
        let before = out.len();
        let status = decompress.decompress_vec(data.get(read..)?, &mut out, FlushDecompress::None);
        if out.len() > bytes_max {
            return None;
        }
        match status {
            Ok(Status::Ok) if out.len() == out.capacity() => out.reserve(out.len().max(256)),
            Ok(Status::Ok) if out.len() > before => {}
            _ => return Some(out),
        }
    }
}

const LZW_CLEAR: usize = 256;
const LZW_END: usize = 257;
const LZW_CODES_MAX: usize = 4096;

/// Codes of nine to twelve bits, each of which stands for an earlier piece of the output and one byte more.
fn lzw(data: &[u8], bytes_max: usize) -> Option<Vec<u8>> {
    let mut out: Vec<u8> = Vec::new();
    // Where in the output the piece of each code from 258 on begins and ends.
    let mut pieces: Vec<(usize, usize)> = Vec::new();
    let mut last: Option<(usize, usize)> = None;
    let (mut bits, mut bit_count, mut width) = (0_u32, 0_u32, 9_u32);
    for byte in data {
        bits = bits << 8 | u32::from(*byte);
        bit_count += 8;
        if bit_count < width {
            continue;
        }
        bit_count -= width;
        let code = (bits >> bit_count) as usize;
        bits &= (1 << bit_count) - 1;
        let start = out.len();
        match code {
            LZW_END => break,
            LZW_CLEAR => {
                pieces.clear();
                (last, width) = (None, 9);
                continue;
            }
            0..LZW_CLEAR => out.push(code as u8),
            _ => match (pieces.get(code - LZW_END - 1), last) {
                (Some(&(from, to)), _) => out.extend_from_within(from..to),
                // The code that is about to be made: the last piece and its first byte again.
                (None, Some((from, to))) => {
                    out.extend_from_within(from..to);
                    out.extend_from_within(from..from + 1);
                }
                (None, None) => break,
            },
        }
        if out.len() > bytes_max {
            return None;
        }
        // A new piece is the last one and the first byte of this one, which follows it in the output.
        if let Some((from, to)) = last.filter(|_| pieces.len() + LZW_END + 1 < LZW_CODES_MAX) {
            pieces.push((from, to + 1));
        }
        last = Some((start, out.len()));
        width = match pieces.len() + LZW_END + 2 {
            0..512 => 9,
            512..1024 => 10,
            1024..2048 => 11,
            _ => 12,
        };
    }
    Some(out)
}

fn run_length(data: &[u8], bytes_max: usize) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    let mut rest = data;
    while let Some((length, tail)) = rest.split_first() {
        let length = usize::from(*length);
        match length {
            0..128 => {
                let (copied, tail) = tail.split_at((length + 1).min(tail.len()));
                out.extend_from_slice(copied);
                rest = tail;
            }
            128 => break,
            _ => {
                let Some((byte, tail)) = tail.split_first() else {
                    break;
                };
                out.resize(out.len() + 257 - length, *byte);
                rest = tail;
            }
        }
        if out.len() > bytes_max {
            return None;
        }
    }
    Some(out)
}

fn ascii_hex(data: &[u8]) -> Vec<u8> {
    let digits =
        data.iter().take_while(|byte| **byte != b'>').filter_map(|byte| char::from(*byte).to_digit(16));
    let digits: Vec<u8> = digits.map(|digit| digit as u8).collect();
    digits.chunks(2).map(|pair| pair[0] << 4 | pair.get(1).copied().unwrap_or(0)).collect()
}

fn ascii_85(data: &[u8], bytes_max: usize) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(data.len() / 5 * 4);
    let mut group: Vec<u8> = Vec::with_capacity(5);
    for byte in data {
        match byte {
            b'~' => break,
            b'z' if group.is_empty() => out.extend_from_slice(&[0; 4]),
            b'!'..=b'u' => group.push(byte - b'!'),
            _ => {}
        }
        if group.len() == 5 {
            out.extend_from_slice(&ascii_85_group(&group));
            group.clear();
        }
        if out.len() > bytes_max {
            return None;
        }
    }
    if group.len() > 1 {
        let count = group.len() - 1;
        group.resize(5, 84);
        out.extend_from_slice(&ascii_85_group(&group)[..count]);
    }
    Some(out)
}

fn ascii_85_group(group: &[u8]) -> [u8; 4] {
    group
        .iter()
        .fold(0_u32, |value, digit| value.wrapping_mul(85).wrapping_add(u32::from(*digit)))
        .to_be_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(filter: Filter, packed: &[u8], expected: &[u8]) {
        assert_eq!(unpack(packed, &[filter], 1000).as_deref(), Some(expected), "{filter:?}");
    }

    #[test]
    fn filters_unpack() {
        check(Filter::AsciiHexDecode, b"48 65 6C 6c 6F>", b"Hello");
        check(Filter::Ascii85Decode, b"87cURD]i,\"Ebo80~>", b"Hello World!");
        check(Filter::RunLengthDecode, b"\x02abc\xfez\x80", b"abczzz");
        // The example of the PDF specification.
        let packed = [0x80, 0x0b, 0x60, 0x50, 0x22, 0x0c, 0x0c, 0x85, 0x01];
        check(Filter::LzwDecode, &packed, &[45, 45, 45, 45, 45, 65, 45, 45, 45, 66]);
    }

    #[test]
    fn chains_are_unpacked_from_first_to_last() {
        assert_eq!(
            unpack(b"02616263FE7A80>", &[Filter::AsciiHexDecode, Filter::RunLengthDecode], 100).as_deref(),
            Some(&b"abczzz"[..])
        );
    }

    #[test]
    fn every_growing_filter_stops_at_the_bound() {
        assert_eq!(unpack(&[0x81, b'x'].repeat(10), &[Filter::RunLengthDecode], 1000), None);
        assert_eq!(unpack(&b"z".repeat(1000), &[Filter::Ascii85Decode], 1000), None);
        // The same byte for ever: each code stands for a piece one longer than the last.
        let codes = [256_u32, 0].into_iter().chain(258..500);
        let (mut bits, mut packed) = (String::new(), Vec::new());
        codes.for_each(|code| bits.push_str(&format!("{code:09b}")));
        for byte in bits.as_bytes().chunks(8) {
            packed.push(byte.iter().fold(0, |value, bit| value << 1 | (bit - b'0')) << (8 - byte.len()));
        }
        assert_eq!(unpack(&packed, &[Filter::LzwDecode], 1000), None);
        assert!(unpack(&packed, &[Filter::LzwDecode], 100_000).is_some_and(|out| out.len() > 20_000));
    }

    #[test]
    fn pictures_are_not_unpacked() {
        assert_eq!(unpack(b"", &[Filter::DctDecode], 1000), None);
    }
}
