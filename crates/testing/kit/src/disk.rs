//! A disk that is small enough to be filled.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A disk of a few megabytes, in memory.
pub struct SmallDisk(PathBuf);

impl SmallDisk {
    /// Mounts one at a place where there is nothing yet. `None`, and loudly, where that may not be done.
    pub fn mount(place: PathBuf, megabytes: usize) -> Option<Self> {
        fs::create_dir(&place).unwrap();
        let size = format!("size={megabytes}m");
        let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", &size, "tmpfs"]).arg(&place).output();
        if mounted.is_ok_and(|mounted| mounted.status.success()) {
            return Some(SmallDisk(place));
        }
        eprintln!(
            "SKIPPED: a small disk to fill cannot be mounted here; run the tests as root to have it tried"
        );
        None
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Leaves no space on it.
    pub fn fill(&self) {
        let more_than_there_is = vec![0; 128 << 20];
        let filled = fs::write(self.ballast(), more_than_there_is);
        assert_eq!(filled.unwrap_err().kind(), ErrorKind::StorageFull);
    }

    /// Gives the space back.
    pub fn free(&self) {
        fs::remove_file(self.ballast()).unwrap();
    }

    fn ballast(&self) -> PathBuf {
        self.0.join("ballast")
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // If it does not succeed, a few megabytes stay mounted in a temporary directory.
        let _ = Command::new("umount").arg(&self.0).status();
    }
}
