//! A job as a line of the queue, and as the head of its own page.

use super::words;
use crate::view::JobView;
use ode_job::Phase;

/// What a line shows.
pub(super) struct Row {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) size: String,
    pub(super) mapping: String,
    pub(super) created_at: String,
    pub(super) created: String,
    pub(super) state: &'static str,
    pub(super) phase: &'static str,
    pub(super) label: &'static str,
    pub(super) percent: Option<u8>,
    pub(super) told: Option<String>,
    pub(super) why: Option<String>,
    pub(super) can_download: bool,
    pub(super) can_review: bool,
    pub(super) acts: Vec<Act>,
}

/// Something that can be done to a job now.
pub(super) struct Act {
    pub(super) deed: &'static str,
    pub(super) name: &'static str,
    pub(super) class: &'static str,
    pub(super) ask: Option<String>,
}

impl Row {
    pub(super) fn new(job: &JobView) -> Self {
        let name = job.filename.clone().unwrap_or_else(|| job.reference.clone());
        Row {
            id: job.id.to_string(),
            size: job.bytes.map(words::size).unwrap_or_default(),
            mapping: job.mapping.clone(),
            created_at: job.created_at.to_string(),
            created: words::moment(job.created_at),
            state: job.status.as_str(),
            phase: job.phase.as_str(),
            label: job.label,
            percent: (job.phase == Phase::Running).then_some(job.progress.percent),
            told: told(job),
            why: why(job),
            can_download: job.is_downloadable,
            can_review: job.is_downloadable,
            acts: acts(job.phase, &name),
            name,
        }
    }
}

fn told(job: &JobView) -> Option<String> {
    if job.is_expired {
        return Some(ode_job::ErrorCode::Expired.sentence().to_owned());
    }
    let left = job.seconds_left.map(words::left);
    match job.phase {
        Phase::Held | Phase::Ready => job.retry_at.map(|at| format!("Tried again at {}", words::moment(at))).or(left),
        Phase::Running => match (job.progress.message.clone(), left) {
            (Some(message), Some(left)) => Some(format!("{message}, {left}")),
            (message, left) => message.or(left),
        },
        Phase::Done | Phase::Failed | Phase::Cancelled => None,
    }
}

fn why(job: &JobView) -> Option<String> {
    job.error.as_ref().map(|error| error.message.clone())
}

fn acts(phase: Phase, name: &str) -> Vec<Act> {
    let act = |deed, name, class| Act { deed, name, class, ask: None };
    let delete = || Act {
        ask: Some(format!("Delete {name} and its result?")),
        ..act("delete", "Delete", "quiet")
    };
    match phase {
        Phase::Held | Phase::Ready => vec![act("cancel", "Cancel", "quiet")],
        Phase::Running => vec![act("stop", "Stop", "quiet")],
        Phase::Failed => vec![act("retry", "Retry", ""), delete()],
        Phase::Done | Phase::Cancelled => vec![delete()],
    }
}
