//! Jobs that ended long ago, of pipelines that have them archived: into the archive, then out of the database.

use crate::database::db::params;
use crate::error::Error;
use crate::files::blobs::Blobs;
use crate::jobs::read::record;
use crate::retention::gzip;
use crate::schema::declaration::declared;
use crate::{Store, crash, micros};
use jiff::tz::TimeZone;
use ode_job::{JobRecord, Pipeline};
use std::time::Duration;

/// Jobs in one file of the archive.
const FILE_MAX: i64 = 500;

const DUE: &str = "SELECT {job_columns} FROM jobs
    WHERE id IN (SELECT id FROM job_past WHERE pipeline = $3 AND created_at < {after $1}
        ORDER BY created_at LIMIT $2) ORDER BY id";
const DUE_COUNT: &str =
    "SELECT count(*) AS jobs FROM job_past WHERE pipeline = $2 AND created_at < {after $1}";

impl Store {
    /// The pipelines whose jobs are archived, and where.
    fn archives() -> impl Iterator<Item = (Pipeline, &'static str)> {
        declared().iter().filter_map(|declaration| Some((declaration.pipeline, declaration.rules.archive?)))
    }

    /// Puts jobs that ended and were made longer ago than this into compressed files, and removes them with everything of
    /// theirs. Returns how many there were.
    pub(crate) async fn archive_jobs(&self, blobs: &Blobs, keep: Duration) -> Result<u64, Error> {
        let mut count = 0;
        for (pipeline, folder) in Self::archives() {
            count += self.archive_jobs_of(pipeline, folder, blobs, keep).await?;
        }
        Ok(count)
    }

    async fn archive_jobs_of(
        &self,
        pipeline: Pipeline,
        folder: &str,
        blobs: &Blobs,
        keep: Duration,
    ) -> Result<u64, Error> {
        let mut count = 0;
        loop {
            let rows = self.db().read(DUE, params![-micros(keep), FILE_MAX, pipeline.as_str()]).await?;
            let jobs = rows.iter().map(record).collect::<Result<Vec<_>, _>>()?;
            let (Some(first), Some(last)) = (jobs.first(), jobs.last()) else { return Ok(count) };
            blobs.put_at(&path(folder, first, last), gzip(&lines(&jobs)?)?).await?;
            crash::point("after-archive");
            let before = count;
            for job in &jobs {
                match self.delete_job(job.id, blobs).await {
                    Ok(()) => count += 1,
                    // Somebody removed it, or tries it again.
                    Err(Error::NotFound(_) | Error::Busy(_) | Error::Refused { .. }) => {}
                    Err(error) => return Err(error),
                }
            }
            if count == before {
                return Ok(count);
            }
        }
    }

    /// How many jobs would be archived.
    pub(crate) async fn archive_due(&self, keep: Duration) -> Result<u64, Error> {
        let mut count = 0;
        for (pipeline, _) in Self::archives() {
            let rows = self.db().read(DUE_COUNT, params![-micros(keep), pipeline.as_str()]).await?;
            count += rows.first().map_or(Ok(0), |row| row.int("jobs"))?.unsigned_abs();
        }
        Ok(count)
    }
}

/// One JSON object a line.
fn lines(jobs: &[JobRecord]) -> Result<String, Error> {
    let line = |job: &JobRecord| serde_json::to_string(job).map(|line| line + "\n");
    jobs.iter().map(line).collect::<Result<_, _>>().map_err(|error| Error::Blob(error.to_string()))
}

/// With the first and the last job in it: written again after a crash, it replaces itself and nothing else.
fn path(folder: &str, first: &JobRecord, last: &JobRecord) -> String {
    let day = first.created_at.to_zoned(TimeZone::UTC).date();
    format!("{folder}/{}/{day}_{}-{}.ndjson.gz", day.year(), first.id, last.id)
}
