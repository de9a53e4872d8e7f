//! Random lives of jobs, led three times: in a model made of nothing but `ode_job`, on SQLite and on
//! PostgreSQL. After every step all three must tell the same story of every job.
//!
//! A counterexample is printed as commands; it stays here as a plain test through [`replay`].

use crate::harness::{ending, place, postgres_url, silence, until};
use futures_util::future::join;
use jiff::Timestamp;
use ode_job::settle::Spent;
use ode_job::{
    Attempt, Claimed, Ended, ErrorCode, Event, Failure, JobId, Lane, Lease, NewJob, Owner, Phase, Pipeline,
    RetryPolicy, State, Verdict, WorkerId, settle,
};
use ode_store::{ClaimRequest, Config, Error, Finish, Finished, ListFilter, Store};
use proptest::prelude::*;
use proptest::test_runner::{Config as Cases, TestRunner};
use serde_json::json;
use sqlx::Connection as _;
use sqlx::postgres::PgConnection;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use uuid::Uuid;

/// As many as run in a few seconds without optimisation.
const CASES: u32 = 40;
const COMMANDS: std::ops::RangeInclusive<usize> = 1..=60;
const WORKERS: usize = 2;

/// Who may own a job: nobody in particular, or one of two organisations.
const OWNERS: [Owner; 3] = [
    Owner::Operator,
    Owner::Organisation(Uuid::from_u128(0x1111)),
    Owner::Organisation(Uuid::from_u128(0x2222)),
];

#[derive(Debug, Clone, Copy)]
enum Command {
    Enqueue(Ask),
    /// Claims in one of the lanes, if possible in one where somebody waits.
    Claim {
        pick: usize,
        worker: usize,
        count: usize,
    },
    /// Ends an attempt under a lease that is still held.
    Finish {
        pick: usize,
        end: End,
        is_soon: bool,
    },
    /// Ends an attempt under a lease that was held once.
    FinishLate {
        pick: usize,
        end: End,
    },
    Cancel(usize),
    Retry(usize),
    Stop(usize),
    Advance(usize),
    Deliver(usize),
    GiveUp(usize),
    /// A worker falls silent, its jobs are rescued, and another takes its place.
    Lose(usize),
    /// A worker has forgotten everything that it holds.
    Forget(usize),
    /// A worker asks what it still holds, and what it is to stop.
    Held(usize),
    Promote,
}

/// What makes the life of one job differ from that of another.
#[derive(Debug, Clone, Copy)]
struct Ask {
    pipeline: Pipeline,
    owner: usize,
    priority: i32,
    retries_max: u32,
    advance: bool,
    is_later: bool,
}

/// [`Ended`], less what it carries.
#[derive(Debug, Clone, Copy)]
enum End {
    Succeeded,
    Rejected,
    Broken,
    TimedOut,
    Stopped,
    HandedBack,
    Away,
}

impl End {
    fn ended(self) -> Ended {
        match self {
            End::Succeeded => Ended::Succeeded,
            End::Rejected => Ended::Failed(Failure::from(ErrorCode::NotPdf)),
            End::Broken => Ended::Failed(Failure::from(ErrorCode::Gw5xx)),
            End::TimedOut => Ended::TimedOut(Failure::from(ErrorCode::TimedOut)),
            End::Stopped => Ended::Stopped,
            End::HandedBack => Ended::HandedBack,
            End::Away => Ended::Failed(Failure::away(ErrorCode::Gw5xx, "away", Duration::ZERO)),
        }
    }
}

/// Another try, at once or not within the time of a test.
fn policy(is_soon: bool) -> RetryPolicy {
    let base = if is_soon { Duration::ZERO } else { Duration::from_secs(3600) };
    RetryPolicy { base, jitter_max: Duration::ZERO, ..RetryPolicy::default() }
}

/// What a step was answered.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Answer {
    Done,
    Is(State),
    Refused,
    LeaseLost,
    Claimed(BTreeMap<usize, Kept>),
    Held { held: BTreeSet<usize>, stop: BTreeSet<usize> },
    Count(usize),
}

/// What is kept of a lease, so that it can be used late.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Kept {
    job: usize,
    lane: Lane,
    worker: WorkerId,
    fence: i64,
    attempt: u32,
    retries: u32,
    retries_max: Option<u32>,
    crashes: u32,
}

/// What is compared of a job.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Story {
    state: State,
    phase: Phase,
    attempts: u32,
    retries: u32,
    events: Vec<Event>,
}

/// A command with everything in it decided: which job, which lease, which worker.
#[derive(Debug, Clone, Copy)]
enum Step {
    Enqueue(Ask),
    Claim { lane: Lane, worker: WorkerId, count: usize },
    Finish { kept: Kept, end: End, is_soon: bool },
    Person { job: usize, asks: Event },
    Stop(usize),
    Lose { worker: WorkerId, next: WorkerId },
    Forget(WorkerId),
    Held(WorkerId),
    Promote,
}

// ---------------------------------------------------------------- the model

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Due {
    /// It waits for no moment.
    Never,
    /// Its moment has come, and nobody has looked yet.
    Now,
    /// Its moment does not come within a test.
    Later,
}

#[derive(Debug)]
struct Job {
    pipeline: Pipeline,
    owner: Uuid,
    priority: i32,
    state: State,
    lane: Option<Lane>,
    due: Due,
    holder: Option<WorkerId>,
    is_to_stop: bool,
    advance: bool,
    fence: i64,
    attempts: u32,
    retries: u32,
    retries_max: u32,
    crashes: u32,
    events: Vec<Event>,
}

impl Job {
    fn phase(&self) -> Phase {
        if self.pipeline.is_terminal(self.state) {
            return self.pipeline.phase(self.state).unwrap();
        }
        match (self.holder, self.lane) {
            (Some(_), _) => Phase::Running,
            (None, Some(_)) => Phase::Ready,
            (None, None) => Phase::Held,
        }
    }

    fn story(&self) -> Story {
        let events = self.events.clone();
        Story {
            state: self.state,
            phase: self.phase(),
            attempts: self.attempts,
            retries: self.retries,
            events,
        }
    }

    fn step(&mut self, event: Event, to: State) {
        self.events.push(event);
        self.state = to;
    }

    /// Takes the steps from here that make a job ready.
    fn walk_to_ready(&mut self) {
        for edge in self.pipeline.path_to_ready() {
            if edge.from == self.state {
                self.step(edge.event, edge.to);
            }
        }
        (self.lane, self.due) = (self.pipeline.lane(self.state), Due::Never);
    }

    fn end_attempt(&mut self, ended: Ended, is_soon: bool) {
        let attempt = Attempt {
            pipeline: self.pipeline,
            state: self.state,
            retries: self.retries,
            retries_max: self.retries_max,
            crashes: self.crashes,
        };
        let settled = settle(attempt, ended, &policy(is_soon), Timestamp::UNIX_EPOCH, 0.0).unwrap();
        for step in &settled.steps {
            self.step(step.event, step.to);
        }
        // A wish that the worker had not heard of yet is for the next one.
        self.is_to_stop &= matches!(settled.verdict, Verdict::Again { spent: Spent::HandedBack, .. });
        (self.holder, self.lane, self.due) = (None, None, Due::Never);
        let in_line = self.pipeline.lane(self.state);
        match settled.verdict {
            Verdict::End => {}
            Verdict::GoOn => self.lane = in_line.filter(|_| self.advance),
            Verdict::Again { spent: Spent::Retry, .. } => {
                self.retries += 1;
                self.due = if is_soon { Due::Now } else { Due::Later };
            }
            Verdict::Again { spent: Spent::Postponed, .. } => {
                self.attempts -= 1;
                self.due = Due::Now;
            }
            Verdict::Again { spent, .. } => {
                self.lane = in_line;
                self.crashes += u32::from(spent == Spent::Crash);
                self.attempts -= u32::from(spent == Spent::HandedBack);
            }
        }
    }

    /// What a person asks; true if the machine and the moment allow it.
    fn asked(&mut self, asks: Event) -> bool {
        let Ok(to) = self.pipeline.next(self.state, asks) else { return false };
        // The machine lets a running job fail, but not because somebody else says so.
        if asks == Event::Failed && self.holder.is_some() {
            return false;
        }
        self.step(asks, to);
        (self.lane, self.due, self.is_to_stop) = (None, Due::Never, false);
        match asks {
            Event::Retried => {
                (self.retries, self.crashes) = (0, 0);
                self.walk_to_ready();
            }
            Event::Advanced => (self.advance, self.lane) = (true, self.pipeline.lane(to)),
            _ => {}
        }
        true
    }
}

#[derive(Debug)]
struct Model {
    jobs: Vec<Job>,
    leases: Vec<Kept>,
    workers: [WorkerId; WORKERS],
}

impl Model {
    fn new() -> Self {
        Model {
            jobs: Vec::new(),
            leases: Vec::new(),
            workers: [WorkerId(Uuid::nil()); 2].map(|_| new_worker()),
        }
    }

    fn is_held(&self, kept: &Kept) -> bool {
        let job = &self.jobs[kept.job];
        job.holder.is_some() && job.fence == kept.fence
    }

    /// Decides what a command is about; nothing, if there is nothing of the kind.
    fn resolve(&self, command: Command) -> Option<Step> {
        let lease = |pick: usize, is_held: bool| {
            let fitting: Vec<Kept> =
                self.leases.iter().copied().filter(|kept| self.is_held(kept) == is_held).collect();
            nth(&fitting, pick)
        };
        let person = |pick, asks| self.job_for(pick, asks).map(|job| Step::Person { job, asks });
        match command {
            Command::Enqueue(ask) => Some(Step::Enqueue(ask)),
            Command::Claim { pick, worker, count } => {
                Some(Step::Claim { lane: self.lane_for(pick), worker: self.workers[worker], count })
            }
            Command::Finish { pick, end, is_soon } => {
                lease(pick, true).map(|kept| Step::Finish { kept, end, is_soon })
            }
            Command::FinishLate { pick, end } => {
                lease(pick, false).map(|kept| Step::Finish { kept, end, is_soon: true })
            }
            Command::Cancel(pick) => person(pick, Event::Cancelled),
            Command::Retry(pick) => person(pick, Event::Retried),
            Command::Advance(pick) => person(pick, Event::Advanced),
            Command::Deliver(pick) => person(pick, Event::Delivered),
            Command::GiveUp(pick) => person(pick, Event::Failed),
            Command::Stop(pick) => self.job_for(pick, Event::Stopped).map(Step::Stop),
            Command::Lose(worker) => Some(Step::Lose { worker: self.workers[worker], next: new_worker() }),
            Command::Forget(worker) => Some(Step::Forget(self.workers[worker])),
            Command::Held(worker) => Some(Step::Held(self.workers[worker])),
            Command::Promote => Some(Step::Promote),
        }
    }

    /// A lane in which somebody waits, now and then any: what is in vain must agree as well.
    fn lane_for(&self, pick: usize) -> Lane {
        let waits = |job: &Job| job.lane.filter(|_| job.holder.is_none());
        let waiting: BTreeSet<Lane> = self.jobs.iter().filter_map(waits).collect();
        let waiting: Vec<Lane> = waiting.into_iter().filter(|_| !is_in_vain(pick)).collect();
        nth(&waiting, pick).or_else(|| nth(Lane::ALL, pick)).expect("there are lanes")
    }

    /// A job of which this can be asked, now and then any.
    fn job_for(&self, pick: usize, asks: Event) -> Option<usize> {
        let can = |job: &Job| !is_in_vain(pick) && job.pipeline.next(job.state, asks).is_ok();
        let all: Vec<usize> = (0..self.jobs.len()).collect();
        let fitting: Vec<usize> = all.iter().copied().filter(|job| can(&self.jobs[*job])).collect();
        nth(&fitting, pick).or_else(|| nth(&all, pick))
    }

    fn act(&mut self, step: Step) -> Answer {
        match step {
            Step::Enqueue(ask) => self.enqueue(ask),
            Step::Claim { lane, worker, count } => self.claim(lane, worker, count),
            Step::Finish { kept, .. } if !self.is_held(&kept) => Answer::LeaseLost,
            Step::Finish { kept, end, is_soon } => {
                self.jobs[kept.job].end_attempt(end.ended(), is_soon);
                Answer::Is(self.jobs[kept.job].state)
            }
            Step::Person { job, asks } => {
                let job = &mut self.jobs[job];
                if job.asked(asks) { Answer::Is(job.state) } else { Answer::Refused }
            }
            Step::Stop(job) => {
                let job = &mut self.jobs[job];
                job.is_to_stop |= job.holder.is_some();
                if job.holder.is_some() { Answer::Done } else { Answer::Refused }
            }
            Step::Lose { worker, next } => {
                let slot = self.workers.iter_mut().find(|known| **known == worker).unwrap();
                *slot = next;
                self.take_from(worker, Ended::Lost)
            }
            Step::Forget(worker) => self.take_from(worker, Ended::HandedBack),
            Step::Held(worker) => self.held(worker),
            Step::Promote => {
                let due = self.jobs.iter_mut().filter(|job| job.due == Due::Now);
                Answer::Count(due.map(Job::walk_to_ready).count())
            }
        }
    }

    fn enqueue(&mut self, ask: Ask) -> Answer {
        let Ask { pipeline, owner, priority, retries_max, advance, is_later } = ask;
        let mut job = Job {
            pipeline,
            owner: OWNERS[owner].key(),
            priority,
            state: pipeline.machine().initial,
            lane: None,
            due: if is_later { Due::Later } else { Due::Never },
            holder: None,
            is_to_stop: false,
            advance,
            fence: 0,
            attempts: 0,
            retries: 0,
            retries_max,
            crashes: 0,
            events: vec![Event::Created],
        };
        // A script that is for later stays as it was born; the others wait in their ready state, out of line.
        if !is_later || pipeline != Pipeline::Script {
            let due = job.due;
            job.walk_to_ready();
            job.due = due;
        }
        job.lane = job.lane.filter(|_| !is_later);
        self.jobs.push(job);
        Answer::Done
    }

    /// The highest priority, an equal share for each owner in turn, oldest first.
    fn claim(&mut self, lane: Lane, worker: WorkerId, count: usize) -> Answer {
        let waits = |job: &&Job| job.lane == Some(lane) && job.holder.is_none();
        let Some(top) = self.jobs.iter().filter(waits).map(|job| job.priority).max() else {
            return Answer::Claimed(BTreeMap::new());
        };
        // The round begins after the nil owner, who therefore comes last.
        let mut lines: BTreeMap<(bool, Uuid), Vec<usize>> = BTreeMap::new();
        for (number, job) in self.jobs.iter().enumerate().filter(|(_, job)| waits(job) && job.priority == top)
        {
            lines.entry((job.owner.is_nil(), job.owner)).or_default().push(number);
        }
        let share = count.div_ceil(lines.len());
        let picked: Vec<usize> =
            lines.values().flat_map(|line| line.iter().take(share)).take(count).copied().collect();
        let mut claimed = BTreeMap::new();
        for number in picked {
            let job = &mut self.jobs[number];
            job.step(Event::Started, lane.running_state());
            (job.fence, job.attempts, job.holder) = (job.fence + 1, job.attempts + 1, Some(worker));
            let Job { fence, attempts: attempt, retries, retries_max, crashes, .. } = *job;
            let kept = Kept {
                job: number,
                lane,
                worker,
                fence,
                attempt,
                retries,
                retries_max: Some(retries_max),
                crashes,
            };
            self.leases.push(kept);
            claimed.insert(number, kept);
        }
        Answer::Claimed(claimed)
    }

    fn take_from(&mut self, worker: WorkerId, ended: Ended) -> Answer {
        let held = self.jobs.iter_mut().filter(|job| job.holder == Some(worker));
        let taken = held.map(|job| {
            let ended = if job.is_to_stop { Ended::Stopped } else { ended.clone() };
            job.end_attempt(ended, true);
        });
        Answer::Count(taken.count())
    }

    fn held(&self, worker: WorkerId) -> Answer {
        let of = |wanted: fn(&Job) -> bool| {
            let held = self.jobs.iter().enumerate().filter(|(_, job)| job.holder == Some(worker));
            held.filter(|(_, job)| wanted(job)).map(|(number, _)| number).collect()
        };
        Answer::Held { held: of(|_| true), stop: of(|job| job.is_to_stop) }
    }
}

fn nth<T: Copy>(items: &[T], pick: usize) -> Option<T> {
    items.get(pick % items.len().max(1)).copied()
}

fn is_in_vain(pick: usize) -> bool {
    pick.is_multiple_of(7)
}

fn new_worker() -> WorkerId {
    WorkerId(Uuid::new_v4())
}

// ---------------------------------------------------------------- the stores

/// A store, and its names for the model's jobs.
struct Side {
    name: &'static str,
    store: Store,
    ids: Vec<JobId>,
    /// Every lease there was, as a worker would ask for them.
    leases: Vec<(JobId, i64)>,
}

impl Side {
    fn new(name: &'static str, store: Store) -> Self {
        Side { name, store, ids: Vec::new(), leases: Vec::new() }
    }

    fn number(&self, id: JobId) -> usize {
        self.ids.iter().position(|known| *known == id).expect("a job that nobody asked for")
    }

    async fn act(&mut self, step: Step) -> Result<Answer, Error> {
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
        if lane == Lane::PrintOrder && ended == Ended::Succeeded {
            place(&self.store, &job.lease).await;
        }
        let result = Some(json!({ "pages": 1 }));
        let finish = Finish { result, retry, ..ending(job, ended) };
        Ok(match self.store.finish(vec![finish]).await?.remove(0) {
            Finished::Written { state, .. } => Answer::Is(state),
            Finished::LeaseLost => Answer::LeaseLost,
        })
    }

    async fn stories(&self) -> Result<Vec<Story>, Error> {
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
        Event::Delivered => store.delivered(id).await,
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

// ---------------------------------------------------------------- all three

/// Leads one life three times, and says where they part.
async fn check(postgres: &Store, commands: &[Command]) -> Result<(), String> {
    let sqlite = Store::open(patient("sqlite::memory:".into())).await.unwrap();
    sqlite.migrate_up().await.unwrap();
    let mut model = Model::new();
    let mut sides = [Side::new("SQLite", sqlite), Side::new("PostgreSQL", postgres.clone())];
    for side in &sides {
        for worker in model.workers {
            side.store.register(worker, "test", "0").await.unwrap();
        }
    }
    for (number, command) in commands.iter().enumerate() {
        let Some(step) = model.resolve(*command) else { continue };
        let answer = model.act(step);
        let stories: Vec<Story> = model.jobs.iter().map(Job::story).collect();
        let [one, two] = &mut sides;
        let (one, two) = join(follow(one, step), follow(two, step)).await;
        for (name, found) in [("SQLite", one), ("PostgreSQL", two)] {
            let (said, told) =
                found.map_err(|error| format!("step {number}, {step:?}: {name} said {error}"))?;
            if said != answer {
                return Err(format!("step {number}, {step:?}: the model said {answer:?}, {name} {said:?}"));
            }
            if let Some(job) = (0..stories.len()).find(|job| told.get(*job) != stories.get(*job)) {
                let (model, store) = (&stories[job], told.get(job));
                return Err(format!(
                    "step {number}, {step:?}, job {job}: the model tells {model:?}, {name} {store:?}"
                ));
            }
        }
    }
    Ok(())
}

async fn follow(side: &mut Side, step: Step) -> Result<(Answer, Vec<Story>), String> {
    let answer = side.act(step).await.map_err(|error| error.to_string())?;
    let stories = side.stories().await.map_err(|error| format!("{error}, reading {}", side.name))?;
    Ok((answer, stories))
}

/// Nobody falls silent here unless told to.
fn patient(url: String) -> Config {
    Config { silence_max: Duration::from_secs(3600), ..Config::new(url) }
}

fn enqueue() -> impl Strategy<Value = Command> {
    let pipeline = prop::sample::select(Pipeline::ALL);
    let rest = (-1..=1, 0..=2_u32, any::<bool>(), prop::bool::weighted(0.1));
    (pipeline, 0..OWNERS.len(), rest).prop_map(|(pipeline, owner, rest)| {
        let (priority, retries_max, advance, is_later) = rest;
        Command::Enqueue(Ask { pipeline, owner, priority, retries_max, advance, is_later })
    })
}

fn command() -> impl Strategy<Value = Command> {
    const ENDS: &[End] = &[
        End::Succeeded,
        End::Succeeded,
        End::Rejected,
        End::Broken,
        End::Broken,
        End::TimedOut,
        End::Stopped,
        End::HandedBack,
        End::Away,
    ];
    let end = || prop::sample::select(ENDS);
    let pick = || 0..210_usize;
    let claim = (pick(), 0..WORKERS, 1..=3_usize).prop_map(|(pick, worker, count)| Command::Claim {
        pick,
        worker,
        count,
    });
    let finish = (pick(), end(), prop::bool::weighted(0.8))
        .prop_map(|(pick, end, is_soon)| Command::Finish { pick, end, is_soon });
    let late = (pick(), end()).prop_map(|(pick, end)| Command::FinishLate { pick, end });
    prop_oneof![
        5 => enqueue(),
        12 => claim,
        9 => finish,
        2 => late,
        2 => pick().prop_map(Command::Cancel),
        4 => pick().prop_map(Command::Retry),
        2 => pick().prop_map(Command::Stop),
        2 => pick().prop_map(Command::Advance),
        1 => pick().prop_map(Command::Deliver),
        1 => pick().prop_map(Command::GiveUp),
        2 => (0..WORKERS).prop_map(Command::Lose),
        1 => (0..WORKERS).prop_map(Command::Forget),
        1 => (0..WORKERS).prop_map(Command::Held),
        3 => Just(Command::Promote),
    ]
}

/// A few jobs, and then what becomes of them.
fn life() -> impl Strategy<Value = Vec<Command>> {
    let commands = prop::collection::vec(command(), COMMANDS);
    (prop::collection::vec(enqueue(), 1..=6), commands).prop_map(|(jobs, commands)| [jobs, commands].concat())
}

/// One PostgreSQL database for all cases, emptied before each.
struct Bench {
    runtime: tokio::runtime::Runtime,
    postgres: Store,
    url: String,
}

impl Bench {
    fn new() -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let (postgres, url) = runtime.block_on(async {
            let url = postgres_url().await;
            // What is compared is not lost with the server, and this makes it twice as fast.
            let name = url.rsplit_once('/').unwrap().1;
            let hasty = sqlx::AssertSqlSafe(format!("ALTER DATABASE {name} SET synchronous_commit = off"));
            let mut sql = PgConnection::connect(&url).await.unwrap();
            sqlx::raw_sql(hasty).execute(&mut sql).await.unwrap();
            let store = Store::open(patient(url.clone())).await.unwrap();
            store.migrate_up().await.unwrap();
            (store, url)
        });
        Bench { runtime, postgres, url }
    }

    fn check(&self, commands: &[Command]) -> Result<(), String> {
        self.runtime.block_on(async {
            let mut sql = PgConnection::connect(&self.url).await.unwrap();
            sqlx::raw_sql("TRUNCATE job_past, job_live, job_key, worker").execute(&mut sql).await.unwrap();
            check(&self.postgres, commands).await
        })
    }
}

/// Leads one life that once told three stories.
#[track_caller]
fn replay(commands: &[Command]) {
    if let Err(difference) = Bench::new().check(commands) {
        panic!("{difference}");
    }
}

#[test]
fn the_model_and_both_stores_tell_the_same_story() {
    let bench = Bench::new();
    let cases = Cases { cases: CASES, failure_persistence: None, max_shrink_iters: 400, ..Cases::default() };
    let outcome =
        TestRunner::new(cases).run(&life(), |commands| bench.check(&commands).map_err(TestCaseError::fail));
    if let Err(error) = outcome {
        panic!("{error}");
    }
}

#[test]
fn a_full_life_is_told_alike() {
    let print = Ask {
        pipeline: Pipeline::Print,
        owner: 1,
        priority: 0,
        retries_max: 1,
        advance: true,
        is_later: false,
    };
    let claim = Command::Claim { pick: 1, worker: 0, count: 1 };
    let finish = |end| Command::Finish { pick: 0, end, is_soon: true };
    replay(&[
        Command::Enqueue(print),
        claim,
        finish(End::Broken),
        Command::Promote,
        claim,
        finish(End::Rejected),
        Command::Retry(0),
        claim,
        Command::Stop(0),
        Command::Held(0),
        Command::Lose(0),
        Command::Retry(0),
        claim,
        Command::Lose(0),
        claim,
        finish(End::Succeeded),
        claim,
        Command::FinishLate { pick: 0, end: End::Succeeded },
        finish(End::TimedOut),
        Command::Advance(0),
        claim,
        finish(End::Succeeded),
        Command::Deliver(0),
        Command::Retry(0),
    ]);
}
