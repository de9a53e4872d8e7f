//! Folders that were opened one below the other. Whatever becomes of their names meanwhile, they stay the ones that were
//! looked at, and no link is followed on the way down.

use rustix::fs::{AtFlags, CWD, Mode, OFlags, mkdirat, openat, renameat, unlinkat};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;

/// A folder, opened.
#[derive(Debug)]
pub(super) struct Opened(OwnedFd);

impl Opened {
    /// The folder at a path, which leads from the root downwards and has no links in it.
    pub(super) fn folder(root: &Path, path: &Path) -> io::Result<Self> {
        Opened::down(root, path, |folder, name| folder.below(name))
    }

    /// The folder that holds what is at a path.
    pub(super) fn folder_of(root: &Path, path: &Path) -> io::Result<Self> {
        Opened::folder(root, path.parent().unwrap_or(root))
    }

    /// The same, and where there is none, one is made.
    pub(super) fn make_folder_of(root: &Path, path: &Path) -> io::Result<Self> {
        Opened::down(root, path.parent().unwrap_or(root), |folder, name| {
            match mkdirat(&folder.0, name, Mode::RWXU | Mode::RWXG | Mode::RWXO) {
                Ok(()) | Err(Errno::EXIST) => folder.below(name),
                Err(error) => Err(error.into()),
            }
        })
    }

    fn down(
        root: &Path,
        path: &Path,
        step: impl Fn(&Opened, &OsStr) -> io::Result<Opened>,
    ) -> io::Result<Self> {
        let rest = path.strip_prefix(root).map_err(|_| io::ErrorKind::NotFound)?;
        let root = Opened(openat(CWD, root, FOLDER, Mode::empty())?);
        rest.iter().try_fold(root, |folder, name| step(&folder, name))
    }

    fn below(&self, name: &OsStr) -> io::Result<Self> {
        match openat(&self.0, name, FOLDER, Mode::empty()) {
            // So say some systems of a link, and others of whatever is no folder.
            Err(Errno::LOOP) => Err(Errno::NOTDIR.into()),
            opened => Ok(Opened(opened?)),
        }
    }

    /// Opens a file to read it. A pipe is opened at once, too, though nobody may ever write to it.
    pub(super) fn file(&self, name: &OsStr) -> io::Result<File> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        Ok(File::from(openat(&self.0, name, flags, Mode::empty())?))
    }

    /// Moves something in from elsewhere on the same disk.
    pub(super) fn take_in(&self, from: &Path, name: &OsStr) -> io::Result<()> {
        Ok(renameat(CWD, from, &self.0, name)?)
    }

    /// Moves something out.
    pub(super) fn put_out(&self, name: &OsStr, to: &Path) -> io::Result<()> {
        Ok(renameat(&self.0, name, CWD, to)?)
    }

    pub(super) fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        Ok(renameat(&self.0, from, &self.0, to)?)
    }

    pub(super) fn remove_file(&self, name: &OsStr) -> io::Result<()> {
        Ok(unlinkat(&self.0, name, AtFlags::empty())?)
    }

    pub(super) fn remove_folder(&self, name: &OsStr) -> io::Result<()> {
        Ok(unlinkat(&self.0, name, AtFlags::REMOVEDIR)?)
    }

    /// Makes the names in it survive a crash.
    pub(super) fn sync(&self) -> io::Result<()> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        File::from(openat(&self.0, ".", flags, Mode::empty())?).sync_all()
    }
}

const FOLDER: OFlags = LOOK.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
/// A folder that one may pass need not be one that one may list.
#[cfg(target_os = "linux")]
const LOOK: OFlags = OFlags::PATH;
#[cfg(not(target_os = "linux"))]
const LOOK: OFlags = OFlags::RDONLY;

/// Whether that is what the system says of a place where no document can be: there is nothing, a link that leads nowhere, or
/// a socket.
pub(super) fn is_nothing(error: &io::Error) -> bool {
    let kinds = [Errno::NOENT, Errno::NOTDIR, Errno::LOOP, Errno::NXIO];
    kinds.iter().any(|kind| error.raw_os_error() == Some(kind.raw_os_error()))
}

/// The last part of a path.
pub(super) fn name_of(path: &Path) -> &OsStr {
    path.file_name().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    /// A root with a folder in it, and something elsewhere that a link in the root leads to.
    fn places() -> (tempfile::TempDir, tempfile::TempDir) {
        let (root, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        fs::create_dir_all(root.path().join("a/b")).unwrap();
        fs::write(elsewhere.path().join("file"), "mine").unwrap();
        symlink(elsewhere.path(), root.path().join("way")).unwrap();
        symlink(elsewhere.path().join("file"), root.path().join("a/link")).unwrap();
        (root, elsewhere)
    }

    #[test]
    fn a_way_without_links_is_gone_down_and_made() {
        let (root, _elsewhere) = places();
        let root = root.path();
        fs::write(root.join("a/b/file"), "content").unwrap();
        let folder = Opened::folder_of(root, &root.join("a/b/file")).unwrap();
        assert!(folder.file("file".as_ref()).unwrap().metadata().unwrap().is_file());
        Opened::make_folder_of(root, &root.join("c/d/e")).unwrap().sync().unwrap();
        assert!(root.join("c/d").is_dir() && !root.join("c/d/e").exists());
        assert!(Opened::folder_of(root, &root.join("x/y")).is_err_and(|error| is_nothing(&error)));
        assert!(Opened::folder(root, Path::new("/")).is_err(), "it is not below the root");
    }

    #[test]
    fn a_link_is_not_followed() {
        let (root, elsewhere) = places();
        let (root, elsewhere) = (root.path(), elsewhere.path());
        assert!(Opened::folder(root, &root.join("way")).is_err_and(|error| is_nothing(&error)));
        assert!(Opened::folder_of(root, &root.join("way/file")).is_err());
        assert!(Opened::make_folder_of(root, &root.join("way/new/file")).is_err());
        let folder = Opened::folder(root, &root.join("a")).unwrap();
        assert!(folder.file("link".as_ref()).is_err_and(|error| is_nothing(&error)));
        folder.remove_file("link".as_ref()).unwrap();
        assert_eq!(fs::read_dir(elsewhere).unwrap().count(), 1, "only the link is gone");
    }
}
