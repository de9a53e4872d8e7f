//! Places of callers: where documents may be fetched from and results be put, below roots that the operator opened, and
//! nowhere else. An address is compared part by part, so that `s3://inbox-other` is not below `s3://inbox`, and on local
//! disk the path that the file system finds in the end must lie below the root as well.
//!
//! A result is there once its `manifest.json` is: it is written last and taken away first. It is put together out of sight,
//! below the root. On local disk the whole folder then appears at once. On S3, where nothing can be moved, the storage
//! copies the files: while it does, and after an attempt that was lost in that moment, there may be files without a manifest.
//! Each says which attempt put it there, so that they can be taken away where no other attempt writes over them.

mod address;
mod bucket;
mod folder;

use crate::error::Error;
use address::Address;
pub(crate) use bucket::open as open_bucket;
use bytes::Bytes;
use ode_job::File;
use ode_job::{ErrorCode, Failure, JobId, Owner};
use serde::{Deserialize, Serialize};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// The last file of a result to come, and the first to go.
pub const MANIFEST: &str = "manifest.json";
/// A manifest that is larger is none of ours.
const MANIFEST_BYTES_MAX: u64 = 16 << 20;
/// Results that are being made lie here, below the root.
const STAGING: &str = ".ode-staging";
/// What lies there for longer was left by an attempt that is lost.
const STAGED_MAX: Duration = Duration::from_hours(24);

/// Which places are open.
#[derive(Debug, Clone, Default)]
pub struct PlacesConfig {
    /// Roots that documents may be fetched from, such as `s3://inbox/new` or `file:///srv/inbox`. A part of it may be
    /// `{owner}`: the id of whoever the job belongs to, so that nobody reaches what is another's.
    pub inputs: Vec<String>,
    /// Roots that results may be put below, written in the same way.
    pub outputs: Vec<String>,
    /// Other than Amazon's: the address of the store that has the buckets.
    pub s3_endpoint: Option<String>,
}

/// The places that are open. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct Places {
    inputs: Arc<[Root]>,
    outputs: Arc<[Root]>,
}

#[derive(Debug)]
struct Root {
    address: Address,
    store: Store,
}

/// How what lies below a root is reached.
#[derive(Debug, Clone)]
enum Store {
    Bucket(bucket::Bucket),
    /// The directory as the file system finds it.
    Folder(PathBuf),
}

/// What is said of a published result beside its files.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Published {
    /// The job whose result it is.
    pub job_id: JobId,
    /// The attempt that made it.
    pub fence: i64,
    /// The files, the page to open first.
    pub files: Vec<PublishedFile>,
}

/// One file of a published result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PublishedFile {
    /// Where it is, below the prefix.
    pub path: String,
    pub content_type: String,
    pub bytes: usize,
    /// Its digest, hexadecimal.
    pub sha256: String,
}

/// A try at a job.
#[derive(Debug, Clone, Copy)]
struct Attempt {
    job: JobId,
    fence: i64,
}

impl Attempt {
    /// Whether it is this try or one that came after another at the same job.
    fn covers(self, other: Attempt) -> bool {
        self.job == other.job && other.fence <= self.fence
    }
}

impl Published {
    fn attempt(&self) -> Attempt {
        Attempt { job: self.job_id, fence: self.fence }
    }

    fn new(job_id: JobId, fence: i64, files: &[File]) -> Self {
        let file = |file: &File| PublishedFile {
            path: file.name.clone(),
            content_type: file.content_type.clone(),
            bytes: file.content.len(),
            sha256: crate::files::blobs::sha256_hex(&file.content),
        };
        Published { job_id, fence, files: files.iter().map(file).collect() }
    }

    /// What a manifest says. It lies where others write, too: one that names something outside of its place is none of ours.
    fn read(manifest: &[u8]) -> Option<Self> {
        let read: Published = serde_json::from_slice(manifest).ok()?;
        read.files.iter().all(|file| is_below(&file.path)).then_some(read)
    }

    fn to_json(&self) -> Vec<u8> {
        serde_json::to_vec_pretty(self).expect("names and numbers are always valid JSON")
    }

    /// Whether an attempt may put its own result in the place of this one.
    fn may_replace(&self, there: &Published) -> Result<(), Failure> {
        if there.job_id != self.job_id {
            let message = format!(
                "The output prefix holds the result of job {}. Give each job a prefix of its own, or delete that job",
                there.job_id
            );
            return Err(Failure::rejected(ErrorCode::Conflict, message));
        }
        if there.fence > self.fence {
            // Whoever replaced us has published; nothing of ours will be written.
            return Err(Failure::retryable(ErrorCode::Conflict, "A later attempt has published already"));
        }
        Ok(())
    }
}

/// Whether a name leads below where it starts, and nowhere else.
fn is_below(name: &str) -> bool {
    !name.is_empty() && Path::new(name).components().all(|part| matches!(part, Component::Normal(_)))
}

impl Places {
    /// Opens the places. A folder that is not there, and an address that is not understood, is an error.
    pub fn open(config: &PlacesConfig) -> Result<Self, Error> {
        let roots = |option: &str, roots: &[String]| {
            let root = |text: &String| Root::open(text, config.s3_endpoint.as_deref());
            let wrong = |error| Error::Config(format!("{option} cannot be used: {error}"));
            roots.iter().map(root).collect::<Result<Arc<[Root]>, _>>().map_err(wrong)
        };
        Ok(Places {
            inputs: roots("--input-root", &config.inputs)?,
            outputs: roots("--output-root", &config.outputs)?,
        })
    }

    /// Says why a document cannot be fetched from there, in words for whoever asked: `INVALID` what is no address,
    /// `FORBIDDEN` what is not open. Nothing if it may be.
    pub fn check_input(&self, owner: Owner, address: &str) -> Result<(), Failure> {
        self.input(owner, address).map(drop)
    }

    /// The same for a prefix that results are to appear below.
    pub fn check_output(&self, owner: Owner, address: &str) -> Result<(), Failure> {
        self.output(owner, address).map(drop)
    }

    fn input(&self, owner: Owner, address: &str) -> Result<(&Store, Address), Failure> {
        find(&self.inputs, owner, address, "--input-root")
    }

    fn output(&self, owner: Owner, address: &str) -> Result<(&Store, Address), Failure> {
        find(&self.outputs, owner, address, "--output-root")
    }

    pub async fn fetch(&self, owner: Owner, address: &str, bytes_max: u64) -> Result<Bytes, Failure> {
        let (store, found) = self.input(owner, address)?;
        match store {
            Store::Bucket(bucket) => bucket.fetch(&found, bytes_max).await,
            Store::Folder(root) => {
                let (root, found) = (root.clone(), found);
                in_background(move || folder::fetch(&root, &found, bytes_max)).await
            }
        }
    }

    /// Puts a result below a prefix. When this returns, all of it is there.
    pub async fn publish(&self, to: Destination<'_>, files: &[File]) -> Result<(), Failure> {
        let (store, found) = self.output(to.owner, to.address)?;
        let published = Published::new(to.job, to.fence, files);
        match store {
            Store::Bucket(bucket) => bucket.publish(&found, &published, files).await,
            Store::Folder(root) => {
                let (root, files, waiting) = (root.clone(), files.to_vec(), Waiting::default());
                let is_wanted = waiting.look();
                in_background(move || folder::publish(&root, &found, &published, &files, &is_wanted)).await
            }
        }
    }

    /// Takes away what this attempt at a job and those before it put there, whole or not; answers how many files or
    /// folders. What is another job's or a later attempt's is left alone.
    pub async fn withdraw(&self, from: Destination<'_>) -> Result<u64, Failure> {
        let (store, found) = self.output(from.owner, from.address)?;
        let attempt = Attempt { job: from.job, fence: from.fence };
        match store {
            Store::Bucket(bucket) => bucket.withdraw(&found, attempt).await,
            Store::Folder(root) => {
                let root = root.clone();
                in_background(move || folder::withdraw(&root, &found, attempt)).await
            }
        }
    }

    /// Whether something may be seen there of a result that is not whole. In a folder it appears in one step.
    pub fn shows_unfinished(&self, owner: Owner, address: &str) -> bool {
        matches!(self.output(owner, address), Ok((Store::Bucket(_), _)))
    }

    /// Takes away what this attempt at a job and those before it left there, unless it is a whole result; answers how many
    /// files.
    pub async fn clear(&self, from: Destination<'_>) -> Result<u64, Failure> {
        let (store, found) = self.output(from.owner, from.address)?;
        match store {
            Store::Bucket(bucket) => bucket.clear(&found, Attempt { job: from.job, fence: from.fence }).await,
            Store::Folder(_) => Ok(0),
        }
    }

    /// Removes what attempts that were lost left out of sight long ago; answers how many files or folders.
    pub async fn sweep(&self) -> u64 {
        let mut removed = 0;
        for root in self.outputs.iter() {
            let swept = match &root.store {
                Store::Bucket(bucket) => bucket.sweep().await,
                Store::Folder(root) => {
                    let root = root.clone();
                    in_background(move || Ok(folder::sweep(&root))).await
                }
            };
            removed += swept.unwrap_or_else(|failure| {
                tracing::warn!(
                    detail = failure.detail,
                    "what lost attempts left could not be swept: {failure}"
                );
                0
            });
        }
        removed
    }
}

/// Whoever waits for a result. Work on another thread goes on when they leave, and must not show it any more then.
#[derive(Debug, Default)]
struct Waiting(Arc<AtomicBool>);

impl Waiting {
    /// How others see whether somebody still waits.
    fn look(&self) -> impl Fn() -> bool + Send + 'static {
        let has_left = self.0.clone();
        move || !has_left.load(Ordering::Relaxed)
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Where a result appears, and whose it is.
#[derive(Debug, Clone, Copy)]
pub struct Destination<'a> {
    pub owner: Owner,
    pub job: JobId,
    /// The attempt.
    pub fence: i64,
    pub address: &'a str,
}

impl Root {
    fn open(text: &str, endpoint: Option<&str>) -> Result<Self, String> {
        // Until the owner is known, the part that names them stands for itself.
        let address: Address = text.parse()?;
        let store = match &address.bucket {
            Some(name) => {
                let bucket = bucket::Bucket::of(&address, name, endpoint);
                Store::Bucket(bucket.map_err(|error| error.to_string())?)
            }
            None => Store::Folder(folder::open(&address)?),
        };
        Ok(Root { address, store })
    }
}

fn find<'a>(
    roots: &'a [Root],
    owner: Owner,
    address: &str,
    option: &str,
) -> Result<(&'a Store, Address), Failure> {
    let malformed = |why: String| Failure::rejected(ErrorCode::Invalid, why);
    let closed = |why: String| Failure::rejected(ErrorCode::Forbidden, why);
    let parsed: Address = address.parse().map_err(malformed)?;
    if parsed.parts.is_empty() {
        return Err(malformed(address::FORM.to_owned()));
    }
    let is_open = |root: &&Root| parsed.is_below(&root.address, owner) && !is_staging(&parsed);
    let root = roots.iter().find(is_open);
    let root = root.ok_or_else(|| {
        if roots.is_empty() {
            return closed(format!(
                "no place is open here. Send the document in a form instead, or ask the operator to open one with \
                 {option}."
            ));
        }
        closed(format!("{address} is not below a place that is open to you. Ask the operator which are."))
    })?;
    Ok((&root.store, parsed))
}

/// Whether it lies where unfinished results do, which is nobody's.
fn is_staging(address: &Address) -> bool {
    address.parts.iter().any(|part| part == STAGING)
}

/// Runs what waits for the disk on a thread that may wait.
async fn in_background<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Failure> + Send + 'static,
) -> Result<T, Failure> {
    let ran = tokio::task::spawn_blocking(work).await;
    ran.unwrap_or_else(|_| Err(ErrorCode::Unknown.into()))
}

fn too_large(address: &Address, bytes_max: u64) -> Failure {
    let message = format!(
        "{address} is larger than {} MB, which is the limit. Split it, or save it with smaller pictures",
        bytes_max / 1_000_000
    );
    Failure::rejected(ErrorCode::TooLarge, message)
}

fn nothing_there(address: &Address) -> Failure {
    let message =
        format!("There is nothing at {address}. Store the document there first, or correct the path");
    Failure::rejected(ErrorCode::NotFound, message)
}

/// The storage did not answer as it should; it may the next time.
fn unreached(error: impl ToString) -> Failure {
    Failure::retryable(ErrorCode::IoError, ErrorCode::IoError.sentence()).with_detail(error.to_string())
}
