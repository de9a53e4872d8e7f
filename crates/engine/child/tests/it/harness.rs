//! What the tests share: ways to start the parts, and to look at processes from outside.

use crate::parts::Act;
use ode_child::{
    Grace, Limits, LogLine, Notice, Outcome, Program, Report, Spec, Supervisor, Violation, Waiting, Work,
};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Long enough for anything that should happen at all, on the busiest machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// This test binary, run again as one of [`crate::parts`].
pub(crate) fn part() -> Program {
    Program::this_binary(["--exact", "parts::plays_its_part", "--nocapture", "--test-threads=1"]).unwrap()
}

/// Our own child in a part.
pub(crate) fn own(name: &str) -> Spec {
    Spec { environment: vec![("PART".into(), name.into())], ..Spec::own(part()) }
}

/// Our own child that keeps to the protocol and does what its payload says, locked in.
pub(crate) fn worker() -> Spec {
    own("worker")
}

/// With other limits.
pub(crate) fn limited(spec: Spec, limits: Limits) -> Spec {
    Spec { limits, ..spec }
}

/// A program below a keeper, which is this test binary too.
pub(crate) fn kept(program: Program) -> Spec {
    let environment = [("KEEPER", "1"), ("PATH", "/usr/bin:/bin:/usr/sbin:/sbin")];
    let environment = environment.map(|(name, value)| (name.into(), value.into())).to_vec();
    Spec { environment, ..Spec::kept(part(), program) }
}

/// A shell script below a keeper.
pub(crate) fn script(text: &str) -> Spec {
    kept(Program::new("/bin/sh", ["-c", text]))
}

/// A part that is no child of our own but a program below a keeper, and speaks for itself.
pub(crate) fn stranger(name: &str) -> Spec {
    let mut spec = kept(part());
    spec.environment.push(("PART".into(), name.into()));
    spec.grace = Grace::NONE;
    spec
}

/// Runs a child to its end, without listening.
pub(crate) async fn run(spec: &Spec, act: &Act) -> Report {
    let waiting = Supervisor::new().unwrap().start(spec).await.unwrap();
    waiting.run(Work::new(act).unwrap(), |_| (), std::future::pending()).await.unwrap()
}

/// Runs a child to its end and keeps what it said.
pub(crate) async fn run_aloud(spec: &Spec, act: &Act) -> (Report, Vec<Notice>) {
    let mut said = Vec::new();
    let waiting = Supervisor::new().unwrap().start(spec).await.unwrap();
    let work = Work::new(act).unwrap();
    let report = waiting.run(work, |notice| said.push(notice), std::future::pending()).await.unwrap();
    (report, said)
}

/// Runs a child until it says `line`, then wishes it to stop.
pub(crate) async fn stop_at(waiting: Waiting, line: &str) -> Report {
    let (sender, receiver) = tokio::sync::oneshot::channel();
    let mut sender = Some(sender);
    let listen = |notice| {
        if matches!(&notice, Notice::Log(said) if said.text == line) {
            let _ = sender.take().map(|sender| sender.send(()));
        }
    };
    let stop = async { receiver.await.unwrap() };
    waiting.run(Work::new(&()).unwrap(), listen, stop).await.unwrap()
}

/// The text of every line of a log.
pub(crate) fn logs(said: &[Notice]) -> Vec<LogLine> {
    let log = |notice: &Notice| match notice {
        Notice::Log(line) => Some(line.clone()),
        Notice::Progress(_) | Notice::Plan(_) | Notice::Step(..) | Notice::Checkpoint { .. } => None,
    };
    said.iter().filter_map(log).collect()
}

/// The result of a run that finished.
pub(crate) fn result(report: &Report) -> serde_json::Value {
    match &report.outcome {
        Outcome::Finished(value) => serde_json::from_str(value.get()).unwrap(),
        other => panic!("it did not finish: {other:?}"),
    }
}

/// The violation of a run that ended in one.
pub(crate) fn violation(report: &Report) -> Violation {
    match report.outcome {
        Outcome::ProtocolViolation(violation) => violation,
        ref other => panic!("it did not violate the protocol: {other:?}"),
    }
}

/// Waits until `is_so`, and says what was waited for if it never comes.
pub(crate) fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < deadline, "waited in vain for: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// The processes, zombies included, whose environment names the run or whose command line contains the word.
pub(crate) fn processes(run: &str, word: &str) -> Vec<i32> {
    let numbers = std::fs::read_dir("/proc")
        .unwrap()
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<i32>().ok());
    let contains = |pid: i32, file: &str, wanted: &str| {
        let text = std::fs::read(format!("/proc/{pid}/{file}")).unwrap_or_default();
        text.windows(wanted.len()).any(|window| window == wanted.as_bytes())
    };
    let own = std::process::id().cast_signed();
    let is_meant = |pid: &i32| contains(*pid, "environ", run) || contains(*pid, "cmdline", word);
    numbers.filter(|pid| *pid != own).filter(is_meant).collect()
}

/// A list that a listener can share with the test.
#[derive(Clone, Default)]
pub(crate) struct Shared(Arc<Mutex<Vec<Notice>>>);

impl Shared {
    pub(crate) fn push(&self, notice: Notice) {
        self.0.lock().unwrap().push(notice);
    }

    pub(crate) fn has_line(&self, text: &str) -> bool {
        logs(&self.0.lock().unwrap()).iter().any(|line| line.text == text)
    }
}
