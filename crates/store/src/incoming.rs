//! Files that come in pieces, hashed on the way. Two parts of a file are in memory at most: the one that gathers and the
//! one that is being written.

use crate::blobs::{Blobs, Stored, hex};
use crate::error::Error;
use crate::local::{begin, sync_folder_of, write};
use bytes::{Bytes, BytesMut};
use object_store::path::Path;
use object_store::{MultipartUpload, ObjectStoreExt as _, PutPayload};
use sha2::{Digest as _, Sha256};
use std::fs::File;
use std::io;
use std::path::PathBuf;
use tokio::task::JoinHandle;

/// Parts on local disk: small enough that a large file is hashed and written while its rest still comes, large enough that
/// most documents take one hop to a thread that may wait, and the file system is asked for few large writes.
const LOCAL_PART_BYTES: usize = 1 << 20;
/// Pieces that are smaller are put together. Each would keep the whole buffer that it was read into, and whoever sends byte
/// by byte could fill the memory with those.
const PIECE_BYTES_MIN: usize = 32 << 10;
/// S3 takes no smaller ones, but for the last; some that are like it want all others to be of one size.
const S3_PART_BYTES: usize = 5 << 20;

/// A file that is coming in.
#[derive(Debug)]
pub struct Incoming {
    blobs: Blobs,
    path: String,
    bytes: u64,
    part: Vec<Bytes>,
    /// The end of the part, while it comes in small pieces.
    small: BytesMut,
    part_bytes: usize,
    sink: Sink,
}

/// Where it goes.
#[derive(Debug)]
enum Sink {
    Disk(Disk),
    Bucket(Bucket),
}

impl Incoming {
    pub(crate) fn new(blobs: &Blobs, path: String) -> Self {
        let sink = match blobs.root() {
            Some(root) => Sink::Disk(Disk::new(root.join(&path))),
            None => Sink::Bucket(Bucket::default()),
        };
        Incoming {
            blobs: blobs.clone(),
            path,
            bytes: 0,
            part: Vec::new(),
            small: BytesMut::new(),
            part_bytes: 0,
            sink,
        }
    }

    /// How much has come.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Takes the next piece.
    pub async fn write(&mut self, mut piece: Bytes) -> Result<(), Error> {
        self.bytes += piece.len() as u64;
        let full = match self.sink {
            Sink::Disk(_) => LOCAL_PART_BYTES,
            Sink::Bucket(_) => S3_PART_BYTES,
        };
        while !piece.is_empty() {
            if self.part_bytes == full {
                self.send_part().await?;
            }
            let taken = piece.split_to((full - self.part_bytes).min(piece.len()));
            self.part_bytes += taken.len();
            self.gather(taken);
        }
        Ok(())
    }

    fn gather(&mut self, piece: Bytes) {
        if piece.len() < PIECE_BYTES_MIN {
            self.small.extend_from_slice(&piece);
        } else {
            self.close_small();
            self.part.push(piece);
        }
    }

    fn close_small(&mut self) {
        if !self.small.is_empty() {
            self.part.push(self.small.split().freeze());
        }
    }

    /// All of the part that gathers.
    fn take_part(&mut self) -> Vec<Bytes> {
        self.close_small();
        self.part_bytes = 0;
        std::mem::take(&mut self.part)
    }

    async fn send_part(&mut self) -> Result<(), Error> {
        let part = self.take_part();
        match &mut self.sink {
            Sink::Disk(disk) => disk.add(part).await,
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
            sha256: hex(&hash.finalize()),
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

    async fn add(&mut self, part: Vec<Bytes>) -> Result<(), Error> {
        self.go_on(part, |_| Ok(())).await
    }

    async fn finish(&mut self, last: Vec<Bytes>) -> Result<Sha256, Error> {
        let place = self.place.clone();
        self.go_on(last, move |file| {
            file.sync_all()?;
            sync_folder_of(&place)
        })
        .await?;
        let draft = self.settled().await?.ok_or_else(not_written)?;
        self.is_begun = false;
        Ok(draft.hash)
    }

    /// Begins with the next part when the one before is done.
    async fn go_on(
        &mut self,
        part: Vec<Bytes>,
        then: impl FnOnce(&File) -> io::Result<()> + Send + 'static,
    ) -> Result<(), Error> {
        let (file, mut hash) = match self.settled().await? {
            Some(Draft { file, hash }) => (Some(file), hash),
            None => (None, Sha256::new()),
        };
        let (place, hashed) = (self.place.clone(), part.clone());
        self.is_begun = true;
        self.under_way = Some(tokio::spawn(async move {
            let hashing = tokio::task::spawn_blocking(move || {
                hashed.iter().for_each(|piece| hash.update(piece));
                hash
            });
            let writing = tokio::task::spawn_blocking(move || {
                let file = file.map_or_else(|| begin(&place), Ok)?;
                write(&file, &part)?;
                then(&file)?;
                io::Result::Ok(file)
            });
            let (file, hash) = tokio::join!(writing, hashing);
            Ok(Draft { file: file.map_err(io::Error::other)??, hash: hash.map_err(io::Error::other)? })
        }));
        Ok(())
    }

    async fn settled(&mut self) -> Result<Option<Draft>, Error> {
        let Some(step) = &mut self.under_way else { return Ok(None) };
        // Kept until it has ended: if the caller goes away meanwhile, whoever gives the file up waits for it.
        let ended = step.await;
        self.under_way = None;
        Ok(Some(ended.map_err(|_| not_written())??))
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
    async fn add(&mut self, blobs: &Blobs, path: &str, part: Vec<Bytes>) -> Result<(), Error> {
        self.settle().await?;
        let upload = match &mut self.upload {
            Some(upload) => upload,
            None => self.upload.insert(blobs.store.put_multipart(&Path::from(path)).await?),
        };
        self.under_way = Some(tokio::spawn(upload.put_part(payload(&mut self.hash, part))));
        Ok(())
    }

    async fn finish(&mut self, blobs: &Blobs, path: &str, last: Vec<Bytes>) -> Result<Sha256, Error> {
        // What fits into one part takes one request.
        if self.upload.is_none() {
            blobs.store.put(&Path::from(path), payload(&mut self.hash, last)).await?;
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

/// A part as it is sent, which counts for the digest.
fn payload(hash: &mut Sha256, part: Vec<Bytes>) -> PutPayload {
    part.iter().for_each(|piece| hash.update(piece));
    part.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::BlobsConfig;

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
        let (mut incoming, mut rest) = (blobs.receive(), content());
        while !rest.is_empty() {
            incoming.write(rest.split_to(size.min(rest.len()))).await.unwrap();
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
        for size in [1000, 65_536, LOCAL_PART_BYTES - 1, LOCAL_PART_BYTES, LOCAL_PART_BYTES + 1, SENT] {
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
    async fn small_pieces_are_put_together() {
        let (_directory, blobs) = open();
        let mut incoming = blobs.receive();
        for piece in content().chunks(9) {
            incoming.write(Bytes::copy_from_slice(piece)).await.unwrap();
            assert!(incoming.part.len() <= 1, "each would keep a buffer of its own");
        }
        let stored = incoming.finish().await.unwrap();
        assert!(blobs.get(&stored.path, &stored.sha256).await.unwrap() == content());
    }

    #[tokio::test]
    async fn nothing_is_no_file() {
        let (directory, blobs) = open();
        assert!(blobs.receive().finish().await.is_err());
        assert!(files(directory.path()).is_empty());
    }
}
