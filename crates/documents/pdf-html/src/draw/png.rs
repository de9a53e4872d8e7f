//! Pictures as PNG: the fewest bits per pixel that hold them.

use std::collections::HashMap;
use std::io::Write as _;

use flate2::write::ZlibEncoder;
use flate2::{Compression, Crc};

/// Pixels of a picture, row by row.
pub(crate) enum Pixels<'p> {
    /// One byte each.
    Grey(&'p [u8]),
    /// Three bytes each.
    Rgb(&'p [u8]),
    /// Four bytes each.
    Rgba(&'p [u8]),
    /// One byte each: 255 where the colour shows, else nothing.
    Stencil(&'p [u8], [u8; 4]),
}

/// The file; nothing when the sizes do not agree.
pub(crate) fn encode(pixels: &Pixels<'_>, width: u32, height: u32) -> Option<Vec<u8>> {
    let count = width as usize * height as usize;
    let (data, bytes_each) = match pixels {
        Pixels::Grey(data) | Pixels::Stencil(data, _) => (*data, 1),
        Pixels::Rgb(data) => (*data, 3),
        Pixels::Rgba(data) => (*data, 4),
    };
    if count == 0 || data.len() != count * bytes_each {
        return None;
    }
    Some(match pixels {
        Pixels::Stencil(data, colour) => stencil(data, *colour, width),
        Pixels::Grey(data) if data.iter().all(|grey| matches!(grey, 0 | 255)) => {
            file(0, 1, &[], width, bits(data, width))
        }
        Pixels::Grey(data) => file(0, 8, &[], width, filtered(data, width as usize, 1)),
        Pixels::Rgb(data) => rgb(data, width),
        Pixels::Rgba(data) => file(6, 8, &[], width, filtered(data, width as usize * 4, 4)),
    })
}

/// A picture's rows with a byte before each that says how it was filtered.
struct Rows {
    bytes: Vec<u8>,
    height: u32,
    is_photo: bool,
}

fn stencil(data: &[u8], [red, green, blue, alpha]: [u8; 4], width: u32) -> Vec<u8> {
    let palette = [255, 255, 255, red, green, blue];
    file(3, 1, &[(*b"PLTE", &palette), (*b"tRNS", &[0, alpha])], width, bits(data, width))
}

/// With a palette where there are few colours.
fn rgb(data: &[u8], width: u32) -> Vec<u8> {
    let mut palette: HashMap<[u8; 3], u8> = HashMap::new();
    let mut colours = Vec::new();
    let mut indexes = Vec::with_capacity(data.len() / 3);
    let mut last = None;
    for pixel in data.chunks_exact(3) {
        let pixel = [pixel[0], pixel[1], pixel[2]];
        if let Some((colour, index)) = last
            && colour == pixel
        {
            indexes.push(index);
            continue;
        }
        let known = palette.len();
        if known == 256 && !palette.contains_key(&pixel) {
            return file(2, 8, &[], width, filtered(data, width as usize * 3, 3));
        }
        let index = *palette.entry(pixel).or_insert_with(|| {
            colours.extend(pixel);
            known as u8
        });
        indexes.push(index);
        last = Some((pixel, index));
    }
    let height = indexes.len() as u32 / width;
    let mut bytes = Vec::with_capacity(indexes.len() + height as usize);
    for row in indexes.chunks_exact(width as usize) {
        bytes.push(0);
        bytes.extend(row);
    }
    file(3, 8, &[(*b"PLTE", &colours)], width, Rows { bytes, height, is_photo: false })
}

fn bits(data: &[u8], width: u32) -> Rows {
    let mut bytes = Vec::with_capacity(data.len() / 8 + data.len() / width as usize * 2);
    for row in data.chunks_exact(width as usize) {
        bytes.push(0);
        bytes.extend(row.chunks(8).map(|eight| {
            eight.iter().enumerate().fold(0, |byte, (at, value)| byte | (*value >> 7) << (7 - at))
        }));
    }
    Rows { bytes, height: data.len() as u32 / width, is_photo: false }
}

/// Each row as the difference from the one above or from the pixel before, whichever is smaller.
fn filtered(data: &[u8], row_bytes: usize, step: usize) -> Rows {
    let mut bytes = Vec::with_capacity(data.len() + data.len() / row_bytes);
    let blank = vec![0; row_bytes];
    let mut above: &[u8] = &blank;
    for row in data.chunks_exact(row_bytes) {
        let before = |at: usize| if at < step { 0 } else { row[at - step] };
        let size = |difference: u8| u64::from((difference as i8).unsigned_abs());
        let by_left: u64 =
            row.iter().enumerate().map(|(at, value)| size(value.wrapping_sub(before(at)))).sum();
        let by_above: u64 =
            row.iter().zip(above).map(|(value, above)| size(value.wrapping_sub(*above))).sum();
        if by_left < by_above {
            bytes.push(1);
            bytes.extend(row.iter().enumerate().map(|(at, value)| value.wrapping_sub(before(at))));
        } else {
            bytes.push(2);
            bytes.extend(row.iter().zip(above).map(|(value, above)| value.wrapping_sub(*above)));
        }
        above = row;
    }
    Rows { bytes, height: (data.len() / row_bytes) as u32, is_photo: true }
}

fn file(colour: u8, depth: u8, chunks: &[([u8; 4], &[u8])], width: u32, rows: Rows) -> Vec<u8> {
    let mut file = b"\x89PNG\r\n\x1a\n".to_vec();
    let mut head = width.to_be_bytes().to_vec();
    head.extend(rows.height.to_be_bytes());
    head.extend([depth, colour, 0, 0, 0]);
    chunk(&mut file, *b"IHDR", &head);
    for (name, data) in chunks {
        chunk(&mut file, *name, data);
    }
    // Photographs gain little from a harder press.
    let level = if rows.is_photo { 4 } else { 6 };
    let mut packer = ZlibEncoder::new(Vec::new(), Compression::new(level));
    // Writing to memory cannot fail.
    let _ = packer.write_all(&rows.bytes);
    chunk(&mut file, *b"IDAT", &packer.finish().unwrap_or_default());
    chunk(&mut file, *b"IEND", &[]);
    file
}

fn chunk(file: &mut Vec<u8>, name: [u8; 4], data: &[u8]) {
    file.extend((data.len() as u32).to_be_bytes());
    let mut sum = Crc::new();
    sum.update(&name);
    sum.update(data);
    file.extend(name);
    file.extend(data);
    file.extend(sum.sum().to_be_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kind_of_file_follows_what_the_picture_holds() {
        let check = |pixels: Pixels<'_>, depth: u8, colour: u8| {
            let file = encode(&pixels, 2, 1).unwrap();
            assert_eq!((file[24], file[25]), (depth, colour));
        };
        check(Pixels::Grey(&[0, 255]), 1, 0);
        check(Pixels::Grey(&[0, 7]), 8, 0);
        check(Pixels::Rgb(&[1, 2, 3, 4, 5, 6]), 8, 3);
        check(Pixels::Rgba(&[1, 2, 3, 4, 5, 6, 7, 8]), 8, 6);
        check(Pixels::Stencil(&[0, 255], [1, 2, 3, 255]), 1, 3);
    }

    #[test]
    fn sizes_that_disagree_give_no_file() {
        assert!(encode(&Pixels::Rgb(&[1, 2, 3]), 2, 1).is_none());
        assert!(encode(&Pixels::Grey(&[]), 0, 0).is_none());
    }
}
