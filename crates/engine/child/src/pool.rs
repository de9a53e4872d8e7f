//! Runs of our own binary, a few at a time: work waits for its turn, each run is a child of its own, and its end
//! becomes an answer or the failure of a job.

use crate::{
    Error, Input, Limits, Notice, Program, Report, Sandbox, Spec, Subject, Supervisor, Usage, Work,
    unexpected,
};
use bytes::Bytes;
use ode_job::{ErrorCode, Failure};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Semaphore, SemaphorePermit};

/// Limits of a pool and of each of its runs.
#[derive(Debug, Clone)]
pub struct PoolOptions {
    /// Turns at a time, at least one; further work waits.
    pub at_once: usize,
    /// Longest wait for a turn; past it, the failure is [`Busy`](ErrorCode::Busy).
    pub patience: Duration,
    /// Sandbox of the child. Off for debugging only.
    pub sandbox: Sandbox,
    pub limits: Limits,
}

impl Default for PoolOptions {
    /// As many as there are processors, ten seconds' patience, locked in where the system can.
    fn default() -> Self {
        PoolOptions {
            at_once: std::thread::available_parallelism().map_or(1, usize::from),
            patience: Duration::from_secs(10),
            sandbox: Sandbox::BestEffort,
            limits: Limits::default(),
        }
    }
}

/// Turns to run children of one kind. Cheap to clone; clones share the turns.
#[derive(Debug, Clone)]
pub struct Pool {
    supervisor: Supervisor,
    spec: Arc<Spec>,
    turns: Arc<Semaphore>,
    patience: Duration,
    subject: Subject,
}

impl Pool {
    /// Gets ready to run this program, our own binary that calls [`child::serve`](crate::child::serve).
    pub fn new(options: PoolOptions, program: Program, subject: Subject) -> Result<Self, Error> {
        let spec = Spec { sandbox: options.sandbox, limits: options.limits, ..Spec::own(program) };
        Ok(Pool {
            supervisor: Supervisor::new()?,
            spec: Arc::new(spec),
            turns: Arc::new(Semaphore::new(options.at_once.max(1))),
            patience: options.patience,
            subject,
        })
    }

    /// The same with another program. The turns are shared: both together run no more at a time.
    #[must_use]
    pub fn with_program(&self, program: Program) -> Self {
        Pool { spec: Arc::new(Spec { program, ..(*self.spec).clone() }), ..self.clone() }
    }

    /// Size of the largest input, in bytes.
    pub fn input_bytes_max(&self) -> u64 {
        self.spec.limits.input_bytes
    }

    /// Supervisor of the children, for other children beside them.
    pub fn supervisor(&self) -> &Supervisor {
        &self.supervisor
    }

    /// Waits for a turn to work on an input of this size.
    pub async fn turn(&self, input: &Bytes) -> Result<Turn<'_>, Failure> {
        let bytes = input.len() as u64;
        if bytes > self.input_bytes_max() {
            return Err(self.subject.too_large(bytes, self.input_bytes_max()));
        }
        match tokio::time::timeout(self.patience, self.turns.acquire()).await {
            Ok(Ok(permit)) => Ok(Turn { pool: self, _permit: permit }),
            Ok(Err(_)) | Err(_) => Err(ErrorCode::Busy.into()),
        }
    }
}

/// A turn to work on one input, by one child after another. Dropping it gives the turn to the next.
#[derive(Debug)]
pub struct Turn<'a> {
    pool: &'a Pool,
    _permit: SemaphorePermit<'a>,
}

impl Turn<'_> {
    /// Runs a child with this task and input. Ends early, and ends the child, when the future is dropped.
    pub async fn run(
        &mut self,
        task: &impl Serialize,
        input: Bytes,
        notice: impl FnMut(Notice) + Send,
    ) -> Result<Run, Failure> {
        let Pool { supervisor, spec, subject, .. } = self.pool;
        let work = Work::new(task).map_err(unexpected)?.with_input(Input::Bytes(input));
        let report = supervisor.run(spec, work, notice, std::future::pending()).await.map_err(unexpected)?;
        Ok(Run { report, spec: Arc::clone(spec), subject: *subject })
    }
}

/// A run that has ended, well or not.
#[derive(Debug)]
pub struct Run {
    report: Report,
    spec: Arc<Spec>,
    subject: Subject,
}

impl Run {
    /// Returns the answer of the child, or the failure that kept it from answering.
    pub fn answer<A: DeserializeOwned>(&self) -> Result<A, Failure> {
        let result = self.subject.result(&self.report.outcome, &self.spec.limits)?;
        serde_json::from_str(result.get()).map_err(unexpected)
    }

    /// Contents of an artifact that the child always gives.
    pub fn artifact(&self, name: &str) -> Result<Vec<u8>, Failure> {
        self.optional_artifact(name)?.ok_or_else(|| unexpected(format!("the child gave no {name}")))
    }

    /// Contents of an artifact that the child may give, even if it failed then.
    pub fn optional_artifact(&self, name: &str) -> Result<Option<Vec<u8>>, Failure> {
        let found = self.report.artifacts.iter().find(|artifact| artifact.name == name);
        found.map(|artifact| self.report.read(artifact).map_err(unexpected)).transpose()
    }

    /// Processor time and memory of the run.
    pub fn usage(&self) -> Usage {
        self.report.usage
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::Future as _;
    use std::pin::pin;
    use std::task::{Context, Waker};

    static INPUT: Bytes = Bytes::from_static(b"input");

    /// A pool of a single turn, whose program is never started.
    fn pool(patience: Duration) -> Pool {
        let limits = Limits { input_bytes: INPUT.len() as u64, ..Limits::default() };
        let options = PoolOptions { at_once: 1, patience, limits, ..PoolOptions::default() };
        Pool::new(options, Program::new("/nowhere", [""; 0]), Subject::PDF).unwrap()
    }

    #[tokio::test]
    async fn work_that_waits_longer_than_its_patience_finds_us_busy() {
        let pool = pool(Duration::ZERO);
        let first = pool.turn(&INPUT).await.unwrap();
        let failure = pool.turn(&INPUT).await.unwrap_err();
        assert_eq!(failure, ErrorCode::Busy.into());
        drop(first);
        assert!(pool.turn(&INPUT).await.is_ok(), "the turn was not given back");
    }

    #[tokio::test]
    async fn patient_work_gets_the_turn_that_is_given_back() {
        let pool = pool(Duration::MAX);
        let first = pool.turn(&INPUT).await.unwrap();
        let mut second = pin!(pool.turn(&INPUT));
        let is_pending = second.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending();
        assert!(is_pending, "two turns at a time");
        drop(first);
        assert!(second.await.is_ok());
    }

    #[tokio::test]
    async fn turns_are_shared_with_a_pool_of_another_program() {
        let pool = pool(Duration::ZERO);
        let other = pool.with_program(Program::new("/elsewhere", [""; 0]));
        let _turn = pool.turn(&INPUT).await.unwrap();
        assert_eq!(other.turn(&INPUT).await.unwrap_err().code, ErrorCode::Busy);
    }

    #[tokio::test]
    async fn an_input_that_is_too_large_takes_no_turn() {
        let pool = pool(Duration::ZERO);
        let _turn = pool.turn(&INPUT).await.unwrap();
        let failure = pool.turn(&Bytes::from_static(b"longer input")).await.unwrap_err();
        assert_eq!(failure.code, ErrorCode::TooLarge);
    }

    #[tokio::test]
    async fn a_program_that_cannot_be_started_is_unexpected() {
        let pool = pool(Duration::ZERO);
        let failure = pool.turn(&INPUT).await.unwrap().run(&(), INPUT.clone(), |_| ()).await.unwrap_err();
        assert_eq!(failure.code, ErrorCode::Unknown);
        assert!(failure.detail.is_some_and(|detail| detail.contains("/nowhere")));
    }
}
