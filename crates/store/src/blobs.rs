//! Files, on local disk or any S3-compatible store, durable before anything points to them.
//!
//! Names are made here and nowhere else: a job's id, the fence of the attempt that wrote the file, and a number; or,
//! for a file that comes before its job, `uploads` and an id of its own. Nothing a caller typed becomes part of a path.
//! The two characters in front spread the files over 256 directories, so that a million jobs make some thousands of
//! entries in each.

use crate::error::Error;
use crate::incoming::Incoming;
use crate::local;
use bytes::Bytes;
use futures_util::{Stream, StreamExt as _, TryStreamExt as _, stream};
use jiff::Timestamp;
use object_store::local::LocalFileSystem;
use object_store::path::Path;
use object_store::{GetOptions, GetRange, ObjectStore, ObjectStoreExt as _};
use ode_job::{Artifact, JobId};
use sha2::{Digest, Sha256};
use std::fmt::Write as _;
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
        /// The bucket.
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
}

/// A file that is safely stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stored {
    /// `local` or `s3`.
    pub storage: &'static str,
    /// Its name below the root.
    pub path: String,
    /// Its size.
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
                Ok(Blobs { store: Arc::new(store), storage: "local", root: Some(root.clone()) })
            }
            BlobsConfig::S3 { bucket, endpoint } => {
                let store = crate::places::open_bucket(bucket, endpoint.as_deref())?;
                Ok(Blobs { store, storage: "s3", root: None })
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
        let file = |(content, number)| (path(job, fence, number), content);
        let files: Vec<(String, Bytes)> = contents.into_iter().zip(first..).map(file).collect();
        let storage = self.storage;
        let Some(root) = self.root.clone() else {
            let put = |file: (String, Bytes)| async move {
                self.store.put(&Path::from(file.0.as_str()), file.1.clone().into()).await?;
                Ok(stored(storage, file))
            };
            return stream::iter(files).map(put).buffered(PUT_AT_ONCE).try_collect().await;
        };
        let written = tokio::task::spawn_blocking(move || {
            local::write_all(&root, &files)?;
            Ok(files.into_iter().map(|file| stored(storage, file)).collect())
        });
        written.await.map_err(|_| Error::Blob("files were not written".into()))?
    }

    /// Takes in a file that comes in pieces. What is not finished leaves nothing behind.
    pub fn receive(&self) -> Incoming {
        let id = Uuid::now_v7();
        Incoming::new(self, format!("uploads/{:02x}/{id}", id.as_bytes()[15]))
    }

    /// Reads a part of a file, in pieces as they are sent on.
    pub async fn stream(
        &self,
        path: &str,
        range: Range<u64>,
    ) -> Result<impl Stream<Item = Result<Bytes, Error>> + Send + use<>, Error> {
        let options = GetOptions { range: Some(GetRange::Bounded(range)), ..GetOptions::default() };
        let content = self.store.get_opts(&Path::from(path), options).await?;
        Ok(content.into_stream().map_err(Error::from))
    }

    /// Reads a file, and checks that it is what was stored.
    pub async fn get(&self, path: &str, sha256: &str) -> Result<Bytes, Error> {
        let content = self.store.get(&Path::from(path)).await?.bytes().await?;
        if sha256_hex(&content) != sha256 {
            return Err(Error::Blob(format!("{path} is not what was stored: its digest differs")));
        }
        Ok(content)
    }

    /// Removes a file; one that is gone already is fine.
    pub async fn delete(&self, path: &str) -> Result<(), Error> {
        match self.store.delete(&Path::from(path)).await {
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
        match self.store.head(&Path::from(path)).await {
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

fn stored(storage: &'static str, (path, content): (String, Bytes)) -> Stored {
    let bytes = i64::try_from(content.len()).unwrap_or(i64::MAX);
    Stored { storage, path, bytes, sha256: sha256_hex(&content) }
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

/// `ab/<job>`: the last digits of an id are the ones that differ between neighbours.
fn folder(job: JobId) -> String {
    format!("{:02x}/{job}", job.tail() & 0xff)
}

fn path(job: JobId, fence: i64, number: usize) -> String {
    format!("{}/{fence}-{number}", folder(job))
}

pub(crate) fn sha256_hex(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

/// Bytes as people and tables hold them.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut hex, byte| {
        write!(hex, "{byte:02x}").expect("writing to a String cannot fail");
        hex
    })
}
