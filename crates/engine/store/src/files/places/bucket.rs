//! Places in buckets. Nothing can be renamed there, so a result is first put together out of sight and then copied to its
//! place by the storage itself, all files at once and the manifest last. What is out of sight is named for its attempt, and
//! an attempt that replaces another removes what that one has there: whatever still copies comes too late.

mod staging;

use super::address::Address;
use super::{Attempt, MANIFEST, MANIFEST_BYTES_MAX, Published, nothing_there, too_large, unreached};
use crate::error::Error;
use bytes::Bytes;
use futures_util::{StreamExt as _, TryStreamExt as _};
use object_store::path::Path;
use object_store::{
    Attribute, Attributes, Error as StoreError, GetOptions, ObjectStore, ObjectStoreExt as _, PutMode,
    PutOptions, RetryConfig, UpdateVersion,
};
use ode_job::File;
use ode_job::{ErrorCode, Failure, JobId};
use std::sync::Arc;
use std::time::Duration;

/// How often and for how long one request is tried again before its attempt is: an outage that lasts longer is for the
/// job's own retries, which take no slot meanwhile.
const TRIES_MAX: usize = 5;
const TRIED_FOR: Duration = Duration::from_secs(30);
/// Files that are looked at or sent at a time.
const AT_ONCE: usize = 4;

/// What a file says of the attempt that put it there: its job and its fence.
const MARK: Attribute = Attribute::Metadata(std::borrow::Cow::Borrowed("ode-attempt"));
/// Files below a prefix that are asked whose they are. Where there are more, others use the prefix too, and look after it.
const ASKED_MAX: usize = 10_000;

/// Opens a bucket, with keys from the environment. What is written carries its digest, which the server checks.
pub(crate) fn open(bucket: &str, endpoint: Option<&str>) -> Result<Arc<dyn ObjectStore>, Error> {
    let mut builder = object_store::aws::AmazonS3Builder::from_env()
        .with_bucket_name(bucket)
        .with_checksum_algorithm(object_store::aws::Checksum::SHA256)
        .with_retry(RetryConfig {
            max_retries: TRIES_MAX,
            retry_timeout: TRIED_FOR,
            ..RetryConfig::default()
        });
    if let Some(endpoint) = endpoint {
        builder = builder.with_endpoint(endpoint).with_allow_http(endpoint.starts_with("http:"));
    }
    Ok(Arc::new(builder.build()?))
}

fn path(address: &Address, name: Option<&str>) -> Result<Path, Failure> {
    let prefix = address.path();
    let key = name.map_or_else(|| prefix.clone(), |name| format!("{prefix}/{name}"));
    Path::parse(&key).map_err(|error| Failure::rejected(ErrorCode::Invalid, error.to_string()))
}

/// A bucket that callers' files lie in.
#[derive(Debug, Clone)]
pub(super) struct Bucket {
    store: Arc<dyn ObjectStore>,
    /// What is below it is seen by nobody.
    staging: Path,
}

impl Bucket {
    /// The bucket of a root.
    pub(super) fn of(root: &Address, name: &str, endpoint: Option<&str>) -> Result<Self, Error> {
        let staging = format!("{}/{}", root.fixed_path(), super::STAGING);
        let staging = Path::parse(staging).map_err(|error| Error::Config(error.to_string()))?;
        Ok(Bucket { store: open(name, endpoint)?, staging })
    }

    pub(super) async fn fetch(&self, address: &Address, bytes_max: u64) -> Result<Bytes, Failure> {
        let got = self.store.get(&path(address, None)?).await.map_err(|error| unfetched(address, error))?;
        let size = got.meta.size;
        if size > bytes_max {
            return Err(too_large(address, bytes_max));
        }
        let content = got.bytes().await.map_err(unreached)?;
        if content.len() as u64 != size {
            return Err(unreached(format!("{address} has {size} bytes, and {} came", content.len())));
        }
        Ok(content)
    }

    pub(super) async fn publish(
        &self,
        address: &Address,
        published: &Published,
        files: &[File],
    ) -> Result<(), Failure> {
        let (manifest, attempt) = (path(address, Some(MANIFEST))?, published.attempt());
        if let Some((found, version)) = self.there(&manifest).await? {
            published.may_replace(&found)?;
            if found.files == published.files {
                // An attempt before this one came as far, and could not say so.
                if self.sign(&manifest, published, PutMode::Update(version)).await?.is_some() {
                    return Err(unreached("another attempt was quicker"));
                }
                // As below.
                let _ = self.unstage(attempt).await;
                let _ = self.release(address, attempt.job).await;
                return Ok(());
            }
            self.withdraw(address, found.attempt()).await?;
        }
        let hold = self.hold(address, attempt.job).await?;
        let made = self.appear(address, published, files).await;
        // What stays of it is found by whoever takes away what attempts leave.
        let _ = self.unstage(attempt).await;
        if made.is_ok() {
            // As above.
            let _ = self.delete(&hold).await;
        }
        made
    }

    /// Puts everything together, and then where it is to be seen.
    async fn appear(&self, address: &Address, published: &Published, files: &[File]) -> Result<(), Failure> {
        let attempt = published.attempt();
        self.stage(attempt, files).await?;
        if attempt.fence > 1 {
            self.unstage(Attempt { fence: attempt.fence - 1, ..attempt }).await?;
        }
        crate::crash::point("staged");
        // The page comes after everything it shows.
        let (page, others) = files.split_at(files.len().min(1));
        self.show(address, attempt, others).await?;
        self.show(address, attempt, page).await?;
        crate::crash::point("before-manifest");
        self.seal(&path(address, Some(MANIFEST))?, published).await
    }

    /// The step that makes a result of what was copied. An earlier attempt that stood still may wake up and sign for files
    /// that are no longer its own: that is written over.
    async fn seal(&self, manifest: &Path, published: &Published) -> Result<(), Failure> {
        let mut mode = PutMode::Create;
        for _ in 0..TRIES_MAX {
            match self.sign(manifest, published, mode).await? {
                None => return Ok(()),
                Some(version) => mode = PutMode::Update(version),
            }
        }
        Err(unreached("the manifest changed again and again"))
    }

    /// Writes the manifest. If an earlier attempt was quicker, nothing is written, and what names the version of its is told.
    async fn sign(
        &self,
        manifest: &Path,
        published: &Published,
        mode: PutMode,
    ) -> Result<Option<UpdateVersion>, Failure> {
        let options = PutOptions { mode, ..of_type("application/json") };
        match self.store.put_opts(manifest, published.to_json().into(), options).await {
            Ok(_) => Ok(None),
            Err(StoreError::AlreadyExists { .. } | StoreError::Precondition { .. }) => {
                match self.there(manifest).await? {
                    // By a request of ours whose answer was lost.
                    Some((found, _)) if found == *published => Ok(None),
                    Some((found, version)) => published.may_replace(&found).map(|()| Some(version)),
                    None => Err(unreached("the manifest came and went")),
                }
            }
            Err(error) => Err(unreached(error)),
        }
    }

    /// The result that is there, with what names its version.
    async fn there(&self, manifest: &Path) -> Result<Option<(Published, UpdateVersion)>, Failure> {
        let got = match self.store.get(manifest).await {
            Ok(got) if got.meta.size <= MANIFEST_BYTES_MAX => got,
            Ok(_) => return Err(not_ours()),
            Err(StoreError::NotFound { .. }) => return Ok(None),
            Err(error) => return Err(unreached(error)),
        };
        let version = UpdateVersion { e_tag: got.meta.e_tag.clone(), version: got.meta.version.clone() };
        let text = got.bytes().await.map_err(unreached)?;
        let published = Published::read(&text).ok_or_else(not_ours)?;
        Ok(Some((published, version)))
    }

    pub(super) async fn withdraw(&self, address: &Address, attempt: Attempt) -> Result<u64, Failure> {
        // First of all: from here on, nothing more of it can come to be seen.
        let mut removed = self.unstage(attempt).await?;
        let manifest = path(address, Some(MANIFEST))?;
        let found = match self.there(&manifest).await {
            Ok(found) => found.map(|(found, _)| found).filter(|found| attempt.covers(found.attempt())),
            Err(failure) if failure.code == ErrorCode::Conflict => None,
            Err(failure) => return Err(failure),
        };
        if let Some(found) = found {
            self.delete(&manifest).await?;
            for file in &found.files {
                self.delete(&path(address, Some(&file.path))?).await?;
            }
            removed += found.files.len() as u64;
        }
        removed += self.withdraw_unfinished(address, attempt).await?;
        self.release(address, attempt.job).await?;
        Ok(removed)
    }

    /// Takes away what this attempt and those before it left, unless a manifest makes a result of it.
    pub(super) async fn clear(&self, address: &Address, attempt: Attempt) -> Result<u64, Failure> {
        let removed = self.unstage(attempt).await?;
        match self.there(&path(address, Some(MANIFEST))?).await? {
            Some(_) => Ok(removed),
            None => Ok(removed + self.withdraw_unfinished(address, attempt).await?),
        }
    }

    /// Takes away files that no manifest names.
    async fn withdraw_unfinished(&self, address: &Address, attempt: Attempt) -> Result<u64, Failure> {
        let prefix = path(address, None)?;
        let listed = self.store.list(Some(&prefix)).take(ASKED_MAX).map_err(unreached);
        let removed = listed.map_ok(|found| async move {
            let is_its = self.is_by(&found.location, attempt).await?;
            if is_its {
                self.delete(&found.location).await?;
            }
            Ok(u64::from(is_its))
        });
        removed.try_buffer_unordered(AT_ONCE).try_fold(0, async |sum, count| Ok(sum + count)).await
    }

    /// Whether this attempt or one before it put a file there.
    async fn is_by(&self, file: &Path, attempt: Attempt) -> Result<bool, Failure> {
        match self.store.get_opts(file, GetOptions { head: true, ..GetOptions::default() }).await {
            Ok(found) => Ok(found
                .attributes
                .get(&MARK)
                .and_then(|mark| read_mark(mark))
                .is_some_and(|mark| attempt.covers(mark))),
            Err(StoreError::NotFound { .. }) => Ok(false),
            Err(error) => Err(unreached(error)),
        }
    }

    async fn delete(&self, path: &Path) -> Result<(), Failure> {
        match self.store.delete(path).await {
            Ok(()) | Err(StoreError::NotFound { .. }) => Ok(()),
            Err(error) => Err(unreached(error)),
        }
    }
}

fn unfetched(address: &Address, error: StoreError) -> Failure {
    match error {
        StoreError::NotFound { .. } => nothing_there(address),
        StoreError::PermissionDenied { .. } | StoreError::Unauthenticated { .. } => {
            let message =
                format!("The storage does not let ODE read {address}. Ask the operator to allow it");
            Failure::rejected(ErrorCode::Forbidden, message).with_detail(error.to_string())
        }
        other => unreached(other),
    }
}

fn not_ours() -> Failure {
    let message =
        "The output prefix holds a manifest.json that is not of ODE. Give the job a prefix of its own";
    Failure::rejected(ErrorCode::Conflict, message)
}

fn of_type(content_type: &str) -> PutOptions {
    let mut attributes = Attributes::new();
    attributes.insert(Attribute::ContentType, content_type.to_owned().into());
    attributes.into()
}

fn marked(attempt: Attempt) -> String {
    format!("{}/{}", attempt.job, attempt.fence)
}

fn read_mark(text: &str) -> Option<Attempt> {
    let (job, fence) = text.split_once('/')?;
    Some(Attempt { job: JobId(job.parse().ok()?), fence: fence.parse().ok()? })
}
