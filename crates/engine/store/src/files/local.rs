//! Files on local disk that survive a crash.
//!
//! A file is written under its own name, which nobody knows before it is whole and synced: it need not be moved into
//! place. What a crash leaves of one is found by the sweep.

use bytes::Bytes;
use std::fs::File;
use std::io::{self, IoSlice, Write as _};
use std::path::Path;

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

/// Less is written in the ordinary way: it waits for the disk once, when it is synced.
const PAST_MEMORY_MIN: usize = 256 << 10;

/// Writes without a copy in the memory that the system keeps of files, where that saves something and the file system can do
/// it. Whoever reads the file then fetches it from the disk.
pub(crate) fn write_past_memory(mut file: &File, part: &[u8]) -> io::Result<()> {
    let done = if part.len() >= PAST_MEMORY_MIN { write_blocks(file, part)? } else { 0 };
    file.write_all(&part[done..])
}

/// Hands whole blocks to the disk, as far as it takes them; answers how much that was.
#[cfg(target_os = "linux")]
fn write_blocks(mut file: &File, part: &[u8]) -> io::Result<usize> {
    use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
    use std::io::ErrorKind;
    let ordinary = fcntl_getfl(file)?;
    let (mut done, end) = (0, part.len() - part.len() % crate::files::parts::BLOCK_BYTES);
    if fcntl_setfl(file, ordinary | OFlags::DIRECT).is_err() {
        return Ok(done);
    }
    while done < end {
        match file.write(&part[done..end]) {
            Ok(0) => return Err(ErrorKind::WriteZero.into()),
            Ok(written) => done += written,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            // It wants larger blocks, or cannot do it after all.
            Err(error) if matches!(error.kind(), ErrorKind::InvalidInput | ErrorKind::Unsupported) => break,
            Err(error) => return Err(error),
        }
    }
    fcntl_setfl(file, ordinary)?;
    Ok(done)
}

#[cfg(not(target_os = "linux"))]
fn write_blocks(_file: &File, _part: &[u8]) -> io::Result<usize> {
    Ok(0)
}

/// Makes a name durable.
pub(crate) fn sync_folder_of(place: &Path) -> io::Result<()> {
    File::open(place.parent().unwrap_or(place))?.sync_all()
}

/// Writes a file whole, or nothing.
pub(crate) fn write_whole(place: &Path, parts: &[Bytes]) -> io::Result<()> {
    let file = match begin(place) {
        // After a database was restored, attempts have fences that others had, to whose files nothing points any more.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            std::fs::remove_file(place)?;
            begin(place)?
        }
        begun => begun?,
    };
    let written = write(&file, parts).and_then(|()| file.sync_all()).and_then(|()| sync_folder_of(place));
    if written.is_err() {
        // What cannot be removed now is found by the sweep.
        let _ = std::fs::remove_file(place);
    }
    written
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::parts::BLOCK_BYTES;

    #[test]
    fn a_file_is_written_with_the_directories_above_it_in_the_place_of_one_before() {
        let root = tempfile::tempdir().unwrap();
        let place = root.path().join("ab/job/1-0");
        write_whole(&place, &["page".into(), "style".into()]).unwrap();
        write_whole(&root.path().join("ab/job/1-2"), &["font".into()]).unwrap();
        assert_eq!(std::fs::read_to_string(&place).unwrap(), "pagestyle");
        write_whole(&place, &["again".into()]).unwrap();
        assert_eq!(std::fs::read_to_string(place).unwrap(), "again");
    }

    #[test]
    fn what_is_written_past_memory_is_what_was_given() {
        let root = tempfile::tempdir().unwrap();
        let given: Vec<u8> = (0..3 * PAST_MEMORY_MIN).map(|number| (number % 251) as u8).collect();
        let aligned = given.as_ptr().align_offset(BLOCK_BYTES);
        for (number, start) in [aligned, aligned + 1, aligned + 512].into_iter().enumerate() {
            let place = root.path().join(number.to_string());
            let file = begin(&place).unwrap();
            // The third begins where no block does.
            let ends = [PAST_MEMORY_MIN, 2 * PAST_MEMORY_MIN + 100, given.len() - start];
            let mut from = 0;
            for end in ends {
                write_past_memory(&file, &given[start + from..start + end]).unwrap();
                from = end;
            }
            assert!(std::fs::read(&place).unwrap() == given[start..], "from {start} on");
        }
    }

    #[test]
    fn more_pieces_than_one_call_takes_are_written() {
        let root = tempfile::tempdir().unwrap();
        let place = root.path().join("many");
        let pieces: Vec<Bytes> = (0..5_000).map(|number: u32| number.to_string().into()).collect();
        write_whole(&place, &pieces).unwrap();
        assert_eq!(std::fs::read(place).unwrap(), pieces.concat());
    }
}
