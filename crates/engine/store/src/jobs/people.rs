//! What people ask of a job: try it again, call it off, stop it, go on with its next stage.
//!
//! Each reads the job, asks the machine, and writes under the fence and state it read. If a worker was quicker,
//! the write changes nothing and the question is asked again, of the job as it is now.

use crate::attempts::finish::{Change, Standing};
use crate::attempts::rules::Gate;
use crate::database::db::{Param, Tx, params};
use crate::error::Error;
use crate::jobs::mint::unless_taken;
use crate::schema::declaration;
use crate::{Store, micros};
use jiff::Timestamp;
use ode_job::settle::Spent;
use ode_job::{
    ErrorCode, Event, Failure, JobId, Lane, Phase, Pipeline, Refused, Settled, State, Step, Verdict,
};
use serde_json::json;
use std::time::Duration;

/// A job that changed this often between reading and writing is left to those who change it.
const TRIES_MAX: usize = 5;

const STANDING: &str = "SELECT pipeline, state, fence, worker FROM job_live WHERE id = $1
    UNION ALL SELECT pipeline, state, fence, NULL FROM job_past WHERE id = $1";
/// Holds the row: who comes second waits, and finds it gone.
const REOPEN: &str = "UPDATE job_past SET updated_at = {now} WHERE id = $1 AND state = $2 RETURNING id";
const REOPEN_LIVE: &str = "INSERT INTO job_live ({reopened_columns})
    SELECT {reopened_values} FROM job_past j WHERE j.id = $id";
const COME_DUE: &str = "UPDATE job_live SET run_at = {now} WHERE id = $1";
const REOPENED: &str = "DELETE FROM job_past WHERE id = $1";
const REOPEN_ENTRY: &str = "INSERT INTO job_journal (seq, event, from_state, to_state, actor, jobs)
    VALUES ($1, $2, $3, $4, $5, $6)";
const ASK_STOP: &str = "UPDATE job_live SET stop_at = {now}, updated_at = {now}
    WHERE id = $1 AND fence = $2 AND worker IS NOT NULL RETURNING id";

impl Store {
    /// Tries an ended job again, with its tries counted anew. Errors and lease are cleared.
    pub async fn retry(&self, id: JobId) -> Result<State, Error> {
        self.retry_beside(id, async |tx| Ok(tx)).await
    }

    /// The same together with what `keep` stores for the job, all or nothing. `keep` gets the transaction and returns it; it may be
    /// called again, for another one.
    pub async fn retry_beside<F>(&self, id: JobId, keep: impl Fn(Tx) -> F) -> Result<State, Error>
    where
        F: Future<Output = Result<Tx, Error>>,
    {
        unless_taken(|| self.reopen(id, &keep)).await
    }

    async fn reopen<F>(&self, id: JobId, keep: impl Fn(Tx) -> F) -> Result<State, Error>
    where
        F: Future<Output = Result<Tx, Error>>,
    {
        let standing = self.standing(id).await?;
        let retried = standing.step(Event::Retried)?;
        let rules = declaration::rules(standing.pipeline);
        let may_wait = (rules.may_wait)(self.sql(), id).await?;
        // A person who retries means now: a job that waits for nobody does not wait for the next look at what is due.
        let path = standing.pipeline.path_to_ready().into_iter();
        let path = path.filter(|edge| edge.from == retried.to && !may_wait);
        let path = path.map(|edge| Step { event: edge.event, from: edge.from, to: edge.to });
        let steps: Vec<Step> = std::iter::once(retried).chain(path).collect();
        let state = steps.last().map_or(standing.state, |step| step.to);
        let lane = standing.pipeline.lane(state);
        let seqs: Vec<i64> = steps.iter().map(|_| self.inner.mint.seq()).collect();
        let history = Param::History(seqs.clone());
        let mut tx = self.db().begin().await?;
        if tx.run(REOPEN, params![id, standing.state.as_str()]).await?.is_empty() {
            return Err(Error::Busy(id));
        }
        let lane_name = lane.map(ode_job::Lane::as_str);
        let live =
            params! { id: id, lane: lane_name, to: state.as_str(), adds: history, nobody: uuid::Uuid::nil() };
        tx.run(REOPEN_LIVE, &live.order(tx.dialect(), REOPEN_LIVE)).await?;
        if may_wait {
            tx.run(COME_DUE, params![id]).await?;
        }
        tx = keep(tx).await?;
        (rules.renew)(&mut tx, id).await?;
        tx.run(REOPENED, params![id]).await?;
        for (step, seq) in steps.iter().zip(seqs) {
            let (event, from, to) = (step.event.as_str(), step.from.as_str(), step.to.as_str());
            let params = params![seq, event, from, to, self.inner.actor.as_str(), vec![id.0]];
            tx.run(REOPEN_ENTRY, params).await?;
        }
        tx.commit().await?;
        self.nudge();
        if let Some(lane) = lane {
            self.wake_everyone(lane).await;
        }
        Ok(state)
    }

    /// Calls off a job that has not started.
    pub async fn cancel(&self, id: JobId) -> Result<State, Error> {
        let failure = |phase| {
            let is_failure = phase == Some(Phase::Failed);
            is_failure.then(|| Failure::rejected(ErrorCode::Cancelled, ErrorCode::Cancelled.sentence()))
        };
        self.change(id, Event::Cancelled, |pipeline, state| (Verdict::End, failure(pipeline.phase(state))))
            .await
    }

    /// Calls off a job that waits for one that can no longer complete.
    async fn call_off(&self, id: JobId, needs: JobId, why: &str) -> Result<(), Error> {
        let standing = self.standing(id).await?;
        let step = standing.step(Event::Cancelled)?;
        let settled = Settled { steps: vec![step], state: step.to, verdict: Verdict::End, failure: None };
        let meta = json!({ "code": ErrorCode::Cancelled, "message": why, "needs": needs });
        self.apply(vec![Change { meta: Some(meta), ..Change::new(id, standing, settled) }])
            .await
            .all()
            .map(drop)
    }

    /// Gives up a job that waits, with a reason (a dependency that is away for long).
    pub async fn fail_waiting(&self, id: JobId, failure: Failure) -> Result<State, Error> {
        let Standing { pipeline, state, .. } = self.standing(id).await?;
        // Of a job that runs, only its worker may say that it failed.
        if pipeline.phase(state) == Some(Phase::Running) {
            return Err(Refused { pipeline, from: state, event: Event::Failed }.into());
        }
        self.change(id, Event::Failed, |_, _| (Verdict::End, Some(failure.clone()))).await
    }

    /// Gives up the jobs of a lane that have waited this long, with a reason. Answers how many there were.
    pub async fn give_up_waiting(
        &self,
        lane: Lane,
        waited: Duration,
        failure: &Failure,
    ) -> Result<usize, Error> {
        let (pipeline, state) = (lane.pipeline(), lane.ready_state());
        let params = params![pipeline.as_str(), state.as_str(), -micros(waited), WAITED_MAX];
        let mut count = 0;
        for row in self.db().read(WAITED, params).await? {
            match self.fail_waiting(row.job("id")?, failure.clone()).await {
                Ok(_) => count += 1,
                // A worker or a person was quicker.
                Err(Error::Refused { .. } | Error::NotFound(_) | Error::Busy(_)) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(count)
    }

    /// Asks for the next stage of a job that has done one.
    pub async fn advance(&self, id: JobId) -> Result<State, Error> {
        self.change(id, Event::Advanced, |_, _| (Verdict::GoOn, None)).await
    }

    /// Ends a job that waited for a delivery.
    pub async fn delivered(&self, id: JobId) -> Result<State, Error> {
        self.change(id, Event::Delivered, |_, _| (Verdict::End, None)).await
    }

    /// Asks the worker of a running job to end it. The job is `failed` with code `STOPPED` once it has.
    pub async fn stop(&self, id: JobId) -> Result<(), Error> {
        for _ in 0..TRIES_MAX {
            let standing = self.standing(id).await?;
            standing.step(Event::Stopped)?;
            if !self.db().write(ASK_STOP, params![id, standing.fence]).await?.is_empty() {
                self.wake_stop(id).await;
                return Ok(());
            }
        }
        Err(Error::Busy(id))
    }

    async fn change(
        &self,
        id: JobId,
        event: Event,
        decide: impl Fn(Pipeline, State) -> (Verdict, Option<Failure>),
    ) -> Result<State, Error> {
        for _ in 0..TRIES_MAX {
            let standing = self.standing(id).await?;
            let step = standing.step(event)?;
            let (verdict, failure) = decide(standing.pipeline, step.to);
            let meta =
                failure.as_ref().map(|failure| json!({ "code": failure.code, "message": failure.message }));
            let settled = Settled { steps: vec![step], state: step.to, verdict, failure };
            let advance = event == Event::Advanced;
            let change = Change { advance, meta, ..Change::new(id, standing, settled) };
            if !self.apply(vec![change]).await.all()?.is_empty() {
                if let Some(lane) = standing.pipeline.lane(step.to) {
                    self.wake_everyone(lane).await;
                }
                return Ok(step.to);
            }
        }
        Err(Error::Busy(id))
    }

    async fn standing(&self, id: JobId) -> Result<Standing, Error> {
        let rows = self.db().read(STANDING, params![id]).await?;
        let row = rows.first().ok_or_else(|| Error::NotFound(id.to_string()))?;
        Standing::read(row)
    }

    /// Puts jobs whose moment has come in line, unless something else is in their way. Answers how many there were.
    pub async fn promote_due(&self) -> Result<usize, Error> {
        let rows = self.db().read(DUE, params![DUE_MAX]).await?;
        let ids = rows.iter().map(|row| row.job("id")).collect::<Result<Vec<_>, _>>()?;
        let pipelines = rows.iter().map(|row| row.name("pipeline")).collect::<Result<Vec<_>, _>>()?;
        let due: Vec<(JobId, Pipeline)> = ids.iter().copied().zip(pipelines).collect();
        let mut gates = self.gates(&due).await?;
        let (mut changes, mut kept) = (Vec::with_capacity(rows.len()), 0);
        for (row, id) in rows.iter().zip(ids) {
            if let Some(gate) = gates.remove(&id)
                && !self.is_let_through(id, gate).await?
            {
                kept += 1;
                continue;
            }
            let standing = Standing::read(row)?;
            let path =
                standing.pipeline.path_to_ready().into_iter().filter(|edge| edge.from == standing.state);
            let steps: Vec<Step> =
                path.map(|edge| Step { event: edge.event, from: edge.from, to: edge.to }).collect();
            let state = steps.last().map_or(standing.state, |step| step.to);
            let verdict = Verdict::Again { run_at: Timestamp::UNIX_EPOCH, spent: Spent::Nothing };
            changes.push(Change::new(id, standing, Settled { steps, state, verdict, failure: None }));
        }
        Ok(self.apply(changes).await.all()?.len() + kept)
    }

    /// Whether nothing is in the way of a job; one whose way is closed for good is called off.
    async fn is_let_through(&self, id: JobId, gate: Gate) -> Result<bool, Error> {
        match gate {
            Gate::Open => Ok(true),
            Gate::Closed => Ok(false),
            Gate::Broken { needs, why } => match self.call_off(id, needs, &why).await {
                // A person was quicker.
                Ok(()) | Err(Error::Refused { .. } | Error::NotFound(_)) => Ok(false),
                Err(error) => Err(error),
            },
        }
    }
}

/// Jobs that are given up at a time; the next look takes the next ones.
const WAITED_MAX: i64 = 500;
/// A job in line has waited since it was last put there, so that one which a person just retried gets its chance; one
/// that is held, after it found nobody there, since it was made.
const WAITED: &str = "SELECT id FROM job_live
    WHERE pipeline = $1 AND state = $2 AND worker IS NULL AND created_at < {after $3}
        AND (lane IS NULL OR coalesce(queued_at, created_at) < {after $3}) ORDER BY id LIMIT $4";
/// Jobs that come due together are put in line in parts of this size.
const DUE_MAX: i64 = 1000;
const DUE: &str = "SELECT id, pipeline, state, fence, worker FROM job_live
    WHERE lane IS NULL AND run_at IS NOT NULL AND run_at <= {now} ORDER BY run_at LIMIT $1";
