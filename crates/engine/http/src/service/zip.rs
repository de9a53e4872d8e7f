//! Files as one archive in the ZIP format: plain entries, packed where that helps, and a list of them at the end. The
//! same files always give the same bytes.

use flate2::Compression;
use flate2::write::DeflateEncoder;
use std::io::Write as _;

/// Nothing of ours is larger: a result is bounded far below.
const ENTRIES_MAX: usize = u16::MAX as usize;
/// Any date will do, as long as it is always the same: 1980-01-01, where the format's calendar begins.
const DATE: u16 = 0x21;
/// Names are UTF-8.
const FLAGS: u16 = 1 << 11;
const VERSION: u16 = 20;

/// One archive that grows.
#[derive(Debug, Default)]
pub(super) struct Zip {
    bytes: Vec<u8>,
    list: Vec<u8>,
    entries: usize,
}

/// An archive that this format cannot hold.
#[derive(Debug)]
pub(super) struct TooLarge;

impl Zip {
    /// Adds a file.
    pub(super) fn add(&mut self, name: &str, content: &[u8]) -> Result<(), TooLarge> {
        let packed = packed(content);
        let (method, stored) = match &packed {
            Some(packed) => (8_u16, packed.as_slice()),
            None => (0_u16, content),
        };
        let fit = |length: usize| u32::try_from(length).map_err(|_| TooLarge);
        let (offset, size, packed_size) = (fit(self.bytes.len())?, fit(content.len())?, fit(stored.len())?);
        let name_length = u16::try_from(name.len()).map_err(|_| TooLarge)?;
        if self.entries == ENTRIES_MAX {
            return Err(TooLarge);
        }
        let mut head = Vec::with_capacity(26);
        for number in [VERSION, FLAGS, method, 0, DATE] {
            head.extend_from_slice(&number.to_le_bytes());
        }
        for number in [crc32fast::hash(content), packed_size, size] {
            head.extend_from_slice(&number.to_le_bytes());
        }
        head.extend_from_slice(&name_length.to_le_bytes());
        head.extend_from_slice(&[0; 2]);
        self.bytes.extend_from_slice(b"PK\x03\x04");
        self.bytes.extend_from_slice(&head);
        self.bytes.extend_from_slice(name.as_bytes());
        self.bytes.extend_from_slice(stored);
        self.list.extend_from_slice(b"PK\x01\x02");
        self.list.extend_from_slice(&VERSION.to_le_bytes());
        self.list.extend_from_slice(&head);
        // No comment, the first disk, no attributes.
        self.list.extend_from_slice(&[0; 10]);
        self.list.extend_from_slice(&offset.to_le_bytes());
        self.list.extend_from_slice(name.as_bytes());
        self.entries += 1;
        Ok(())
    }

    /// The whole archive.
    pub(super) fn finish(mut self) -> Result<Vec<u8>, TooLarge> {
        let fit = |length: usize| u32::try_from(length).map_err(|_| TooLarge);
        let (start, size) = (fit(self.bytes.len())?, fit(self.list.len())?);
        let entries = u16::try_from(self.entries).map_err(|_| TooLarge)?;
        self.bytes.append(&mut self.list);
        self.bytes.extend_from_slice(b"PK\x05\x06\0\0\0\0");
        for number in [entries, entries] {
            self.bytes.extend_from_slice(&number.to_le_bytes());
        }
        for number in [size, start] {
            self.bytes.extend_from_slice(&number.to_le_bytes());
        }
        self.bytes.extend_from_slice(&[0; 2]);
        Ok(self.bytes)
    }
}

/// The content packed; nothing where that does not make it smaller, as with fonts and pictures.
fn packed(content: &[u8]) -> Option<Vec<u8>> {
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(content).ok()?;
    encoder.finish().ok().filter(|packed| packed.len() < content.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_archive_is_read_by_the_program_that_people_have() {
        let mut zip = Zip::default();
        let long = "a line that repeats\n".repeat(1000);
        zip.add("index.html", long.as_bytes()).unwrap();
        zip.add("fonts/ü.woff2", &[0, 1, 2, 250]).unwrap();
        let bytes = zip.finish().unwrap();
        assert!(bytes.len() < long.len(), "what repeats is packed");
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.zip");
        std::fs::write(&path, &bytes).unwrap();
        let read = std::process::Command::new("python3")
            .args([
                "-c",
                "import sys,zipfile;z=zipfile.ZipFile(sys.argv[1]);assert z.testzip() is None;\
                print(len(z.read('index.html')),sorted(z.namelist())[0],z.read('fonts/ü.woff2')[3])",
            ])
            .arg(&path)
            .output()
            .unwrap();
        assert_eq!(String::from_utf8_lossy(&read.stdout), "20000 fonts/ü.woff2 250\n", "{read:?}");
    }
}
