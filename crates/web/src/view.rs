//! Jobs as the API shows them.

use jiff::Timestamp;
use ode_job::{EventRecord, JobId, JobRecord, Phase, State};
use ode_store::OwnedJob;
use serde::Serialize;
use serde_json::Value;
use std::time::Duration;
use utoipa::ToSchema;

/// A job.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = Job)]
pub(crate) struct JobView {
    /// Its id.
    #[schema(value_type = String, format = "uuid")]
    pub(crate) id: JobId,
    /// The name people use for it; taken wherever an id is.
    #[schema(example = "JOB_20261115_093000_1a2b3c4d")]
    pub(crate) reference: String,
    /// The kind of work.
    #[schema(value_type = String, example = "xml")]
    pub(crate) pipeline: &'static str,
    /// The file's own name.
    pub(crate) filename: Option<String>,
    /// The file's size.
    pub(crate) bytes: Option<i64>,
    /// The file's SHA-256, hexadecimal.
    pub(crate) sha256: Option<String>,
    /// Pages of the document, once they were counted.
    pub(crate) pages: Option<i64>,
    /// Which mapping makes the XML.
    pub(crate) mapping: String,
    /// Where it stands: `uploaded`, `queued`, `processing`, `complete` or `failed`.
    #[schema(value_type = String, example = "queued")]
    pub(crate) status: State,
    /// The same in words for people.
    #[schema(example = "Waiting")]
    pub(crate) label: &'static str,
    /// Where it stands, in the same words for every kind of work: `held`, `ready`, `running`, `done`, `failed` or
    /// `cancelled`.
    #[schema(value_type = String, example = "ready")]
    pub(crate) phase: Phase,
    /// How far it is.
    pub(crate) progress: ProgressView,
    /// About how many seconds are left, where that can be said.
    pub(crate) seconds_left: Option<u64>,
    /// Why it failed.
    pub(crate) error: Option<ErrorView>,
    /// What was found out on the way: the mapping that was used, pages, findings.
    #[schema(value_type = Option<Object>)]
    pub(crate) result: Option<Value>,
    /// Whether its result can be fetched now.
    pub(crate) is_downloadable: bool,
    /// Whether its result was removed by retention.
    pub(crate) is_expired: bool,
    /// How many attempts were made.
    pub(crate) attempt_count: u32,
    /// When the file was accepted.
    #[schema(value_type = String, format = "date-time")]
    pub(crate) created_at: Timestamp,
    /// When it got in line.
    #[schema(value_type = Option<String>, format = "date-time")]
    pub(crate) queued_at: Option<Timestamp>,
    /// When its last attempt began.
    #[schema(value_type = Option<String>, format = "date-time")]
    pub(crate) started_at: Option<Timestamp>,
    /// When it ended well.
    #[schema(value_type = Option<String>, format = "date-time")]
    pub(crate) completed_at: Option<Timestamp>,
    /// When it ended badly.
    #[schema(value_type = Option<String>, format = "date-time")]
    pub(crate) failed_at: Option<Timestamp>,
    /// When it will be tried again, where it waits for that.
    #[schema(value_type = Option<String>, format = "date-time")]
    pub(crate) retry_at: Option<Timestamp>,
    /// When it last changed.
    #[schema(value_type = String, format = "date-time")]
    pub(crate) updated_at: Timestamp,
    /// Where to go from here. Only what can be done now is named.
    pub(crate) links: Links,
}

/// How far an attempt is.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = Progress)]
pub(crate) struct ProgressView {
    /// 0 to 100.
    pub(crate) percent: u8,
    /// What it is doing.
    pub(crate) message: Option<String>,
}

/// Why a job failed.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = Error)]
pub(crate) struct ErrorView {
    /// The stable code; `ode explain CODE` says more.
    #[schema(example = "GW_5XX")]
    pub(crate) code: String,
    /// What happened and what to do next.
    pub(crate) message: String,
}

/// Addresses that belong to a job.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct Links {
    /// The job itself.
    #[serde(rename = "self")]
    job: String,
    /// Its history.
    events: String,
    /// Its result.
    #[serde(skip_serializing_if = "Option::is_none")]
    download: Option<String>,
    /// Tries it again.
    #[serde(skip_serializing_if = "Option::is_none")]
    retry: Option<String>,
    /// Calls it off.
    #[serde(skip_serializing_if = "Option::is_none")]
    cancel: Option<String>,
    /// Ends its attempt.
    #[serde(skip_serializing_if = "Option::is_none")]
    stop: Option<String>,
}

/// What a page calls a state.
fn label(state: State) -> &'static str {
    match state {
        State::Uploaded => "Queued",
        State::Queued | State::Pending | State::PendingExport | State::ExportComplete => "Waiting",
        State::Processing | State::InProgress | State::Exporting | State::Ordering => "Converting...",
        State::Complete | State::Completed | State::Fulfilled | State::Ordered => "Ready",
        State::Failed | State::TimedOut | State::ExportFailed | State::OrderFailed => "Failed",
        State::Cancelled => "Cancelled",
    }
}

impl JobView {
    /// Where it is found.
    pub(crate) fn address(&self) -> &str {
        &self.links.job
    }

    pub(crate) fn new(job: &OwnedJob, left: Option<Duration>) -> Self {
        let OwnedJob { record, has_result } = job;
        let document = &record.input["document"];
        let text = |name: &str| document[name].as_str().map(str::to_owned);
        let pages = document["pages"].as_i64().or_else(|| record.result.as_ref()?["pages"].as_i64());
        let ended_in = |phase| record.finished_at.filter(|_| record.phase == phase);
        let failed_at = ended_in(Phase::Failed).or_else(|| ended_in(Phase::Cancelled));
        JobView {
            id: record.id,
            reference: record.reference.clone(),
            pipeline: record.pipeline.as_str(),
            filename: text("name"),
            bytes: document["bytes"].as_i64(),
            sha256: text("sha256"),
            pages,
            mapping: record.kind.clone(),
            status: record.state,
            label: label(record.state),
            phase: record.phase,
            progress: ProgressView {
                percent: record.progress.percent,
                message: record.progress.message.clone(),
            },
            seconds_left: left.map(|left| left.as_secs() + u64::from(left.subsec_nanos() > 0)),
            error: error(record),
            result: record.result.clone(),
            is_downloadable: record.phase == Phase::Done && *has_result,
            is_expired: record.phase == Phase::Done && !has_result,
            attempt_count: record.attempt_count,
            created_at: record.created_at,
            queued_at: record.queued_at,
            started_at: record.started_at,
            completed_at: ended_in(Phase::Done),
            failed_at,
            retry_at: record.run_at,
            updated_at: record.updated_at,
            links: links(record, *has_result),
        }
    }
}

fn error(record: &JobRecord) -> Option<ErrorView> {
    let code = record.error_code.clone()?;
    Some(ErrorView { code, message: record.error_message.clone().unwrap_or_default() })
}

fn links(record: &JobRecord, has_result: bool) -> Links {
    let of = |what: &str| format!("/api/jobs/{}{what}", record.id);
    let when = |is_so: bool, what: &str| is_so.then(|| of(what));
    let is_waiting = matches!(record.phase, Phase::Ready | Phase::Held);
    Links {
        job: of(""),
        events: of("/events"),
        download: when(record.phase == Phase::Done && has_result, "/download"),
        retry: when(record.phase == Phase::Failed, "/retry"),
        cancel: when(is_waiting, "/cancel"),
        stop: when(record.phase == Phase::Running, "/stop"),
    }
}

/// A line of a job's history.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = Event)]
pub(crate) struct EventView {
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
    at: Timestamp,
}

impl From<EventRecord> for EventView {
    /// Who did it is left out: names of machines are the operator's business.
    fn from(event: EventRecord) -> Self {
        let EventRecord { seq, event, from_state, to_state, meta, at, .. } = event;
        EventView { seq, event: event.as_str(), from: from_state, to: to_state, meta, at }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_labels_are_word_for_word_those_that_were_promised() {
        let promised = [
            (State::Uploaded, "Queued"),
            (State::Queued, "Waiting"),
            (State::Processing, "Converting..."),
            (State::Complete, "Ready"),
            (State::Failed, "Failed"),
        ];
        for (state, expected) in promised {
            assert_eq!(label(state), expected, "{state}");
        }
    }
}
