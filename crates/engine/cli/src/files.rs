//! People's files: read within bounds, written whole or not at all, and never replaced unless they say so.

use crate::WrongUse;
use anyhow::{Context as _, anyhow, bail};
use clap::Args;
use std::fs::{self, File, Permissions};
use std::io::{ErrorKind, Read, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

/// What becomes of files that are where results go. The same for every command that writes some.
#[derive(Debug, Clone, Copy, Args)]
pub struct Existing {
    /// Replace files that are there already
    #[arg(long)]
    force: bool,
}

impl Existing {
    /// Whether a result may go there. Asked before the work is done, so that none is done in vain.
    pub fn check(self, place: &Place) -> anyhow::Result<()> {
        match place {
            Place::File(path) if path.is_file() && !self.force => Err(taken(path)),
            Place::File(path) if path.is_file() && is_pdf(path) => Err(pdf(path)),
            Place::File(_) | Place::Stdout => Ok(()),
        }
    }

    /// Writes a file whole or not at all: a result that is cut short must not look like one.
    pub fn put(self, path: &Path, contents: &[u8]) -> anyhow::Result<()> {
        let cannot = || format!("Cannot write {}", path.display());
        // A device or a pipe is written to, not replaced.
        if path.exists() && !path.is_file() {
            return fs::write(path, contents).with_context(cannot);
        }
        if is_pdf(path) {
            return Err(pdf(path));
        }
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        // As any new file would be; without this it would be for its owner alone.
        let readable = Permissions::from_mode(0o666);
        let mut beside = tempfile::Builder::new()
            .permissions(readable)
            .tempfile_in(folder)
            .map_err(|error| anyhow!("{}: {}", cannot(), reason(&error)))?;
        beside.as_file_mut().write_all(contents).with_context(cannot)?;
        let kept = if self.force { beside.persist(path) } else { beside.persist_noclobber(path) };
        match kept {
            Ok(_) => Ok(()),
            // Somebody else made it meanwhile.
            Err(error) if error.error.kind() == ErrorKind::AlreadyExists => Err(taken(path)),
            Err(error) => Err(error.error).with_context(cannot),
        }
    }
}

/// What the system said, without the name of a file beside it that nobody asked for.
fn reason(error: &std::io::Error) -> String {
    let said = error.to_string();
    said.rsplit_once(" at path ").map_or(said.clone(), |(reason, _)| reason.to_owned())
}

fn taken(path: &Path) -> anyhow::Error {
    anyhow!("{} is there already. Choose another place, or replace it with --force.", path.display())
}

fn pdf(path: &Path) -> anyhow::Error {
    anyhow!("{} is a PDF, which is not replaced. Choose another place.", path.display())
}

/// Whether a PDF is in this place, whatever it is called: most likely the one that was to be read.
fn is_pdf(path: &Path) -> bool {
    let mut start = [0; 5];
    File::open(path).and_then(|mut file| file.read_exact(&mut start)).is_ok() && start == *b"%PDF-"
}

/// Where a result goes.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Place {
    /// Standard output.
    Stdout,
    File(PathBuf),
}

impl Place {
    /// A place as it is written on the command line, `-` for standard output.
    pub fn of(given: &Path) -> Self {
        // By its other name it may look like a file that is there already.
        match given == Path::new("-") || given == Path::new("/dev/stdout") {
            true => Place::Stdout,
            false => Place::File(given.to_owned()),
        }
    }
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Place::Stdout => f.write_str("standard output"),
            Place::File(path) => path.display().fmt(f),
        }
    }
}

pub fn write(place: &Place, contents: &[u8], existing: Existing) -> anyhow::Result<()> {
    match place {
        Place::Stdout => crate::print_bytes(contents),
        Place::File(path) => existing.put(path, contents),
    }
}

/// Whether a place is meant as a directory: it is one, or is written like one.
pub fn is_folder(given: &Path) -> bool {
    given.is_dir() || given.as_os_str().as_encoded_bytes().ends_with(b"/")
}

/// Refuses a directory where one file is to be written.
pub fn one_file(option: &str, given: &Path) -> anyhow::Result<Place> {
    if is_folder(given) {
        bail!(WrongUse(format!("{option} {} is a directory. Name the file to write.", given.display())));
    }
    Ok(Place::of(given))
}

/// Something said about a file, with its name in front unless it is about reading it and has the name already.
pub fn about(path: &Path, said: &str) -> String {
    let path = path.display();
    match said.starts_with(&format!("Cannot read {path}: ")) {
        true => said.to_owned(),
        false => format!("{path}: {said}"),
    }
}

/// Says something about a file. Its name and what is in it come from outside.
pub fn tell_about(path: &Path, said: &str) {
    crate::tell(crate::printable(&about(path, said)));
}

/// Reads a file, but not more of it than could be of use.
pub fn read(path: &Path, bytes_max: u64) -> anyhow::Result<Vec<u8>> {
    let cannot = || format!("Cannot read {}", path.display());
    let file = File::open(path).with_context(cannot)?;
    bounded(file, bytes_max).with_context(cannot)
}

/// Reads what comes in, with the same bound.
pub fn read_stdin(bytes_max: u64) -> anyhow::Result<Vec<u8>> {
    bounded(std::io::stdin().lock(), bytes_max).context("Cannot read standard input")
}

fn bounded(from: impl Read, bytes_max: u64) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    from.take(bytes_max + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}
