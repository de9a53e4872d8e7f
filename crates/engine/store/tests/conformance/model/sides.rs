//! Jobs in a store.

use super::words::{Answer, Ask, End, Kept, OWNERS, Step, Story, policy};
use crate::harness::{ending, place, silence, until};
use crate::machines::lane;
use jiff::Timestamp;
use ode_job::{
    Claimed, Ended, ErrorCode, Event, Failure, JobId, Lane, Lease, NewJob, Owner, State, WorkerId,
};
use ode_store::{ClaimRequest, Error, Finish, Finished, ListFilter, Store};
use serde_json::json;
use std::collections::BTreeMap;
use std::time::Duration;
use uuid::Uuid;

/// A store, and its names for the model's jobs.
pub(super) struct Side {
    pub(super) name: &'static str,
    pub(super) store: Store,
    ids: Vec<JobId>,
    /// Every lease there was, as a worker would ask for them.
    leases: Vec<(JobId, i64)>,
}

impl Side {
    pub(super) fn new(name: &'static str, store: Store) -> Self {
        Side { name, store, ids: Vec::new(), leases: Vec::new() }
    }

    fn number(&self, id: JobId) -> usize {
        self.ids.iter().position(|known| *known == id).expect("a job that nobody asked for")
    }

    pub(super) async fn act(&mut self, step: Step) -> Result<Answer, Error> {
        let store = self.store.clone();
        let answer = match step {
            Step::Enqueue(ask) => {
                self.ids.push(store.enqueue(new_job(ask)).await?.id());
                Answer::Done
            }
            Step::Claim { lane, worker, count } => self.claim(lane, worker, count).await?,
            Step::Finish { kept, end, is_soon } => self.finish(kept, end, is_soon).await?,
            Step::Person { job, asks } => said(ask(&store, self.ids[job], asks).await, Answer::Is)?,
            Step::Stop(job) => said(store.stop(self.ids[job]).await, |()| Answer::Done)?,
            Step::Lose { worker, next } => {
                silence(&store, worker).await;
                let rescued = store.rescue().await?;
                store.register(next, "test", "0").await?;
                Answer::Count(rescued)
            }
            Step::Forget(worker) => {
                Answer::Count(store.release_strays(worker, &[], std::time::Duration::ZERO).await?)
            }
            Step::Held(worker) => {
                let held = store.held(worker, self.leases.iter()).await?;
                let numbers = |ids: Vec<JobId>| ids.into_iter().map(|id| self.number(id)).collect();
                Answer::Held { held: numbers(held.held), stop: numbers(held.stop) }
            }
            Step::Promote => Answer::Count(promote_all(&store).await?),
        };
        Ok(answer)
    }

    async fn claim(&mut self, lane: Lane, worker: WorkerId, count: usize) -> Result<Answer, Error> {
        let hour = Duration::from_secs(3600);
        let request =
            ClaimRequest { lane, worker, count, after: Uuid::nil(), lease: hour, attempt_timeout: hour };
        let mut claimed = BTreeMap::new();
        for Claimed { lease, lane, attempt, retries, retries_max, crashes, .. } in
            self.store.claim(request).await?
        {
            let (job, fence, worker) = (self.number(lease.job()), lease.fence(), lease.worker());
            self.leases.push((lease.job(), fence));
            claimed.insert(job, Kept { job, lane, worker, fence, attempt, retries, retries_max, crashes });
        }
        Ok(Answer::Claimed(claimed))
    }

    async fn finish(&self, kept: Kept, end: End, is_soon: bool) -> Result<Answer, Error> {
        let Kept { lane, worker, fence, attempt, retries, retries_max, crashes, .. } = kept;
        let job = Claimed {
            lease: Lease::granted(self.ids[kept.job], fence, worker),
            lane,
            kind: "plain".into(),
            owner: Owner::Operator,
            input: json!({}),
            config: json!({}),
            attempt,
            retries,
            retries_max,
            crashes,
            timeout: None,
        };
        let (ended, retry) = (end.ended(), policy(is_soon));
        if lane == lane::PRINT_ORDER && ended == Ended::Succeeded {
            place(&self.store, &job.lease).await;
        }
        let result = Some(json!({ "pages": 1 }));
        let finish = Finish { result, retry, ..ending(job, ended) };
        Ok(match self.store.finish(vec![finish]).await?.remove(0) {
            Finished::Written { state, .. } => Answer::Is(state),
            Finished::LeaseLost => Answer::LeaseLost,
            Finished::Unwritten(reason) => return Err(Error::Database(reason)),
        })
    }

    pub(super) async fn stories(&self) -> Result<Vec<Story>, Error> {
        let page = self.store.jobs(&ListFilter { limit: 1000, ..ListFilter::default() }).await?;
        let mut stories = Vec::new();
        // Oldest first, as the model counts them.
        for job in page.jobs.iter().rev() {
            let events = self.store.events(job.id).await?.iter().map(|event| event.event).collect();
            let (attempts, retries) = (job.attempt_count, job.retry_count);
            stories.push(Story { state: job.state, phase: job.phase, attempts, retries, events });
        }
        Ok(stories)
    }
}

fn new_job(ask: Ask) -> NewJob {
    let Ask { pipeline, owner, priority, retries_max, advance, is_later } = ask;
    let mut new = NewJob::new(pipeline, "plain", json!({})).owned_by(OWNERS[owner]);
    (new.priority, new.retries_max, new.advance) = (priority, Some(retries_max), advance);
    new.run_at = is_later.then(|| Timestamp::now() + Duration::from_secs(3600));
    new
}

async fn ask(store: &Store, id: JobId, asks: Event) -> Result<State, Error> {
    match asks {
        Event::Cancelled => store.cancel(id).await,
        Event::Retried => store.retry(id).await,
        Event::Advanced => store.advance(id).await,
        Event::Delivered => ode_print::sql::delivered(store, id).await,
        Event::Failed => store.fail_waiting(id, Failure::from(ErrorCode::GatewayUnavailable)).await,
        other => unreachable!("nobody asks for {other}"),
    }
}

fn said<T>(answer: Result<T, Error>, done: impl FnOnce(T) -> Answer) -> Result<Answer, Error> {
    match answer {
        Ok(value) => Ok(done(value)),
        Err(Error::Refused { .. }) => Ok(Answer::Refused),
        Err(error) => Err(error),
    }
}

/// Puts everything in line that is due now, also what became due a moment ago by a finer clock than the
/// database's.
async fn promote_all(store: &Store) -> Result<usize, Error> {
    let promoted = std::cell::Cell::new(0);
    until(async || {
        promoted.set(promoted.get() + store.promote_due().await.unwrap());
        let look = store.look(&[]).await.unwrap();
        look.due_at.is_none_or(|due| due > look.now + Duration::from_secs(60))
    })
    .await;
    Ok(promoted.get())
}
