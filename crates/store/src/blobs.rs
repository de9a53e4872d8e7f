//! Files, on local disk or any S3-compatible store, durable before anything points to them.
//!
//! Names are made here and nowhere else: a job's id, the fence of the attempt that wrote the file, and a number; or,
//! for a file that comes before its job, `uploads` and an id of its own. Nothing a caller typed becomes part of a path.
//! The two characters in front spread the files over 256 directories, so that a million jobs make some thousands of
//! entries in each.

use crate::error::Error;
use bytes::{Bytes, BytesMut};
use futures_util::{Stream, StreamExt as _, TryStreamExt as _};
use jiff::Timestamp;
use object_store::local::LocalFileSystem;
use object_store::path::Path;
use object_store::{GetOptions, GetRange, MultipartUpload, ObjectStore, ObjectStoreExt as _};
use ode_job::JobId;
use sha2::{Digest, Sha256};
use std::fmt::Write as _;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;
use tokio::task::JoinHandle;
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

/// The store of files.
#[derive(Debug, Clone)]
pub struct Blobs {
    store: Arc<dyn ObjectStore>,
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

    /// Stores the `number`th file of an attempt. When this returns, the file survives a crash.
    pub async fn put(
        &self,
        job: JobId,
        fence: i64,
        number: usize,
        content: Vec<u8>,
    ) -> Result<Stored, Error> {
        if content.is_empty() {
            return Err(Error::Blob("an empty file is not stored".into()));
        }
        let path = path(job, fence, number);
        let (bytes, sha256) = (i64::try_from(content.len()).unwrap_or(i64::MAX), sha256_hex(&content));
        self.store.put(&Path::from(path.as_str()), Bytes::from(content).into()).await?;
        Ok(Stored { storage: self.storage, path, bytes, sha256 })
    }

    /// Takes in a file that comes in pieces. What is not finished leaves nothing behind.
    pub fn receive(&self) -> Incoming {
        let id = Uuid::now_v7();
        Incoming {
            blobs: self.clone(),
            path: format!("uploads/{:02x}/{id}", id.as_bytes()[15]),
            hash: Sha256::new(),
            bytes: 0,
            part: BytesMut::new(),
            upload: None,
            under_way: None,
        }
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

    /// `local` or `s3`.
    pub(crate) fn storage(&self) -> &'static str {
        self.storage
    }

    /// The local directory, where there is one.
    pub fn root(&self) -> Option<&std::path::Path> {
        self.root.as_deref()
    }
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

/// A file that is coming in. Never more than two parts of it are in memory: the one that fills and the one that is
/// being written.
pub struct Incoming {
    blobs: Blobs,
    path: String,
    hash: Sha256,
    bytes: u64,
    part: BytesMut,
    upload: Option<Box<dyn MultipartUpload>>,
    under_way: Option<JoinHandle<object_store::Result<()>>>,
}

impl std::fmt::Debug for Incoming {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Incoming")
            .field("path", &self.path)
            .field("bytes", &self.bytes)
            .finish_non_exhaustive()
    }
}

/// Parts on local disk: as few hops to the writing thread as are worth their memory.
const LOCAL_PART_BYTES: usize = 1 << 20;
/// S3 takes no smaller ones, but for the last.
const S3_PART_BYTES: usize = 5 << 20;

impl Incoming {
    /// How much has come.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Takes the next piece.
    pub async fn write(&mut self, mut piece: &[u8]) -> Result<(), Error> {
        self.hash.update(piece);
        self.bytes += piece.len() as u64;
        let part_bytes = if self.blobs.root.is_some() { LOCAL_PART_BYTES } else { S3_PART_BYTES };
        while !piece.is_empty() {
            let room = (part_bytes - self.part.len()).min(piece.len());
            self.part.extend_from_slice(&piece[..room]);
            piece = &piece[room..];
            if self.part.len() == part_bytes && !piece.is_empty() {
                self.send_part().await?;
            }
        }
        Ok(())
    }

    async fn send_part(&mut self) -> Result<(), Error> {
        self.settle().await?;
        if self.upload.is_none() {
            self.upload = Some(self.blobs.store.put_multipart(&Path::from(self.path.as_str())).await?);
        }
        let part = self.part.split().freeze();
        if let Some(upload) = &mut self.upload {
            self.under_way = Some(tokio::spawn(upload.put_part(part.into())));
        }
        Ok(())
    }

    /// Waits for the part that is being written.
    async fn settle(&mut self) -> Result<(), Error> {
        match self.under_way.take() {
            Some(part) => Ok(part.await.map_err(|_| Error::Blob("a part was not written".into()))??),
            None => Ok(()),
        }
    }

    /// Makes it a file. When this returns, the file survives a crash.
    pub async fn finish(mut self) -> Result<Stored, Error> {
        if self.bytes == 0 {
            return Err(Error::Blob("an empty file is not stored".into()));
        }
        // What fits into one part takes one step, and one request to S3.
        if self.upload.is_none() {
            let content = self.part.split().freeze();
            self.blobs.store.put(&Path::from(self.path.as_str()), content.into()).await?;
        } else {
            if !self.part.is_empty() {
                self.send_part().await?;
            }
            self.settle().await?;
            if let Some(mut upload) = self.upload.take() {
                upload.complete().await?;
            }
        }
        Ok(Stored {
            storage: self.blobs.storage,
            path: std::mem::take(&mut self.path),
            bytes: i64::try_from(self.bytes).unwrap_or(i64::MAX),
            sha256: hex(&self.hash.finalize_reset()),
        })
    }
}

impl Drop for Incoming {
    fn drop(&mut self) {
        let Some(mut upload) = self.upload.take() else { return };
        let under_way = self.under_way.take();
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move {
                if let Some(part) = under_way {
                    // Its outcome no longer matters, but it must not be written after the rest was removed.
                    let _ = part.await;
                }
                if let Err(error) = upload.abort().await {
                    tracing::warn!(%error, "what came of an upload that was given up could not be removed");
                }
            });
        }
    }
}

/// `ab/cd/<job>/<fence>-<number>`: the last digits of an id are the ones that differ between neighbours.
fn path(job: JobId, fence: i64, number: usize) -> String {
    let tail = job.tail();
    format!("{:02x}/{:02x}/{job}/{fence}-{number}", tail & 0xff, (tail >> 8) & 0xff)
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
