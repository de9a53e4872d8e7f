//! The private directories of runs, and what is left of those whose runner died.
//!
//! A run has its working directory, its home and its temporary files in one place, so that a browser's profile goes
//! when the run ends. A file in it names the run's processes and the runner: whoever finds the runner gone ends the
//! one and removes the other.

use crate::Error;
use ode_child::{Orphans, Record, end_orphan};
use serde::{Deserialize, Serialize};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// The file that says whose a directory is.
const OWNER: &str = "ode-run.json";
const ARTIFACTS: &str = "artifacts";
/// A directory without that file is being made, unless it is older than this.
const UNCLAIMED_MAX: Duration = Duration::from_secs(60);
/// How long a keeper that was let go of may take to end what it keeps.
const END_PATIENCE: Duration = Duration::from_secs(30);
const LOOK_INTERVAL: Duration = Duration::from_millis(50);

#[derive(Serialize, Deserialize)]
struct Owner {
    host: String,
    runner: Record,
    run: Record,
}

/// The directory of all private directories here.
#[derive(Debug, Clone)]
pub(crate) struct Runs {
    root: PathBuf,
}

impl Runs {
    pub(crate) fn open(data: &Path) -> Result<Self, Error> {
        let root = data.join("script-runs");
        let make = || {
            std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&root)?;
            root.canonicalize()
        };
        let root = make().map_err(|error| Error::file(&root, error))?;
        Ok(Self { root })
    }

    /// A new directory, which nobody else may look into.
    pub(crate) fn make(&self) -> Result<Scratch, Error> {
        let path = self.root.join(uuid::Uuid::new_v4().simple().to_string());
        let artifacts = path.join(ARTIFACTS);
        let scratch = Scratch { path, artifacts, run: None, is_gone: false };
        let mut maker = std::fs::DirBuilder::new();
        maker.mode(0o700);
        maker.create(&scratch.path).map_err(|error| Error::file(&scratch.path, error))?;
        maker.create(&scratch.artifacts).map_err(|error| Error::file(&scratch.artifacts, error))?;
        Ok(scratch)
    }

    /// Ends the runs of runners that are no more, and removes their directories.
    pub(crate) async fn sweep(&self) {
        let root = self.root.clone();
        // An error means that the runtime is shutting down.
        let _ = tokio::task::spawn_blocking(move || sweep(&root)).await;
    }
}

fn sweep(root: &Path) {
    let Ok(entries) = std::fs::read_dir(root) else { return };
    for path in entries.filter_map(|entry| Some(entry.ok()?.path())) {
        let owner = std::fs::read(path.join(OWNER)).ok();
        let owner = owner.and_then(|text| serde_json::from_slice::<Owner>(&text).ok());
        let is_over = match &owner {
            // Numbers of processes mean nothing elsewhere: another machine may share this directory.
            Some(owner) if owner.host != host() || owner.runner.is_alive() => false,
            Some(owner) => match end_orphan(&owner.run) {
                Orphans::None => true,
                Orphans::Ended(count) => {
                    tracing::warn!(count, "ended {count} processes of a script whose worker had died");
                    true
                }
                Orphans::Remain(_) => false,
            },
            None => is_old(&path),
        };
        if is_over {
            remove(&path);
        }
    }
}

fn is_old(path: &Path) -> bool {
    let made = path.metadata().and_then(|about| about.modified());
    made.is_ok_and(|made| SystemTime::now().duration_since(made).is_ok_and(|age| age > UNCLAIMED_MAX))
}

fn remove(path: &Path) {
    if let Err(error) = try_remove(path) {
        // The next sweep tries again.
        tracing::warn!(%error, path = %path.display(), "could not remove the directory of a script: {error}");
    }
}

fn try_remove(path: &Path) -> std::io::Result<()> {
    match std::fs::remove_dir_all(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}

fn host() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

/// The private directory of one run. Dropping it removes it, once the run has ended.
#[derive(Debug)]
pub(crate) struct Scratch {
    path: PathBuf,
    artifacts: PathBuf,
    /// The processes that may still write to it.
    run: Option<Record>,
    is_gone: bool,
}

impl Scratch {
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Where the script leaves its files.
    pub(crate) fn artifacts(&self) -> &Path {
        &self.artifacts
    }

    /// Writes down whose it is.
    pub(crate) fn note(&mut self, run: &Record) -> Result<(), Error> {
        self.run = Some(run.clone());
        let owner = Owner { host: host(), runner: Record::of_this_process(), run: run.clone() };
        let path = self.path.join(OWNER);
        let text = serde_json::to_vec(&owner).map_err(std::io::Error::from);
        text.and_then(|text| std::fs::write(&path, text)).map_err(|error| Error::file(&path, error))
    }

    /// Nobody writes to it any more.
    pub(crate) fn has_ended(&mut self) {
        self.run = None;
    }

    /// Removes it, on a thread that may block.
    pub(crate) async fn remove(mut self) {
        self.is_gone = true;
        let path = self.path.clone();
        // An error means that the runtime is shutting down; the next runner's sweep finds it.
        let _ = tokio::task::spawn_blocking(move || remove(&path)).await;
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if self.is_gone {
            return;
        }
        let (path, run) = (self.path.clone(), self.run.take());
        if run.is_none() && try_remove(&path).is_ok() {
            return;
        }
        // Its keeper is being let go of, and takes its time. So does one that was only being started: what it started
        // writes to the directory until it is ended.
        std::thread::spawn(move || {
            let deadline = std::time::Instant::now() + END_PATIENCE;
            let is_early = || std::time::Instant::now() < deadline;
            if let Some(run) = run {
                while run.is_alive() && is_early() {
                    std::thread::sleep(LOOK_INTERVAL);
                }
                end_orphan(&run);
            }
            while try_remove(&path).is_err() && is_early() {
                std::thread::sleep(LOOK_INTERVAL);
            }
            remove(&path);
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(root: &Path, name: &str, owner: &Owner) -> PathBuf {
        let path = root.join(name);
        std::fs::create_dir(&path).unwrap();
        std::fs::write(path.join(OWNER), serde_json::to_vec(owner).unwrap()).unwrap();
        path
    }

    #[test]
    fn only_what_a_dead_runner_of_this_machine_left_is_removed() {
        let root = tempfile::tempdir().unwrap();
        let alive = Record::of_this_process();
        let dead = Record { started: alive.started + 1, ..alive.clone() };
        let run = dead.clone();
        let owner = |runner: &Record, host: String| Owner { host, runner: runner.clone(), run: run.clone() };
        let gone = write(root.path(), "gone", &owner(&dead, host()));
        let here = write(root.path(), "here", &owner(&alive, host()));
        let elsewhere = write(root.path(), "elsewhere", &owner(&dead, "another-machine".to_owned()));
        let unclaimed = root.path().join("unclaimed");
        std::fs::create_dir(&unclaimed).unwrap();
        sweep(root.path());
        assert_eq!([gone, here, elsewhere, unclaimed].map(|path| path.exists()), [false, true, true, true]);
    }

    #[test]
    fn a_directory_is_private_and_goes_with_its_owner() {
        use std::os::unix::fs::PermissionsExt as _;
        let data = tempfile::tempdir().unwrap();
        let scratch = Runs::open(data.path()).unwrap().make().unwrap();
        let path = scratch.path().to_owned();
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o700);
        drop(scratch);
        assert!(!path.exists());
    }
}
