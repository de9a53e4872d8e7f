//! Reports what a script says while it runs to its job: lines and progress at once, steps and checkpoints in the order they
//! came, without the script waiting for them to be written.

use crate::record::{RecordedState, Run};
use crate::{Error, Level, News, Outcome, Report, sql};
use ode_job::{LogLevel, Progress};
use ode_worker::{Context, unreached};
use serde_json::Value;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;

/// A script that has done more than this for good counts its work too finely; further ones are left out.
const CHECKPOINTS_MAX: usize = 1000;

/// Reports one attempt.
pub(super) struct ScriptReporter<'a> {
    context: &'a Context<'a>,
    pending: Mutex<Pending>,
    news: Notify,
}

/// What is known of the attempt, and what of it is not written yet.
#[derive(Default)]
struct Pending {
    run: Run,
    /// Whether it changed since it was last written.
    is_changed: bool,
    checkpoints: Vec<(String, Value)>,
    /// How many there were.
    checkpoint_count: usize,
}

impl<'a> ScriptReporter<'a> {
    pub(super) fn new(context: &'a Context<'a>, run: Run) -> Self {
        let pending = Pending { run, is_changed: true, ..Pending::default() };
        ScriptReporter { context, pending: Mutex::new(pending), news: Notify::new() }
    }

    fn pending(&self) -> MutexGuard<'_, Pending> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Receives a piece of news.
    pub(super) fn receive(&self, news: News) {
        match news {
            News::Log(line) => return self.context.log(level(line.level), &line.text),
            News::Progress(progress) => {
                let progress = Progress {
                    percent: progress.percent.clamp(0.0, 100.0).round() as u8,
                    message: progress.message,
                    step: progress.step,
                    steps: progress.steps,
                };
                self.pending().run.progress = progress.clone();
                return self.context.progress(progress);
            }
            news => self.pending().add(news),
        }
        self.news.notify_one();
    }

    /// Writes down news while something runs, and at its end what was not written yet.
    pub(super) async fn during(
        &self,
        run: impl Future<Output = Result<Report, Error>>,
    ) -> Result<Report, Error> {
        let mut run = std::pin::pin!(run);
        let ended = loop {
            tokio::select! {
                ended = &mut run => break ended,
                () = self.news.notified() => self.write().await,
            }
        };
        self.pending().end(&ended);
        self.write().await;
        ended
    }

    async fn write(&self) {
        let (run, checkpoints) = {
            let mut pending = self.pending();
            let run = std::mem::take(&mut pending.is_changed).then(|| pending.run.clone());
            (run, std::mem::take(&mut pending.checkpoints))
        };
        if let Some(run) = &run {
            self.check_written(sql::record_run(self.context.held(), run).await);
        }
        for (key, data) in checkpoints {
            self.check_written(sql::checkpoint(self.context.held(), &key, data).await);
        }
    }

    /// Logs what could not be written: work that is done again for want of a checkpoint is better than none that is done.
    fn check_written(&self, written: Result<(), ode_store::Error>) {
        if let Err(error) = written {
            let failure = unreached(&error);
            let line = format!("How far the script is could not be recorded: {}", failure.message);
            self.context.log(LogLevel::Warn, &line);
        }
    }
}

impl Pending {
    fn end(&mut self, ended: &Result<Report, Error>) {
        self.is_changed = true;
        if let Ok(Report { outcome: Outcome::Failed(failed), .. }) = ended {
            self.run.code = Some(failed.code.clone());
        }
    }

    fn add(&mut self, news: News) {
        self.is_changed = true;
        match news {
            News::Started(record) => self.run.process = Some(record),
            News::Plan(steps) => self.run.steps = steps.into_iter().map(Into::into).collect(),
            News::Step { id, state } => {
                if let Some(step) = self.run.steps.iter_mut().find(|step| step.id == id) {
                    step.state = RecordedState::Reached(state);
                }
            }
            News::Checkpoint { key, data } => {
                self.checkpoint_count += 1;
                if self.checkpoint_count <= CHECKPOINTS_MAX {
                    self.checkpoints.push((key, data));
                }
            }
            News::Progress(_) | News::Log(_) => {}
        }
    }
}

fn level(level: Level) -> LogLevel {
    match level {
        Level::Debug | Level::Info => LogLevel::Info,
        Level::Warn => LogLevel::Warn,
        Level::Error => LogLevel::Error,
    }
}
