//! Files, on local disk or any S3-compatible store, durable before anything points to them.
//!
//! Names are made here and nowhere else: a job's id, the fence of the attempt that wrote the file, and a number; or,
//! for a file that comes before its job, `uploads` and an id of its own. Nothing a caller typed becomes part of a path.
//! On local disk, files that are stored together lie in one, which is one name, and one sync of content, for all of them.
//! The two characters in front spread the files over 256 directories, so that a million jobs make some thousands of
//! entries in each.

use crate::error::Error;
use crate::files::incoming::Incoming;
use crate::files::local;
use crate::files::parts::{LOCAL_PART_BYTES, Parts, S3_PART_BYTES};
use bytes::Bytes;
use futures_util::{Stream, StreamExt as _, TryStreamExt as _, stream};
use jiff::Timestamp;
use object_store::local::LocalFileSystem;
use object_store::path::Path;
use object_store::{GetOptions, GetRange, ObjectStore, ObjectStoreExt as _};
use ode_job::{Artifact, JobId};
use sha2::{Digest, Sha256};
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;
use uuid::Uuid;

/// Where files go.
#[derive(Debug, Clone)]
pub enum BlobsConfig {
    /// Below this directory, which is made if need be.
    Local(PathBuf),
    /// In a bucket of an S3-compatible store, settings and keys from the environment (`AWS_…`).
    S3 {
        bucket: String,
        /// Other than Amazon's: the address.
        endpoint: Option<String>,
    },
}

/// Files that are sent to a bucket at a time.
const PUT_AT_ONCE: usize = 4;

/// The store of files.
#[derive(Debug, Clone)]
pub struct Blobs {
    pub(crate) store: Arc<dyn ObjectStore>,
    storage: &'static str,
    root: Option<PathBuf>,
    /// For files that come in.
    pub(crate) parts: Parts,
}

/// A file that is safely stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stored {
    /// `local` or `s3`.
    pub storage: &'static str,
    /// Its name below the root.
    pub path: String,
    pub bytes: i64,
    /// Its digest, hexadecimal.
    pub sha256: String,
}

impl Stored {
    /// It as one of a job's files.
    pub fn artifact(&self, role: &str, name: &str, content_type: &str) -> Artifact {
        Artifact {
            role: role.to_owned(),
            name: name.to_owned(),
            storage: self.storage.to_owned(),
            path: self.path.clone(),
            content_type: content_type.to_owned(),
            bytes: self.bytes,
            sha256: self.sha256.clone(),
        }
    }
}

impl Blobs {
    /// Opens the file store.
    pub fn open(config: &BlobsConfig) -> Result<Self, Error> {
        match config {
            BlobsConfig::Local(root) => {
                std::fs::create_dir_all(root)
                    .map_err(|error| Error::Blob(format!("{} cannot be made: {error}", root.display())))?;
                make_shards(root)
                    .map_err(|error| Error::Blob(format!("{} cannot be made: {error}", root.display())))?;
                let store = LocalFileSystem::new_with_prefix(root)?.with_fsync(true);
                // A job has a directory of its own; it goes with its last file.
                let store = store.with_automatic_cleanup(true);
                Ok(Blobs {
                    store: Arc::new(store),
                    storage: "local",
                    root: Some(root.clone()),
                    parts: Parts::new(LOCAL_PART_BYTES),
                })
            }
            BlobsConfig::S3 { bucket, endpoint } => {
                let store = crate::files::places::open_bucket(bucket, endpoint.as_deref())?;
                Ok(Blobs { store, storage: "s3", root: None, parts: Parts::new(S3_PART_BYTES) })
            }
        }
    }

    /// Stores files of an attempt, the first of them as its `first`. When this returns, they survive a crash.
    pub async fn put(
        &self,
        job: JobId,
        fence: i64,
        first: usize,
        contents: Vec<Bytes>,
    ) -> Result<Vec<Stored>, Error> {
        if contents.iter().any(Bytes::is_empty) {
            return Err(Error::Blob("an empty file is not stored".into()));
        }
        if contents.is_empty() {
            return Ok(Vec::new());
        }
        let Some(root) = self.root.clone() else {
            let put = |(content, number): (Bytes, usize)| async move {
                let path = path(job, fence, number);
                self.store.put(&Path::from(path.as_str()), content.clone().into()).await?;
                Ok(stored(self.storage, path, &content))
            };
            return stream::iter(contents.into_iter().zip(first..))
                .map(put)
                .buffered(PUT_AT_ONCE)
                .try_collect()
                .await;
        };
        let (storage, path) = (self.storage, path(job, fence, first));
        let written = tokio::task::spawn_blocking(move || {
            local::write_whole(&root.join(&path), &contents)?;
            let paths = parts(&path, &contents);
            Ok(paths
                .into_iter()
                .zip(&contents)
                .map(|(path, content)| stored(storage, path, content))
                .collect())
        });
        written.await.map_err(|_| Error::Blob("files were not written".into()))?
    }

    /// Takes in a file that comes in pieces. What is not finished leaves nothing behind.
    pub fn receive(&self) -> Incoming {
        let id = Uuid::now_v7();
        Incoming::new(self.clone(), format!("uploads/{:02x}/{id}", id.as_bytes()[15]))
    }

    /// Reads a part of a file, in pieces as they are sent on.
    pub async fn stream(
        &self,
        path: &str,
        range: Range<u64>,
    ) -> Result<impl Stream<Item = Result<Bytes, Error>> + Send + use<>, Error> {
        let (object, part) = place(path);
        let range = part.map_or(range.clone(), |part| part.start + range.start..part.start + range.end);
        let options = GetOptions { range: Some(GetRange::Bounded(range)), ..GetOptions::default() };
        let content = self.store.get_opts(&Path::from(object), options).await?;
        Ok(content.into_stream().map_err(Error::from))
    }

    /// Reads a file, and checks that it is what was stored.
    pub async fn get(&self, path: &str, sha256: &str) -> Result<Bytes, Error> {
        let (object, part) = place(path);
        let object = Path::from(object);
        let content = match part {
            Some(part) => self.store.get_range(&object, part).await?,
            None => self.store.get(&object).await?.bytes().await?,
        };
        if sha256_hex(&content) != sha256 {
            return Err(Error::Blob(format!("{path} is not what was stored: its digest differs")));
        }
        Ok(content)
    }

    /// Removes a file, with all that lies in it; one that is gone already is fine.
    pub async fn delete(&self, object: &str) -> Result<(), Error> {
        match self.store.delete(&Path::from(object)).await {
            Err(object_store::Error::NotFound { .. }) | Ok(()) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Writes, reads and removes a file: what `ode doctor` and readiness ask.
    pub async fn check(&self) -> Result<(), Error> {
        let path = Path::from(format!("check/{}", uuid::Uuid::new_v4()));
        self.store.put(&path, Bytes::from_static(b"ode").into()).await?;
        let content = self.store.get(&path).await?.bytes().await?;
        self.store.delete(&path).await?;
        if content.as_ref() == b"ode" {
            Ok(())
        } else {
            Err(Error::Blob("what was written reads differently".into()))
        }
    }

    /// Stores a file under a name of ours. When this returns, the file survives a crash.
    pub(crate) async fn put_at(&self, path: &str, content: Vec<u8>) -> Result<(), Error> {
        self.store.put(&Path::from(path), Bytes::from(content).into()).await?;
        Ok(())
    }

    /// Whether a file is there.
    pub(crate) async fn exists(&self, path: &str) -> Result<bool, Error> {
        match self.store.head(&Path::from(place(path).0)).await {
            Ok(_) => Ok(true),
            Err(object_store::Error::NotFound { .. }) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Every file there is, with the moment it was written, in parts of up to `count`.
    pub(crate) fn list(
        &self,
        count: usize,
    ) -> impl Stream<Item = Result<Vec<(String, Timestamp)>, Error>> + use<> {
        let entry = |meta: object_store::ObjectMeta| {
            let written = Timestamp::from_microsecond(meta.last_modified.timestamp_micros());
            (meta.location.to_string(), written.unwrap_or(Timestamp::MAX))
        };
        let part = move |part: Vec<object_store::Result<object_store::ObjectMeta>>| {
            part.into_iter().map(|meta| Ok(entry(meta?))).collect::<Result<Vec<_>, Error>>()
        };
        self.store.list(None).chunks(count).map(part)
    }

    /// The files that attempts at a job wrote, whether a row names them or not.
    pub(crate) async fn of_job(&self, job: JobId) -> Result<Vec<String>, Error> {
        let listed = self.store.list(Some(&Path::from(folder(job))));
        Ok(listed.map_ok(|meta| meta.location.to_string()).try_collect().await?)
    }

    /// `local` or `s3`.
    pub(crate) fn storage(&self) -> &'static str {
        self.storage
    }

    /// The local directory, where there is one.
    pub fn root(&self) -> Option<&std::path::Path> {
        self.root.as_deref()
    }
}

fn stored(storage: &'static str, path: String, content: &Bytes) -> Stored {
    let bytes = i64::try_from(content.len()).unwrap_or(i64::MAX);
    Stored { storage, path, bytes, sha256: sha256_hex(content) }
}

/// The paths of files that lie in one, one after the other: `…@0-120`, `…@120-400`. Alone, a file has the path to itself.
fn parts(object: &str, contents: &[Bytes]) -> Vec<String> {
    if contents.len() == 1 {
        return vec![object.to_owned()];
    }
    let ends = contents.iter().scan(0, |end, content| {
        *end += content.len();
        Some(*end)
    });
    ends.zip(contents).map(|(end, content)| format!("{object}@{}-{end}", end - content.len())).collect()
}

/// Which file a path is about, and which part of it, unless it is all of it.
fn place(path: &str) -> (&str, Option<Range<u64>>) {
    let part = path.split_once('@').and_then(|(object, part)| {
        let (start, end) = part.split_once('-')?;
        Some((object, Some(start.parse().ok()?..end.parse().ok()?)))
    });
    part.unwrap_or((path, None))
}

/// Makes the directories for uploads ahead: a new directory costs a sync of the one above it, which is as much as the
/// rest of a small upload.
fn make_shards(root: &std::path::Path) -> std::io::Result<()> {
    let uploads = root.join("uploads");
    // The last one is made last: where it is, all are.
    if uploads.join("ff").exists() {
        return Ok(());
    }
    for shard in 0..=u8::MAX {
        std::fs::create_dir_all(uploads.join(format!("{shard:02x}")))?;
    }
    std::fs::File::open(&uploads)?.sync_all()?;
    std::fs::File::open(root)?.sync_all()
}

/// `ab/<job>`: the last digits of an id are the ones that differ between neighbours. It was `ab/cd/<job>` once; what is left
/// there of attempts that came to nothing is found by the sweep.
fn folder(job: JobId) -> String {
    format!("{:02x}/{job}", job.tail() & 0xff)
}

fn path(job: JobId, fence: i64, number: usize) -> String {
    format!("{}/{fence}-{number}", folder(job))
}

/// The digest of bytes as people and tables hold it.
pub fn sha256_hex(bytes: impl AsRef<[u8]>) -> String {
    hex::encode(Sha256::digest(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn local() -> (tempfile::TempDir, Blobs) {
        let directory = tempfile::tempdir().unwrap();
        let blobs = Blobs::open(&BlobsConfig::Local(directory.path().join("files"))).unwrap();
        (directory, blobs)
    }

    #[tokio::test]
    async fn files_that_lie_in_one_are_read_each_by_itself() {
        let (_directory, blobs) = local();
        let job = JobId(Uuid::now_v7());
        let contents: [Bytes; 3] = ["<html>".into(), "p { }".into(), "font".into()];
        let stored = blobs.put(job, 1, 0, contents.to_vec()).await.unwrap();
        let object = path(job, 1, 0);
        let expected = ["@0-6", "@6-11", "@11-15"].map(|part| format!("{object}{part}"));
        assert_eq!(stored.iter().map(|file| file.path.as_str()).collect::<Vec<_>>(), expected);
        assert_eq!(blobs.of_job(job).await.unwrap(), std::slice::from_ref(&object));
        for (file, content) in stored.iter().zip(&contents) {
            assert_eq!(blobs.get(&file.path, &file.sha256).await.unwrap(), content);
            assert!(blobs.exists(&file.path).await.unwrap());
        }
        let middle = blobs.stream(&stored[1].path, 2..4).await.unwrap().try_collect::<Vec<Bytes>>();
        assert_eq!(middle.await.unwrap().concat(), b"{ ");
        assert!(blobs.get(&stored[1].path, &stored[2].sha256).await.is_err(), "its digest is checked");
        blobs.delete(&object).await.unwrap();
        assert!(!blobs.exists(&stored[2].path).await.unwrap());
    }

    #[tokio::test]
    async fn a_file_alone_has_its_path_to_itself() {
        let (_directory, blobs) = local();
        let job = JobId(Uuid::now_v7());
        let stored = blobs.put(job, 2, 7, vec!["<a/>".into()]).await.unwrap();
        assert_eq!(stored[0].path, path(job, 2, 7));
        assert_eq!(blobs.put(job, 2, 8, Vec::new()).await.unwrap(), []);
        assert_eq!(blobs.of_job(job).await.unwrap().len(), 1);
    }

    #[test]
    fn what_is_no_part_is_a_path() {
        for path in ["ab/job/1-0", "uploads/ab/id", "a@b", "a@1", "a@1-x"] {
            assert_eq!(place(path), (path, None));
        }
        assert_eq!(place("a@3-9"), ("a", Some(3..9)));
    }
}
