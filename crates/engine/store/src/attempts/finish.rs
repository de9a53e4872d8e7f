//! Ending attempts: what was decided in `ode-job` becomes rows and history, under the fence it was decided on.

use crate::Store;
use crate::attempts::workers::fences;
use crate::database::db::{Param, Row, blank_nuls, params};
use crate::database::dialect::names::Named;
use crate::database::dialect::{Dialect, postgres, sqlite};
use crate::error::Error;
use crate::jobs::checks::{ADD_CHECKS, check_row};
use crate::jobs::mint::unless_taken;
use crate::jobs::read::{ADD_LOGS, log_rows};
use jiff::Timestamp;
use ode_job::SHOWS_WHY;
use ode_job::settle::Spent;
use ode_job::{
    Artifact, Attempt, Check, Claimed, Ended, ErrorCode, Event, Failure, FailureKind, JobId, NewLogLine,
    Pipeline, Refused, RetryPolicy, Settled, State, Step, Verdict, WorkerId, settle,
};
use serde_json::{Map, Value, json};
use std::collections::{HashMap, HashSet};
use std::time::Duration;
use uuid::Uuid;

/// An attempt that is over. Takes the claimed job by value: an attempt ends once.
#[derive(Debug)]
pub struct Finish {
    /// The job under its lease.
    pub job: Claimed,
    pub ended: Ended,
    /// What came of it, where it succeeded.
    pub result: Option<Value>,
    /// Files it made; they are published with the success. Of a try that failed, only those that show why are.
    pub artifacts: Vec<Artifact>,
    /// What was found out about the result; likewise.
    pub checks: Vec<Check>,
    /// Particulars for the history, whatever became of it.
    pub notes: Map<String, Value>,
    /// The last lines of its log; likewise.
    pub log: Vec<NewLogLine>,
    /// When to try again, if at all.
    pub retry: RetryPolicy,
    /// Between 0 and 1, for the retry's delay.
    pub jitter: f64,
}

impl Finish {
    /// An attempt with nothing to show, tried again by the usual policy.
    pub fn new(job: Claimed, ended: Ended) -> Self {
        Finish {
            job,
            ended,
            result: None,
            artifacts: Vec::new(),
            checks: Vec::new(),
            notes: Map::new(),
            log: Vec::new(),
            retry: RetryPolicy::default(),
            jitter: 0.0,
        }
    }
}

/// What became of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Finished {
    /// Written: the job's new state, when it is tried again, if it is, and why it was not done.
    Written {
        /// The new state.
        state: State,
        /// The next try.
        run_at: Option<Timestamp>,
        /// What went wrong, or that a person had asked to stop it.
        code: Option<ErrorCode>,
    },
    /// The lease was lost; nothing was changed.
    LeaseLost,
    /// The database did not take it, for this reason; nothing was changed, and the lease runs out.
    Unwritten(String),
}

/// A job at a known fence and state, and what was decided about it.
pub(crate) struct Change {
    pub(crate) id: JobId,
    pub(crate) fence: i64,
    pub(crate) from: State,
    pub(crate) pipeline: Pipeline,
    pub(crate) settled: Settled,
    pub(crate) result: Option<Value>,
    /// Whether a person asked for the next stage.
    pub(crate) advance: bool,
    pub(crate) artifacts: Vec<Artifact>,
    pub(crate) checks: Vec<Check>,
    pub(crate) meta: Option<Value>,
    pub(crate) log: Vec<NewLogLine>,
    /// Whose attempt it ends, if it ends one.
    pub(crate) worker: Option<WorkerId>,
}

impl Change {
    /// A decision that brings nothing but the job's new state.
    pub(crate) fn new(id: JobId, standing: Standing, settled: Settled) -> Self {
        let Standing { pipeline, state, fence } = standing;
        Change {
            id,
            fence,
            from: state,
            pipeline,
            settled,
            result: None,
            advance: false,
            artifacts: Vec::new(),
            checks: Vec::new(),
            meta: None,
            log: Vec::new(),
            worker: None,
        }
    }

    /// The same without anything that it brings but its log, for which the database gave this reason to refuse it. A success of which
    /// nothing can be shown is a failure, except of what cannot be undone: an order may have been paid for.
    fn plain(self, reason: &str, now: Timestamp) -> Result<Self, Error> {
        let is_again = matches!(self.settled.verdict, Verdict::Again { .. });
        let is_success = self.settled.failure.is_none() && !is_again;
        let mut plain =
            Change { result: None, artifacts: Vec::new(), checks: Vec::new(), meta: None, ..self };
        if is_success && !plain.pipeline.is_irreversible(plain.from) {
            let attempt = Attempt {
                pipeline: plain.pipeline,
                state: plain.from,
                retries: 0,
                retries_max: 0,
                crashes: 0,
            };
            let failure = Failure::rejected(ErrorCode::Unknown, UNKEPT).with_detail(reason);
            plain.settled = settle(attempt, Ended::Failed(failure), &RetryPolicy::default(), now, 0.0)?;
        }
        Ok(plain)
    }
}

const UNKEPT: &str =
    "The work was done, and the database refused what came of it. Report this with the detail";

/// A job as it was read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Standing {
    pub(crate) pipeline: Pipeline,
    pub(crate) state: State,
    pub(crate) fence: i64,
}

impl Standing {
    pub(crate) fn read(row: &Row) -> Result<Self, Error> {
        let fence = row.opt_int("fence")?.unwrap_or_default();
        Ok(Standing { pipeline: row.name("pipeline")?, state: row.name("state")?, fence })
    }

    pub(crate) fn step(&self, event: Event) -> Result<Step, Refused> {
        let to = self.pipeline.next(self.state, event)?;
        Ok(Step { event, from: self.state, to })
    }
}

/// What became of changes.
#[derive(Default)]
pub(crate) struct Applied {
    /// Jobs that were still as they were when it was decided.
    written: Vec<JobId>,
    /// What could not be written, and why.
    unwritten: Vec<(Vec<Change>, Error)>,
    /// Logs of jobs that were not, which is no reason to lose them.
    logs: Vec<NewLogLine>,
}

impl Applied {
    /// The jobs that were written, for those to whom one that could not be is bad news enough.
    pub(crate) fn all(self) -> Result<Vec<JobId>, Error> {
        match self.unwritten.into_iter().next() {
            Some((_, error)) => Err(error),
            None => Ok(self.written),
        }
    }

    fn add(&mut self, changes: Vec<Change>, answer: Result<Vec<JobId>, Error>) {
        match answer {
            Ok(written) => {
                let is_lost = |change: &Change| !change.log.is_empty() && !written.contains(&change.id);
                self.logs.extend(changes.into_iter().filter(is_lost).flat_map(|change| change.log));
                self.written.extend(written);
            }
            Err(error) => self.unwritten.push((changes, error)),
        }
    }

    /// Takes out the changes that the database will never take for what they bring, as ends that bring nothing.
    fn take_refused(&mut self, now: Timestamp) -> Result<Vec<Change>, Error> {
        let is_refused = |(_, error): &mut (Vec<Change>, Error)| matches!(error, Error::Database(_));
        let refused: Vec<_> = self.unwritten.extract_if(.., is_refused).collect();
        let plain = refused.into_iter().flat_map(|(changes, error)| {
            let reason = error.to_string();
            changes.into_iter().map(move |change| change.plain(&reason, now))
        });
        plain.collect()
    }

    /// What became of each, unless nothing at all could be written.
    fn each(self) -> Result<(HashSet<JobId>, HashMap<JobId, String>), Error> {
        if self.written.is_empty() {
            return Ok((self.all()?.into_iter().collect(), HashMap::new()));
        }
        let why = |(changes, error): (Vec<Change>, Error)| {
            changes.into_iter().map(move |change| (change.id, error.to_string()))
        };
        Ok((self.written.into_iter().collect(), self.unwritten.into_iter().flat_map(why).collect()))
    }
}

/// What changes that share one statement have in common.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Likeness {
    steps: Vec<Step>,
    from: State,
    to: State,
    is_end: bool,
    /// Whose attempt ended; changes that others made are told under the store's own name.
    worker: Option<WorkerId>,
}

impl Likeness {
    fn of(change: &Change) -> Self {
        Likeness {
            steps: change.settled.steps.clone(),
            from: change.from,
            to: change.settled.state,
            is_end: change.settled.verdict == Verdict::End,
            worker: change.worker,
        }
    }
}

impl Store {
    /// Ends attempts, many at once. Answers in the order asked.
    ///
    /// An error means that none of them is written; where only some could not be, the answer says which. One that the
    /// database refuses for what it brings is written without that, and has failed.
    pub async fn finish(&self, mut batch: Vec<Finish>) -> Result<Vec<Finished>, Error> {
        self.heed_stops(&mut batch).await;
        let now = Timestamp::now();
        let changes = batch.into_iter().map(|finish| decide(finish, now)).collect::<Result<Vec<_>, _>>()?;
        let mut answers: Vec<_> = changes.iter().map(|change| (change.id, written_as(change))).collect();
        let mut applied = self.apply(changes).await;
        let plain = applied.take_refused(now)?;
        if !plain.is_empty() {
            let ends: HashMap<JobId, Finished> =
                plain.iter().map(|change| (change.id, written_as(change))).collect();
            let end = |(id, answer): (JobId, Finished)| (id, ends.get(&id).cloned().unwrap_or(answer));
            answers = answers.into_iter().map(end).collect();
            let Applied { written, unwritten, logs } = self.apply(plain).await;
            applied.written.extend(written);
            applied.unwritten.extend(unwritten);
            applied.logs.extend(logs);
        }
        let unwritten = applied.unwritten.iter_mut().flat_map(|(changes, _)| changes);
        applied.logs.extend(unwritten.flat_map(|change| std::mem::take(&mut change.log)));
        for lines in applied.logs.chunks(LINES_MAX) {
            if let Err(error) = self.log_all(lines).await {
                tracing::warn!(%error, "{} log lines could not be written", lines.len());
            }
        }
        let (written, mut unwritten) = applied.each()?;
        let answer = |(id, answer): (JobId, Finished)| match unwritten.remove(&id) {
            Some(reason) => Finished::Unwritten(reason),
            None if written.contains(&id) => answer,
            None => Finished::LeaseLost,
        };
        Ok(answers.into_iter().map(answer).collect())
    }

    /// A person's wish to end a job outlives an attempt that went wrong before anybody told it. Where it cannot be
    /// asked for, it stays with the job, and stops the next attempt.
    async fn heed_stops(&self, batch: &mut [Finish]) {
        let unheard = |finish: &Finish| !matches!(finish.ended, Ended::Succeeded | Ended::Stopped);
        let leases = batch.iter().filter(|finish| unheard(finish)).map(|finish| &finish.job.lease);
        let leases: Vec<_> = leases.map(|lease| (lease.job(), lease.fence())).collect();
        if leases.is_empty() {
            return;
        }
        let rows = self.db().read(WISHED, &[fences(leases.iter())]).await.unwrap_or_default();
        let wished: HashSet<JobId> = rows.iter().filter_map(|row| row.job("id").ok()).collect();
        for finish in batch.iter_mut().filter(|finish| unheard(finish)) {
            if wished.contains(&finish.job.lease.job()) {
                finish.ended = Ended::Stopped;
            }
        }
    }

    /// Writes decided changes.
    pub(crate) async fn apply(&self, changes: Vec<Change>) -> Applied {
        let mut alike: HashMap<Likeness, Vec<Change>> = HashMap::new();
        for change in changes {
            alike.entry(Likeness::of(&change)).or_default().push(change);
        }
        let mut applied = Applied::default();
        for (likeness, mut changes) in alike {
            // In the order of their ids, so that two writers of overlapping batches cannot wait for each other.
            changes.sort_unstable_by_key(|change| change.id);
            match self.apply_alike(&likeness, &changes).await {
                // One change that the database refuses must not take its neighbours with it.
                Err(Error::Database(_)) if changes.len() > 1 => {
                    for change in changes {
                        let alone = vec![change];
                        let answer = self.apply_alike(&likeness, &alone).await;
                        applied.add(alone, answer);
                    }
                }
                answer => applied.add(changes, answer),
            }
        }
        if !applied.written.is_empty() {
            self.nudge();
        }
        applied
    }

    async fn apply_alike(&self, likeness: &Likeness, changes: &[Change]) -> Result<Vec<JobId>, Error> {
        unless_taken(|| self.apply_numbered(likeness, changes)).await
    }

    async fn apply_numbered(&self, likeness: &Likeness, changes: &[Change]) -> Result<Vec<JobId>, Error> {
        let Likeness { steps, from, to, is_end, worker } = likeness;
        let is_end = *is_end;
        let seqs: Vec<i64> = steps.iter().map(|_| self.inner.mint.seq()).collect();
        let entry = |(step, seq): (&Step, &i64)| {
            let Step { event, from, to } = step;
            json!({ "seq": seq, "event": event, "from_state": from, "to_state": to })
        };
        let entries: Vec<Value> = steps.iter().zip(&seqs).map(entry).collect();
        let ids = || Param::Ids(changes.iter().map(|change| change.id.0).collect());
        let params = params! {
            steps: Param::rows(entries),
            adds: Param::History(seqs.clone()),
            actor: worker.map_or_else(|| self.inner.actor.clone(), |worker| worker.to_string()),
            from: from.as_str(),
            to: to.as_str(),
            version: env!("CARGO_PKG_VERSION"),
            details: details(changes),
            files: Param::rows(artifact_rows(changes)),
        };
        // As lists of ids and columns where they can be read quickest.
        let (sql, params) = match (self.dialect(), is_end) {
            (Dialect::Postgres, true) => {
                (postgres::END, with_end_columns(params.with("jobs", ids()), changes))
            }
            (Dialect::Sqlite, true) => (
                sqlite::END,
                params.with("jobs", ids()).with("rows", Param::rows(changes.iter().map(end_row))),
            ),
            (dialect, false) => {
                let sql = if dialect == Dialect::Postgres { postgres::MOVE } else { sqlite::MOVE };
                (sql, params.with("jobs", ids()).with("rows", Param::rows(changes.iter().map(move_row))))
            }
        };
        // On PostgreSQL one statement does it all.
        let beside = if self.dialect() == Dialect::Sqlite { params.clone() } else { Named::default() };
        let params = params.order(self.dialect(), sql);
        let deadline = tokio::time::Instant::now() + RETRY_FOR;
        let mut is_first = true;
        loop {
            match self.write_alike(sql, &params, &beside, changes).await {
                // Other numbers will do, and waiting will not.
                Err(Error::Collision) => return Err(Error::Collision),
                Ok(mut written) => {
                    if let Some(seq) = seqs.last().filter(|_| !is_first && written.len() < changes.len()) {
                        written.extend(self.written_before(changes, *seq).await?);
                    }
                    return Ok(written);
                }
                Err(error) if error.is_passing() && tokio::time::Instant::now() < deadline => {
                    tracing::warn!(%error, "{} changes are not written yet; trying again", changes.len());
                    tokio::time::sleep(RETRY_PAUSE).await;
                    is_first = false;
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Writes a batch and answers its jobs that were as expected. On PostgreSQL that is one statement where the jobs
    /// bring neither checks nor lines of a log.
    async fn write_alike(
        &self,
        sql: &'static str,
        params: &[Param],
        beside: &Named,
        changes: &[Change],
    ) -> Result<Vec<JobId>, Error> {
        let has_checks = changes.iter().any(|change| !change.checks.is_empty());
        let has_log = changes.iter().any(|change| !change.log.is_empty());
        let ids = |rows: Vec<Row>| rows.iter().map(|row| row.job("id")).collect::<Result<Vec<_>, _>>();
        if self.dialect() == Dialect::Postgres && !has_checks && !has_log {
            return ids(self.db().write(sql, params).await?);
        }
        let mut tx = self.db().begin().await?;
        let is_sqlite = self.dialect() == Dialect::Sqlite;
        if is_sqlite && changes.iter().any(|change| !change.artifacts.is_empty()) {
            let keep = beside.part(Dialect::Sqlite, sqlite::KEEP).order(Dialect::Sqlite, sqlite::KEEP);
            tx.run(sqlite::KEEP, &keep).await?;
        }
        let written = ids(tx.run(sql, params).await?)?;
        if written.is_empty() {
            return Ok(written);
        }
        if is_sqlite {
            let written = Param::Ids(written.iter().map(|id| id.0).collect());
            let tell = beside.part(Dialect::Sqlite, sqlite::TELL).with("written", written);
            tx.run(sqlite::TELL, &tell.order(Dialect::Sqlite, sqlite::TELL)).await?;
        }
        let is_written: HashSet<JobId> = written.iter().copied().collect();
        let ended = || changes.iter().filter(|change| is_written.contains(&change.id));
        if has_checks {
            let rows =
                ended().flat_map(|change| change.checks.iter().map(|check| check_row(change.id, check)));
            tx.run(ADD_CHECKS, &[Param::rows(rows)]).await?;
        }
        if has_log {
            let lines: Vec<NewLogLine> = ended().flat_map(|change| change.log.clone()).collect();
            for lines in lines.chunks(LINES_MAX) {
                tx.run(ADD_LOGS, &[log_rows(lines)]).await?;
            }
        }
        tx.commit().await?;
        Ok(written)
    }

    /// The jobs whose history has this entry: a commit that succeeded although its answer was lost.
    async fn written_before(&self, changes: &[Change], seq: i64) -> Result<Vec<JobId>, Error> {
        let ids = changes.iter().map(|change| json!({ "id": change.id }));
        let ids = Param::rows(ids);
        let rows = self.db().read(WRITTEN, &[ids, Param::History(vec![seq])]).await?;
        rows.iter().map(|row| row.job("id")).collect()
    }
}

/// Changes that cannot be written are tried again for this long: as long as the leases they were made under.
const RETRY_FOR: Duration = Duration::from_secs(300);
const RETRY_PAUSE: Duration = Duration::from_millis(200);
/// Lines of logs in one statement.
const LINES_MAX: usize = 1_000;
const WISHED: &str = "SELECT l.id FROM {rows $1: id uuid, fence int}
    JOIN job_live l ON l.id = r.id AND l.fence = r.fence WHERE l.stop_at IS NOT NULL";
pub(crate) const WRITTEN: &str = "SELECT jobs.id FROM {rows $1: id uuid} JOIN jobs ON jobs.id = r.id
    WHERE {told jobs.history}";

fn decide(finish: Finish, now: Timestamp) -> Result<Change, Error> {
    let Finish { job, ended, result, artifacts, checks, notes, log, retry, jitter } = finish;
    let (pipeline, from) = (job.lane.pipeline(), job.lane.running_state());
    let attempt = Attempt {
        pipeline,
        state: from,
        retries: job.retries,
        retries_max: job.retries_max.unwrap_or(retry.retries_max),
        crashes: job.crashes,
    };
    let is_success = ended == Ended::Succeeded;
    let is_spent = is_spent(&ended);
    let settled = settle(attempt, ended, &retry, now, jitter)?;
    let meta = particulars(job.attempt, &settled, notes);
    // A result that one database cannot hold would fail the whole batch it is written with.
    let mut result = result.filter(|_| is_success && settled.verdict == Verdict::End);
    result.iter_mut().for_each(blank_nuls);
    let is_shown = |file: &Artifact| is_success || is_spent && SHOWS_WHY.contains(&file.role.as_str());
    let artifacts = artifacts.into_iter().filter(is_shown).collect();
    let checks = if is_success { checks } else { Vec::new() };
    let standing = Standing { pipeline, state: from, fence: job.lease.fence() };
    let worker = Some(job.lease.worker());
    Ok(Change {
        result,
        artifacts,
        checks,
        meta,
        log,
        worker,
        ..Change::new(job.lease.job(), standing, settled)
    })
}

/// Whether a try that did not work was one all the same: after one that did not count, the next has its number.
fn is_spent(ended: &Ended) -> bool {
    match ended {
        Ended::Failed(failure) => !matches!(failure.kind, FailureKind::Away { .. }),
        Ended::TimedOut(_) | Ended::Stopped => true,
        Ended::Succeeded | Ended::HandedBack | Ended::Lost => false,
    }
}

/// What the history says of an attempt beside its steps; nothing where there is nothing to say.
fn particulars(attempt: u32, settled: &Settled, notes: Map<String, Value>) -> Option<Value> {
    let mut told = notes;
    if let Some(failure) = &settled.failure {
        told.insert("attempt".into(), attempt.into());
        told.insert("code".into(), json!(failure.code));
        told.insert("message".into(), failure.message.clone().into());
        if let Verdict::Again { run_at, .. } = settled.verdict {
            told.insert("run_at".into(), json!(run_at));
        }
    }
    let mut meta = (!told.is_empty()).then_some(Value::Object(told));
    meta.iter_mut().for_each(blank_nuls);
    meta
}

/// The answer where the lease still holds.
fn written_as(change: &Change) -> Finished {
    let Settled { state, verdict, failure, .. } = &change.settled;
    let run_at = match verdict {
        Verdict::Again { run_at, .. } => Some(*run_at),
        Verdict::End | Verdict::GoOn => None,
    };
    Finished::Written { state: *state, run_at, code: failure.as_ref().map(|failure| failure.code) }
}

/// What a job's end leaves behind beside its id; what is not there is not said.
fn end_row(change: &Change) -> Value {
    let mut row = Map::from_iter([("fence".to_owned(), change.fence.into())]);
    row.extend(change.result.clone().map(|result| ("result".to_owned(), result)));
    if let Some(failure) = &change.settled.failure {
        row.insert("code".into(), json!(failure.code));
        row.insert("message".into(), failure.message.as_str().into());
        row.insert("detail".into(), failure.detail.as_deref().into());
    }
    Value::Object(row)
}

/// The same as columns, beside the other parameters.
fn with_end_columns(params: Named, changes: &[Change]) -> Named {
    let failures = || changes.iter().map(|change| change.settled.failure.as_ref());
    let texts = |text: fn(&Failure) -> Option<String>| {
        Param::Texts(failures().map(|failure| text(failure?)).collect())
    };
    params
        .with("fences", Param::Ints(changes.iter().map(|change| Some(change.fence)).collect()))
        .with("results", Param::Jsons(changes.iter().map(|change| change.result.clone()).collect()))
        .with("codes", texts(|failure| Some(failure.code.to_string())))
        .with("messages", texts(|failure| Some(failure.message.clone())))
        .with("failure_details", texts(|failure| failure.detail.clone()))
}

fn move_row(change: &Change) -> Value {
    let in_line = change.pipeline.lane(change.settled.state);
    // Waiting for a moment to come is not waiting for a worker: the lane is given when it has come. And a job
    // that has done one stage is in line for the next only once that was asked for.
    let (lane, next_lane, run_at) = match change.settled.verdict {
        Verdict::Again { run_at, spent: Spent::Retry | Spent::Postponed } => (None, None, Some(run_at)),
        Verdict::Again { .. } => (in_line, None, None),
        Verdict::GoOn | Verdict::End if change.advance => (in_line, None, None),
        Verdict::GoOn | Verdict::End => (None, in_line, None),
    };
    let spent = match change.settled.verdict {
        Verdict::Again { spent, .. } => Some(spent),
        Verdict::GoOn | Verdict::End => None,
    };
    json!({
        "id": change.id, "fence": change.fence, "lane": lane, "next_lane": next_lane,
        "wait": run_at.map(|at| (at.as_microsecond() - Timestamp::now().as_microsecond()).max(0)),
        // A try that was handed back did not happen.
        "attempts": -i32::from(matches!(spent, Some(Spent::HandedBack | Spent::Postponed))), "retries": i32::from(spent == Some(Spent::Retry)),
        "crashes": i32::from(spent == Some(Spent::Crash)), "advance": i32::from(change.advance),
        // A wish to stop it is for the attempt that comes next, where one does.
        "keeps_wish": i32::from(spent.is_some()),
    })
}

fn artifact_rows(changes: &[Change]) -> Vec<Value> {
    let files = changes.iter().flat_map(|change| change.artifacts.iter().map(move |file| (change.id, file)));
    let row = |(job, file): (JobId, &Artifact)| {
        json!({
            "id": Uuid::now_v7(), "job_id": job, "role": file.role, "name": file.name, "storage": file.storage,
            "path": file.path, "content_type": file.content_type, "bytes": file.bytes, "sha256": file.sha256,
        })
    };
    files.map(row).collect()
}

fn details(changes: &[Change]) -> Option<Value> {
    let told: Map<String, Value> =
        changes.iter().filter_map(|change| Some((change.id.to_string(), change.meta.clone()?))).collect();
    if told.is_empty() { None } else { Some(Value::Object(told)) }
}
