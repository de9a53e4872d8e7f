//! Jobs made of nothing but `ode_job`.

use super::words::{Answer, Ask, Command, Kept, OWNERS, Step, Story, WORKERS, policy};
use crate::machines::{lane, pipeline};
use jiff::Timestamp;
use ode_job::settle::Spent;
use ode_job::{Attempt, Ended, Event, Lane, Phase, Pipeline, State, Verdict, WorkerId, settle};
use std::collections::{BTreeMap, BTreeSet};
use uuid::Uuid;

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
pub(super) struct Job {
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

    pub(super) fn story(&self) -> Story {
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
        if let Some(edge) = self.pipeline.path_to_ready()
            && edge.from == self.state
        {
            self.step(edge.event, edge.to);
        }
        (self.lane, self.due) = (self.pipeline.lane(self.state), Due::Never);
    }

    fn end_attempt(&mut self, ended: Ended, is_soon: bool) {
        // A person's wish outlives an attempt that did not hear of it.
        let ended = if self.is_to_stop && ended != Ended::Succeeded { Ended::Stopped } else { ended };
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
        (self.holder, self.lane, self.due, self.is_to_stop) = (None, None, Due::Never, false);
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
pub(super) struct Model {
    pub(super) jobs: Vec<Job>,
    leases: Vec<Kept>,
    pub(super) workers: [WorkerId; WORKERS],
}

impl Model {
    pub(super) fn new() -> Self {
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
    pub(super) fn resolve(&self, command: Command) -> Option<Step> {
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
        nth(&waiting, pick).or_else(|| nth(lane::ALL, pick)).expect("there are lanes")
    }

    /// A job of which this can be asked, now and then any.
    fn job_for(&self, pick: usize, asks: Event) -> Option<usize> {
        let can = |job: &Job| !is_in_vain(pick) && job.pipeline.next(job.state, asks).is_ok();
        let all: Vec<usize> = (0..self.jobs.len()).collect();
        let fitting: Vec<usize> = all.iter().copied().filter(|job| can(&self.jobs[*job])).collect();
        nth(&fitting, pick).or_else(|| nth(&all, pick))
    }

    pub(super) fn act(&mut self, step: Step) -> Answer {
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
        if !is_later || pipeline != pipeline::SCRIPT {
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
        Answer::Count(held.map(|job| job.end_attempt(ended.clone(), true)).count())
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
