//! A job as a line of the queue, and as the head of its own page.

use super::words;
use crate::jobs::view::JobView;
use jiff::Timestamp;
use ode_job::{ErrorCode, Phase};

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
    /// What went wrong with the last attempt, while it waits for the next.
    pub(super) setback: Option<String>,
    /// When it will be tried again: for programs, and for people.
    pub(super) retry_at: Option<(String, String)>,
    /// When it begins, for both.
    pub(super) starts_at: Option<(String, String)>,
    /// How many findings want to be looked at.
    pub(super) findings: Option<String>,
    pub(super) why: Option<String>,
    /// Where the page is shown that it became.
    pub(super) view: Option<String>,
    pub(super) can_download: bool,
    pub(super) can_review: bool,
    /// Whether another mapping is what may help.
    pub(super) can_choose: bool,
    pub(super) acts: Vec<Act>,
}

/// Something that can be done to a job now.
pub(super) struct Act {
    pub(super) deed: &'static str,
    pub(super) name: &'static str,
    pub(super) class: &'static str,
    /// What can be said of the file once it is done.
    pub(super) done: &'static str,
    pub(super) ask: Option<String>,
}

impl Row {
    pub(super) fn new(job: &JobView) -> Self {
        let name = job.filename.clone().unwrap_or_else(|| job.reference.clone());
        let end = words::end(job);
        Row {
            id: job.id.to_string(),
            size: job.bytes.map(words::size).unwrap_or_default(),
            mapping: job.mapping.clone(),
            created_at: job.created_at.to_string(),
            created: words::moment(job.created_at),
            // Nobody is told as news what they asked for.
            state: if end.is_some() { "cancelled" } else { job.status.as_str() },
            phase: match end {
                Some(_) => "cancelled",
                None if job.is_expired => "held",
                None => job.phase.as_str(),
            },
            label: end.unwrap_or(if job.is_expired { "Removed" } else { job.label }),
            percent: (job.phase == Phase::Running).then_some(job.progress.percent),
            told: told(job),
            setback: job.last_error.as_ref().map(|error| error.message.clone()),
            retry_at: while_it_waits(job, job.retry_at),
            starts_at: while_it_waits(job, job.starts_at),
            findings: findings(job),
            why: why(job),
            view: job.page().map(str::to_owned),
            can_download: job.is_downloadable,
            can_review: job.is_downloadable && job.page().is_none(),
            can_choose: needs_mapping(job),
            acts: acts(job, &name),
            name,
        }
    }
}

fn told(job: &JobView) -> Option<String> {
    if job.is_expired {
        return Some(ErrorCode::Expired.sentence().to_owned());
    }
    let overdue = job.is_overdue.then(|| "taking longer than usual".to_owned());
    let left = job.seconds_left.map(words::left).or(overdue);
    match job.phase {
        Phase::Held | Phase::Ready => left.filter(|_| job.retry_at.or(job.starts_at).is_none()),
        Phase::Running => match (job.progress.message.clone(), left) {
            (Some(message), Some(left)) => Some(format!("{message}, {left}")),
            (message, left) => message.or(left),
        },
        Phase::Failed if words::end(job).is_some() => failure(job),
        Phase::Done | Phase::Failed | Phase::Cancelled => None,
    }
}

fn while_it_waits(job: &JobView, moment: Option<Timestamp>) -> Option<(String, String)> {
    let at = moment.filter(|_| matches!(job.phase, Phase::Held | Phase::Ready))?;
    Some((at.to_string(), words::moment(at)))
}

fn findings(job: &JobView) -> Option<String> {
    let found = job.result.as_ref()?["findings"].as_array()?;
    let count = found.iter().filter(|finding| finding["severity"] != "info").count();
    match count {
        0 => None,
        1 => Some("1 thing to look at".into()),
        count => Some(format!("{count} things to look at")),
    }
}

fn why(job: &JobView) -> Option<String> {
    failure(job).filter(|_| words::end(job).is_none())
}

fn failure(job: &JobView) -> Option<String> {
    job.error.as_ref().map(|error| words::why(&error.code, &error.message))
}

fn needs_mapping(job: &JobView) -> bool {
    let code = job.error.as_ref().and_then(|error| error.code.parse().ok());
    job.can_convert() && matches!(code, Some(ErrorCode::NoMapping | ErrorCode::UnknownMapping))
}

fn acts(job: &JobView, name: &str) -> Vec<Act> {
    let act = |deed, name, class, done| Act { deed, name, class, done, ask: None };
    let delete = || Act {
        ask: Some(format!("Delete {name} and its result?")),
        ..act("delete", "Delete", "quiet", "was deleted")
    };
    match job.phase {
        Phase::Held | Phase::Ready => vec![act("cancel", "Cancel", "quiet", "was cancelled")],
        Phase::Running => vec![act("stop", "Stop", "quiet", "is being stopped")],
        Phase::Failed if job.can_retry() && !needs_mapping(job) => {
            vec![act("retry", "Retry", "", "is tried again"), delete()]
        }
        Phase::Failed | Phase::Done | Phase::Cancelled => vec![delete()],
    }
}
