//! ZIP archives, such as the traces of a browser: taken apart, and put together again of what each file became.

use std::io::{Cursor, Read, Write as _};
use zip::read::ZipFile;
use zip::result::ZipError;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, DateTime, ZipArchive, ZipWriter};

/// How an archive begins.
pub(crate) const START: &[u8] = b"PK\x03\x04";

/// A trace of a long job has some thousands of small files.
const FILES_MAX: usize = 10_000;
/// What all of them have together; more is a bomb, or of no use to anybody.
const BYTES_MAX: u64 = 200 * 1024 * 1024;

/// The same archive with each file as `change` makes it, or why there is none.
pub(crate) fn changed(
    archive: &[u8],
    change: impl Fn(Vec<u8>) -> Result<Vec<u8>, String>,
) -> Result<Vec<u8>, String> {
    let mut archive = ZipArchive::new(Cursor::new(archive)).map_err(|_| broken())?;
    if archive.len() > FILES_MAX {
        return Err(format!("it has {} files; {FILES_MAX} may be searched", archive.len()));
    }
    let end = archive.central_directory_start();
    let mut room = BYTES_MAX;
    let mut made = ZipWriter::new(Cursor::new(Vec::new()));
    for index in 0..archive.len() {
        let mut file = archive.by_index(index).map_err(refusal)?;
        let name = change(file.name_raw().to_vec())?;
        let contents = contents(&mut file, end, room)?;
        room -= contents.len() as u64;
        add(&mut made, name, &change(contents)?)?;
    }
    made.finish().map(Cursor::into_inner).map_err(refusal)
}

fn broken() -> String {
    "it is not an archive that can be searched for secrets".to_owned()
}

fn refusal(error: ZipError) -> String {
    match error {
        ZipError::UnsupportedArchive(ZipError::PASSWORD_REQUIRED) => "a file in it is locked".to_owned(),
        _ => broken(),
    }
}

/// The contents of a file, all of which is before the `end` of the files in the archive.
fn contents<R: Read>(file: &mut ZipFile<'_, R>, end: u64, bytes_max: u64) -> Result<Vec<u8>, String> {
    let start = file.data_start().ok_or_else(broken)?;
    start.checked_add(file.compressed_size()).filter(|file_end| *file_end <= end).ok_or_else(broken)?;
    let mut contents = Vec::new();
    file.take(bytes_max + 1).read_to_end(&mut contents).map_err(|_| broken())?;
    if contents.len() as u64 > bytes_max {
        return Err("what is packed in it is too large to be searched for secrets".to_owned());
    }
    Ok(contents)
}

fn add(archive: &mut ZipWriter<Cursor<Vec<u8>>>, name: Vec<u8>, contents: &[u8]) -> Result<(), String> {
    // Without a moment: the format's own has no time zone, and nobody asks for it.
    let options = SimpleFileOptions::default()
        .compression_method(CompressionMethod::Deflated)
        .last_modified_time(DateTime::DEFAULT);
    let name = String::from_utf8(name).map_err(|_| broken())?;
    archive.start_file(name, options).map_err(refusal)?;
    archive.write_all(contents).map_err(|_| broken())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn archive(files: &[(&str, &[u8])]) -> Vec<u8> {
        let mut made = ZipWriter::new(Cursor::new(Vec::new()));
        for (name, contents) in files {
            add(&mut made, name.as_bytes().to_vec(), contents).unwrap();
        }
        made.finish().unwrap().into_inner()
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
            let row = packed.windows(4).rposition(|part| part == b"PK\x01\x02").unwrap();
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
        assert!(packed.len() < 200);
        let read = |bytes_max| {
            let mut archive = ZipArchive::new(Cursor::new(&packed)).unwrap();
            let end = archive.central_directory_start();
            contents(&mut archive.by_index(0).unwrap(), end, bytes_max)
        };
        assert_eq!(read(1000).unwrap().len(), 1000);
        assert!(read(999).unwrap_err().contains("too large"));
    }
}
