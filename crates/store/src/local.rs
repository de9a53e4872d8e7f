//! Files on local disk that survive a crash.
//!
//! A file is written under its own name, which nobody knows before it is whole and synced: it need not be moved into
//! place. What a crash leaves of one is found by the sweep.

use bytes::Bytes;
use std::fs::File;
use std::io::{self, IoSlice, Write as _};
use std::path::{Path, PathBuf};

/// Directories that others may remove before they are used.
const TRIES: usize = 3;

/// Begins a file. Directories are made where there are none.
pub(crate) fn begin(place: &Path) -> io::Result<File> {
    let open = || File::options().write(true).create_new(true).open(place);
    let mut opened = open();
    for _ in 0..TRIES {
        match &opened {
            // A directory goes with its last file.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                make_folder_of(place)?;
                opened = open();
            }
            Ok(_) | Err(_) => break,
        }
    }
    opened
}

fn make_folder_of(place: &Path) -> io::Result<()> {
    let folder = place.parent().unwrap_or(place);
    match std::fs::create_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound && folder != place => {
            make_folder_of(folder)?;
            make_folder_of(place)
        }
        // Whoever made it may not have synced it yet.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => sync_folder_of(folder),
        Err(error) => Err(error),
        Ok(()) => sync_folder_of(folder),
    }
}

/// Writes the pieces together: the file system makes room for many at once, and in large blocks.
pub(crate) fn write(mut file: &File, part: &[Bytes]) -> io::Result<()> {
    let mut slices: Vec<IoSlice<'_>> = part.iter().map(|piece| IoSlice::new(piece)).collect();
    let mut rest = slices.as_mut_slice();
    while !rest.is_empty() {
        match file.write_vectored(rest) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => IoSlice::advance_slices(&mut rest, written),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Makes a name durable.
pub(crate) fn sync_folder_of(place: &Path) -> io::Result<()> {
    File::open(place.parent().unwrap_or(place))?.sync_all()
}

/// Writes files that lie in one directory below the root: all of them or none.
pub(crate) fn write_all(root: &Path, files: &[(String, Bytes)]) -> io::Result<()> {
    let mut begun = Vec::with_capacity(files.len());
    let written = write_and_sync(root, files, &mut begun);
    if written.is_err() {
        // What cannot be removed now is found by the sweep.
        begun.iter().for_each(|(place, _)| drop(std::fs::remove_file(place)));
    }
    written
}

fn write_and_sync(
    root: &Path,
    files: &[(String, Bytes)],
    begun: &mut Vec<(PathBuf, File)>,
) -> io::Result<()> {
    for (path, content) in files {
        let place = root.join(path);
        let file = begin(&place)?;
        let written = write(&file, std::slice::from_ref(content));
        begun.push((place, file));
        written?;
    }
    // Only now, so that the first sync has the names of all on disk and the others find them there.
    begun.iter().try_for_each(|(_, file)| file.sync_all())?;
    begun.first().map_or(Ok(()), |(place, _)| sync_folder_of(place))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, content: &'static str) -> (String, Bytes) {
        (path.to_owned(), Bytes::from_static(content.as_bytes()))
    }

    #[test]
    fn files_are_written_with_the_directories_above_them() {
        let root = tempfile::tempdir().unwrap();
        write_all(root.path(), &[file("ab/job/1-0", "page"), file("ab/job/1-1", "style")]).unwrap();
        write_all(root.path(), &[file("ab/job/1-2", "font")]).unwrap();
        for (path, content) in [("ab/job/1-0", "page"), ("ab/job/1-1", "style"), ("ab/job/1-2", "font")] {
            assert_eq!(std::fs::read_to_string(root.path().join(path)).unwrap(), content);
        }
        write_all(root.path(), &[]).unwrap();
    }

    #[test]
    fn where_one_cannot_be_written_none_is_left_and_what_was_there_stays() {
        let root = tempfile::tempdir().unwrap();
        write_all(root.path(), &[file("ab/job/1-1", "first")]).unwrap();
        let refused = write_all(root.path(), &[file("ab/job/1-0", "page"), file("ab/job/1-1", "second")]);
        assert_eq!(refused.unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        assert!(!root.path().join("ab/job/1-0").exists());
        assert_eq!(std::fs::read_to_string(root.path().join("ab/job/1-1")).unwrap(), "first");
    }
}
