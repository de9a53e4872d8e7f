//! From a picture to a PNG: bands drawn and packed by as many threads as are wanted, written in order.

use crate::draw::{Band, Picture, Row};
use crate::png::{Packed, Packer, Writer};
use std::io::{self, Write};
use std::num::NonZeroUsize;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

/// Rows that are drawn and packed together. More would hold more memory and gain nothing.
const BAND_ROWS: u32 = 64;
/// Bands that a thread may be ahead of the file.
const AHEAD: usize = 2;

/// Draws a picture and writes it as a PNG; says how many bytes the file has. The bytes do not depend on `threads`. Tells
/// after each band how much of the picture is written.
pub(crate) fn write_png(
    picture: &Picture,
    (dpi, threads): (f64, NonZeroUsize),
    out: impl Write,
    mut told: impl FnMut(f32),
) -> io::Result<u64> {
    let mut writer = Writer::new(out, [picture.width, picture.height], dpi)?;
    let band_count = picture.height.div_ceil(BAND_ROWS);
    let threads = threads.get().min(band_count as usize);
    let mut done = |band: u32| told((band + 1) as f32 / band_count as f32);
    if threads == 1 {
        let mut painter = Painter::new(picture);
        for band in 0..band_count {
            writer.band(&painter.paint(band))?;
            done(band);
        }
        return writer.finish();
    }
    std::thread::scope(|scope| {
        // Thread n draws bands n, n + threads, … and the file takes from one after the other.
        let lines: Vec<Receiver<Packed>> = (0..threads)
            .map(|first| {
                let (sender, receiver) = sync_channel(AHEAD);
                scope.spawn(move || {
                    paint_every(picture, (first as u32..band_count).step_by(threads), &sender)
                });
                receiver
            })
            .collect();
        for band in 0..band_count {
            let line = &lines[band as usize % threads];
            let packed = line.recv().map_err(|_| io::Error::other("a thread that draws ended"))?;
            writer.band(&packed)?;
            done(band);
        }
        writer.finish()
    })
}

fn paint_every(picture: &Picture, bands: impl Iterator<Item = u32>, out: &SyncSender<Packed>) {
    let mut painter = Painter::new(picture);
    for band in bands {
        // Nobody takes it any more: the file could not be written.
        if out.send(painter.paint(band)).is_err() {
            return;
        }
    }
}

struct Painter<'a> {
    height: u32,
    band: Band<'a>,
    packer: Packer,
}

impl<'a> Painter<'a> {
    fn new(picture: &'a Picture) -> Self {
        Self { height: picture.height, band: Band::new(picture), packer: Packer::new(picture.width) }
    }

    fn paint(&mut self, band: u32) -> Packed {
        let top = band * BAND_ROWS;
        let count = BAND_ROWS.min(self.height - top) as usize;
        self.band.start(top, count);
        for row in 0..count {
            match self.band.row(row) {
                Row::New(pixels) => self.packer.row(pixels),
                Row::Same => self.packer.row_again(),
            }
        }
        self.packer.finish()
    }
}
