//! Scripts as the API shows them.

use crate::machine::{CANCELLED, FAILED, PENDING};
use crate::record::{RecordedState, RecordedStep};
use crate::request::restaurant;
use crate::routes::address;
use crate::sql::ScriptFacts;
use jiff::Timestamp;
use ode_child::StepState;
use ode_http::view::{ErrorView, error, moment, moments};
use ode_job::{JobId, JobRecord, Phase};
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;
use uuid::Uuid;

/// A script as its owner sees it.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ScriptJob {
    /// Its id.
    #[schema(value_type = String, format = "uuid")]
    id: JobId,
    /// The name people use for it; taken wherever an id is.
    #[schema(example = "JOB_20261115_093000_1a2b3c4d")]
    job_id: String,
    /// Which script.
    #[schema(example = "add-item-tags")]
    job_type: String,
    /// `pending`, `queued`, `in_progress`, `completed`, `failed`, `cancelled` or `timed_out`.
    #[schema(example = "in_progress")]
    status: &'static str,
    /// What a pending job waits for: `schedule`, `retry`, `needs` or `turn`.
    waits_for: Option<&'static str>,
    /// Higher goes first.
    priority: i32,
    /// What it is to do, with the names of secrets in place of the secrets.
    #[schema(value_type = Object)]
    input: Value,
    /// What came of it: `success`, `message`, `data`, `duration_ms`, and `partial` where only a part was done.
    #[schema(value_type = Option<Object>)]
    result: Option<Value>,
    /// Why it failed.
    error: Option<ScriptError>,
    /// Why it was cancelled, where that was not a person's doing.
    reason: Option<String>,
    /// How far it is, in percent.
    #[schema(maximum = 100)]
    progress_percent: u8,
    /// What it is doing, or did last.
    progress_message: Option<String>,
    /// Which step it is in, from 1; 0 before the first.
    current_step: u32,
    /// Of how many.
    total_steps: u32,
    /// Its steps, as far as its last attempt came.
    steps: Vec<StepView>,
    /// Attempts so far.
    attempt_count: u32,
    /// Attempts after the first, so far.
    retry_count: u32,
    /// How many of those it may have.
    max_retries: u32,
    /// When it is tried again, while it waits for that.
    #[schema(value_type = Option<String>, format = "date-time")]
    #[serde(serialize_with = "moments")]
    next_retry_at: Option<Timestamp>,
    /// Not before then, as it was asked for.
    #[schema(value_type = Option<String>, format = "date-time")]
    #[serde(serialize_with = "moments")]
    run_at: Option<Timestamp>,
    /// The version of the script that its last attempt ran.
    script_version: Option<String>,
    /// The process that runs it, or ran it last.
    process_pid: Option<i64>,
    /// The batch it belongs to.
    #[schema(value_type = Option<String>, format = "uuid")]
    batch_id: Option<Uuid>,
    /// The jobs that it needs.
    #[schema(value_type = Vec<String>)]
    depends_on: Vec<JobId>,
    /// The restaurant it is about.
    #[schema(value_type = Option<String>, format = "uuid")]
    restaurant_id: Option<Uuid>,
    /// The organisation whose it is.
    #[schema(value_type = Option<String>, format = "uuid")]
    organisation_id: Option<Uuid>,
    /// The person who asked for it.
    #[schema(value_type = Option<String>, format = "uuid")]
    created_by: Option<Uuid>,
    /// Your labels.
    #[schema(value_type = Object)]
    metadata: Value,
    /// Accepted.
    #[schema(value_type = String, format = "date-time")]
    #[serde(serialize_with = "moment")]
    created_at: Timestamp,
    /// The last attempt began.
    #[schema(value_type = Option<String>, format = "date-time")]
    #[serde(serialize_with = "moments")]
    started_at: Option<Timestamp>,
    /// Ended, in whichever way.
    #[schema(value_type = Option<String>, format = "date-time")]
    #[serde(serialize_with = "moments")]
    completed_at: Option<Timestamp>,
    /// Called off.
    #[schema(value_type = Option<String>, format = "date-time")]
    #[serde(serialize_with = "moments")]
    cancelled_at: Option<Timestamp>,
    /// When its attempt must be over.
    #[schema(value_type = Option<String>, format = "date-time")]
    #[serde(serialize_with = "moments")]
    timeout_at: Option<Timestamp>,
    /// Last changed.
    #[schema(value_type = String, format = "date-time")]
    #[serde(serialize_with = "moment")]
    updated_at: Timestamp,
    /// Where to go from here. Only what can be done now is named.
    links: ScriptLinks,
}

/// Why a script failed.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ScriptError {
    /// The stable code: `SCRIPT_FAILED` for whatever the script says itself. `ode explain CODE` says more.
    #[schema(example = "SCRIPT_FAILED")]
    code: String,
    /// What happened and what to do next.
    message: String,
    /// The script's own code, such as `login_rejected`; `ode explain` knows those of the types that come with ODE.
    #[schema(example = "login_rejected")]
    script_code: Option<String>,
    /// The step in which it failed, by its id.
    #[schema(example = "sign-in")]
    step: Option<String>,
    /// Where in the script it was, or the last that it wrote to stderr.
    stack: Option<String>,
}

impl ScriptError {
    fn of(job: &JobRecord, facts: &ScriptFacts) -> Option<Self> {
        let ErrorView { code, message } = error(job)?;
        let is_under_way = |step: &&RecordedStep| {
            matches!(step.state, RecordedState::Reached(StepState::Failed | StepState::Started))
        };
        // What other failures have as their detail is the operator's.
        let stack = job.error_detail.clone().filter(|detail| facts.code.is_some() && !detail.is_empty());
        Some(ScriptError {
            code,
            message,
            script_code: facts.code.clone(),
            step: facts.steps.iter().find(is_under_way).map(|step| step.id.clone()),
            stack,
        })
    }
}

/// A step of a script.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ScriptStep)]
pub(crate) struct StepView {
    /// Its name within the script.
    id: String,
    /// What it does.
    title: String,
    /// `waiting`, `started`, `done`, `skipped` or `failed`.
    #[schema(value_type = String, example = "done")]
    state: RecordedState,
}

/// Addresses that belong to a script.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ScriptLinks {
    /// The job.
    #[serde(rename = "self")]
    itself: String,
    /// Its log.
    logs: String,
    /// Its files.
    artifacts: String,
    /// What happened to it.
    events: String,
    /// Calls it off.
    #[serde(skip_serializing_if = "Option::is_none")]
    cancel: Option<String>,
    /// Ends it.
    #[serde(skip_serializing_if = "Option::is_none")]
    stop: Option<String>,
    /// Tries it again.
    #[serde(skip_serializing_if = "Option::is_none")]
    retry: Option<String>,
    /// Shows, once, the secrets that came of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    secrets: Option<String>,
}

impl ScriptJob {
    pub(crate) fn new(job: JobRecord, facts: ScriptFacts) -> Self {
        let has_ended = job.finished_at.is_some();
        let progress = if has_ended {
            let of_steps = |is_meant: fn(&RecordedStep) -> bool| {
                u32::try_from(facts.steps.iter().filter(|step| is_meant(step)).count()).unwrap_or(u32::MAX)
            };
            let percent = if job.phase == Phase::Done { 100 } else { facts.percent };
            let begun = of_steps(|step| step.state != RecordedState::Waiting);
            (percent, facts.message.clone(), begun, of_steps(|_| true))
        } else {
            let now = &job.progress;
            (now.percent, now.message.clone(), now.step, now.steps)
        };
        let waits_for = waits_for(&job, &facts);
        ScriptJob {
            id: job.id,
            status: job.state.as_str(),
            waits_for,
            priority: job.priority,
            error: ScriptError::of(&job, &facts),
            reason: facts.reason.clone(),
            progress_percent: progress.0,
            progress_message: progress.1,
            current_step: progress.2,
            total_steps: progress.3,
            attempt_count: job.attempt_count,
            retry_count: job.retry_count,
            max_retries: job.max_retries,
            next_retry_at: job.run_at.filter(|_| job.state == PENDING && job.retry_count > 0),
            run_at: facts.run_at.or(job.run_at.filter(|_| waits_for == Some(SCHEDULE))),
            restaurant_id: restaurant(&job.metadata),
            organisation_id: job.organisation_id,
            created_by: job.created_by,
            created_at: job.created_at,
            started_at: job.started_at,
            completed_at: job.finished_at,
            cancelled_at: job.finished_at.filter(|_| job.state == CANCELLED),
            timeout_at: job.timeout_at,
            updated_at: job.updated_at,
            links: links(&job, &facts),
            job_id: job.reference,
            job_type: job.kind,
            input: job.input,
            result: job.result,
            metadata: job.metadata,
            script_version: facts.version,
            process_pid: facts.process_pid,
            batch_id: facts.batch,
            depends_on: facts.needs,
            steps: facts.steps.into_iter().map(StepView::from).collect(),
        }
    }
}

impl From<RecordedStep> for StepView {
    fn from(step: RecordedStep) -> Self {
        StepView { id: step.id, title: step.title, state: step.state }
    }
}

const SCHEDULE: &str = "schedule";

/// What keeps a pending job from getting in line.
fn waits_for(job: &JobRecord, facts: &ScriptFacts) -> Option<&'static str> {
    if job.state != PENDING {
        return None;
    }
    let is_later = job.run_at.is_some_and(|at| at > Timestamp::now());
    Some(match (is_later, facts.waits_for_turn) {
        (true, _) if job.retry_count > 0 => "retry",
        (true, _) => SCHEDULE,
        (false, true) => "turn",
        (false, false) if facts.needs.is_empty() => "turn",
        (false, false) => "needs",
    })
}

fn links(job: &JobRecord, facts: &ScriptFacts) -> ScriptLinks {
    let itself = address(&job.id.to_string());
    let when = |is_so: bool, what: &str| is_so.then(|| format!("{itself}/{what}"));
    ScriptLinks {
        logs: format!("{itself}/logs"),
        artifacts: format!("{itself}/artifacts"),
        events: format!("{itself}/events"),
        cancel: when(matches!(job.phase, Phase::Held | Phase::Ready), "cancel"),
        stop: when(job.phase == Phase::Running, "stop"),
        retry: when(job.state == FAILED, "retry"),
        secrets: when(job.phase == Phase::Done && facts.has_result_secret, "secrets"),
        itself,
    }
}
