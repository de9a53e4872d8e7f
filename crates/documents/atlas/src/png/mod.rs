//! PNG files, written in bands: rows go in from the top, bytes come out, and no more than a band is ever held.
//!
//! Each band is packed alone, so that several can be packed at once, and the file does not depend on how many were.

mod deflate;
mod huffman;
mod pack;

pub(crate) use pack::{Packed, Packer};

use std::io::{self, Write};

const SIGNATURE: &[u8] = b"\x89PNG\r\n\x1a\n";
/// The file's first two bytes of packed data: deflate with a window of 32 KiB, packed fast.
const ZLIB_HEADER: [u8; 2] = [0x78, 0x01];

/// Writes a file of `width` by `height` pixels of 8-bit red, green and blue.
pub(crate) struct Writer<W: Write> {
    out: W,
    adler: Adler,
    written: u64,
    is_first: bool,
}

impl<W: Write> Writer<W> {
    /// Starts a file that is to be printed at `dpi` dots per inch.
    pub(crate) fn new(out: W, [width, height]: [u32; 2], dpi: f64) -> io::Result<Self> {
        let mut writer = Self { out, adler: Adler::default(), written: 0, is_first: true };
        writer.put(SIGNATURE)?;
        let mut header = Vec::from(width.to_be_bytes());
        header.extend(height.to_be_bytes());
        // 8 bits a channel, red, green and blue; the one way of packing and of filters; no interlace.
        header.extend([8, 2, 0, 0, 0]);
        writer.chunk(b"IHDR", &header)?;
        // sRGB, rendered relative to the paper; the two others tell the same to readers that do not know it.
        writer.chunk(b"sRGB", &[1])?;
        writer.chunk(b"gAMA", &45_455_u32.to_be_bytes())?;
        let primaries: [u32; 8] = [31_270, 32_900, 64_000, 33_000, 30_000, 60_000, 15_000, 6_000];
        writer.chunk(b"cHRM", &primaries.map(u32::to_be_bytes).concat())?;
        let per_metre = ((dpi / 0.0254).round() as u32).to_be_bytes();
        writer.chunk(b"pHYs", &[&per_metre[..], &per_metre[..], &[1]].concat())?;
        Ok(writer)
    }

    /// Adds the next band.
    pub(crate) fn band(&mut self, packed: &Packed) -> io::Result<()> {
        self.adler.append(packed.adler, packed.unpacked_bytes);
        let header: &[u8] = if std::mem::take(&mut self.is_first) { &ZLIB_HEADER } else { &[] };
        self.chunk_of(b"IDAT", &[header, &packed.bytes])
    }

    /// Ends the file and says how many bytes it has.
    pub(crate) fn finish(mut self) -> io::Result<u64> {
        let end = [&deflate::END[..], &self.adler.value().to_be_bytes()].concat();
        self.chunk(b"IDAT", &end)?;
        self.chunk(b"IEND", &[])?;
        self.out.flush()?;
        Ok(self.written)
    }

    fn chunk(&mut self, kind: &[u8; 4], data: &[u8]) -> io::Result<()> {
        self.chunk_of(kind, &[data])
    }

    fn chunk_of(&mut self, kind: &[u8; 4], parts: &[&[u8]]) -> io::Result<()> {
        let length: usize = parts.iter().map(|part| part.len()).sum();
        let mut sum = crc32fast::Hasher::new();
        sum.update(kind);
        self.put(&(length as u32).to_be_bytes())?;
        self.put(kind)?;
        for part in parts {
            sum.update(part);
            self.put(part)?;
        }
        self.put(&sum.finalize().to_be_bytes())
    }

    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.written += bytes.len() as u64;
        self.out.write_all(bytes)
    }
}

/// Adler-32, the check sum over what was packed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Adler {
    a: u64,
    b: u64,
}

impl Default for Adler {
    fn default() -> Self {
        Self { a: 1, b: 0 }
    }
}

impl Adler {
    const MODULUS: u64 = 65_521;

    fn byte(&mut self, byte: u8) {
        // Sums stay far below 64 bits for the few bytes between two runs of zeros; `settle` brings them down.
        self.a += u64::from(byte);
        self.b += self.a;
    }

    /// Counts `count` zeros, all at once.
    fn zeros(&mut self, count: u64) {
        self.settle();
        self.b = (self.b + count % Self::MODULUS * self.a) % Self::MODULUS;
    }

    fn settle(&mut self) {
        self.a %= Self::MODULUS;
        self.b %= Self::MODULUS;
    }

    /// Counts `bytes` bytes whose own sum is `other`.
    fn append(&mut self, other: Self, bytes: u64) {
        let a = self.a + other.a + Self::MODULUS - 1;
        let b = self.b + other.b + bytes % Self::MODULUS * (self.a + Self::MODULUS - 1);
        *self = Self { a: a % Self::MODULUS, b: b % Self::MODULUS };
    }

    fn value(mut self) -> u32 {
        self.settle();
        (self.b << 16 | self.a) as u32
    }
}

#[cfg(test)]
mod tests;
