//! One band of pixels, packed: each row as its difference from the row above, which is mostly nothing.

use super::Adler;
use super::deflate::Deflate;

/// PNG's filter that takes the pixel to the left away from each pixel.
const LEFT: u8 = 1;
/// PNG's filter that takes the pixel above away.
const ABOVE: u8 = 2;
/// Red, green and blue.
const CHANNELS: u64 = 3;

/// A packed band.
#[derive(Debug)]
pub(crate) struct Packed {
    pub(super) bytes: Vec<u8>,
    pub(super) adler: Adler,
    pub(super) unpacked_bytes: u64,
}

/// Packs rows into a band.
#[derive(Debug)]
pub(crate) struct Packer {
    above: Vec<u32>,
    has_above: bool,
    deflate: Deflate,
    adler: Adler,
    unpacked_bytes: u64,
    /// Zeros seen and not yet handed on.
    zeros: u64,
}

impl Packer {
    pub(crate) fn new(width: u32) -> Self {
        Self {
            above: vec![0; width as usize],
            has_above: false,
            deflate: Deflate::default(),
            adler: Adler::default(),
            unpacked_bytes: 0,
            zeros: 0,
        }
    }

    /// Adds a row; the first one of a band does not look at the band above, so that bands can be packed apart.
    pub(crate) fn row(&mut self, row: &[u32]) {
        if std::mem::replace(&mut self.has_above, true) {
            self.byte(ABOVE);
            let above = std::mem::take(&mut self.above);
            self.differences(row, &above);
            self.above = above;
        } else {
            self.byte(LEFT);
            let mut left = 0;
            for &pixel in row {
                self.difference(pixel, left);
                left = pixel;
            }
        }
        self.flush_zeros();
        self.above.copy_from_slice(row);
    }

    /// Adds the row above once more.
    pub(crate) fn row_again(&mut self) {
        self.byte(ABOVE);
        self.zeros += CHANNELS * self.above.len() as u64;
        self.flush_zeros();
    }

    fn differences(&mut self, row: &[u32], above: &[u32]) {
        const STEP: usize = 16;
        for (here, there) in row.chunks(STEP).zip(above.chunks(STEP)) {
            if here == there {
                self.zeros += CHANNELS * here.len() as u64;
                continue;
            }
            here.iter().zip(there).for_each(|(pixel, above)| self.difference(*pixel, *above));
        }
    }

    fn difference(&mut self, pixel: u32, other: u32) {
        if pixel == other {
            self.zeros += CHANNELS;
            return;
        }
        for shift in [16, 8, 0] {
            self.byte(((pixel >> shift) as u8).wrapping_sub((other >> shift) as u8));
        }
    }

    fn byte(&mut self, byte: u8) {
        if byte == 0 {
            self.zeros += 1;
            return;
        }
        self.flush_zeros();
        self.deflate.literal(byte);
        self.adler.byte(byte);
        self.unpacked_bytes += 1;
    }

    fn flush_zeros(&mut self) {
        if self.zeros > 0 {
            self.deflate.zeros(self.zeros);
            self.adler.zeros(self.zeros);
            self.unpacked_bytes += self.zeros;
            self.zeros = 0;
        }
    }

    /// Ends the band and makes ready for another.
    pub(crate) fn finish(&mut self) -> Packed {
        self.has_above = false;
        let mut adler = std::mem::take(&mut self.adler);
        adler.settle();
        Packed {
            bytes: self.deflate.finish(),
            adler,
            unpacked_bytes: std::mem::take(&mut self.unpacked_bytes),
        }
    }
}
