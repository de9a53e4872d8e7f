//! What is kept for how long, and removing the rest.
//!
//! A file is given up in one transaction: its row moves to the trash, the job's history tells of it. Then the file itself
//! goes, then its entry in the trash. Cut short anywhere, the next cleanup goes on; no step can lose track of a file.
//! Events are written to a compressed file first, and removed once that is safe.

pub(crate) mod archive;

use crate::database::db::{Param, Row, params};
use crate::error::Error;
use crate::files::blobs::Blobs;
use crate::files::disk::Watermark;
use crate::jobs::documents::{News, give_up};
use crate::jobs::mint::seq_at;
use crate::{Store, crash, micros};
use flate2::Compression;
use flate2::write::GzEncoder;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use ode_job::{Event, JobId, State};
use serde_json::json;
use std::collections::BTreeMap;
use std::io::Write as _;
use std::time::Duration;
use uuid::Uuid;

const DAY: Duration = Duration::from_hours(24);

/// How long things are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retention {
    /// Documents, from their upload on.
    pub sources: Duration,
    /// Results and what else jobs made, from then on.
    pub results: Duration,
    /// The history of jobs; older entries are in the archive.
    pub events: Duration,
    /// Jobs that ended of pipelines that have them archived (scripts), from when they were made on; then they are in the archive.
    pub scripts: Duration,
    /// Whether a result goes with its first download.
    pub delete_on_download: bool,
}

impl Default for Retention {
    /// 7, 30 and 90 days, scripts 30; downloads delete nothing.
    fn default() -> Self {
        Retention {
            sources: 7 * DAY,
            results: 30 * DAY,
            events: 90 * DAY,
            scripts: 30 * DAY,
            delete_on_download: false,
        }
    }
}

/// What a cleanup did, or would do.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize)]
pub struct Cleaned {
    /// Documents given up.
    pub sources: u64,
    /// Results and other files of jobs given up.
    pub results: u64,
    /// Their size.
    pub bytes: u64,
    /// Files removed from the storage.
    pub files_removed: u64,
    /// Entries of the history put into the archive.
    pub events_archived: u64,
    /// Jobs put into the archive and removed.
    pub scripts_archived: u64,
    /// Files in the storage that belonged to nothing.
    pub orphans: u64,
    /// Files of jobs that are not in the storage; their jobs now say so.
    pub lost: u64,
    /// Whether so many are not there that the storage may be the wrong one, and nothing was done about them.
    pub is_storage_suspect: bool,
}

/// Rows given up in one transaction.
const BATCH_MAX: i64 = 500;
/// Entries of the history read at a time.
const EVENTS_PAGE: i64 = 500;
/// An archive file holds a day, and no more than this much text.
const ARCHIVE_BYTES_MAX: usize = 64 << 20;
/// While the disk is nearly full, documents of ended jobs are kept for this long only.
const PRESSED_SOURCES: Duration = Duration::from_hours(1);

const POLICY: &str = "SELECT source_micros, result_micros, events_micros, script_micros,
    CASE WHEN delete_on_download THEN 1 ELSE 0 END AS delete_on_download FROM retention_policy";
const SET_POLICY: &str =
    "UPDATE retention_policy SET source_micros = $1, result_micros = $2, events_micros = $3, script_micros = $4,
    delete_on_download = ($5 = 1)";
const DUE: &str = "SELECT a.id, a.job_id, a.role, a.bytes, p.state FROM job_artifact a JOIN job_past p ON p.id = a.job_id
    WHERE (a.role = 'source' AND a.created_at < {after $1}) OR (a.role <> 'source' AND a.created_at < {after $2})
    ORDER BY a.id LIMIT $3";
const DUE_SUM: &str = "SELECT a.role, count(*) AS files, CAST(sum(a.bytes) AS bigint) AS bytes
    FROM job_artifact a JOIN job_past p ON p.id = a.job_id
    WHERE (a.role = 'source' AND a.created_at < {after $1}) OR (a.role <> 'source' AND a.created_at < {after $2})
    GROUP BY a.role";
/// What can be spared: results that were fetched already, oldest first.
const FETCHED: &str = "SELECT a.id, a.job_id, a.role, a.bytes, p.state
    FROM job_artifact a JOIN job_past p ON p.id = a.job_id JOIN job_download d ON d.job_id = a.job_id
    WHERE a.role <> 'source' ORDER BY a.id LIMIT $1";
const TRASHED: &str =
    "SELECT path FROM blob_trash WHERE storage = $1 AND not_before <= {now} ORDER BY path LIMIT $2";
const EMPTIED: &str =
    "DELETE FROM blob_trash WHERE storage = $1 AND path IN (SELECT path FROM {rows $2: path text})";
const EVENTS: &str = "SELECT seq, at, event, from_state, to_state, actor, jobs, details FROM job_journal
    WHERE seq > $1 AND seq < $2 ORDER BY seq LIMIT $3";
const EVENTS_COUNT: &str = "SELECT count(*) AS events FROM job_journal WHERE seq < $1";
const EVENTS_DONE: &str = "DELETE FROM job_journal WHERE seq >= $1 AND seq <= $2";

impl Store {
    /// How long things are kept here.
    pub async fn retention(&self) -> Result<Retention, Error> {
        let rows = self.db().read(POLICY, params![]).await?;
        let Some(row) = rows.first() else { return Ok(Retention::default()) };
        let time = |column| row.int(column).map(|micros| Duration::from_micros(micros.unsigned_abs()));
        Ok(Retention {
            sources: time("source_micros")?,
            results: time("result_micros")?,
            events: time("events_micros")?,
            scripts: time("script_micros")?,
            delete_on_download: row.int("delete_on_download")? == 1,
        })
    }

    /// Says how long things are kept here; for all processes, from now on.
    pub async fn set_retention(&self, retention: &Retention) -> Result<(), Error> {
        let time = |duration| micros(duration).max(1);
        let params = params![
            time(retention.sources),
            time(retention.results),
            time(retention.events),
            time(retention.scripts),
            i64::from(retention.delete_on_download),
        ];
        self.db().write(SET_POLICY, params).await.map(drop)
    }

    /// Removes what has been kept long enough.
    pub async fn cleanup(&self, blobs: &Blobs) -> Result<Cleaned, Error> {
        let retention = self.retention().await?;
        let mut cleaned = Cleaned::default();
        self.expire(&retention, &mut cleaned).await?;
        cleaned.files_removed += self.empty_trash(blobs).await?;
        cleaned.scripts_archived += self.archive_jobs(blobs, retention.scripts).await?;
        cleaned.events_archived += self.archive_events(blobs, retention.events).await?;
        self.forget_deliveries(retention.events).await?;
        self.sweep(blobs, &mut cleaned).await?;
        cleaned.files_removed += self.empty_trash(blobs).await?;
        Ok(cleaned)
    }

    /// Says what a cleanup would do, and does nothing.
    pub async fn cleanup_plan(&self, blobs: &Blobs) -> Result<Cleaned, Error> {
        let retention = self.retention().await?;
        let mut cleaned = Cleaned::default();
        let params = params![-micros(retention.sources), -micros(retention.results)];
        for row in self.db().read(DUE_SUM, params).await? {
            let (files, bytes) =
                (row.int("files")?.unsigned_abs(), row.opt_int("bytes")?.unwrap_or_default());
            cleaned.bytes += bytes.unsigned_abs();
            match row.text("role")?.as_str() {
                "source" => cleaned.sources += files,
                _ => cleaned.results += files,
            }
        }
        let before = seq_at(ago(retention.events));
        let rows = self.db().read(EVENTS_COUNT, params![before]).await?;
        cleaned.events_archived = rows.first().map_or(Ok(0), |row| row.int("events"))?.unsigned_abs();
        cleaned.scripts_archived = self.archive_due(retention.scripts).await?;
        self.look_over(blobs, &mut cleaned).await?;
        Ok(cleaned)
    }

    /// While the disk is nearly full: gives up documents sooner, then results that were fetched already, until there is
    /// room or nothing left to give up. Results that nobody has fetched are kept for their time.
    pub async fn relieve(&self, blobs: &Blobs, watermark: &Watermark) -> Result<Cleaned, Error> {
        let retention = self.retention().await?;
        let pressed = Retention { sources: retention.sources.min(PRESSED_SOURCES), ..retention };
        let mut cleaned = Cleaned::default();
        self.expire(&pressed, &mut cleaned).await?;
        cleaned.files_removed += self.empty_trash(blobs).await?;
        while watermark.look_now().is_paused {
            let rows = self.db().read(FETCHED, params![BATCH_MAX / 10]).await?;
            if rows.is_empty() || self.expire_rows(&rows, "disk", &mut cleaned).await? == 0 {
                break;
            }
            cleaned.files_removed += self.empty_trash(blobs).await?;
        }
        Ok(cleaned)
    }

    async fn expire(&self, retention: &Retention, cleaned: &mut Cleaned) -> Result<(), Error> {
        let params = params![-micros(retention.sources), -micros(retention.results), BATCH_MAX];
        loop {
            let rows = self.db().read(DUE, params).await?;
            // Nothing given up means that another process is at it, or that they are being retried.
            if rows.is_empty() || self.expire_rows(&rows, "age", cleaned).await? == 0 {
                return Ok(());
            }
        }
    }

    /// Gives up these files of ended jobs; answers how many there were.
    pub(crate) async fn expire_rows(
        &self,
        rows: &[Row],
        reason: &str,
        cleaned: &mut Cleaned,
    ) -> Result<u64, Error> {
        let mut alike: BTreeMap<Likeness, Vec<(JobId, Vec<Due>)>> = BTreeMap::new();
        for (job, (state, files)) in by_job(rows)? {
            let mut roles: Vec<String> = files.iter().map(|file| file.role.clone()).collect();
            roles.sort();
            roles.dedup();
            alike.entry((state, roles)).or_default().push((job, files));
        }
        let mut count = 0;
        for ((state, roles), jobs) in alike {
            let ids: Vec<JobId> = jobs.iter().map(|(job, _)| *job).collect();
            let particulars = Some(json!({ "files": roles, "reason": reason }));
            let news = News { event: Event::Expired, state, particulars };
            let mut tx = self.db().begin().await?;
            let told = self.tell_of(&mut tx, &ids, news).await?;
            let files = jobs.iter().filter(|(job, _)| told.contains(job)).flat_map(|(_, files)| files);
            let files: Vec<&Due> = files.collect();
            let file_ids: Vec<Uuid> = files.iter().map(|file| file.id).collect();
            give_up(&mut tx, &file_ids, Duration::ZERO).await?;
            tx.commit().await?;
            self.nudge();
            crash::point("after-expire");
            files.iter().for_each(|file| file.count_in(cleaned));
            count += files.len() as u64;
        }
        Ok(count)
    }

    /// Removes files that were given up; answers how many.
    pub async fn empty_trash(&self, blobs: &Blobs) -> Result<u64, Error> {
        let mut count = 0;
        loop {
            let rows = self.db().read(TRASHED, params![blobs.storage(), BATCH_MAX]).await?;
            if rows.is_empty() {
                return Ok(count);
            }
            let mut gone = Vec::with_capacity(rows.len());
            for row in &rows {
                let path = row.text("path")?;
                blobs.delete(&path).await?;
                crash::point("after-file");
                gone.push(json!({ "path": path }));
            }
            count += gone.len() as u64;
            let gone = Param::rows(gone);
            self.db().write(EMPTIED, &[blobs.storage().into(), gone]).await?;
        }
    }

    /// Puts entries of the history that are older than this into compressed files, one for each day, and removes them.
    async fn archive_events(&self, blobs: &Blobs, keep: Duration) -> Result<u64, Error> {
        let before = seq_at(ago(keep));
        let mut count = 0;
        while let Some(archive) = self.read_archive(before).await? {
            blobs.put_at(&archive.path(), gzip(&archive.text)?).await?;
            crash::point("after-archive");
            let mut tx = self.db().begin().await?;
            tx.begin_retention().await?;
            tx.run(EVENTS_DONE, params![archive.first, archive.last]).await?;
            tx.end_retention().await?;
            tx.commit().await?;
            count += archive.count;
        }
        Ok(count)
    }

    /// The oldest day that is left before this entry, or as much of it as fits in one file.
    async fn read_archive(&self, before: i64) -> Result<Option<Archive>, Error> {
        let mut archive: Option<Archive> = None;
        loop {
            let after = archive.as_ref().map_or(-1, |archive| archive.last);
            let rows = self.db().read(EVENTS, params![after, before, EVENTS_PAGE]).await?;
            for row in &rows {
                let day = row.moment("at")?.to_zoned(TimeZone::UTC).date();
                let archive = archive.get_or_insert_with(|| Archive::new(day));
                if archive.day != day || archive.text.len() > ARCHIVE_BYTES_MAX {
                    return Ok(Some(std::mem::replace(archive, Archive::new(day))));
                }
                archive.add(row)?;
            }
            if rows.len() < usize::try_from(EVENTS_PAGE).unwrap_or(usize::MAX) {
                return Ok(archive);
            }
        }
    }
}

fn ago(duration: Duration) -> Timestamp {
    Timestamp::now().checked_sub(duration).unwrap_or(Timestamp::UNIX_EPOCH)
}

/// Jobs that are told of together: their state, and which of their files go.
type Likeness = (State, Vec<String>);

/// A file that is due.
struct Due {
    id: Uuid,
    role: String,
    bytes: u64,
}

impl Due {
    fn count_in(&self, cleaned: &mut Cleaned) {
        cleaned.bytes += self.bytes;
        match self.role.as_str() {
            "source" => cleaned.sources += 1,
            _ => cleaned.results += 1,
        }
    }
}

fn by_job(rows: &[Row]) -> Result<BTreeMap<JobId, (State, Vec<Due>)>, Error> {
    let mut jobs: BTreeMap<JobId, (State, Vec<Due>)> = BTreeMap::new();
    for row in rows {
        let due =
            Due { id: row.uuid("id")?, role: row.text("role")?, bytes: row.int("bytes")?.unsigned_abs() };
        let state = row.name("state")?;
        jobs.entry(row.job("job_id")?).or_insert_with(|| (state, Vec::new())).1.push(due);
    }
    Ok(jobs)
}

/// A day of the history on its way into a file.
struct Archive {
    day: jiff::civil::Date,
    first: i64,
    last: i64,
    count: u64,
    text: String,
}

impl Archive {
    fn new(day: jiff::civil::Date) -> Self {
        Archive { day, first: i64::MAX, last: -1, count: 0, text: String::new() }
    }

    fn add(&mut self, row: &Row) -> Result<(), Error> {
        let seq = row.int("seq")?;
        let line = json!({
            "seq": seq, "at": row.moment("at")?, "event": row.text("event")?,
            "from_state": row.opt_text("from_state")?, "to_state": row.text("to_state")?,
            "actor": row.text("actor")?, "jobs": row.jobs("jobs")?, "details": row.opt_json("details")?,
        });
        self.text.push_str(&line.to_string());
        self.text.push('\n');
        self.first = self.first.min(seq);
        self.last = self.last.max(seq);
        self.count += 1;
        Ok(())
    }

    /// With the first and the last entry in it: written again after a crash, it replaces itself and nothing else.
    fn path(&self) -> String {
        format!("{EVENT_ARCHIVES}/{}/{}_{}-{}.ndjson.gz", self.day.year(), self.day, self.first, self.last)
    }
}

/// Text as a compressed file.
pub(crate) fn gzip(text: &str) -> Result<Vec<u8>, Error> {
    let failed = |error: std::io::Error| Error::Blob(error.to_string());
    let mut gzip = GzEncoder::new(Vec::new(), Compression::default());
    gzip.write_all(text.as_bytes()).map_err(failed)?;
    gzip.finish().map_err(failed)
}

/// What lies below this is named by no row, and the sweep leaves it alone.
pub(crate) const ARCHIVES: &str = "archive/";
/// Where archived events lie below the storage's root.
const EVENT_ARCHIVES: &str = "archive/events";
