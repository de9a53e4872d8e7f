//! The files that a script leaves: read from its directory and nowhere else, and kept only without secrets.

use crate::archive;
use crate::order::Artifact;
use ode_child::{Place, Redactor};
use rustix::io::Errno;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

/// One file; a picture of a very long page has a few megabytes.
const BYTES_MAX: u64 = 20 * 1024 * 1024;
/// All files of one attempt.
const TOTAL_BYTES_MAX: u64 = 60 * 1024 * 1024;
const COUNT_MAX: usize = 50;
/// What a file is that its script gave no word for.
const KIND: &str = "file";
/// How files begin in which something is packed. It cannot be searched as it is.
const PACKED: [&[u8]; 5] = [archive::START, b"\x1f\x8b", b"BZh", b"\xfd7zXZ", b"\x28\xb5\x2f\xfd"];

/// Reads the files that a script named. What is left out is told to `note`.
pub(crate) fn collect(
    folder: &Path,
    named: &[ode_child::Artifact],
    redactor: &Redactor,
    mut note: impl FnMut(String),
) -> Vec<Artifact> {
    let mut kept: Vec<Artifact> = Vec::new();
    let mut room = TOTAL_BYTES_MAX;
    for artifact in named {
        let name = &artifact.name;
        let Place::File(path) = &artifact.place else { continue };
        if kept.len() == COUNT_MAX {
            note(format!("The file {name} was left out: a script may leave {COUNT_MAX}."));
            continue;
        }
        let contents = read(folder, path, room.min(BYTES_MAX)).map_err(unread);
        match contents.and_then(|contents| without_secrets(contents, redactor)) {
            Ok(contents) => {
                room = room.saturating_sub(contents.len() as u64);
                let kind = artifact.kind.clone().unwrap_or_else(|| KIND.to_owned());
                let name = free_name(name, |name| kept.iter().any(|other| other.name == name));
                kept.push(Artifact { name, kind, contents });
            }
            Err(why) => note(format!("The file {name} was left out: {why}.")),
        }
    }
    kept
}

/// A name that no other file has: `page.txt`, then `page-2.txt`. Two may be named alike, or become so when secrets are
/// hidden in their names.
fn free_name(name: &str, is_taken: impl Fn(&str) -> bool) -> String {
    let stem_end = name.rfind('.').filter(|dot| !name[*dot..].contains('/')).unwrap_or(name.len());
    let (stem, extension) = name.split_at(stem_end);
    let numbered = (2..).map(|number| format!("{stem}-{number}{extension}"));
    let mut names = std::iter::once(name.to_owned()).chain(numbered);
    names.find(|name| !is_taken(name)).expect("there are more numbers than files")
}

fn read(folder: &Path, path: &str, bytes_max: u64) -> io::Result<Vec<u8>> {
    let file = open_below(folder, path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("it is not a file"));
    }
    let mut contents = Vec::new();
    file.take(bytes_max + 1).read_to_end(&mut contents)?;
    if contents.is_empty() {
        return Err(io::Error::other("it is empty"));
    }
    if contents.len() as u64 > bytes_max {
        let (file_mb, total_mb) = (BYTES_MAX >> 20, TOTAL_BYTES_MAX >> 20);
        return Err(io::Error::other(format!(
            "it is too large: a file may have {file_mb} MB, and all of an attempt {total_mb} MB"
        )));
    }
    Ok(contents)
}

/// Why a file cannot be read, in words for who wrote the script.
fn unread(error: io::Error) -> String {
    match Errno::from_io_error(&error) {
        Some(Errno::NOENT) => "it is not in ODE_ARTIFACTS".to_owned(),
        // What a way over a symbolic link, or out of the folder, is refused with.
        Some(Errno::LOOP | Errno::XDEV) => {
            "a link stands in its way: leave the file itself in ODE_ARTIFACTS".to_owned()
        }
        _ => error.to_string(),
    }
}

/// Opens a file without following a link that a script may have put there to have another file read.
#[cfg(target_os = "linux")]
fn open_below(folder: &Path, path: &str) -> io::Result<File> {
    use rustix::fs::{Mode, OFlags, ResolveFlags, openat2};
    let folder = File::open(folder)?;
    // A pipe in place of a file must not make us wait.
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    Ok(openat2(folder, path, flags, Mode::empty(), resolve)?.into())
}

#[cfg(not(target_os = "linux"))]
fn open_below(folder: &Path, path: &str) -> io::Result<File> {
    let whole = folder.join(path).canonicalize()?;
    if whole.starts_with(folder.canonicalize()?) {
        File::open(whole)
    } else {
        Err(io::ErrorKind::NotFound.into())
    }
}

/// What is kept of a file: all of it where there are no secrets, and of an archive the same for each file in it.
fn without_secrets(contents: Vec<u8>, redactor: &Redactor) -> Result<Vec<u8>, String> {
    if redactor.is_empty() {
        return Ok(contents);
    }
    if contents.starts_with(archive::START) {
        return archive::changed(&contents, |file| searched(file, redactor));
    }
    searched(contents, redactor)
}

/// Text is kept without its secrets; anything else that holds one is not kept, nor is what cannot be searched.
fn searched(contents: Vec<u8>, redactor: &Redactor) -> Result<Vec<u8>, String> {
    if PACKED.iter().any(|start| contents.starts_with(start)) {
        return Err("what is packed in it cannot be searched for secrets".to_owned());
    }
    if !redactor.finds(&contents) {
        return Ok(contents);
    }
    match String::from_utf8(contents) {
        Ok(text) => Ok(redactor.text(&text).into_owned().into_bytes()),
        Err(_) => Err("it holds a secret".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn check(contents: &[u8], expected: Result<&[u8], &str>) {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("a"), contents).unwrap();
        let named = [named("a")];
        let mut notes = Vec::new();
        let redactor = Redactor::new(&[json!("hunter2")]);
        let kept = collect(folder.path(), &named, &redactor, |note| notes.push(note));
        match expected {
            Ok(contents) => assert_eq!((kept[0].contents.as_slice(), notes.len()), (contents, 0)),
            Err(why) => assert!(kept.is_empty() && notes[0].contains(why), "{notes:?}"),
        }
    }

    fn named(path: &str) -> ode_child::Artifact {
        ode_child::Artifact { name: "a".to_owned(), kind: None, place: Place::File(path.to_owned()) }
    }

    #[test]
    fn secrets_are_hidden_in_text_and_keep_other_files_out() {
        check(b"all is well", Ok(b"all is well"));
        check(b"typed hunter2", Ok(b"typed ***"));
        check(b"\xff\xfe hunter2", Err("holds a secret"));
        check(b"\x89PNG\xff\xfe", Ok(b"\x89PNG\xff\xfe"));
        check(b"PK\x03\x04 packed", Err("archive"));
        check(b"\x1f\x8b packed", Err("cannot be searched"));
        check(b"", Err("it is empty"));
    }

    #[test]
    fn a_secret_in_any_form_keeps_a_file_of_bytes_out() {
        let forms: [&[u8]; 4] = [b"hunter2", b"aHVudGVyMg", b"68756e74657232", b"h\0u\0n\0t\0e\0r\x002\0"];
        for form in forms {
            check(&[b"\x89PNG\xff\0\xfe", form, b"\0\xff"].concat(), Err("it holds a secret"));
        }
    }

    #[test]
    fn files_of_one_name_are_all_kept_under_names_of_their_own() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("a"), "a").unwrap();
        let named = ["page.txt", "page-2.txt", "page.txt", "page.txt", "bare", "bare"]
            .map(|name| ode_child::Artifact { name: name.to_owned(), ..named("a") });
        let kept = collect(folder.path(), &named, &Redactor::default(), |note| panic!("{note}"));
        let names: Vec<_> = kept.iter().map(|file| file.name.as_str()).collect();
        assert_eq!(names, ["page.txt", "page-2.txt", "page-3.txt", "page-4.txt", "bare", "bare-2"]);
    }

    #[test]
    fn links_folders_and_pipes_are_not_files() {
        let folder = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink("/etc/passwd", folder.path().join("link")).unwrap();
        std::os::unix::fs::symlink("/etc", folder.path().join("etc")).unwrap();
        std::fs::create_dir(folder.path().join("folder")).unwrap();
        let pipe = folder.path().join("pipe");
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
        let named = ["link", "etc/passwd", "folder", "pipe", "missing"].map(named);
        let mut notes = 0;
        assert!(collect(folder.path(), &named, &Redactor::default(), |_| notes += 1).is_empty());
        assert_eq!(notes, 5);
    }
}
