//! Results that are being put together, out of sight: each below the job and the number of its attempt.

use super::{ASKED_MAX, AT_ONCE, Bucket, MARK, marked, of_type, path};
use crate::files::places::address::Address;
use crate::files::places::{Attempt, STAGED_MAX, unreached};
use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use jiff::Timestamp;
use object_store::path::Path;
use object_store::{
    Error as StoreError, ObjectMeta, ObjectStore as _, ObjectStoreExt as _, PutMode, PutOptions,
};
use ode_job::File;
use ode_job::{ErrorCode, Failure, JobId};

/// Copies under way at a time. They move nothing between us and the storage, and until the last is made the result is in
/// pieces, so these are many.
const COPIES_AT_ONCE: usize = 16;
/// Who is putting a result where is written down below this.
const HOLDS: &str = "prefixes";

impl Bucket {
    fn staged(&self, attempt: Attempt, name: &str) -> Result<Path, Failure> {
        let Attempt { job, fence } = attempt;
        let key = format!("{}/{job}/{fence}/{name}", self.staging);
        Path::parse(key).map_err(|error| Failure::rejected(ErrorCode::Invalid, error.to_string()))
    }

    /// Sends every file to where nobody looks.
    pub(super) async fn stage(&self, attempt: Attempt, files: &[File]) -> Result<(), Failure> {
        let sent: Vec<_> = files.iter().map(|file| self.send(attempt, file)).collect();
        stream::iter(sent).buffer_unordered(AT_ONCE).try_collect().await
    }

    async fn send(&self, attempt: Attempt, file: &File) -> Result<(), Failure> {
        let mut options = of_type(&file.content_type);
        options.attributes.insert(MARK, marked(attempt).into());
        let (to, content) = (self.staged(attempt, &file.name)?, file.content.clone());
        self.store.put_opts(&to, content.into(), options).await.map(drop).map_err(unreached)
    }

    /// Has the storage copy files from there to their place, with what they say of themselves.
    pub(super) async fn show(
        &self,
        address: &Address,
        attempt: Attempt,
        files: &[File],
    ) -> Result<(), Failure> {
        let shown: Vec<_> = files.iter().map(|file| self.copy(address, attempt, file)).collect();
        stream::iter(shown).buffer_unordered(COPIES_AT_ONCE).try_collect().await
    }

    async fn copy(&self, address: &Address, attempt: Attempt, file: &File) -> Result<(), Failure> {
        let (from, to) = (self.staged(attempt, &file.name)?, path(address, Some(&file.name))?);
        // One that is not there any more was taken from under us by an attempt that replaced this one.
        self.store.copy(&from, &to).await.map_err(unreached)
    }

    /// Removes what this attempt and those before it have there; answers how many files.
    pub(super) async fn unstage(&self, attempt: Attempt) -> Result<u64, Failure> {
        let of_job = self.staging.clone().join(attempt.job.to_string());
        let is_its = |file: &Path| {
            let fence = file.prefix_match(&of_job).and_then(|mut rest| rest.next()?.as_ref().parse().ok());
            fence.is_some_and(|fence: i64| fence <= attempt.fence)
        };
        let listed = self.store.list(Some(&of_job)).map_err(unreached);
        let files: Vec<Path> = listed.map_ok(|found| found.location).try_collect().await?;
        self.delete_all(files.into_iter().filter(is_its).collect()).await
    }

    /// Removes what was left there long ago; answers how many files.
    pub(in crate::files::places) async fn sweep(&self) -> Result<u64, Failure> {
        let before = Timestamp::now() - STAGED_MAX;
        // What is beyond it waits for the next sweep.
        let listed = self.store.list(Some(&self.staging)).take(ASKED_MAX).map_err(unreached);
        let files: Vec<ObjectMeta> = listed.try_collect().await?;
        let old = files.into_iter().filter(|file| file.last_modified.timestamp() < before.as_second());
        self.delete_all(old.map(|file| file.location).collect()).await
    }

    async fn delete_all(&self, files: Vec<Path>) -> Result<u64, Failure> {
        let mut gone = self.store.delete_stream(stream::iter(files).map(Ok).boxed());
        let mut count = 0;
        while let Some(file) = gone.next().await {
            match file {
                Ok(_) => count += 1,
                Err(StoreError::NotFound { .. }) => {}
                Err(error) => return Err(unreached(error)),
            }
        }
        Ok(count)
    }

    /// Keeps other jobs from a prefix for as long as no manifest does.
    pub(super) async fn hold(&self, address: &Address, job: JobId) -> Result<Path, Failure> {
        let hold = self.hold_of(address);
        let options = PutOptions { mode: PutMode::Create, ..of_type("text/plain") };
        match self.store.put_opts(&hold, job.to_string().into(), options).await {
            Ok(_) => Ok(hold),
            Err(StoreError::AlreadyExists { .. } | StoreError::Precondition { .. }) => {
                match self.holder(&hold).await? {
                    Some(holder) if holder != job.to_string() => {
                        let message = format!(
                            "Job {holder} is putting its result at this output prefix. Give each job a prefix of its own, or try again when that job has ended"
                        );
                        Err(Failure::retryable(ErrorCode::Conflict, message))
                    }
                    // Our own, of an attempt that was lost.
                    Some(_) => Ok(hold),
                    None => Err(unreached("another job left the prefix just now")),
                }
            }
            Err(error) => Err(unreached(error)),
        }
    }

    /// Gives a prefix free if it is this job's.
    pub(super) async fn release(&self, address: &Address, job: JobId) -> Result<(), Failure> {
        let hold = self.hold_of(address);
        match self.holder(&hold).await? {
            Some(holder) if holder == job.to_string() => self.delete(&hold).await,
            _ => Ok(()),
        }
    }

    fn hold_of(&self, address: &Address) -> Path {
        // A digest, since a prefix may be as long as a name may be.
        let prefix = crate::files::blobs::sha256_hex(address.path().as_bytes());
        self.staging.clone().join(HOLDS).join(prefix)
    }

    async fn holder(&self, hold: &Path) -> Result<Option<String>, Failure> {
        match self.store.get(hold).await {
            Ok(got) => {
                let text = got.bytes().await.map_err(unreached)?;
                Ok(Some(String::from_utf8_lossy(&text).into_owned()))
            }
            Err(StoreError::NotFound { .. }) => Ok(None),
            Err(error) => Err(unreached(error)),
        }
    }
}
