//! Ends a whole tree of processes, and finds again what a supervisor left behind when it died.

use crate::process::{Belongs, Process, boot};
use rustix::process::Signal;
use serde::{Deserialize, Serialize};
use std::collections::HashSet;
use std::time::{Duration, Instant};

/// Ending a tree is given up after this: a process in the kernel's hands cannot be killed until it returns.
const END_PATIENCE: Duration = Duration::from_secs(10);
/// Between two looks at the processes.
const LOOK_INTERVAL: Duration = Duration::from_millis(5);
/// A process may be born while the others are being listed, so emptiness has to be seen more than once.
const EMPTY_LOOKS: u32 = 2;
/// A run whose processes become others again and again is looked for this often.
const UNCLEAR_LOOKS: u32 = 10;
/// A process that becomes another program shows no environment for an instant, on a busy machine for a good while. One
/// that still shows none after so many looks has none, and is of no run.
const CLEARING_LOOKS: u32 = 100;

/// Names a run, so that its processes can be found and ended after a crash of their supervisor. To be stored by
/// the caller before the payload is sent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// The process that was started.
    pub pid: i32,
    /// When it was, in clock ticks since boot. A number alone may have gone to another process since.
    pub started: u64,
    /// Names the time since the system was started.
    pub boot: String,
    /// Names the run; every process of it carries this in its environment.
    pub run: String,
}

impl Record {
    pub(crate) fn of(pid: i32, run: String) -> Self {
        let started = Process::look(pid).map_or(0, |process| process.started);
        Self { pid, started, boot: boot(), run }
    }

    /// Names this process, so that another can tell later whether it is still there.
    pub fn of_this_process() -> Self {
        Self::of(std::process::id().cast_signed(), String::new())
    }

    /// Whether the process that was started is still there.
    pub fn is_alive(&self) -> bool {
        let is_it = |process: Process| process.started == self.started && !process.is_zombie;
        self.boot == boot() && Process::look(self.pid).is_some_and(is_it)
    }

    /// The living processes of this run. Where there seems to be none, but one that is no older than the run does not
    /// show whose it is, that is waited for.
    pub(crate) fn members(&self) -> Vec<Process> {
        for _ in 0..UNCLEAR_LOOKS {
            let (members, unclear) = self.look();
            if !members.is_empty() || unclear.is_empty() || !self.is_cleared_up(&unclear) {
                return members;
            }
        }
        Vec::new()
    }

    /// The living processes of this run, and those that may be.
    fn look(&self) -> (Vec<Process>, Vec<Process>) {
        let all = Process::all();
        let (mut seeds, mut unclear) = (Vec::new(), Vec::new());
        for process in &all {
            let is_root = process.pid == self.pid && process.started == self.started;
            match if is_root { Belongs::Yes } else { process.belongs(&self.run) } {
                Belongs::Yes => seeds.push(*process),
                Belongs::Unclear if self.may_be_of(process) => unclear.push(*process),
                Belongs::Unclear | Belongs::No => {}
            }
        }
        (with_descendants(&all, seeds), unclear)
    }

    /// Whether one of these shows whose it is within a moment.
    fn is_cleared_up(&self, unclear: &[Process]) -> bool {
        (0..CLEARING_LOOKS).any(|_| {
            std::thread::sleep(LOOK_INTERVAL);
            unclear.iter().any(|process| process.belongs(&self.run) != Belongs::Unclear)
        })
    }

    /// Whether a process can be of this run at all: one that is older cannot, nor can the kernel's own.
    fn may_be_of(&self, process: &Process) -> bool {
        process.started >= self.started && !process.is_kernels
    }
}

/// What was found of a run whose supervisor is no more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Orphans {
    /// Nothing of it is alive.
    None,
    /// This many processes were ended.
    Ended(usize),
    /// Some could not be ended in time; try again later.
    Remain(usize),
}

/// Ends what is left of a run whose supervisor died, wherever it is in the tree of processes by now.
///
/// It blocks for as long as the processes take to die, ten seconds at most. Only processes that are surely of that
/// run are touched: the one with the recorded number *and* start time, those that carry the run's name in their
/// environment, and the descendants of both. After a restart of the system there is nothing to do.
pub fn end_orphan(record: &Record) -> Orphans {
    if record.boot != boot() {
        return Orphans::None;
    }
    end_all(|| record.members())
}

/// Kills what `members` finds until it finds nothing any more.
pub(crate) fn end_all(members: impl Fn() -> Vec<Process>) -> Orphans {
    let deadline = Instant::now() + END_PATIENCE;
    let mut ended = HashSet::new();
    let mut empty_looks = 0;
    while empty_looks < EMPTY_LOOKS {
        let alive = members();
        if alive.is_empty() {
            empty_looks += 1;
            continue;
        }
        if Instant::now() > deadline {
            return Orphans::Remain(alive.len());
        }
        empty_looks = 0;
        for process in alive {
            process.signal(Signal::KILL);
            ended.insert((process.pid, process.started));
        }
        std::thread::sleep(LOOK_INTERVAL);
    }
    if ended.is_empty() { Orphans::None } else { Orphans::Ended(ended.len()) }
}

/// The living descendants of a process, itself not included.
pub(crate) fn descendants(pid: i32) -> Vec<Process> {
    let all = Process::all();
    let children = all.iter().copied().filter(|process| process.parent == pid).collect();
    with_descendants(&all, children)
}

/// Adds the children of the seeds, their children, and so on. The dead and the caller itself are left out.
fn with_descendants(all: &[Process], seeds: Vec<Process>) -> Vec<Process> {
    let mut found = seeds;
    let mut numbers: HashSet<i32> = found.iter().map(|process| process.pid).collect();
    let mut next = 0;
    while let Some(parent) = found.get(next).map(|process| process.pid) {
        found.extend(all.iter().filter(|process| process.parent == parent && numbers.insert(process.pid)));
        next += 1;
    }
    let own = std::process::id().cast_signed();
    found.retain(|process| !process.is_zombie && process.pid != own);
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process(pid: i32, parent: i32, is_zombie: bool) -> Process {
        Process { pid, parent, started: 1, is_zombie, is_kernels: false, cpu: Duration::ZERO }
    }

    #[test]
    fn descendants_are_found_below_the_dead_too() {
        let all = [
            process(30, 20, false),
            process(10, 1, false),
            process(20, 10, true),
            process(11, 1, false),
            process(40, 30, false),
        ];
        let found = with_descendants(&all, vec![all[1]]);
        assert_eq!(found.iter().map(|process| process.pid).collect::<Vec<_>>(), [10, 30, 40]);
    }

    #[test]
    fn a_circle_of_parents_ends() {
        let all = [process(10, 20, false), process(20, 10, false)];
        assert_eq!(with_descendants(&all, vec![all[0]]).len(), 2);
    }

    /// A run of which only the name is known.
    fn nameless(run: &str) -> Record {
        Record { pid: -1, run: run.to_owned(), ..Record::of_this_process() }
    }

    #[test]
    fn a_process_that_becomes_another_again_and_again_is_found() {
        const BECOME: &str = r#"test "$0" -gt 0 && exec sh -c "$1" $(($0 - 1)) "$1"; exec sleep 60"#;
        for round in 0..10 {
            let run = format!("become-{}-{round}", std::process::id());
            let mut child = std::process::Command::new("sh")
                .args(["-c", BECOME, "200", BECOME])
                .env(crate::setup::RUN_VARIABLE, &run)
                .spawn()
                .unwrap();
            assert_eq!(end_orphan(&nameless(&run)), Orphans::Ended(1));
            assert!(!child.wait().unwrap().success());
        }
    }

    #[test]
    fn a_process_without_an_environment_is_of_no_run() {
        let mut child = std::process::Command::new("sleep").arg("60").env_clear().spawn().unwrap();
        assert_eq!(end_orphan(&nameless("nobody's")), Orphans::None);
        assert!(child.try_wait().unwrap().is_none(), "it was not touched");
        child.kill().unwrap();
        child.wait().unwrap();
    }

    #[test]
    fn a_record_from_before_a_restart_touches_nothing() {
        let record = Record { boot: "another".to_owned(), ..Record::of(1, "run".to_owned()) };
        assert_eq!(end_orphan(&record), Orphans::None);
    }
}
