//! Real and hostile documents: none may take the converter down, whatever happens to its bytes.

use ode_html::{ConversionConfig, Limits, Refusal, convert};
use std::path::{Path, PathBuf};

/// Documents that are looked at; the largest are left to the benchmark.
const DOCUMENTS: usize = 60;
const BYTES_MAX: u64 = 60_000;
/// Damaged copies of each.
const COPIES: u64 = 4;

fn documents() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/corpus/pdf/pdfjs");
    let Ok(entries) = std::fs::read_dir(&folder) else {
        eprintln!("skipped: there is no corpus at {}", folder.display());
        return Vec::new();
    };
    let mut files: Vec<PathBuf> = entries
        .filter_map(Result::ok)
        .filter(|entry| entry.metadata().is_ok_and(|file| file.len() < BYTES_MAX))
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "pdf"))
        .collect();
    files.sort();
    let step = (files.len() / DOCUMENTS).max(1);
    files.into_iter().step_by(step).collect()
}

/// A small generator, so that every run damages the same bytes.
struct Chance(u64);

impl Chance {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % end.max(1) as u64) as usize
    }
}

fn damaged(bytes: &[u8], seed: u64) -> Vec<u8> {
    let mut chance = Chance(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let mut bytes = bytes.to_vec();
    for _ in 0..1 + chance.below(8) {
        let at = chance.below(bytes.len());
        match chance.below(4) {
            0 => bytes[at] = chance.below(256) as u8,
            1 => bytes.truncate(at.max(16)),
            2 => {
                let end = (at + chance.below(64)).min(bytes.len());
                bytes.drain(at..end);
            }
            _ => {
                let number = ["-1", "4294967296", "0", "99999999999999999999", "1e38"][chance.below(5)];
                bytes.splice(at..at, number.bytes());
            }
        }
    }
    bytes
}

#[test]
fn damaged_documents_are_converted_or_refused() {
    let mut converted = 0;
    let mut tried = 0;
    for path in documents() {
        let bytes = std::fs::read(&path).unwrap();
        for seed in 0..=COPIES {
            let bytes = if seed == 0 { bytes.clone() } else { damaged(&bytes, seed) };
            let bytes_max = Limits::default().output_bytes_max(bytes.len());
            let outcome = convert(bytes, &ConversionConfig::default(), &Limits::default());
            assert_ne!(
                outcome.as_ref().err(),
                Some(&Refusal::Unreadable(ode_pdf::Refusal::Failed)),
                "{} made the converter fail with seed {seed}",
                path.display()
            );
            tried += 1;
            if let Ok(conversion) = outcome {
                converted += 1;
                let size: usize = conversion.assets.iter().map(|asset| asset.bytes.len()).sum();
                assert!(size <= bytes_max, "{} gives {size} bytes", path.display());
            }
        }
    }
    assert!(tried == 0 || converted * 2 > tried, "only {converted} of {tried} were converted");
}
