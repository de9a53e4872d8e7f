//! Files that belong to nothing, and rows whose file is not there: what crashes of the past may have left.

use crate::Store;
use crate::database::db::{Param, params};
use crate::error::Error;
use crate::files::blobs::Blobs;
use crate::retention::{ARCHIVES, Cleaned};
use futures_util::StreamExt as _;
use jiff::Timestamp;
use ode_job::JobId;
use serde_json::json;
use std::collections::HashSet;
use std::path::Path;
use std::pin::pin;
use std::time::{Duration, SystemTime};
use uuid::Uuid;

/// A file is written before its row. One that is younger than this may be about to get one.
const SAFETY: Duration = Duration::from_hours(24);
/// Files looked at in one statement.
const PART: usize = 500;
/// Files asked for at a time.
const ASKED_AT_ONCE: usize = 16;
/// Fewer rows than this prove nothing about the storage.
const SUSPECT_MIN: u64 = 10;

/// An attempt that runs for days has files without rows for as long: those of live jobs are left alone.
const KNOWN: &str =
    "SELECT r.path FROM {rows $1: path text, job uuid} WHERE EXISTS (SELECT 1 FROM job_artifact a
        WHERE a.storage = $2 AND a.path = r.path)
    OR EXISTS (SELECT 1 FROM job_artifact a WHERE a.job_id = r.job AND a.storage = $2 AND {object a.path} = r.path)
    OR EXISTS (SELECT 1 FROM blob_trash t WHERE t.storage = $2 AND t.path = r.path)
    OR EXISTS (SELECT 1 FROM job_live l WHERE l.id = r.job)";
const TRASH_PATHS: &str =
    "INSERT INTO blob_trash (storage, path) SELECT $2, r.path FROM {rows $1: path text, job uuid}
    WHERE NOT EXISTS (SELECT 1 FROM job_artifact a WHERE a.storage = $2 AND a.path = r.path)
        AND NOT EXISTS (SELECT 1 FROM job_artifact a
            WHERE a.job_id = r.job AND a.storage = $2 AND {object a.path} = r.path)
    ON CONFLICT (storage, path) DO NOTHING";
const FILES: &str = "SELECT a.id, a.path FROM job_artifact a JOIN job_past p ON p.id = a.job_id
    WHERE a.id > $1 AND a.storage = $2 AND a.created_at < {after $3} ORDER BY a.id LIMIT $4";
const LOST: &str = "SELECT a.id, a.job_id, a.role, a.bytes, p.state FROM {rows $1: id uuid}
    JOIN job_artifact a ON a.id = r.id JOIN job_past p ON p.id = a.job_id";

impl Store {
    /// Removes what belongs to nothing, and lets jobs say where their files are gone.
    pub(crate) async fn sweep(&self, blobs: &Blobs, cleaned: &mut Cleaned) -> Result<(), Error> {
        self.sweep_files(blobs, cleaned, Mode::Do).await?;
        let (lost, count) = self.lost_files(blobs).await?;
        cleaned.is_storage_suspect = is_suspect(lost.len(), count);
        if cleaned.is_storage_suspect {
            tracing::error!(
                "{} of {count} files are not in the storage. Is it the right one? Nothing was done about them",
                lost.len()
            );
            return Ok(());
        }
        let mut forgotten = Cleaned::default();
        for part in lost.chunks(PART) {
            let ids = part.iter().map(|id| json!({ "id": id }));
            let rows = self.db().read(LOST, &[Param::rows(ids)]).await?;
            cleaned.lost += self.expire_rows(&rows, "lost", &mut forgotten).await?;
        }
        Ok(())
    }

    /// The same, but only counts.
    pub(crate) async fn look_over(&self, blobs: &Blobs, cleaned: &mut Cleaned) -> Result<(), Error> {
        self.sweep_files(blobs, cleaned, Mode::Count).await?;
        let (lost, count) = self.lost_files(blobs).await?;
        cleaned.is_storage_suspect = is_suspect(lost.len(), count);
        cleaned.lost = if cleaned.is_storage_suspect { 0 } else { lost.len() as u64 };
        Ok(())
    }

    /// Removes what a job that is gone had, files of attempts that came to nothing too.
    pub(crate) async fn sweep_job(&self, id: JobId, blobs: &Blobs) -> Result<(), Error> {
        let files = blobs.of_job(id).await?;
        if !files.is_empty() {
            self.db().write(TRASH_PATHS, &[paths(&files), blobs.storage().into()]).await?;
        }
        self.empty_trash(blobs).await.map(drop)
    }

    async fn sweep_files(&self, blobs: &Blobs, cleaned: &mut Cleaned, mode: Mode) -> Result<(), Error> {
        let before = Timestamp::now().checked_sub(SAFETY).unwrap_or(Timestamp::UNIX_EPOCH);
        let mut parts = pin!(blobs.list(PART));
        while let Some(part) = parts.next().await {
            let old =
                part?.into_iter().filter(|(path, written)| *written < before && !path.starts_with(ARCHIVES));
            let old: Vec<String> = old.map(|(path, _)| path).collect();
            let known = self.known(blobs, &old).await?;
            let orphans: Vec<&String> = old.iter().filter(|path| !known.contains(*path)).collect();
            cleaned.orphans += orphans.len() as u64;
            if mode == Mode::Do && !orphans.is_empty() {
                self.db().write(TRASH_PATHS, &[paths(orphans), blobs.storage().into()]).await?;
            }
        }
        if let Some(root) = blobs.root().map(Path::to_owned) {
            let count = move || unfinished(&root, mode, SystemTime::now() - SAFETY);
            cleaned.orphans += tokio::task::spawn_blocking(count).await.unwrap_or_default();
        }
        Ok(())
    }

    async fn known(&self, blobs: &Blobs, files: &[String]) -> Result<HashSet<String>, Error> {
        if files.is_empty() {
            return Ok(HashSet::new());
        }
        let rows = self.db().read(KNOWN, &[paths(files.iter()), blobs.storage().into()]).await?;
        rows.iter().map(|row| row.text("path")).collect()
    }

    /// The rows of ended jobs whose file is not there, and how many rows were looked at.
    async fn lost_files(&self, blobs: &Blobs) -> Result<(Vec<Uuid>, u64), Error> {
        let (mut lost, mut count, mut after) = (Vec::new(), 0, Uuid::nil());
        loop {
            let limit = i64::try_from(PART).unwrap_or(i64::MAX);
            let params = params![after, blobs.storage(), -crate::micros(SAFETY), limit];
            let rows = self.db().read(FILES, params).await?;
            let Some(last) = rows.last() else { return Ok((lost, count)) };
            after = last.uuid("id")?;
            count += rows.len() as u64;
            let files = rows.iter().map(|row| Ok((row.uuid("id")?, row.text("path")?)));
            let files = files.collect::<Result<Vec<_>, Error>>()?;
            let asked = files.into_iter().map(|(id, path)| async move { (id, blobs.exists(&path).await) });
            let mut answers = futures_util::stream::iter(asked).buffer_unordered(ASKED_AT_ONCE);
            while let Some((id, is_there)) = answers.next().await {
                if !is_there? {
                    lost.push(id);
                }
            }
        }
    }
}

/// Whether to do it or only to count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    Do,
    Count,
}

fn paths<'a>(paths: impl IntoIterator<Item = &'a String>) -> Param {
    let row = |path: &String| {
        // The directory that a file lies in is named after its job, where an attempt wrote it.
        let job = path.rsplit('/').nth(1).and_then(|name| name.parse::<Uuid>().ok());
        json!({ "path": path, "job": job })
    };
    Param::rows(paths.into_iter().map(row))
}

/// Whether so much is missing that it is likelier to be the wrong storage than so many accidents.
fn is_suspect(lost: usize, count: u64) -> bool {
    count >= SUSPECT_MIN && lost as u64 * 2 > count
}

/// Depth of the directories below the root; ours are two levels deep.
const DEPTH_MAX: usize = 8;

/// Files that were being written when their process died: the local store puts a number behind their names and does not
/// list them. Answers how many there are.
fn unfinished(root: &Path, mode: Mode, before: SystemTime) -> u64 {
    let mut count = 0;
    let mut folders = vec![(root.to_owned(), 0)];
    while let Some((folder, depth)) = folders.pop() {
        // What cannot be read now can be the next time.
        for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
            let Ok(metadata) = entry.metadata() else { continue };
            if metadata.is_dir() && depth < DEPTH_MAX {
                folders.push((entry.path(), depth + 1));
            }
            let is_old = metadata.modified().is_ok_and(|written| written < before);
            if metadata.is_file() && is_old && is_staged(&entry.file_name().to_string_lossy()) {
                count += 1;
                if mode == Mode::Do {
                    // Gone already is as good.
                    let _ = std::fs::remove_file(entry.path());
                }
            }
        }
    }
    count
}

fn is_staged(name: &str) -> bool {
    name.rsplit_once('#')
        .is_some_and(|(_, number)| !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit()))
}
