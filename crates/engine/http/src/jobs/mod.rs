//! Reading jobs and acting on them, wherever they are addressed: what the routes of `/api/jobs` and those of each pipeline
//! call.

pub mod checks;
pub mod download;
pub mod intake;
pub mod kind;
pub mod lists;
pub mod live;
pub mod logs;
pub mod seen;
pub mod upload;
pub mod view;

pub mod routes;

use crate::App;
use crate::callers::caller::Caller;
use crate::jobs::view::{EventView, JobView, why_no_retry};
use crate::server::problem::Problem;
use crate::server::query::{cursor, limit, since};
use axum::Json;
use axum::http::StatusCode;
use ode_job::{ErrorCode, Event, JobId, JobRecord, JobRef, Phase, Pipeline, State as JobState};
use ode_store::{Destination, OwnedFilter, OwnedJob, Places};
use serde::Serialize;
use std::sync::Arc;
use std::time::Duration;
use utoipa::ToSchema;

/// What a list is asked for in an address, as text.
#[derive(Debug, Clone, Copy, Default)]
pub struct Listing<'a> {
    /// Only jobs in this state.
    pub status: Option<&'a str>,
    /// Only jobs of this type.
    pub kind: Option<&'a str>,
    /// Only jobs that changed at this moment or later.
    pub since: Option<&'a str>,
    /// The end of the part before.
    pub cursor: Option<&'a str>,
    /// How many at most.
    pub limit: Option<&'a str>,
}

impl Listing<'_> {
    /// Reads what is asked for: of the caller's jobs, at most so many at a time. With a pipeline, only its states are taken.
    pub fn filter(
        self,
        caller: &Caller,
        pipeline: Option<Pipeline>,
        limit_max: usize,
    ) -> Result<OwnedFilter, Problem> {
        Ok(OwnedFilter {
            owner: caller.owner,
            state: self.status.map(|name| state(pipeline, name)).transpose()?,
            phase: None,
            kind: self.kind.map(str::to_owned),
            since: since(self.since)?,
            before: cursor(self.cursor)?,
            limit: limit(self.limit, limit_max)?,
        })
    }
}

/// The state of this name, among those of one pipeline or of all.
fn state(pipeline: Option<Pipeline>, name: &str) -> Result<JobState, Problem> {
    let state = name.parse::<JobState>();
    let Some(pipeline) = pipeline else { return state.map_err(|error| Problem::invalid(error.to_string())) };
    let known = pipeline.machine().states;
    let state = state.ok().filter(|state| known.iter().any(|standing| standing.state == *state));
    state.ok_or_else(|| {
        let names: Vec<&str> = known.iter().map(|standing| standing.state.as_str()).collect();
        let (last, others) = names.split_last().expect("a machine has states");
        Problem::invalid(format!("status is {} or {last}.", others.join(", ")))
    })
}

/// Jobs as they are shown.
pub async fn views(app: &App, jobs: &[OwnedJob]) -> Result<Vec<JobView>, Problem> {
    let is_live = |job: &&OwnedJob| matches!(job.record.phase, Phase::Held | Phase::Ready | Phase::Running);
    let ids: Vec<JobId> = jobs.iter().filter(is_live).map(|job| job.record.id).collect();
    let left = app.kinds.times_left(&app.store, &ids).await?;
    let view = |job: &OwnedJob| {
        JobView::new(app.kinds.of(job.record.pipeline), job, left.get(&job.record.id).copied())
    };
    Ok(jobs.iter().map(view).collect())
}

/// What keeps jobs from being worked on, where some wait.
pub async fn notice(app: &App, active_count: i64) -> Result<Option<&'static str>, Problem> {
    if active_count == 0 {
        return Ok(None);
    }
    Ok(app.kinds.notice(&app.store.workers().await?))
}

/// A job of the caller's; somebody else's is not found, like one that does not exist.
pub async fn find(app: &App, caller: &Caller, id: &str) -> Result<JobRecord, Problem> {
    let name: JobRef = id.parse().map_err(|_| Problem::no_job())?;
    Ok(app.store.job_of(caller.owner, name).await?)
}

/// A job of the caller's and of this pipeline; any other is not found.
pub async fn find_of(app: &App, caller: &Caller, pipeline: Pipeline, id: &str) -> Result<JobRecord, Problem> {
    let job = find(app, caller, id).await?;
    if job.pipeline == pipeline { Ok(job) } else { Err(Problem::no_job()) }
}

/// The job as it is shown.
pub async fn shown(app: &App, job: JobRecord) -> Result<JobView, Problem> {
    let jobs = app.store.jobs_by_id(std::iter::once(job.id)).await?;
    views(app, &jobs).await?.pop().ok_or_else(Problem::no_job)
}

/// A job's history.
#[derive(Debug, Serialize, ToSchema)]
pub struct History {
    /// What happened, oldest first.
    events: Vec<EventView>,
}

impl History {
    pub async fn of(app: &App, job: JobId) -> Result<Json<Self>, Problem> {
        let events = app.store.events(job).await?;
        Ok(Json(History { events: events.into_iter().map(EventView::from).collect() }))
    }
}

/// Tries a failed job again, unless that cannot help.
pub async fn retry(app: &App, job: &JobRecord) -> Result<(), Problem> {
    let jobs = app.store.jobs_by_id(std::iter::once(job.id)).await?;
    let failed = jobs.first().filter(|job| job.record.phase == Phase::Failed);
    let kind = app.kinds.of(job.pipeline);
    if let Some(code) = failed.and_then(|job| why_no_retry(kind, job)) {
        let detail = format!("Trying again cannot help: {}.", code.sentence());
        return Err(Problem::with_status(StatusCode::CONFLICT, code, detail));
    }
    app.store.retry(job.id).await?;
    forget(app, job);
    Ok(())
}

/// Calls off a job that has not started.
pub async fn cancel(app: &App, job: &JobRecord) -> Result<(), Problem> {
    app.store.cancel(job.id).await?;
    forget(app, job);
    Ok(())
}

/// Asks the worker of a running job to end it.
pub async fn stop(app: &App, job: &JobRecord) -> Result<(), Problem> {
    app.store.stop(job.id).await?;
    forget(app, job);
    Ok(())
}

/// Removes a job, with what was published of it, and tells whoever has it on the screen.
pub async fn remove(app: &Arc<App>, job: &JobRecord) -> Result<(), Problem> {
    if published_at(app, job).is_some() && job.pipeline.next(job.state, Event::Retried).is_ok() {
        take_away_alone(app, job.id).await?;
    } else {
        take_away(app, job).await?;
    }
    forget(app, job);
    // Its history is gone with it, so that nothing else would tell other tabs.
    owners(job).for_each(|owner| app.hub.resync_of(owner));
    Ok(())
}

/// Who removes a failed job waits this long for others who do the same.
const REMOVAL_PATIENCE: Duration = Duration::from_secs(30);

/// Where files of a job may lie beside our own storage.
fn published_at<'a>(app: &'a App, job: &'a JobRecord) -> Option<(&'a Places, Destination<'a>)> {
    let published = app.kinds.of(job.pipeline).published.as_ref()?;
    let (address, owner) = ((published.address)(job)?, owners(job).last()?);
    Some((&published.places, Destination { owner, job: job.id, fence: i64::MAX, address }))
}

async fn take_away(app: &App, job: &JobRecord) -> Result<(), Problem> {
    // What lies at the prefix of a job that is not over is still being put together.
    job.pipeline.next(job.state, Event::Expired).map_err(ode_store::Error::from)?;
    if let Some((places, from)) = published_at(app, job) {
        // First what others see. While the storage is away, the job stays, and can be removed later.
        places.withdraw(from).await?;
    }
    Ok(app.store.delete_job(job.id, &app.blobs).await?)
}

/// The same for a job that somebody may retry meanwhile: what its next attempt publishes stays. It goes on when who asked for
/// it has left, since others wait for its end.
async fn take_away_alone(app: &Arc<App>, id: JobId) -> Result<(), Problem> {
    let app = app.clone();
    let removal = async move {
        let now = async { Ok(take_away(&app, &app.store.job(JobRef::Id(id)).await?).await) };
        app.store.at_leftovers(REMOVAL_PATIENCE, now).await
    };
    let busy = "What jobs left at output prefixes is being taken away. Try again in a moment.";
    let removed = tokio::spawn(removal).await.map_err(|_| Problem::our_fault())??;
    removed.unwrap_or_else(|| Err(Problem::new(ErrorCode::Busy, busy)))
}

/// No list may hide from now on what changed with this job.
pub fn forget(app: &App, job: &JobRecord) {
    for owner in owners(job) {
        app.lists.forget(owner);
    }
}

/// Everyone who sees a job: after a session's jobs were given to a user, both.
pub fn owners(job: &JobRecord) -> impl Iterator<Item = ode_job::Owner> + use<> {
    ode_job::Owner::of(job.session_id, job.user_id, job.organisation_id)
}
