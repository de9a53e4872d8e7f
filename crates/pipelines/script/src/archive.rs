//! ZIP archives, such as the traces of a browser: taken apart, and put together again of what each file became.

use flate2::Compression;
use flate2::read::{DeflateDecoder, DeflateEncoder};
use std::io::Read as _;

/// How an archive begins.
pub(crate) const START: &[u8] = b"PK\x03\x04";
/// How the table of its files ends, and how each of its rows begins.
const END: &[u8] = b"PK\x05\x06";
const ROW: &[u8] = b"PK\x01\x02";
const END_BYTES: usize = 22;
const ROW_BYTES: usize = 46;
const LOCAL_BYTES: usize = 30;
/// What may stand after the table.
const REMARK_BYTES_MAX: usize = u16::MAX as usize;

const STORED: u16 = 0;
const DEFLATED: u16 = 8;
/// The version of the format that deflation needs.
const VERSION: u16 = 20;
/// Names are UTF-8.
const UTF8: u16 = 1 << 11;

/// A trace of a long job has some thousands of small files.
const FILES_MAX: u16 = 10_000;
/// What all of them have together; more is a bomb, or of no use to anybody.
const BYTES_MAX: u64 = 200 * 1024 * 1024;

/// The same archive with each file as `change` makes it, or why there is none.
pub(crate) fn changed(
    archive: &[u8],
    change: impl Fn(Vec<u8>) -> Result<Vec<u8>, String>,
) -> Result<Vec<u8>, String> {
    let (count, mut rows) = table(archive).ok_or_else(broken)?;
    if count > FILES_MAX {
        return Err(format!("it has {count} files; {FILES_MAX} may be searched"));
    }
    let mut room = BYTES_MAX;
    let mut made = Archive::default();
    for _ in 0..count {
        let (file, after) = Packed::read(archive, rows).ok_or_else(broken)?;
        let contents = file.contents(room)?;
        room -= contents.len() as u64;
        let name = change(file.name.to_vec())?;
        made.add(&name, &change(contents)?)?;
        rows = after;
    }
    Ok(made.whole())
}

fn broken() -> String {
    "it is not an archive that can be searched for secrets".to_owned()
}

/// How many files there are, and the table of them.
fn table(archive: &[u8]) -> Option<(u16, &[u8])> {
    let from = archive.len().saturating_sub(END_BYTES + REMARK_BYTES_MAX);
    let at = from + archive.get(from..)?.windows(END.len()).rposition(|part| part == END)?;
    let end = archive.get(at..at + END_BYTES)?;
    let start = usize::try_from(long(end, 16)?).ok()?;
    Some((short(end, 10)?, archive.get(start..at)?))
}

fn short(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

fn long(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

/// A file as it is in an archive.
struct Packed<'a> {
    name: &'a [u8],
    method: u16,
    is_locked: bool,
    bytes: &'a [u8],
}

impl<'a> Packed<'a> {
    /// The file of the first row, and the rows after it.
    fn read(archive: &'a [u8], rows: &'a [u8]) -> Option<(Self, &'a [u8])> {
        let row = rows.strip_prefix(ROW).and(rows.get(..ROW_BYTES))?;
        let [name, extra, remark] = [28, 30, 32].map(|at| short(row, at).map(usize::from));
        let name = rows.get(ROW_BYTES..ROW_BYTES + name?)?;
        let after = rows.get(ROW_BYTES + name.len() + extra? + remark?..)?;
        let [size, local] = [20, 42].map(|at| long(row, at).and_then(|number| usize::try_from(number).ok()));
        let local = archive.get(local?..).filter(|local| local.starts_with(START))?;
        let start = LOCAL_BYTES + usize::from(short(local, 26)?) + usize::from(short(local, 28)?);
        let bytes = local.get(start..)?.get(..size?)?;
        let is_locked = short(row, 8)? & 1 == 1;
        Some((Packed { name, method: short(row, 10)?, is_locked, bytes }, after))
    }

    fn contents(&self, bytes_max: u64) -> Result<Vec<u8>, String> {
        let mut contents = Vec::new();
        let read = match self.method {
            _ if self.is_locked => return Err("a file in it is locked".to_owned()),
            STORED => self.bytes.take(bytes_max + 1).read_to_end(&mut contents),
            DEFLATED => DeflateDecoder::new(self.bytes).take(bytes_max + 1).read_to_end(&mut contents),
            _ => return Err(broken()),
        };
        read.map_err(|_| broken())?;
        if contents.len() as u64 > bytes_max {
            return Err("what is packed in it is too large to be searched for secrets".to_owned());
        }
        Ok(contents)
    }
}

/// An archive that is being put together.
#[derive(Default)]
struct Archive {
    files: Vec<u8>,
    table: Vec<u8>,
    count: u16,
}

impl Archive {
    fn add(&mut self, name: &[u8], contents: &[u8]) -> Result<(), String> {
        let mut packed = Vec::new();
        let read = DeflateEncoder::new(contents, Compression::default()).read_to_end(&mut packed);
        read.map_err(|error| error.to_string())?;
        let mut crc = flate2::Crc::new();
        crc.update(contents);
        let number = |length: usize| u32::try_from(length).map_err(|_| broken());
        let local = number(self.files.len())?;
        // Without a moment: the format's own has no time zone, and nobody asks for it.
        let mut about = Vec::new();
        about.extend([VERSION, UTF8, DEFLATED, 0, 0].into_iter().flat_map(u16::to_le_bytes));
        let sizes = [crc.sum(), number(packed.len())?, number(contents.len())?];
        about.extend(sizes.into_iter().flat_map(u32::to_le_bytes));
        about.extend(u16::try_from(name.len()).map_err(|_| broken())?.to_le_bytes());
        about.extend([0; 2]);
        self.files.extend([START, &about, name, &packed].concat());
        self.table
            .extend([ROW, &VERSION.to_le_bytes(), &about, &[0; 10], &local.to_le_bytes(), name].concat());
        self.count += 1;
        Ok(())
    }

    fn whole(self) -> Vec<u8> {
        // Both parts are below four gigabytes: so is what they were made of, by far.
        let [table, files] = [&self.table, &self.files].map(|part| (part.len() as u32).to_le_bytes());
        let count = self.count.to_le_bytes();
        [&self.files, &self.table, END, &[0; 4], &count, &count, &table, &files, &[0; 2]].concat()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn archive(files: &[(&str, &[u8])]) -> Vec<u8> {
        let mut made = Archive::default();
        for (name, contents) in files {
            made.add(name.as_bytes(), contents).unwrap();
        }
        made.whole()
    }

    fn check(packed: &[u8], expected: Result<Vec<u8>, &str>) {
        let shout = |contents: Vec<u8>| Ok(contents.to_ascii_uppercase());
        match (changed(packed, shout), expected) {
            (Ok(made), Ok(expected)) => assert_eq!(made, expected),
            (made, expected) => {
                assert!(made.as_ref().unwrap_err().contains(expected.unwrap_err()), "{made:?}")
            }
        }
    }

    #[test]
    fn every_file_is_changed_with_its_name() {
        let long = vec![b'a'; 100_000];
        let packed = archive(&[("trace", b"typed it"), ("empty", b""), ("long", &long)]);
        let whole = archive(&[("TRACE", b"TYPED IT"), ("EMPTY", b""), ("LONG", &long.to_ascii_uppercase())]);
        check(&packed, Ok(whole.clone()));
        check(&[&packed[..], b"PK"].concat(), Ok(whole));
        check(&archive(&[]), Ok(archive(&[])));
    }

    #[test]
    fn what_cannot_be_searched_is_refused() {
        let packed = archive(&[("a", b"typed it")]);
        check(b"PK\x03\x04 and no more", Err("not an archive"));
        for length in 0..packed.len() {
            check(&packed[..length], Err("not an archive"));
        }
        let with = |at: usize, byte: u8| {
            let mut packed = packed.clone();
            let row = packed.windows(4).rposition(|part| part == ROW).unwrap();
            packed[row + at] = byte;
            packed
        };
        check(&with(8, 1), Err("locked"));
        check(&with(10, 99), Err("not an archive"));
        check(&with(20, 255), Err("not an archive"));
        check(&with(42, 255), Err("not an archive"));
    }

    #[test]
    fn a_bomb_is_not_unpacked() {
        let packed = archive(&[("bomb", &[0; 1000])]);
        let (_, rows) = table(&packed).unwrap();
        let (file, _) = Packed::read(&packed, rows).unwrap();
        assert!(file.bytes.len() < 100);
        assert_eq!(file.contents(1000).unwrap().len(), 1000);
        assert!(file.contents(999).unwrap_err().contains("too large"));
    }
}
