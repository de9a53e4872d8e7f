//! Real documents, and damaged copies of them: in their bytes, their words, and inside of their compressed streams.
//!
//! The same seed damages the same bytes. `ODE_TEST_SEED` sets another, and every run says which one it used.

use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::read::ZlibDecoder;
use flate2::write::ZlibEncoder;

/// Documents that are larger are left to the benchmark.
const BYTES_MAX: u64 = 60_000;
/// What one stream may unpack to before it is left alone.
const UNPACKED_MAX: u64 = 1 << 20;
const SEED: u64 = 20_261_115;

/// About `count` documents of the corpus, spread over all of it.
pub fn documents(count: usize) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../../shared/corpus/pdf");
    let mut files = Vec::new();
    let Ok(folders) = std::fs::read_dir(&folder) else {
        eprintln!("SKIPPED: there is no corpus at {}", folder.display());
        return files;
    };
    for folder in folders.filter_map(Result::ok) {
        let Ok(entries) = std::fs::read_dir(folder.path()) else { continue };
        files.extend(
            entries
                .filter_map(Result::ok)
                .filter(|entry| entry.metadata().is_ok_and(|file| file.len() < BYTES_MAX))
                .map(|entry| entry.path())
                .filter(|path| path.extension().is_some_and(|ending| ending == "pdf")),
        );
    }
    files.sort();
    let step = (files.len() / count).max(1);
    files.into_iter().step_by(step).collect()
}

/// The seed of this run.
pub fn seed() -> u64 {
    let seed = std::env::var("ODE_TEST_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(SEED);
    eprintln!("damaged with ODE_TEST_SEED={seed}");
    seed
}

/// A small generator of numbers.
struct Chance(u64);

impl Chance {
    fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % end.max(1) as u64) as usize
    }
}

/// A copy with a few faults.
pub fn damaged(bytes: &[u8], seed: u64) -> Vec<u8> {
    let mut chance = Chance::new(seed);
    let mut bytes = bytes.to_vec();
    if chance.below(2) == 0 {
        damage_stream(&mut bytes, &mut chance);
    }
    for _ in 0..chance.below(8) {
        damage(&mut bytes, &mut chance);
    }
    bytes
}

fn damage(bytes: &mut Vec<u8>, chance: &mut Chance) {
    let at = chance.below(bytes.len());
    match chance.below(5) {
        0 => bytes.iter_mut().skip(at).take(1).for_each(|byte| *byte = chance.below(256) as u8),
        1 => bytes.truncate(at.max(16)),
        2 => {
            let end = (at + chance.below(64)).min(bytes.len());
            bytes.drain(at..end);
        }
        3 => {
            let number = ["-1", "4294967296", "0", "99999999999999999999", "1e38"][chance.below(5)];
            bytes.splice(at..at, number.bytes());
        }
        _ => {
            let other = chance.below(bytes.len());
            let word: Vec<u8> = bytes[other..]
                .iter()
                .copied()
                .take(40)
                .take_while(|byte| !byte.is_ascii_whitespace())
                .collect();
            bytes.splice(at..at, word);
        }
    }
}

/// Damages what a compressed stream holds, and puts it back in its place: nothing else moves.
fn damage_stream(bytes: &mut [u8], chance: &mut Chance) {
    let starts: Vec<usize> = bytes
        .windows(7)
        .enumerate()
        .filter(|(_, window)| window.starts_with(b"stream") && matches!(window[6], b'\r' | b'\n'))
        .map(|(at, _)| at + 7)
        .collect();
    let Some(start) = starts.get(chance.below(starts.len())).copied() else { return };
    let start = if bytes.get(start) == Some(&b'\n') { start + 1 } else { start };
    let length = bytes[start..].windows(9).position(|window| window == b"endstream").unwrap_or(0);
    let mut content = Vec::new();
    let unpacked =
        ZlibDecoder::new(&bytes[start..start + length]).take(UNPACKED_MAX).read_to_end(&mut content);
    if unpacked.is_err() || content.is_empty() {
        return;
    }
    for _ in 0..1 + chance.below(6) {
        damage(&mut content, chance);
    }
    let mut packer = ZlibEncoder::new(Vec::new(), Compression::best());
    if packer.write_all(&content).is_ok()
        && let Ok(packed) = packer.finish()
        && packed.len() <= length
    {
        bytes[start..start + packed.len()].copy_from_slice(&packed);
    }
}
