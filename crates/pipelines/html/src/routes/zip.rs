//! Files as one ZIP archive, compressed where that helps. The same files always give the same bytes.

use std::io::{Cursor, Write as _};
use zip::result::ZipResult;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, DateTime, ZipWriter};

/// Endings of files that are compressed already: fonts and pictures.
const COMPRESSED: [&str; 5] = ["jpeg", "jpg", "png", "webp", "woff2"];
/// The fastest: the archive is written while somebody waits for it.
const LEVEL: i64 = 1;

/// Packs files, each under its name.
pub(super) fn pack<C: AsRef<[u8]>>(files: &[(String, C)]) -> ZipResult<Vec<u8>> {
    let mut archive = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, content) in files {
        archive.start_file(name.as_str(), options(name))?;
        archive.write_all(content.as_ref())?;
    }
    Ok(archive.finish()?.into_inner())
}

fn options(name: &str) -> SimpleFileOptions {
    // Any date will do, as long as it is always the same: 1980-01-01, where the format's calendar begins.
    let options = SimpleFileOptions::default().last_modified_time(DateTime::DEFAULT);
    let ending = name.rsplit_once('.').map_or("", |(_, ending)| ending);
    if COMPRESSED.contains(&ending) {
        options.compression_method(CompressionMethod::Stored)
    } else {
        options.compression_method(CompressionMethod::Deflated).compression_level(Some(LEVEL))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_archive_is_read_by_the_program_that_people_have() {
        let long = "a line that repeats\n".repeat(1000);
        let files = [
            ("index.html".to_owned(), long.as_bytes()),
            ("fonts/ü.woff2".to_owned(), [0, 1, 2, 250].as_slice()),
        ];
        let bytes = pack(&files).unwrap();
        assert!(bytes.len() < long.len(), "what repeats is packed");
        assert_eq!(bytes, pack(&files).unwrap(), "the same files give the same bytes");
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
