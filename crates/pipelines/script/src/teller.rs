//! Tells what a script says in the terms of a run: which step it is in, and how far the whole is.

use crate::order::{Level, LogLine, News, Outcome, Progress, Source};
use ode_child::{Notice, Step, StepState};
use std::time::{Duration, Instant};

/// Progress is told at most this often.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(250);

pub(crate) struct Teller<T> {
    told: T,
    steps: Vec<Step>,
    /// The step that is under way, from 1; 0 before the first.
    step: u32,
    percent: f32,
    /// Progress that was not told yet, because some was told a moment ago.
    held: Option<Progress>,
    last: Option<Instant>,
}

impl<T: FnMut(News)> Teller<T> {
    pub(crate) fn new(told: T, steps: &[Step]) -> Self {
        Self { told, steps: steps.to_vec(), step: 0, percent: 0.0, held: None, last: None }
    }

    pub(crate) fn hear(&mut self, notice: Notice) {
        match notice {
            Notice::Log(line) => (self.told)(News::Log(line)),
            Notice::Checkpoint { key, data } => (self.told)(News::Checkpoint { key, data }),
            Notice::Plan(steps) => {
                self.steps.clone_from(&steps);
                (self.told)(News::Plan(steps));
            }
            Notice::Step(id, state) => self.hear_step(id, state),
            Notice::Progress(progress) => self.hold(progress.percent, progress.message),
        }
    }

    /// A line of our own in the script's log.
    pub(crate) fn log(&mut self, text: String) {
        (self.told)(News::Log(LogLine { source: Source::Events, level: Level::Warn, text }));
    }

    /// Tells what was held back, if it may be told by now.
    pub(crate) fn tell(&mut self) {
        if self.last.is_none_or(|last| last.elapsed() >= PROGRESS_INTERVAL) {
            self.tell_now();
        }
    }

    /// Tells how far it came, whenever that was.
    pub(crate) fn finish(&mut self, outcome: &Outcome) {
        if let Outcome::Done(done) = outcome {
            let (step, steps) = (self.count(), self.count());
            self.held = Some(Progress { percent: 100.0, message: Some(done.message.clone()), step, steps });
        }
        self.tell_now();
    }

    fn tell_now(&mut self) {
        if let Some(progress) = self.held.take() {
            self.last = Some(Instant::now());
            (self.told)(News::Progress(progress));
        }
    }

    fn hear_step(&mut self, id: String, state: StepState) {
        let place = self.steps.iter().position(|step| step.id == id);
        let title = place.map(|place| self.steps[place].title.clone());
        (self.told)(News::Step { id, state });
        if let Some(place) = place.and_then(|place| u32::try_from(place).ok()) {
            self.step = place + 1;
            match state {
                StepState::Started => self.hold(0.0, title),
                StepState::Done | StepState::Skipped => self.hold(100.0, title),
                StepState::Failed => {}
            }
        }
    }

    fn count(&self) -> u32 {
        u32::try_from(self.steps.len()).unwrap_or(u32::MAX)
    }

    /// Within a step, a script tells how far that step is; otherwise, how far the whole is. It never goes back.
    fn hold(&mut self, percent: f32, message: Option<String>) {
        let (step, steps) = (self.step, self.count());
        let whole = if step > 0 { (100.0 * (step as f32 - 1.0) + percent) / steps as f32 } else { percent };
        self.percent = self.percent.max(whole);
        let message = message.or_else(|| self.held.take()?.message);
        self.held = Some(Progress { percent: self.percent, message, step, steps });
        self.tell();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(id: &str) -> Step {
        Step { id: id.to_owned(), title: id.to_uppercase() }
    }

    fn progress(percent: f32) -> Notice {
        Notice::Progress(ode_child::Progress { percent, message: None, step: None, steps: None })
    }

    fn heard(notices: Vec<Notice>) -> Vec<(f32, u32)> {
        let mut seen = Vec::new();
        let mut teller = Teller::new(|news| seen.extend(told(news)), &[step("a"), step("b")]);
        for notice in notices {
            teller.hear(notice);
            teller.tell_now();
        }
        seen
    }

    fn told(news: News) -> Option<(f32, u32)> {
        match news {
            News::Progress(progress) => Some((progress.percent, progress.step)),
            News::Started(_) | News::Plan(_) | News::Step { .. } | News::Log(_) | News::Checkpoint { .. } => {
                None
            }
        }
    }

    #[test]
    fn progress_is_that_of_the_whole_and_never_goes_back() {
        let begin = |id: &str| Notice::Step(id.to_owned(), StepState::Started);
        let notices =
            vec![begin("a"), progress(50.0), progress(0.0), begin("b"), progress(50.0), begin("unknown")];
        assert_eq!(heard(notices), [(0.0, 1), (25.0, 1), (25.0, 1), (50.0, 2), (75.0, 2)]);
    }

    #[test]
    fn progress_without_steps_is_as_it_was_said() {
        assert_eq!(heard(vec![progress(40.0), progress(60.0)]), [(40.0, 0), (60.0, 0)]);
    }

    #[test]
    fn a_plan_replaces_the_steps_of_the_manifest() {
        let plan = Notice::Plan(["x", "y", "z", "b"].map(step).to_vec());
        assert_eq!(heard(vec![plan, Notice::Step("b".to_owned(), StepState::Done)]), [(100.0, 4)]);
    }

    #[test]
    fn a_flood_of_progress_is_told_four_times_a_second() {
        let mut count = 0;
        let mut teller = Teller::new(|_| count += 1, &[]);
        for percent in 0..1000 {
            teller.hear(progress(percent as f32 / 10.0));
        }
        teller.tell_now();
        assert!((2..10).contains(&count), "{count}");
    }
}
