//! Jobs as the API shows them.

use crate::jobs::kind::JobKind;
use jiff::Timestamp;
use ode_job::estimate::TimeLeft;
use ode_job::{ErrorCode, EventRecord, JobId, JobRecord, Phase, State};
use ode_store::OwnedJob;
use serde::{Serialize, Serializer};
use serde_json::Value;
use utoipa::ToSchema;

/// A job.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = Job)]
pub struct JobView {
    /// Its id.
    #[schema(value_type = String, format = "uuid")]
    pub id: JobId,
    /// The name people use for it; taken wherever an id is.
    #[schema(example = "JOB_20261115_093000_1a2b3c4d")]
    pub reference: String,
    /// The kind of work.
    #[schema(value_type = String, example = "xml")]
    pub pipeline: &'static str,
    /// The file's own name.
    pub filename: Option<String>,
    /// The file's size.
    pub bytes: Option<i64>,
    /// The file's SHA-256, hexadecimal.
    pub sha256: Option<String>,
    /// Pages of the document, once they were counted.
    pub pages: Option<i64>,
    /// Which mapping makes the XML.
    pub mapping: String,
    /// Where it stands: `uploaded`, `queued`, `processing`, `complete` or `failed`.
    #[schema(value_type = String, example = "queued")]
    pub status: State,
    /// The same in words for people.
    #[schema(example = "Waiting")]
    pub label: &'static str,
    /// Where it stands, in the same words for every kind of work: `held`, `ready`, `running`, `done`, `failed` or
    /// `cancelled`.
    #[schema(value_type = String, example = "ready")]
    pub phase: Phase,
    /// How far it is.
    pub progress: ProgressView,
    /// About how many seconds are left, where that can be said.
    pub seconds_left: Option<u64>,
    /// Whether it takes longer than others like it did, so that nothing can be said.
    pub is_overdue: bool,
    /// Why it failed.
    pub error: Option<ErrorView>,
    /// Why its last attempt failed, while it waits for the next one; `retry_at` says when that is.
    pub last_error: Option<ErrorView>,
    /// What was found out on the way: the mapping that was used, pages, findings.
    #[schema(value_type = Option<Object>)]
    pub result: Option<Value>,
    /// Whether its result can be fetched now.
    pub is_downloadable: bool,
    /// Whether its result was removed by retention.
    pub is_expired: bool,
    /// How often its result was downloaded.
    pub download_count: u32,
    /// When its result was first downloaded.
    #[schema(value_type = Option<String>, format = "date-time")]
    #[serde(serialize_with = "moments")]
    pub first_downloaded_at: Option<Timestamp>,
    /// When retention removes its result, or the document where there is no result.
    #[schema(value_type = Option<String>, format = "date-time")]
    #[serde(serialize_with = "moments")]
    pub expires_at: Option<Timestamp>,
    /// The job whose result this one has a copy of.
    #[schema(value_type = Option<String>, format = "uuid")]
    pub duplicate_of: Option<JobId>,
    /// How many attempts were made.
    pub attempt_count: u32,
    /// When the file was accepted.
    #[schema(value_type = String, format = "date-time")]
    #[serde(serialize_with = "moment")]
    pub created_at: Timestamp,
    /// When it got in line.
    #[schema(value_type = Option<String>, format = "date-time")]
    #[serde(serialize_with = "moments")]
    pub queued_at: Option<Timestamp>,
    /// When its last attempt began.
    #[schema(value_type = Option<String>, format = "date-time")]
    #[serde(serialize_with = "moments")]
    pub started_at: Option<Timestamp>,
    /// When it ended well.
    #[schema(value_type = Option<String>, format = "date-time")]
    #[serde(serialize_with = "moments")]
    pub completed_at: Option<Timestamp>,
    /// When it ended badly.
    #[schema(value_type = Option<String>, format = "date-time")]
    #[serde(serialize_with = "moments")]
    pub failed_at: Option<Timestamp>,
    /// When it will be tried again, where it waits for that.
    #[schema(value_type = Option<String>, format = "date-time")]
    #[serde(serialize_with = "moments")]
    pub retry_at: Option<Timestamp>,
    /// When it begins, where it was asked for later.
    #[schema(value_type = Option<String>, format = "date-time")]
    #[serde(serialize_with = "moments")]
    pub starts_at: Option<Timestamp>,
    /// When it last changed.
    #[schema(value_type = String, format = "date-time")]
    #[serde(serialize_with = "moment")]
    pub updated_at: Timestamp,
    /// Where to go from here. Only what can be done now is named.
    pub links: Links,
}

/// How far an attempt is.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = Progress)]
pub struct ProgressView {
    /// 0 to 100.
    pub percent: u8,
    /// What it is doing.
    pub message: Option<String>,
}

/// Why a job failed.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = Error)]
pub struct ErrorView {
    /// The stable code; `ode explain CODE` says more.
    #[schema(example = "GW_5XX")]
    pub code: String,
    /// What happened and what to do next.
    pub message: String,
}

/// Addresses that belong to a job.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct Links {
    /// The job itself.
    #[serde(rename = "self")]
    pub job: String,
    /// Its history.
    pub events: String,
    /// What was found out about its result.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub checks: Option<String>,
    /// What people corrected in its result, and where to correct it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revisions: Option<String>,
    /// Its result; all files of a page as a zip.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub download: Option<String>,
    /// The page that the document became, for a browser.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub view: Option<String>,
    /// Tries it again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry: Option<String>,
    /// Converts its document once more, with another mapping or in another form.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub convert: Option<String>,
    /// Calls it off.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cancel: Option<String>,
    /// Ends its attempt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stop: Option<String>,
    /// Removes it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delete: Option<String>,
}

impl Links {
    /// The address of a part of a job: what comes after its own, such as `/download`.
    pub fn to(job: JobId, part: &str) -> String {
        format!("/api/jobs/{job}{part}")
    }
}

/// A moment, to the millisecond: always as long, so that texts sort as moments do.
pub fn moment<S: Serializer>(at: &Timestamp, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&format_args!("{at:.3}"))
}

pub fn moments<S: Serializer>(at: &Option<Timestamp>, serializer: S) -> Result<S::Ok, S::Error> {
    match at {
        Some(at) => moment(at, serializer),
        None => serializer.serialize_none(),
    }
}

/// Why a failed job cannot be tried again, if it cannot: the document would be the same, or it is gone.
pub fn why_no_retry(kind: &JobKind, job: &OwnedJob) -> Option<ErrorCode> {
    let code = job.record.error_code.as_deref().and_then(|code| code.parse().ok());
    match code {
        Some(
            code @ (ErrorCode::NotPdf
            | ErrorCode::TooLarge
            | ErrorCode::Unreadable
            | ErrorCode::Truncated
            | ErrorCode::Encrypted
            | ErrorCode::NoPages),
        ) => Some(code),
        _ => (!kind.has_source(job)).then_some(ErrorCode::Expired),
    }
}

impl JobView {
    /// Whether trying it again may help.
    pub fn can_retry(&self) -> bool {
        self.links.retry.is_some()
    }

    /// Where the page is shown that it became, where it became one.
    pub fn page(&self) -> Option<&str> {
        self.links.view.as_deref()
    }

    /// Whether its document can be converted once more.
    pub fn can_convert(&self) -> bool {
        self.links.convert.is_some()
    }

    /// Whether it can be removed now.
    pub fn can_delete(&self) -> bool {
        self.links.delete.is_some()
    }

    pub fn address(&self) -> &str {
        &self.links.job
    }

    /// A job of this kind, and how long it will take.
    pub fn new(kind: &JobKind, job: &OwnedJob, left: Option<TimeLeft>) -> Self {
        let record = &job.record;
        let files = kind.keeps_document.then_some(&job.files);
        let document = record.document().unwrap_or_default();
        let pages = document.pages.or_else(|| record.result.as_ref()?["pages"].as_i64());
        let links = (kind.links)(job, links(kind, job));
        let ended_in = |phase| record.finished_at.filter(|_| record.phase == phase);
        // An attempt that found what it needs away does not count, and is told of all the same.
        let was_tried = record.attempt_count > 0 || job.setback.is_some();
        let failed_at = ended_in(Phase::Failed).or_else(|| ended_in(Phase::Cancelled));
        JobView {
            id: record.id,
            reference: record.reference.clone(),
            pipeline: record.pipeline.as_str(),
            filename: (kind.filename)(record),
            bytes: document.bytes,
            sha256: document.sha256,
            pages,
            mapping: record.kind.clone(),
            status: record.state,
            label: (kind.label)(record),
            phase: record.phase,
            progress: ProgressView {
                percent: record.progress.percent,
                message: record.progress.message.clone(),
            },
            seconds_left: left.and_then(seconds_left),
            is_overdue: left == Some(TimeLeft::Overdue),
            error: error(record),
            last_error: job
                .setback
                .as_ref()
                .map(|setback| ErrorView { code: setback.code.clone(), message: setback.message.clone() }),
            result: record.result.clone(),
            is_downloadable: links.download.is_some(),
            is_expired: kind.keeps_document && record.phase == Phase::Done && !kind.has_result(job),
            download_count: files.map_or(0, |files| files.download_count),
            first_downloaded_at: files.and_then(|files| files.first_downloaded_at),
            expires_at: files.and_then(|files| files.expires_at),
            duplicate_of: files.and(document.duplicate_of),
            attempt_count: record.attempt_count,
            created_at: record.created_at,
            queued_at: record.queued_at,
            started_at: record.started_at,
            completed_at: ended_in(Phase::Done),
            failed_at,
            retry_at: record.run_at.filter(|_| was_tried),
            starts_at: record.run_at.filter(|_| !was_tried),
            updated_at: record.updated_at,
            links,
        }
    }
}

fn seconds_left(left: TimeLeft) -> Option<u64> {
    match left {
        TimeLeft::About(left) => Some(left.as_secs() + u64::from(left.subsec_nanos() > 0)),
        TimeLeft::Overdue => None,
    }
}

pub fn error(record: &JobRecord) -> Option<ErrorView> {
    let code = record.error_code.clone()?;
    Some(ErrorView { code, message: record.error_message.clone().unwrap_or_default() })
}

/// The links that jobs of most kinds have.
fn links(kind: &JobKind, job: &OwnedJob) -> Links {
    let record = &job.record;
    let when = |is_so: bool, what: &str| is_so.then(|| Links::to(record.id, what));
    let is_done = record.phase == Phase::Done;
    let (is_waiting, is_running) =
        (matches!(record.phase, Phase::Ready | Phase::Held), record.phase == Phase::Running);
    let has_ended = !is_waiting && !is_running;
    Links {
        job: Links::to(record.id, ""),
        events: Links::to(record.id, "/events"),
        checks: when(is_done, "/checks"),
        revisions: when(is_done, "/revisions"),
        download: when(is_done && kind.has_result(job), "/download"),
        view: None,
        retry: when(record.phase == Phase::Failed && why_no_retry(kind, job).is_none(), "/retry"),
        convert: None,
        cancel: when(is_waiting, "/cancel"),
        stop: when(is_running, "/stop"),
        delete: when(has_ended, ""),
    }
}

/// A line of a job's history.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = Event)]
pub struct EventView {
    /// Its place in the history of the whole installation.
    seq: i64,
    /// What happened: `created`, `queued`, `processing`, `complete`, `failed`, `retry`, `downloaded`, `expired`, …
    #[schema(example = "queued")]
    event: &'static str,
    /// Before; absent at birth.
    #[schema(value_type = Option<String>)]
    from: Option<State>,
    /// After.
    #[schema(value_type = String)]
    to: State,
    /// Particulars.
    #[schema(value_type = Option<Object>)]
    meta: Option<Value>,
    /// When.
    #[schema(value_type = String, format = "date-time")]
    #[serde(serialize_with = "moment")]
    at: Timestamp,
}

impl From<EventRecord> for EventView {
    /// Who did it is left out: names of machines are the operator's business.
    fn from(event: EventRecord) -> Self {
        let EventRecord { seq, event, from_state, to_state, meta, at, .. } = event;
        EventView { seq, event: event.as_str(), from: from_state, to: to_state, meta, at }
    }
}
