//! What a script tells while it runs, on its way to the job: lines and progress at once, steps and checkpoints in the
//! order they came, without the script waiting for them to be written.

use crate::{Error, Level, News, Outcome, Report};
use ode_job::script::{Process, Run, ScriptStep, StepState};
use ode_job::{LogLevel, Progress, ScriptRecord};
use ode_worker::Context;
use serde_json::Value;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;

/// A script that has done more than this for good counts its work too finely; further ones are left out.
const CHECKPOINTS_MAX: usize = 1000;

/// What an attempt has told.
pub(super) struct Told<'a> {
    context: &'a Context<'a>,
    inside: Mutex<Inside>,
    news: Notify,
}

#[derive(Default)]
struct Inside {
    run: Run,
    /// Whether it changed since it was last written.
    is_changed: bool,
    checkpoints: Vec<(String, Value)>,
    /// How many there were.
    checkpoint_count: usize,
}

impl<'a> Told<'a> {
    pub(super) fn new(context: &'a Context<'a>, run: Run) -> Self {
        let inside = Inside { run, is_changed: true, ..Inside::default() };
        Told { context, inside: Mutex::new(inside), news: Notify::new() }
    }

    fn inside(&self) -> MutexGuard<'_, Inside> {
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a piece of news in.
    pub(super) fn hear(&self, news: News) {
        match news {
            News::Log(line) => return self.context.log(level(line.level), &line.text),
            News::Progress(progress) => {
                let progress = Progress {
                    percent: progress.percent.clamp(0.0, 100.0).round() as u8,
                    message: progress.message,
                    step: progress.step,
                    steps: progress.steps,
                };
                self.inside().run.progress = progress.clone();
                return self.context.progress(progress);
            }
            news => self.inside().take_in(news),
        }
        self.news.notify_one();
    }

    /// Writes down what is told while something runs, and at its end what was not yet.
    pub(super) async fn during(
        &self,
        record: &dyn ScriptRecord,
        run: impl Future<Output = Result<Report, Error>>,
    ) -> Result<Report, Error> {
        let mut run = std::pin::pin!(run);
        let ended = loop {
            tokio::select! {
                ended = &mut run => break ended,
                () = self.news.notified() => self.write(record).await,
            }
        };
        self.inside().end(&ended);
        self.write(record).await;
        ended
    }

    async fn write(&self, record: &dyn ScriptRecord) {
        let (run, checkpoints) = {
            let mut inside = self.inside();
            let run = std::mem::take(&mut inside.is_changed).then(|| inside.run.clone());
            (run, std::mem::take(&mut inside.checkpoints))
        };
        let mut written = match &run {
            Some(run) => record.record(run).await,
            None => Ok(()),
        };
        for (key, data) in checkpoints {
            written = written.and(record.checkpoint(&key, data).await);
        }
        if let Err(failure) = written {
            // Work that is done again for want of a checkpoint is better than none that is done.
            let line = format!("How far the script is could not be recorded: {}", failure.message);
            self.context.log(LogLevel::Warn, &line);
        }
    }
}

impl Inside {
    fn end(&mut self, ended: &Result<Report, Error>) {
        self.is_changed = true;
        if let Ok(Report { outcome: Outcome::Failed(failed), .. }) = ended {
            self.run.code = Some(failed.code.clone());
        }
    }

    fn take_in(&mut self, news: News) {
        self.is_changed = true;
        match news {
            News::Started(record) => {
                let pid = u32::try_from(record.pid).unwrap_or_default();
                self.run.process = Some(Process { pid, start_ticks: record.started, boot_id: record.boot });
            }
            News::Plan(steps) => {
                let step = |step: crate::Step| ScriptStep {
                    id: step.id,
                    title: step.title,
                    state: StepState::Waiting,
                };
                self.run.steps = steps.into_iter().map(step).collect();
            }
            News::Step { id, state } => {
                if let Some(step) = self.run.steps.iter_mut().find(|step| step.id == id) {
                    step.state = step_state(state);
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

fn step_state(state: crate::StepState) -> StepState {
    match state {
        crate::StepState::Started => StepState::Started,
        crate::StepState::Done => StepState::Done,
        crate::StepState::Skipped => StepState::Skipped,
        crate::StepState::Failed => StepState::Failed,
    }
}

fn level(level: Level) -> LogLevel {
    match level {
        Level::Debug | Level::Info => LogLevel::Info,
        Level::Warn => LogLevel::Warn,
        Level::Error => LogLevel::Error,
    }
}
