//! Files that come in pieces, hashed on the way. Two parts of a file are in memory at most: the one that gathers and the
//! one that is being written.

use crate::error::Error;
use crate::files::blobs::{Blobs, Stored};
use crate::files::local::{begin, sync_folder_of, write_past_memory};
use crate::files::parts::Part;
use bytes::Bytes;
use object_store::path::Path;
use object_store::{MultipartUpload, ObjectStoreExt as _};
use sha2::{Digest as _, Sha256};
use std::fs::File;
use std::io;
use std::path::PathBuf;
use tokio::task::JoinHandle;

/// A file that is coming in.
#[derive(Debug)]
pub struct Incoming {
    blobs: Blobs,
    path: String,
    bytes: u64,
    part: Option<Part>,
    sink: Sink,
}

#[derive(Debug)]
enum Sink {
    Disk(Disk),
    Bucket(Bucket),
}

impl Incoming {
    pub(crate) fn new(blobs: Blobs, path: String) -> Self {
        let sink = match blobs.root() {
            Some(root) => Sink::Disk(Disk::new(root.join(&path))),
            None => Sink::Bucket(Bucket::default()),
        };
        Incoming { blobs, path, bytes: 0, part: None, sink }
    }

    /// How much has come.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Takes the next piece. It is copied, which is quick while it is fresh, so that whoever received it can use its buffer
    /// again.
    pub async fn write(&mut self, mut piece: &[u8]) -> Result<(), Error> {
        if let Sink::Disk(disk) = &mut self.sink {
            disk.begin();
        }
        self.bytes += piece.len() as u64;
        while !piece.is_empty() {
            if self.part.as_ref().is_some_and(|part| part.room() == 0) {
                self.send_part().await?;
            }
            self.part.get_or_insert_with(|| self.blobs.parts.take()).fill(&mut piece);
        }
        Ok(())
    }

    /// All of the part that gathers.
    fn take_part(&mut self) -> Bytes {
        self.part.take().map(Bytes::from_owner).unwrap_or_default()
    }

    async fn send_part(&mut self) -> Result<(), Error> {
        let part = self.take_part();
        match &mut self.sink {
            Sink::Disk(disk) => disk.go_on(part, false).await,
            Sink::Bucket(bucket) => bucket.add(&self.blobs, &self.path, part).await,
        }
    }

    /// Makes it a file. When this returns, the file survives a crash.
    pub async fn finish(mut self) -> Result<Stored, Error> {
        if self.bytes == 0 {
            return Err(Error::Blob("an empty file is not stored".into()));
        }
        let last = self.take_part();
        let hash = match &mut self.sink {
            Sink::Disk(disk) => disk.finish(last).await?,
            Sink::Bucket(bucket) => bucket.finish(&self.blobs, &self.path, last).await?,
        };
        Ok(Stored {
            storage: self.blobs.storage(),
            path: std::mem::take(&mut self.path),
            bytes: i64::try_from(self.bytes).unwrap_or(i64::MAX),
            sha256: hex::encode(hash.finalize()),
        })
    }
}

impl Drop for Incoming {
    fn drop(&mut self) {
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        match &mut self.sink {
            Sink::Disk(disk) => {
                if let Some(given_up) = disk.give_up() {
                    runtime.spawn(given_up);
                }
            }
            Sink::Bucket(bucket) => {
                if let Some(given_up) = bucket.give_up() {
                    runtime.spawn(given_up);
                }
            }
        }
    }
}

/// A file on local disk. It is written and synced, and meanwhile hashed, on threads that may wait, never on those of the
/// runtime.
#[derive(Debug)]
struct Disk {
    place: PathBuf,
    under_way: Option<JoinHandle<io::Result<Draft>>>,
    /// Whether something may lie there that is not a whole file.
    is_begun: bool,
}

/// What is written so far.
#[derive(Debug)]
struct Draft {
    file: File,
    hash: Sha256,
}

impl Disk {
    fn new(place: PathBuf) -> Self {
        Disk { place, under_way: None, is_begun: false }
    }

    /// Makes an empty file, once, and its name durable, while the content still comes.
    fn begin(&mut self) {
        if self.is_begun {
            return;
        }
        self.is_begun = true;
        let place = self.place.clone();
        self.under_way = Some(tokio::task::spawn_blocking(move || {
            let file = begin(&place)?;
            sync_folder_of(&place)?;
            Ok(Draft { file, hash: Sha256::new() })
        }));
    }

    async fn finish(&mut self, last: Bytes) -> Result<Sha256, Error> {
        self.go_on(last, true).await?;
        let draft = self.settled().await?;
        self.is_begun = false;
        Ok(draft.hash)
    }

    /// Begins with the next part when the one before is done.
    async fn go_on(&mut self, part: Bytes, is_last: bool) -> Result<(), Error> {
        let Draft { file, mut hash } = self.settled().await?;
        let hashed = part.clone();
        self.under_way = Some(tokio::spawn(async move {
            let writing = tokio::task::spawn_blocking(move || {
                write_past_memory(&file, &part)?;
                if is_last {
                    file.sync_all()?;
                }
                io::Result::Ok(file)
            });
            let hashing = tokio::task::spawn_blocking(move || {
                hash.update(&hashed);
                hash
            });
            let (file, hash) = tokio::join!(writing, hashing);
            Ok(Draft { file: file.map_err(io::Error::other)??, hash: hash.map_err(io::Error::other)? })
        }));
        Ok(())
    }

    async fn settled(&mut self) -> Result<Draft, Error> {
        let step = self.under_way.as_mut().ok_or_else(not_written)?;
        // Kept until it has ended: if the caller goes away meanwhile, whoever gives the file up waits for it.
        let ended = step.await;
        self.under_way = None;
        Ok(ended.map_err(|_| not_written())??)
    }

    /// Removes what was written of a file that is not to be.
    fn give_up(&mut self) -> Option<impl Future<Output = ()> + use<>> {
        let (place, under_way) = (std::mem::take(&mut self.place), self.under_way.take());
        self.is_begun.then_some(async move {
            if let Some(step) = under_way {
                // How it went no longer matters, but it must not write after the file was removed.
                let _ = step.await;
            }
            let removed = tokio::task::spawn_blocking(move || std::fs::remove_file(place)).await;
            match removed.unwrap_or_else(|_| Err(io::ErrorKind::Other.into())) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => warn_of_rest(&error),
                Ok(()) | Err(_) => {}
            }
        })
    }
}

fn not_written() -> Error {
    Error::Blob("a part was not written".into())
}

fn warn_of_rest(error: &dyn std::error::Error) {
    tracing::warn!(%error, "what came of an upload that was given up could not be removed");
}

/// A file in a bucket.
#[derive(Default)]
struct Bucket {
    hash: Sha256,
    upload: Option<Box<dyn MultipartUpload>>,
    under_way: Option<JoinHandle<object_store::Result<()>>>,
}

impl std::fmt::Debug for Bucket {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Bucket").finish_non_exhaustive()
    }
}

impl Bucket {
    async fn add(&mut self, blobs: &Blobs, path: &str, part: Bytes) -> Result<(), Error> {
        self.settle().await?;
        let upload = match &mut self.upload {
            Some(upload) => upload,
            None => self.upload.insert(blobs.store.put_multipart(&Path::from(path)).await?),
        };
        self.hash.update(&part);
        self.under_way = Some(tokio::spawn(upload.put_part(part.into())));
        Ok(())
    }

    async fn finish(&mut self, blobs: &Blobs, path: &str, last: Bytes) -> Result<Sha256, Error> {
        // What fits into one part takes one request.
        if self.upload.is_none() {
            self.hash.update(&last);
            blobs.store.put(&Path::from(path), last.into()).await?;
        } else {
            self.add(blobs, path, last).await?;
            self.settle().await?;
            if let Some(mut upload) = self.upload.take() {
                upload.complete().await?;
            }
        }
        Ok(std::mem::take(&mut self.hash))
    }

    /// Waits for the part that is being written.
    async fn settle(&mut self) -> Result<(), Error> {
        match self.under_way.take() {
            Some(part) => Ok(part.await.map_err(|_| not_written())??),
            None => Ok(()),
        }
    }

    /// Removes what was written of a file that is not to be.
    fn give_up(&mut self) -> Option<impl Future<Output = ()> + use<>> {
        let (mut upload, under_way) = (self.upload.take()?, self.under_way.take());
        Some(async move {
            if let Some(part) = under_way {
                // How it went no longer matters, but it must not be written after the rest was removed.
                let _ = part.await;
            }
            if let Err(error) = upload.abort().await {
                warn_of_rest(&error);
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::BlobsConfig;
    use crate::files::parts::LOCAL_PART_BYTES;

    const SENT: usize = 2_500_000;

    fn open() -> (tempfile::TempDir, Blobs) {
        let directory = tempfile::tempdir().unwrap();
        let blobs = Blobs::open(&BlobsConfig::Local(directory.path().join("files"))).unwrap();
        (directory, blobs)
    }

    fn content() -> Bytes {
        (0..SENT).map(|number| (number % 251) as u8).collect()
    }

    async fn receive(blobs: &Blobs, size: usize) -> Incoming {
        let mut incoming = blobs.receive();
        for piece in content().chunks(size) {
            incoming.write(piece).await.unwrap();
        }
        incoming
    }

    /// All files below a directory.
    fn files(folder: &std::path::Path) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
    }

    #[tokio::test]
    async fn a_file_is_what_came_however_it_was_cut() {
        let (_directory, blobs) = open();
        for size in [9, 1000, 65_536, LOCAL_PART_BYTES - 1, LOCAL_PART_BYTES, LOCAL_PART_BYTES + 1, SENT] {
            let stored = receive(&blobs, size).await.finish().await.unwrap();
            assert_eq!(stored.bytes, SENT as i64, "pieces of {size} bytes");
            let read = blobs.get(&stored.path, &stored.sha256).await.unwrap();
            assert!(read == content(), "pieces of {size} bytes");
        }
    }

    #[tokio::test]
    async fn a_file_finds_a_place_whose_directory_is_gone() {
        let (directory, blobs) = open();
        std::fs::remove_dir_all(directory.path().join("files/uploads")).unwrap();
        let stored = receive(&blobs, SENT).await.finish().await.unwrap();
        assert!(blobs.get(&stored.path, &stored.sha256).await.is_ok());
    }

    #[tokio::test]
    async fn a_file_that_is_given_up_leaves_nothing() {
        let (directory, blobs) = open();
        drop(receive(&blobs, 100_000).await);
        gone(directory.path()).await;
    }

    /// Waits until there is no file.
    async fn gone(folder: &std::path::Path) {
        let ended = tokio::time::Instant::now() + std::time::Duration::from_secs(30);
        while !files(folder).is_empty() {
            assert!(tokio::time::Instant::now() < ended, "{:?}", files(folder));
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test]
    async fn a_file_whose_caller_goes_away_while_it_is_finished_leaves_nothing() {
        let (directory, blobs) = open();
        for polls in 0..6 {
            let mut finishing = Box::pin(receive(&blobs, 100_000).await.finish());
            for _ in 0..polls {
                let _ = futures_util::poll!(&mut finishing);
                tokio::time::sleep(std::time::Duration::from_micros(300)).await;
            }
            let is_whole = futures_util::poll!(&mut finishing).is_ready();
            drop(finishing);
            if is_whole {
                break;
            }
            gone(directory.path()).await;
        }
    }

    #[tokio::test]
    async fn nothing_is_no_file() {
        let (directory, blobs) = open();
        assert!(blobs.receive().finish().await.is_err());
        assert!(files(directory.path()).is_empty());
    }
}
